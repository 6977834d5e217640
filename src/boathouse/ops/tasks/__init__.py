"""The parts of operations that run where the rows are: in process, and on executors."""

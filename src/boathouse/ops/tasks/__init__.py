"""The parts of operations that process rows: in process, and on executors."""

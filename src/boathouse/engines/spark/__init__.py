"""The Spark engine: frames and executor tasks, through PySpark's public API only (classic and Connect)."""

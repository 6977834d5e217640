"""Parquet files: schemas, reading, writing and statistics, for every format that keeps its rows in them."""

"""Parquet files outside of tables: `read_parquet` and `write_parquet`, for files with variants above all."""

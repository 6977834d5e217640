"""Data files and delete files in every file format: opened, read, written, and the metrics of what was written."""

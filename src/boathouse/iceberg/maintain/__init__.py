"""Maintenance of Iceberg tables: what expires, which files nothing needs."""

"""Apache Iceberg, format version 2, in a file-system table (apache/iceberg, format/spec.md)."""

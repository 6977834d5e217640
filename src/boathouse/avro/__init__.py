"""Avro object container files, as columns: read by field id, written from Arrow (Apache Avro specification)."""

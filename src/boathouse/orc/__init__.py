"""ORC files: their tails and types by field id; pyarrow decodes the stripes (Apache ORC specification)."""

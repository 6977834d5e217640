"""Arrow: schemas, casts, comparisons and expressions with Spark's semantics."""

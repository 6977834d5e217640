"""Expressions over Arrow data: their evaluation, and pruning by statistics."""

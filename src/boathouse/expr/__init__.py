"""Expressions with the semantics of Spark's ANSI mode: tree, SQL text, types, projections for pruning."""

"""Expressions that mean what Spark means with ANSI on: tree, SQL text, typing, pruning's projections."""

"""Spark SQL text to the expression tree. The parser is imported on first use: that takes as long as importing Arrow."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from boathouse.expr.tree import Expr


@lru_cache(256)
def parse(sql: str) -> Expr:
    """An expression, its columns unresolved. Raises ExpressionError, UnsupportedFunctionError."""
    return _parser().parse(sql)


@cache
def _parser() -> Any:
    return import_module("boathouse.expr.sql_parser")

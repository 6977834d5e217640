"""Values as Spark SQL text with Spark's types. A list of texts reaches Spark in one call, where every Column of a tree
would take a call for each of its nodes."""

from __future__ import annotations

import re

from boathouse.engines.spark.read_schema import quoted
from boathouse.engines.spark.schema import spark_type
from boathouse.errors import ExpressionError
from boathouse.expr.parse import parse
from boathouse.expr.tree import Case, Cast, Column, Comparison, Expr, Function, Literal, rebuild
from boathouse.expr.values import Stored, Unread, Value, as_blob, is_blob, rewritten
from boathouse.types import BINARY, STRING, DataType, FixedType, NullType, StructType, VariantType
from boathouse.types.blobs import is_written
from boathouse.types.data_types import children

_OF_FIXED = re.compile(r"\bAS\s+FIXED\s*\(|::\s*FIXED\s*\(", re.IGNORECASE)


def text(value: Value) -> str:
    """The value as Spark SQL text, in which casts to types that Spark lacks are spelled out. Raises
    UnsupportedTypeError for a column whose type Spark does not have."""
    return _spelled(value) if isinstance(value, str) else str(_plain(rewritten(value, _cast)))


def named(name: str, value: Value) -> str:
    """A value with its name, as `selectExpr` takes it."""
    return f"{Unread(text(value)) if isinstance(value, str) else text(value)} AS {quoted(name)}"


def _spelled(sql: str) -> str:
    """The user's text: as it is, unless it casts to a type that only we parse."""
    if _OF_FIXED.search(sql) is None:
        return sql
    try:
        return str(_plain(parse(sql)))
    except ExpressionError:  # a comment or a string may have the words, and Spark knows functions that we do not
        return sql


def _plain(value: Expr) -> Expr:
    """The value without casts to FIXED(n), which Spark has as BINARY."""
    if isinstance(value, Unread):
        sql = _spelled(value.sql)
        return value if sql == value.sql else Unread(sql)
    made = rebuild(value, _plain)
    return (
        _of_length(made.arg, made.to, made.safe) if isinstance(made, Cast) and isinstance(made.to, FixedType) else made
    )


def _of_length(arg: Expr, to: FixedType, safe: bool) -> Expr:
    """`arg` as binary where it has the length; other values fail, or are null if `safe`."""
    value = Cast(arg, BINARY)
    has = Comparison("=", Function("octet_length", (value,)), Literal.of(to.length))
    if safe:
        return Case(((has, value),), None)
    words = (Literal("X'", type=STRING), Function("hex", (value,)), Literal(f"' does not fit {to}", type=STRING))
    failed = Cast(Function("raise_error", (Function("concat", words),)), BINARY)
    return Case(((Comparison("<=>", has, Literal.of(False)), failed),), value)


def _cast(value: Stored) -> Expr:
    if is_written(value.to):
        return _blob(value)
    if not _castable(value.to):
        return value.arg
    return Unread(f"CAST({value.arg} AS {spark_type(value.to, value.column).simpleString()})")


def _blob(value: Stored) -> Expr:
    """A column is a blob, or its rows are all of bytes, which are made blobs where they are written; another expression
    gives bytes."""
    given = parse(value.arg.sql) if isinstance(value.arg, Unread) else value.arg
    if isinstance(given, Column) or is_blob(given) or (isinstance(given, Literal) and given.value is None):
        return value.arg
    return as_blob(value.arg, value.to, lambda f: Unread(f"CAST(NULL AS {spark_type(f.type, f.name).simpleString()})"))


def _castable(type: DataType) -> bool:
    """Whether Spark's cast is that of a column: it casts structs by position, not by name."""
    if isinstance(type, NullType | VariantType | StructType):
        return False
    return all(_castable(f.type) for f in children(type))

"""Values as Spark SQL text with Spark's types. A list of texts reaches Spark in one call, where every Column of a tree
would take a call for each of its nodes."""

from __future__ import annotations

from boathouse.engines.spark.read_schema import quoted
from boathouse.engines.spark.schema import spark_type
from boathouse.expr.tree import Expr
from boathouse.expr.values import Stored, Unread, Value, rewritten
from boathouse.types import DataType, NullType, StructType, VariantType
from boathouse.types.data_types import children


def text(value: Value) -> str:
    """The value as Spark SQL text. Raises UnsupportedTypeError for a column whose type Spark does not have."""
    return value if isinstance(value, str) else str(rewritten(value, _cast))


def named(name: str, value: Value) -> str:
    """A value with its name, as `selectExpr` takes it."""
    return f"{Unread(value) if isinstance(value, str) else text(value)} AS {quoted(name)}"


def _cast(value: Stored) -> Expr:
    if not _castable(value.to):
        return value.arg
    return Unread(f"CAST({value.arg} AS {spark_type(value.to, value.column).simpleString()})")


def _castable(type: DataType) -> bool:
    """Whether Spark's cast is that of a column: it casts structs by position, not by name."""
    if isinstance(type, NullType | VariantType | StructType):
        return False
    return all(_castable(f.type) for f in children(type))

"""Arguments as delta-spark takes them: expressions as text or Columns, and its errors for anything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from pyspark.sql import Column

from boathouse.api.conditions import is_column, sql_text
from boathouse.bits.names import steps
from boathouse.errors import ArgumentTypeError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.identifiers import dotted
from boathouse.storage.aliases import translate

ExpressionOrColumn: TypeAlias = str | Column
_HADOOP: Final = ("fs.", "dfs.", "spark.hadoop.fs.", "spark.hadoop.dfs.")
ColumnMapping: TypeAlias = dict[str, ExpressionOrColumn]


def expression(value: object, name: str = "'condition'") -> str | None:
    """A condition as Spark SQL text; None stays None. Raises ArgumentTypeError."""
    if value is None:
        return None
    if not isinstance(value, str) and not is_column(value):
        raise ArgumentTypeError(
            f"{name} must be a Spark SQL Column or a string (expression in SQL syntax), found {value!r}"
        )
    return sql_text(value)


def assignments(values: object, name: str) -> dict[str, str]:
    """The values of columns as Spark SQL text. Raises InvalidArgumentError, ArgumentTypeError."""
    if values is None:
        raise InvalidArgumentError(f"{name} cannot be None", advice="pass a dict of columns to expressions")
    if not isinstance(values, dict):
        raise ArgumentTypeError(f"{name} must be a dict, found {values!r}")
    for column, value in values.items():
        if not isinstance(column, str):
            raise ArgumentTypeError(f"Keys of dict in {name} must contain only names of columns, found {column!r}")
        if not isinstance(value, str) and not is_column(value):
            raise ArgumentTypeError(
                f"Values of dict in {name} must contain only Spark SQL Columns or strings (expressions in SQL syntax), "
                f"found {value!r}"
            )
    return {column: sql_text(value) for column, value in values.items()}


def of_type(value: Any, kind: type, name: str) -> Any:
    """The value. Raises InvalidArgumentError if it is of another type (True is no int)."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidArgumentError(f"{name} needs to be of type {kind.__name__}, found {value!r}")
    return value


def column_names(columns: Sequence[Any], what: str) -> tuple[str, ...]:
    """Names given one by one, or as one list. Raises ArgumentTypeError."""
    found = columns[0] if len(columns) == 1 and isinstance(columns[0], list | tuple) else columns
    for name in found:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"{what} column must be str, found {name!r}")
    return tuple(found)


def unqualified(column: str, columns: Sequence[str], qualifiers: Sequence[Sequence[str]]) -> str:
    """The path of what is assigned to, a column or a field, without the table's name before it: `t.value`, where the
    table is `t`."""
    path = steps(column)
    known = {name.lower() for name in columns}
    for qualifier in ((), *qualifiers):
        head, rest = path[: len(qualifier)], path[len(qualifier) :]
        named = [p.lower() for p in head] == [q.lower() for q in qualifier]
        if named and rest and (rest[0].lower() in known or len(rest) == 1):
            return dotted(rest)
    return column


def storage_options(conf: Mapping[str, str] | None) -> dict[str, str] | None:
    """What a Hadoop configuration says to this library's stores; its other keys of file systems mean nothing to it."""
    if conf is None:
        return None
    return {k: v for k, v in conf.items() if not k.lower().startswith(_HADOOP) or translate(k, str(v)) is not None}


def not_offered(what: str, advice: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"{what} is not offered", advice=advice)

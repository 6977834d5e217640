"""The user's rows as lazy batches: pyarrow, pandas, polars, duckdb, the PyCapsule interface, lists of dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from boathouse.arrow.schema import from_arrow
from boathouse.bits.names import Names
from boathouse.errors import InvalidArgumentError
from boathouse.expr.resolve import bind
from boathouse.expr.sides import Sides
from boathouse.expr.tree import Expr
from boathouse.expr.values import Value, read
from boathouse.types import Field, Schema


@dataclass(frozen=True, slots=True)
class Batches:
    """Lazy rows: `open` starts a new pass, but only once if `once` (a reader, a generator).

    `whole` is the table with the rows, if they are all in memory; `sides`, whether the columns are those of a join;
    `zone` is the time zone of expressions over the rows.
    """

    schema: pa.Schema
    open: Callable[[], Iterator[pa.RecordBatch]]
    once: bool = False
    whole: pa.Table | None = None
    sides: bool = False
    zone: str = "UTC"

    @staticmethod
    def of(table: pa.Table) -> Batches:
        return Batches(table.schema, lambda: iter(table.to_batches()), whole=table)

    def table(self) -> pa.Table:
        return pa.Table.from_batches(list(self.open()), self.schema) if self.whole is None else self.whole


def from_data(data: object) -> Batches:
    """Batches of anything that exports Arrow data, and of a list of dicts. Named levels of a pandas index become
    columns.

    Raises InvalidArgumentError.
    """
    found = _from_data(data)
    names = found.schema.names
    if not names:
        raise InvalidArgumentError("the data has no columns", advice="pass rows with the columns of the table")
    twice = Names(names).repeated()
    if twice is not None:
        raise InvalidArgumentError(f"the data has two columns named {twice!r}", advice="rename or drop one of them")
    return found


def _from_data(data: Any) -> Batches:
    if isinstance(data, Batches):
        return data
    if isinstance(data, pa.Table):
        return Batches.of(data)
    if isinstance(data, pa.RecordBatch):
        return Batches.of(pa.Table.from_batches([data]))
    if isinstance(data, pa.RecordBatchReader):
        return _once(data)
    if isinstance(data, list):
        return Batches.of(columns_of_rows(data))
    if any(k.__module__.split(".")[0] == "pandas" and k.__name__ == "DataFrame" for k in type(data).__mro__):
        return Batches.of(_frame(data))
    if hasattr(data, "scanner") and isinstance(getattr(data, "schema", None), pa.Schema):
        return Batches(data.schema, lambda: iter(data.to_batches()))
    if hasattr(data, "to_reader"):
        return _once(data.to_reader())
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return _once(pa.RecordBatchReader.from_stream(data))
        except pa.ArrowInvalid as error:
            raise InvalidArgumentError(
                f"a {type(data).__qualname__} is not a table: {error}", advice="pass columns with names"
            ) from error
    if hasattr(data, "__arrow_c_array__"):
        return Batches.of(_struct_rows(data))
    raise InvalidArgumentError(
        f"cannot read rows from a {type(data).__module__}.{type(data).__qualname__}",
        advice="pass a PySpark DataFrame, or anything that exports Arrow data (pyarrow, pandas, polars, duckdb)",
    )


def _struct_rows(data: Any) -> pa.Table:
    try:
        return pa.Table.from_batches([pa.record_batch(data)])
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(
            f"a {type(data).__qualname__} is not a table: {error}", advice="pass columns with names"
        ) from error


def _once(reader: pa.RecordBatchReader) -> Batches:
    return Batches(reader.schema, lambda: iter(reader), once=True)


def _frame(frame: Any) -> pa.Table:
    try:
        named = [level for level, name in enumerate(frame.index.names) if name is not None]
        return pa.Table.from_pandas(frame.reset_index(named) if named else frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise InvalidArgumentError(
            f"cannot make columns of this pandas frame: {error}",
            advice="give each column its own name and values of one type",
        ) from error


def columns_of_rows(rows: list[Any]) -> pa.Table:
    """Every key of any row is a column, in the order of first appearance; a missing key is null.

    Raises InvalidArgumentError.
    """
    if not rows:
        raise InvalidArgumentError("an empty list has no columns", advice="pass a pyarrow table with a schema")
    names: dict[str, None] = {}
    for row in rows:
        if not isinstance(row, dict) or not all(isinstance(name, str) for name in row):
            raise InvalidArgumentError(
                f"{str(row)[:80]!r} in the list is not a row", advice="pass dicts with the names of columns as keys"
            )
        names.update(dict.fromkeys(row))
    try:
        return pa.table({name: pa.array([row.get(name) for row in rows]) for name in names})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidArgumentError(
            f"cannot make columns of these rows: {error}",
            advice="pass values of one type in each column, or a pyarrow table",
        ) from error


def bind_all(rel: Batches, values: Sequence[Value], let: Sequence[Field] = ()) -> list[Expr]:
    """Values over a relation, bound to its schema and to what `let` adds to it; over the result of a join, sides need
    not be named.

    Raises ExpressionError, ColumnNotFoundError, UnsupportedFunctionError.
    """
    schema = from_arrow(rel.schema)
    parsed = list(map(read, values))
    if rel.sides:
        parsed = list(map(Sides(schema, [f.name for f in let]).qualified, parsed))
    schema = Schema((*schema.fields, *let))
    return [bind(e, schema, rel.zone) for e in parsed]

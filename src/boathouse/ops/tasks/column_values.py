"""Where the values of new columns come from: expressions over the row, a function over batches, rows of equal keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.arrow.keys import KeyIndex
from boathouse.arrow.selection import take
from boathouse.compute.evaluate import evaluate
from boathouse.errors import BoathouseError, ConstraintViolationError, InvalidArgumentError, SchemaMismatchError
from boathouse.expr.tree import Expr

Function = Callable[[pa.RecordBatch], Any]


@dataclass(frozen=True, slots=True)
class Expressions:
    """Bound expressions, by the name of their column."""

    values: Mapping[str, Expr]

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Raises EvaluationError."""
        return pa.RecordBatch.from_arrays([evaluate(e, rows) for e in self.values.values()], names=[*self.values])


@dataclass(frozen=True, slots=True)
class Applied:
    """What a function makes of the rows: Arrow data, a pandas frame, or a mapping of columns, of which lists get the
    type that the column has in `schema`."""

    function: Function
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Raises what the function raises, and InvalidArgumentError for a result that is none of these."""
        return one_batch(self.function(rows), self.schema)


def one_batch(found: object, schema: pa.Schema) -> pa.RecordBatch:
    """Columns that a function gave, as one batch. Raises InvalidArgumentError, SchemaMismatchError for lists that are
    not of the type in `schema`."""
    if isinstance(found, pa.RecordBatch):
        return found
    try:
        if isinstance(found, Mapping):
            table = pa.table({name: _column(name, values, schema) for name, values in found.items()})
        elif hasattr(found, "dtypes") and hasattr(found, "index"):
            table = pa.Table.from_pandas(found, preserve_index=False)
        else:
            table = pa.table(found)
    except BoathouseError:
        raise
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidArgumentError(
            f"the function gave no columns, but {type(found).__name__}: {error}",
            advice="return a RecordBatch, a Table, a pandas DataFrame, or a dict of arrays",
        ) from error
    whole = table.combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], table.schema)


def _column(name: str, values: Any, schema: pa.Schema) -> Any:
    if not isinstance(values, list | tuple):
        return values
    kind = schema.field(name).type if name in schema.names else None
    try:
        return pa.array(values, kind)
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise SchemaMismatchError(f"the new column `{name}` is {kind or 'of one type'}: {error}") from error


@dataclass(frozen=True)
class Joined:
    """The values of the row of `source` that has an equal key, null where none has: `keys` are the columns of the
    table, `on` those of the source in their types."""

    keys: Sequence[str]
    on: pa.Table
    source: pa.Table
    _index: KeyIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises ConstraintViolationError if two rows of the source have the same key, UnsupportedTypeError for keys
        that are nested."""
        index = KeyIndex.of(self.on.columns)
        groups = index.groups[index.groups >= 0]
        if len(groups) > index.size or (len(groups) and int(np.bincount(groups).max()) > 1):
            row = int(np.flatnonzero(np.isin(index.groups, np.flatnonzero(np.bincount(groups) > 1)))[0])
            raise ConstraintViolationError(
                f"two rows of the data have the key {self.on.slice(row, 1).to_pylist()[0]}",
                advice="make the data unique on the keys",
            )
        object.__setattr__(self, "_index", index)

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if not self.source.num_rows:
            return pa.RecordBatch.from_arrays(
                [pa.nulls(len(rows), t) for t in self.source.schema.types], names=self.source.column_names
            )
        groups = self._index.lookup([rows.column(name) for name in self.keys])
        hit = groups >= 0
        found = np.zeros(len(groups), np.int64)
        found[hit] = self._index.row(groups[hit])
        places = pa.array(found, mask=~hit)
        arrays = [_rows_of(column, places) for column in self.source.columns]
        return pa.RecordBatch.from_arrays(arrays, names=self.source.column_names)


def _rows_of(column: pa.ChunkedArray, places: pa.Array) -> pa.Array:
    if column.num_chunks == 1:
        return take(column.chunk(0), places)
    return column.take(places).combine_chunks() if column.num_chunks else pa.nulls(len(places), column.type)

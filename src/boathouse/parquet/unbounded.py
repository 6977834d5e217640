"""Column chunks without bounds: what a reader may skip a row group or a page by is taken out of a footer.

pyarrow leaves NaN out of bounds, where readers that take NaN for the greatest number (Spark, DuckDB) need them to be
unknown: so the reference's Java writer writes none for a chunk with NaN.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.parquet.stats import leaf_array
from boathouse.parquet.thrift_footer import Cursor

Chunk = tuple[int, int]
"""The number of a row group, and of a leaf column in it."""
_ROW_GROUPS, _COLUMNS, _META_DATA, _STATISTICS = 4, 1, 3, 12
_COLUMN_INDEX = (6, 7)
_BOUNDS = (1, 2, 5, 6, 7, 8)
"""max, min, max_value, min_value, and whether those are exact."""


@dataclass(frozen=True, slots=True)
class FloatLeaf:
    """A leaf of floats of a file: its number among the leaf columns, and the way to it (see `SchemaLeaf.steps`)."""

    column: int
    steps: tuple[int | str, ...]

    def has_nan(self, batch: pa.RecordBatch) -> bool:
        """Whether there is a NaN among the values that are stored."""
        values = leaf_array(batch, self.steps)
        if values.null_count:
            return bool(pc.is_nan(values).true_count)
        with np.errstate(invalid="ignore"):
            return len(values) > 0 and bool(np.isnan(np.max(values.to_numpy())))


def float_leaves(schema: pa.Schema) -> tuple[FloatLeaf, ...]:
    """The leaves of floats in files with this Arrow schema."""
    leaves = (leaf for i, f in enumerate(schema) for leaf in _leaves(f.type, (i,)))
    return tuple(FloatLeaf(i, steps) for i, (steps, type) in enumerate(leaves) if pa.types.is_floating(type))


def _leaves(type: pa.DataType, steps: tuple[int | str, ...]) -> Iterator[tuple[tuple[int | str, ...], pa.DataType]]:
    if pa.types.is_struct(type):
        for i, f in enumerate(type):
            yield from _leaves(f.type, (*steps, i))
    elif pa.types.is_map(type):
        yield from _leaves(type.key_type, (*steps, "key"))
        yield from _leaves(type.item_type, (*steps, "value"))
    elif pa.types.is_list(type):
        yield from _leaves(type.value_type, (*steps, "element"))
    else:
        yield steps, type


def without_floats(schema: pa.Schema) -> list[str]:
    """The leaf columns that are no floats, as pyarrow's `write_statistics` names them."""
    return [name for f in schema for name in _paths(f.type, f.name)]


def _paths(type: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_struct(type):
        for f in type:
            yield from _paths(f.type, f"{path}.{f.name}")
    elif pa.types.is_map(type):
        yield from _paths(type.key_type, f"{path}.key_value.key")
        yield from _paths(type.item_type, f"{path}.key_value.value")
    elif pa.types.is_list(type):
        yield from _paths(type.value_type, f"{path}.list.element")
    elif not pa.types.is_floating(type):
        yield path


@dataclass(frozen=True, slots=True)
class _Struct:
    """What changes in a Thrift struct: `fields` by id, and the ids that are left out."""

    fields: Mapping[int, _Struct | _List] = field(default_factory=dict)
    dropped: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class _List:
    """What changes in a Thrift list of structs: elements by number."""

    elements: Mapping[int, _Struct]


_CHUNK = _Struct({_META_DATA: _Struct({_STATISTICS: _Struct(dropped=_BOUNDS)})}, _COLUMN_INDEX)


def without_bounds(footer: bytes, chunks: Collection[Chunk]) -> bytes:
    """The Thrift `footer` in which these column chunks have no bounds and no column index; counts of nulls stay."""
    groups: dict[int, dict[int, _Struct]] = {}
    for group, column in chunks:
        groups.setdefault(group, {})[column] = _CHUNK
    changed = {group: _Struct({_COLUMNS: _List(columns)}) for group, columns in groups.items()}
    return bytes(_struct(Cursor(footer), _Struct({_ROW_GROUPS: _List(changed)})))


def _struct(cursor: Cursor, change: _Struct) -> bytearray:
    """The struct at the cursor, changed."""
    out = bytearray()
    kept = 0
    id, kind = cursor.field(0)
    while kind:
        start = cursor.at
        inner = change.fields.get(id)
        if inner is None:
            cursor.skip(kind)
            value: bytes | bytearray = cursor.data[start : cursor.at]
        else:
            value = _struct(cursor, inner) if isinstance(inner, _Struct) else _list(cursor, inner)
        if id not in change.dropped:
            out += _header(id, kept, kind)
            out += value
            kept = id
        id, kind = cursor.field(id)
    out.append(0)
    return out


def _list(cursor: Cursor, change: _List) -> bytearray:
    start = cursor.at
    count, kind = cursor.list_head()
    out = bytearray(cursor.data[start : cursor.at])
    for i in range(count):
        start = cursor.at
        if (inner := change.elements.get(i)) is not None:
            out += _struct(cursor, inner)
        else:
            cursor.skip(kind, in_list=True)
            out += cursor.data[start : cursor.at]
    return out


def _header(id: int, last: int, kind: int) -> bytes:
    """The head of a field after field `last`; all ids of footers are below 64."""
    return bytes([(id - last) << 4 | kind]) if id - last < 16 else bytes([kind, id << 1])

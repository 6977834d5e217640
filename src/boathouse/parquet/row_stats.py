"""Statistics of rows as they are written, for files of formats whose own are not read: ORC and Avro."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.parquet.stats import LeafStats, SchemaLeaf, leaf_array, schema_leaves
from boathouse.parquet.written_stats import FileLeaves, FileStats

_BOUNDED: Final = (
    T.BooleanType, T.IntegerType, T.FloatType, T.DecimalType, T.StringType, T.BinaryType, T.FixedType, T.UUIDType,
    T.DateType, T.TimeType, T.TimestampType,
)  # fmt: skip
_UNBOUNDED: Final = (T.GeometryType, T.GeographyType)
"""Bytes whose bounds are no bytes in order."""


class RowStats:
    """The statistics of one file's rows, which have the columns of `stored`: those of the leaves that are not void."""

    def __init__(self, leaves: FileLeaves, stored: T.Schema) -> None:
        self._leaves = leaves.leaves
        self._found = {leaf.path: _Leaf(leaf) for leaf in schema_leaves(stored)}
        self._rows = 0

    def update(self, batch: pa.RecordBatch) -> None:
        """Counts a batch as it is stored."""
        self._rows += batch.num_rows
        for found in self._found.values():
            found.update(batch)

    def taken(self, sizes: Mapping[int, int]) -> FileStats:
        """The statistics of all rows so far, with the bytes of the columns by field id."""
        return tuple(self._taken(leaf, sizes) for leaf in self._leaves)

    def _taken(self, leaf: SchemaLeaf, sizes: Mapping[int, int]) -> LeafStats:
        found = self._found.get(leaf.path)
        if found is None:  # void
            counted = None if leaf.repeated else self._rows
            return LeafStats(leaf.path, leaf.field.type, nulls=counted, values=counted)
        return found.taken(None if leaf.field.id is None else sizes.get(leaf.field.id))


class _Leaf:
    def __init__(self, leaf: SchemaLeaf) -> None:
        type = leaf.field.type
        self._leaf = leaf
        self._is_float = isinstance(type, T.FloatType)
        self._bounded = not leaf.repeated and isinstance(type, _BOUNDED) and not isinstance(type, _UNBOUNDED)
        self._nulls = self._nans = self._values = 0
        self._ends: list[pa.Scalar] = []

    def update(self, batch: pa.RecordBatch) -> None:
        array = leaf_array(batch, self._leaf.steps)
        self._nulls += array.null_count
        self._values += len(array)
        if self._is_float:
            nans = pc.is_nan(array)
            self._nans += nans.true_count
            if self._bounded and nans.true_count:
                array = array.filter(pc.invert(nans))
        if self._bounded and array.null_count < len(array):
            if pa.types.is_fixed_size_binary(array.type):
                array = array.cast(pa.binary())
            ends = pc.min_max(array)
            self._ends += [ends["min"], ends["max"]]

    def taken(self, size: int | None) -> LeafStats:
        leaf, type = self._leaf, self._leaf.field.type
        lower = upper = None
        if self._ends:
            held = to_arrow_type(type)
            ends = pc.min_max(pa.array(self._ends, self._ends[0].type))
            lower, upper = ends["min"].cast(held), ends["max"].cast(held)
            if self._is_float:  # -0.0 is before 0.0, and Arrow takes them for equal
                zeros = pa.array([-0.0, 0.0], held)
                lower = zeros[0] if lower.as_py() == 0 else lower
                upper = zeros[1] if upper.as_py() == 0 else upper
        exact = None if lower is None else True
        nans = self._nans if self._is_float else None
        return LeafStats(leaf.path, type, lower, upper, exact, exact, self._nulls, nans, self._values, size)

"""Statistics of a file that another writer made: from its footer where that can be trusted, else from its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boathouse.arrow.schema import to_arrow_type
from boathouse.parquet.bounds import Bounds, merged
from boathouse.parquet.read import Matching, SourceColumn, scan_file
from boathouse.parquet.resolve import Leaf
from boathouse.parquet.source import ParquetSource, open_source
from boathouse.parquet.stats import LeafStats, SchemaLeaf, chunk_nulls, group_bounds, leaf_array, schema_leaves
from boathouse.types import BinaryType, Field, FixedType, FloatType, NullType, Schema, StringType, VariantType

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles

_WHOLE = ("parquet-mr", "parquet-cpp")
"""Writers that never truncate the bounds of a column chunk."""


def inspect_file(
    files: DataFiles, uri: str, columns: Sequence[SourceColumn], matching: Matching | None = None
) -> tuple[LeafStats, ...]:
    """Statistics of the leaves of `columns`, depth first, in the columns' current types.

    Data is read for floats (footers do not count NaN), for leaves inside lists and maps, and for leaves without usable
    bounds (INT96). Bounds of strings and bytes are inexact if the writer may have truncated them. Raises as `scan_file`
    does.
    """
    schema = Schema(tuple(Field(c.name, c.type) for c in columns))
    leaves = schema_leaves(schema)
    source = open_source(files, uri, matching)
    try:
        known = [_from_footer(source, columns, leaf) for leaf in leaves]
    finally:
        source.close()
    wanted = sorted({_top(leaf) for leaf, stats in zip(leaves, known) if stats is None})
    unsure = [(i, leaf) for i, leaf in enumerate(leaves) if known[i] is None]
    tallies = {i: _Tally(replace(leaf, steps=(wanted.index(_top(leaf)), *leaf.steps[1:]))) for i, leaf in unsure}
    if unsure:
        for batch in scan_file(files, uri, [columns[top] for top in wanted], matching=matching):
            for tally in tallies.values():
                tally.update(batch)
    return tuple(stats if stats is not None else tallies[i].finish() for i, stats in enumerate(known))


def _top(leaf: SchemaLeaf) -> int:
    return int(leaf.steps[0])


def _from_footer(source: ParquetSource, columns: Sequence[SourceColumn], leaf: SchemaLeaf) -> LeafStats | None:
    """None if the data must be read."""
    if leaf.repeated or isinstance(leaf.field.type, FloatType | VariantType | NullType):
        return None
    _, node, stored = source.resolver.leaf(columns[_top(leaf)], leaf.path[1:])
    if stored is None or not isinstance(node, Leaf):
        return None
    metadata: pq.FileMetaData = source.metadata
    chunks = [metadata.row_group(i).column(stored.first) for i in range(metadata.num_row_groups)]
    nulls = chunk_nulls(chunks)
    bounds = group_bounds(chunks, stored.type, node.convert, nothing_else=True)
    if nulls is None or (bounds is None and nulls < metadata.num_rows):
        return None
    text = isinstance(leaf.field.type, StringType | BinaryType | FixedType)
    exact = not text or str(metadata.created_by).startswith(_WHOLE)
    lower, upper = bounds or (None, None)
    flag = exact if bounds is not None else None
    size = sum(c.total_compressed_size for c in chunks)
    return LeafStats(leaf.path, leaf.field.type, lower, upper, flag, flag, nulls, None, metadata.num_rows, size)


class _Tally:
    """Counts and bounds of one leaf over its batches."""

    def __init__(self, leaf: SchemaLeaf) -> None:
        self.leaf = leaf
        self.bounds: list[Bounds] = []
        self.nulls = self.nans = self.values = 0
        self.held = to_arrow_type(leaf.field.type)

    def update(self, batch: pa.RecordBatch) -> None:
        array = leaf_array(batch, self.leaf.steps)
        self.values += len(array)
        self.nulls += array.null_count
        if pa.types.is_floating(self.held):
            nan = pc.is_nan(array)
            self.nans += nan.true_count
            array = array.filter(pc.invert(nan))
        if not self.leaf.repeated and len(array) > array.null_count and not pa.types.is_nested(self.held):
            least, most = pc.min_max(array).values()
            self.bounds = [merged([*self.bounds, (least, most)])]

    def finish(self) -> LeafStats:
        lower, upper = self.bounds[0] if self.bounds else (None, None)
        exact = True if self.bounds else None
        nans = self.nans if pa.types.is_floating(self.held) else None
        path, type = self.leaf.path, self.leaf.field.type
        return LeafStats(path, type, lower, upper, exact, exact, self.nulls, nans, self.values)

"""Statistics of a leaf, and those in the footer of any file, leaf by leaf.

Leaves are those of the table's schema, depth first: a variant is one leaf, a void column is one that the file lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boathouse.arrow.schema import to_arrow_type
from boathouse.errors import ColumnNotFoundError
from boathouse.parquet.bounds import Bounds, chunk_bounds, merged
from boathouse.parquet.convert import Convert, constant
from boathouse.parquet.resolve import Absent, Leaf, Resolver, SourceColumn
from boathouse.types import DataType, Field, FloatType, ListType, MapType, Schema, StructType

COUNTS = ("nulls", "nans", "values")


@dataclass(frozen=True, slots=True)
class SchemaLeaf:
    """A leaf of a schema. `steps` is the path to it: a child's number, or "element", "key", "value"."""

    path: tuple[str, ...]
    field: Field
    steps: tuple[int | str, ...]

    @property
    def repeated(self) -> bool:
        return any(isinstance(s, str) for s in self.steps)


@dataclass(frozen=True, slots=True)
class LeafStats:
    """Statistics of one leaf in one file; None is unknown.

    `lower` and `upper` are scalars of the leaf's Arrow type, never NaN. `values` counts nulls and NaNs too; in lists
    and maps it counts elements, and there are no bounds. `column_size` is bytes on disk.
    """

    path: tuple[str, ...]
    type: DataType
    lower: pa.Scalar | None = None
    upper: pa.Scalar | None = None
    lower_exact: bool | None = None
    upper_exact: bool | None = None
    nulls: int | None = None
    nans: int | None = None
    values: int | None = None
    column_size: int | None = None


def schema_leaves(schema: Schema) -> tuple[SchemaLeaf, ...]:
    """The leaves of a schema, depth first."""

    def below(f: Field, path: tuple[str, ...], steps: tuple[int | str, ...]) -> Iterator[SchemaLeaf]:
        match f.type:
            case StructType(fields):
                for i, child in enumerate(fields):
                    yield from below(child, (*path, child.name), (*steps, i))
            case ListType(element):
                yield from below(element, (*path, "element"), (*steps, "element"))
            case MapType(key, value):
                yield from below(key, (*path, "key"), (*steps, "key"))
                yield from below(value, (*path, "value"), (*steps, "value"))
            case _:
                yield SchemaLeaf(path, f, steps)

    return tuple(leaf for i, f in enumerate(schema) for leaf in below(f, (f.name,), (i,)))


def leaf_array(batch: pa.RecordBatch, steps: Sequence[int | str]) -> pa.Array:
    """The values of one leaf: null where an enclosing struct is, without the elements of null lists."""
    first, *rest = steps
    array = batch.column(first)
    for step in rest:
        if isinstance(step, int):
            array = pc.struct_field(array, [step])
        elif step == "element":
            array = array.flatten()
        else:
            entries = array.keys if step == "key" else array.items
            ends = array.offsets
            array = entries.slice(ends[0].as_py(), ends[-1].as_py() - ends[0].as_py())
    return array


def chunk_nulls(chunks: Sequence[pq.ColumnChunkMetaData]) -> int | None:
    """The number of nulls in these column chunks; None if one of them lacks it."""
    counts = [c.statistics.null_count if c.statistics and c.statistics.has_null_count else None for c in chunks]
    return None if None in counts else sum(c for c in counts if c is not None)


def split_offsets(metadata: pq.FileMetaData) -> list[int]:
    """Where each row group starts, ascending."""
    starts = []
    for i in range(metadata.num_row_groups if metadata.num_columns else 0):
        column = metadata.row_group(i).column(0)
        pages, dictionary = column.data_page_offset, column.dictionary_page_offset
        # Old writers say 0 for none.
        starts.append(min(pages, dictionary) if column.has_dictionary_page and dictionary else pages)
    return sorted(starts)


def group_bounds(
    chunks: Sequence[pq.ColumnChunkMetaData], stored: pa.DataType, convert: Convert | None, nothing_else: bool
) -> Bounds | None:
    """The bounds over all row groups, converted; None if unknown, or if there are only nulls.

    With `nothing_else` a row group without bounds must be all null; otherwise it may also be all NaN.
    """
    found = []
    for chunk in chunks:
        pair = chunk_bounds(chunk.statistics, stored, convert)
        if pair is not None:
            found.append(pair)
        elif nothing_else and chunk_nulls([chunk]) != chunk.num_values:
            return None
    return merged(found) if found else None


def summaries(
    lower: pa.Array,
    upper: pa.Array,
    lower_exact: Sequence[bool | None] | pa.Array,
    upper_exact: Sequence[bool | None] | pa.Array,
    nulls: Sequence[int | None],
    nans: Sequence[int | None],
    values: Sequence[int | None],
) -> pa.StructArray:
    """S of docs/design/001-waist.md, section 1, a row per file or row group."""
    flags = [e if isinstance(e, pa.Array) else pa.array(e, pa.bool_()) for e in (lower_exact, upper_exact)]
    counts = [pa.array(c, pa.int64()) for c in (nulls, nans, values)]
    names = ["lower", "upper", "lower_exact", "upper_exact", *COUNTS]
    return pa.StructArray.from_arrays([lower, upper, *flags, *counts], names=names)


def row_group_stats(
    metadata: pq.FileMetaData,
    resolver: Resolver,
    columns: Sequence[SourceColumn],
    paths: Sequence[tuple[str, ...]] | None = None,
) -> pa.StructArray:
    """The footer's statistics of each row group (one row each), as `struct<"0": S, ...>`, one field for each of
    `paths`.

    A path is a column's name followed by fields of structs; by default the paths are the columns themselves. Bounds are
    in the columns' current types, exact is false (other writers truncate), NaN counts are unknown. A leaf that the file
    lacks is all null, or its default where the structs around it are not null; statistics of nested columns, and inside
    lists and maps, are unknown.
    """
    by_name = {c.name: c for c in columns}
    if unknown := [p for p in paths or () if p[0] not in by_name]:
        raise ColumnNotFoundError(f"no column `{unknown[0][0]}` is read", advice=f"read it too: {', '.join(by_name)}")
    made = [
        _groups_of(metadata, resolver, by_name[path[0]], path[1:]) for path in paths or [(c.name,) for c in columns]
    ]
    return pa.StructArray.from_arrays(made, names=[str(i) for i in range(len(made))])


def _groups_of(
    metadata: pq.FileMetaData, resolver: Resolver, column: SourceColumn, below: tuple[str, ...]
) -> pa.StructArray:
    type, node, stored = resolver.leaf(column, below)
    held = to_arrow_type(type)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    unknown = [None] * len(groups)
    rows = [g.num_rows for g in groups]
    if isinstance(node, Absent) and not pa.types.is_nested(held):
        value = constant(node.default, held, len(groups))
        # A struct that is null has no fields, so none with their default.
        nulls = rows if node.default is None else unknown if below else [0] * len(groups)
        nans = unknown if isinstance(type, FloatType) else [0] * len(groups)
        return summaries(value, value, unknown, unknown, nulls, nans, rows)
    if stored is None or not isinstance(node, Leaf):
        nothing = pa.nulls(len(groups), held)
        return summaries(nothing, nothing, unknown, unknown, unknown, unknown, unknown)
    chunks = [g.column(stored.first) for g in groups]
    pairs = [chunk_bounds(chunk.statistics, stored.type, node.convert) for chunk in chunks]
    lower, upper = (pa.array([p[i] if p else None for p in pairs], held) for i in (0, 1))
    exact = [False if p else None for p in pairs]
    return summaries(lower, upper, exact, exact, [chunk_nulls([c]) for c in chunks], unknown, rows)

"""What the footer of a Parquet file outside of a table says: its columns, the number of rows, safe statistics."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.parquet.fields import FileField
from boathouse.parquet.file_schema import file_schema
from boathouse.parquet.resolve import Leaf, SourceColumn
from boathouse.parquet.source import ParquetSource
from boathouse.parquet.stats import (
    LeafStats,
    SchemaLeaf,
    chunk_nulls,
    group_bounds,
    schema_leaves,
    split_offsets,
)


@dataclass(frozen=True, slots=True)
class Footer:
    """`stats` are those of the schema's leaves outside lists and maps, in order; what is not certain is unknown.
    `offsets` are where the row groups start, or the stripes."""

    schema: T.Schema
    rows: int
    stats: tuple[LeafStats, ...]
    offsets: tuple[int, ...] = ()


def footer_of(source: ParquetSource, floats: bool = False, ids: bool = False) -> Footer:
    """The footer of an open file. With `floats` these have bounds too, which say nothing about NaN; with `ids` the
    fields have those of the file. Raises CorruptTableError, UnsupportedTypeError."""
    schema = own_schema(source, ids)
    leaves = [leaf for leaf in schema_leaves(schema) if not leaf.repeated]
    stats = tuple(_stats(source, schema, leaf, floats) for leaf in leaves)
    return Footer(schema, source.metadata.num_rows, stats, tuple(split_offsets(source.metadata)))


def own_schema(source: ParquetSource, ids: bool = False) -> T.Schema:
    """The file's columns as those of a table: instants in microseconds, without field ids, unless they are asked for.

    INT96 is an instant, which no annotation of the file says.
    """
    stored = source.metadata.schema
    instants = {i for i in range(len(stored)) if stored.column(i).physical_type == "INT96"}
    return as_stored(file_schema(source), source.resolver.fields, instants, ids)


def as_stored(
    schema: T.Schema, found: Sequence[FileField], instants: Collection[int] = (), ids: bool = False
) -> T.Schema:
    """A file's columns with the names of the specifications in lists and maps."""
    return T.Schema(tuple(_field(f, at, instants, ids) for f, at in zip(schema, found, strict=True)))


def _field(field: T.Field, found: FileField, instants: Collection[int], ids: bool) -> T.Field:
    type = _type(field.type, found, instants, ids)
    return T.Field(field.name, type, field.nullable, found.id if ids else None)


def _type(type: T.DataType, found: FileField, instants: Collection[int], ids: bool) -> T.DataType:
    below = found.children
    match type:
        case T.StructType(fields):
            return T.StructType(tuple(_field(f, c, instants, ids) for f, c in zip(fields, below, strict=True)))
        case T.ListType(element):
            return T.ListType(replace(_field(element, below[0], instants, ids), name="element"))
        case T.MapType(key, value):
            of_key, of_value = (_field(f, c, instants, ids) for f, c in zip((key, value), below, strict=True))
            return T.MapType(replace(of_key, name="key", nullable=False), replace(of_value, name="value"))
        case T.TimestampType() if found.first in instants:
            return T.TIMESTAMP
        case T.TimestampType(utc, "s" | "ms"):
            return T.TimestampType(utc, "us")
    return type


def _stats(source: ParquetSource, schema: T.Schema, leaf: SchemaLeaf, floats: bool) -> LeafStats:
    """Bounds of floats are mostly left out: a writer may have left NaN out of them, and says nowhere that there is
    none."""
    name, *below = leaf.path
    held, node, stored = source.resolver.leaf(SourceColumn(name, schema.field(name).type), tuple(below))
    metadata = source.metadata
    rows = metadata.num_rows
    if isinstance(held, T.NullType):
        return LeafStats(leaf.path, held, nulls=rows, values=rows)
    if stored is None:
        return LeafStats(leaf.path, held)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    places = range(stored.first, stored.first + stored.leaves)
    size = sum(g.column(i).total_compressed_size for g in groups for i in places)
    if not isinstance(node, Leaf) or isinstance(held, T.VariantType):
        return LeafStats(leaf.path, held, values=rows, column_size=size)
    chunks = [g.column(stored.first) for g in groups]
    nulls = chunk_nulls(chunks)
    known = LeafStats(leaf.path, held, nulls=nulls, values=rows, column_size=size)
    if isinstance(held, T.FloatType) and not floats:
        return known
    plain = stored.type.value_type if pa.types.is_dictionary(stored.type) else stored.type
    bounds = group_bounds(chunks, plain, node.convert, nothing_else=True)
    if bounds is None or not _ordered(*bounds):
        return known
    lower, upper = (b if b.type == to_arrow_type(held) else b.cast(to_arrow_type(held)) for b in bounds)
    return replace(known, lower=lower, upper=upper)


def _ordered(lower: pa.Scalar, upper: pa.Scalar) -> bool:
    """Whether they can be bounds at all: some writers compared strings and decimals as signed bytes."""
    return bool(pc.less_equal(lower, upper).as_py())

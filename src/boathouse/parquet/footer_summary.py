"""What the footer of a Parquet file outside of a table says: its columns, the number of rows, safe statistics."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.parquet.convert import leaf_cast
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
    return AsStored(ids, instants).schema(file_schema(source), source.resolver.fields)


@dataclass(frozen=True, slots=True)
class AsStored:
    """Types of columns as a file has them, with the names of the specifications in lists and maps. `instants` are the
    leaves that are instants though nothing says so, `micros` those that are read as nanoseconds and are none."""

    ids: bool = False
    instants: Collection[int] = ()
    micros: Collection[int] = ()

    def schema(self, schema: T.Schema, found: Sequence[FileField]) -> T.Schema:
        """The columns, of which `found` are the fields of the file."""
        return T.Schema(tuple(self._field(f, at) for f, at in zip(schema, found, strict=True)))

    def _field(self, field: T.Field, found: FileField) -> T.Field:
        return T.Field(field.name, self._type(field.type, found), field.nullable, found.id if self.ids else None)

    def _type(self, type: T.DataType, found: FileField) -> T.DataType:
        below = found.children
        match type:
            case T.StructType(fields):
                return T.StructType(tuple(self._field(f, c) for f, c in zip(fields, below, strict=True)))
            case T.ListType(element):
                return T.ListType(replace(self._field(element, below[0]), name="element"))
            case T.MapType(key, value):
                of_key, of_value = (self._field(f, c) for f, c in zip((key, value), below, strict=True))
                return T.MapType(replace(of_key, name="key", nullable=False), replace(of_value, name="value"))
            case T.TimestampType() if found.first in self.instants:
                return T.TIMESTAMP
            case T.TimestampType(utc, unit) if unit in ("s", "ms") or found.first in self.micros:
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
    plain, convert = stored.type, node.convert
    if pa.types.is_dictionary(plain):
        plain = plain.value_type
    if isinstance(plain, pa.BaseExtensionType):  # bounds are decoded as what it is stored as
        plain = plain.storage_type
        convert = leaf_cast(plain, to_arrow_type(held))
    bounds = group_bounds(chunks, plain, convert, nothing_else=True)
    if bounds is None or not _ordered(*bounds):
        return known
    wanted = to_arrow_type(held)
    lower, upper = (b if b.type == wanted else b.cast(wanted) for b in bounds)
    return replace(known, lower=lower, upper=upper)


def _ordered(lower: pa.Scalar, upper: pa.Scalar) -> bool:
    """Whether they can be bounds at all: some writers compared strings and decimals as signed bytes."""
    return bool(pc.less_equal(lower, upper).as_py())

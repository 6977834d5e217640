"""What the footer of a Parquet file outside of a table says: its columns, the number of rows, safe statistics."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.parquet.fields import FileField
from boathouse.parquet.file_schema import file_schema
from boathouse.parquet.resolve import Leaf, SourceColumn
from boathouse.parquet.source import ParquetSource
from boathouse.parquet.stats import LeafStats, SchemaLeaf, chunk_nulls, group_bounds, schema_leaves


@dataclass(frozen=True, slots=True)
class Footer:
    """`stats` are those of the schema's leaves outside lists and maps, in order; what is not certain is unknown."""

    schema: T.Schema
    rows: int
    stats: tuple[LeafStats, ...]


def footer_of(source: ParquetSource) -> Footer:
    """The footer of an open file. Raises CorruptTableError, UnsupportedTypeError."""
    schema = own_schema(source)
    leaves = [leaf for leaf in schema_leaves(schema) if not leaf.repeated]
    return Footer(schema, source.metadata.num_rows, tuple(_stats(source, schema, leaf) for leaf in leaves))


def own_schema(source: ParquetSource) -> T.Schema:
    """The file's columns as those of a table: without field ids, instants in microseconds.

    INT96 is an instant, which no annotation of the file says.
    """
    stored = source.metadata.schema
    instants = {i for i in range(len(stored)) if stored.column(i).physical_type == "INT96"}
    fields = zip(file_schema(source), source.resolver.fields, strict=True)
    return T.Schema(tuple(_field(f, found, instants) for f, found in fields))


def _field(field: T.Field, found: FileField, instants: Collection[int]) -> T.Field:
    return T.Field(field.name, _type(field.type, found, instants), field.nullable)


def _type(type: T.DataType, found: FileField, instants: Collection[int]) -> T.DataType:
    below = found.children
    match type:
        case T.StructType(fields):
            return T.StructType(tuple(_field(f, c, instants) for f, c in zip(fields, below, strict=True)))
        case T.ListType(element):
            return T.ListType(replace(_field(element, below[0], instants), name="element"))
        case T.MapType(key, value):
            of_key, of_value = (_field(f, c, instants) for f, c in zip((key, value), below, strict=True))
            return T.MapType(replace(of_key, name="key", nullable=False), replace(of_value, name="value"))
        case T.TimestampType() if found.first in instants:
            return T.TIMESTAMP
        case T.TimestampType(utc, "s" | "ms"):
            return T.TimestampType(utc, "us")
    return type


def _stats(source: ParquetSource, schema: T.Schema, leaf: SchemaLeaf) -> LeafStats:
    """Bounds of floats are left out: a writer may have left NaN out of them, and says nowhere that there is none."""
    name, *below = leaf.path
    held, node, stored = source.resolver.leaf(SourceColumn(name, schema.field(name).type), tuple(below))
    if isinstance(held, T.NullType):
        return LeafStats(leaf.path, held, nulls=source.metadata.num_rows)
    if stored is None or not isinstance(node, Leaf) or isinstance(held, T.VariantType):
        return LeafStats(leaf.path, held)
    metadata = source.metadata
    chunks = [metadata.row_group(i).column(stored.first) for i in range(metadata.num_row_groups)]
    nulls = chunk_nulls(chunks)
    if isinstance(held, T.FloatType):
        return LeafStats(leaf.path, held, nulls=nulls)
    plain = stored.type.value_type if pa.types.is_dictionary(stored.type) else stored.type
    bounds = group_bounds(chunks, plain, node.convert, nothing_else=True)
    if bounds is None or not _ordered(*bounds):
        return LeafStats(leaf.path, held, nulls=nulls)
    lower, upper = (b if b.type == to_arrow_type(held) else b.cast(to_arrow_type(held)) for b in bounds)
    return LeafStats(leaf.path, held, lower, upper, nulls=nulls)


def _ordered(lower: pa.Scalar, upper: pa.Scalar) -> bool:
    """Whether they can be bounds at all: some writers compared strings and decimals as signed bytes."""
    return bool(pc.less_equal(lower, upper).as_py())

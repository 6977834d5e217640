"""Schema edits with rows: the schema of files before it is committed (spec, "Schema Evolution")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.errors import UnsupportedFeatureError
from boathouse.iceberg import documents
from boathouse.iceberg.metadata import Json, TableMetadata
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.change import AddColumn, SetType
from boathouse.types import DataType, DecimalType, FloatType, IntegerType, Schema
from boathouse.types.evolution import with_type


def evolve(snapshot: IcebergSnapshot, edits: Sequence[AddColumn | SetType]) -> IcebergSnapshot:
    """`TableFormat.evolve`: new fields get the next ids, as the commit on the same metadata will assign them."""
    document = dict(snapshot.metadata.document)
    for edit in edits:
        edit_schema(document, edit, snapshot.token)
    metadata = TableMetadata(document, snapshot.metadata.uri)
    return replace(snapshot, metadata=metadata, schema=metadata.schema)


def edit_schema(document: Json, edit: AddColumn | SetType, where: str) -> None:
    """One edit of the current schema."""
    if isinstance(edit, AddColumn):
        documents.add_column(document, edit, where)
    else:
        _set_type(document, edit, where)


def _set_type(document: Json, edit: SetType, where: str) -> None:
    """A promotion that the specification allows, of a column that is not a partition source."""
    metadata = TableMetadata(document, where)
    path, schema = ".".join(edit.path), metadata.schema
    field = next(f for p, f in schema.walk() if p == edit.path)
    if not promotes(field.type, edit.type):
        raise UnsupportedFeatureError(
            f"column `{path}` is {field.type}, which Iceberg does not promote to {edit.type}",
            where=where,
            advice="cast the data to the table's type",
        )
    if any(f.source_id == field.id for spec in metadata.partitioning.specs for f in spec):
        raise UnsupportedFeatureError(
            f"column `{path}` partitions the table, so its type cannot be changed",
            where=where,
            advice="cast the data to the table's type",
        )
    documents.set_schema(document, Schema(with_type(schema.fields, edit.path, edit.type), schema.metadata))


def promotes(old: DataType, new: DataType) -> bool:
    """Whether the specification lets a primitive type become another one (spec, "Schema Evolution")."""
    match old, new:
        case (IntegerType(32, True), IntegerType(64, True)) | (FloatType(32), FloatType(64)):
            return True
        case (DecimalType(p, s), DecimalType(q, t)):
            return s == t and q >= p
    return False

"""Edits of the schema: what a commit does, and the schema of files before it is committed (spec, "Schema
Evolution")."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg import documents
from boathouse.iceberg.metadata import Json, TableMetadata
from boathouse.iceberg.name_mapping import NAME_MAPPING, NameMapping
from boathouse.iceberg.partitions import bind_spec
from boathouse.iceberg.schema_rules import IDENTIFIERS
from boathouse.iceberg.schemas import Ids, by_id, merged_ids
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.validate import default_sort_order, highest_column_id, highest_partition_id
from boathouse.table.change import words_of
from boathouse.table.edits import AddColumn, DropColumn, RenameColumn, ReplaceSchema, SchemaEdit, SetType
from boathouse.types import DataType, DecimalType, FloatType, IntegerType, PartitionField, PartitionSpec, Schema
from boathouse.types.evolution import with_name, with_type, without_field

S = TypeVar("S", bound=IcebergSnapshot)


def evolve(snapshot: S, edits: Sequence[SchemaEdit]) -> S:
    """`Snapshot.evolve`: new fields get the next ids, as the commit on the same metadata will assign them."""
    document = dict(snapshot.metadata.document)
    for edit in edits:
        edit_schema(document, edit, snapshot.token)
    metadata = TableMetadata(document, snapshot.metadata.uri)
    return replace(snapshot, metadata=metadata, schema=metadata.schema)


def edit_schema(document: Json, edit: SchemaEdit, where: str) -> None:
    """One edit of the current schema. Raises UnsupportedFeatureError naming a kind that is not offered."""
    match edit:
        case AddColumn():
            before = TableMetadata(document, where).schema
            documents.add_column(document, edit, where)
            _update_mapping(document, before, where)
        case RenameColumn():
            _rename(document, edit, where)
        case DropColumn():
            _drop(document, edit, where)
        case SetType():
            _set_type(document, edit, where)
        case ReplaceSchema():
            _replace_schema(document, edit, where)
        case _:
            raise UnsupportedFeatureError(f"{words_of(type(edit))} is not offered for Iceberg tables", where=where)


def _rename(document: Json, edit: RenameColumn, where: str) -> None:
    """A column keeps its id under another name: no file is touched, and files are read by id."""
    before = TableMetadata(document, where).schema
    after = Schema(with_name(before.fields, edit.path, edit.name), before.metadata)
    documents.check_names(document, after)
    documents.set_schema(document, after)
    _update_mapping(document, before, where)
    documents.move_metrics(document, edit.path, (*edit.path[:-1], edit.name))


def _drop(document: Json, edit: DropColumn, where: str) -> None:
    """A column leaves the schema, if nothing refers to it or to what is below it. Partition specs of the past count
    too: Java's library resolves all of them in the current schema."""
    metadata = TableMetadata(document, where)
    before = metadata.schema
    after = Schema(without_field(before.fields, edit.path), before.metadata)
    gone = by_id(before).keys() - by_id(after).keys()
    users = [
        *(f"partition spec {s.id}" for s in metadata.partitioning.specs if any(f.source_id in gone for f in s)),
        *("the sort order" for f in default_sort_order(document)["fields"] if f.get("source-id") in gone),
        *("the identifier fields" for id in before.metadata.get(IDENTIFIERS) or () if id in gone),  # type: ignore[attr-defined]
    ]
    if users:
        raise InvalidArgumentError(
            f"`{'.'.join(edit.path)}` cannot be dropped: {users[0]} of the table needs it", where=where
        )
    documents.set_schema(document, after)
    documents.move_metrics(document, edit.path, None)


def _update_mapping(document: Json, before: Schema, where: str) -> None:
    """The name mapping gets the names of new columns, as the reference does it."""
    text = TableMetadata(document, where).properties.get(NAME_MAPPING)
    if text is not None:
        mapping = NameMapping.parse(text, where).evolved(before, TableMetadata(document, where).schema)
        document["properties"] = {**document["properties"], NAME_MAPPING: json.dumps(mapping.json())}


def _replace_schema(document: Json, edit: ReplaceSchema, where: str) -> None:
    metadata = TableMetadata(document, where)
    schema = merged_ids(edit.schema, metadata.schema, Ids(highest_column_id(document)))
    documents.check_names(document, schema)
    fields = metadata.partitioning.current.fields if edit.partition_by is None else edit.partition_by
    documents.replace_schema(document, schema, _new_spec(metadata, fields, schema))


def _new_spec(metadata: TableMetadata, partition_by: Sequence[PartitionField], schema: Schema) -> PartitionSpec:
    """The spec of an overwrite: an existing equal one is reused, equal fields keep their ids."""
    specs = metadata.partitioning.specs
    highest = max(s.id for s in specs)
    last = highest_partition_id(metadata.document)
    bound, _ = bind_spec(partition_by, schema, highest + 1, last)
    known = {(f.source_id, str(f.transform), f.name): f.recorded_id for s in specs for f in s}
    fields = []
    for f in bound:
        id = known.get((f.source_id, str(f.transform), f.name))
        if id is None:
            last += 1
        fields.append(replace(f, id=last if id is None else id))
    for spec in specs:
        if [(f.recorded_id, f.name, f.source_id, f.transform) for f in spec] == [
            (f.id, f.name, f.source_id, f.transform) for f in fields
        ]:
            return PartitionSpec(spec.id, tuple(fields))
    return PartitionSpec(highest + 1, tuple(fields))


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

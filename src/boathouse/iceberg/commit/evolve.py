"""Edits of the schema: what a commit does, and the schema of files before it is committed (spec, "Schema
Evolution")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.metadata.document import Json, TableMetadata
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.name_mapping import NAME_MAPPING, NameMapping
from boathouse.iceberg.metadata.partitions import bind_spec, spec_fields_json
from boathouse.iceberg.metadata.rules import default_sort_order, highest_column_id, highest_partition_id
from boathouse.iceberg.metadata.schema_rules import IDENTIFIERS
from boathouse.iceberg.metadata.schemas import Ids, by_id, fresh_ids, merged_ids, schema_json, storable
from boathouse.iceberg.metadata.updates import (
    AddSchema,
    AddSpec,
    RemoveProperties,
    SetCurrentSchema,
    SetDefaultSpec,
    SetProperties,
)
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.change import words_of
from boathouse.table.edits import AddColumn, DropColumn, RenameColumn, ReplaceSchema, SchemaEdit, SetType
from boathouse.types import (
    DataType,
    DecimalType,
    Field,
    FloatType,
    IntegerType,
    PartitionField,
    PartitionSpec,
    Schema,
    StructType,
)
from boathouse.types.evolution import with_name, with_type, without_field

_COLUMN_METRICS: Final = "write.metadata.metrics.column."
S = TypeVar("S", bound=IcebergSnapshot)


def evolve(snapshot: S, edits: Sequence[SchemaEdit]) -> S:
    """`Snapshot.evolve`: new fields get the next ids, as the commit on the same metadata will assign them."""
    draft = Draft(snapshot.metadata.document)
    for edit in edits:
        edit_schema(draft, edit, snapshot.token)
    metadata = draft.view(snapshot.metadata.uri)
    return replace(snapshot, metadata=metadata, schema=metadata.schema)


def edit_schema(draft: Draft, edit: SchemaEdit, where: str) -> None:
    """One edit of the current schema. Raises UnsupportedFeatureError naming a kind that is not offered."""
    match edit:
        case AddColumn():
            before = draft.view(where).schema
            _add_column(draft, edit, where)
            _update_mapping(draft, before, where)
        case RenameColumn():
            _rename(draft, edit, where)
        case DropColumn():
            _drop(draft, edit, where)
        case SetType():
            _set_type(draft, edit, where)
        case ReplaceSchema():
            _replace_schema(draft, edit, where)
        case _:
            raise UnsupportedFeatureError(f"{words_of(type(edit))} is not offered for Iceberg tables", where=where)


def _add_column(draft: Draft, edit: AddColumn, where: str) -> None:
    """A new optional column at the end of the table or of a struct, with the next ids."""
    if not edit.nullable:
        raise InvalidArgumentError(f"column `{edit.name}` is required, but existing rows have no value")
    for what, given in (("a place", edit.after), ("a default", edit.default), ("a comment", edit.comment)):
        if given is not None:
            raise UnsupportedFeatureError(
                f"column `{edit.name}` is added with {what}, which is not offered for Iceberg tables",
                where=where,
                advice="leave it out",
            )
    schema = draft.view(where).schema
    ids = Ids(highest_column_id(draft.document))
    path = ".".join((*edit.parent, edit.name))
    added = fresh_ids(Field(edit.name, storable(edit.type, path, draft.view(where).format)), ids)
    _set_schema(draft, Schema(_with(schema.fields, edit.parent, added, path), schema.metadata))


def _with(fields: tuple[Field, ...], parent: tuple[str, ...], added: Field, path: str) -> tuple[Field, ...]:
    if not parent:
        if any(f.name == added.name for f in fields):
            raise InvalidArgumentError(f"the column `{path}` already exists")
        return (*fields, added)
    found = []
    for f in fields:
        if f.name == parent[0]:
            if not isinstance(f.type, StructType):
                raise InvalidArgumentError(f"`{f.name}` is {f.type}, not a struct")
            f = replace(f, type=StructType(_with(f.type.fields, parent[1:], added, path)))
        found.append(f)
    if all(f.name != parent[0] for f in fields):
        raise InvalidArgumentError(f"there is no struct `{parent[0]}` for column `{path}`")
    return tuple(found)


def _set_schema(draft: Draft, schema: Schema) -> None:
    """Makes `schema` (with ids) the current one; an existing equal one is reused."""
    wanted, known = schema_json(schema, 0), draft.document["schemas"]
    for one in known:
        if one["fields"] == wanted["fields"] and _identifying(one) == _identifying(wanted):
            if one["schema-id"] != draft.document["current-schema-id"]:
                draft.make(SetCurrentSchema(one["schema-id"]))
            return
    _check_names(draft.document, schema)
    draft.make(AddSchema(schema_json(schema, max(int(s["schema-id"]) for s in known) + 1)), SetCurrentSchema())


def _move_metrics(draft: Draft, old: tuple[str, ...], new: tuple[str, ...] | None) -> None:
    """The properties about metrics of a column, and of those below it, follow it to its new name; None: they go."""
    properties = draft.document.get("properties") or {}
    before = _COLUMN_METRICS + ".".join(old)
    moved = {k: v for k, v in properties.items() if k == before or k.startswith(before + ".")}
    if new is not None and moved:
        draft.make(SetProperties({_COLUMN_METRICS + ".".join(new) + k[len(before) :]: v for k, v in moved.items()}))
    if moved:
        draft.make(RemoveProperties(tuple(moved)))


def _identifying(schema: Mapping[str, Any]) -> set[int]:
    return set(schema.get(IDENTIFIERS) or ())


def _check_names(document: Json, schema: Schema) -> None:
    """Raises InvalidArgumentError for a column with the name of a partition field of another column, even in an older
    spec: Java resolves each spec by name in the current schema, and then fails to open the table. So it does with two
    columns whose names are the same once they are joined by dots."""
    names: dict[str, int] = {}
    for id, (path, _) in by_id(schema).items():
        if names.setdefault(".".join(path), id) != id:
            raise InvalidArgumentError(
                f"there are two columns `{'.'.join(path)}`, one of them with a dot in its name",
                advice="give the column another name",
            )
    for spec in document["partition-specs"]:
        for field in spec["fields"]:
            if names.get(field["name"], field.get("source-id")) != field.get("source-id"):
                raise InvalidArgumentError(
                    f"a column cannot be called `{field['name']}`: a field of partition spec {spec['spec-id']} "
                    "has that name, for another column",
                    advice="give the column another name",
                )


def _rename(draft: Draft, edit: RenameColumn, where: str) -> None:
    """A column keeps its id under another name: no file is touched, and files are read by id."""
    before = draft.view(where).schema
    after = Schema(with_name(before.fields, edit.path, edit.name), before.metadata)
    _check_names(draft.document, after)
    _set_schema(draft, after)
    _update_mapping(draft, before, where)
    _move_metrics(draft, edit.path, (*edit.path[:-1], edit.name))


def _drop(draft: Draft, edit: DropColumn, where: str) -> None:
    """A column leaves the schema, if nothing refers to it or to what is below it. Partition specs of the past count
    too: Java's library resolves all of them in the current schema."""
    metadata = draft.view(where)
    before = metadata.schema
    after = Schema(without_field(before.fields, edit.path), before.metadata)
    gone = by_id(before).keys() - by_id(after).keys()
    users = [
        *(f"partition spec {s.id}" for s in metadata.partitioning.specs if any(f.source_id in gone for f in s)),
        *("the sort order" for f in default_sort_order(metadata.document)["fields"] if f.get("source-id") in gone),
        *("the identifier fields" for id in before.metadata.get(IDENTIFIERS) or () if id in gone),  # type: ignore[attr-defined]
    ]
    if users:
        raise InvalidArgumentError(
            f"`{'.'.join(edit.path)}` cannot be dropped: {users[0]} of the table needs it", where=where
        )
    _set_schema(draft, after)
    _move_metrics(draft, edit.path, None)


def _update_mapping(draft: Draft, before: Schema, where: str) -> None:
    """The name mapping gets the names of new columns, as the reference does it."""
    metadata = draft.view(where)
    text = metadata.properties.get(NAME_MAPPING)
    if text is not None:
        mapping = NameMapping.parse(text, where).evolved(before, metadata.schema)
        draft.make(SetProperties({NAME_MAPPING: json.dumps(mapping.json())}))


def _replace_schema(draft: Draft, edit: ReplaceSchema, where: str) -> None:
    """An overwrite's own schema and spec, both with ids."""
    metadata = draft.view(where)
    schema = merged_ids(edit.schema, metadata.schema, Ids(highest_column_id(metadata.document)), metadata.format)
    _check_names(metadata.document, schema)
    fields = metadata.partitioning.current.fields if edit.partition_by is None else edit.partition_by
    spec = _new_spec(metadata, fields, schema)
    _set_schema(draft, Schema(schema.fields))
    if spec.id not in {int(s["spec-id"]) for s in metadata.document["partition-specs"]}:
        draft.make(AddSpec({"spec-id": spec.id, "fields": spec_fields_json(spec)}), SetDefaultSpec())
    elif spec.id != metadata.document["default-spec-id"]:
        draft.make(SetDefaultSpec(spec.id))


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


def _set_type(draft: Draft, edit: SetType, where: str) -> None:
    """A promotion that the specification allows, of a column that is not a partition source."""
    metadata = draft.view(where)
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
    _set_schema(draft, Schema(with_type(schema.fields, edit.path, edit.type), schema.metadata))


def promotes(old: DataType, new: DataType) -> bool:
    """Whether the specification lets a primitive type become another one (spec, "Schema Evolution")."""
    match old, new:
        case (IntegerType(32, True), IntegerType(64, True)) | (FloatType(32), FloatType(64)):
            return True
        case (DecimalType(p, s), DecimalType(q, t)):
            return s == t and q >= p
    return False

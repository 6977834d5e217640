"""Edits of the schema: what a commit does, and the schema of files before it is committed (spec, "Schema
Evolution")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.commit.column_edits import (
    add_column,
    move_column,
    set_comment,
    set_default,
    set_defaults,
    set_identifiers,
    set_nullable,
    set_type,
)
from boathouse.iceberg.commit.layout_edits import replacing_spec, set_partitioning, set_sort_order, use_spec
from boathouse.iceberg.commit.schema_draft import check_names, set_schema
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.name_mapping import NAME_MAPPING, NameMapping
from boathouse.iceberg.metadata.rules import default_sort_order, highest_column_id
from boathouse.iceberg.metadata.schema_rules import IDENTIFIERS
from boathouse.iceberg.metadata.schemas import Ids, by_id, merged_ids
from boathouse.iceberg.metadata.updates import MAIN, RemoveProperties, SetProperties
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.change import words_of
from boathouse.table.edits import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RenameColumn,
    ReplaceSchema,
    SchemaEdit,
    SetComment,
    SetDefault,
    SetIdentifiers,
    SetNullable,
    SetPartitioning,
    SetSortOrder,
    SetType,
)
from boathouse.table.edits.declared import require_none
from boathouse.types import Schema
from boathouse.types.evolution import with_name, without_field

_COLUMN_METRICS: Final = "write.metadata.metrics.column."
S = TypeVar("S", bound=IcebergSnapshot)


def evolve(snapshot: S, edits: Sequence[SchemaEdit]) -> S:
    """`Snapshot.evolve`: new fields get the next ids, as the commit on the same metadata will assign them."""
    if snapshot.ref not in (None, MAIN) and any(isinstance(e, ReplaceSchema) for e in edits):
        raise UnsupportedFeatureError(
            f"the schema is the table's, and an overwrite of the branch {snapshot.ref!r} cannot replace it: the other "
            "branches would lose their columns",
            where=snapshot.token,
            advice="overwrite the branch with the table's columns, or replace the schema on main",
        )
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
            add_column(draft, edit, where)
            _update_mapping(draft, before, where)
        case SetNullable():
            set_nullable(draft, edit, where)
        case SetDefault():
            set_default(draft, edit, where)
        case SetIdentifiers():
            set_identifiers(draft, edit, where)
        case MoveColumn():
            move_column(draft, edit, where)
        case SetComment():
            set_comment(draft, edit, where)
        case SetPartitioning():
            set_partitioning(draft, edit, where)
        case SetSortOrder():
            set_sort_order(draft, edit, where)
        case RenameColumn():
            _rename(draft, edit, where)
        case DropColumn():
            _drop(draft, edit, where)
        case SetType():
            set_type(draft, edit, where)
        case ReplaceSchema():
            _replace_schema(draft, edit, where)
        case _:
            raise UnsupportedFeatureError(f"{words_of(type(edit))} is not offered for Iceberg tables", where=where)


def _move_metrics(draft: Draft, old: tuple[str, ...], new: tuple[str, ...] | None) -> None:
    """The properties about metrics of a column, and of those below it, follow it to its new name; None: they go."""
    properties = draft.document.get("properties") or {}
    before = _COLUMN_METRICS + ".".join(old)
    moved = {k: v for k, v in properties.items() if k == before or k.startswith(before + ".")}
    if new is not None and moved:
        draft.make(SetProperties({_COLUMN_METRICS + ".".join(new) + k[len(before) :]: v for k, v in moved.items()}))
    if moved:
        draft.make(RemoveProperties(tuple(moved)))


def _rename(draft: Draft, edit: RenameColumn, where: str) -> None:
    """A column keeps its id under another name: no file is touched, and files are read by id."""
    before = draft.view(where).schema
    after = Schema(with_name(before.fields, edit.path, edit.name), before.metadata)
    check_names(draft.document, after)
    set_schema(draft, after)
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
    set_schema(draft, after)
    _move_metrics(draft, edit.path, None)


def _update_mapping(draft: Draft, before: Schema, where: str) -> None:
    """The name mapping gets the names of new columns, as the reference does it."""
    metadata = draft.view(where)
    text = metadata.properties.get(NAME_MAPPING)
    if text is not None:
        mapping = NameMapping.parse(text, where).evolved(before, metadata.schema)
        draft.make(SetProperties({NAME_MAPPING: mapping.text()}))


def _replace_schema(draft: Draft, edit: ReplaceSchema, where: str) -> None:
    """An overwrite's own schema and spec, both with ids."""
    require_none(edit, "Iceberg", where, "generated")
    metadata = draft.view(where)
    schema = merged_ids(edit.schema, metadata.schema, Ids(highest_column_id(metadata.document)), metadata.format)
    check_names(metadata.document, schema)
    fields = metadata.partitioning.current.fields if edit.partition_by is None else edit.partition_by
    spec = replacing_spec(metadata, fields, schema)
    set_schema(draft, Schema(schema.fields))
    use_spec(draft, spec)
    set_defaults(draft, edit.defaults, where)

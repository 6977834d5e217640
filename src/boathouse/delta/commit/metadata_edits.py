"""What the edits of a change make of a table's protocol and metaData."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from boathouse.delta.actions import MAPPING_MODE, Metadata, Protocol
from boathouse.delta.commit.restore import restored_metadata
from boathouse.delta.features.change_data import FEED
from boathouse.delta.features.change_data import check_names as check_feed
from boathouse.delta.features.column_mapping import completed, replaced, with_properties
from boathouse.delta.features.computed import check_stored, default_set, with_defaults, with_generation
from boathouse.delta.features.domains import check_clustering
from boathouse.delta.features.drop import cleared, protected, protocol_without
from boathouse.delta.features.iceberg_compat import check_change as check_compat
from boathouse.delta.features.identity import advanced, check_type_kept, kept
from boathouse.delta.features.row_tracking import named
from boathouse.delta.features.support import (
    CONSTRAINT,
    asked_by_name,
    of_columns,
    upgraded,
    without_names,
)
from boathouse.delta.features.widening import widened
from boathouse.delta.log.commit_times import next_time, with_enablement
from boathouse.delta.names import check_characters, check_names
from boathouse.delta.schema import parse_schema, schema_json
from boathouse.delta.schema_edits import commented, dropped, moved, nullable, renamed, with_column, with_text
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.delta.write import (
    check_properties,
    check_types,
)
from boathouse.errors import (
    InvalidArgumentError,
    UnsupportedFeatureError,
)
from boathouse.table.change import Change
from boathouse.table.edits import (
    AddColumn,
    AdvanceIdentity,
    ClearFeature,
    DropColumn,
    Edit,
    MoveColumn,
    RenameColumn,
    ReplaceSchema,
    RestoreTo,
    SetClustering,
    SetComment,
    SetConstraint,
    SetDefault,
    SetFeature,
    SetName,
    SetNullable,
    SetProperties,
    SetType,
)
from boathouse.types import Field, PartitionField, Schema

Action = dict[str, Any]


def metadata_actions(change: Change, newest: DeltaSnapshot, now: int) -> list[Action]:
    """The protocol, if features are missing in it, and the metaData, if it changes."""
    metadata = edited(change.edits, newest)
    asked = [name for e in change.all(SetProperties) for name in asked_by_name(e.properties)]
    asked += ["clustering" for e in change.all(SetClustering) if e.columns]
    if metadata is not None:
        time = next_time(now, newest.timestamp_ms)
        metadata = with_enablement(metadata, newest.metadata, newest.version + 1, time)
    restored = change.edit(RestoreTo)
    unchanged = metadata is None and restored is None and not asked and dropped_feature(change) is None
    if unchanged and not newest.protocol.has_no_lists:
        return []
    target = restored.target if restored is not None else newest
    assert isinstance(target, DeltaSnapshot)
    mapped = any(MAPPING_MODE in e.properties for e in change.all(SetProperties))
    mappable = newest.metadata.mappable or target.metadata.mappable or mapped
    after = newest.metadata if metadata is None else Metadata.parse(metadata, newest.location.uri, mappable)
    if after.flag(FEED):
        check_feed(after.schema, newest.location.uri)
    asked += of_columns(after.schema) if change.edit(ReplaceSchema) is not None else []
    name = dropped_feature(change)
    if name is None:
        protocol = upgraded(newest.protocol, after, target.protocol, asked)
    else:
        protocol = protocol_without(newest, name)
    future = newest.protocol if protocol is None else Protocol.parse(protocol, newest.location.uri)
    check_compat(newest, future, after, change.edit(ReplaceSchema) is not None, restored is not None)
    found: list[Action] = [] if protocol is None else [{"protocol": protocol}]
    return found if metadata is None else [*found, {"metaData": metadata}]


def edited(edits: Sequence[Edit], newest: DeltaSnapshot) -> Mapping[str, Any] | None:
    """The head's metaData with the edits, every other field unchanged; None if that changes nothing."""
    raw: Mapping[str, Any] = json.loads(json.dumps(newest.metadata.raw))
    before = json.dumps(raw)
    for edit in edits:
        raw = _with_edit(raw, edit, newest)
    return None if json.dumps(raw) == before else raw


def _with_edit(raw: Mapping[str, Any], edit: Edit, newest: DeltaSnapshot) -> Mapping[str, Any]:
    match edit:
        case ReplaceSchema(schema, partition_by, generated, defaults):
            whole = with_defaults(with_generation(schema, generated), defaults)
            return _replaced(raw, whole, partition_by, newest)
        case AddColumn():
            return _with_column(raw, edit, newest)
        case RenameColumn():
            found = renamed(newest.metadata, raw, edit)
            check_names(parse_schema(found["schemaString"], newest.location.uri).fields, "", newest.location.uri)
            return found
        case DropColumn():
            check_clustering(newest, edit.path)
            return dropped(newest.metadata, raw, edit)
        case SetType(path):
            check_type_kept(newest.metadata, path)
            found = widened(newest.protocol, newest.metadata, raw, edit, newest.version + 1)
            check_types(parse_schema(found["schemaString"], newest.location.uri), newest)
            return found
        case AdvanceIdentity():
            return advanced(raw, edit)
        case ClearFeature(name):
            return cleared(raw, newest, name)
        case SetFeature(name, enabled):
            if enabled:
                raise UnsupportedFeatureError(f"adding the feature {name} is not offered", where=newest.location.uri)
            return protected(raw, newest, name)
        case SetConstraint():
            return _with_constraint(raw, edit, newest)
        case RestoreTo(target):
            assert isinstance(target, DeltaSnapshot)
            return restored_metadata(newest, target) or raw
        case SetProperties(properties):
            check_properties(properties, newest.location.uri)
            found = with_properties(raw, without_names(properties), newest.metadata)
            return named(found, newest.metadata, newest.location.uri)
        case MoveColumn():
            return moved(raw, edit, newest.location.uri)
        case SetNullable():
            return nullable(raw, edit, newest.location.uri)
        case SetDefault():
            return default_set(raw, edit, newest)
        case SetComment():
            return commented(raw, edit, newest.location.uri)
        case SetName(name):
            return with_text(raw, "name", name)
    return raw


def _replaced(
    raw: Mapping[str, Any], schema: Schema, partition_by: Sequence[PartitionField] | None, newest: DeltaSnapshot
) -> Mapping[str, Any]:
    check_types(schema, newest)
    found = {**raw, "schemaString": schema_json(schema)}
    if partition_by is not None:
        found["partitionColumns"] = [schema.field(f.source[0]).name for f in partition_by]
    return kept(replaced(found, raw) if newest.metadata.column_mapping != "none" else found, newest.metadata)


def _with_constraint(raw: Mapping[str, Any], edit: SetConstraint, newest: DeltaSnapshot) -> Mapping[str, Any]:
    if edit.condition is not None:
        check_stored(edit.condition)
    key = f"{CONSTRAINT}{edit.name}"
    kept = dict(raw.get("configuration") or {})
    if kept.pop(key, None) is None and edit.condition is None:
        raise InvalidArgumentError(
            f"`{edit.name}` is no CHECK constraint, so it cannot be dropped",
            where=newest.location.uri,
            advice="an invariant belongs to its column, and is changed by the engine that made it",
        )
    return {**raw, "configuration": kept if edit.condition is None else kept | {key: edit.condition}}


def _with_column(raw: Mapping[str, Any], edit: AddColumn, newest: DeltaSnapshot) -> dict[str, Any]:
    where = newest.location.uri
    found = with_column(raw, edit, where)
    if newest.metadata.column_mapping != "none":
        found = completed(found, raw)
    else:
        check_characters((Field(edit.name, edit.type),), where, "".join(f"{n}." for n in edit.parent))
    schema = Metadata.parse(found, where, newest.metadata.mappable).schema
    check_types(schema, newest)
    check_names(schema.fields, "", where)
    return found


def dropped_feature(change: Change) -> str | None:
    """The feature that the change drops."""
    return next((e.name for e in change.all(SetFeature) if not e.enabled), None)

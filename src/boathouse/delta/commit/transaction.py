"""From a Change to the bytes of the next version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson
import pyarrow as pa

from boathouse.bits import entropy
from boathouse.delta.actions import MAPPING_MODE, Metadata, Protocol
from boathouse.delta.checkpoint.writer import checkpoint_if_due, write_checkpoint
from boathouse.delta.commit.clone import table_actions
from boathouse.delta.commit.commit_info import WRITE_ID, commit_info
from boathouse.delta.commit.file_actions import adds, change_files, removes
from boathouse.delta.commit.readback import check_entry
from boathouse.delta.commit.restore import restored_metadata
from boathouse.delta.features.change_data import FEED
from boathouse.delta.features.change_data import check_names as check_feed
from boathouse.delta.features.column_mapping import completed, replaced, with_properties
from boathouse.delta.features.computed import with_generation
from boathouse.delta.features.domains import RowIds, check_clustering, preserved
from boathouse.delta.features.drop import cleared, drops_history, protected, protocol_without, traces, untracked
from boathouse.delta.features.iceberg_compat import check_added
from boathouse.delta.features.iceberg_compat import check_change as check_compat
from boathouse.delta.features.identity import advanced, check_type_kept, kept
from boathouse.delta.features.row_tracking import files_without_ids, named, turned_on
from boathouse.delta.features.support import (
    CONSTRAINT,
    asked_by_name,
    lowest_protocol,
    maps_columns,
    of_columns,
    supports,
    upgraded,
    without_names,
)
from boathouse.delta.features.vector_write import marked
from boathouse.delta.features.widening import widened
from boathouse.delta.log.commit_times import next_time, records_times, with_enablement
from boathouse.delta.log.folder import Log
from boathouse.delta.log.replay import read_entry
from boathouse.delta.log.version_checksum import after, checksum_of, first_checksum
from boathouse.delta.log.version_checksum import write as write_checksum
from boathouse.delta.names import check_characters, check_names
from boathouse.delta.schema import parse_schema, schema_json, without_mapping
from boathouse.delta.schema_edits import commented, dropped, renamed, with_column, with_text
from boathouse.delta.snapshot import DeltaSnapshot, S, load
from boathouse.delta.write import (
    check_properties,
    check_replaced,
    check_storage,
    check_types,
    new_metadata,
    profiled,
    writable,
)
from boathouse.delta.write import create as new_table
from boathouse.errors import (
    BoathouseError,
    ConstraintViolationError,
    InvalidArgumentError,
    NotFoundError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from boathouse.table.attempt import Attempt, Winner
from boathouse.table.change import Change, words_of
from boathouse.table.commit import discard
from boathouse.table.context import TableContext
from boathouse.table.edits import (
    AddChangeFiles,
    AddColumn,
    AddFiles,
    AdvanceIdentity,
    ClearFeature,
    CloneTable,
    CreateTable,
    DropColumn,
    Edit,
    GiveRowIds,
    RemoveAll,
    RemoveFiles,
    RenameColumn,
    ReplaceSchema,
    RestoreTo,
    SchemaEdit,
    SetComment,
    SetConstraint,
    SetDeletes,
    SetFeature,
    SetName,
    SetProperties,
    SetTransaction,
    SetType,
)
from boathouse.table.location import At
from boathouse.table.version import Follows, TableVersion
from boathouse.types import Field, PartitionField, Schema

Action = dict[str, Any]
_EDITS: Final = (
    CreateTable,
    CloneTable,
    AddFiles,
    AddChangeFiles,
    RemoveFiles,
    RemoveAll,
    SetDeletes,
    ReplaceSchema,
    AddColumn,
    RenameColumn,
    DropColumn,
    SetType,
    SetComment,
    SetName,
    SetProperties,
    GiveRowIds,
    SetConstraint,
    AdvanceIdentity,
    ClearFeature,
    SetFeature,
    RestoreTo,
    SetTransaction,
)


def winners(newest: DeltaSnapshot, since: TableVersion) -> Sequence[Winner] | None:
    """The commits after `since`, oldest first; None if some are missing.

    Entries below the newest checkpoint are read only where the one of `since` is still there: beside a log that was
    cleaned, they may be such as no reader replays.
    """
    known = {e.version: e for e in newest.entries if e.first is None}
    log = newest.log
    assert isinstance(since, DeltaSnapshot)
    below = newest.checkpoint is not None and newest.checkpoint.version > since.version
    if below and (since.commit is None or log.listing().commits.get(since.version) != since.commit):
        return None
    found = []
    for v in range(since.version + 1, newest.version + 1):
        try:
            entry = known.get(v) or read_entry(log, v)
        except NotFoundError:
            return None
        found.append(Winner(Log.commit_id(v), entry.info.get(WRITE_ID), entry))
    return found


def prepare(change: Change, context: TableContext, newest: DeltaSnapshot | None) -> Attempt:
    """The next entry, with a new uuid and time. Raises the errors of the table's rules."""
    change.require(*_EDITS)
    if newest is None:
        check_storage(context)
    else:
        writable(newest, mixed_writers=False)
    now = entropy.current().now_ms()
    actions: list[Action] = []
    if newest is None:
        actions += _created(change, now)
    else:
        actions += _metadata_actions(change, newest, now)
    for txn in change.all(SetTransaction):
        actions.append({"txn": {"appId": txn.app, "version": txn.version, "lastUpdated": now}})
    removed = [{"remove": r} for r in removes(change, newest, now)]
    if removed and change.data_change and newest is not None and _append_only(newest):
        raise ConstraintViolationError(
            "the table is append-only (delta.appendOnly=true): nothing may be changed or deleted",
            where=change.location.uri,
            advice="append, or set delta.appendOnly to false",
        )
    number = 0 if newest is None else newest.version + 1
    if newest is not None and (dropped_name := _dropped(change)) is not None:
        actions += traces(newest, dropped_name)
    stated = _stated(actions, newest, change.location.uri)
    ids = RowIds(newest, *stated, number)
    files = ids.given(adds(change, newest))
    again = [] if newest is None else ids.given(_again(change, newest, turned_on(newest, *stated)))
    if newest is not None:
        check_added(*stated, [*files, *again], change.location.uri)
    # Nothing is refused any more: a file of vectors would remain.
    marks, side = marked(tuple(change.all(SetDeletes)), change.location.uri, context.stores, change.data_change)
    added = [{"add": a} for a in (*ids.given(marks), *files)]
    actions += ids.domain()
    copied = change.added is not None and bool(removed) and change.edit(RemoveAll) is None
    info = commit_info(change, newest, now, added, removed) | preserved(newest, copied)
    info |= _recorded_time(actions, newest, now)
    recorded = [{"cdc": c} for e in change.all(AddChangeFiles) for c in change_files(e)]
    counted = ({"commitInfo": info}, *actions, *removed, *added, *recorded)
    updates = (*counted, *({"add": a} for a in again))
    body = b"".join(orjson.dumps(a) + b"\n" for a in updates)
    attempt = Attempt(
        Log(context.location.uri, context.stores).commit_uri(number),
        body,
        Log.commit_id(number),
        side,
        replaces=None if newest is None else newest.token,
        updates=updates,
        requirements=Follows.of(newest),
        state=after(first_checksum() if newest is None else checksum_of(newest), counted),
    )
    try:
        check_entry(attempt, context.location.uri, newest)
    except BoathouseError:
        discard(context.stores, side)
        raise
    return attempt


def _dropped(change: Change) -> str | None:
    """The feature that the change drops."""
    return next((e.name for e in change.all(SetFeature) if not e.enabled), None)


def _again(change: Change, newest: DeltaSnapshot, tracks: bool) -> Iterator[Action]:
    """Files that are added again for what is said of them: there are no more than before. `tracks`: from now on every
    row has an id."""
    if _dropped(change) == "rowTracking":
        yield from untracked(newest)
    elif tracks and change.edit(RemoveAll) is None and change.edit(RestoreTo) is None:
        yield from files_without_ids(newest)
    for edit in change.all(GiveRowIds):
        yield from files_without_ids(newest, edit.files)


def _append_only(newest: DeltaSnapshot) -> bool:
    return newest.metadata.flag("delta.appendOnly") and supports(newest.protocol, "appendOnly")


def _created(change: Change, now: int) -> list[Action]:
    if (cloned := change.edit(CloneTable)) is not None:
        return table_actions(cloned, now)
    create = change.edit(CreateTable)
    if not isinstance(create, CreateTable):
        raise TableNotFoundError("the table is gone", where=change.location.uri)
    create = profiled(create, change.location.uri)
    schema, spec = new_table(change.location.uri, create)
    id = str(entropy.current().uuid4())
    plain, names = without_mapping(schema), [f.name for f in spec]
    metadata = new_metadata(id, plain, names, create.properties, change.location.uri, create.adopts)
    about = {"createdTime": now} | ({} if create.comment is None else {"description": create.comment})
    return [{"protocol": lowest_protocol(schema, create.properties)}, {"metaData": metadata | about}]


def _stated(actions: Sequence[Action], newest: DeltaSnapshot | None, where: str) -> tuple[Protocol, Metadata]:
    """Protocol and metadata after these actions."""
    protocol = next((a["protocol"] for a in actions if "protocol" in a), None)
    raw = next((a["metaData"] for a in actions if "metaData" in a), None)
    if newest is None:
        assert protocol is not None and raw is not None  # a first commit has both
        found = Protocol.parse(protocol, where)
        return found, Metadata.parse(raw, where, maps_columns(found))
    found = newest.protocol if protocol is None else Protocol.parse(protocol, where)
    return found, newest.metadata if raw is None else Metadata.parse(raw, where, maps_columns(found))


def _recorded_time(actions: Sequence[Action], newest: DeltaSnapshot | None, now: int) -> Action:
    """What commitInfo, the first action, has in tables whose commits record their time."""
    stated = next((a["metaData"] for a in actions if "metaData" in a), newest.metadata.raw if newest else {})
    if not records_times(stated):
        return {}
    return {"inCommitTimestamp": next_time(now, newest.timestamp_ms if newest else None)}


def _metadata_actions(change: Change, newest: DeltaSnapshot, now: int) -> list[Action]:
    """The protocol, if features are missing in it, and the metaData, if it changes."""
    metadata = _edited(change.edits, newest)
    asked = [name for e in change.all(SetProperties) for name in asked_by_name(e.properties)]
    if metadata is not None:
        time = next_time(now, newest.timestamp_ms)
        metadata = with_enablement(metadata, newest.metadata, newest.version + 1, time)
    restored = change.edit(RestoreTo)
    unchanged = metadata is None and restored is None and not asked and _dropped(change) is None
    if unchanged and not newest.protocol.has_no_lists:
        return []
    target = restored.target if restored is not None else newest
    assert isinstance(target, DeltaSnapshot)
    mapped = any(MAPPING_MODE in e.properties for e in change.all(SetProperties))
    mappable = newest.metadata.mappable or target.metadata.mappable or mapped
    stated = newest.metadata if metadata is None else Metadata.parse(metadata, newest.location.uri, mappable)
    if stated.flag(FEED):
        check_feed(stated.schema, newest.location.uri)
    asked += of_columns(stated.schema) if change.edit(ReplaceSchema) is not None else []
    name = _dropped(change)
    if name is None:
        protocol = upgraded(newest.protocol, stated, target.protocol, asked)
    else:
        protocol = protocol_without(newest, name)
    future = newest.protocol if protocol is None else Protocol.parse(protocol, newest.location.uri)
    check_compat(newest, future, stated, change.edit(ReplaceSchema) is not None, restored is not None)
    found: list[Action] = [] if protocol is None else [{"protocol": protocol}]
    return found if metadata is None else [*found, {"metaData": metadata}]


def _edited(edits: Sequence[Edit], newest: DeltaSnapshot) -> Mapping[str, Any] | None:
    """The head's metaData with the edits, every other field unchanged; None if that changes nothing."""
    raw: Mapping[str, Any] = json.loads(json.dumps(newest.metadata.raw))
    before = json.dumps(raw)
    for edit in edits:
        raw = _with_edit(raw, edit, newest)
    return None if json.dumps(raw) == before else raw


def _with_edit(raw: Mapping[str, Any], edit: Edit, newest: DeltaSnapshot) -> Mapping[str, Any]:
    match edit:
        case ReplaceSchema(schema, partition_by, generated):
            return _replaced(raw, with_generation(schema, generated), partition_by, newest)
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
    key = f"{CONSTRAINT}{edit.name}"
    kept = dict(raw.get("configuration") or {})
    if kept.pop(key, None) is None and edit.condition is None:
        raise InvalidArgumentError(
            f"`{edit.name}` is no CHECK constraint, so it cannot be dropped",
            where=newest.location.uri,
            advice="an invariant belongs to its column, and is changed by the engine that made it",
        )
    return {**raw, "configuration": kept if edit.condition is None else kept | {key: edit.condition}}


def evolve(snapshot: S, edits: Sequence[SchemaEdit]) -> S:
    """`Snapshot.evolve`."""
    for edit in edits:
        if isinstance(edit, ReplaceSchema):
            check_replaced(snapshot, edit)
        elif not isinstance(edit, _EDITS):
            raise UnsupportedFeatureError(
                f"{words_of(type(edit))} is not offered for Delta tables", where=snapshot.location.uri
            )
    raw = _edited(tuple(edits), snapshot)
    if raw is None:
        return snapshot
    return replace(snapshot, metadata=Metadata.parse(raw, snapshot.location.uri, snapshot.metadata.mappable))


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


def published(attempt: Attempt, context: TableContext, planned: DeltaSnapshot | None) -> None:
    """Writes the version's checksum, and a checkpoint if one is due; a failure only costs the next reader time."""
    try:
        if attempt.version is None:
            return
        if attempt.state is not None:
            write_checksum(Log(context.location.uri, context.stores), attempt.version, attempt.state)
        if drops_history(attempt.updates, attempt.version):
            write_checkpoint(load(context, At(version=attempt.version)))
        else:
            checkpoint_if_due(context, attempt.version, planned)
    except (BoathouseError, OSError, pa.ArrowException):
        return

"""From a Change to the bytes of the next version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson
import pyarrow as pa

from boathouse.bits import system
from boathouse.delta.actions import Metadata, Protocol
from boathouse.delta.checkpoint.writer import checkpoint_if_due, write_checkpoint
from boathouse.delta.commit.clone import replacing_actions, table_actions
from boathouse.delta.commit.commit_info import WRITE_ID, commit_info
from boathouse.delta.commit.file_actions import adds, change_files, removes
from boathouse.delta.commit.metadata_edits import dropped_feature, edited, metadata_actions
from boathouse.delta.commit.readback import check_entry
from boathouse.delta.features.domains import RowIds, check_columns, clustering_action, preserved
from boathouse.delta.features.drop import drops_history, traces, untracked
from boathouse.delta.features.iceberg_compat import check_added
from boathouse.delta.features.row_tracking import files_without_ids, turned_on
from boathouse.delta.features.support import (
    maps_columns,
    supports,
)
from boathouse.delta.features.vector_write import marked
from boathouse.delta.log.commit_times import next_time, records_times
from boathouse.delta.log.folder import Log
from boathouse.delta.log.replay import read_entry
from boathouse.delta.log.version_checksum import after, checksum_of, first_checksum
from boathouse.delta.log.version_checksum import write as write_checksum
from boathouse.delta.schema import without_mapping
from boathouse.delta.snapshot import DeltaSnapshot, S, load
from boathouse.delta.write import (
    check_replaced,
    check_storage,
    check_writable,
    first_protocol,
    new_metadata,
    profiled,
)
from boathouse.delta.write import create as new_table
from boathouse.errors import (
    BoathouseError,
    ConstraintViolationError,
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
    GiveRowIds,
    MoveColumn,
    RemoveAll,
    RemoveFiles,
    RenameColumn,
    ReplaceSchema,
    RestoreTo,
    SchemaEdit,
    SetClustering,
    SetComment,
    SetConstraint,
    SetDefault,
    SetDeletes,
    SetFeature,
    SetName,
    SetNullable,
    SetProperties,
    SetTransaction,
    SetType,
)
from boathouse.table.location import At
from boathouse.table.version import Follows, TableVersion

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
    MoveColumn,
    SetType,
    SetNullable,
    SetDefault,
    SetComment,
    SetName,
    SetProperties,
    SetClustering,
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
        check_writable(newest, mixed_writers=False)
    now = system.current().now_ms()
    actions = _created(change, now) if newest is None else _edited(change, newest, now)
    for edit in change.all(SetClustering):
        actions.append(_clustering(edit, actions, newest, change.location.uri))
    for txn in change.all(SetTransaction):
        actions.append({"txn": {"appId": txn.app, "version": txn.version, "lastUpdated": now}})
    removed = [{"remove": r} for r in removes(change, newest, now)]
    if removed and change.data_change:
        _check_append_only(change, newest)
    number = 0 if newest is None else newest.version + 1
    if newest is not None and (dropped_name := dropped_feature(change)) is not None:
        actions += traces(newest, dropped_name)
    future = _protocol_and_metadata(actions, newest, change.location.uri)
    ids = RowIds(newest, *future, number)
    files = ids.given(adds(change, newest))
    again = [] if newest is None else ids.given(_again(change, newest, turned_on(newest, *future)))
    if newest is not None:
        check_added(*future, [*files, *again], change.location.uri)
    # Nothing is refused any more: a file of vectors would remain.
    marks, side = marked(tuple(change.all(SetDeletes)), change.location.uri, context.stores, change.data_change)
    added = [{"add": a} for a in (*ids.given(marks), *files)]
    actions += ids.domain()
    copied = change.added is not None and bool(removed) and change.edit(RemoveAll) is None
    info = commit_info(change, newest, now, added, removed) | preserved(newest, copied)
    info |= _recorded_time(actions, newest, now)
    recorded = [{"cdc": c} for e in change.all(AddChangeFiles) for c in change_files(e)]
    counted = ({"commitInfo": info}, *actions, *removed, *added, *recorded)
    return _attempt(context, newest, counted, [{"add": a} for a in again], side)


def _attempt(
    context: TableContext,
    newest: DeltaSnapshot | None,
    counted: Sequence[Action],
    again: Sequence[Action],
    side: tuple[str, ...],
) -> Attempt:
    """The entry of these actions, of which `again` are of files that the table counts already. Raises what
    `check_entry` raises, without leaving the files of `side`."""
    number = 0 if newest is None else newest.version + 1
    updates = (*counted, *again)
    attempt = Attempt(
        Log(context.location.uri, context.stores).commit_uri(number),
        b"".join(orjson.dumps(a) + b"\n" for a in updates),
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


def _edited(change: Change, newest: DeltaSnapshot, now: int) -> list[Action]:
    cloned = change.edit(CloneTable)
    return metadata_actions(change, newest, now) if cloned is None else replacing_actions(cloned, newest, now)


def _clustering(edit: SetClustering, actions: Sequence[Action], newest: DeltaSnapshot | None, where: str) -> Action:
    """The action for the table as these actions leave it."""
    metadata = _protocol_and_metadata(actions, newest, where)[1]
    check_columns(edit.columns, metadata.schema, bool(metadata.partition_columns), where)
    return clustering_action(edit.columns, metadata.schema)


def _again(change: Change, newest: DeltaSnapshot, tracks: bool) -> Iterator[Action]:
    """Files that are added again for what is said of them: there are no more than before. `tracks`: from now on every
    row has an id."""
    if dropped_feature(change) == "rowTracking":
        yield from untracked(newest)
    elif tracks and change.edit(RemoveAll) is None and change.edit(RestoreTo) is None:
        yield from files_without_ids(newest)
    for edit in change.all(GiveRowIds):
        yield from files_without_ids(newest, edit.files)


def _check_append_only(change: Change, newest: DeltaSnapshot | None) -> None:
    if newest is None or not newest.metadata.flag("delta.appendOnly") or not supports(newest.protocol, "appendOnly"):
        return
    raise ConstraintViolationError(
        "the table is append-only (delta.appendOnly=true): nothing may be changed or deleted",
        where=change.location.uri,
        advice="append, or set delta.appendOnly to false",
    )


def _created(change: Change, now: int) -> list[Action]:
    if (cloned := change.edit(CloneTable)) is not None:
        return table_actions(cloned, now, change.location.uri)
    create = change.edit(CreateTable)
    if not isinstance(create, CreateTable):
        raise TableNotFoundError("the table is gone", where=change.location.uri)
    create = profiled(create, change.location.uri)
    schema, spec = new_table(change.location.uri, create)
    id = str(system.current().uuid4())
    plain, names = without_mapping(schema), [f.name for f in spec]
    metadata = new_metadata(id, plain, names, create.properties, change.location.uri, create.adopts)
    about = {"createdTime": now} | ({} if create.comment is None else {"description": create.comment})
    found = [{"protocol": first_protocol(schema, create)}, {"metaData": metadata | about}]
    return [*found, clustering_action(create.cluster_by, schema)] if create.cluster_by else found


def _protocol_and_metadata(
    actions: Sequence[Action], newest: DeltaSnapshot | None, where: str
) -> tuple[Protocol, Metadata]:
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
    raw = next((a["metaData"] for a in actions if "metaData" in a), newest.metadata.raw if newest else {})
    if not records_times(raw):
        return {}
    return {"inCommitTimestamp": next_time(now, newest.timestamp_ms if newest else None)}


def evolve(snapshot: S, edits: Sequence[SchemaEdit]) -> S:
    """`Snapshot.evolve`."""
    for edit in edits:
        if isinstance(edit, ReplaceSchema):
            check_replaced(snapshot, edit)
        elif not isinstance(edit, _EDITS):
            raise UnsupportedFeatureError(
                f"{words_of(type(edit))} is not offered for Delta tables", where=snapshot.location.uri
            )
    raw = edited(tuple(edits), snapshot)
    if raw is None:
        return snapshot
    return replace(snapshot, metadata=Metadata.parse(raw, snapshot.location.uri, snapshot.metadata.mappable))


def after_commit(attempt: Attempt, context: TableContext, planned: DeltaSnapshot | None) -> None:
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

"""From a Change to the bytes of the next version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import orjson
import pyarrow as pa

from boathouse.bits import entropy
from boathouse.delta.actions import Metadata, text_of
from boathouse.delta.checkpoint_write import checkpoint_if_due
from boathouse.delta.features import lowest_protocol
from boathouse.delta.log import Log
from boathouse.delta.schema import field_json, schema_json
from boathouse.delta.snapshot import DeltaSnapshot, S, read_entry
from boathouse.delta.write import (
    check_names,
    check_properties,
    check_replaced,
    check_storage,
    check_types,
    new_metadata,
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
from boathouse.table.attempt import Attempt, Follows, Winner
from boathouse.table.change import (
    AddColumn,
    AddFiles,
    Change,
    CreateTable,
    Edit,
    RemoveAll,
    RemoveFiles,
    ReplaceSchema,
    SchemaEdit,
    SetDeletes,
    SetProperties,
    SetTransaction,
    SetType,
)
from boathouse.table.context import TableContext
from boathouse.table.version import TableVersion
from boathouse.types import Field

Action = dict[str, Any]
WRITE_ID: Final = "writeId"
"""The key of commitInfo with the id of the logical write, the same in all its attempts."""
METADATA: Final = "metadata"
_EDITS: Final = (
    CreateTable,
    AddFiles,
    RemoveFiles,
    RemoveAll,
    SetDeletes,
    ReplaceSchema,
    AddColumn,
    SetType,
    SetProperties,
    SetTransaction,
)
_KEPT_IN_REMOVE: Final = ("tags", "baseRowId", "defaultRowCommitVersion")


def engine_info() -> str:
    """Our engine name in commitInfo."""
    try:
        return f"boathouse/{version('boathouse')}"
    except PackageNotFoundError:
        return "boathouse/0"


def winners(newest: DeltaSnapshot, since: TableVersion) -> Sequence[Winner] | None:
    """The commits after `since`, oldest first; None if some are missing."""
    known = {e.version: e for e in newest.entries}
    log = newest.log
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
    elif (metadata := _edited_metadata(change, newest)) is not None:
        actions.append({"metaData": metadata})
    for txn in change.all(SetTransaction):
        actions.append({"txn": {"appId": txn.app, "version": txn.version, "lastUpdated": now}})
    removed = [{"remove": r} for r in _removes(change, newest, now)]
    added = [{"add": a} for a in _adds(change)]
    if removed and change.data_change and newest is not None and newest.metadata.flag("delta.appendOnly"):
        raise ConstraintViolationError(
            "the table is append-only (delta.appendOnly=true): nothing may be changed or deleted",
            where=change.location.uri,
            advice="append, or set delta.appendOnly to false",
        )
    info = {"commitInfo": _commit_info(change, newest, now, added, removed)}
    updates = (info, *actions, *removed, *added)
    body = b"".join(orjson.dumps(a) + b"\n" for a in updates)
    number = 0 if newest is None else newest.version + 1
    return Attempt(
        Log(context.location.uri, context.stores).commit_uri(number),
        body,
        Log.commit_id(number),
        replaces=None if newest is None else newest.token,
        updates=updates,
        requirements=Follows.of(newest),
    )


def _created(change: Change, now: int) -> list[Action]:
    create = change.edit(CreateTable)
    if not isinstance(create, CreateTable):
        raise TableNotFoundError("the table is gone", where=change.location.uri)
    schema, spec = new_table(change.location.uri, create)
    id = str(entropy.current().uuid4())
    metadata = new_metadata(id, schema, [f.name for f in spec], create.properties)
    return [{"protocol": lowest_protocol(schema)}, {"metaData": {**metadata, "createdTime": now}}]


def _edited_metadata(change: Change, newest: DeltaSnapshot) -> Mapping[str, Any] | None:
    return _edited(change.edits, newest)


def _edited(edits: Sequence[Edit], newest: DeltaSnapshot) -> Mapping[str, Any] | None:
    """The head's metaData with the edits, every other field unchanged; None if that changes nothing."""
    raw = json.loads(json.dumps(newest.metadata.raw))
    before = json.dumps(raw)
    for edit in edits:
        match edit:
            case ReplaceSchema(schema, partition_by):
                check_types(schema, newest)
                raw["schemaString"] = schema_json(schema)
                if partition_by is not None:
                    raw["partitionColumns"] = [schema.field(f.source[0]).name for f in partition_by]
            case AddColumn():
                raw["schemaString"] = _with_column(raw["schemaString"], edit, newest)
            case SetType(path):
                raise UnsupportedFeatureError(
                    f"column `{'.'.join(path)}` cannot become {edit.type}: Delta's typeWidening is not offered",
                    where=newest.location.uri,
                    advice="cast the data to the table's type",
                )
            case SetProperties(properties):
                check_properties(properties, newest.location.uri)
                kept = {**(raw.get("configuration") or {}), **{k: text_of(v) for k, v in properties.items()}}
                raw["configuration"] = {k: v for k, v in kept.items() if properties.get(k, v) is not None}
    return None if json.dumps(raw) == before else raw


def evolve(snapshot: S, edits: Sequence[SchemaEdit]) -> S:
    """`Snapshot.evolve`."""
    for edit in edits:
        if isinstance(edit, ReplaceSchema):
            check_replaced(snapshot, edit)
        elif not isinstance(edit, _EDITS):
            raise UnsupportedFeatureError(
                f"{type(edit).__name__} is not offered for Delta tables", where=snapshot.location.uri
            )
    raw = _edited(tuple(edits), snapshot)
    return replace(snapshot, metadata=Metadata.parse(raw, snapshot.location.uri)) if raw is not None else snapshot


def _with_column(schema_string: str, edit: AddColumn, newest: DeltaSnapshot) -> str:
    """The schema's own JSON with one more field."""
    document = json.loads(schema_string)
    struct = document
    for name in edit.parent:
        struct = next((f["type"] for f in struct["fields"] if f["name"].lower() == name.lower()), None)
        if not isinstance(struct, dict) or struct.get("type") != "struct":
            raise InvalidArgumentError(f"`{'.'.join(edit.parent)}` is not a struct column", where=newest.location.uri)
    path = ".".join((*edit.parent, edit.name))
    if any(f["name"].lower() == edit.name.lower() for f in struct["fields"]):
        raise InvalidArgumentError(f"the column `{path}` already exists", where=newest.location.uri)
    if not edit.nullable:
        raise InvalidArgumentError(f"a new column is null in old rows, so `{path}` cannot be NOT NULL")
    struct["fields"].append(field_json(Field(edit.name, edit.type), path))
    text = json.dumps(document, ensure_ascii=False)
    schema = Metadata.parse({**newest.metadata.raw, "schemaString": text}, newest.location.uri).schema
    check_types(schema, newest)
    check_names(schema.fields, "", newest.location.uri)
    return text


def _removes(change: Change, newest: DeltaSnapshot | None, now: int) -> Iterator[Action]:
    if change.edit(SetDeletes) is not None:
        raise UnsupportedFeatureError("writing Delta deletion vectors is not offered", where=change.location.uri)
    if (units := change.removed) is not None:
        yield from _remove_actions(units, now, change.data_change)
    if change.edit(RemoveAll) is not None and newest is not None:
        for batch in newest.files():
            yield from _remove_actions(pa.Table.from_batches([batch]), now, change.data_change)


def _remove_actions(units: pa.Table, now: int, data_change: bool) -> Iterator[Action]:
    for row in units.select(["size", "native"]).to_pylist():
        native = row["native"]
        action: Action = {
            "path": native["path"],
            "deletionTimestamp": now,
            "dataChange": data_change,
            "extendedFileMetadata": True,
            "partitionValues": dict(native["partitionValues"] or ()),
            "size": row["size"],
        }
        vector = native["deletionVector"]
        if vector is not None and vector["storageType"] is not None:
            action["deletionVector"] = {k: v for k, v in vector.items() if v is not None}
        for key in _KEPT_IN_REMOVE:
            if native[key] is not None:
                action[key] = dict(native[key]) if key == "tags" else native[key]
        yield action


def _adds(change: Change) -> Iterator[Action]:
    added = change.added
    if added is None:
        return
    for row in added.select(["size", "native"]).to_pylist():
        native = row["native"]
        yield {
            "path": native["path"],
            "partitionValues": dict(native["partitionValues"] or ()),
            "size": row["size"],
            "modificationTime": native["modificationTime"],
            "dataChange": change.data_change,
            "stats": native["stats"],
        }


def _commit_info(
    change: Change, newest: DeltaSnapshot | None, now: int, added: list[Action], removed: list[Action]
) -> Action:
    operation, parameters = _operation(change, newest)
    snapshot_isolation = change.isolation == "snapshot" or not change.data_change
    info: Action = {
        "timestamp": now,
        "operation": operation,
        "operationParameters": parameters,
        "isolationLevel": "SnapshotIsolation" if snapshot_isolation else "Serializable",
        "isBlindAppend": bool(added) and not removed and change.reads.blind,
        "operationMetrics": _metrics(change, operation, added, removed),
        "engineInfo": engine_info(),
        "txnId": str(entropy.current().uuid4()),
        WRITE_ID: change.write_id,
    }
    if newest is not None:
        info["readVersion"] = change.planned.version if change.planned else newest.version
    if change.message is not None:
        info["userMetadata"] = change.message
    if change.metadata:
        info[METADATA] = dict(change.metadata)
    return info


def _operation(change: Change, newest: DeltaSnapshot | None) -> tuple[str, Action]:
    """The operation and its parameters as the reference implementation names them; ours are added."""
    parameters: Action = dict(change.parameters)
    partition = json.dumps(list(newest.metadata.partition_columns) if newest else _partition_of(change))
    match change.operation:
        case "create":
            create = change.edit(CreateTable)
            assert create is not None
            properties = json.dumps(dict(create.properties))
            parameters |= {
                "partitionBy": partition,
                "description": None,
                "isManaged": "false",
                "properties": properties,
            }
            return ("CREATE TABLE AS SELECT" if change.edit(AddFiles) else "CREATE TABLE"), parameters
        case "append":
            return "WRITE", {"mode": "Append", "partitionBy": partition, **parameters}
        case "overwrite":
            return "WRITE", {"mode": "Overwrite", "partitionBy": partition, **parameters}
        case "delete":
            if "predicate" in parameters:
                parameters["predicate"] = json.dumps([parameters["predicate"]])
            return "DELETE", parameters
        case "set-properties":
            set_to = {k: v for e in change.all(SetProperties) for k, v in e.properties.items()}
            properties = json.dumps(set_to)
            return "SET TBLPROPERTIES", {"properties": properties, **parameters}
        case "add-columns":
            columns = [{"column": field_json(Field(e.name, e.type), e.name)} for e in change.all(AddColumn)]
            return "ADD COLUMNS", {**parameters, "columns": json.dumps(columns)}
        case "replace":
            predicate = [parameters.pop("predicate")] if "predicate" in parameters else []
            return "OPTIMIZE", {"predicate": json.dumps(predicate), "zOrderBy": "[]", "auto": "false", **parameters}
    return change.operation.upper().replace("-", " "), parameters


def _partition_of(change: Change) -> list[str]:
    create = change.edit(CreateTable)
    return [f.source[0] for f in create.partition_by] if create else []


def _metrics(change: Change, operation: str, added: list[Action], removed: list[Action]) -> Action:
    new = change.added
    rows = sum(new.column("rows").to_pylist()) if new is not None else 0
    size = sum(a["add"]["size"] for a in added)
    metrics: dict[str, int] = {}
    if operation == "DELETE":
        metrics = {"numAddedFiles": len(added), "numRemovedFiles": len(removed), "numCopiedRows": rows}
        if "rows_deleted" in change.metrics:
            metrics["numDeletedRows"] = change.metrics["rows_deleted"]
    elif operation == "OPTIMIZE":
        metrics = _optimize_metrics([a["add"]["size"] for a in added], [r["remove"] for r in removed])
    elif added or removed:
        metrics = {"numFiles": len(added), "numOutputRows": rows, "numOutputBytes": size}
        if removed:
            metrics["numRemovedFiles"] = len(removed)
    return {k: str(v) for k, v in {**metrics, **change.metrics}.items()}


def _optimize_metrics(added: list[int], removed: list[Action]) -> dict[str, int]:
    metrics = {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(r["size"] or 0 for r in removed),
        "numAddedFiles": len(added),
        "numAddedBytes": sum(added),
        "numDeletionVectorsRemoved": sum("deletionVector" in r for r in removed),
    }
    if added:
        sizes = sorted(added)
        parts = {"minFileSize": 0, "p25FileSize": 1, "p50FileSize": 2, "p75FileSize": 3, "maxFileSize": 4}
        metrics |= {name: sizes[(len(sizes) - 1) * quarter // 4] for name, quarter in parts.items()}
    return metrics


def published(attempt: Attempt, context: TableContext, planned: DeltaSnapshot | None) -> None:
    """Writes a checkpoint if one is due; a failure only costs the next reader time."""
    try:
        if attempt.version is not None:
            checkpoint_if_due(context, attempt.version, planned)
    except (BoathouseError, OSError, pa.ArrowException):
        return

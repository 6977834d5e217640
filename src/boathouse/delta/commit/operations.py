"""The operations of commitInfo and their parameters, as the reference implementation names them; ours are added."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from boathouse.delta.schema import field_json, type_json
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.expr.identifiers import quote
from boathouse.table.change import Change, words_of
from boathouse.table.edits import (
    AddColumn,
    AddFiles,
    CreateTable,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaEdit,
    SetComment,
    SetNullable,
    SetProperties,
    SetType,
)
from boathouse.types import Field

Parameters = dict[str, Any]
Named = tuple[str, Parameters]
BACKFILL: Final = "ROW TRACKING BACKFILL"
"""Files get row ids: other writers know such commits by this name."""


def named_operation(change: Change, newest: DeltaSnapshot | None) -> Named:
    """The operation of this commit on `newest`, and its parameters."""
    parameters = dict(change.parameters)
    named = _NAMED.get(change.operation)
    if named is not None:
        return named(change, parameters)
    partitioned = _PARTITIONED.get(change.operation)
    if partitioned is not None:
        columns = newest.metadata.partition_columns if newest else _partition_of(change)
        return partitioned(change, parameters, json.dumps(list(columns)))
    return change.operation.upper().replace("-", " "), parameters


def _partition_of(change: Change) -> list[str]:
    create = change.edit(CreateTable)
    return [f.source[0] for f in create.partition_by] if create else []


def _created(change: Change, parameters: Parameters, partition: str) -> Named:
    create = change.edit(CreateTable)
    assert create is not None
    described = {
        "partitionBy": partition,
        "description": create.comment,
        "isManaged": "false",
        "properties": json.dumps(dict(create.properties)),
    }
    if create.cluster_by:
        described["clusterBy"] = json.dumps([".".join(path) for path in create.cluster_by])
    return ("CREATE TABLE AS SELECT" if change.edit(AddFiles) else "CREATE TABLE"), {**parameters, **described}


def _converted(change: Change, parameters: Parameters, partition: str) -> Named:
    named = {"numFiles": int(parameters.pop("files")), "partitionedBy": partition}
    return "CONVERT", {**named, "collectStats": True, "sourceFormat": "parquet", **parameters}


def _appended(change: Change, parameters: Parameters, partition: str) -> Named:
    return "WRITE", {"mode": "Append", "partitionBy": partition, **parameters}


def _overwritten(change: Change, parameters: Parameters, partition: str) -> Named:
    dynamic = {} if parameters.pop("partitions", None) is None else {"isDynamicPartitionOverwrite": "true"}
    return "WRITE", {"mode": "Overwrite", "partitionBy": partition, **dynamic, **parameters}


def _cloned(change: Change, parameters: Parameters) -> Named:
    source, at = parameters.pop("source"), int(parameters.pop("version"))
    return "CLONE", {"source": f"delta.`{source}`", "sourceVersion": at, **parameters}


def _deleted(change: Change, parameters: Parameters) -> Named:
    if "predicate" in parameters:
        parameters["predicate"] = json.dumps([parameters["predicate"]])
    return "DELETE", parameters


def _properties_set(change: Change, parameters: Parameters) -> Named:
    properties = {k: v for e in change.all(SetProperties) for k, v in e.properties.items()}
    return "SET TBLPROPERTIES", {"properties": json.dumps(properties), **parameters}


def _backfilled(change: Change, parameters: Parameters) -> Named:
    return BACKFILL, parameters


def _columns_added(change: Change, parameters: Parameters) -> Named:
    columns = [{"column": field_json(Field(e.name, e.type), e.name)} for e in change.all(AddColumn)]
    return "ADD COLUMNS", {**parameters, "columns": json.dumps(columns)}


def _columns_altered(change: Change, parameters: Parameters) -> Named:
    if len(change.schema_edits) > 1:
        edits = [{"edit": words_of(type(e)), "column": _spelled(_path(e))} for e in change.schema_edits]
        return "CHANGE COLUMNS", {**parameters, "columns": json.dumps(edits)}
    renamed = change.edit(RenameColumn)
    if renamed is not None:
        before, after = _spelled(renamed.path), _spelled((*renamed.path[:-1], renamed.name))
        return "RENAME COLUMN", {**parameters, "oldColumnPath": before, "newColumnPath": after}
    retyped = change.edit(SetType)
    if retyped is not None:
        column = {"column": _spelled(retyped.path), "type": type_json(retyped.type, _spelled(retyped.path))}
        return "CHANGE COLUMN", {**parameters, "column": json.dumps(column)}
    changed = change.edit(MoveColumn) or change.edit(SetNullable)
    if changed is not None:
        return "CHANGE COLUMN", {**parameters, "column": json.dumps({"column": _spelled(changed.path)})}
    return "DROP COLUMNS", {**parameters, "columns": json.dumps([_spelled(e.path) for e in change.all(DropColumn)])}


def _path(edit: SchemaEdit) -> tuple[str, ...]:
    match edit:
        case AddColumn(name, _, parent):
            return (*parent, name)
        case (
            RenameColumn(path)
            | DropColumn(path)
            | SetType(path)
            | SetComment(path)
            | MoveColumn(path)
            | SetNullable(path)
        ):
            return path
    return ()


def _spelled(path: tuple[str, ...]) -> str:
    return ".".join(quote(name) for name in path)


def _feature_dropped(change: Change, parameters: Parameters) -> Named:
    return "DROP FEATURE", {"featureName": parameters["name"], "truncateHistory": False}


def _rewritten(change: Change, parameters: Parameters) -> Named:
    predicate = [parameters.pop("predicate")] if "predicate" in parameters else []
    ordered = {"zOrderBy": parameters.pop("zorder_by", "[]"), "clusterBy": parameters.pop("cluster_by", "[]")}
    if "applyPurge" in parameters:
        return "REORG", {"predicate": json.dumps(predicate), **parameters}
    return "OPTIMIZE", {"predicate": json.dumps(predicate), **ordered, "auto": "false", **parameters}


def _restored(change: Change, parameters: Parameters) -> Named:
    version = parameters.get("version")
    to = None if version is None else int(version)
    return "RESTORE", {"version": to, "timestamp": parameters.get("timestamp")}


def _vacuum_started(change: Change, parameters: Parameters) -> Named:
    asked = parameters.get("retention_ms")
    given = {} if asked is None else {"specifiedRetentionMillis": int(asked)}
    checked = {"retentionCheckEnabled": parameters["retention_enforced"] == "true"}
    return "VACUUM START", {**checked, **given, "defaultRetentionMillis": int(parameters["table_retention_ms"])}


def _vacuum_ended(change: Change, parameters: Parameters) -> Named:
    return "VACUUM END", {"status": parameters["status"].upper()}


_NAMED: Final[Mapping[str, Callable[[Change, Parameters], Named]]] = {
    "clone": _cloned,
    "delete": _deleted,
    "set-properties": _properties_set,
    "backfill": _backfilled,
    "add-columns": _columns_added,
    "alter-columns": _columns_altered,
    "drop-feature": _feature_dropped,
    "replace": _rewritten,
    "restore": _restored,
    "vacuum-start": _vacuum_started,
    "vacuum-end": _vacuum_ended,
}
"""Operations whose name or parameters differ from ours."""
_PARTITIONED: Final[Mapping[str, Callable[[Change, Parameters, str], Named]]] = {
    "create": _created,
    "convert": _converted,
    "append": _appended,
    "overwrite": _overwritten,
}
"""The same, where the parameters have the table's partition columns, as JSON."""

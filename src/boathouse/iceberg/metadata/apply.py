"""What each update makes of a metadata document: the same as a catalog makes of it.

A document is as `TableMetadata.document`: with the fields of version 2, if it is of version 1. Only what an update is
about is changed, so that fields of other writers are kept; nothing is changed in place. The time of an update is the
document's `last-updated-ms`, which a commit sets first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.metadata import updates as u
from boathouse.iceberg.metadata.rules import highest_column_id, highest_partition_id
from boathouse.iceberg.metadata.updates import LAST_ADDED, MAIN, MetadataUpdate
from boathouse.iceberg.metadata.versions import NEXT_ROW_ID, ONLY_IN_VERSION_1, version_of_format

Json = dict[str, Any]


def apply(document: Json, update: MetadataUpdate) -> Json:
    """The document after the update. Raises InvalidArgumentError for one that the document does not allow,
    UnsupportedFeatureError for a lower format version."""
    changed = _APPLY[type(update)](document, update)
    return {k: v for k, v in {**document, **changed}.items() if v is not _GONE}


def apply_all(document: Json, updates: Iterable[MetadataUpdate]) -> Json:
    """The document after one update after the other."""
    return reduce(apply, updates, document)


_GONE = object()
"""Stands for a field that is removed."""


def _many(document: Json, name: str) -> list[Json]:
    return list(document.get(name) or [])


def _added(document: Json, name: str, key: str, value: Mapping[str, Any]) -> Json:
    known = _many(document, name)
    if any(member[key] == value[key] for member in known):
        raise InvalidArgumentError(f"{key} {value[key]} exists already")
    return {name: [*known, dict(value)]}


def _chosen(document: Json, name: str, key: str, current: str, id: int) -> Json:
    known = _many(document, name)
    if id == LAST_ADDED and known:
        id = known[-1][key]
    if all(member[key] != id for member in known):
        raise InvalidArgumentError(f"there is no {key} {id}")
    return {current: id}


def _without(document: Json, name: str, key: str, ids: Iterable[Any], needed: Iterable[Any] = ()) -> Json:
    gone = set(ids)
    for id in needed:
        if id in gone:
            raise InvalidArgumentError(f"{key} {id} is in use, so it cannot be removed")
    return {name: [member for member in _many(document, name) if member[key] not in gone]}


def _upgrade(document: Json, update: u.UpgradeFormatVersion) -> Json:
    before, after = document["format-version"], version_of_format(update.format_version)
    if after.number < before:
        raise UnsupportedFeatureError(
            f"the table has format version {before}, which cannot be lowered",
            advice=f"write its rows into a new table of version {after}",
        )
    changed: Json = {"format-version": after.number}
    if after.sequence_numbers:
        changed |= {name: _GONE for name in ONLY_IN_VERSION_1 if name in document}
    if after.row_lineage and NEXT_ROW_ID not in document:
        changed[NEXT_ROW_ID] = 0
    return changed


def _add_schema(document: Json, update: u.AddSchema) -> Json:
    return _counted(document, _added(document, "schemas", "schema-id", update.schema))


def _add_spec(document: Json, update: u.AddSpec) -> Json:
    return _counted(document, _added(document, "partition-specs", "spec-id", update.spec))


def _counted(document: Json, added: Json) -> Json:
    """The last ids are the highest that exist, whatever an earlier writer recorded."""
    after = {**document, **added}
    return {**added, "last-column-id": highest_column_id(after), "last-partition-id": highest_partition_id(after)}


def _add_snapshot(document: Json, update: u.AddSnapshot) -> Json:
    snapshot = update.snapshot
    found = _added(document, "snapshots", "snapshot-id", snapshot)
    version = version_of_format(document["format-version"])
    if version.sequence_numbers:
        if snapshot["sequence-number"] <= document["last-sequence-number"] and snapshot.get("parent-snapshot-id"):
            raise InvalidArgumentError(f"sequence number {snapshot['sequence-number']} is not above the last one")
        found["last-sequence-number"] = snapshot["sequence-number"]
    if version.row_lineage:
        if snapshot.get("first-row-id", -1) < document[NEXT_ROW_ID]:
            raise InvalidArgumentError(f"the snapshot's first-row-id is not at least {document[NEXT_ROW_ID]}")
        found[NEXT_ROW_ID] = document[NEXT_ROW_ID] + snapshot["added-rows"]
    found["last-updated-ms"] = snapshot["timestamp-ms"]
    return found


def _explicit(document: Json) -> dict[str, Json]:
    """The refs, with `main`, which need not be among them."""
    refs = dict(document.get("refs") or {})
    if MAIN not in refs and document.get("current-snapshot-id") not in (None, -1):
        refs[MAIN] = {"snapshot-id": document["current-snapshot-id"], "type": "branch"}
    return refs


def _set_ref(document: Json, update: u.SetSnapshotRef) -> Json:
    refs, id = _explicit(document), update.ref["snapshot-id"]
    snapshot = next((s for s in reversed(_many(document, "snapshots")) if s["snapshot-id"] == id), None)
    if snapshot is None:
        raise InvalidArgumentError(f"there is no snapshot {id} for {update.ref_name}")
    changed: Json = {"refs": {**refs, update.ref_name: dict(update.ref)}}
    if update.ref_name == MAIN and refs.get(MAIN, {}).get("snapshot-id") != id:
        entry = {"snapshot-id": id, "timestamp-ms": document["last-updated-ms"]}
        changed |= {"current-snapshot-id": id, "snapshot-log": [*_many(document, "snapshot-log"), entry]}
    return changed


def _remove_ref(document: Json, update: u.RemoveSnapshotRef) -> Json:
    refs = {name: ref for name, ref in _explicit(document).items() if name != update.ref_name}
    return {"refs": refs, **({"current-snapshot-id": _GONE} if update.ref_name == MAIN else {})}


def _remove_snapshots(document: Json, update: u.RemoveSnapshots) -> Json:
    """Refs to them and their statistics go too; the log begins after the last one of them, since what it says of a time
    must be true."""
    gone = set(update.snapshot_ids)
    refs = {name: ref for name, ref in _explicit(document).items() if ref["snapshot-id"] not in gone}
    log: list[Json] = []
    for entry in _many(document, "snapshot-log"):
        log = [] if entry["snapshot-id"] in gone else [*log, entry]
    changed = {**_without(document, "snapshots", "snapshot-id", gone), "refs": refs, "snapshot-log": log}
    for name in ("statistics", "partition-statistics"):
        if document.get(name):
            changed |= _without(document, name, "snapshot-id", gone)
    if document.get("current-snapshot-id") in gone:
        changed["current-snapshot-id"] = _GONE
    return changed


def _replaced(document: Json, name: str, key: str, value: Mapping[str, Any]) -> Json:
    others = _without(document, name, key, (value[key],))[name]
    return {name: [*others, dict(value)]}


def _remove_properties(document: Json, update: u.RemoveProperties) -> Json:
    return {"properties": {k: v for k, v in (document.get("properties") or {}).items() if k not in update.removals}}


_ID, _SPECS, _ORDERS, _KEYS = "snapshot-id", "partition-specs", "sort-orders", "encryption-keys"
_APPLY: Mapping[type[MetadataUpdate], Callable[[Json, Any], Json]] = {
    u.AssignUuid: lambda d, x: {"table-uuid": x.uuid},
    u.UpgradeFormatVersion: _upgrade,
    u.AddSchema: _add_schema,
    u.SetCurrentSchema: lambda d, x: _chosen(d, "schemas", "schema-id", "current-schema-id", x.schema_id),
    u.RemoveSchemas: lambda d, x: _without(d, "schemas", "schema-id", x.schema_ids, [d["current-schema-id"]]),
    u.AddSpec: _add_spec,
    u.SetDefaultSpec: lambda d, x: _chosen(d, _SPECS, "spec-id", "default-spec-id", x.spec_id),
    u.RemovePartitionSpecs: lambda d, x: _without(d, _SPECS, "spec-id", x.spec_ids, [d["default-spec-id"]]),
    u.AddSortOrder: lambda d, x: _added(d, _ORDERS, "order-id", x.sort_order),
    u.SetDefaultSortOrder: lambda d, x: _chosen(d, _ORDERS, "order-id", "default-sort-order-id", x.sort_order_id),
    u.AddSnapshot: _add_snapshot,
    u.RemoveSnapshots: _remove_snapshots,
    u.SetSnapshotRef: _set_ref,
    u.RemoveSnapshotRef: _remove_ref,
    u.SetLocation: lambda d, x: {"location": x.location},
    u.SetProperties: lambda d, x: {"properties": {**(d.get("properties") or {}), **x.updates}},
    u.RemoveProperties: _remove_properties,
    u.SetStatistics: lambda d, x: _replaced(d, "statistics", _ID, x.statistics),
    u.RemoveStatistics: lambda d, x: _without(d, "statistics", _ID, [x.snapshot_id]),
    u.SetPartitionStatistics: lambda d, x: _replaced(d, "partition-statistics", _ID, x.partition_statistics),
    u.RemovePartitionStatistics: lambda d, x: _without(d, "partition-statistics", _ID, [x.snapshot_id]),
    u.AddEncryptionKey: lambda d, x: _added(d, _KEYS, "key-id", x.encryption_key),
    u.RemoveEncryptionKey: lambda d, x: _without(d, _KEYS, "key-id", [x.key_id]),
}

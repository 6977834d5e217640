"""What each update makes of a metadata document: the same as PyIceberg makes of it, and fields of others survive."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from pydantic import TypeAdapter
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableUpdate, update_table_metadata

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.metadata import updates as u
from boathouse.iceberg.metadata.apply import _APPLY, apply, apply_all
from boathouse.iceberg.metadata.document import TableMetadata, dump
from boathouse.iceberg.metadata.versions import VERSIONS

UPDATE: TypeAdapter[Any] = TypeAdapter(TableUpdate)
FIELDS = [{"id": 1, "name": "a", "required": False, "type": "long"}]
WIDER = [*FIELDS, {"id": 2, "name": "b", "required": False, "type": "string"}]


def snapshot(id: int, number: int, **more: Any) -> dict[str, Any]:
    return {
        "snapshot-id": id, "sequence-number": number, "timestamp-ms": 1_700_000_000_000 + number, "schema-id": 0,
        "manifest-list": f"file:///t/snap-{id}.avro", "summary": {"operation": "append"}, **more,
    }  # fmt: skip


def document(version: int = 2) -> dict[str, Any]:
    """Two snapshots on main and a tag, and what other writers left."""
    made = {
        "format-version": version, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1", "location": "file:///t",
        "last-sequence-number": 2, "last-updated-ms": 1_700_000_000_002, "last-column-id": 1, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": FIELDS, "x-note": "kept"}], "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999, "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}], "properties": {"a": "1", "b": "2"},
        "current-snapshot-id": 12, "snapshots": [snapshot(11, 1), snapshot(12, 2, **{"parent-snapshot-id": 11})],
        "refs": {"main": {"snapshot-id": 12, "type": "branch"}, "t": {"snapshot-id": 11, "type": "tag"}},
        "snapshot-log": [{"snapshot-id": 11, "timestamp-ms": 1_700_000_000_001},
                         {"snapshot-id": 12, "timestamp-ms": 1_700_000_000_002}],
        "metadata-log": [], "x-theirs": {"deep": [1, None]},
    }  # fmt: skip
    return {**made, "next-row-id": 7} if version == 3 else made


STATISTICS = {
    "snapshot-id": 11, "statistics-path": "file:///t/s.puffin", "file-size-in-bytes": 9,
    "file-footer-size-in-bytes": 4, "blob-metadata": [],
}  # fmt: skip
PARTITIONS = {"snapshot-id": 11, "statistics-path": "file:///t/p.parquet", "file-size-in-bytes": 9}
SPEC = {"spec-id": 1, "fields": [{"source-id": 1, "field-id": 1000, "name": "a", "transform": "identity"}]}
ORDER = {
    "order-id": 1,
    "fields": [{"source-id": 1, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}],
}
THIRD = snapshot(13, 3, **{"parent-snapshot-id": 12})
COMMITS: dict[str, list[u.MetadataUpdate]] = {
    "another schema": [
        u.AddSchema({"type": "struct", "schema-id": 1, "fields": WIDER}), u.SetCurrentSchema(),
        u.RemoveSchemas((0,)),
    ],
    "another spec and order": [
        u.AddSpec(SPEC), u.SetDefaultSpec(), u.AddSortOrder(ORDER), u.SetDefaultSortOrder(1),
        u.RemovePartitionSpecs((0,)),
    ],
    "a snapshot": [u.AddSnapshot(THIRD), u.SetSnapshotRef("main", {"snapshot-id": 13, "type": "branch"})],
    "a branch that is kept for a day": [
        u.SetSnapshotRef("dev", {"snapshot-id": 11, "type": "branch", "max-ref-age-ms": 86_400_000}),
        u.RemoveSnapshotRef("t"),
    ],
    "a rollback and back": [
        u.SetSnapshotRef("main", {"snapshot-id": 11, "type": "branch"}),
        u.SetSnapshotRef("main", {"snapshot-id": 12, "type": "branch"}),
    ],
    "properties": [u.SetProperties({"a": "9", "c": "3"}), u.RemoveProperties(("b",))],
    "a move": [u.SetLocation("file:///elsewhere")],
    "statistics": [
        u.SetStatistics(STATISTICS), u.SetStatistics({**STATISTICS, "file-size-in-bytes": 10}),
        u.SetPartitionStatistics(PARTITIONS),
    ],
    "statistics come and go": [
        u.SetStatistics(STATISTICS), u.RemoveStatistics(11), u.SetPartitionStatistics(PARTITIONS),
        u.RemovePartitionStatistics(11),
    ],
}  # fmt: skip
READ = (
    "format_version", "location", "schemas", "current_schema_id", "last_column_id", "partition_specs",
    "default_spec_id", "last_partition_id", "sort_orders", "default_sort_order_id", "properties", "snapshots",
    "current_snapshot_id", "refs", "last_sequence_number", "statistics", "partition_statistics",
)  # fmt: skip


@pytest.mark.parametrize("commit", COMMITS)
def test_the_same_as_pyiceberg_makes(commit):
    before, updates = document(), COMMITS[commit]
    theirs = update_table_metadata(
        TableMetadataUtil.parse_raw(json.dumps(before)),
        tuple(UPDATE.validate_python(u.to_json(update)) for update in updates),
    )
    made = apply_all(before, updates)
    ours = TableMetadataUtil.parse_raw(json.dumps(made))
    for name in READ:
        assert getattr(ours, name) == getattr(theirs, name), name
    assert [e.snapshot_id for e in ours.snapshot_log] == [e.snapshot_id for e in theirs.snapshot_log]
    TableMetadata.of(made, "m")


@pytest.mark.parametrize("version", VERSIONS)
def test_fields_of_others_survive_and_nothing_changes_in_place(version):
    third = {**THIRD, "first-row-id": 7, "added-rows": 5} if version == 3 else THIRD
    before = document(version)
    kept = copy.deepcopy(before)
    after = before
    for name, updates in COMMITS.items():
        if name != "another schema":
            after = apply_all(after, [u.AddSnapshot(third) if isinstance(x, u.AddSnapshot) else x for x in updates])
    assert before == kept
    assert after["x-theirs"] == {"deep": [1, None]} and after["schemas"][0]["x-note"] == "kept"
    assert after.get("next-row-id") == {3: 12}.get(version)
    assert after["last-sequence-number"] == (2 if version == 1 else 3)


def test_every_update_of_the_specification_has_a_meaning():
    assert {u.action(kind) for kind in map(object.__new__, _APPLY)} == {
        "assign-uuid", "upgrade-format-version", "add-schema", "set-current-schema", "remove-schemas", "add-spec",
        "set-default-spec", "remove-partition-specs", "add-sort-order", "set-default-sort-order", "add-snapshot",
        "remove-snapshots", "set-snapshot-ref", "remove-snapshot-ref", "set-location", "set-properties",
        "remove-properties", "set-statistics", "remove-statistics", "set-partition-statistics",
        "remove-partition-statistics", "add-encryption-key", "remove-encryption-key",
    }  # fmt: skip


def test_removed_snapshots_take_along_what_is_about_them():
    before = apply_all(document(), [u.SetStatistics(STATISTICS), u.SetPartitionStatistics(PARTITIONS)])
    after = apply(before, u.RemoveSnapshots((11,)))
    assert [s["snapshot-id"] for s in after["snapshots"]] == [12] and list(after["refs"]) == ["main"]
    assert [e["snapshot-id"] for e in after["snapshot-log"]] == [12]
    assert after["statistics"] == after["partition-statistics"] == []
    # What was current before the removed one is not known any more.
    again = apply_all(
        before, [u.SetSnapshotRef("main", {"snapshot-id": 11, "type": "branch"}), u.RemoveSnapshots((12,))]
    )
    assert [e["snapshot-id"] for e in again["snapshot-log"]] == [11] and again["current-snapshot-id"] == 11
    empty = apply(before, u.RemoveSnapshotRef("main"))
    assert "current-snapshot-id" not in empty and list(empty["refs"]) == ["t"]


def test_a_table_without_refs_has_main():
    before = document()
    del before["refs"]
    after = apply(before, u.SetSnapshotRef("dev", {"snapshot-id": 11, "type": "branch"}))
    assert after["refs"]["main"]["snapshot-id"] == 12 and after["current-snapshot-id"] == 12
    [_, required] = u.requirements([u.SetSnapshotRef("main", {"snapshot-id": 11, "type": "branch"})], before)
    assert required == {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 12}


@pytest.mark.parametrize(("before", "after"), [(1, 2), (1, 3), (2, 3), (3, 3)])
def test_upgrades(before, after):
    made = apply(document(before), u.UpgradeFormatVersion(after))
    assert made["format-version"] == after and TableMetadata.parse(dump(made), "m").version == after
    assert all(made.get(name) is not None for name in VERSIONS[after].required)
    assert made.get("next-row-id") == {(1, 3): 0, (2, 3): 0, (3, 3): 7}.get((before, after))


def test_what_is_refused():
    for before, update, message in (
        (document(2), u.UpgradeFormatVersion(1), "cannot be lowered"),
        (document(3), u.UpgradeFormatVersion(4), "4 is not offered"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=message):
            apply(before, update)
    refused: list[tuple[u.MetadataUpdate, str]] = [
        (u.AddSnapshot(snapshot(12, 3)), "snapshot-id 12 exists"),
        (u.AddSnapshot(snapshot(13, 2, **{"parent-snapshot-id": 12})), "sequence number 2"),
        (u.SetSnapshotRef("main", {"snapshot-id": 99, "type": "branch"}), "no snapshot 99"),
        (u.SetCurrentSchema(5), "no schema-id 5"),
        (u.SetDefaultSpec(5), "no spec-id 5"),
        (u.RemoveSchemas((0,)), "in use"),
        (u.RemovePartitionSpecs((0,)), "in use"),
    ]
    for update, message in refused:
        with pytest.raises(InvalidArgumentError, match=message):
            apply(document(), update)
    with pytest.raises(InvalidArgumentError, match="first-row-id"):
        apply(document(3), u.AddSnapshot({**THIRD, "first-row-id": 3, "added-rows": 1}))


def test_version_1_is_written_back_as_version_1():
    """Without numbers of commits, with the names that its first readers know; unknown fields stay."""
    stored = {
        "format-version": 1, "location": "file:///t", "last-updated-ms": 1_700_000_000_000, "last-column-id": 1,
        "schema": {"type": "struct", "fields": FIELDS}, "partition-spec": [], "x-theirs": 5,
        "snapshots": [{k: v for k, v in snapshot(11, 0).items() if k != "sequence-number"}], "current-snapshot-id": 11,
    }  # fmt: skip
    read = TableMetadata.parse(json.dumps(stored).encode(), "m")
    changed = [u.AddSchema({"type": "struct", "schema-id": 1, "fields": WIDER}), u.SetCurrentSchema()]
    again = json.loads(dump(apply_all(read.document, changed)))
    kept = ("format-version", "location", "last-updated-ms", "partition-spec", "x-theirs", "snapshots")
    assert {k: again[k] for k in kept} == {k: stored[k] for k in kept}
    assert again["schema"]["fields"] == WIDER and [s["schema-id"] for s in again["schemas"]] == [0, 1]
    assert "last-sequence-number" not in again and all("sequence-number" not in s for s in again["snapshots"])
    theirs = TableMetadataUtil.parse_raw(json.dumps(again))
    assert theirs.format_version == 1 and [f.name for f in theirs.schema().fields] == ["a", "b"]

"""Manifests written by columns, read by other eyes; and small ones that a commit merges."""

from __future__ import annotations

import datetime as dt
import io
import math
import random
import uuid
from decimal import Decimal
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestEntryStatus, read_manifest_list

import boathouse as bh
from boathouse.avro import writer as avro_writer
from boathouse.avro.codec import reader
from boathouse.iceberg.commit import snapshot_builder
from boathouse.iceberg.manifests import columns as manifest_columns
from boathouse.iceberg.manifests import writer as manifest_writer
from boathouse.iceberg.manifests.entries import Entries
from boathouse.iceberg.manifests.merge import MergeRule
from boathouse.iceberg.manifests.records import ADDED, DELETED, EXISTING, manifest_file, read_entries
from boathouse.iceberg.manifests.values import to_avro
from boathouse.iceberg.metadata.partitions import parse_transform
from boathouse.iceberg.metadata.versions import VERSIONS
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    DecimalType,
    Field,
    FixedType,
    PartitionField,
    PartitionSpec,
    Schema,
    TimestampType,
    TimeType,
    UUIDType,
)

IDENTITY = parse_transform("identity")
VALUES = {
    "boolean": (BOOLEAN, [True, False]),
    "int": (INT32, [0, -1, (1 << 31) - 1, -(1 << 31)]),
    "long": (INT64, [63, -64, 64, (1 << 63) - 1, -(1 << 63)]),
    "float": (FLOAT, [1.5, -0.0, 0.0, math.inf]),
    "double": (DOUBLE, [1e300, -0.0, math.nan]),
    "date": (DATE, [0, -1, 19000]),
    "time": (TimeType("us"), [0, 86_399_999_999]),
    "timestamp": (TimestampType(False, "us"), [-1, 1_700_000_000_000_000]),
    "timestamptz": (TimestampType(True, "us"), [0, 1]),
    "decimal": (DecimalType(9, 2), [150, -300, 0]),
    "wide decimal": (DecimalType(38, 3), [10**37, -(10**37)]),
    "string": (STRING, ["", "ä" * 100, "x/y=z"]),
    "binary": (BINARY, [b"", b"\x00\xff" * 70]),
    "fixed": (FixedType(3), [b"abc", b"\x00\x00\x00"]),
    "uuid": (UUIDType(), [uuid.UUID(int=7).bytes, uuid.UUID(int=1 << 127).bytes]),
}


def entry(i: int, partition: dict[str, object], status: int = ADDED, **more: object) -> dict[str, object]:
    file = {
        "content": 0, "file_path": f"file:///t/data/{i}.parquet", "file_format": "PARQUET", "partition": partition,
        "record_count": 10 + i, "file_size_in_bytes": 1000 * i, "key_metadata": None, "split_offsets": [4, 1 << 40],
        "equality_ids": None, "sort_order_id": 0 if i % 2 else None,
        "column_sizes": {1: 5, 2: 1 << 33}, "value_counts": {} if i % 3 else None, "null_value_counts": {1: 0},
        "nan_value_counts": None, "lower_bounds": {1: b"", 2: b"\x00" * 9}, "upper_bounds": {1: bytes(200)}, **more,
    }  # fmt: skip
    numbers = {"snapshot_id": None if status == ADDED else -5, "sequence_number": None if status == ADDED else 3}
    return {"status": status, **numbers, "file_sequence_number": numbers["sequence_number"], "data_file": file}


def typed(kind: str) -> tuple[PartitionSpec, list[dict[str, object]]]:
    type, values = VALUES[kind]
    spec = PartitionSpec(4, (PartitionField("a part", ("p",), IDENTITY, 1000, type, 1),))
    rows = [entry(i, {"f1000": to_avro(v, type)}) for i, v in enumerate([*values, None])]
    return spec, rows


def whole(spec: PartitionSpec, rows: list[dict[str, object]], codec: str = "null", version: int = 2) -> bytes:
    columns = manifest_columns.of_entries(rows, spec)
    return manifest_writer.write(columns, spec, Schema((Field("p", INT64, id=1),)), 0, 0, codec, VERSIONS[version])


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize(("version", "few"), [(2, 0), (3, 0), (2, 64)])
def test_fastavro_reads_every_type(monkeypatch, kind, version, few):
    """As fastavro itself would write the entries, and it reads what we write: by columns, and a few one by one."""
    monkeypatch.setattr(manifest_writer, "FEW", few)
    spec, rows = typed(kind)
    data = whole(spec, rows, version=version)
    found = list(fastavro.reader(io.BytesIO(data)))
    assert [e["data_file"]["file_path"] for e in found] == [e["data_file"]["file_path"] for e in rows]
    for mine, meant in zip(found, rows, strict=True):
        assert mine["status"] == meant["status"] and mine["sequence_number"] == meant["sequence_number"]
        file = meant["data_file"]
        for name in manifest_columns.MAPS:
            pairs = mine["data_file"][name]
            assert (None if pairs is None else {p["key"]: p["value"] for p in pairs}) == file[name], name
        for name in ("record_count", "file_size_in_bytes", "split_offsets", "sort_order_id", "content"):
            assert mine["data_file"][name] == file[name], name
    schema = fastavro.schema.parse_schema(VERSIONS[version].manifest(spec))
    again = io.BytesIO()
    fastavro.writer(again, schema, found, codec="null")
    assert list(fastavro.reader(io.BytesIO(again.getvalue()))) == found or kind == "double"
    source = manifest_file(
        {"manifest_path": "m", "partition_spec_id": 4, "added_snapshot_id": 1, "sequence_number": 9}, "m"
    )
    live = Entries.read(data, source, "m").live
    (field,) = spec.fields
    meant = manifest_columns.of_entries(rows, spec).column(manifest_columns.partition_column(field)).combine_chunks()
    assert str(live.partition_array(field)) == str(meant)


@pytest.mark.few(3)
@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("kind", ["long", "string", "decimal", "timestamp"])
def test_columns_of_a_manifest_are_those_it_was_written_from(monkeypatch, kind, few):
    monkeypatch.setattr(manifest_writer, "FEW", 0)
    spec, rows = typed(kind)
    if not few:
        rows = [entry(i, rows[i % len(rows)]["data_file"]["partition"]) for i in range(3000)]
    columns = manifest_columns.of_entries(rows, spec)
    source = manifest_file(
        {"manifest_path": "m", "partition_spec_id": 4, "added_snapshot_id": 77, "sequence_number": 9}, "m"
    )
    for codec in ("null", "deflate", "zstandard"):
        live = Entries.read(whole(spec, rows, codec), source, "m").live
        found = manifest_columns.of_live(live, spec, source)
        assert found.column("snapshot_id").unique().to_pylist() == [77]
        assert found.column("sequence_number").unique().to_pylist() == [9]
        assert found.column("status").unique().to_pylist() == [EXISTING]
        for name in found.column_names[4:]:
            assert found.column(name).to_pylist() == columns.column(name).to_pylist(), name


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1)))
def test_numbers_of_any_length(values):
    read = reader("long")
    found = avro_writer.varints(np.array(values, np.int64)).to_pylist()
    assert [read(data, 0) for data in found] == [(v, len(d)) for v, d in zip(values, found)]


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 2000])
@pytest.mark.parametrize("few", [0, 64])
def test_blocks(monkeypatch, size, few):
    monkeypatch.setattr(manifest_writer, "FEW", few)
    spec = PartitionSpec(0)
    rows = [entry(i, {}) for i in range(size)]
    data = whole(spec, rows, "deflate")
    assert len(list(fastavro.reader(io.BytesIO(data)))) == size
    source = manifest_file({"manifest_path": "m", "partition_spec_id": 0, "added_snapshot_id": 1}, "m")
    assert len(read_entries(data, source, "m")) == size


def test_a_row_of_the_list_counts_and_summarises():
    spec, rows = typed("double")
    rows = [*rows, entry(7, {"f1000": 2.5}, EXISTING), entry(8, {"f1000": -1.0}, DELETED)]
    row = manifest_writer.list_row("p", 5, spec, manifest_columns.of_entries(rows, spec), 0, 9, 1)
    assert [row[f"{how}_files_count"] for how in ("added", "existing", "deleted")] == [4, 1, 1]
    assert [row[f"{how}_rows_count"] for how in ("added", "existing", "deleted")] == [10 + 11 + 12 + 13, 17, 18]
    assert row["min_sequence_number"] == 3
    [summary] = row["partitions"]
    assert summary["contains_null"] and summary["contains_nan"]
    assert (summary["lower_bound"][-1], summary["upper_bound"][:2]) == (0xBF, b"\x9c\x75")


DATA = pa.table({
    "id": pa.array(range(8), pa.int64()), "p": ["a", "b", None, "c"] * 2,
    "d": pa.array([Decimal("1.50"), None] * 4, pa.decimal128(9, 2)), "day": [dt.date(2020, 1, 1 + i) for i in range(8)],
})  # fmt: skip


def test_others_read_a_table_whose_manifests_were_rewritten(make):
    """Entries of three commits, some deleted: pyiceberg's own readers of manifests and rows."""
    table, eyes = make(DATA, partition_by=["p", "d", "day"])
    table.append(DATA)
    table.delete("id = 3")
    table.delete("id = 4 OR p = 'a'")
    expected = sorted([1, 2, 5, 6, 7] * 2)
    assert sorted(eyes.rows()["id"].to_pylist()) == expected
    statuses = set()
    listed = read_manifest_list(PyArrowFileIO().new_input(eyes.snapshot()["manifest-list"]))
    for manifest in listed:
        for found in manifest.fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False):
            statuses.add(found.status)
    assert ManifestEntryStatus.DELETED in statuses and ManifestEntryStatus.EXISTING in statuses


# --- merging


def test_which_manifests_are_merged():
    rule = MergeRule(True, 3, 100)

    def groups(*sizes: int) -> list[list[int]]:
        return [list(g) for g in rule.groups(sizes, lambda m: m)]

    assert groups(1, 1) == [[1], [1]]
    assert groups(1, 2, 3) == [[1, 2, 3]]
    assert groups(60, 30, 30, 40) == [[60], [30, 30, 40]], "packed from the end, however few the others are"
    assert groups(5, 30, 30, 40) == [[5], [30, 30, 40]]
    assert groups(101, 1, 1, 1) == [[101], [1, 1, 1]]
    assert groups() == []
    assert [list(g) for g in MergeRule(False, 2, 100).groups([1, 2], lambda m: m)] == [[1], [2]]


def appended(make, properties, commits=7):
    table, eyes = make(DATA.slice(0, 2), partition_by=["p"], properties=properties)
    for i in range(1, commits):
        table.append(DATA.slice(i, 2))
    return table, eyes


def test_small_manifests_are_merged_by_the_tables_properties(make):
    table, eyes = appended(make, {"commit.manifest.min-count-to-merge": "4"})
    # 4 become 1, which with 3 more become 1 again.
    assert len(eyes.manifests()) == 1
    [merged] = eyes.manifests()
    assert (merged["added_files_count"], merged["existing_files_count"]) == (2, 12)
    assert merged["min_sequence_number"] == 1 and merged["sequence_number"] == 7
    assert sorted(eyes.rows()["id"].to_pylist()) == sorted(table.to_arrow()["id"].to_pylist())
    assert len({n["snapshot_id"] for n in _native(table)}) == 7, "entries keep the snapshot that added them"
    table.delete("id = 1")
    assert 1 not in eyes.rows()["id"].to_pylist()
    orphans = {Path(p).name for p in map(str, eyes.root.glob("metadata/*-m*.avro"))}
    assert len(orphans) == len({Path(m).name for m in _ever(eyes)}), "no manifest is written that no snapshot has"


def _native(table):
    return [n for b in table._handle.snapshot.files() for n in b.column("native").to_pylist()]


def _ever(eyes):
    """Every manifest that a snapshot lists."""
    found = set()
    for snapshot in eyes.document()["snapshots"]:
        with open(snapshot["manifest-list"].removeprefix("file://"), "rb") as file:
            found.update(row["manifest_path"] for row in fastavro.reader(file))
    return found


@pytest.mark.parametrize(("properties", "manifests"), [
    ({"commit.manifest-merge.enabled": "false", "commit.manifest.min-count-to-merge": "2"}, 7),
    ({}, 7),
    ({"commit.manifest.min-count-to-merge": "2", "commit.manifest.target-size-bytes": "1"}, 7),
    ({"commit.manifest.min-count-to-merge": "2"}, 1),
])  # fmt: skip
def test_when_they_are_not_merged(make, properties, manifests):
    _, eyes = appended(make, properties)
    assert len(eyes.manifests()) == manifests
    assert eyes.rows().num_rows == 14


def test_manifests_of_several_specs_are_merged_apart(make):
    table, eyes = appended(make, {"commit.manifest.min-count-to-merge": "2"}, 3)
    table.overwrite(DATA, overwrite_schema=True, partition_by=["day"])
    for i in range(3):
        table.append(DATA.slice(i, 2))
    assert {m["partition_spec_id"] for m in eyes.manifests() if m["added_files_count"]} == {1}
    assert eyes.rows().num_rows == 8 + 6


def test_what_cannot_be_read_is_not_merged(make):
    """An append needs none of the older manifests."""
    eyes = appended(make, {"commit.manifest.min-count-to-merge": "4"}, 3)[1]
    lost = eyes.manifests()[-1]["manifest_path"].removeprefix("file://")
    kept = Path(lost).read_bytes()
    Path(lost).unlink()
    fresh = bh.open(str(eyes.root))
    fresh.append(DATA.slice(5, 2))
    assert len(eyes.manifests()) == 4
    Path(lost).write_bytes(kept)
    assert eyes.rows().num_rows == 8


def test_a_lost_race_leaves_no_merged_manifest(make, monkeypatch):
    table, eyes = appended(make, {"commit.manifest.min-count-to-merge": "4"}, 3)
    rival, real, once = bh.open(str(eyes.root)), snapshot_builder.SnapshotBuilder.snapshot, [1]

    def snapshot(self):
        made = real(self)
        if once:
            once.clear()
            rival.append(DATA.slice(6, 1))
        return made

    monkeypatch.setattr(snapshot_builder.SnapshotBuilder, "snapshot", snapshot)
    assert table.append(DATA.slice(7, 1)).retries == 1
    assert eyes.rows().num_rows == 8
    written = {p.name for p in eyes.root.glob("metadata/*-m*.avro")}
    assert written == {Path(m).name for m in _ever(eyes)}


def test_a_random_history_with_merges(make):
    chance = random.Random(7)
    table, eyes = make(DATA, partition_by=["p"], properties={"commit.manifest.min-count-to-merge": "3"})
    for i in range(12):
        if chance.random() < 0.7:
            table.append(DATA.slice(chance.randrange(6), 3))
        else:
            table.delete(f"id = {chance.randrange(8)}")
        assert sorted(eyes.rows()["id"].to_pylist()) == sorted(table.to_arrow()["id"].to_pylist()), i
    assert len([m for m in eyes.manifests() if m["added_files_count"] or m["existing_files_count"]]) < 5

"""The metadata tables: against pyiceberg's, and by what the specification and the reference say."""

import datetime as dt
import io
import json
import os
import random
import shutil
from decimal import Decimal
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from foreign_writer import PATH_ID, POSITION_ID, Foreign, entry_schema
from metadata_tables import AT_A_SNAPSHOT, BY_PYICEBERG, agree

import boathouse as bh
from boathouse.avro import columns as avro_columns
from boathouse.avro import container as avro
from boathouse.avro import items as avro_items
from boathouse.avro.cursors import ABSENT, Buffer
from boathouse.errors import (
    BoathouseError,
    CorruptTableError,
    InvalidArgumentError,
    MissingFileError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from boathouse.iceberg.inspect import rows as inspect_rows
from boathouse.iceberg.inspect.columns import BOUNDS, LONGS
from boathouse.iceberg.manifests import entries
from boathouse.iceberg.manifests import reader as manifest_reader
from boathouse.iceberg.manifests import records as manifests
from boathouse.iceberg.manifests.row_ids import number_rows, row_ids
from boathouse.table.inspection import NAMES

pytest.importorskip("pyiceberg")
CORPORA = Path(os.environ.get("BOATHOUSE_CORPORA") or Path(__file__).parents[2] / "../shared/corpora").resolve()
DUCKDB = CORPORA / "iceberg" / "duckdb"

EVERYTHING = {
    "b": pa.array([True, False, None]),
    "i": pa.array([1, -(2**31), None], pa.int32()),
    "l": pa.array([2**63 - 1, -(2**63), None], pa.int64()),
    "f": pa.array([1.5, -0.0, None], pa.float32()),
    "d": pa.array([-0.0, float("nan"), None], pa.float64()),
    "dec": pa.array([Decimal("12345678901234567890.123"), Decimal("-0.001"), None], pa.decimal128(38, 3)),
    "day": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "t": pa.array([dt.time(22, 31, 8, 1), dt.time(0), None], pa.time64("us")),
    "ts": pa.array([dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2017, 11, 16, 17, 10, 34), None]),
    "tz": pa.array([1, -1, None], pa.timestamp("us", "UTC")),
    "s": pa.array(["", "ü💥", None]),
    "bin": pa.array([b"", b"\x00\xff", None]),
    "fix": pa.array([b"abc", b"\x00\x01\x02", None], pa.binary(3)),
    "only null": pa.array([None] * 3, pa.string()),
    "a.b": pa.array([1, 2, None], pa.int64()),
    "st": pa.array([{"x": 1, "y": {"z": "a"}}, {"x": None, "y": None}, None],
                   pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])),
    "li": pa.array([[1, None], [], None], pa.list_(pa.int64())),
    "ma": pa.array([[("k", 1), ("l", None)], [], None], pa.map_(pa.string(), pa.int32())),
}  # fmt: skip


@pytest.fixture(params=["few", "columns"])
def manner(request, monkeypatch):
    """Small manifests decoded entry by entry, and by columns as large ones are."""
    if request.param == "columns":
        monkeypatch.setattr(manifest_reader, "FEW", -1)
    return request.param


def compared(table, peer, names=BY_PYICEBERG):
    for name in names:
        found = table.inspect.to_arrow(name)
        found.validate(full=True)
        agree(name, found, getattr(peer.inspect, name)())


def opened(peer, **at):
    return bh.open(peer.metadata_location, **at)


def test_every_type(catalog, manner):
    data = pa.table(EVERYTHING)
    peer = catalog.create_table("db.t", data.schema)
    peer.append(data)
    peer.append(data.slice(2))
    compared(opened(peer), peer)
    metrics = opened(peer).inspect.files().schema.field("readable_metrics").type
    assert [f.name for f in metrics] == sorted(
        [*(n for n in EVERYTHING if n not in ("st", "li", "ma")), "st.x", "st.y.z", "li.element", "ma.key", "ma.value"]
    )
    for f in metrics:
        assert [g.name for g in f.type][-2:] == ["lower_bound", "upper_bound"]
    assert metrics.field("tz").type.field("lower_bound").type == pa.timestamp("us", "UTC")
    assert metrics.field("dec").type.field("upper_bound").type == pa.decimal128(38, 3)


def test_nested_columns_have_readable_metrics(make, manner):
    data = pa.table({"st": EVERYTHING["st"], "a.b": EVERYTHING["a.b"], "li": EVERYTHING["li"]})
    table, _ = make(data)
    (row,) = table.inspect.files().to_pylist()
    metrics = row["readable_metrics"]
    assert set(metrics) == {"a.b", "li.element", "st.x", "st.y.z"}
    assert (metrics["st.x"]["lower_bound"], metrics["st.x"]["upper_bound"]) == (1, 1)
    assert metrics["st.y.z"]["lower_bound"] == "a" and metrics["st.y.z"]["null_value_count"] == 2
    assert (metrics["a.b"]["lower_bound"], metrics["a.b"]["upper_bound"], metrics["a.b"]["value_count"]) == (1, 2, 3)


@pytest.fixture
def evolved(catalog):
    """Several partition specs, deletes, a rewritten schema, a branch and a tag, by pyiceberg."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
    from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType

    schema = Schema(
        NestedField(1, "id", IntegerType()), NestedField(2, "p", StringType()), NestedField(3, "at", TimestampType())
    )
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))
    peer = catalog.create_table("db.evolved", schema, partition_spec=spec)
    when = [dt.datetime(2024, 1, 1), dt.datetime(1969, 12, 31, 23), None]
    kinds = [("id", pa.int32()), ("p", pa.string()), ("at", pa.timestamp("us"))]
    data = pa.table([[1, 2, 3], ["a", None, "b c/d"], when], schema=pa.schema(kinds))
    peer.append(data)
    peer.append(data.slice(1))
    with peer.update_spec() as update:
        update.add_field("at", DayTransform(), "day.of")
        update.add_field("id", BucketTransform(4), "four")
    peer.append(data)
    with peer.update_spec() as update:
        update.remove_field("p")
    with peer.update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column("p", "q.r")
        update.add_column("new", StringType())
    wider = pa.schema([("id", pa.int64()), ("q.r", pa.string()), ("at", pa.timestamp("us")), ("new", pa.string())])
    peer.append(pa.table([[7], ["a"], when[:1], ["n"]], schema=wider))
    peer.delete("id = 2")
    first = peer.metadata.snapshots[0].snapshot_id
    peer.manage_snapshots().create_tag(first, "tag", 123_456).create_branch(
        first, "branch", max_ref_age_ms=5, max_snapshot_age_ms=6, min_snapshots_to_keep=7
    ).commit()
    return peer


@pytest.mark.spec("I-073")
def test_specs_deletes_and_refs(evolved, manner):
    table = opened(evolved)
    names = [n for n in BY_PYICEBERG if n != "partitions"]
    compared(table, evolved, names)
    assert [f.name for f in table.inspect.files().schema.field("partition").type] == ["p", "day.of", "four"]
    refs = {r["name"]: r for r in table.inspect.refs().to_pylist()}
    assert refs["tag"]["type"] == "TAG" and refs["branch"]["min_snapshots_to_keep"] == 7
    assert set(table.inspect.entries()["status"].to_pylist()) >= {1, 2}
    # Bounds of four bytes, written before the column became a long.
    metrics = table.inspect.all_files()["readable_metrics"].to_pylist()
    assert {m["id"]["lower_bound"] for m in metrics} == {1, 2, 3, 7}


def test_partitions_of_several_specs_are_merged(evolved):
    """As the reference does it: tuples that are equal in the union of all specs are one partition, if the specs have as
    many fields."""
    table = opened(evolved)
    files = table.inspect.files().to_pylist()
    times = dict(zip(*(table.inspect.snapshots()[c].to_pylist() for c in ("snapshot_id", "committed_at"))))
    added = {e["data_file"]["file_path"]: e["snapshot_id"] for e in table.inspect.entries().to_pylist()}
    fields = {spec_id: len(spec.fields) for spec_id, spec in evolved.metadata.specs().items()}
    expected = {}
    for f in files:
        key = fields[f["spec_id"]], *f["partition"].values()
        e = expected.setdefault(key, [0, 0, 0, None, None])
        e[:3] = [e[0] + f["record_count"], e[1] + 1, e[2] + f["file_size_in_bytes"]]
        when = times[added[f["file_path"]]]
        if e[3] is None or when > e[3]:
            e[3:] = [when, f["spec_id"]]
    found = {
        (fields[r["spec_id"]], *r["partition"].values()): [
            r["record_count"], r["file_count"], r["total_data_file_size_in_bytes"], r["last_updated_at"], r["spec_id"]
        ]
        for r in table.inspect.partitions().to_pylist()
    }  # fmt: skip
    assert found == expected


@pytest.mark.few(1)
@pytest.mark.spec("I-183")
def test_time_travel(evolved, manner):
    current = {s.schema_id for s in evolved.metadata.snapshots}
    assert len(current) > 1
    for snapshot in evolved.metadata.snapshots[:4]:
        table = opened(evolved, version=snapshot.snapshot_id)
        for name in AT_A_SNAPSHOT:
            theirs = getattr(evolved.inspect, name)(snapshot.snapshot_id)
            if name == "partitions" or snapshot.schema_id != evolved.schema().schema_id:
                assert table.inspect.to_arrow(name).num_rows == theirs.num_rows
            else:
                agree(name, table.inspect.to_arrow(name), theirs)
        # What belongs to the table, not to the version, is the same in every version.
        for name in ("snapshots", "refs", "history", "all_files"):
            assert table.inspect.to_arrow(name).num_rows == opened(evolved).inspect.to_arrow(name).num_rows
    first = opened(evolved, version=evolved.metadata.snapshots[0].snapshot_id).inspect.files()
    assert first.schema.field("readable_metrics").type.field("id").type.field("lower_bound").type == pa.int32()
    assert {m["id"]["lower_bound"] for m in first["readable_metrics"].to_pylist()} == {1, 2, 3}


def test_empty_tables(catalog):
    for i, schema in enumerate((pa.schema([("id", pa.int64())]), pa.schema([]))):
        peer = catalog.create_table(f"db.empty{i}", schema)
        table = opened(peer)
        for name in NAMES:
            found = table.inspect.to_arrow(name)
            assert found.num_rows == (name == "metadata_log_entries"), name
            found.validate(full=True)
        compared(table, peer, [n for n in BY_PYICEBERG if n not in ("entries", "partitions")])
        assert "partition" not in table.inspect.files().column_names


def test_our_own_tables(make, manner):
    data = pa.table({"id": pa.array(range(40), pa.int64()), "p": ["a", "b", None, "d"] * 10})
    table, eyes = make(data, partition_by=["p", "bucket(3, id)"])
    table.delete("id < 3")
    table.append(data.slice(0, 5))
    table.set_properties({"k": "v"})
    names = [n for n in BY_PYICEBERG if n != "metadata_log_entries"]
    compared(bh.open(str(eyes.root)), eyes.pyiceberg(), names)
    log = bh.open(str(eyes.root)).inspect.metadata_log_entries().to_pylist()
    assert [Path(r["file"]).name for r in log] == [p.name for p in eyes.files("v*.metadata.json")]
    snapshots = [s["snapshot-id"] for s in eyes.document()["snapshots"]]
    assert [r["latest_snapshot_id"] for r in log] == [None, *snapshots, snapshots[-1]]
    assert [r["latest_sequence_number"] for r in log] == [None, 1, 2, 3, 3]


def rows_of(*ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "p": ["a"] * len(ids), "x": [float(i) for i in ids]})


@pytest.fixture
def deletes(tmp_path):
    """A table of version 3 with position deletes, equality deletes and deletion vectors."""
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])
    root = tmp_path / "t"
    bh.create(str(root), schema, format="iceberg", partition_by=["p"])
    foreign = Foreign(root)
    foreign.commit(*(foreign.data(rows_of(1, 2, 3), (1, 2, 3), {"p": "a"}, bounds=True) for _ in range(2)))
    one, two = foreign.live()
    foreign.commit(foreign.positions([(one, 0), (two, 2), (one, 1)], {"p": "a"}))
    foreign.commit(foreign.equality(pa.table({"id": pa.array([3], pa.int64())}), (1,), partition={"p": "a"}))
    foreign.upgrade()
    foreign.commit(*foreign.vectors({one: [1, 2], two: [0]}, {"p": "a"}))
    return foreign, one, two


@pytest.mark.spec("I-163", "I-165")
def test_deletes_of_every_kind(deletes, manner):
    foreign, one, two = deletes
    table = bh.open(str(foreign.root))
    from pyiceberg.table import StaticTable

    peer = StaticTable.from_metadata(f"file://{foreign.head}")
    compared(table, peer, [n for n in BY_PYICEBERG if n not in ("entries", "metadata_log_entries")])
    found = table.inspect.delete_files().to_pylist()
    assert [(f["content"], f["file_format"], f["record_count"]) for f in found] == [
        (1, "PARQUET", 3), (2, "PARQUET", 1), (1, "PUFFIN", 2), (1, "PUFFIN", 1),
    ]  # fmt: skip
    assert [f["equality_ids"] for f in found] == [None, [1], None, None]
    assert [f["referenced_data_file"] for f in found] == [None, None, one, two]
    assert [f["content_offset"] is None for f in found] == [True, True, False, False]
    assert table.inspect.files().num_rows == 6 and table.inspect.data_files().num_rows == 2
    (partition,) = table.inspect.partitions().to_pylist()
    counts = [partition[n] for n in partition if n.endswith("_count")]
    assert counts == [6, 2, 6, 3, 1, 1] and partition["partition"] == {"p": "a"}


def test_position_deletes(deletes):
    foreign, one, two = deletes
    found = bh.open(str(foreign.root)).inspect.position_deletes()
    assert found.column_names == [
        "file_path", "pos", "row", "partition", "spec_id", "delete_file_path", "content_offset",
        "content_size_in_bytes",
    ]  # fmt: skip
    rows = found.to_pylist()
    positions = sorted((r["file_path"], r["pos"]) for r in rows if r["content_offset"] is None)
    assert positions == sorted([(one, 0), (one, 1), (two, 2)])
    vectors = sorted((r["file_path"], r["pos"]) for r in rows if r["content_offset"] is not None)
    assert vectors == sorted([(one, 1), (one, 2), (two, 0)])
    assert {r["partition"]["p"] for r in rows} == {"a"} and {r["row"] for r in rows} == {None}
    files = bh.open(str(foreign.root)).inspect.delete_files().to_pylist()
    assert {r["delete_file_path"] for r in rows} == {f["file_path"] for f in files if f["content"] == 1}


@pytest.mark.spec("I-103", "I-263")
def test_position_deletes_with_the_deleted_rows(tmp_path):
    root = tmp_path / "t"
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    bh.create(str(root), schema, format="iceberg")
    foreign = Foreign(root)
    foreign.commit(foreign.data(pa.table([[1, 2], ["a", "b"]], schema), (1, 2)))
    (path,) = foreign.live()
    members = [schema.field(i).with_metadata({b"PARQUET:field_id": str(i + 1).encode()}) for i in range(2)]
    row = pa.array([{"id": 2, "name": "b"}, None], pa.struct(members))
    file = pa.table({"file_path": [path, None], "pos": pa.array([1, None], pa.int64()), "row": row})
    foreign.commit(foreign.parquet(file, (PATH_ID, POSITION_ID, 2147483544), 1))
    found = bh.open(str(root)).inspect.position_deletes()
    assert found.column_names == ["file_path", "pos", "row", "spec_id", "delete_file_path"]
    assert found.select(["file_path", "pos", "row"]).to_pylist() == [
        {"file_path": path, "pos": 1, "row": {"id": 2, "name": "b"}}
    ]


def test_columns_and_types_are_those_of_the_reference(make):
    table, _ = make(pa.table({"id": [1], "p": ["a"]}), partition_by=["p"])
    files = table.inspect.files().schema
    assert files.names == [
        "content", "file_path", "file_format", "spec_id", "partition", "record_count", "file_size_in_bytes",
        "column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds",
        "key_metadata", "split_offsets", "equality_ids", "sort_order_id", "first_row_id", "referenced_data_file",
        "content_offset", "content_size_in_bytes", "readable_metrics",
    ]  # fmt: skip
    entries = table.inspect.entries().schema
    assert entries.names == [
        "status", "snapshot_id", "sequence_number", "file_sequence_number", "data_file", "readable_metrics"
    ]  # fmt: skip
    assert [f.name for f in entries.field("data_file").type] == files.names[:-1]
    for name in (n for n in NAMES if n.endswith("_files")):
        assert table.inspect.to_arrow(name).schema == files, name
    assert table.inspect.snapshots().schema.field("committed_at").type == pa.timestamp("us", "UTC")
    more = ["reference_snapshot_id", "key_metadata"]
    assert [*table.inspect.manifests().column_names, *more] == table.inspect.all_manifests().column_names


def test_small_and_large_manifests_together(make, monkeypatch):
    """Batches of small manifests between large ones, in the order of the manifests."""
    monkeypatch.setattr(manifest_reader, "FEW", 3)
    monkeypatch.setattr(inspect_rows, "_BATCH", 4)
    table, eyes = make(pa.table({"id": pa.array([0], pa.int64())}))
    for size in (2, 5, 1, 1, 6, 2, 2, 2, 1):
        table.append(pa.table({"id": pa.array(range(size), pa.int64())}), target_file_bytes=1)
    peer = eyes.pyiceberg()
    compared(bh.open(str(eyes.root)), peer, ["files", "entries", "all_files"])
    mine = bh.open(str(eyes.root)).inspect.files()["file_path"].to_pylist()
    assert mine == peer.inspect.files()["file_path"].to_pylist()


@pytest.mark.parametrize("rows", [0, 1, 5, 9, 40, 5000])
def test_items_of_arrays(rows):
    """Arrays in one block or several, some null, some empty, few long ones among many short ones."""
    pair = {"type": "record", "name": "kv", "fields": [
        {"name": "key", "type": "int", "field-id": 126},
        {"name": "value", "type": "bytes", "field-id": 127}]}  # fmt: skip
    schema = {"type": "record", "name": "r", "fields": [
        {"name": "m", "type": ["null", {"type": "array", "items": pair, "logicalType": "map"}], "field-id": 125},
        {"name": "l", "type": ["null", {"type": "array", "items": "long"}], "field-id": 132}]}  # fmt: skip
    dice = random.Random(rows)
    size = [0, 0, 1, 2, 2, 2, 2, 20]
    records = []
    for i in range(rows):
        many = 400 if i == 3 else dice.choice(size)
        found = [{"key": dice.choice([k, -1, 2**31 - 1]), "value": bytes([k % 256]) * (k % 90)} for k in range(many)]
        longs = [dice.choice([0, -1, 2**62, -(2**63)]) for _ in range(dice.choice(size))]
        records.append({"m": dice.choice([found, found, None]), "l": dice.choice([longs, None])})
    out = io.BytesIO()
    fastavro.writer(out, schema, records, sync_interval=dice.choice([1, 100, 1 << 20]))
    container = avro.parse(out.getvalue(), "x")
    names = {125: "m", 132: "l", 126: "key", 127: "value"}
    columns = avro_columns.read(container, avro.by_ids(container.schema, names, "x"), frozenset({("m",), ("l",)}))
    maps, lists = avro_items.maps(columns, ("m",), BOUNDS, []), avro_items.lists(columns, ("l",), LONGS)
    maps.validate(full=True)
    lists.validate(full=True)
    expected = [None if r["m"] is None else [(p["key"], p["value"]) for p in r["m"]] for r in records]
    assert maps.to_pylist() == expected
    assert lists.to_pylist() == [r["l"] for r in records]
    keep = [i for i in range(rows) if i % 3]
    some = columns.take(np.array(keep, np.int64))
    assert avro_items.maps(some, ("m",), BOUNDS, []).to_pylist() == [expected[i] for i in keep]
    assert (columns.places[("m",)] == ABSENT).tolist() == [r["m"] is None for r in records]


def test_blocks_with_their_size_in_bytes():
    """Arrays of several blocks, whose counts are negative where the size of the block follows."""
    one = b"".join(map(avro.long_bytes, (2, 7, -8, -1, 2, 300)))
    two = avro.long_bytes(0)
    data = [one + avro.long_bytes(0), two] * 12
    starts = np.cumsum([0, *map(len, data)])[:-1]
    found = avro_items.items(Buffer.of(data), ["long"], np.array(starts, np.int64))
    assert found.fields[0].tolist() == [7, -8, 300] * 12
    assert found.offsets.tolist() == [0, *(3 * (i // 2 + 1) for i in range(24))]


@pytest.mark.parametrize(
    ("first", "content", "expected"),
    [(1000, 0, [1000, None, 300, 1050, 7, 1075]), (None, 0, [None] * 6), (1000, 1, [None] * 6)],
)
def test_inherited_row_ids(first, content, expected):
    """Files without an id get that of their manifest's first row plus the rows of those before; deleted ones none."""
    kept = [(1, None, 50), (2, None, 10), (0, 300, 5), (0, None, 25), (1, 7, 1), (1, None, 1)]
    found = []
    for i, (status, id, rows) in enumerate(kept):
        file = {"content": content, "file_path": f"f{i}", "file_format": "PARQUET", "partition": {},
                "record_count": rows, "file_size_in_bytes": 1, "first_row_id": id}  # fmt: skip
        numbers = {"snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1}
        found.append({"status": status, **numbers, "data_file": file})
    out = io.BytesIO()
    fastavro.writer(out, entry_schema([]), found)
    row = {"manifest_path": "m", "partition_spec_id": 0, "content": content, "sequence_number": 1,
           "added_snapshot_id": 1, "first_row_id": first}  # fmt: skip
    opened = entries.Opened.of(out.getvalue(), manifests.manifest_file(row, "l"), "m")
    few = opened.few(1).records(live_only=False)
    number_rows(few, opened.source)
    assert [e["data_file"]["first_row_id"] for e in few] == expected
    (whole,) = entries.decoded_together([opened.many()], True)
    files = whole.files(live_only=False)
    ids = row_ids(files.columns, files.rows, opened.source, pa.nulls(6, pa.int64()))
    assert ids.to_pylist() == expected
    live = row_ids(whole.live.columns, whole.live.rows, opened.source, pa.nulls(5, pa.int64()))
    assert live.to_pylist() == [e for e, (status, _, _) in zip(expected, kept) if status != 2]


def test_a_name_that_is_none(make):
    table, _ = make(pa.table({"id": [1]}))
    for name in ("file", None, 3, "FILES"):
        with pytest.raises(InvalidArgumentError, match=r"is not a metadata table.*all_entries"):
            table.inspect.to_arrow(name)
    assert "iceberg" in repr(table.inspect)


@pytest.mark.spec("I-217")
@pytest.mark.parametrize("refs", [None, {}, {"other": {"snapshot-id": 0, "type": "branch"}}])
def test_main_is_always_there(make, refs):
    _, eyes = make(pa.table({"id": [1]}))
    document = eyes.document()
    current = document["current-snapshot-id"]
    document["refs"] = refs and {name: {**ref, "snapshot-id": current} for name, ref in refs.items()}
    eyes.head().write_text(json.dumps(document))
    found = bh.open(str(eyes.root)).inspect.refs().to_pylist()
    names = {r["name"] for r in found}
    assert names == {*(refs or ()), "main"} and {(r["type"], r["snapshot_id"]) for r in found} == {("BRANCH", current)}


def test_damaged_refs_and_missing_manifests(make):
    _, eyes = make(pa.table({"id": [1]}))
    document = eyes.document()
    document["refs"]["main"]["max-ref-age-ms"] = "long"
    eyes.head().write_text(json.dumps(document))
    with pytest.raises(CorruptTableError, match="max-ref-age-ms 'long'"):
        bh.open(str(eyes.root)).inspect.refs()
    Path(eyes.manifests()[0]["manifest_path"].removeprefix("file://")).unlink()
    for name in ("files", "entries", "partitions", "all_files"):
        with pytest.raises(BoathouseError, match="missing"):
            bh.open(str(eyes.root)).inspect.to_arrow(name)


LONG = ("generated_bounds",)
"""Tables of hundreds of versions."""


def folders():
    if not DUCKDB.exists():
        return
    for metadata in sorted(DUCKDB.glob("data/persistent/**/metadata")):
        name = str(metadata.parent.relative_to(DUCKDB / "data/persistent"))
        yield pytest.param(metadata.parent, id=name, marks=pytest.mark.slow if name in LONG else ())


@pytest.mark.few(12)
@pytest.mark.parametrize("folder", list(folders()))
@pytest.mark.filterwarnings("ignore")
def test_tables_of_other_writers(folder, monkeypatch):
    """Every table of the corpus that we read, as far as pyiceberg reads it."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.table import StaticTable

    monkeypatch.chdir(DUCKDB)
    try:
        table = bh.open(str(folder), format="iceberg")
        mine = {name: table.inspect.to_arrow(name) for name in NAMES}
    except (UnsupportedFeatureError, TableNotFoundError, MissingFileError) as error:
        pytest.xfail(f"refused: {error}")
    for found in mine.values():
        found.validate(full=True)
    try:
        peer = StaticTable.from_metadata(table._handle.snapshot.token)
    except ValidationError as error:
        pytest.skip(f"pyiceberg does not open it: {error}")
    done = 0
    for name in BY_PYICEBERG:
        try:
            theirs = getattr(peer.inspect, name)()
        except Exception:  # what it cannot read it refuses in many ways
            continue
        if name != "partitions" or len(peer.specs()) == 1:
            agree(name, mine[name], theirs)
        done += 1
    assert done >= 4


@pytest.mark.spark
def test_spark(make, spark):
    data = pa.table({"id": pa.array(range(4), pa.int64()), "p": ["a", "b"] * 2})
    _, eyes = make(data, partition_by=["p"])
    table = bh.open(str(eyes.root), spark=spark)
    some = table.inspect.to_spark("files", ["file_path", "partition"])
    assert sorted(r["partition"]["p"] for r in some.collect()) == ["a", "b"]
    with pytest.raises(BoathouseError, match="no column `x`"):
        table.inspect.to_spark("files", ["x"])


def test_relocated_tables_keep_recorded_paths(make, tmp_path):
    """Paths are as the metadata records them, wherever the table is now."""
    _, eyes = make(pa.table({"id": [1]}))
    recorded = bh.open(str(eyes.root)).inspect.files()["file_path"].to_pylist()
    shutil.move(eyes.root, tmp_path / "moved")
    moved = bh.open(str(tmp_path / "moved"), relocated={str(eyes.root): str(tmp_path / "moved")})
    assert moved.inspect.files()["file_path"].to_pylist() == recorded


def test_null_records_in_parquet(tmp_path):
    """A delete file of nulls only has no positions."""
    root = tmp_path / "t"
    bh.create(str(root), pa.schema([("id", pa.int64())]), format="iceberg")
    foreign = Foreign(root)
    nothing = pa.table({"file_path": pa.array([None], pa.string()), "pos": pa.array([None], pa.int64())})
    foreign.commit(foreign.parquet(nothing, (PATH_ID, POSITION_ID), 1))
    assert bh.open(str(root)).inspect.position_deletes().num_rows == 0


def test_names_of_floats_and_paths(tmp_path):
    """As Java spells them."""
    path = str(tmp_path / "t")
    values = [float("inf"), float("-inf"), float("nan"), 1e10, -0.0, 1.5]
    bh.write(pa.table({"x": values}), path, format="iceberg", partition_by=["x"])
    bounds = bh.open(path).inspect.manifests().to_pylist()[0]["partition_summaries"][0]
    assert (bounds["lower_bound"], bounds["upper_bound"]) == ("-Infinity", "Infinity")
    files = bh.open(path).inspect.files()["file_path"].to_pylist()
    assert {f.split("/x=")[1].split("/")[0] for f in files} == {"Infinity", "-Infinity", "NaN", "1.0E10", "-0.0", "1.5"}


def test_the_document_itself_is_named_as_its_location(tmp_path):
    path = tmp_path / "t"
    bh.write(pa.table({"x": [1]}), str(path), format="iceberg")
    bh.open(str(path)).append(pa.table({"x": [2]}))
    assert (
        bh.open(str(path)).inspect.metadata_log_entries()["file"][-1].as_py()
        == f"file://{path}/metadata/v2.metadata.json"
    )
    for document in (path / "metadata").glob("*.json"):
        document.write_text(document.read_text().replace(f"file://{path}", str(path)))
    log = bh.open(str(path)).inspect.metadata_log_entries()["file"].to_pylist()
    assert log == [f"{path}/metadata/v{n}.metadata.json" for n in (1, 2)]


def test_equal_tuples_of_specs_with_other_fields(catalog):
    """As the reference does it: partitions of two specs are one only if the specs have as many fields."""
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    schema = Schema(NestedField(1, "a", LongType()), NestedField(2, "b", LongType()))
    peer = catalog.create_table("db.specs", schema)
    data = pa.table({"a": pa.array([None], pa.int64()), "b": pa.array([None], pa.int64())})
    peer.append(data)
    for name in "ab":
        with peer.update_spec() as update:
            update.add_identity(name)
        peer.append(data)
        peer.append(data)
    found = opened(peer).inspect.partitions().to_pylist()
    assert all(row["partition"] == {"a": None, "b": None} for row in found)
    assert sorted((row["spec_id"], row["file_count"]) for row in found) == [(0, 1), (1, 2), (2, 2)]

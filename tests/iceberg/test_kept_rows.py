"""Rows that must neither go nor come back: totals, promoted columns, deletes of other writers; and what is refused."""

import copy
import datetime as dt
import io
import json
import logging
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.avro import container as avro
from boathouse.cli import survey
from boathouse.errors import CorruptTableError, MissingFileError, NotFoundError, UnsupportedFeatureError
from boathouse.iceberg.manifests import totals
from boathouse.iceberg.manifests.records import read_list
from boathouse.iceberg.manifests.schemas import FILE_PATH_ID, POSITION_ID
from boathouse.iceberg.manifests.values import decode, from_avro
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.types import DATE, TIMESTAMP, TIMESTAMP_NTZ, DecimalType, TimestampType

DATA = pa.table({"id": pa.array(range(6), pa.int64()), "p": ["a", "b"] * 3})


def edit(eyes, change):
    document = eyes.document()
    change(document)
    eyes.head().write_text(json.dumps(document))


def local(uri):
    return uri.removeprefix("file://")


def per_block(path, keep):
    """The Avro file with one record a block, and of the blocks the first `keep`: cut at a border, it reads well."""
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        rows, schema = list(reader), reader.writer_schema
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
    out = io.BytesIO()
    fastavro.writer(out, schema, rows, metadata=header, sync_interval=1, codec="null")
    blocks = avro.parse(out.getvalue(), "x").blocks
    assert len(blocks) == len(rows)
    size = len(out.getvalue()) - sum(len(avro.long_bytes(1) + avro.long_bytes(len(b))) + len(b) + 16
                                     for _, b in blocks[keep:])  # fmt: skip
    with open(path, "wb") as file:
        file.write(out.getvalue()[:size])
    assert len(avro.parse(out.getvalue()[:size], "x").blocks) == keep


@pytest.fixture
def three(make):
    """A table of three appends, hence of three manifests."""
    table, eyes = make(DATA.slice(0, 2), partition_by=["p"])
    table.append(DATA.slice(2, 2))
    table.append(DATA.slice(4))
    return eyes


@pytest.mark.parametrize("keep", [0, 1, 2])
@pytest.mark.parametrize("where", [None, "id >= 0", "p = 'a'"])
def test_a_manifest_list_cut_between_blocks_is_damage(three, keep, where):
    path = local(three.snapshot()["manifest-list"])
    per_block(path, keep)
    with pytest.raises(
        CorruptTableError, match=rf"{2 * keep} live data files, but the summary of snapshot \d+ counts 6"
    ) as e:
        bh.open(str(three.root)).scan(where=where).to_arrow()
    assert path in str(e.value) and "verify=False" in str(e.value)
    with pytest.raises(CorruptTableError):
        bh.open(str(three.root)).append(DATA)
    with pytest.raises(CorruptTableError):
        bh.open(str(three.root)).count()
    assert bh.open(str(three.root), verify=False).count() == 2 * keep


@pytest.mark.parametrize("keep", [0, 1])
def test_a_manifest_cut_between_blocks_is_damage(three, keep):
    path = local(three.manifests()[0]["manifest_path"])
    per_block(path, keep)
    with pytest.raises(CorruptTableError, match=f"{keep} live files, but the manifest list counts 2") as caught:
        bh.open(str(three.root)).to_arrow()
    assert path in str(caught.value)
    assert bh.open(str(three.root), verify=False).count() == 4 + keep


def without_counts(three):
    """The manifest list as version 1 has it: no counts."""
    path = local(three.snapshot()["manifest-list"])
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        rows, schema = list(reader), copy.deepcopy(reader.writer_schema)
    counts = ("added_files_count", "existing_files_count", "deleted_files_count")
    schema["fields"] = [f for f in schema["fields"] if f["name"] not in counts]
    with open(path, "wb") as file:
        fastavro.writer(file, schema, [{k: v for k, v in r.items() if k not in counts} for r in rows])


def test_lists_without_counts_are_held_against_the_summary_once_all_is_read(three):
    without_counts(three)
    assert bh.open(str(three.root)).count() == 6
    per_block(local(three.manifests()[0]["manifest_path"]), 1)
    with pytest.raises(CorruptTableError, match=r"the manifests have 5 live files, but the summary .* counts 6"):
        bh.open(str(three.root)).to_arrow()


def test_the_sizes_are_the_sums_over_the_files(make, position_deletes):
    """With position deletes the rows are unknown; manifests that lost files are damage here as for a scan."""
    table, eyes = make(DATA)
    table.append(DATA)
    files = [f for batch in table._handle.snapshot.files() for f in batch.to_pylist()]
    sizes = table._handle.snapshot.sizes()
    assert (
        (sizes.files, sizes.bytes)
        == (2, sum(f["size"] for f in files))
        == (2, sum(p.stat().st_size for p in eyes.root.glob("data/*")))
    )
    assert (sizes.rows, sizes.deleted) == (sum(f["rows"] for f in files), 0) == (2 * DATA.num_rows, 0)
    position_deletes(eyes, pa.table({"file_path": [files[0]["path"]], "pos": pa.array([2], pa.int64())}))
    found = bh.open(str(eyes.root))._handle.snapshot
    assert {d for batch in found.files() for d in batch.column("deleted").to_pylist()} == {None}
    sizes = found.sizes()
    assert (sizes.files, sizes.rows, sizes.deleted, sizes.small_files) == (2, None, None, 2)


def test_a_lost_manifest_of_deletes_is_damage(make, position_deletes):
    _, eyes = make(DATA)
    rows = pa.table({"file_path": [eyes.live()[0]["file_path"]], "pos": pa.array([2], pa.int64())})
    position_deletes(eyes, rows)
    totals_ = {"total-data-files": "1", "total-delete-files": "1", "total-files-size": "1"}
    edit(eyes, lambda d: d["snapshots"][-1]["summary"].update(totals_))
    assert bh.open(str(eyes.root)).to_arrow()["id"].to_pylist() == [0, 1, 3, 4, 5]
    per_block(local(eyes.snapshot()["manifest-list"]), 1)
    with pytest.raises(CorruptTableError, match="0 live delete files, but the summary"):
        bh.open(str(eyes.root)).to_arrow()


WRITERS = {
    # DuckDB 1.4 and 1.5 count delete manifests as data files; what tells them is that total-files-size is missing.
    "duckdb": {"operation": "append", "added-data-files": "2", "added-records": "3", "deleted-data-files": "0",
               "deleted-records": "0", "total-data-files": "9", "total-records": "3"},
    "java, after a file that was listed twice": {
        "operation": "delete", "deleted-data-files": "1", "deleted-duplicate-files": "1", "total-data-files": "9",
        "total-delete-files": "0", "total-files-size": "9"},
    "totals that are no numbers": {"operation": "append", "total-data-files": "²", "total-files-size": "many"},
    "no totals": {"operation": "append"},
    "fewer than there are": {"operation": "append", "total-data-files": "1", "total-files-size": "9"},
}  # fmt: skip


@pytest.mark.parametrize("writer", WRITERS)
def test_writers_that_count_wrongly_are_read(three, writer):
    edit(three, lambda d: d["snapshots"][-1].update(summary=WRITERS[writer]))
    assert bh.open(str(three.root)).count() == 6
    assert bh.open(str(three.root)).history()


def test_a_duplicate_in_an_older_snapshot_poisons_the_totals_after_it(three):
    edit(three, lambda d: d["snapshots"][0]["summary"].update({"deleted-duplicate-files": "2"}))
    edit(three, lambda d: d["snapshots"][-1]["summary"].update({"total-data-files": "8"}))
    assert bh.open(str(three.root)).count() == 6
    document = three.document()
    metadata = TableMetadata(document, "x")
    assert totals.recorded(metadata, document["snapshots"][-1]) == {}


@pytest.mark.parametrize("name", ["pyiceberg"])
def test_totals_of_others_are_believed(catalog, name):
    table = catalog.create_table("db.t", DATA.schema)
    for i in range(3):
        table.append(DATA.slice(2 * i, 2))
    table.delete("id = 3")
    location = local(table.metadata_location)
    document = json.loads(Path(location).read_text())
    metadata = TableMetadata(document, location)
    snapshot = next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
    found = totals.recorded(metadata, snapshot)
    rows = read_list(Path(local(snapshot["manifest-list"])).read_bytes(), "x")
    assert found[0] == sum(m.live_files for m in rows) == 3
    assert bh.open(location).count() == 5


# --- columns that were promoted


@pytest.mark.parametrize(
    ("data", "type", "expected"),
    [
        (b"\x01\0\0\0", TIMESTAMP_NTZ, 86_400_000_000), (b"\xff\xff\xff\xff", TIMESTAMP_NTZ, -86_400_000_000),
        (b"\x01\0\0\0", TimestampType(utc=False, unit="ns"), 86_400_000_000_000),
        (b"\x01\0\0\0\0\0\0\0", TIMESTAMP, 1), (b"\x01\0\0\0", DATE, 1),
    ],
)  # fmt: skip
def test_bounds_of_four_bytes_are_days_in_a_timestamp(data, type, expected):
    assert decode(data, type) == expected


def promoted(document):
    document.update({"format-version": 3, "next-row-id": 4})
    schema = copy.deepcopy(document["schemas"][0])
    schema["schema-id"] = 1
    schema["fields"][1]["type"] = "timestamp"
    document["schemas"].append(schema)
    document["current-schema-id"] = 1
    for snapshot in document["snapshots"]:
        snapshot.update({"first-row-id": 0, "added-rows": 2})


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("d > TIMESTAMP_NTZ '2000-01-01 00:00:00'", [2]), ("d < TIMESTAMP_NTZ '2000-01-01 00:00:00'", [1]),
        ("d = TIMESTAMP_NTZ '1950-05-05 00:00:00'", [1]), ("d >= TIMESTAMP_NTZ '2024-01-01 00:00:00'", [2]),
        ("d > TIMESTAMP_NTZ '2024-01-01 00:00:00'", []), ("d IS NOT NULL", [1, 2]),
    ],
)  # fmt: skip
def test_a_date_that_became_a_timestamp(make, where, expected):
    days = [dt.date(1950, 5, 5), dt.date(2024, 1, 1)]
    table, eyes = make(pa.table({"id": [1], "d": days[:1]}))
    table.append(pa.table({"id": [2], "d": days[1:]}))
    edit(eyes, promoted)
    assert sorted(bh.open(str(eyes.root)).scan(where=where).to_arrow()["id"].to_pylist()) == expected


# --- deletes of other writers


def test_equality_deletes_under_a_spec_of_void_fields_are_global(make, position_deletes):
    _, eyes = make(DATA, partition_by=["p"])
    void = {"source-id": 2, "field-id": 1000, "name": "p", "transform": "void"}
    edit(eyes, lambda d: d["partition-specs"].append({"spec-id": 1, "fields": [void]}))
    key = pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": b"1"})
    position_deletes(eyes, pa.table([[1]], pa.schema([key])), {1000: None}, content=2, spec=1)
    assert 1 in DATA["id"].to_pylist() and 1 not in bh.open(str(eyes.root)).to_arrow()["id"].to_pylist()


@pytest.mark.spec("I-334", "I-113")
@pytest.mark.parametrize("value", [3, "x", True, b"ab", 1.5])
def test_position_deletes_in_partitions_of_an_unknown_transform(make, position_deletes, value):
    kind = {int: "int", str: "string", bool: "boolean", bytes: "bytes", float: "double"}[type(value)]
    _, eyes = make(DATA, partition_by=["bucket(4, id)"])

    def retyped(path, values):
        """The manifest with partition values of another Avro type."""
        with open(path, "rb") as file:
            reader = fastavro.reader(file)
            rows, schema = list(reader), copy.deepcopy(reader.writer_schema)
            header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        record = next(f for f in schema["fields"] if f["name"] == "data_file")["type"]
        (field,) = next(f for f in record["fields"] if f["name"] == "partition")["type"]["fields"]
        field["type"] = ["null", kind]
        for row in rows:
            row["data_file"]["partition"] = {field["name"]: value}
        with open(path, "wb") as file:
            fastavro.writer(file, schema, rows, metadata=header)
        return rows

    rows = retyped(local(eyes.manifests()[0]["manifest_path"]), value)
    file = next(r["data_file"] for r in rows if r["data_file"]["record_count"] > 1)
    gone = pq.read_table(local(file["file_path"]))["id"][1].as_py()
    position_deletes(eyes, pa.table({"file_path": [file["file_path"]], "pos": pa.array([1], pa.int64())}), {1000: 3})
    retyped(next(local(m["manifest_path"]) for m in eyes.manifests() if m["content"] == 1), value)
    edit(eyes, lambda d: d["partition-specs"][0]["fields"][0].update(transform="zorder[3]"))
    found = bh.open(str(eyes.root)).to_arrow()["id"].to_pylist()
    assert sorted(found) == [i for i in range(6) if i != gone]
    with pytest.raises(UnsupportedFeatureError, match=r"zorder\[3\]"):
        bh.open(str(eyes.root)).append(DATA)


@pytest.mark.parametrize(
    "pairs",
    [[("f", None), (None, 1), ("f", 4)], [(None, None), ("f", 4)], [("f", 4), (None, 0), (None, 0)]],
)
def test_null_records_of_a_position_delete_file_delete_nothing(make, position_deletes, pairs):
    _, eyes = make(DATA)
    path = eyes.live()[0]["file_path"]
    ids = [{b"PARQUET:field_id": str(k).encode()} for k in (FILE_PATH_ID, POSITION_ID)]
    schema = pa.schema([pa.field("file_path", pa.string(), True, ids[0]), pa.field("pos", pa.int64(), True, ids[1])])
    rows = pa.table([[f and path for f, _ in pairs], [n for _, n in pairs]], schema=schema)
    position_deletes(eyes, rows)
    assert bh.open(str(eyes.root)).to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 5]


def test_only_null_records(make, position_deletes):
    _, eyes = make(DATA)
    position_deletes(eyes, pa.table({"file_path": pa.nulls(3, pa.string()), "pos": pa.nulls(3, pa.int64())}))
    assert bh.open(str(eyes.root)).count() == 6


def test_a_negative_position_is_damage(make, position_deletes):
    _, eyes = make(DATA)
    path = eyes.live()[0]["file_path"]
    position_deletes(eyes, pa.table({"file_path": [path], "pos": pa.array([-1], pa.int64())}))
    with pytest.raises(CorruptTableError, match="negative position"):
        bh.open(str(eyes.root)).to_arrow()


def test_partition_values_are_of_their_type():
    assert from_avro(b"\xff", DecimalType(3, 1)) == -1
    for value, type in ((b"\x7f\xff", DecimalType(3, 1)), ("x", DATE), (1 << 40, DATE), (True, TIMESTAMP)):
        with pytest.raises(ValueError, match="is not"):
            from_avro(value, type)


# --- kinds of errors, and their words


def test_a_missing_manifest_and_a_missing_list_are_one_kind_of_error(make):
    for name in ("manifest", "list"):
        _, eyes = make(DATA, name=name)
        path = local({"manifest": eyes.manifests()[0]["manifest_path"], "list": eyes.snapshot()["manifest-list"]}[name])
        Path(path).unlink()
        with pytest.raises(MissingFileError, match="missing") as caught:
            bh.open(str(eyes.root)).to_arrow()
        assert path in str(caught.value) and not isinstance(caught.value, NotFoundError)


def test_a_missing_delete_file_is_the_same_kind(make, position_deletes):
    _, eyes = make(DATA)
    rows = pa.table({"file_path": [eyes.live()[0]["file_path"]], "pos": pa.array([2], pa.int64())})
    position_deletes(eyes, rows)
    (path,) = eyes.root.glob("data/deletes-*")
    path.unlink()
    with pytest.raises(MissingFileError, match="delete file") as caught:
        bh.open(str(eyes.root)).to_arrow()
    assert str(path) in str(caught.value)


def changed_entry(eyes, **members):
    path = local(eyes.manifests()[0]["manifest_path"])
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        rows, schema = list(reader), reader.writer_schema
    rows[0]["data_file"].update(members)
    with open(path, "wb") as file:
        fastavro.writer(file, schema, rows)


def parquet_encrypted(eyes):
    path = Path(local(eyes.live()[0]["file_path"]))
    path.write_bytes(path.read_bytes()[:-4] + b"PARE")


def avro_encrypted(eyes):
    Path(local(eyes.snapshot()["manifest-list"])).write_bytes(b"AGS1" + bytes(99))


ENCRYPTED = {
    "a data file's key": lambda eyes: changed_entry(eyes, key_metadata=b"key"),
    "a footer": parquet_encrypted,
    "a manifest list": avro_encrypted,
    "a snapshot's key": lambda eyes: edit(eyes, lambda d: d["snapshots"][0].update({"key-id": "k"})),
}


@pytest.mark.spec("I-336")
@pytest.mark.parametrize("what", ENCRYPTED)
@pytest.mark.feature("encryption", format="iceberg")
def test_encrypted_files_are_refused_by_that_name(make, what):
    _, eyes = make(DATA)
    ENCRYPTED[what](eyes)
    with pytest.raises(UnsupportedFeatureError, match="encrypt"):
        bh.open(str(eyes.root)).to_arrow()
    row = survey.describe(str(eyes.root), "iceberg", {})
    assert row["readable"] is False and "encrypt" in row["why"]


@pytest.mark.spec("I-268")
def test_the_advice_for_another_format_can_be_followed(make):
    _, eyes = make(DATA, properties={"write.format.default": "vortex"}, append=False)
    with pytest.raises(UnsupportedFeatureError, match="written as vortex") as caught:
        bh.open(str(eyes.root)).append(DATA)
    assert "set the property write.format.default to parquet" in str(caught.value).lower()
    table = bh.open(str(eyes.root))
    table.set_properties({"owner": "us"})
    table.set_properties({"write.format.default": "parquet"})
    table.append(DATA)
    assert table.count() == DATA.num_rows


def lost_file(eyes):
    Path(local(eyes.live()[0]["file_path"])).unlink()


def lost_manifest(eyes):
    Path(local(eyes.manifests()[0]["manifest_path"])).unlink()


def other_bytes(eyes):
    Path(local(eyes.live()[0]["file_path"])).write_bytes(b"x" * 99)


UNREADABLE = {
    "Lance": (lambda eyes: changed_entry(eyes, file_format="LANCE"), "Lance"),
    "a lost data file": (lost_file, "missing"),
    "a lost manifest": (lost_manifest, "missing"),
    "a path of another scheme": (lambda eyes: changed_entry(eyes, file_path="s3://b/x.parquet"), "allow_foreign_paths"),
    "a file that is not Parquet": (other_bytes, "Parquet"),
}  # fmt: skip


@pytest.mark.parametrize("what", UNREADABLE)
def test_inventory_calls_readable_what_is_read(make, what):
    logging.getLogger("boathouse").setLevel(logging.ERROR)
    _, eyes = make(DATA)
    row = survey.describe(str(eyes.root), "iceberg", {})
    assert row["readable"] is row["writable"] is True and row["why"] is None
    break_, words = UNREADABLE[what]
    break_(eyes)
    row = survey.describe(str(eyes.root), "iceberg", {})
    assert row["readable"] is row["writable"] is False and words in row["why"]


def test_inventory_of_equality_deletes(make, position_deletes):
    _, eyes = make(DATA)
    key = pa.field("id", pa.int64(), metadata={b"PARQUET:field_id": b"1"})
    position_deletes(eyes, pa.table([[1]], pa.schema([key])), content=2)
    row = survey.describe(str(eyes.root), "iceberg", {})
    assert row["readable"] is row["writable"] is True and row["why"] is None

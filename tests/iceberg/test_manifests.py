"""Manifests and manifest lists: the bytes that we write, and those of others."""

import io
import json
import math
import struct
import zlib
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.avro import container as avro
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.manifests import records as manifests
from boathouse.iceberg.manifests import writer as manifest_writer
from boathouse.iceberg.manifests.columns import of_entries
from boathouse.iceberg.metadata.versions import NEW
from boathouse.types import PartitionSpec

DATA = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "f": pa.array([math.nan, -0.0, 0.0], pa.float64()),
        "all_null": pa.array([None, None, None], pa.string()),
        "all_nan": pa.array([math.nan] * 3, pa.float32()),
        "text": ["a" * 40, "b" * 40, "💥" * 20],
        "li": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "p": ["x", "x", "y"],
    }
)


def plain(pairs):
    return None if pairs is None else {p["key"]: p["value"] for p in pairs}


@pytest.mark.spec("I-140", "I-141", "I-142", "I-143", "I-328")
def test_the_key_value_metadata_of_a_manifest(make):
    table, eyes = make(DATA, partition_by=["p"])
    row = eyes.manifests()[0]
    _, found = eyes.avro(row["manifest_path"])
    assert json.loads(found["partition-spec"]) == eyes.document()["partition-specs"][0]["fields"]
    assert (found["partition-spec-id"], found["format-version"], found["content"]) == ("0", "2", "data")
    assert found["schema-id"] == "0"
    assert json.loads(found["schema"])["fields"] == eyes.document()["schemas"][0]["fields"]
    assert {e["data_file"]["content"] for e in eyes.entries(row)} == {0}
    assert table.version == row["added_snapshot_id"]


@pytest.mark.spec("I-022", "I-036", "I-032", "I-151", "I-146", "I-147", "I-156", "I-170", "I-169", "I-328")
def test_the_entries_of_new_files(make):
    _, eyes = make(DATA, partition_by=["p"])
    row = eyes.manifests()[0]
    entries, found = eyes.avro(row["manifest_path"])
    assert len(entries) == 2
    for e in entries:
        assert e["status"] == 1
        assert e["snapshot_id"] is e["sequence_number"] is e["file_sequence_number"] is None
        file = e["data_file"]
        path = file["file_path"].removeprefix("file://")
        assert file["file_format"] == "PARQUET" and file["record_count"] == pq.read_metadata(path).num_rows
        assert file["file_size_in_bytes"] == len(Path(path).read_bytes())
        assert file["sort_order_id"] is file["key_metadata"] is file["equality_ids"] is None
        assert set(file) <= set(manifests.ENTRY_NAMES.values())
        assert "distinct_counts" not in file and "block_size_in_bytes" not in file
        assert list(file["partition"]) == ["p"]
    for field in found["avro.schema"]["fields"]:
        if isinstance(field["type"], list):
            assert field["type"][0] == "null" and field["default"] is None


@pytest.mark.spec("I-153", "I-154", "I-155", "I-157", "I-158", "I-159", "I-160", "I-162", "I-322")
def test_the_metrics_of_a_file(make):
    table, eyes = make(DATA)
    ids = {path: f.id for path, f in table.schema.walk()}
    file = eyes.live()[0]
    values, nulls, nans = (plain(file[n]) for n in ("value_counts", "null_value_counts", "nan_value_counts"))
    lower, upper = plain(file["lower_bounds"]), plain(file["upper_bounds"])
    assert values[ids["id",]] == 3 and nulls[ids["id",]] == 1
    assert values[ids["li", "element"]] == 2 and nulls[ids["li", "element"]] == 1
    assert nans == {ids["f",]: 1, ids["all_nan",]: 3}
    assert nulls[ids["all_null",]] == 3
    assert (lower[ids["id",]], upper[ids["id",]]) == (struct.pack("<q", 1), struct.pack("<q", 2))
    assert (lower[ids["f",]], upper[ids["f",]]) == (struct.pack("<d", -0.0), struct.pack("<d", 0.0))
    assert lower[ids["text",]] == b"a" * 16 and upper[ids["text",]] == ("💥" * 15 + "\U0001f4a6").encode()
    for absent in (("all_null",), ("all_nan",), ("li",), ("li", "element")):
        assert ids[absent] not in lower and ids[absent] not in upper
    footer = pq.read_metadata(file["file_path"].removeprefix("file://"))
    chunks = [footer.row_group(0).column(i) for i in range(footer.num_columns)]
    sizes = plain(file["column_sizes"])
    assert sum(sizes.values()) == sum(c.total_compressed_size for c in chunks)
    assert file["split_offsets"] == sorted(file["split_offsets"]) == [4]


@pytest.mark.spec("I-155", "I-154", "I-157")
def test_pyiceberg_agrees_on_the_metrics(make, catalog):
    _, eyes = make(DATA)
    theirs = catalog.create_table("db.t", DATA.schema)
    theirs.append(DATA)
    rows = [t.inspect.files().to_pylist()[0] for t in (eyes.pyiceberg(), theirs)]
    for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"):
        mine, other = (dict(r[name]) for r in rows)
        names = {path[-1]: f.id for path, f in bh.open(str(eyes.root)).schema.walk()}
        for column in ("id", "text", "p"):
            assert mine.get(names[column]) == other.get(theirs.schema().find_field(column).field_id), (name, column)


@pytest.mark.spec("I-187", "I-188", "I-189", "I-190", "I-191", "I-193", "I-199", "I-185", "I-328")
def test_the_manifest_list(make):
    table, eyes = make(DATA, partition_by=["p", "bucket(4, id)"])
    first = eyes.snapshot()
    table.append(DATA)
    second = eyes.snapshot()
    assert first["manifest-list"] != second["manifest-list"]
    rows, found = eyes.avro(second["manifest-list"])
    keys = {k: found[k] for k in ("snapshot-id", "parent-snapshot-id", "sequence-number", "format-version")}
    assert keys == {
        "snapshot-id": str(second["snapshot-id"]), "parent-snapshot-id": str(first["snapshot-id"]),
        "sequence-number": "2", "format-version": "2"}  # fmt: skip
    assert len(rows) == 2
    carried = next(r for r in rows if r["sequence_number"] == 1)
    assert carried == eyes.manifests(first)[0]
    new = next(r for r in rows if r["sequence_number"] == 2)
    assert new["added_snapshot_id"] == second["snapshot-id"] and new["min_sequence_number"] == 2
    assert new["manifest_length"] == len(Path(new["manifest_path"].removeprefix("file://")).read_bytes())
    counts = [new[f"{k}_{what}_count"] for what in ("files", "rows") for k in ("added", "existing", "deleted")]
    assert counts == [len(eyes.entries(new)), 0, 0, 3, 0, 0] and new["content"] == 0 and new["partition_spec_id"] == 0
    assert new["partitions"][0] == {
        "contains_null": False, "contains_nan": False, "lower_bound": b"x", "upper_bound": b"y"}  # fmt: skip
    assert new["partitions"][1]["contains_null"] is True and len(new["partitions"][1]["lower_bound"]) == 4


@pytest.mark.spec("I-023", "I-020", "I-146", "I-147", "I-191", "I-189")
def test_rewritten_entries_carry_their_numbers(make):
    table, eyes = make(DATA, partition_by=["p"])
    first = eyes.snapshot()
    table.append(pa.concat_tables([DATA]))
    table.delete("p = 'x'")
    snapshot = eyes.snapshot()
    assert snapshot["sequence-number"] == 3 == eyes.document()["last-sequence-number"]
    for row in eyes.manifests():
        entries = eyes.entries(row)
        assert {e["status"] for e in entries} == {0, 2}
        for e in entries:
            assert e["sequence_number"] == e["file_sequence_number"] in (1, 2)
            gone = e["data_file"]["partition"]["p"] == "x"
            assert (e["status"] == 2) == gone
            assert (e["snapshot_id"] == snapshot["snapshot-id"]) == gone
        assert row["sequence_number"] == 3 and row["min_sequence_number"] == entries[0]["sequence_number"]
        assert [row[f"{k}_files_count"] for k in ("added", "existing", "deleted")] == [0, 1, 1]
    assert eyes.rows().column("p").to_pylist() == ["y", "y"]
    assert eyes.pyiceberg().scan(snapshot_id=first["snapshot-id"]).to_arrow().num_rows == 3


@pytest.mark.spec("I-198", "I-200")
def test_manifests_without_live_files_are_left_behind_and_not_read(make):
    table, eyes = make(DATA)
    table.delete("true")
    dead = eyes.manifests()
    assert [r["deleted_files_count"] for r in dead] == [1] and table.to_arrow().num_rows == 0
    import os

    os.unlink(dead[0]["manifest_path"].removeprefix("file://"))
    assert bh.open(str(eyes.root)).to_arrow().num_rows == 0
    table.append(DATA)
    assert [r["added_files_count"] for r in eyes.manifests()] == [1]
    assert eyes.rows().num_rows == 3


SPEC = PartitionSpec(0)
ENTRY = {
    "status": 1, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None,
    "data_file": {
        "content": 0, "file_path": "file:///x.parquet", "file_format": "parquet", "partition": {}, "record_count": 5,
        "file_size_in_bytes": 10, "column_sizes": None, "value_counts": [{"key": 1, "value": 5}],
        "null_value_counts": [], "nan_value_counts": None, "lower_bounds": None, "upper_bounds": None,
        "key_metadata": None, "split_offsets": [9, 4], "equality_ids": None, "sort_order_id": None,
    },
}  # fmt: skip


def listed(sequence=7):
    row = {"added_files_count": 1, "existing_files_count": 0}
    return manifests.ManifestFile("m", 0, 0, sequence, sequence, 77, None, row)


def written(schema, rows, codec="null", sync_interval=16000, metadata=None):
    out = io.BytesIO()
    fastavro.writer(out, schema, rows, codec=codec, sync_interval=sync_interval, metadata=metadata or {})
    return out.getvalue()


def recompressed(data, codec):
    """An uncompressed container with its blocks in another codec, as its framing in the Avro specification."""
    container = avro.parse(data, "m")
    out = bytearray(b"Obj\x01" + avro.long_bytes(2))
    for key, value in {"avro.schema": container.metadata["avro.schema"], "avro.codec": codec.encode()}.items():
        out += avro.long_bytes(len(key)) + key.encode() + avro.long_bytes(len(value)) + value
    out += b"\x00" + b"S" * 16
    for count, block in container.blocks:
        body = bytes(block)
        if codec == "deflate":
            squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
            body = squeeze.compress(body) + squeeze.flush()
        elif codec == "snappy":
            body = pa.compress(body, "snappy", asbytes=True) + zlib.crc32(body).to_bytes(4, "big")
        elif codec == "zstandard":
            body = pa.compress(body, "zstd", asbytes=True)
        out += avro.long_bytes(count) + avro.long_bytes(len(body)) + body + b"S" * 16
    return bytes(out)


@pytest.mark.spec("I-145")
@pytest.mark.parametrize("codec", ["null", "deflate", "snappy", "zstandard"])
def test_codecs_and_blocks(codec):
    rows = [{**ENTRY, "data_file": {**ENTRY["data_file"], "record_count": i}} for i in range(300)]
    data = recompressed(written(NEW.manifest(SPEC), rows, sync_interval=100), codec)
    assert len(avro.parse(data, "m").blocks) > 10
    found = manifests.read_entries(data, listed(), "m")
    assert [e["data_file"]["record_count"] for e in found] == list(range(300))


@pytest.mark.spec("I-145")
@pytest.mark.parametrize(("codec", "named"), [("gzip", b"deflate"), ("zstd", b"zstandard"), ("uncompressed", b"null")])
def test_our_codec_follows_the_property(make, codec, named):
    _, eyes = make(DATA, properties={"write.avro.compression-codec": codec})
    for path in eyes.files("*.avro"):
        assert avro.parse(path.read_bytes(), str(path)).metadata["avro.codec"] == named
    assert bh.open(str(eyes.root)).to_arrow().num_rows == 3
    if codec != "zstd":
        assert eyes.rows().num_rows == 3


@pytest.mark.spec("I-144", "I-170")
def test_fields_are_found_by_id_whatever_name_order_and_union():
    schema = NEW.manifest(SPEC)

    def scramble(s, depth=0):
        if isinstance(s, list):
            return [scramble(x, depth) for x in reversed(s)]
        if isinstance(s, dict) and s.get("type") == "record":
            fields = [
                {
                    **{k: v for k, v in f.items() if k != "default"},
                    "name": f"{f['name']}_z",
                    "type": scramble(f["type"], depth + 1),
                }
                for f in reversed(s["fields"])
            ]
            return {**s, "name": f"q{depth}{s['name']}", "fields": fields}
        if isinstance(s, dict) and "items" in s:
            return {**s, "items": scramble(s["items"], depth)}
        return s

    def renamed(value):
        if isinstance(value, dict):
            return {f"{k}_z": renamed(v) for k, v in value.items()}
        return [renamed(v) for v in value] if isinstance(value, list) else value

    data = written(scramble(schema), [renamed(ENTRY)])
    (found,) = manifests.read_entries(data, listed(), "m")
    assert found["data_file"]["file_path"] == "file:///x.parquet" and found["data_file"]["record_count"] == 5
    assert manifests.map_of(found["data_file"], "value_counts") == {1: 5}


@pytest.mark.spec("I-148", "I-147", "I-022", "I-167", "I-150")
def test_inheritance():
    (added,) = manifests.read_entries(written(NEW.manifest(SPEC), [ENTRY]), listed(), "m")
    assert (added["snapshot_id"], added["sequence_number"], added["file_sequence_number"]) == (77, 7, 7)
    assert manifests.map_of(added["data_file"], "null_value_counts") == {}
    assert manifests.map_of(added["data_file"], "nan_value_counts") is None
    kept = {**ENTRY, "status": 1, "sequence_number": 3, "snapshot_id": 5}
    (found,) = manifests.read_entries(written(NEW.manifest(SPEC), [kept]), listed(), "m")
    assert (found["snapshot_id"], found["sequence_number"], found["file_sequence_number"]) == (5, 3, 7)
    for status in (0, 2):
        with pytest.raises(CorruptTableError, match=r"x.parquet"):
            data = written(NEW.manifest(SPEC), [{**ENTRY, "status": status}])
            manifests.read_entries(data, listed(), "m", live_only=False)


@pytest.mark.spec("I-167", "I-159", "I-162", "I-151")
def test_missing_metrics_are_unknown(make):
    table, eyes = make(DATA)
    row = eyes.manifests()[0]
    path = row["manifest_path"].removeprefix("file://")
    entries, found = eyes.avro(row["manifest_path"])
    f = table.schema.field("f").id
    nan = struct.pack("<d", math.nan)
    changed = {
        "value_counts": None, "null_value_counts": [], "nan_value_counts": None, "split_offsets": [99, 3],
        "lower_bounds": [{"key": f, "value": nan}],
        "upper_bounds": [{"key": f, "value": nan}], "file_format": "pArQuEt",
    }  # fmt: skip
    entries[0]["data_file"].update(changed)
    keys = {k: v.encode() if isinstance(v, str) else v for k, v in found.items() if not k.startswith("avro.")}
    Path(path).write_bytes(
        written(found["avro.schema"], entries, "deflate", metadata={k: v.decode() for k, v in keys.items()})
    )
    table = bh.open(str(eyes.root))
    stats = next(table._handle.snapshot.files([("f",), ("id",)])).column("stats").to_pylist()[0]
    assert set(stats["0"].values()) == {None} and set(stats["1"].values()) == {None}
    for where, rows in (("f = 0", 2), ("isnan(f)", 1), ("id IS NULL", 1), ("id > 1", 1), ("all_null IS NOT NULL", 0)):
        assert table.scan(where=where).to_arrow().num_rows == rows, where


@pytest.mark.spec("I-141")
def test_other_spellings_of_the_partition_spec_do_not_matter():
    odd = {"partition-spec": json.dumps({"spec-id": 0, "fields": []}), "partition-spec-id": "0"}
    assert len(manifests.read_entries(written(NEW.manifest(SPEC), [ENTRY], metadata=odd), listed(), "m")) == 1


@pytest.mark.spec("I-191")
def test_unknown_counts_may_be_anything():
    row = dict.fromkeys(("added_files_count", "existing_files_count"))
    assert not manifests.ManifestFile("m", 0, 0, 0, 0, 0, None, row).empty


@pytest.mark.spec("I-124")
def test_day_values_as_int_and_as_date(make):
    import datetime as dt

    data = pa.table({"t": [dt.datetime(2024, 1, 1), dt.datetime(1969, 12, 31)]})
    table, eyes = make(data, partition_by=["day(t)"])
    row = eyes.manifests()[0]
    entries, found = eyes.avro(row["manifest_path"])
    assert {e["data_file"]["partition"]["t_day"] for e in entries} == {dt.date(2024, 1, 1), dt.date(1969, 12, 31)}
    text = json.dumps(found["avro.schema"])
    assert '{"type": "int", "logicalType": "date"}' in text
    schema = json.loads(text.replace('{"type": "int", "logicalType": "date"}', '"int"'))
    for e in entries:
        day = e["data_file"]["partition"]["t_day"]
        e["data_file"]["partition"]["t_day"] = (day - dt.date(1970, 1, 1)).days
    Path(row["manifest_path"].removeprefix("file://")).write_bytes(written(schema, entries))
    again = bh.open(str(eyes.root))
    assert again.scan(where="t < TIMESTAMP_NTZ '1970-01-01'").to_arrow().num_rows == 1
    assert again.to_arrow().num_rows == 2
    assert table.partitioning.current.fields[0].name == "t_day"


def test_lists_of_rust(corpora):
    folder = corpora / "iceberg/rust-testdata/manifests_lists"
    for name in ("manifest-list-v2-1.avro", "manifest-list-v2-2.avro"):
        theirs = list(fastavro.reader(io.BytesIO((folder / name).read_bytes())))
        mine = manifests.read_list((folder / name).read_bytes(), name)
        assert [m.path for m in mine] == [r["manifest_path"] for r in theirs]
        assert [m.sequence for m in mine] == [r["sequence_number"] for r in theirs]
    with pytest.raises((UnsupportedFeatureError, CorruptTableError)):
        manifests.read_list((folder / "manifest-list-v3-encrypted.avro").read_bytes(), "encrypted")


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "schema"])
def test_broken_avro_is_a_typed_error_naming_the_file(make, damage):
    _, eyes = make(DATA)
    path = eyes.manifests()[0]["manifest_path"].removeprefix("file://")
    data = Path(path).read_bytes()
    broken = {
        "cut": data[:-20], "flip": data[:-40] + bytes(20) + data[-20:], "empty": b"",
        "schema": data.replace(b'"manifest_entry"', b'"manifest_entr\xff"'),
    }[damage]  # fmt: skip
    Path(path).write_bytes(broken)
    with pytest.raises(CorruptTableError) as caught:
        bh.open(str(eyes.root)).to_arrow()
    assert caught.value.where.endswith(path)


def test_a_list_round_trips_through_our_reader():
    file = {**ENTRY["data_file"], "value_counts": {1: 5}, "null_value_counts": {}}
    entries = of_entries([{**ENTRY, "data_file": file}], SPEC)
    row = manifest_writer.list_row("p", 9, SPEC, entries, 0, 4, 11)
    data = manifest_writer.write_list([row, row], {"snapshot-id": "1"}, "zstandard")
    assert row.pop("first_row_id") is None
    assert [m.row for m in manifests.read_list(data, "l")] == [row, row]
    assert NEW.manifest_list()["name"] == "manifest_file"

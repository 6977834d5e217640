"""Checkpoints: what ours hold, and what happens to bad ones."""

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.bits import system
from boathouse.delta.adapter import FORMAT
from boathouse.delta.checkpoint import writer as checkpoint_write
from boathouse.delta.checkpoint.canonical import checksum
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.delta.commit import transaction
from boathouse.delta.log.durations import duration_ms
from boathouse.errors import BoathouseError, CorruptTableError, VersionNotFoundError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import At, Location

X = pa.table({"x": [1]})
CHECKPOINT = "00000000000000000010.checkpoint.parquet"


def snapshot(path, version=None):
    return FORMAT.open(TableContext(Location(f"file://{path}"), Stores()), At(version=version))


def grow(path, commits=11):
    """A table of `commits` versions, a row each, its id the version."""
    bh.write(pa.table({"x": [0]}), str(path), format="delta")
    table = bh.open(str(path))
    for i in range(1, commits):
        table.append(pa.table({"x": [i]}))
    return table


def ids(path, **at):
    return sorted(bh.open(str(path), **at).to_arrow().column("x").to_pylist())


@pytest.mark.spec("D-030", "D-035", "D-065")
def test_the_tenth_version_gets_one(tmp_path, delta):
    grow(tmp_path / "t")
    log = tmp_path / "t" / "_delta_log"
    assert [p.name for p in log.glob("*.parquet")] == [CHECKPOINT]
    hint = (log / "_last_checkpoint").read_text()
    table = pq.read_table(log / CHECKPOINT)
    adds = table.num_rows - table.column("add").null_count
    assert json.loads(hint) == {
        "version": 10,
        "size": table.num_rows,
        "sizeInBytes": (log / CHECKPOINT).stat().st_size,
        "numOfAddFiles": adds,
        "checksum": checksum(hint),
    }
    assert adds == 11
    for version in range(10):
        (log / f"{version:020d}.json").unlink()
    assert ids(tmp_path / "t") == list(range(11))
    assert len(delta.rows(tmp_path / "t")) == 11


def test_writers_that_open_the_table_for_each_commit_make_it_too(tmp_path):
    uri = str(tmp_path / "t")
    bh.create(uri, "n int", format="delta")
    for n in range(12):
        bh.open(uri).append(pa.table({"n": pa.array([n], pa.int32())}))
    assert pq.read_metadata(tmp_path / "t" / "_delta_log" / f"{10:020}.checkpoint.parquet").num_rows >= 12


@pytest.mark.spec("D-047", "D-048")
def test_every_row_is_one_action_and_all_kinds_are_there(tmp_path, delta):
    table = grow(tmp_path / "t", 6)
    table.append(X, txn=("app", 3))
    table.append(X, txn=("app", 4))
    table.set_properties({"k": "v"})
    table.delete("x = 5")
    table.append(X)
    checkpoint = pq.read_table(tmp_path / "t" / "_delta_log" / CHECKPOINT)
    kinds = checkpoint.column_names
    seen = set()
    for row in checkpoint.to_pylist():
        (kind,) = [k for k in kinds if row[k] is not None]
        seen.add(kind)
    assert seen == {"protocol", "metaData", "add", "remove", "txn"}
    rows = checkpoint.to_pylist(maps_as_pydicts="strict")
    (txn,) = [r["txn"] for r in rows if r["txn"]]
    assert (txn["appId"], txn["version"]) == ("app", 4)
    (metadata,) = [r["metaData"] for r in rows if r["metaData"]]
    assert metadata["configuration"] == {"k": "v"}
    (protocol,) = [r["protocol"] for r in rows if r["protocol"]]
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": None, "writerFeatures": None}
    assert all(json.loads(r["add"]["stats"])["numRecords"] == 1 for r in rows if r["add"])
    for version in range(10):
        (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").unlink()
    again = bh.open(str(tmp_path / "t"))
    assert dict(again.properties) == {"k": "v"}
    assert snapshot(tmp_path / "t").transactions == {"app": 4}


@pytest.mark.spec("D-033")
def test_removed_files_stay_known_until_they_expire(tmp_path):
    path = tmp_path / "t"
    bh.write(X, str(path), format="delta", properties={"delta.checkpointInterval": "6"})
    table = bh.open(str(path))
    table.append(pa.table({"x": [1]}))
    table.append(pa.table({"x": [2]}))
    table.append(pa.table({"x": [3]}))
    table.append(pa.table({"x": [4]}))
    table.delete("x = 2")
    table.append(pa.table({"x": [6]}))
    found = pq.read_table(path / "_delta_log" / "00000000000000000006.checkpoint.parquet").to_pylist()
    removed = [r["remove"] for r in found if r["remove"]]
    added = {r["add"]["path"] for r in found if r["add"]}
    assert len(removed) == 1 and removed[0]["path"] not in added and len(added) == 5
    assert removed[0]["deletionTimestamp"] > 0 and removed[0]["extendedFileMetadata"]

    class Later(system.System):
        def now_ms(self):
            return super().now_ms() + 8 * 86_400_000

    with system.use(Later()):
        write_checkpoint(snapshot(path))
    found = pq.read_table(path / "_delta_log" / "00000000000000000006.checkpoint.parquet").to_pylist()
    assert not [r for r in found if r["remove"]]


def test_durations():
    assert duration_ms("interval 1 week", 0) == 604_800_000
    assert duration_ms("INTERVAL 12 hours", 0) == 43_200_000
    assert duration_ms("30 days", 0) == 30 * 86_400_000
    assert duration_ms("interval 1 month", 7) == 7


@pytest.mark.spec("D-043")
def test_a_writer_killed_before_the_checkpoint_loses_nothing(tmp_path, monkeypatch):
    table = grow(tmp_path / "t", 10)
    monkeypatch.setattr(transaction, "checkpoint_if_due", lambda *a: None)
    table.append(pa.table({"x": [10]}))
    log = tmp_path / "t" / "_delta_log"
    assert not list(log.glob("*.parquet")) and ids(tmp_path / "t") == list(range(11))
    monkeypatch.setattr(transaction, "checkpoint_if_due", checkpoint_write.checkpoint_if_due)
    table.append(pa.table({"x": [11]}))
    assert len(list(log.glob("*.parquet"))) == 1
    assert ids(tmp_path / "t") == list(range(12))


def test_a_checkpoint_that_cannot_be_written_fails_no_commit(tmp_path, monkeypatch):
    table = grow(tmp_path / "t", 10)

    def fail(*_args):
        raise OSError("disk full")

    monkeypatch.setattr(checkpoint_write, "write_checkpoint", fail)
    table.append(pa.table({"x": [10]}))
    assert bh.open(str(tmp_path / "t")).version == 10


@pytest.mark.spec("D-044")
def test_no_checkpoint_without_an_entry(tmp_path):
    grow(tmp_path / "t", 3)
    opened = snapshot(tmp_path / "t")
    (tmp_path / "t" / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(VersionNotFoundError):
        write_checkpoint(opened)
    assert not list((tmp_path / "t" / "_delta_log").glob("*.parquet"))


@pytest.mark.parametrize(
    "hint",
    [
        "",
        "{",
        "[]",
        '{"version": 99, "size": 1}',
        '{"version": "x"}',
        '{"version": 4, "size": 1, "checksum": "0"}',
        "null",
    ],
)
def test_a_wrong_hint_is_only_a_hint(tmp_path, hint):
    grow(tmp_path / "t", 12)
    (tmp_path / "t" / "_delta_log" / "_last_checkpoint").write_text(hint)
    assert ids(tmp_path / "t") == list(range(12))


def test_a_stale_hint_does_not_hide_newer_versions(tmp_path):
    grow(tmp_path / "t", 11)
    hint = (tmp_path / "t" / "_delta_log" / "_last_checkpoint").read_text()
    table = bh.open(str(tmp_path / "t"))
    for i in range(11, 22):
        table.append(pa.table({"x": [i]}))
    (tmp_path / "t" / "_delta_log" / "_last_checkpoint").write_text(hint)
    assert ids(tmp_path / "t") == list(range(22))
    assert snapshot(tmp_path / "t").checkpoint.version == 20


@pytest.mark.parametrize("content", [b"", b"garbage", b"PAR1garbagePAR1"])
def test_a_broken_checkpoint_falls_back_to_the_entries(tmp_path, content):
    grow(tmp_path / "t", 12)
    log = tmp_path / "t" / "_delta_log"
    (log / CHECKPOINT).write_bytes(content)
    assert ids(tmp_path / "t") == list(range(12))
    (log / f"{3:020d}.json").unlink()
    with pytest.raises(CorruptTableError):
        bh.open(str(tmp_path / "t"))


def test_a_broken_checkpoint_falls_back_to_an_older_one(tmp_path):
    grow(tmp_path / "t", 22)
    log = tmp_path / "t" / "_delta_log"
    for version in range(5):
        (log / f"{version:020d}.json").unlink()
    (log / "00000000000000000020.checkpoint.parquet").write_bytes(b"garbage")
    assert snapshot(tmp_path / "t").checkpoint.version == 10
    assert ids(tmp_path / "t") == list(range(22))


def test_a_multi_part_checkpoint_counts_only_whole(corpora, tmp_path):
    source = corpora / "delta" / "golden" / "multi-part-checkpoint"
    path = tmp_path / "t"
    shutil.copytree(source / "delta", path)
    os.chmod(path / "_delta_log", 0o755)
    whole = bh.open(str(path)).count()
    parts = sorted((path / "_delta_log").glob("*.checkpoint.*.parquet"))
    assert len(parts) == 2
    for part in parts:
        for other in parts:
            data = other.read_bytes()
            other.unlink()
            other.write_bytes(data)
        kept = part.read_bytes()
        part.unlink()
        assert bh.open(str(path)).count() == whole
        part.write_bytes(kept)


def test_damaged_pages_are_an_error_of_the_table(tmp_path):
    grow(tmp_path / "t", 11)
    log = tmp_path / "t" / "_delta_log"
    for version in range(10):
        (log / f"{version:020d}.json").unlink()
    data = bytearray((log / CHECKPOINT).read_bytes())
    for at in range(4, len(data) - 6000, 50):
        data[at] ^= 0xFF
    (log / CHECKPOINT).write_bytes(bytes(data))
    with pytest.raises(BoathouseError):
        bh.open(str(tmp_path / "t")).to_arrow()


def test_checkpoints_of_the_reference_are_read(tmp_path, delta):
    deltalake = pytest.importorskip("deltalake")
    path = str(tmp_path / "t")
    data = pa.table({"p": ["a", "b", None], "x": [1, 2, 3]})
    deltalake.write_deltalake(path, data, partition_by=["p"])
    table = deltalake.DeltaTable(path)
    table.delete("x = 2")
    table.create_checkpoint()
    os.unlink(f"{path}/_delta_log/{0:020d}.json")
    expected = [{"p": "a", "x": 1}, {"p": None, "x": 3}]
    assert sorted(bh.open(path).to_arrow().to_pylist(), key=lambda r: r["x"]) == expected
    bh.open(path).append(data)
    assert len(delta.rows(path)) == 5


def test_the_multi_part_checkpoint_of_the_hint_is_used(tmp_path):
    """It is whole, and has a column more than another checkpoint of its version and the entries."""
    path = tmp_path / "t"
    t = bh.create(
        str(path), pa.schema([("x", pa.int64())]), format="delta", properties={"delta.checkpointInterval": "2"}
    )
    t.append(pa.table({"x": [1, 2]}))
    t.append(pa.table({"x": [3]}))
    log = path / "_delta_log"
    single = pq.read_table(log / f"{2:020}.checkpoint.parquet")
    states = single.column("metaData").to_pylist()
    for state in filter(None, states):
        schema = json.loads(state["schemaString"])
        schema["fields"].append({**schema["fields"][0], "name": "y"})
        state["schemaString"] = json.dumps(schema)
    at = single.schema.get_field_index("metaData")
    whole = single.set_column(at, single.schema.field(at), pa.array(states, single.schema.field(at).type))
    for part, rows in enumerate((whole.slice(0, 2), whole.slice(2)), 1):
        pq.write_table(rows, log / f"{2:020}.checkpoint.{part:010}.{2:010}.parquet")
    hint = log / "_last_checkpoint"
    hint.write_text(json.dumps({"version": 2, "size": whole.num_rows, "parts": 2}))
    for t in (bh.open(str(path)), bh.open(str(path), version=2)):
        assert list(t.schema.names) == ["x", "y"] and t.to_arrow()["y"].to_pylist() == [None] * 3
    (log / f"{2:020}.checkpoint.{2:010}.{2:010}.parquet").unlink()
    assert list(bh.open(str(path)).schema.names) == ["x"]
    hint.write_text(json.dumps({"version": 2, "size": single.num_rows}))
    assert list(bh.open(str(path)).schema.names) == ["x"]

"""What a commit looks like, and that it is the only one of its version."""

import json
import os
import subprocess
import sys
import threading
import uuid
from urllib.parse import unquote

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.arrow.schema import from_arrow
from boathouse.delta.adapter import FORMAT
from boathouse.delta.log.folder import Log
from boathouse.errors import AlreadyExistsError, ConstraintViolationError, SchemaError, UnsafeStorageError
from boathouse.storage import PutMode, Stores
from boathouse.table.change import Change
from boathouse.table.commit import Committed, commit
from boathouse.table.context import TableContext
from boathouse.table.edits import AddFiles, CreateTable, SetProperties
from boathouse.table.location import Location
from boathouse.table.tasks import WriteContext

X = pa.table({"x": [1, 2]})
AWKWARD = [
    "a b",
    "100%",
    "a#b",
    "a:b",
    "a+b",
    "a?b",
    "[a]",
    "é",
    "😀",
    "{q}",
    "a/b",
    "%20",
    "a=b",
    "'q'",
    'q"q',
    "a&b;c,d",
]


def only(entry, kind):
    return [a[kind] for a in entry if kind in a]


@pytest.mark.spec("D-001")
@pytest.mark.parametrize(("processes", "each"), [(3, 6), pytest.param(8, 25, marks=pytest.mark.slow)])
def test_processes_append_at_once(tmp_path, processes, each):
    path = str(tmp_path / "t")
    bh.create(path, pa.schema([("w", pa.int64()), ("i", pa.int64())]))
    script = (
        "import sys, pyarrow as pa, boathouse as bh\n"
        "w = int(sys.argv[2])\n"
        "t = bh.open(sys.argv[1])\n"
        "for i in range(int(sys.argv[3])): t.append(pa.table({'w': [w], 'i': [i]}))\n"
    )
    started = [subprocess.Popen([sys.executable, "-c", script, path, str(w), str(each)]) for w in range(processes)]
    assert [p.wait(300) for p in started] == [0] * processes
    found = bh.open(path)
    assert found.version == processes * each
    names = sorted(n for n in os.listdir(f"{path}/_delta_log") if n.endswith(".json"))
    assert names == [f"{v:020d}.json" for v in range(processes * each + 1)]
    rows = found.to_arrow().to_pylist()
    assert sorted((r["w"], r["i"]) for r in rows) == [(w, i) for w in range(processes) for i in range(each)]


@pytest.mark.spec("D-018")
def test_names_of_entries_have_twenty_digits(tmp_path):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta")
    for _ in range(10):
        bh.open(path).append(X)
    found = sorted(n for n in os.listdir(f"{path}/_delta_log") if n.endswith(".json"))
    assert found == [f"{v:020d}.json" for v in range(11)]


@pytest.mark.spec("D-020")
def test_one_action_a_line_in_utf8(tmp_path):
    path = str(tmp_path / "t")
    mapped = {"delta.columnMapping.mode": "name"}
    bh.write(pa.table({"é\n": ["a\nb", "\u2028"]}), path, format="delta", properties=mapped, message="line\nbreak")
    table = bh.open(path)
    table.set_properties({"k": "v\nw"})
    table.delete("`é\n` = 'a\nb'")
    for name in os.listdir(f"{path}/_delta_log"):
        if not name.endswith(".json"):
            continue
        data = (tmp_path / "t" / "_delta_log" / name).read_bytes().decode()
        assert data.endswith("\n")
        for line in data[:-1].split("\n"):
            action = json.loads(line)
            assert isinstance(action, dict) and len(action) == 1


def append_change(path, snapshot, rows, stores):
    """A prepared append: data written, nothing committed."""
    location = Location(f"file://{path}")
    write_id = str(uuid.uuid4())
    context: WriteContext = snapshot.write_context(write_id)
    from boathouse.delta.tasks import writers

    files = writers(context)
    writer = files.open({})
    writer.write(rows.to_batches()[0])
    return Change("delta", location, snapshot, write_id, "append", (AddFiles(files.outcomes([writer.close()])),))


@pytest.mark.spec("D-022")
def test_two_prepared_for_one_version(tmp_path):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta")
    stores = Stores()
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), stores))
    changes = [append_change(path, snapshot, pa.table({"x": [i]}), stores) for i in (10, 20)]
    attempts = [snapshot.commits.prepare(c) for c in changes]
    assert attempts[0].uri == attempts[1].uri and attempts[0].body != attempts[1].body
    assert [snapshot.commits.publish(a) for a in attempts] == ["won", "lost"]
    assert commit(changes[1].planned, changes[1]) == Committed(Log.commit_id(2), 1)
    assert sorted(bh.open(path).to_arrow().column("x").to_pylist()) == [1, 2, 10, 20]


@pytest.mark.spec("D-024")
def test_an_entry_is_ours_by_its_write_id_alone(tmp_path):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta")
    stores = Stores()
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), stores))
    change = append_change(path, snapshot, pa.table({"x": [10]}), stores)
    attempt = snapshot.commits.prepare(change)
    storage, key = stores.resolve(attempt.uri)
    foreign = b'{"commitInfo":{"timestamp":1,"operation":"WRITE","engineInfo":"other"}}\n'
    storage.put(key, foreign, PutMode.CREATE)
    assert snapshot.commits.publish(attempt) == "lost"
    assert storage.get(key) == foreign
    assert commit(change.planned, change) == Committed(Log.commit_id(2), 1)
    # The same change once more: its entry is found among the winners, and nothing is written.
    assert commit(change.planned, change) == Committed(Log.commit_id(2), 1, already=True)
    assert bh.open(path).version == 2
    assert snapshot.history.find_write(change.write_id) == 2
    assert snapshot.history.find_write("nobody") is None


@pytest.mark.spec("D-023")
def test_a_store_without_put_if_absent_is_only_read(tmp_path):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta")

    class Plain:
        atomic_create = False

        def __init__(self, inner):
            self._inner = inner

        def __getattr__(self, name):
            return getattr(self._inner, name)

    stores = Stores(wrap=Plain)
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), stores))
    assert snapshot.plan().rows == 2
    with pytest.raises(UnsafeStorageError):
        snapshot.check_writable()


@pytest.mark.spec("D-083", "D-089", "D-091", "D-093", "D-095")
def test_the_first_entry(tmp_path, delta):
    path = str(tmp_path / "t")
    schema = pa.schema([("a", pa.string()), ("b", pa.string()), ("x", pa.int64())])
    bh.create(path, schema, partition_by=["b", "a"], properties={"t": "x"})
    entry = delta.log(path)[0]
    (metadata,) = only(entry, "metaData")
    (protocol,) = only(entry, "protocol")
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 2}
    assert metadata["format"] == {"provider": "parquet", "options": {}}
    assert metadata["partitionColumns"] == ["b", "a"]
    assert metadata["configuration"] == {"t": "x"}
    assert 1_600_000_000_000 < metadata["createdTime"] < 10_000_000_000_000
    assert str(uuid.UUID(metadata["id"])) == metadata["id"]
    table = bh.open(path)
    table.append(pa.table({"a": ["q"], "b": ["r"], "x": [1]}))
    table.overwrite(pa.table({"a": ["q"], "b": ["r"], "x": [1], "y": [2]}), overwrite_schema=True)
    ids = {m["id"] for e in delta.log(path).values() for m in only(e, "metaData")}
    assert ids == {metadata["id"]}
    other = str(tmp_path / "other")
    bh.create(other, pa.schema([("x", pa.int64())]))
    (plain,) = only(delta.log(other)[0], "metaData")
    assert plain["partitionColumns"] == [] and plain["id"] not in ids


@pytest.mark.spec("D-086", "D-087", "D-292")
def test_an_edited_metadata_keeps_what_it_does_not_know(raw, delta):
    table = raw()
    odd = {"deep": [1, {"a": None}], "n": 1.5, "comment": "hi", "custom.key": {"x": [True]}}
    fields = [delta.field("x", "long", True, **odd)]
    described = delta.metadata(
        fields, configuration={"foreign.key": "1", "k": "old"}, createdTime=5, name="n", description="d", later=[1]
    )
    table.commit(0, delta.PROTOCOL, described)
    found = bh.open(str(table))
    found.set_properties({"k": "new"})
    found.add_column("y", "int")
    found.append(pa.table({"x": [1], "y": pa.array([2], pa.int32())}))
    before = described["metaData"]
    first, second = (only(delta.log(table)[v], "metaData")[0] for v in (1, 2))
    assert first == {**before, "configuration": {"foreign.key": "1", "k": "new"}}
    assert {k: v for k, v in second.items() if k != "schemaString"} == {
        k: v for k, v in first.items() if k != "schemaString"
    }
    schema = json.loads(second["schemaString"])
    assert schema["fields"][0] == fields[0]
    assert schema["fields"][1]["name"] == "y" and schema["fields"][1]["type"] == "integer"


@pytest.mark.spec("D-102", "D-103", "D-105", "D-106", "D-235", "D-260")
def test_adds_of_awkward_values(tmp_path, delta):
    path = str(tmp_path / "a b#é")
    values = [*AWKWARD, None]
    data = pa.table({"p": values, "q": pa.array([1] * len(values), pa.int16()), "x": list(range(len(values)))})
    bh.write(data, path, format="delta", partition_by=["p", "q"])
    adds = only(delta.log(path)[0], "add")
    assert len(adds) == len(values)
    for add in adds:
        assert all(c.isascii() and (c.isalnum() or c in "-._~%/=") for c in add["path"])
        file = os.path.join(path, unquote(add["path"]))
        assert os.path.getsize(file) == add["size"]
        assert abs(os.stat(file).st_mtime * 1000 - add["modificationTime"]) < 60_000
        assert isinstance(add["modificationTime"], int)
        assert set(add["partitionValues"]) == {"p", "q"}
        assert isinstance(add["stats"], str) and json.loads(add["stats"])["numRecords"] == 1
    assert [a["partitionValues"]["p"] for a in adds].count(None) == 1
    expected = sorted(data.to_pylist(), key=lambda r: r["x"])
    assert sorted(bh.open(path).to_arrow().to_pylist(), key=lambda r: r["x"]) == expected
    assert sorted(delta.rows(path), key=lambda r: r["x"]) == expected


@pytest.mark.spec("D-118")
def test_removes(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(pa.table({"p": ["a", "b"], "x": [1, 2]}), path, format="delta", partition_by=["p"])
    bh.open(path).delete("p = 'a'")
    add = next(a for a in only(delta.log(path)[0], "add") if a["partitionValues"]["p"] == "a")
    entry = delta.log(path)[1]
    (remove,) = only(entry, "remove")
    now = only(entry, "commitInfo")[0]["timestamp"]
    assert remove == {
        "path": add["path"], "deletionTimestamp": now, "dataChange": True, "extendedFileMetadata": True,
        "partitionValues": {"p": "a"}, "size": add["size"],
    }  # fmt: skip


@pytest.mark.spec("D-144")
def test_commit_info(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta")
    table = bh.open(path)
    result = table.append(X, message="why", metadata={"job": "7"})
    table.delete("x = 1")
    table.set_properties({"k": "v"})
    table.overwrite(X)
    infos = [only(e, "commitInfo")[0] for e in delta.log(path).values()]
    assert [i["operation"] for i in infos] == [
        "CREATE TABLE AS SELECT",
        "WRITE",
        "DELETE",
        "SET TBLPROPERTIES",
        "WRITE",
    ]
    for info in infos:
        assert info["engineInfo"].startswith("boathouse/")
        assert isinstance(info["timestamp"], int) and info["writeId"] and info["txnId"]
        assert isinstance(info["operationParameters"], dict)
    wanted = {"numFiles": "1", "numOutputRows": "2", "numOutputBytes": str(result.bytes_added)}
    assert infos[1]["operationMetrics"].items() >= wanted.items()
    assert infos[1]["isBlindAppend"] and not infos[2]["isBlindAppend"]
    assert infos[1]["writeId"] == result.write_id and table.find_write(result.write_id) == 1
    assert json.loads(infos[2]["operationParameters"]["predicate"]) == ["x = 1"]
    entry = next(h for h in table.history() if h.version == 1)
    assert (entry.message, dict(entry.metadata), entry.write_id) == ("why", {"job": "7"}, result.write_id)
    deltalake = pytest.importorskip("deltalake")
    assert next(h["operation"] for h in deltalake.DeltaTable(path).history()) == "WRITE"


@pytest.mark.spec("D-145", "D-146")
def test_history_of_others(raw, delta):
    table = raw()
    odd = {"operation": "WRITE", "operationParameters": {"a": [1, {"b": None}], "c": 1.5, "d": None}, "timestamp": None}
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]))
    table.commit(1, {"commitInfo": odd})
    table.commit(2, {"commitInfo": {"operation": ["?"], "operationParameters": "text", "userMetadata": {"a": 1}}})
    os.utime(table.entry(0), (1000, 1000))
    shown = {h.version: h for h in bh.open(str(table)).history()}
    assert shown[1].parameters == odd["operationParameters"]
    assert shown[2].operation == "" and shown[2].parameters == {}
    first = shown[0]
    assert (first.timestamp_ms, first.operation, dict(first.parameters), first.engine) == (1_000_000, "", {}, None)


@pytest.mark.spec("D-231", "D-232")
def test_columns_that_the_data_or_the_table_lacks(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.create(path, pa.schema([pa.field("x", pa.int64(), False), ("y", pa.string())]))
    table = bh.open(path)
    with pytest.raises(SchemaError):
        table.append(pa.table({"x": [1], "z": [1]}))
    with pytest.raises((SchemaError, ConstraintViolationError)):
        table.append(pa.table({"y": ["a"]}))
    assert bh.open(path).version == 0
    table.append(pa.table({"x": [1]}))
    assert delta.rows(path) == [{"x": 1, "y": None}]
    table.append(pa.table({"x": [2], "y": ["b"], "z": [3]}), merge_schema=True)
    expected = [{"x": 1, "y": None, "z": None}, {"x": 2, "y": "b", "z": 3}]
    assert sorted(delta.rows(path), key=lambda r: r["x"]) == expected
    assert sorted(bh.open(path).to_arrow().to_pylist(), key=lambda r: r["x"]) == expected


@pytest.mark.spec("D-236")
def test_file_names_are_unique(tmp_path):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta")

    def work():
        for _ in range(5):
            bh.open(path).append(X)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    names = [p.rpartition("/")[2] for p in bh.open(path).files().column("path").to_pylist()]
    assert len(set(names)) == len(names) == 16
    for name in names:
        assert uuid.UUID(name[len("part-00000-") :][:36]).version == 4


def test_append_only_is_honoured(tmp_path):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta", properties={"delta.appendOnly": "true"})
    table = bh.open(path)
    table.append(X)
    for refused in (lambda: table.delete("x = 1"), lambda: table.overwrite(X)):
        with pytest.raises(ConstraintViolationError, match="append-only"):
            refused()
    table.set_properties({"delta.appendOnly": "false"})
    table.delete("x = 1")
    assert table.count() == 2


def test_application_transactions(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(X, path, format="delta")
    table = bh.open(path)
    table.append(X, txn=("etl", 7))
    table.append(X, txn=("etl", 7))
    table.append(X, txn=("etl", 6))
    assert bh.open(path).version == 1
    table.append(X, txn=("etl", 8))
    assert [t["version"] for e in delta.log(path).values() for t in only(e, "txn")] == [7, 8]


def test_a_second_create_finds_the_table(tmp_path):
    path = str(tmp_path / "t")
    bh.create(path, X.schema)
    with pytest.raises(AlreadyExistsError):
        bh.create(path, X.schema)


@pytest.mark.spec("D-094")
def test_properties_are_written_as_text(tmp_path, delta):
    path = str(tmp_path / "t")
    table = CreateTable(from_arrow(X.schema), (), {"n": 5, "f": True, "t": "x", "d": 1.5})
    change = Change("delta", Location(f"file://{path}"), None, str(uuid.uuid4()), "create", (table,))
    context = TableContext(Location(f"file://{path}"), Stores())
    assert commit(FORMAT.create(context, table), change) == Committed(Log.commit_id(0), 1)
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))
    assert dict(snapshot.properties) == {"n": "5", "f": "true", "t": "x", "d": "1.5"}
    edits = (SetProperties({"n": 6, "f": False}),)
    changed = Change("delta", snapshot.location, snapshot, str(uuid.uuid4()), "set-properties", edits)
    assert commit(changed.planned, changed) == Committed(Log.commit_id(1), 1)
    (metadata,) = only(delta.log(path)[1], "metaData")
    assert metadata["configuration"] == {"n": "6", "f": "false", "t": "x", "d": "1.5"}

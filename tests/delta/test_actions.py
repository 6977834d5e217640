"""Actions on files, transactions and protocols, as others write them and as the log adds them up."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.adapter import FORMAT
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.errors import BoathouseError, CorruptTableError, UnsupportedFeatureError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import At, Location

ROWS = pa.table({"x": [0, 1]})


def snapshot(path, version=None):
    return FORMAT.open(TableContext(Location(f"file://{path}"), Stores()), At(version=version))


def ids(path, **at):
    return sorted(bh.open(str(path), **at).to_arrow().column("x").to_pylist())


def remove(path, **more):
    return {"remove": {"path": path, "deletionTimestamp": 9_999_999_999_999, "dataChange": True, **more}}


@pytest.fixture
def table(raw, delta):
    """Version 0 holds `f` with the rows 0 and 1."""
    made = raw()
    size = made.file("f", ROWS)
    made.f = lambda **more: {"add": {**made.add("f")["add"], "size": size, **more}}
    made.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]), made.f())
    return made


@pytest.mark.spec("D-101", "D-098")
def test_one_file_under_three_names(table):
    absolute = str(table.path / "f")
    table.commit(1, remove(f"file:{absolute}"), {"commitInfo": {}})
    assert ids(table) == []
    table.commit(2, table.f(path=f"file://{absolute}"))
    assert ids(table) == [0, 1]
    table.commit(3, remove("f"))
    assert ids(table) == []
    table.commit(4, table.f(path=absolute))
    assert ids(table) == [0, 1]


@pytest.mark.spec("D-104")
@pytest.mark.parametrize("missing", ["size", "modificationTime", "dataChange"])
def test_adds_that_lack_something(table, delta, missing):
    add = table.f()
    del add["add"][missing]
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]), add)
    assert ids(table) == [0, 1]
    write_checkpoint(snapshot(table.path))
    assert ids(table) == [0, 1]


@pytest.mark.spec("D-107", "D-110", "D-128")
def test_a_live_file_that_is_added_again(table):
    table.commit(1, table.f(stats='{"numRecords":2}', dataChange=False, tags={"a": "b"}))
    assert ids(table) == [0, 1] and bh.open(str(table)).count() == 2
    assert bh.open(str(table)).changes(1, 1).to_arrow().num_rows == 0
    write_checkpoint(snapshot(table.path))
    adds = [r for r in pq.read_table(table.log / f"{1:020d}.checkpoint.parquet").column("add").to_pylist() if r]
    assert [(a["stats"], dict(a["tags"])) for a in adds] == [('{"numRecords":2}', {"a": "b"})]


@pytest.mark.spec("D-115")
def test_the_same_pair_again(table):
    table.commit(1, table.f(dataChange=False), {"commitInfo": {}})
    table.commit(2, table.f(stats='{"numRecords":2,"tightBounds":true}', dataChange=False))
    assert ids(table) == [0, 1]
    bh.open(str(table)).delete("x = 1")
    assert ids(table) == [0]


@pytest.mark.spec("D-112")
@pytest.mark.parametrize("kind", ["add", "remove"])
def test_one_path_twice_in_one_entry(table, kind):
    twice = [table.f(), table.f(size=1)] if kind == "add" else [remove("f"), remove("f", size=1)]
    table.commit(1, *twice)
    with pytest.raises(CorruptTableError, match="twice") as error:
        ids(table)
    assert error.value.where.endswith(f"{1:020d}.json")


@pytest.mark.spec("D-116", "D-117")
def test_removes_that_say_little_and_much(table):
    table.commit(1, {"remove": {"path": "f", "dataChange": True}})
    table.commit(2, table.f())
    extended = {"extendedFileMetadata": True, "partitionValues": {}, "size": 3}
    table.commit(3, remove("f", **extended))
    assert ids(table) == []
    write_checkpoint(snapshot(table.path))
    found = [r for r in pq.read_table(table.log / f"{3:020d}.checkpoint.parquet").column("remove").to_pylist() if r]
    assert [(r["size"], r["extendedFileMetadata"]) for r in found] == [(3, True)]
    table.commit(4, table.f())
    table.commit(5, {"remove": {"path": "f", "dataChange": True}})
    write_checkpoint(snapshot(table.path))
    found = pq.read_table(table.log / f"{5:020d}.checkpoint.parquet")
    assert [r for r in found.column("remove").to_pylist() if r] == []


@pytest.mark.spec("D-121")
@pytest.mark.parametrize("stats", [None, '{"numRecords":0}'])
def test_a_file_without_rows(table, stats):
    size = table.file("empty", ROWS.slice(0, 0))
    table.commit(1, {"add": {**table.f()["add"], "path": "empty", "size": size, "stats": stats}})
    assert ids(table) == [0, 1] and bh.open(str(table)).count() == 2
    assert bh.open(str(table)).scan(where="x >= 0").to_arrow().num_rows == 2


@pytest.mark.spec("D-135")
def test_a_column_that_change_files_have(table):
    size = table.file("g", pa.table({"x": [7], "_change_type": ["delete"]}))
    table.commit(1, {"add": {**table.f()["add"], "path": "g", "size": size}})
    assert ids(table) == [0, 1, 7]
    assert bh.open(str(table)).to_arrow().column_names == ["x"]


@pytest.mark.spec("D-011")
def test_the_value_of_the_log_wins(raw, delta):
    made = raw()
    made.file("f", pa.table({"x": [1], "p": ["of the file"]}))
    fields = [delta.field("x", "long"), delta.field("p", "string")]
    made.commit(0, delta.PROTOCOL, delta.metadata(fields, ["p"]), made.add("f", {"p": "of the log"}))
    assert bh.open(str(made)).to_arrow().to_pylist() == [{"x": 1, "p": "of the log"}]
    assert bh.open(str(made)).scan(where="p = 'of the log'").to_arrow().num_rows == 1


@pytest.mark.spec("D-137", "D-138", "D-139", "D-143")
def test_transactions_of_applications(table):
    table.commit(1, {"txn": {"appId": "a", "version": 7, "lastUpdated": 5}}, {"txn": {"appId": "b", "version": 1}})
    assert snapshot(table.path).transactions == {"a": 7, "b": 1}
    table.commit(2, {"txn": {"appId": "a", "version": 3}})
    assert snapshot(table.path).transactions == {"a": 3, "b": 1}
    write_checkpoint(snapshot(table.path))
    for version in range(3):
        table.entry(version).unlink()
    assert snapshot(table.path).transactions == {"a": 3, "b": 1}
    bh.open(str(table)).append(ROWS, txn=("b", 2))
    (txn,) = [json.loads(line)["txn"] for line in table.entry(3).read_text().splitlines() if '"txn"' in line]
    assert txn["lastUpdated"] > 1_600_000_000_000
    assert snapshot(table.path).transactions == {"a": 3, "b": 2}


@pytest.mark.spec("D-140")
def test_two_transactions_of_one_application(table):
    table.commit(1, {"txn": {"appId": "a", "version": 7}}, {"txn": {"appId": "a", "version": 8}})
    with pytest.raises(CorruptTableError, match="twice"):
        bh.open(str(table)).append(ROWS, txn=("a", 9))


@pytest.mark.spec("D-149", "D-150", "D-084")
def test_protocols_and_metadata_of_the_first_entry(raw, delta):
    good = delta.metadata([delta.field("x", "long")])
    for actions, said in (
        ((delta.PROTOCOL, delta.PROTOCOL, good), "2 protocol"),
        (({"protocol": {"readerVersion": 1, "writerVersion": 2}}, good), "minReaderVersion"),
        ((good,), "protocol"),
        ((delta.PROTOCOL,), "metaData"),
    ):
        made = raw()
        made.commit(0, *actions)
        with pytest.raises(CorruptTableError, match=said):
            bh.open(str(made))


@pytest.mark.spec("D-152", "D-153", "D-154")
@pytest.mark.parametrize(
    "protocol",
    [
        {"minReaderVersion": 1, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"], "writerFeatures": []},
        {"minReaderVersion": 2, "minWriterVersion": 7, "readerFeatures": ["columnMapping"], "writerFeatures": []},
        {"minReaderVersion": 1, "minWriterVersion": 4, "writerFeatures": ["appendOnly"]},
        {"minReaderVersion": 3, "minWriterVersion": 5},
        {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": []},
    ],
)
def test_protocols_that_contradict_themselves(raw, delta, protocol):
    made = raw()
    made.commit(0, {"protocol": protocol}, delta.metadata([delta.field("x", "long")]))
    with pytest.raises(CorruptTableError) as error:
        bh.open(str(made))
    assert "Version" in error.value.message or "Features" in error.value.message


@pytest.mark.spec("D-157", "D-158", "D-159", "D-167")
def test_features_by_name(raw, delta):
    def opened(readers, writers):
        made = raw()
        made.file("f", ROWS)
        protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers, "writerFeatures": writers}
        made.commit(0, {"protocol": protocol}, delta.metadata([delta.field("x", "long")]), made.add("f"))
        return bh.open(str(made))

    strange = opened([], ["zap"])
    assert strange.count() == 2
    with pytest.raises(UnsupportedFeatureError, match="zap"):
        strange.append(ROWS)
    with pytest.raises(UnsupportedFeatureError, match="zap"):
        opened(["zap"], ["zap", "appendOnly"])
    for name in (
        "catalogManaged",
        "geospatial",
        "collations-preview",
    ):
        with pytest.raises(UnsupportedFeatureError, match=name):
            opened([name], [name])
    for name in ("vacuumProtocolCheck", "timestampNtz", "v2Checkpoint", "columnMapping", "deletionVectors"):
        opened([name], [name]).append(ROWS)
    for name in ("domainMetadata", "rowTracking", "clustering", "inCommitTimestamp", "allowColumnDefaults"):
        opened([], [name]).append(ROWS)
    for name in ("icebergCompatV1", "icebergCompatV2", "identityColumns", "checkpointProtection"):
        opened([], [name]).append(ROWS)


@pytest.mark.spec("D-164", "D-238", "D-240", "D-239")
@pytest.mark.parametrize(
    ("protocol", "properties", "held"),
    [
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly"]}, {}, False),
        ({"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": []}, {"delta.appendOnly": "true"}, False),
        ({"minReaderVersion": 1, "minWriterVersion": 2}, {"appendOnly": "true"}, False),
        ({"minReaderVersion": 1, "minWriterVersion": 2}, {"delta.appendOnly": "false"}, False),
        ({"minReaderVersion": 1, "minWriterVersion": 2}, {"delta.appendOnly": "true"}, True),
        (
            {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly"]},
            {"delta.appendOnly": "true"},
            True,
        ),
    ],
)
def test_when_append_only_holds(table, delta, protocol, properties, held):
    metadata = delta.metadata([delta.field("x", "long")], configuration=properties)
    table.commit(0, {"protocol": protocol}, metadata, table.f())
    opened = bh.open(str(table))
    if held:
        for act in (lambda: opened.delete("x = 0"), lambda: opened.update({"x": "5"}), lambda: opened.overwrite(ROWS)):
            with pytest.raises(BoathouseError, match="appendOnly"):
                act()
        assert list(delta.log(table)) == [0]
        opened.append(ROWS)
        assert ids(table) == [0, 0, 1, 1]
    else:
        opened.delete("x = 0")
        assert ids(table) == [1]


@pytest.mark.spec("D-168")
def test_a_protocol_of_the_older_draft_is_made_explicit(table, delta):
    table.commit(
        0,
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}},
        delta.metadata([delta.field("x", "long")]),
        table.f(),
    )
    assert ids(table) == [0, 1]
    bh.open(str(table)).append(ROWS)
    protocols = [a["protocol"] for entry in delta.log(table).values() for a in entry if "protocol" in a]
    assert len(protocols) == 2
    assert {"deletionVectors", "columnMapping"} <= set(protocols[1]["readerFeatures"])
    assert set(protocols[1]["readerFeatures"]) <= set(protocols[1]["writerFeatures"])
    assert {"appendOnly", "invariants", "checkConstraints", "changeDataFeed"} <= set(protocols[1]["writerFeatures"])
    assert ids(table) == [0, 0, 1, 1]


@pytest.mark.spec("D-171", "D-172", "D-007")
def test_protocol_and_metadata_of_each_version(table, delta):
    table.commit(1, {"txn": {"appId": "a", "version": 1}})
    table.commit(2, remove("f"))
    later = delta.metadata([delta.field("x", "long"), delta.field("y", "string")])
    table.commit(3, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, later, table.f())
    assert [snapshot(table.path, v).protocol.min_writer for v in range(4)] == [2, 2, 2, 4]
    assert [[c.name for c in snapshot(table.path, v).schema.fields] for v in range(4)] == [["x"]] * 3 + [["x", "y"]]
    assert [ids(table, version=v) for v in range(4)] == [[0, 1], [0, 1], [], [0, 1]]
    assert [snapshot(table.path, v).transactions for v in range(3)] == [{}, {"a": 1}, {"a": 1}]
    assert [snapshot(table.path, v).tail.removes.num_rows for v in range(4)] == [0, 0, 1, 0]


@pytest.mark.spec("D-178")
def test_from_entries_and_from_each_checkpoint(table):
    for n in range(1, 9):
        size = table.file(f"g{n}", pa.table({"x": [10 * n]}))
        actions = [{"add": {**table.f()["add"], "path": f"g{n}", "size": size, "tags": {"n": str(n)}}}]
        if n % 3 == 0:
            actions.append(remove(f"g{n - 1}", size=n))
        if n % 4 == 0:
            actions.append({"txn": {"appId": f"app{n}", "version": n}})
        table.commit(n, *actions)

    def state():
        found = snapshot(table.path)
        files = pa.Table.from_batches(list(found.files()))
        listed = sorted(zip(files.column("path").to_pylist(), files.column("size").to_pylist()))
        return listed, dict(found.transactions), found.schema, found.protocol, ids(table)

    whole = state()
    assert whole[4] == [0, 1, 10, 30, 40, 60, 70, 80]
    for version in range(9):
        write_checkpoint(snapshot(table.path, version))
        (table.log / "_last_checkpoint").unlink()
        assert state() == whole
        (table.log / f"{version:020d}.checkpoint.parquet").unlink()


@pytest.mark.spec("D-096", "D-097")
def test_partition_columns_that_cannot_be(tmp_path):
    schema = pa.schema([("a", pa.int64()), ("b", pa.struct([("c", pa.int64())]))])
    for columns in (["z"], ["b.c"], ["b"], ["a", "b"], ["a", "a"], ["a", "A"]):
        with pytest.raises(BoathouseError):
            bh.create(str(tmp_path / "t"), schema, format="delta", partition_by=columns)
        assert not (tmp_path / "t").exists()
    path = str(tmp_path / "t")
    data = pa.table({"p": ["a"], "q": ["b"], "x": [1]})
    bh.write(data, path, format="delta", partition_by=["p"])
    with pytest.raises(BoathouseError, match="partition"):
        bh.write(data, path, mode="append", partition_by=["q"])
    assert bh.open(path).version == 0


@pytest.mark.spec("D-293")
def test_names_that_cannot_be(tmp_path):
    for names in (["a", "A"], ["é", "É"], [""]):
        with pytest.raises(BoathouseError):
            bh.create(str(tmp_path / "t"), pa.schema([(n, pa.int64()) for n in names]), format="delta")
        assert not (tmp_path / "t").exists()
    path = str(tmp_path / "t")
    bh.write(pa.table({"a": [1]}), path, format="delta")
    for name in ("A", "a"):
        with pytest.raises(BoathouseError):
            bh.open(path).add_column(name, "int")
    bh.open(path).append(pa.table({"A": [2]}))
    assert bh.open(path).to_arrow().to_pylist() == [{"a": 1}, {"a": 2}]


@pytest.mark.spec("D-156", "D-160")
def test_a_writer_feature_asks_nothing_of_readers(tmp_path, raw, delta):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties={"delta.enableInCommitTimestamps": "true"})
    (protocol,) = [a["protocol"] for a in delta.log(path)[0] if "protocol" in a]
    assert protocol["minReaderVersion"] == 1 and protocol["minWriterVersion"] == 7
    assert "readerFeatures" not in protocol and "inCommitTimestamp" in protocol["writerFeatures"]
    legacy = raw()
    legacy.commit(
        0, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, delta.metadata([delta.field("x", "long")])
    )
    bh.open(str(legacy)).set_properties({"delta.enableInCommitTimestamps": "true"})
    (protocol,) = [a["protocol"] for a in delta.log(legacy)[1] if "protocol" in a]
    assert protocol["minReaderVersion"] == 2 and "readerFeatures" not in protocol
    assert {"columnMapping", "generatedColumns", "inCommitTimestamp"} <= set(protocol["writerFeatures"])

"""What every writer owes the table: change rows, application transactions, tombstones, features."""

import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.bits import system
from boathouse.delta.adapter import FORMAT
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.errors import BoathouseError, SchemaError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location

ROWS = pa.table({"x": [0, 1, 2]})
FEED = {"delta.enableChangeDataFeed": "true"}


def snapshot(path):
    return FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))


def ids(path):
    return sorted(bh.open(str(path)).to_arrow().column("x").to_pylist())


def of_kind(delta, path, kind):
    return [[a[kind] for a in entry if kind in a] for entry in delta.log(path).values()]


@pytest.mark.spec("D-109")
def test_optimize_changes_no_row(tmp_path, delta):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties=FEED)
    bh.open(str(path)).append(pa.table({"x": [3]}))
    bh.open(str(path)).optimize()
    adds, removes = of_kind(delta, path, "add")[-1], of_kind(delta, path, "remove")[-1]
    assert len(adds) == 1 and len(removes) == 2
    assert not any(a["dataChange"] for a in (*adds, *removes)) and of_kind(delta, path, "cdc")[-1] == []
    assert bh.open(str(path)).changes(2, 2).to_arrow().num_rows == 0
    assert bh.open(str(path)).changes(0, 2).to_arrow().num_rows == 4


@pytest.mark.spec("D-123", "D-129", "D-132")
def test_change_rows_of_every_operation(tmp_path, delta):
    """Writer version 4: the feed is obeyed, though its protocol lists no features."""
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties=FEED)
    (protocol,) = of_kind(delta, path, "protocol")[0]
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (1, 4)
    table = bh.open(str(path))
    table.update({"x": "x + 10"}, where="x = 1")
    table.delete("x = 2")
    table.merge(pa.table({"x": [0, 7]}), on="target.x = source.x").when_matched_update(
        {"x": "target.x + 100"}
    ).when_not_matched_insert_all().execute()
    rows = table.changes(0, 3).to_arrow().to_pylist()
    found = sorted((r["_commit_version"], r["_change_type"], r["x"]) for r in rows)
    assert found == [
        (0, "insert", 0), (0, "insert", 1), (0, "insert", 2), (1, "update_postimage", 11), (1, "update_preimage", 1),
        (2, "delete", 2), (3, "insert", 7), (3, "update_postimage", 100), (3, "update_preimage", 0),
    ]  # fmt: skip
    times = {h.version: h.timestamp_ms for h in table.history()}
    assert all(round(r["_commit_timestamp"].timestamp() * 1000) == times[r["_commit_version"]] for r in rows)
    assert [bool(v) for v in of_kind(delta, path, "cdc")] == [False, True, True, True]


@pytest.mark.spec("D-133", "D-163")
def test_the_feed_and_lists_of_features(raw, delta):
    """At version 7 the property alone means nothing; setting it adds the feature, which stays when it is turned off."""
    table = raw()
    size = table.file("f", ROWS)
    add = table.add("f")
    add["add"]["size"] = size
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": []}
    table.commit(0, {"protocol": protocol}, delta.metadata([delta.field("x", "long")], configuration=FEED), add)
    bh.open(str(table)).update({"x": "9"}, where="x = 0")
    assert of_kind(delta, table, "cdc")[-1] == []
    bh.open(str(table)).set_properties({"delta.enableChangeDataFeed": "false"})
    bh.open(str(table)).set_properties(FEED)
    assert of_kind(delta, table, "protocol")[-1][0]["writerFeatures"] == ["changeDataFeed"]
    bh.open(str(table)).update({"x": "8"}, where="x = 9")
    assert of_kind(delta, table, "cdc")[-1] != []
    bh.open(str(table)).set_properties({"delta.enableChangeDataFeed": "false"})
    bh.open(str(table)).set_properties({"delta.enableDeletionVectors": "true"})
    last = [p for v in of_kind(delta, table, "protocol") for p in v][-1]
    assert set(last["writerFeatures"]) == {"changeDataFeed", "deletionVectors"}


@pytest.mark.spec("D-141")
def test_a_batch_that_is_written_again(tmp_path, delta):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", txn=("job", 5))
    table = bh.open(str(path))
    for version in (5, 4):
        result = table.append(ROWS, txn=("job", version))
        assert result.commit is None and "job" in result.skipped
    assert ids(path) == [0, 1, 2] and list(delta.log(path)) == [0]
    table.append(ROWS, txn=("job", 6))
    assert list(delta.log(path)) == [0, 1]


@pytest.mark.spec("D-142")
def test_two_writers_of_one_batch(tmp_path, delta):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta")
    tables = [bh.open(str(path)) for _ in range(4)]
    start, errors = threading.Barrier(4), []

    def write(table):
        start.wait()
        try:
            table.append(pa.table({"x": [9]}), txn=("job", 1))
        except BoathouseError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(t,)) for t in tables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ids(path) == [0, 1, 2, 9]
    assert len([t for v in of_kind(delta, path, "txn") for t in v]) == 1
    assert all("job" in str(e) for e in errors)


@pytest.mark.spec("D-034", "D-119")
def test_tombstones_by_the_clock_of_the_cleaner(tmp_path):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties={"delta.deletedFileRetentionDuration": "interval 2 days"})
    bh.open(str(path)).delete("x >= 0")
    assert snapshot(path).tail.removes.num_rows == 1
    name = path / "_delta_log" / f"{1:020d}.checkpoint.parquet"

    class Later(system.System):
        hours = 47

        def now_ms(self):
            return super().now_ms() + self.hours * 3_600_000

    with system.use(Later()):
        write_checkpoint(snapshot(path))
    assert len([r for r in pq.read_table(name).column("remove").to_pylist() if r]) == 1
    later = Later()
    later.hours = 49
    with system.use(later):
        write_checkpoint(snapshot(path))
    assert [r for r in pq.read_table(name).column("remove").to_pylist() if r] == []


@pytest.mark.spec("D-057")
def test_the_schema_of_a_checkpoint_is_that_of_the_appendix(tmp_path):
    path = tmp_path / "t"
    properties = {"delta.checkpointInterval": "1", "delta.checkpoint.writeStatsAsStruct": "true"}
    data = pa.table({"p": ["a"], "x": [1]})
    bh.write(data, str(path), format="delta", partition_by=["p"], properties=properties)
    bh.open(str(path)).append(data, txn=("a", 1))
    found = pq.read_schema(path / "_delta_log" / f"{1:020d}.checkpoint.parquet")
    text = pa.map_(pa.string(), pa.string())

    def has(kind, **types):
        struct = found.field(kind).type
        for name, type in types.items():
            assert struct.field(name).type.equals(type), f"{kind}.{name}: {struct.field(name).type}"

    names = pa.list_(pa.field("element", pa.string()))
    has("metaData", id=pa.string(), name=pa.string(), description=pa.string(), schemaString=pa.string(),
        partitionColumns=names, configuration=text, createdTime=pa.int64(),
        format=pa.struct([("provider", pa.string()), ("options", text)]))  # fmt: skip
    has("protocol", minReaderVersion=pa.int32(), minWriterVersion=pa.int32(), readerFeatures=names)
    has("txn", appId=pa.string(), version=pa.int64(), lastUpdated=pa.int64())
    has("remove", path=pa.string(), deletionTimestamp=pa.int64(), dataChange=pa.bool_())
    bounds = pa.struct([("x", pa.int64())])
    parsed = {"numRecords": pa.int64(), "minValues": bounds, "maxValues": bounds, "nullCount": bounds}
    has("add", path=pa.string(), partitionValues=text, size=pa.int64(), modificationTime=pa.int64(),
        dataChange=pa.bool_(), stats=pa.string(), tags=text,
        partitionValues_parsed=pa.struct([("p", pa.string())]))  # fmt: skip
    stats = found.field("add").type.field("stats_parsed").type
    assert {f.name: f.type for f in stats if f.name in parsed} == parsed


@pytest.mark.spec("D-111")
def test_a_file_and_its_first_vector_in_one_entry(tmp_path, delta):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties={"delta.enableDeletionVectors": "true"})
    bh.open(str(path)).delete("x = 1")
    (remove,), (add,) = of_kind(delta, path, "remove")[1], of_kind(delta, path, "add")[1]
    assert remove["path"] == add["path"] and "deletionVector" not in remove and "deletionVector" in add
    assert ids(path) == [0, 2] == sorted(r["x"] for r in delta.rows(path))


@pytest.mark.spec("D-288")
def test_void_columns(raw, delta):
    table = raw()
    fields = [delta.field("x", "long"), delta.field("n", "void")]
    table.file("f", pa.table({"x": [1]}))
    table.commit(0, delta.PROTOCOL, delta.metadata(fields), table.add("f"))
    assert bh.open(str(table)).to_arrow().to_pylist() == [{"x": 1, "n": None}]
    bh.open(str(table)).append(pa.table({"x": [2], "n": pa.nulls(1)}))
    (ours,) = table.path.glob("*.parquet")
    assert pq.read_schema(ours).names == ["x"]
    only = raw()
    only.commit(0, delta.PROTOCOL, delta.metadata([delta.field("n", "void")]))
    with pytest.raises(SchemaError):
        bh.open(str(only)).append(pa.table({"n": pa.nulls(1)}))
    assert list(delta.log(only)) == [0]


@pytest.mark.spec("D-306")
def test_instants_without_a_zone(tmp_path, delta):
    path = tmp_path / "t"
    stamps = pa.array([1_700_000_000_000_000, None], pa.timestamp("us"))
    bh.write(pa.table({"t": stamps, "p": stamps, "x": [1, 2]}), str(path), format="delta", partition_by=["p"])
    (protocol,) = of_kind(delta, path, "protocol")[0]
    assert "timestampNtz" in protocol["readerFeatures"] and "timestampNtz" in protocol["writerFeatures"]
    values = {a["partitionValues"]["p"] for v in of_kind(delta, path, "add") for a in v}
    assert {v and v.removesuffix(".000000") for v in values} == {"2023-11-14 22:13:20", None}
    for file in path.glob("**/*.parquet"):
        column = pq.ParquetFile(file).schema.column(0)
        assert "isAdjustedToUTC=false" in str(column.logical_type)
    rows = sorted(delta.rows(path), key=lambda r: r["x"])
    assert [r["t"] for r in rows] == stamps.to_pylist() == [r["p"] for r in rows]

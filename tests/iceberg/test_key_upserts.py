"""Upserts whose commits have the rows and files of their keys: equality deletes that are written. PyIceberg reads none,
so that it reads the tables once these have become vectors or positions."""

import random
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from foreign_writer import Foreign, current, theirs

import boathouse as bh
from boathouse.errors import (
    ColumnNotFoundError,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from boathouse.ops.rows.key_upsert import KeyUpsert

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])
LAYOUTS = {"unpartitioned": None, "by-another-column": "p", "by-the-key": {"b": "bucket(3, id)"}}


def rows(*ids, p="a", x=0.0):
    return pa.table({"id": list(ids), "p": [p] * len(ids), "x": [x] * len(ids)}, SCHEMA)


def entries(foreign):
    """Each live entry with the row of the list that names its manifest, as fastavro reads them."""
    listed = foreign._avro(current(foreign)["manifest-list"])
    found = [(row, e) for row in listed for e in foreign._avro(row["manifest_path"])]
    return [(row, e) for row, e in found if e["status"] != 2]


def delete_files(foreign):
    return [(row, e["data_file"]) for row, e in entries(foreign) if row["content"] == 1]


def made(tmp_path, version=2, partition_by=None, schema=SCHEMA, name="t"):
    path = str(tmp_path / name)
    properties = {"format-version": str(version)}
    if isinstance(partition_by, dict):
        t = bh.create(path, schema, format="iceberg", properties=properties)
        t.partition_by(**partition_by)
        return t
    return bh.create(path, schema, format="iceberg", properties=properties, partition_by=partition_by)


def content(t):
    return sorted(map(repr, t.to_arrow().to_pylist()))


@pytest.mark.feature("upsert by equality deletes", format="iceberg")
@pytest.mark.spec("I-163", "I-271")
@pytest.mark.parametrize("version", [2, 3])
def test_rows_and_one_file_of_keys(tmp_path, version, monkeypatch):
    t = made(tmp_path, version)
    t.append(rows(1, 2, 3))
    monkeypatch.setattr("boathouse.iceberg.scan.plan", None)  # the table is not read
    done = t.upsert(rows(2, 9, x=5.0), on="id", deletes="equality", message="stream")
    monkeypatch.undo()
    assert (done.rows_added, done.rows_updated, done.files_added, done.files_removed) == (2, 0, 1, 0)
    assert t.scan().to_arrow().sort_by("id").to_pydict()["x"] == [0.0, 5.0, 0.0, 5.0] and t.count() == 4
    foreign = Foreign(tmp_path / "t")
    ((_, file),) = delete_files(foreign)
    assert (file["content"], file["equality_ids"], file["record_count"]) == (2, [1], 2)
    assert {b["key"]: b["value"] for b in file["lower_bounds"]} == {1: (2).to_bytes(8, "little")}
    sequences = {
        (row["content"], row["sequence_number"], e["data_file"]["record_count"]) for row, e in entries(foreign)
    }
    assert sequences == {(0, 1, 3), (0, 2, 2), (1, 2, 2)}  # its own rows are not older
    assert all(e["sequence_number"] is None for _, e in entries(foreign))
    parquet = pq.read_schema(file["file_path"].removeprefix("file://"))
    assert [(f.name, f.metadata[b"PARQUET:field_id"]) for f in parquet] == [("id", b"1")]
    summary = current(foreign)["summary"]
    counted = {
        k: summary[k] for k in ("operation", "added-equality-deletes", "total-equality-deletes", "total-records")
    }
    assert list(counted.values()) == ["overwrite", "2", "2", "5"]
    assert t.rewrite_deletes().rows_deleted == 0
    assert not [f for _, f in delete_files(foreign) if f["content"] == 2]
    assert theirs(foreign) == [1, 2, 3, 9]


@pytest.mark.few(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(2))
def test_the_rows_are_those_of_a_merge(tmp_path, layout, seed):
    """Whatever the layout: nulls match nothing, and each upsert sees the one before."""
    chance, version = random.Random(seed), 2 + seed
    streamed, merged = (made(tmp_path, version, LAYOUTS[layout], name=n) for n in ("streamed", "merged"))
    first = rows(*range(10), p="a")
    streamed.append(first), merged.append(first)
    for step in range(5):
        ids = [*chance.sample(range(-2, 15), 6), None, None]
        batch = pa.table({"id": ids, "p": [chance.choice(["a", "b", None, "é"]) for _ in ids],
                          "x": [chance.choice([float("nan"), -0.0, None, step]) for _ in ids]}, SCHEMA)  # fmt: skip
        streamed.upsert(batch, on="id", deletes="equality")
        merged.upsert(batch, on="id")
        if step == 2:
            streamed.rewrite_deletes() if seed else streamed.optimize()
    assert content(streamed) == content(merged)
    assert streamed.scan(where="id > 3 and p = 'b'").count() == merged.scan(where="id > 3 and p = 'b'").count()
    streamed.rewrite_deletes()
    assert content(streamed) == content(merged)


def test_where_keys_apply(tmp_path):
    """Everywhere, but where the key decides the partition and all files are of the present spec."""
    decided = made(tmp_path, 2, LAYOUTS["by-the-key"], name="decided")
    decided.append(rows(*range(6)))
    decided.upsert(rows(1, 4, x=9.0), on="id", deletes="equality")
    foreign = Foreign(tmp_path / "decided")
    assert {row["partition_spec_id"] for row, _ in delete_files(foreign)} == {1}
    assert all(f["partition"]["b"] is not None for _, f in delete_files(foreign))
    assert decided.scan(where="x = 9").count() == 2 and decided.count() == 6

    moved = made(tmp_path, 2, "p", name="moved")
    moved.append(rows(1, 2, p="a"))
    moved.upsert(rows(1, p="b", x=9.0), on="id", deletes="equality")
    moved.upsert(rows(2, p="b", x=9.0), on="id", deletes="equality")
    foreign = Foreign(tmp_path / "moved")
    specs = foreign.document["partition-specs"]
    assert [(s["spec-id"], len(s["fields"])) for s in specs] == [(0, 1), (1, 0)]
    assert foreign.document["default-spec-id"] == 0
    assert {row["partition_spec_id"] for row, _ in delete_files(foreign)} == {1}
    assert moved.to_arrow().sort_by("id").to_pydict() == rows(1, 2, p="b", x=9.0).to_pydict()

    old = made(tmp_path, 2, name="old")
    old.append(rows(1, 2))
    old.partition_by(b="bucket(3, id)")
    old.upsert(rows(1, x=9.0), on="id", deletes="equality")
    assert {row["partition_spec_id"] for row, _ in delete_files(Foreign(tmp_path / "old"))} == {0}
    assert old.count() == 2
    old.rewrite_deletes()
    assert theirs(Foreign(tmp_path / "old")) == [1, 2]


@pytest.mark.spec("I-276")
def test_a_key_column_that_is_dropped(tmp_path):
    t = made(tmp_path)
    t.append(rows(1, 2, 3))
    t.upsert(rows(2, p="new"), on="id", deletes="equality")
    t.drop_column("id")
    assert t.to_arrow().to_pydict()["p"].count("new") == 1 and t.count() == 3
    t.rewrite_deletes()
    assert t.count() == 3


def test_columns_that_identify_rows_are_the_keys(tmp_path):
    t = made(tmp_path, schema=pa.schema([pa.field("id", pa.int64(), False), pa.field("p", pa.string(), False)]))
    t.set_identifiers(["id", "p"])
    t.append(pa.table({"id": [1, 1], "p": ["a", "b"]}, t.to_arrow().schema))
    t.upsert(pa.table({"id": [1, 2], "p": ["b", "b"]}, t.to_arrow().schema), deletes="equality")
    ((_, file),) = delete_files(Foreign(tmp_path / "t"))
    assert file["equality_ids"] == [1, 2] and t.count() == 3


def test_new_columns_and_wider_keys_come_with_the_rows(tmp_path):
    narrow = pa.schema([("id", pa.int32()), ("p", pa.string())])
    t = made(tmp_path, schema=narrow)
    t.append(pa.table({"id": [1, 2], "p": ["a", "a"]}, narrow))
    more = pa.table({"id": pa.array([2, 1 << 40], pa.int64()), "p": ["b", "b"], "n": [7, 8]})
    t.upsert(more, on="id", deletes="equality", merge_schema=True)
    found = t.to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 1, "p": "a", "n": None}, {"id": 2, "p": "b", "n": 7}, {"id": 1 << 40, "p": "b", "n": 8}]


@pytest.mark.spec("I-274")
def test_what_is_refused(tmp_path):
    struct = pa.struct([("a", pa.int32())])
    columns = {"id": pa.int64(), "f": pa.float32(), "d": pa.float64(), "s": struct, "l": pa.list_(pa.int32())}
    schema = pa.schema(columns.items())
    t = made(tmp_path, schema=schema)
    row = pa.table({"id": [1], "f": [0.0], "d": [0.0], "s": [{"a": 1}], "l": [[1]]}, schema)
    t.append(row)
    for key, text in (("f", "which floats are equal"), ("d", "`d` are not written"), ("s.a", "field of a struct"),
                      ("s", "do not exist"), ("l", "do not exist")):  # fmt: skip
        with pytest.raises(UnsupportedFeatureError, match=text):
            t.upsert(row, on=key, deletes="equality")
    with pytest.raises(ConstraintViolationError, match=r"1 rows of the source have the key .* {'id': 1}"):
        t.upsert(pa.concat_tables([row, row]), on="id", deletes="equality")
    with pytest.raises(SchemaMismatchError, match="lacks `l`"):
        t.upsert(row.drop(["l"]), on="id", deletes="equality")
    with pytest.raises(ColumnNotFoundError):
        t.upsert(row, on="nothing", deletes="equality")
    with pytest.raises(InvalidArgumentError, match="deletes='vectors'"):
        t.upsert(row, on="id", deletes="vectors")
    with pytest.raises(UnsupportedFeatureError, match="format version 1 has no equality deletes"):
        old = made(tmp_path, 1, name="old")
        old.upsert(rows(1), on="id", deletes="equality")
    with pytest.raises(UnsupportedFeatureError, match="equality deletes is not offered for delta"):
        bh.create(str(tmp_path / "d"), SCHEMA, format="delta").upsert(rows(1), on="id", deletes="equality")
    assert len(list((tmp_path / "t" / "data").rglob("*.parquet"))) == 1  # nothing is left behind
    assert t.upsert(row, on="id", deletes="equality", dry_run=True).version is None


KEYS = {
    "bool": (pa.bool_(), [True, False]), "int": (pa.int32(), [-(1 << 31), 0]),
    "text": (pa.string(), ["", "a\u0000é🙂"]),
    "bytes": (pa.binary(), [b"", b"\xff\x00"]), "fixed": (pa.binary(3), [b"abc", b"\x00\x00\x00"]),
    "decimal": (pa.decimal128(38, 5), ["-1.00000", "99999999999999999999.00001"]),
    "date": (pa.date32(), [-719162, 0]),
    "time": (pa.time64("us"), [0, 86399999999]), "instant": (pa.timestamp("us", "UTC"), [-1, 1 << 50]),
    "local": (pa.timestamp("us"), [-1, 1 << 50]), "nanoseconds": (pa.timestamp("ns"), [-1, (1 << 62)]),
}  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_every_type_of_key(tmp_path, kind):
    type, values = KEYS[kind]
    column = pa.array(values, pa.string()).cast(type) if kind == "decimal" else pa.array(values, type)
    schema = pa.schema([("k", type), ("n", pa.int32())])
    t = made(tmp_path, 3, schema=schema)
    t.append(pa.table([pa.concat_arrays([column, pa.nulls(1, type)]), pa.array([0, 1, 2], pa.int32())], schema=schema))
    t.upsert(pa.table([column.slice(1), pa.array([10], pa.int32())], schema=schema), on="k", deletes="equality")
    assert sorted(t.to_arrow().column("n").to_pylist()) == [0, 2, 10]
    t.rewrite_deletes()
    assert sorted(t.to_arrow().column("n").to_pylist()) == [0, 2, 10]


def test_many_upserts_become_vectors_in_one_commit(tmp_path):
    t = made(tmp_path, 3)
    for start in range(0, 4000, 1000):
        t.append(rows(*range(start, start + 1000)))
    for n in range(5):
        t.upsert(rows(*range(n * 300, n * 300 + 1200), x=float(n + 1)), on="id", deletes="equality")
    foreign = Foreign(tmp_path / "t")
    assert sum(f["record_count"] for _, f in delete_files(foreign)) == 6000
    before = content(t)
    assert len(before) == 4000
    data = set(foreign.live())
    t.rewrite_deletes()
    assert set(foreign.live()) < data  # a file without rows goes, and none is written
    assert {f["file_format"] for _, f in delete_files(foreign)} == {"PUFFIN"}
    assert content(t) == before and theirs(foreign) == list(range(4000))


def test_what_is_committed_in_between_is_older(tmp_path):
    """An upsert loses to nothing: it replaces the rows that others added meanwhile, and its files serve again."""
    t = made(tmp_path)
    t.append(rows(1))
    path = str(tmp_path / "t")
    plan, planned = KeyUpsert.plan, []

    def late(write, start):
        found = plan(write, start)
        if not planned:
            bh.open(path).append(rows(1, 2, p="between"))
            bh.open(path).optimize()
        planned.append(start.snapshot.version)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeyUpsert, "plan", late)
        done = bh.open(path).upsert(rows(2, p="last"), on="id", deletes="equality")
    assert done.retries and len(planned) == 1
    assert sorted(bh.open(path).to_arrow().column("p").to_pylist()) == ["a", "between", "last"]


def test_deletes_of_a_partition_are_planned_again_where_an_older_spec_comes_back(tmp_path):
    t = made(tmp_path, 2, LAYOUTS["by-the-key"])
    t.append(rows(1, 2, 3))
    path = str(tmp_path / "t")
    plan, planned = KeyUpsert.plan, []

    def late(write, start):
        found = plan(write, start)
        if not planned:
            other = bh.open(path)
            other.partition_by("p")
            other.append(rows(2, p="between"))
            other.partition_by(b="bucket(3, id)")
        planned.append(start.snapshot.version)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeyUpsert, "plan", late)
        bh.open(path).upsert(rows(2, p="last"), on="id", deletes="equality")
    assert len(planned) == 2
    assert sorted(bh.open(path).to_arrow().column("p").to_pylist()) == ["a", "a", "last"]


def test_upserts_side_by_side(tmp_path):
    """Threads upsert the same keys: one row a key is left, of some thread."""
    made(tmp_path)
    path = str(tmp_path / "t")

    def work(n):
        for _ in range(3):
            bh.open(path).upsert(rows(*range(10), p=str(n)), on="id", deletes="equality")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t = bh.open(path)
    assert sorted(t.to_arrow().column("id").to_pylist()) == list(range(10))
    assert (
        t.history()[0].operation == "merge"
        and len(t.history()) == 13
        and len(set(t.to_arrow().column("p").to_pylist())) == 1
    )


@pytest.mark.spark
def test_on_spark(spark, tmp_path):
    t = made(tmp_path, 2, "p")
    t.append(rows(*range(10)))
    frame = spark.range(5, 15).repartition(4).selectExpr("id", "'b' AS p", "CAST(id AS DOUBLE) AS x")
    done = t.upsert(frame, on="id", deletes="equality")
    assert done.rows_added == 10
    ((_, file),) = delete_files(Foreign(tmp_path / "t"))
    assert (file["record_count"], file["partition"]) == (10, {})
    found = bh.open(str(tmp_path / "t"), spark=spark).to_spark().orderBy("id").toArrow()
    assert found.column("id").to_pylist() == list(range(15))
    assert found.column("p").to_pylist() == ["a"] * 5 + ["b"] * 10
    with pytest.raises(ConstraintViolationError, match="have the key of another one"):
        t.upsert(frame.union(frame), on="id", deletes="equality")

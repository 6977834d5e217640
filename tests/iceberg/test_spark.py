"""Iceberg tables on Spark: what Spark would get wrong by itself."""

import datetime as dt
import json
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.errors import SchemaMismatchError
from boathouse.types import INT32, STRING, TIMESTAMP, TIMESTAMP_NTZ, UUID, Field, Schema

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")


@pytest.mark.spec("I-083")
def test_columns_that_swap_names(spark, catalog, adopt):
    theirs = catalog.create_table("db.s", pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    theirs.append(pa.table({"a": [1, 2], "b": [10, 20]}))
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        with theirs.update_schema() as update:
            update.rename_column(old, new)
    theirs.append(pa.table({"b": [3], "a": [30]}))
    table = bh.open(adopt(theirs), format="iceberg", spark=spark)
    frame = table.to_spark(spark)
    for where, expected in (("b = 1", [(1, 10)]), ("a > 15 AND b < 3", [(2, 20)]), ("a = 30", [(3, 30)])):
        assert [(r.b, r.a) for r in frame.where(where).collect()] == expected
        scanned = table.scan(where=where).to_spark(spark)
        assert [(r.b, r.a) for r in scanned.collect()] == expected


@pytest.mark.spec("I-043", "I-048", "I-049", "I-051", "I-291")
@pytest.mark.route("Iceberg")
def test_rows_written_by_spark(spark, tmp_path, seen):
    fields = (
        Field("i", INT32), Field("wall", TIMESTAMP_NTZ), Field("instant", TIMESTAMP), Field("u", UUID),
        Field("s", STRING),
    )  # fmt: skip
    root = str(tmp_path / "t")
    table = bh.create(root, Schema(fields), format="iceberg", partition_by=["day(instant)"])
    id = uuid.uuid4()
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        frame = spark.sql(
            "SELECT CAST(7 AS TINYINT) AS i, TIMESTAMP_NTZ '2017-11-16 17:10:34' AS wall, "
            "TIMESTAMP '2017-11-16 17:10:34 PST' AS instant, "
            f"X'{id.hex}' AS u, 'x' AS s"
        )
        table.append(frame)
        read = bh.open(root).to_spark(spark).collect()[0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    eyes = seen(root)
    (row,) = eyes.rows().to_pylist()
    assert (row["i"], row["wall"], row["u"]) == (7, dt.datetime(2017, 11, 16, 17, 10, 34), id)
    assert row["instant"] == dt.datetime(2017, 11, 17, 1, 10, 34, tzinfo=dt.UTC)
    assert read.i == 7 and read.wall == dt.datetime(2017, 11, 16, 17, 10, 34) and uuid.UUID(read.u) == id
    file = eyes.live()[0]
    assert next(iter(file["partition"].values())) == dt.date(2017, 11, 17)
    stored = pq.read_metadata(file["file_path"].removeprefix("file://")).schema
    assert str(stored.column(3).logical_type) == "UUID" and stored.column(3).physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert "isAdjustedToUTC=true" in str(stored.column(2).logical_type)


@pytest.mark.spec("I-085", "I-012")
@pytest.mark.route("Iceberg with deletes")
def test_partitions_and_deletes_on_spark(spark, tmp_path, seen):
    rows = spark.range(100).selectExpr("id", "CAST(id % 5 AS STRING) AS p", "TIMESTAMP_NTZ '2024-01-01' AS t")
    root = str(tmp_path / "t")
    table = bh.create(root, rows.schema, format="iceberg", partition_by=["p", "bucket(4, id)"])
    table.append(rows)
    table = bh.open(root, spark=spark)
    table.delete("id % 7 = 0 OR p = '3'")
    expected = sorted(i for i in range(100) if i % 7 and i % 5 != 3)
    assert sorted(r.id for r in bh.open(root).to_spark(spark).collect()) == expected
    assert sorted(seen(root).rows()["id"].to_pylist()) == expected


def _id(number):
    return {b"PARQUET:field_id": str(number).encode()}


@pytest.mark.parametrize("nullable", [True, False])
def test_variants_with_the_value_first(spark, make, nullable):
    """As Trino writes them: in every place `value` lies before `metadata`. Both ways of reading on Spark."""
    from boathouse.engines.spark.task_frames import scan_frame

    _, eyes = make(pa.table({"id": pa.array(range(5), pa.int64())}))
    kind = pa.struct([pa.field("value", pa.binary(), nullable), pa.field("metadata", pa.binary(), nullable)])
    one = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x05"}
    rows = [
        {"id": 0, "v": one, "s": {"v": one, "k": 1}, "l": [one, None], "m": [("a", one), ("b", None)]},
        {"id": 1, "v": None, "s": {"v": None, "k": 2}, "l": [], "m": []},
        {"id": 2, "v": None, "s": None, "l": None, "m": None},
        {"id": 3, "v": one, "s": None, "l": [None], "m": [("c", None)]},
        {"id": 4, "v": None, "s": {"v": one, "k": None}, "l": [one], "m": None},
    ]
    schema = pa.schema([
        pa.field("id", pa.int64(), True, _id(1)), pa.field("v", kind, True, _id(2)),
        pa.field("s", pa.struct(
            [pa.field("v", kind, True, _id(4)), pa.field("k", pa.int32(), True, _id(5))]), True, _id(3)),
        pa.field("l", pa.list_(pa.field("element", kind, True, _id(7))), True, _id(6)),
        pa.field("m", pa.map_(
            pa.field("key", pa.string(), False, _id(9)), pa.field("value", kind, True, _id(10))), True, _id(8)),
    ])  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, schema), eyes.live()[0]["file_path"].removeprefix("file://"))
    document = eyes.document()
    document.update({"format-version": 3, "next-row-id": 5, "last-column-id": 10})
    document["snapshots"][0].update({"first-row-id": 0, "added-rows": 5})
    variant = {"type": "variant", "required": False}
    k = {"id": 5, "name": "k", "type": "int", "required": False}
    document["schemas"][0]["fields"] += [
        {"id": 2, "name": "v", **variant},
        {"id": 3, "name": "s", "required": False, "type": {
            "type": "struct", "fields": [{"id": 4, "name": "v", **variant}, k]}},
        {"id": 6, "name": "l", "required": False, "type": {
            "type": "list", "element-id": 7, "element": "variant", "element-required": False}},
        {"id": 8, "name": "m", "required": False, "type": {
            "type": "map", "key-id": 9, "key": "string", "value-id": 10, "value": "variant", "value-required": False}},
    ]  # fmt: skip
    eyes.head().write_text(json.dumps(document))
    table = bh.open(str(eyes.root), spark=spark)
    shown = ["id", "cast(v as int)", "cast(s.v as int) sv", "s.k", "to_json(l) l", "to_json(m) m"]
    expected = [
        (0, 5, 5, 1, "[5,null]", '{"a":5,"b":null}'), (1, None, None, 2, "[]", "{}"),
        (2, None, None, None, None, None), (3, 5, None, None, "[null]", '{"c":null}'),
        (4, None, 5, None, "[5]", None),
    ]  # fmt: skip
    for frame in (table.to_spark(spark), scan_frame(spark, [table.scan().plan()])):
        assert [tuple(r) for r in frame.selectExpr(*shown).orderBy("id").collect()] == expected
    assert table.to_arrow().drop_columns(["m"]).to_pylist() == [{k: r[k] for k in ("id", "v", "s", "l")} for r in rows]


def test_rows_with_times_of_day(spark, tmp_path):
    """They are read as text, deleted where the library knows the condition, and not written from Spark."""
    uri, times = str(tmp_path / "t"), [dt.time(12), dt.time(12, 0, 0, 1), None, dt.time(1)]
    bh.write(pa.table({"id": range(4), "t": pa.array(times, pa.time64("us"))}), uri, format="iceberg")
    table = bh.open(uri, spark=spark)
    assert [r.t for r in table.to_spark().orderBy("id").collect()] == [*map(fixed, times[:2]), None, fixed(times[3])]
    files = sorted(map(str, tmp_path.rglob("*")))
    for write in (lambda: table.update({"id": "id + 1"}), lambda: table.append(table.to_spark())):
        with pytest.raises(SchemaMismatchError, match="`t` is string, but the table has time"):
            write()
    assert sorted(map(str, tmp_path.rglob("*"))) == files
    assert table.delete("id = 1").rows_deleted == 1
    assert bh.open(uri).to_arrow()["t"].to_pylist() == [times[0], *times[2:]]


def fixed(time):
    return time.strftime("%H:%M:%S.%f")

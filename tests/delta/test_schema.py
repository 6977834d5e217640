"""Schemas: JSON both ways, types both ways."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.schema import parse_schema, schema_json
from boathouse.errors import BoathouseError, CorruptTableError, SchemaError, UnsupportedTypeError


def field(name, type, nullable=True):
    return {"name": name, "type": type, "nullable": nullable, "metadata": {}}


STRUCT = {"type": "struct", "fields": [field("d", "integer", False)]}
EXAMPLE = {
    "type": "struct",
    "fields": [
        field("a", "integer", False),
        field("b", STRUCT),
        field("c", {"type": "array", "elementType": "integer", "containsNull": False}),
        field("e", {"type": "array", "elementType": STRUCT, "containsNull": True}),
        field("f", {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}),
    ],
}


@pytest.mark.spec("D-290")
def test_the_protocols_example():
    assert json.loads(schema_json(parse_schema(json.dumps(EXAMPLE), "t"))) == EXAMPLE


@pytest.mark.spec("D-289")
def test_six_deep():
    inner = "long"
    for _ in range(2):
        inner = {"type": "array", "elementType": inner, "containsNull": False}
        inner = {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": False}
        inner = {"type": "struct", "fields": [{"name": "x", "type": inner, "nullable": True, "metadata": {"k": [1]}}]}
    text = json.dumps({"type": "struct", "fields": [{"name": "c", "type": inner, "nullable": True, "metadata": {}}]})
    assert json.loads(schema_json(parse_schema(text, "t"))) == json.loads(text)


@pytest.mark.spec("D-289")
def test_nested_rows_both_ways(tmp_path, delta):
    deltalake = pytest.importorskip("deltalake")
    type = pa.struct([("l", pa.list_(pa.map_(pa.string(), pa.struct([("m", pa.list_(pa.list_(pa.int64())))]))))])
    value = {"l": [[("k", {"m": [[1, None], []]})], None]}
    data = pa.table({"c": pa.array([value, None], type)})
    bh.write(data, str(tmp_path / "ours"), format="delta")
    deltalake.write_deltalake(str(tmp_path / "theirs"), data)
    for path in ("ours", "theirs"):
        assert bh.open(str(tmp_path / path)).to_arrow().to_pylist() == data.to_pylist()
        assert delta.rows(tmp_path / path) == data.to_pylist()
    shapes = [
        next(a["metaData"] for a in delta.log(tmp_path / p)[0] if "metaData" in a)["schemaString"]
        for p in ("ours", "theirs")
    ]
    assert json.loads(shapes[0]) == json.loads(shapes[1])


FIXED = "FIXED_LEN_BYTE_ARRAY"
FIRST = dt.datetime(1, 1, 1, tzinfo=dt.UTC)
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC)
TYPES = [
    ("string", pa.string(), ["", "é"], "BYTE_ARRAY"),
    ("long", pa.int64(), [-(2**63), 2**63 - 1], "INT64"),
    ("integer", pa.int32(), [-(2**31), 2**31 - 1], "INT32"),
    ("short", pa.int16(), [-(2**15), 2**15 - 1], "INT32"),
    ("byte", pa.int8(), [-128, 127], "INT32"),
    ("float", pa.float32(), [1.5, -3.4028234663852886e38], "FLOAT"),
    ("double", pa.float64(), [5e-324, 1.7976931348623157e308], "DOUBLE"),
    ("decimal(9,2)", pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("0.01")], "INT32"),
    ("decimal(18,0)", pa.decimal128(18, 0), [Decimal(10**18 - 1), Decimal(-1)], "INT64"),
    ("decimal(38,38)", pa.decimal128(38, 38), [Decimal("0." + "9" * 38), Decimal("-0." + "1" * 38)], FIXED),
    ("decimal(38,0)", pa.decimal128(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38)], FIXED),
    ("boolean", pa.bool_(), [True, False], "BOOLEAN"),
    ("binary", pa.binary(), [b"", b"\x00\xff"], "BYTE_ARRAY"),
    ("date", pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)], "INT32"),
    ("timestamp", pa.timestamp("us", "UTC"), [FIRST, LAST], "INT64"),
]  # fmt: skip


@pytest.mark.spec("D-285", "D-286")
@pytest.mark.parametrize(("name", "arrow", "values", "physical"), TYPES, ids=[t[0] for t in TYPES])
def test_primitives_both_ways(tmp_path, delta, name, arrow, values, physical):
    deltalake = pytest.importorskip("deltalake")
    data = pa.table({"c": pa.array([*values, None], arrow)})
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    bh.write(data, ours, format="delta")
    deltalake.write_deltalake(theirs, data)
    (metadata,) = [a["metaData"] for a in delta.log(ours)[0] if "metaData" in a]
    assert json.loads(metadata["schemaString"])["fields"][0]["type"] == name
    (add,) = [a["add"] for a in delta.log(ours)[0] if "add" in a]
    column = pq.ParquetFile(f"{ours}/{add['path']}").schema.column(0)
    assert column.physical_type == physical
    if name == "timestamp":
        assert "isAdjustedToUTC=true" in str(column.logical_type) and "microseconds" in str(column.logical_type)
    for path in (ours, theirs):
        read = bh.open(path).to_arrow()
        assert read.schema.field("c").type == arrow
        assert read.column("c").to_pylist() == [*values, None]
        assert [r["c"] for r in delta.rows(path)] == [*values, None]


@pytest.mark.spec("D-285")
@pytest.mark.spark
def test_spark_reads_our_files(tmp_path, spark):
    plain = [(n.split("(")[0], t, v) for n, t, v, _ in TYPES if n != "timestamp"]
    data = pa.table({f"{n}_{i}": pa.array([*v, None], t) for i, (n, t, v) in enumerate(plain)})
    bh.write(data, str(tmp_path / "t"), format="delta")
    (path,) = bh.open(str(tmp_path / "t")).files().column("path").to_pylist()
    rows = [r.asDict() for r in spark.read.parquet(path).collect()]
    assert [{k: bytes(v) if isinstance(v, bytearray) else v for k, v in r.items()} for r in rows] == data.to_pylist()


@pytest.mark.spec("D-287")
def test_timestamps_in_files(tmp_path, raw, delta):
    instant = dt.datetime(2020, 1, 1, 1, 2, 3, 456000, tzinfo=dt.UTC)
    for i, (unit, options) in enumerate(
        (("ms", {}), ("us", {}), ("ns", {}), ("ns", {"use_deprecated_int96_timestamps": True}))
    ):
        table = raw()
        data = pa.table({"x": pa.array([instant], pa.timestamp(unit, "UTC"))})
        pq.write_table(data, table.path / "f.parquet", **options)
        table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "timestamp")]), table.add("f.parquet"))
        assert bh.open(str(table)).to_arrow().column("x").to_pylist() == [instant], i
    bh.write(pa.table({"x": pa.array([instant], pa.timestamp("us", "UTC"))}), str(tmp_path / "t"), format="delta")
    (path,) = bh.open(str(tmp_path / "t")).files().column("path").to_pylist()
    column = pq.ParquetFile(path.removeprefix("file://")).schema.column(0)
    assert column.physical_type == "INT64" and "microseconds" in str(column.logical_type)


@pytest.mark.spec("D-291")
def test_not_null_is_shown_and_enforced(tmp_path):
    required = pa.struct([pa.field("a", pa.int64(), False)])
    schema = pa.schema(
        [
            pa.field("x", pa.int64(), False),
            pa.field("s", required),
            pa.field("l", pa.list_(pa.field("element", pa.int64(), False))),
            pa.field("m", pa.map_(pa.string(), pa.field("value", pa.int64(), False))),
        ]
    )
    path = str(tmp_path / "t")
    bh.create(path, schema)
    found = bh.open(path).schema
    assert not found.field("x").nullable and not found.field("s").type.fields[0].nullable
    assert not found.field("l").type.element.nullable and not found.field("m").type.value.nullable
    loose = pa.schema(
        [
            ("x", pa.int64()),
            ("s", pa.struct([("a", pa.int64())])),
            ("l", pa.list_(pa.int64())),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    good = {"x": 1, "s": {"a": 1}, "l": [1], "m": [("k", 1)]}
    for bad in ({"x": None}, {"s": {"a": None}}, {"l": [None]}, {"m": [("k", None)]}):
        with pytest.raises(BoathouseError):
            bh.open(path).append(pa.Table.from_pylist([{**good, **bad}], schema=loose))
        assert bh.open(path).version == 0
    bh.open(path).append(pa.Table.from_pylist([good, {**good, "x": 2, "l": None, "m": None}], schema=loose))
    assert bh.open(path).count() == 2


@pytest.mark.feature("timestampNtz", format="delta")
def test_timestamp_ntz_takes_the_lowest_protocol(tmp_path, delta):
    path = str(tmp_path / "t")
    value = dt.datetime(2020, 1, 1, 0, 0, 0, 1)
    data = pa.table({"n": pa.array([value], pa.timestamp("us"))})
    bh.write(data, path, format="delta")
    (protocol,) = [a["protocol"] for a in delta.log(path)[0] if "protocol" in a]
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (3, 7)
    assert protocol["readerFeatures"] == ["timestampNtz"]
    assert delta.rows(path) == [{"n": value}] == bh.open(path).to_arrow().to_pylist()
    bh.open(path).append(data)
    assert len(delta.rows(path)) == 2
    plain = str(tmp_path / "plain")
    bh.write(pa.table({"x": [1]}), plain, format="delta")
    with pytest.raises(BoathouseError, match="timestampNtz"):
        bh.open(plain).add_column("n", "timestamp_ntz")


def test_void_columns_are_not_in_files(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(pa.table({"x": [1], "v": pa.nulls(1)}), path, format="delta")
    (file,) = bh.open(path).files().column("path").to_pylist()
    assert pq.ParquetFile(file.removeprefix("file://")).schema_arrow.names == ["x"]
    assert bh.open(path).to_arrow().to_pylist() == [{"x": 1, "v": None}]


def test_what_cannot_be_is_refused(tmp_path):
    path = str(tmp_path / "t")
    for schema, error in (
        (pa.schema([("a", pa.int64()), ("A", pa.int64())]), SchemaError),
        (pa.schema([("a", pa.uint64())]), UnsupportedTypeError),
        (pa.schema([("a", pa.time64("us"))]), UnsupportedTypeError),
        (pa.schema([("a", pa.struct([("b", pa.int64()), ("B", pa.int64())]))]), SchemaError),
    ):
        with pytest.raises(error):
            bh.create(path, schema)
    for bad in (["a"], ["zz"], ["l"]):
        with pytest.raises(BoathouseError):
            bh.create(
                path,
                pa.schema([("a", pa.int64())] + ([("l", pa.list_(pa.int64()))] if bad == ["l"] else [])),
                partition_by=bad,
            )
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"type": "map"}', '{"type": "struct", "fields": [{"name": "a"}]}', '{"type": "struct"}']
)
def test_broken_schemas(raw, delta, text):
    table = raw()
    described = delta.metadata([])
    described["metaData"]["schemaString"] = text
    table.commit(0, delta.PROTOCOL, described)
    with pytest.raises(CorruptTableError):
        bh.open(str(table))

"""Types that came with format version 3: read in files of every format, and in version 2 refused."""

import json

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_writers import arrow_type
from mixed_files import FORMATS, evolved, opener, read

import boathouse as bh
from boathouse.errors import CorruptTableError, SchemaMismatchError
from boathouse.types import INT32, VARIANT, Field, GeographyType, GeometryType, NullType, Schema
from boathouse.variant import Variant

POINT = bytes.fromhex("0101000000000000000000f03f0000000000000040")
NANOS = 1_500_000_000_123_456_789
VALUES = [{"a": 1, "b": ["x", None]}, None, 7, {"a": "text"}]
ONE = Schema((Field("i", INT32),))
TYPES = {
    "nt": "timestamp_ns", "nz": "timestamptz_ns", "v": "variant", "g": "geometry", "gg": "geography(srid:4326, karney)",
    "u": "unknown",
}  # fmt: skip


def variants(values):
    made = [None if v is None else Variant.from_python(v) for v in values]
    return pa.array(
        [None if m is None else {"metadata": m.metadata, "value": m.value} for m in made], arrow_type("variant")
    )


def rows():
    times = pa.array([NANOS, None, -1, 0], pa.int64())
    return pa.table({
        "i": pa.array(range(4), pa.int32()), "nt": times.view(pa.timestamp("ns")),
        "nz": times.view(pa.timestamp("ns", "UTC")), "v": variants(VALUES), "g": [POINT, None, POINT, b"\1"],
        "gg": [None, POINT, POINT, b"\1"]})  # fmt: skip


@pytest.fixture
def new(tmp_path):
    return opener(tmp_path)


def with_types(files, types):
    def change(fields):
        fields += [{"id": n, "name": k, "required": False, "type": t} for n, (k, t) in enumerate(types.items(), 10)]

    evolved(files, change)
    return files


@pytest.fixture
def made(new):
    """A table of version 3 with one file of each format, and one that lacks the new columns."""
    files = new(ONE).upgrade()
    files.commit(files.file("parquet", rows().select(["i"])))
    with_types(files, TYPES)
    stored = {"fields": [f for f in files.schema["fields"] if f["type"] != "unknown"]}
    plain = json.loads(json.dumps(stored).replace("(srid:4326, karney)", ""))
    for format in FORMATS:
        files.commit(files.file(format, rows(), plain))
    return files


def plain_values(column):
    if pa.types.is_timestamp(column.type):
        return [v.value for v in column]
    return column.to_pylist()


@pytest.mark.spec("I-055", "I-335")
@pytest.mark.feature("format version 3", format="iceberg")
def test_every_type_in_every_format(made):
    table = bh.open(str(made.root))
    types = {f.name: f.type for f in table.schema}
    assert types["g"] == GeometryType() and types["gg"] == GeographyType("srid:4326", "karney")
    assert types["v"] == VARIANT and types["u"] == NullType() and str(types["gg"]) == "geography(srid:4326, karney)"
    found, expected = table.to_arrow(), rows()
    assert found.num_rows == 16 and found["u"].null_count == 16
    for name in expected.column_names[1:]:
        assert plain_values(found[name]) == [None] * 4 + plain_values(expected[name]) * 3, name
    assert found.schema.field("g").type == pa.binary()
    assert found["i"].to_pylist() == [0, 1, 2, 3] * 4


@pytest.mark.spec("I-055")
def test_conditions_on_every_type(made):
    table = bh.open(str(made.root))

    def count(where):
        return table.scan(["i"], where=where).to_arrow().num_rows

    assert count("g IS NOT NULL") == 9 and count("gg IS NULL AND i > 0") == 3 and count("u IS NULL") == 16
    assert count(f"g = X'{POINT.hex()}'") == 6 and count("u IS NOT NULL") == 0
    assert count("nt IS NULL") == 7 and count("nt < TIMESTAMP_NTZ'1970-01-01 00:00:00'") == 3
    assert count("nz > TIMESTAMP'2017-07-14 02:40:00.123456+00:00'") == 3
    assert count("variant_get(v, '$.a', 'string') = 'text'") == 3
    assert count("try_variant_get(v, '$.a', 'int') = 1 AND nt IS NOT NULL") == 3


@pytest.mark.spec("I-335")
def test_bounds_by_path_and_of_shapes_exclude_nothing(new):
    """A variant's bounds are an object of the values at its paths, those of shapes are points."""
    files = with_types(new(ONE).upgrade(), {"v": "variant", "g": "geometry"})
    low, high = (variants([{"$['a']": n}])[0].as_py() for n in (5, 9))
    corner = bytes(16)
    more = {"lower_bounds": [{"key": 10, "value": low["metadata"] + low["value"]}, {"key": 11, "value": corner}],
            "upper_bounds": [{"key": 10, "value": high["metadata"] + high["value"]}, {"key": 11, "value": corner}],
            "null_value_counts": [{"key": 10, "value": 0}, {"key": 11, "value": 0}],
            "value_counts": [{"key": 10, "value": 2}, {"key": 11, "value": 2}]}  # fmt: skip
    data = pa.table({"i": pa.array([1, 2], pa.int32()), "v": variants([{"a": 5}, {"a": 9}]), "g": [POINT, POINT]})
    for format in FORMATS:
        files.commit(files.file(format, data, more=more))
    assert read(files, columns=["i"], where="variant_get(v, '$.a', 'int') = 9")["i"].to_pylist() == [2] * 3
    assert read(files, columns=["i"], where="variant_get(v, '$.a', 'int') = 4").num_rows == 0
    assert read(files, columns=["i"], where=f"g = X'{POINT.hex()}' AND v IS NOT NULL").num_rows == 6
    assert read(files, columns=["i"], where="g IS NULL OR v IS NULL").num_rows == 0
    for metrics in bh.open(str(files.root)).inspect.files()["readable_metrics"].to_pylist():
        assert "v" not in metrics and metrics["g"]["lower_bound"] is None


@pytest.mark.spec("I-055")
def test_shapes_that_duckdb_writes(new):
    """Its Parquet files have the annotations of shapes."""
    files = with_types(new(ONE).upgrade(), {"g": "geometry"})
    path = files._file("parquet")
    connection = duckdb.connect()
    connection.execute(
        f"COPY (SELECT i::INT i, 'POINT(1 2)'::GEOMETRY g FROM range(3) t(i)) TO '{path}' "
        "(FORMAT parquet, GEOPARQUET_VERSION 'NONE', FIELD_IDS {i: 1, g: 10})"
    )
    assert "Geometry" in str(pq.ParquetFile(path).metadata.schema)
    files.commit(files.entry(path, "PARQUET", 0, 3))
    assert read(files).to_pylist() == [{"i": n, "g": POINT} for n in range(3)]
    assert read(files, columns=["i"], where=f"g <> X'{POINT.hex()}'").num_rows == 0


@pytest.mark.spec("I-054")
@pytest.mark.parametrize("type", ("timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography"))
@pytest.mark.parametrize("version", (1, 2))
def test_not_in_older_versions(new, type, version):
    files = new(ONE)
    nested = {"type": "list", "element-id": 50, "element": type, "element-required": False}
    with_types(files, {"x": nested})
    files.edit(lambda d: d.update({"format-version": version}))
    with pytest.raises(CorruptTableError, match=f"`x.element` is .* which format version {version} does not have"):
        bh.open(str(files.root))


@pytest.mark.spec("I-055")
def test_unknown_is_not_required_and_never_read_from_files(new):
    files = with_types(new(ONE).upgrade(), {"u": "unknown"})
    odd = {"fields": [{"id": 1, "name": "i", "type": "int", "required": False},
                      {"id": 10, "name": "u", "type": "string", "required": False}]}  # fmt: skip
    data = pa.table({"i": pa.array([1], pa.int32()), "u": ["text"]})
    for format in FORMATS:
        files.commit(files.file(format, data, odd))
    assert read(files).to_pylist() == [{"i": 1, "u": None}] * 3
    evolved(files, lambda fields: fields[1].update(type="string"))
    assert read(files).to_pylist() == [{"i": 1, "u": "text"}] * 3
    evolved(files, lambda fields: fields[1].update(type="unknown", required=True))
    with pytest.raises(CorruptTableError, match="`u` has no type yet"):
        read(files)


def test_dates_and_unknown_that_were_promoted(new):
    """Version 3 lets a date become a timestamp without a zone."""
    files = with_types(new(ONE).upgrade(), {"d": "date", "n": "date", "u": "unknown"})
    days = pa.array([-719162, 0, None], pa.int32()).view(pa.date32())
    near = pa.array([-1, 0, None], pa.int32()).view(pa.date32())
    data = pa.table({"i": pa.array(range(3), pa.int32()), "d": days, "n": near})
    stored = {"fields": files.schema["fields"][:3]}
    bounds = {name: [{"key": 10, "value": at(10).to_bytes(4, "little", signed=True)}] for name, at in (
        ("lower_bounds", lambda _: -719162), ("upper_bounds", lambda _: 0))}  # fmt: skip
    for format in FORMATS:
        files.commit(files.file(format, data, stored, more=bounds))

    def change(fields):
        fields[1]["type"], fields[2]["type"] = "timestamp", "timestamp_ns"
        fields[3]["type"] = {"type": "struct", "fields": [{"id": 60, "name": "x", "type": "long", "required": False}]}

    evolved(files, change)
    found = read(files)
    day = 86_400_000_000
    assert [v.value for v in found["d"]] == [-719162 * day, 0, None] * 3
    assert [v.value for v in found["n"]] == [-day * 1000, 0, None] * 3 and found["u"].null_count == 9
    assert read(files, columns=["i"], where="d = TIMESTAMP_NTZ'0001-01-01 00:00:00'")["i"].to_pylist() == [0] * 3
    far = data.set_column(2, "n", pa.array([2932896, 0, None], pa.int32()).view(pa.date32()))
    files.commit(files.file("parquet", far, stored))
    with pytest.raises(SchemaMismatchError, match="out of bounds"):
        read(files, columns=["n"])


@pytest.mark.spark
@pytest.mark.spec("I-055")
@pytest.mark.feature("format version 3", format="iceberg")
@pytest.mark.route("types of Iceberg 3")
def test_on_spark(spark, made):
    table = bh.open(str(made.root), spark=spark)
    frame = table.scan(["i", "v", "g", "gg", "u"]).to_spark(spark)
    found = frame.selectExpr("i", "to_json(v)", "g", "gg", "u").orderBy("i", "g").collect()
    assert len(found) == 16 and {r.u for r in found} == {None}
    expected = [(n, v, g, h) for n, (v, g, h) in enumerate(zip(VALUES, *(rows()[c].to_pylist() for c in ("g", "gg"))))]
    wanted = [(n, None, None, None) for n in range(4)] + expected * 3
    shown = [(r[0], None if r[1] is None else json.loads(r[1]), *(None if b is None else bytes(b) for b in r[2:4]))
             for r in found]  # fmt: skip
    assert sorted(shown, key=repr) == sorted(wanted, key=repr)
    assert table.scan(["i"], where="g IS NOT NULL AND nt IS NOT NULL").to_spark(spark).count() == 9
    times = table.scan(["nt", "nz"], where="i = 0 AND nt IS NOT NULL").to_spark(spark).collect()
    assert [tuple(r) for r in times] == [(NANOS, NANOS)] * 3 and table.to_spark().count() == 16

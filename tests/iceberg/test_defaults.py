"""Defaults of columns: JSON single values, and what old files read as."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from mixed_files import FORMATS, evolved, opener, read

import boathouse as bh
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.commit.evolve import evolve
from boathouse.iceberg.metadata.single_values import from_json, to_json
from boathouse.table.edits import AddColumn
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimestampType,
    TimeType,
)

TIME, NS, NSZ = TimeType("us"), TimestampType(False, "ns"), TimestampType(True, "ns")
NOON = ((22 * 60 + 31) * 60 + 8) * 10**6 + 123_456
DAY = dt.date(2017, 11, 16)
MOMENT = dt.datetime(2017, 11, 16, 22, 31, 8, 123_456)
MICROS = (MOMENT - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
BYTES = bytes.fromhex("000102ff")
# (type, JSON, value): the rows of the specification's table.
SINGLE = (
    (BOOLEAN, True, True), (INT32, 34, 34), (INT64, 34, 34), (FLOAT, 1.0, 1.0), (DOUBLE, 1.0, 1.0),
    (DecimalType(9, 2), "14.20", Decimal("14.20")), (DecimalType(9, 2), "-0.05", Decimal("-0.05")),
    (DecimalType(38, 38), "0." + "9" * 38, Decimal("0." + "9" * 38)), (DATE, "2017-11-16", DAY),
    (TIME, "22:31:08.123456", NOON), (TIMESTAMP_NTZ, "2017-11-16T22:31:08.123456", MOMENT),
    (TIMESTAMP, "2017-11-16T22:31:08.123456+00:00", MOMENT.replace(tzinfo=dt.UTC)),
    (NS, "2017-11-16T22:31:08.123456789", MICROS * 1000 + 789),
    (NSZ, "2017-11-16T22:31:08.123456789+00:00", MICROS * 1000 + 789),
    (NS, "1969-12-31T23:59:59.999999999", -1), (TIMESTAMP_NTZ, "0001-01-01T00:00:00", dt.datetime(1, 1, 1)),
    (STRING, "iceberg", "iceberg"), (STRING, "", ""),
    (UUID, "f79c3e09-677c-4bbd-a479-3f349cb785e7", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")),
    (FixedType(4), "000102ff", BYTES), (BINARY, "000102ff", BYTES), (BINARY, "", b""),
    (StructType((Field("a", INT32, id=1), Field("b", STRING, id=2))), {"1": 1, "2": "bar"}, {"a": 1, "b": "bar"}),
    (ListType(Field("element", INT32, id=1)), [1, 2, None], [1, 2, None]),
    (MapType(Field("key", STRING, False, 1), Field("value", INT32, id=2)), {"keys": ["a", "b"], "values": [1, None]},
     [("a", 1), ("b", None)]),
    (ListType(Field("element", MapType(Field("key", DATE, False, 2), Field("value", StructType((
        Field("u", UUID, id=4), Field("n", ListType(Field("element", NS, id=6)), id=5))), id=3)), id=1)),
     [{"keys": ["1970-01-02"], "values": [
         {"4": "f79c3e09-677c-4bbd-a479-3f349cb785e7", "5": ["1970-01-01T00:00:00.000000001"]}]}],
     [[(dt.date(1970, 1, 2), {"u": bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), "n": [1]})]]),
)  # fmt: skip


@pytest.mark.spec("I-067", "I-323", "I-324")
@pytest.mark.parametrize(("type", "text", "value"), SINGLE, ids=lambda v: str(v)[:24])
def test_json_single_values(type, text, value):
    assert from_json(json.loads(json.dumps(text)), type) == value
    assert to_json(value, type) == text and from_json(None, type) is None and to_json(None, type) is None


@pytest.mark.spec("I-323")
def test_other_forms_of_the_same_values():
    assert from_json("2E+20", DecimalType(38, 0)) == 2 * 10**20
    assert from_json("22:31:08", TIME) == NOON // 10**6 * 10**6 and to_json(10**6, TIME) == "00:00:01"
    assert from_json(1, DOUBLE) == 1.0 and isinstance(from_json(1, DOUBLE), float)
    assert from_json("1969-12-31T23:59:59.9+00:00", TIMESTAMP).microsecond == 900_000
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            to_json(number, DOUBLE)


MAP = MapType(Field("key", STRING, False, 1), Field("value", INT32, id=2))
WRONG = (
    (BOOLEAN, 1), (BOOLEAN, "true"), (INT32, True), (INT32, 1.5), (INT32, 1 << 31), (INT32, "1"), (INT64, 1 << 63),
    (FLOAT, "1.0"), (FLOAT, 1e39), (DOUBLE, True), (DecimalType(9, 2), 14.2), (DecimalType(9, 2), "14.2"),
    (DecimalType(9, 2), "14.200"), (DecimalType(9, 2), "12345678.00"), (DecimalType(9, 2), "NaN"),
    (DecimalType(9, 0), "2E+20"), (DecimalType(9, 2), " 1.00"), (DATE, "2017-11-32"), (DATE, "20171116"), (DATE, 3),
    (DATE, "2017-W46-4"), (TIME, "24:00:00"), (TIME, "22:31"), (TIME, "22:31:08.1234567"), (TIME, "22:31:08+00:00"),
    (TIMESTAMP_NTZ, "2017-11-16T22:31:08+00:00"), (TIMESTAMP_NTZ, "2017-11-16 22:31:08"),
    (TIMESTAMP_NTZ, "2017-11-16T22:31:08.123456789"), (TIMESTAMP, "2017-11-16T22:31:08"),
    (TIMESTAMP, "2017-11-16T22:31:08Z"), (TIMESTAMP, "2017-11-16T22:31:08+01:00"),
    (TIMESTAMP, "2017-11-16T22:31:08-00:00"), (NS, "2300-01-01T00:00:00"), (STRING, 7),
    (UUID, "F79C3E09-677C-4BBD-A479-3F349CB785E7"), (UUID, "f79c3e09677c4bbda4793f349cb785e7"),
    (FixedType(4), "0001"), (FixedType(1), "0"), (BINARY, "0x00"), (BINARY, "00 01"), (BINARY, "AAEC"[:3]),
    (StructType((Field("a", INT32, id=1),)), {"a": 1}), (StructType((Field("a", INT32, id=1),)), [1]),
    (ListType(Field("element", INT32, id=1)), {"0": 1}), (ListType(Field("element", INT32, id=1)), ["1"]),
    (MAP, {"a": 1}), (MAP, {"keys": ["a"], "values": []}), (MAP, {"keys": [None], "values": [1]}), (MAP, []),
)  # fmt: skip


@pytest.mark.spec("I-323", "I-324")
@pytest.mark.parametrize(("type", "text"), WRONG, ids=lambda v: str(v)[:24])
def test_wrong_single_values(type, text):
    with pytest.raises(ValueError, match=r".+"):
        from_json(text, type)


@pytest.fixture
def new(tmp_path):
    return opener(tmp_path)


def added(id, name, type, **more):
    return {"id": id, "name": name, "required": False, "type": type, **more}


def old_files(new, schema, rows, name="t"):
    """A table with one file of each format that was written before the columns of `change` came."""
    files = new(schema, name).upgrade()
    for format in FORMATS:
        files.commit(files.file(format, rows))
    return files


EVERY_TYPE = {
    "boolean": (True, True), "int": (34, 34), "long": (-1, -1), "float": (0.5, 0.5), "double": (1, 1.0),
    "decimal(9,2)": ("14.20", Decimal("14.20")), "date": ("2017-11-16", DAY), "time": ("22:31:08.123456", NOON),
    "timestamp": ("2017-11-16T22:31:08.123456", MICROS), "timestamptz": ("2017-11-16T22:31:08.123456+00:00", MICROS),
    "timestamp_ns": ("2017-11-16T22:31:08.123456789", MICROS * 1000 + 789),
    "timestamptz_ns": ("2017-11-16T22:31:08.123456789+00:00", MICROS * 1000 + 789), "string": ("", ""),
    "uuid": ("f79c3e09-677c-4bbd-a479-3f349cb785e7", bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7")),
    "fixed[4]": ("000102ff", BYTES), "binary": ("00", b"\0"),
}  # fmt: skip
ONE = Schema((Field("i", INT32),))
ROWS = pa.table({"i": pa.array([1, 2], pa.int32())})


def numbers(array):
    """Times and timestamps as numbers."""
    if pa.types.is_time(array.type) or pa.types.is_timestamp(array.type):
        return [v.value for v in array]
    return array.to_pylist()


@pytest.mark.spec("I-056", "I-061", "I-067")
def test_old_files_have_the_default_of_every_type(new):
    files = old_files(new, ONE, ROWS)

    def change(fields):
        for n, (type, (default, _)) in enumerate(EVERY_TYPE.items(), 10):
            fields.append(added(n, type, type, **{"initial-default": default, "write-default": None}))
        fields.append(added(90, "none", "string", **{"write-default": "later"}))
        fields.append(added(91, "nothing", "long", **{"initial-default": None}))

    evolved(files, change)
    found = read(files)
    assert found.num_rows == 6 and found["none"].null_count == 6 and found["nothing"].null_count == 6
    for type, (_, value) in EVERY_TYPE.items():
        assert numbers(found[type]) == [value] * 6, type
    assert read(files, columns=["i"], where="`int` = 34 AND `string` = '' AND nothing IS NULL").num_rows == 6
    assert read(files, columns=["i"], where="`int` <> 34 OR `date` IS NULL").num_rows == 0
    # Files that have the column have its values, null among them.
    newer = pa.table({f.name: found[f.name].slice(0, 2) for f in found.schema})
    newer = newer.set_column(2, "int", pa.array([None, 5], pa.int32()))
    for format in ("parquet", "avro"):
        files.commit(files.file(format, newer))
    assert sorted(read(files)["int"].to_pylist(), key=str) == [34] * 6 + [5] * 2 + [None] * 2
    assert read(files, columns=["i"], where="`int` IS NULL").num_rows == 2


POINT = Schema((Field("i", INT32), Field("p", StructType((Field("x", INT32), Field("z", INT32))))))


@pytest.mark.spec("I-065")
def test_the_defaults_of_a_struct_and_of_its_fields(new):
    """The four rows of the specification's table, and a struct that is null."""
    rows = pa.table({"i": pa.array([1, 2, 3], pa.int32()), "p": [{"x": 3, "z": 1}, None, {"x": None, "z": 1}]})
    files = old_files(
        new, POINT, rows.cast(pa.schema([("i", pa.int32()), ("p", pa.struct([("x", pa.int32()), ("z", pa.int32())]))]))
    )
    zero = {"initial-default": 0, "write-default": 0}

    def point(first, default):
        fields = [added(first + 1, "x", "int", **zero), added(first + 2, "y", "int", **zero)]
        return added(first, f"new{first}", {"type": "struct", "fields": fields}, **default)

    def change(fields):
        below = fields[1]["type"]["fields"]
        below[1:] = [added(60, "y", "int", **zero)]
        below[0].update(zero)
        inner = point(80, {"initial-default": {}})
        outer = added(
            79, "deep", {"type": "struct", "fields": [inner, added(85, "s", "string")]}, **{"initial-default": {}}
        )
        fields += [point(62, {}), point(66, {"initial-default": {}}), outer]

    evolved(files, change)
    found = read(files).to_pylist()
    assert len(found) == 9
    for row in found:
        p = {1: {"x": 3, "y": 0}, 2: None, 3: {"x": None, "y": 0}}[row["i"]]
        assert row == {
            "i": row["i"], "p": p, "new62": None, "new66": {"x": 0, "y": 0},
            "deep": {"new80": {"x": 0, "y": 0}, "s": None}}  # fmt: skip
    assert read(files, columns=["i"], where="new66.y = 0 AND p.y = 0 AND deep.new80.x = 0").num_rows == 6
    assert read(files, columns=["i"], where="new66 IS NULL OR new62 IS NOT NULL OR new66.x <> 0").num_rows == 0
    # Where the struct is null, so is the field.
    assert read(files, columns=["i"], where="p.y IS NULL")["i"].to_pylist() == [2, 2, 2]
    assert read(files, columns=["i"], where="p.y <=> 0").num_rows == 6
    # A file with one field of the struct has that, and the default of the other.
    schema = {"fields": [{"id": 1, "name": "i", "type": "int", "required": False}, added(66, "new66", {
        "type": "struct", "fields": [added(68, "y", "int")]})]}  # fmt: skip
    late = pa.table({"i": pa.array([7], pa.int32()), "new66": pa.array([{"y": -1}], pa.struct([("y", pa.int32())]))})
    for format in FORMATS:
        files.commit(files.file(format, late, schema))
    assert [r["new66"] for r in read(files, where="i = 7").to_pylist()] == [{"x": 0, "y": -1}] * 3


@pytest.mark.spec("I-056", "I-324")
def test_defaults_inside_lists_and_maps_and_of_them(new):
    inner = StructType((Field("a", INT32),))
    schema = Schema((
        Field("l", ListType(Field("element", inner))),
        Field("m", MapType(Field("key", STRING, False), Field("value", inner)))))  # fmt: skip
    arrow = pa.struct([("a", pa.int32())])
    rows = pa.table({"l": pa.array([[{"a": 1}, None], [], None], pa.list_(arrow)),
                     "m": pa.array([[("k", {"a": 2})], None, []], pa.map_(pa.string(), arrow))})  # fmt: skip
    files = old_files(new, schema, rows)

    def change(fields):
        seven = added(60, "b", "string", **{"initial-default": "x"})
        fields[0]["type"]["element"]["fields"].append(seven)
        fields[1]["type"]["value"]["fields"].append({**seven, "id": 61})
        ints = {"type": "list", "element-id": 63, "element": "date", "element-required": False}
        pairs = {"type": "map", "key-id": 65, "key": "string", "value-id": 66, "value": "long", "value-required": False}
        fields.append(added(62, "dl", ints, **{"initial-default": ["2017-11-16", None]}))
        fields.append(added(64, "dm", pairs, **{"initial-default": {"keys": ["k"], "values": [5]}}))

    evolved(files, change)
    for row, n in zip(read(files).to_pylist(), [0, 1, 2] * 3):
        assert row["l"] == ([{"a": 1, "b": "x"}, None], [], None)[n]
        assert row["m"] == ([("k", {"a": 2, "b": "x"})], None, [])[n]
        assert row["dl"] == [DAY, None] and row["dm"] == [("k", 5)]


@pytest.mark.spec("I-065")
def test_a_default_with_values_of_its_fields(new):
    """Drafts of version 3 had them; where a field is missing, its own default is taken."""
    files = old_files(new, ONE, ROWS)

    def change(fields):
        inner = {"type": "struct", "fields": [added(14, "z", "int", **{"initial-default": 3})]}
        x, y = (added(10 + n, name, "int", **{"initial-default": n}) for n, name in ((1, "x"), (2, "y")))
        members = {"type": "struct", "fields": [x, y, added(13, "s", inner)]}
        fields.append(added(10, "p", members, **{"initial-default": {"11": 5, "13": {}}}))

    evolved(files, change)
    assert read(files)["p"].to_pylist() == [{"x": 5, "y": 2, "s": {"z": 3}}] * 6


VARIANT = {"keys": [], "values": []}
REFUSED = (
    ("variant", VARIANT), ("variant", 1), ("unknown", 0), ("geometry", "00"), ("geography(srid:4326)", "00"),
    ("int", "5"), ("date", 5), ("timestamptz", "2017-11-16T22:31:08+02:00"), ("uuid", "x"),
    ({"type": "struct", "fields": [added(61, "x", "int")]}, {"99": 1}),
    ({"type": "list", "element-id": 61, "element": "int", "element-required": False}, {}),
)  # fmt: skip


@pytest.mark.spec("I-066", "I-067")
@pytest.mark.parametrize("which", ("initial-default", "write-default"))
@pytest.mark.parametrize(("type", "default"), REFUSED, ids=lambda v: str(v)[:24])
def test_defaults_that_are_none_of_their_type(new, type, default, which):
    files = new(ONE).upgrade()
    evolved(files, lambda fields: fields.append(added(60, "d", type, **{which: None})))
    assert read(files).num_rows == 0
    evolved(files, lambda fields: fields[-1].update({which: default}))
    with pytest.raises(CorruptTableError, match=f"column `d` has the {which}") as caught:
        read(files)
    assert "metadata.json" in str(caught.value)


@pytest.mark.spec("I-056")
def test_a_column_with_a_default_is_not_added_to_version_2(make):
    table, _ = make(ROWS)
    with pytest.raises(UnsupportedFeatureError, match="`d` cannot have a default in a table of format version 2"):
        evolve(table._handle.snapshot, [AddColumn("d", INT32, default="5")])


@pytest.mark.spec("I-330")
def test_a_write_default_alone_changes_nothing_for_older_readers(make):
    _, eyes = make(ROWS)
    document = eyes.document()
    document.update({"format-version": 3, "next-row-id": 2})
    document["schemas"][0]["fields"][0]["write-default"] = 34
    document["schemas"][0]["fields"].append(added(2, "s", "string", **{"write-default": "x", "initial-default": None}))
    document["last-column-id"] = 2
    eyes.head().write_text(json.dumps(document))
    expected = [{"i": 1, "s": None}, {"i": 2, "s": None}]
    assert eyes.rows().to_pylist() == expected and bh.open(str(eyes.root)).to_arrow().to_pylist() == expected


@pytest.mark.spark
@pytest.mark.spec("I-056", "I-065")
def test_defaults_on_spark(spark, new):
    """By Spark's own reader, in a session far from UTC, and by tasks where that cannot give them."""
    files = new(ONE).upgrade()
    files.commit(files.file("parquet", ROWS))
    types = [t for t in EVERY_TYPE if t not in ("time", "timestamp_ns", "timestamptz_ns", "uuid", "fixed[4]", "binary")]

    def change(fields):
        fields += [added(n, f"c{n}", t, **{"initial-default": EVERY_TYPE[t][0]}) for n, t in enumerate(types, 10)]

    evolved(files, change)
    table = bh.open(str(files.root), spark=spark)
    expected = table.to_arrow().to_pylist()
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        frame = table.to_spark(spark)
        assert "native" in str(table.scan().explain())
        found = frame.toArrow().to_pylist()
        moment = f"c{10 + types.index('timestamptz')} = TIMESTAMP'2017-11-16 22:31:08.123456+00:00'"
        assert frame.where(moment).count() == 2 and table.scan(where=moment).to_spark(spark).count() == 2
        assert frame.where("c11 IS NULL OR c11 <> 34").count() == 0
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert sorted(map(plain, found), key=str) == sorted(map(plain, expected), key=str)

    def more(fields):
        zero = {"initial-default": 0}
        x = {"type": "struct", "fields": [added(61, "x", "int", **zero), added(62, "y", "int")]}
        fields.append(added(60, "p", x, **{"initial-default": {}}))
        fields.append(added(63, "u", "uuid", **{"initial-default": EVERY_TYPE["uuid"][0]}))
        fields.append(added(64, "b", "binary", **{"initial-default": "00ff"}))
        pairs = {"type": "map", "key-id": 66, "key": "string", "value-id": 67, "value": "long", "value-required": False}
        fields.append(added(65, "m", pairs, **{"initial-default": {"keys": ["k"], "values": [5]}}))

    evolved(files, more)
    frame = bh.open(str(files.root), spark=spark).scan(["i", "p", "u", "b", "m"]).to_spark(spark)
    assert [(r.p.x, r.p.y, r.u, bytes(r.b), r.m) for r in frame.where("p.x = 0").collect()] == [
        (0, None, EVERY_TYPE["uuid"][0], b"\0\xff", {"k": 5})] * 2  # fmt: skip


def plain(row):
    """Times as instants or wall clocks, whatever the zone they are shown in."""
    return {k: v.astimezone(dt.UTC) if isinstance(v, dt.datetime) and v.tzinfo else v for k, v in row.items()}

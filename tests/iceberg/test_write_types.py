"""Every type written by us: read by pyiceberg, and the Parquet footers as the specification asks."""

import datetime as dt
import math
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.errors import (
    ConstraintViolationError,
    SchemaError,
    SchemaMismatchError,
    UnsupportedTypeError,
)
from boathouse.iceberg.metadata.schemas import leaves
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
    TimeType,
)

pytest.importorskip("pyiceberg")
MICROS = dt.datetime(2017, 11, 16, 17, 10, 34)
VALUES = {
    "boolean": (BOOLEAN, [True, False, None]),
    "int": (INT32, [-(2**31), 2**31 - 1, None]),
    "long": (INT64, [-(2**63), 2**63 - 1, None]),
    "float": (FLOAT, [-math.inf, math.inf, -0.0, 1.5, None]),
    "double": (DOUBLE, [math.nan, -math.inf, math.inf, -0.0, 0.0, None]),
    "decimal9": (DecimalType(9, 2), [Decimal("-9999999.99"), Decimal("9999999.99"), None]),
    "decimal18": (DecimalType(18, 0), [Decimal(-(10**18) + 1), Decimal(10**18 - 1), None]),
    "decimal38": (DecimalType(38, 10), [Decimal("-9999999999999999999999999999.9999999999"), Decimal(0), None]),
    "date": (DATE, [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), None]),
    "time": (TimeType("us"), [dt.time(0), dt.time(23, 59, 59, 999999), None]),
    "timestamp": (TIMESTAMP_NTZ, [MICROS, dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None]),
    "timestamptz": (TIMESTAMP, [MICROS.replace(tzinfo=dt.timezone(dt.timedelta(hours=-8))), None]),
    "string": (STRING, ["", "ü", "💥" * 20, "\u0000", "\U0010ffff" * 20, None]),
    "uuid": (UUID, [uuid.UUID(int=0).bytes, uuid.UUID(int=2**128 - 1).bytes, None]),
    "fixed": (FixedType(3), [b"\x00\x00\x00", b"\xff\xff\xff", None]),
    "binary": (BINARY, [b"", b"\x00", b"\xff" * 40, None]),
}
LINES = {
    "boolean": "I-042", "int": "I-043", "long": "I-043", "float": "I-044", "double": "I-044", "decimal9": "I-045",
    "decimal18": "I-045", "decimal38": "I-045", "date": "I-046", "time": "I-047", "timestamp": "I-048",
    "timestamptz": "I-049", "string": "I-050", "uuid": "I-051", "fixed": "I-052", "binary": "I-053",
}  # fmt: skip
PHYSICAL = {
    "boolean": ("BOOLEAN", "None"),
    "int": ("INT32", "None"),
    "long": ("INT64", "None"),
    "float": ("FLOAT", "None"),
    "double": ("DOUBLE", "None"),
    "decimal9": ("INT32", "Decimal(precision=9, scale=2)"),
    "decimal18": ("INT64", "Decimal(precision=18, scale=0)"),
    "decimal38": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=10)"),
    "date": ("INT32", "Date"),
    "time": ("INT64", "Time(isAdjustedToUTC=false, timeUnit=microseconds)"),
    "timestamp": ("INT64", "Timestamp(isAdjustedToUTC=false, timeUnit=microseconds"),
    "timestamptz": ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds"),
    "string": ("BYTE_ARRAY", "String"),
    "uuid": ("FIXED_LEN_BYTE_ARRAY", "UUID"),
    "fixed": ("FIXED_LEN_BYTE_ARRAY", "None"),
    "binary": ("BYTE_ARRAY", "None"),
}


def with_lines():
    return [pytest.param(n, marks=pytest.mark.spec(LINES[n], "I-288", "I-289", "I-290", "I-291"), id=n) for n in VALUES]


def column(type, values):
    from boathouse.arrow.schema import to_arrow_type

    return pa.array(values, to_arrow_type(type))


@pytest.mark.parametrize("name", with_lines())
def test_a_type_is_written_and_read_by_pyiceberg(name, tmp_path, seen):
    type, values = VALUES[name]
    root = tmp_path / "t"
    table = bh.create(str(root), Schema((Field("c", type), Field("k", INT32))), format="iceberg")
    table.append(pa.table({"c": column(type, values), "k": pa.array(range(len(values)), pa.int32())}))
    theirs = seen(root).rows().sort_by("k").column("c")
    if isinstance(theirs.type, pa.BaseExtensionType):
        theirs = pa.chunked_array([c.storage for c in theirs.chunks])
    mine = bh.open(str(root)).to_arrow().sort_by("k").column("c")
    assert repr(mine.to_pylist()) == repr(theirs.to_pylist()) == repr(column(type, values).to_pylist())
    footer = pq.read_metadata(seen(root).live()[0]["file_path"].removeprefix("file://"))
    stored = footer.schema.column(0)
    physical, logical = PHYSICAL[name]
    assert stored.physical_type == physical
    assert str(stored.logical_type).startswith(logical)
    if physical == "FIXED_LEN_BYTE_ARRAY":
        assert stored.length == {"decimal38": 16, "uuid": 16, "fixed": 3}[name]


@pytest.mark.spec("I-043")
def test_byte_and_short_widen_to_int(make):
    data = pa.table({"a": pa.array([-128, 127], pa.int8()), "b": pa.array([-(2**15), 1], pa.int16())})
    table, seen = make(data)
    assert [str(f.field_type) for f in seen.pyiceberg().schema().fields] == ["int", "int"]
    assert table.to_arrow().to_pydict() == data.to_pydict() == seen.rows().to_pydict()


@pytest.mark.spec("I-049")
def test_an_instant_keeps_no_zone(make):
    zone = pa.timestamp("us", "-08:00")
    data = pa.table({"t": pa.array([dt.datetime(2017, 11, 17, 1, 10, 34)], pa.timestamp("us")).cast(zone)})
    instant = pa.array([dt.datetime(2017, 11, 16, 17, 10, 34, tzinfo=dt.timezone(dt.timedelta(hours=-8)))], zone)
    table, seen = make(pa.table({"t": instant}))
    for got in (table.to_arrow(), seen.rows()):
        assert got.column("t").type.tz == "UTC"
        assert got.column("t")[0].as_py() == dt.datetime(2017, 11, 17, 1, 10, 34, tzinfo=dt.UTC)
    assert data.num_rows == 1


@pytest.mark.spec("I-037", "I-039", "I-040", "I-041", "I-292", "I-293", "I-084")
def test_six_levels_of_nesting(make):
    inner = pa.struct([pa.field("x", pa.int64()), pa.field("when", pa.timestamp("us"))])
    nested = pa.list_(pa.map_(pa.string(), pa.struct([("a", pa.list_(pa.map_(inner, pa.list_(pa.string()))))])))
    value = [[("k", {"a": [[({"x": 1, "when": None}, ["v", None])], None]})], None, []]
    data = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "n": pa.array([value, None, []], nested)})
    table, seen = make(data)
    assert table.to_arrow().sort_by("id").to_pydict() == data.to_pydict()
    assert seen.rows().sort_by("id").to_pydict() == data.to_pydict()
    path = seen.live()[0]["file_path"].removeprefix("file://")
    footer = str(pq.read_metadata(path).schema)
    assert footer.count("(List)") == 3 and footer.count("(Map)") == 2
    for part in (".list.element", ".key_value.key", ".key_value.value"):
        assert any(part in pq.read_metadata(path).schema.column(i).path for i in range(5))
    ids = {f.id for _, f in bh.open(str(seen.root)).schema.walk()}
    assert file_ids(pq.read_schema(path)) == ids and len(ids) == 12


def file_ids(schema):
    """The field ids of every level of an Arrow schema read from a file."""
    found = set()

    def walk(field):
        if (field.metadata or {}).get(b"PARQUET:field_id"):
            found.add(int(field.metadata[b"PARQUET:field_id"]))
        type = field.type
        if pa.types.is_map(type):
            walk(type.key_field)
            walk(type.item_field)
        elif pa.types.is_list(type):
            walk(type.value_field)
        elif pa.types.is_struct(type):
            for child in type:
                walk(child)

    for f in schema:
        walk(f)
    return found


@pytest.mark.spec("I-038", "I-040")
def test_nulls_where_none_may_be_are_refused(tmp_path):
    nested = StructType((Field("must", INT32, nullable=False),))
    schema = Schema((Field("id", INT64, nullable=False), Field("st", nested)))
    table = bh.create(str(tmp_path / "t"), schema, format="iceberg")
    for rows in (
        {"id": pa.array([1, None], pa.int64()), "st": pa.array([None, None], pa.struct([("must", pa.int32())]))},
        {"id": pa.array([1], pa.int64()), "st": pa.array([{"must": None}], pa.struct([("must", pa.int32())]))},
    ):
        with pytest.raises((ConstraintViolationError, SchemaMismatchError), match=r"id|must"):
            table.append(pa.table(rows))
    assert bh.open(str(tmp_path / "t")).to_arrow().num_rows == 0
    assert list((tmp_path / "t").rglob("*.parquet")) == []


@pytest.mark.spec("I-052", "I-050", "I-045")
def test_values_that_do_not_fit_are_refused(tmp_path):
    table = bh.create(str(tmp_path / "f"), Schema((Field("c", FixedType(3)),)), format="iceberg")
    with pytest.raises((SchemaMismatchError, ConstraintViolationError)):
        table.append(pa.table({"c": pa.array([b"abcd"], pa.binary())}))
    with pytest.raises(SchemaError):
        bh.create(str(tmp_path / "d"), pa.schema([("d", pa.decimal128(5, -2))]), format="iceberg")
    assert not (tmp_path / "d" / "metadata").exists()
    text = bh.create(str(tmp_path / "s"), Schema((Field("c", STRING),)), format="iceberg")
    broken = pa.StringArray.from_buffers(
        1, pa.py_buffer(b"\x00\x00\x00\x00\x02\x00\x00\x00"), pa.py_buffer(b"\xff\xfe")
    )
    with pytest.raises((SchemaMismatchError, ConstraintViolationError, SchemaError)):
        text.append(pa.table({"c": broken}))


REFUSED = [
    pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.uint32(), pa.uint64(), pa.float16(), pa.null(),
    pa.list_(pa.float32(), 4), pa.duration("us"), pa.decimal256(50, 2),
]  # fmt: skip


@pytest.mark.parametrize("type", REFUSED, ids=str)
def test_types_that_v2_cannot_hold_are_refused_at_create(type, tmp_path):
    for at in (type, pa.struct([("inner", type)]), pa.list_(type)):
        with pytest.raises(UnsupportedTypeError, match="`c"):
            bh.create(str(tmp_path / "t"), pa.schema([("c", at)]), format="iceberg")
    assert not (tmp_path / "t").exists()


@pytest.mark.spec("I-294")
def test_partition_columns_are_in_the_file(make):
    data = pa.table({"p": ["a", "b"], "v": [1, 2]})
    _, seen = make(data, partition_by=["p"])
    for file in seen.live():
        assert "p" in pq.read_schema(file["file_path"].removeprefix("file://")).names


def test_leaves_of_a_schema():
    element = ListType(Field("element", INT32, id=3))
    schema = Schema((Field("a", StructType((Field("b", element, id=2),)), id=1), Field("m", MapType(
        Field("key", STRING, False, id=5), Field("value", INT32, id=6)), id=4)))  # fmt: skip
    assert [f.id for _, f in leaves(schema)] == [3, 5, 6]

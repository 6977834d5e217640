"""User data fitted to a table's schema: what is cast, what is refused, and that every problem is named."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.arrow.cast import conform
from boathouse.arrow.schema import from_arrow, to_arrow, to_arrow_type
from boathouse.errors import SchemaMismatchError, UnsupportedTypeError
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    VARIANT,
    DecimalType,
    Field,
    FixedSizeListType,
    FixedType,
    IntegerType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimestampType,
    TimeType,
)


def schema(**types) -> Schema:
    return Schema(tuple(Field(n, t) for n, t in types.items()))


ALL = Schema(
    (
        *schema(n=NULL, b=BOOLEAN, i8=INT8, u8=IntegerType(8, False), i=INT32, l=INT64, f=FLOAT, d=DOUBLE).fields,
        *schema(dec=DecimalType(10, 2), wide=DecimalType(50, 3), s=STRING, x=BINARY, fx=FixedType(4), day=DATE).fields,
        *schema(t=TimeType("us"), ts=TIMESTAMP, ntz=TIMESTAMP_NTZ, ns=TimestampType(True, "ns"), u=UUID).fields,
        Field("v", VARIANT, id=7),
        Field("st", StructType((Field("a", INT32, nullable=False, id=9), Field("u", UUID)))),
        Field("arr", ListType(Field("element", STRING, id=11))),
        Field("m", MapType(Field("key", STRING, nullable=False), Field("value", ListType(Field("element", INT32))))),
        Field("vec", FixedSizeListType(Field("item", FLOAT), 3)),
    )
)


def test_schemas_round_trip():
    plain = from_arrow(to_arrow(ALL))
    assert [(f.name, f.type) for f in plain if f.name not in ("st", "arr")] == [
        (f.name, f.type) for f in ALL if f.name not in ("st", "arr")
    ]
    with_ids = from_arrow(to_arrow(ALL, field_ids=True))
    assert with_ids == ALL


def test_layouts_become_plain_types():
    arrow = pa.schema(
        [
            ("a", pa.large_string()),
            ("b", pa.string_view()),
            ("c", pa.dictionary(pa.int8(), pa.string())),
            ("d", pa.large_list(pa.binary_view())),
            ("e", pa.date64()),
            ("f", pa.uuid()),
            ("g", pa.list_(pa.dictionary(pa.int32(), pa.large_binary()))),
        ]
    )
    types = [str(f.type) for f in from_arrow(arrow)]
    assert types == ["string", "string", "string", "array<binary>", "date", "uuid", "array<binary>"]


@pytest.mark.parametrize(
    "type",
    [
        pa.dense_union([pa.field("x", pa.int32())]),
        pa.month_day_nano_interval(),
    ],
)
def test_types_without_a_home_name_their_column(type):
    with pytest.raises(UnsupportedTypeError, match=r"`st\.odd`"):
        from_arrow(pa.schema([("st", pa.struct([("odd", type)]))]))


def fit(values, given_type, type, nullable=True):
    batch = pa.record_batch([pa.array(values, given_type)], ["c"])
    out = conform(batch, Schema((Field("c", type, nullable),)))
    assert out.schema.types == [to_arrow_type(type)]
    out.validate(full=True)
    return out.column(0).to_pylist()


UTC = dt.UTC
NOON = dt.datetime(2020, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "given_type", "type", "expected"),
    [
        ([1, None], pa.int8(), INT64, [1, None]),
        ([200], pa.uint8(), INT32, [200]),
        ([1.5, None], pa.float32(), DOUBLE, [1.5, None]),
        ([7], pa.int32(), DOUBLE, [7.0]),
        ([7, None], pa.int32(), DecimalType(12, 2), [Decimal("7.00"), None]),
        ([Decimal("1.5")], pa.decimal128(3, 1), DecimalType(10, 2), [Decimal("1.50")]),
        (["a", None], pa.large_string(), STRING, ["a", None]),
        (["a", None], pa.string_view(), STRING, ["a", None]),
        (["a", None, "a"], pa.dictionary(pa.int8(), pa.string()), STRING, ["a", None, "a"]),
        ([NOON.replace(tzinfo=None)], pa.timestamp("s"), TIMESTAMP_NTZ, [NOON.replace(tzinfo=None)]),
        ([NOON], pa.timestamp("ms", "America/New_York"), TIMESTAMP, [NOON]),
        ([b"1234"], pa.binary(), FixedType(4), [b"1234"]),
        ([b"1" * 16], pa.binary(16), UUID, [b"1" * 16]),
        ([None, None], pa.null(), ListType(Field("element", INT32)), [None, None]),
        ([dt.date(2020, 1, 1)], pa.date64(), DATE, [dt.date(2020, 1, 1)]),
        ([[1, None], None, []], pa.large_list(pa.int8()), ListType(Field("element", INT64)), [[1, None], None, []]),
        ([[1, 2], None], pa.list_(pa.int32(), 2), ListType(Field("element", INT64)), [[1, 2], None]),
        ([[1.0, 2.0], None], pa.list_(pa.float32()), FixedSizeListType(Field("item", DOUBLE), 2), [[1.0, 2.0], None]),
        (
            [{"Y": 2, "x": 1}, None],
            pa.struct([("Y", pa.int8()), ("x", pa.int8())]),
            StructType((Field("x", INT32), Field("y", INT64), Field("z", STRING))),
            [{"x": 1, "y": 2, "z": None}, None],
        ),
        (
            [[("a", 1)], None, []],
            pa.map_(pa.large_string(), pa.int8()),
            MapType(Field("key", STRING, False), Field("value", INT32)),
            [[("a", 1)], None, []],
        ),
        (
            [{"value": b"\x00", "metadata": b"\x01\x00\x00"}, None],
            pa.struct([("value", pa.binary()), ("metadata", pa.binary())]),
            VARIANT,
            [{"metadata": b"\x01\x00\x00", "value": b"\x00"}, None],
        ),
    ],
)
def test_fits(values, given_type, type, expected):
    assert fit(values, given_type, type) == expected
    batch = pa.record_batch([pa.array([None, *values, None], given_type)], ["c"])
    sliced = conform(batch.slice(1, len(values)), Schema((Field("c", type),)))
    assert sliced.column(0).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "given_type", "type", "message"),
    [
        ([1], pa.int64(), INT32, "narrowing may lose"),
        ([1], pa.uint64(), INT64, "narrowing may lose"),
        ([1], pa.int64(), DOUBLE, "does not hold every such integer"),
        ([1.0], pa.float64(), FLOAT, "narrowing loses digits"),
        ([1.0], pa.float64(), DecimalType(10, 2), "is double, but the table has"),
        ([1], pa.int64(), DecimalType(10, 2), "too few digits"),
        ([Decimal("1.55")], pa.decimal128(5, 2), DecimalType(5, 1), "too few digits"),
        (["1"], pa.string(), INT32, "is string, but the table has int"),
        ([1], pa.int32(), STRING, "is int, but the table has string"),
        ([NOON.replace(tzinfo=None)], pa.timestamp("us"), TIMESTAMP, "declare its zone"),
        ([NOON], pa.timestamp("us", "UTC"), TIMESTAMP_NTZ, "wall clock has no zone"),
        ([1], pa.timestamp("ns", "UTC"), TIMESTAMP, "would lose data: 1"),
        ([2**62], pa.timestamp("s", "UTC"), TIMESTAMP, "does not fit"),
        ([b"123"], pa.binary(), FixedType(4), "does not fit"),
        ([[1.0]], pa.list_(pa.float64()), FixedSizeListType(Field("item", DOUBLE), 2), "not of 2 elements"),
        ([[1]], pa.list_(pa.int64()), ListType(Field("element", INT32)), r"`c\.element` is bigint"),
        ([{"q": 1}], pa.struct([("q", pa.int32())]), StructType((Field("x", INT32),)), r"`c\.q` is not a column"),
    ],
)
def test_refused(values, given_type, type, message):
    with pytest.raises(SchemaMismatchError, match=message):
        fit(values, given_type, type)


def test_every_problem_is_listed():
    table = Schema((Field("id", INT32, False), Field("name", STRING), Field("must", INT32, False)))
    data = pa.table({"ID": pa.array([1, None], pa.int64()), "name": [1, 2], "extra": [1, 2]})
    with pytest.raises(SchemaMismatchError) as caught:
        conform(data, table, where="orders")
    text = str(caught.value)
    for part in (
        "`extra` is not a column",
        "`id` has 1 nulls",
        "`id` is bigint",
        "`name` is bigint",
        "`must` is missing",
        "[orders]",
    ):
        assert part in text


def test_nested_nulls_count_only_below_present_parents():
    inner = StructType((Field("a", INT32, False),))
    assert fit([{"a": 1}, None], pa.struct([("a", pa.int32())]), inner) == [{"a": 1}, None]
    with pytest.raises(SchemaMismatchError, match=r"`c\.a` has 1 nulls"):
        fit([{"a": None}, None], pa.struct([("a", pa.int32())]), inner)
    strict = ListType(Field("element", INT32, False))
    with pytest.raises(SchemaMismatchError, match=r"`c\.element` has 1 nulls"):
        fit([[1, None]], pa.list_(pa.int32()), strict)


def test_names_match_by_case_unless_ambiguous():
    both = Schema((Field("a", INT32), Field("A", INT32)))
    out = conform(pa.table({"A": pa.array([1], pa.int32()), "a": pa.array([2], pa.int32())}), both)
    assert out.to_pylist() == [{"a": 2, "A": 1}]
    with pytest.raises(SchemaMismatchError, match=r"occurs 2 times \(ID, Id\)"):
        conform(pa.table({"ID": pa.array([1], pa.int32()), "Id": pa.array([2], pa.int32())}), schema(id=INT32))


def test_tables_stay_tables_and_empty_ones_are_checked():
    table = pa.table({"a": pa.chunked_array([[1], [2]], pa.int8())})
    assert conform(table, schema(a=INT32)).equals(pa.table({"a": pa.array([1, 2], pa.int32())}))
    assert conform(table.slice(0, 0), schema(a=INT32)).schema == pa.schema([("a", pa.int32())])
    with pytest.raises(SchemaMismatchError):
        conform(pa.table({"a": pa.chunked_array([], pa.string())}), schema(a=INT32))


NESTED = pa.list_(pa.struct([("a", pa.int8()), ("m", pa.map_(pa.string(), pa.list_(pa.int16())))]))
TARGET = ListType(
    Field(
        "element",
        StructType(
            (
                Field("m", MapType(Field("key", STRING, False), Field("value", ListType(Field("element", INT32))))),
                Field("a", INT64),
            )
        ),
    )
)


@settings(max_examples=60)
@given(
    st.lists(
        st.none()
        | st.lists(
            st.none()
            | st.fixed_dictionaries(
                {
                    "a": st.none() | st.integers(-128, 127),
                    "m": st.none()
                    | st.dictionaries(
                        st.text(max_size=2),
                        st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=2),
                        max_size=2,
                    ).map(lambda d: list(d.items())),
                }
            ),
            max_size=3,
        ),
        max_size=4,
    ),
    st.integers(0, 3),
)
def test_deep_nesting_keeps_its_values(rows, start):
    values = pa.array(rows, NESTED).slice(start)
    out = fit_array(values, TARGET)
    assert out == [
        None if row is None else [None if e is None else {"m": e["m"], "a": e["a"]} for e in row]
        for row in rows[start:]
    ]


def fit_array(array, type):
    out = conform(pa.record_batch([array], ["c"]), Schema((Field("c", type),)))
    out.validate(full=True)
    return out.column(0).to_pylist()

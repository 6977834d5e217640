import datetime as dt
import decimal
import uuid

import pyarrow as pa
import pytest

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.engines.spark.constants import input_file
from boathouse.engines.spark.exchange import decode, encode, from_spark_batch, to_spark_array, to_spark_batch
from boathouse.engines.spark.schema import from_spark, spark_type, to_spark
from boathouse.errors import UnsupportedTypeError
from boathouse.storage.hadoop import encode_path, hadoop_uri

PLAIN = [
    T.BOOLEAN, T.INT8, T.INT16, T.INT32, T.INT64, T.FLOAT, T.DOUBLE, T.DecimalType(38, 10), T.STRING, T.BINARY, T.DATE,
    T.TIMESTAMP, T.TIMESTAMP_NTZ, T.NULL, T.VARIANT, T.DurationType("us"),
    T.ListType(T.Field("element", T.INT64)),
    T.MapType(T.Field("key", T.STRING, False), T.Field("value", T.DATE)),
    T.StructType((T.Field("a", T.INT32), T.Field("b c", T.ListType(T.Field("element", T.TIMESTAMP))))),
]  # fmt: skip


@pytest.mark.parametrize("type", PLAIN, ids=str)
def test_round_trip(type):
    field = T.Field("x", type)
    assert from_spark(to_spark([field])) == T.Schema((field,))


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (T.IntegerType(8, False), "smallint"), (T.IntegerType(16, False), "int"), (T.IntegerType(32, False), "bigint"),
        (T.IntegerType(64, False), "decimal(20,0)"), (T.HALF_FLOAT, "float"), (T.UUID, "string"),
        (T.FixedType(3), "binary"), (T.FixedSizeListType(T.Field("item", T.FLOAT), 4), "array<float>"),
        (T.TimestampType(True, "ms"), "timestamp"), (T.TimestampType(False, "s"), "timestamp_ntz"),
        (T.TimestampType(True, "ns"), "bigint"), (T.DurationType("ns"), "bigint"), (T.TimeType(), "string"),
    ],
    ids=str,
)  # fmt: skip
def test_widening(type, text):
    assert spark_type(type, "x").simpleString() == text


def test_refused_by_name():
    with pytest.raises(UnsupportedTypeError, match=r"st\.inner"):
        to_spark([T.Field("st", T.StructType((T.Field("inner", T.DecimalType(50, 2)),)))])


def test_char_and_varchar_are_strings_and_nothing_is_required():
    from pyspark.sql import types as S

    struct = S.StructType([S.StructField("c", S.CharType(3)), S.StructField("v", S.VarcharType(9), False)])
    assert from_spark(struct) == T.Schema((T.Field("c", T.STRING), T.Field("v", T.STRING)))


VALUES = [
    (T.IntegerType(64, False), [2**64 - 1, None, 0], [decimal.Decimal(2**64 - 1), None, decimal.Decimal(0)]),
    (T.IntegerType(8, False), [255, None], [255, None]),
    (T.UUID, [uuid.UUID(int=5).bytes, None], [str(uuid.UUID(int=5)), None]),
    (T.FixedType(2), [b"ab", None], [b"ab", None]),
    (T.FixedSizeListType(T.Field("item", T.INT32), 2), [[1, 2], None, [3, None]], [[1, 2], None, [3, None]]),
    (T.TimestampType(False, "ms"), [dt.datetime(1960, 1, 1, 0, 0, 0, 7000), None],
     [dt.datetime(1960, 1, 1, 0, 0, 0, 7000), None]),
    (T.TimestampType(True, "ns"), [-1, None], [-1, None]),
    (T.DurationType("ns"), [2**62, None], [2**62, None]),
    (T.TimeType(), [dt.time(23, 59, 59, 7), None], ["23:59:59.000007", None]),
    (T.TimeType("s"), [dt.time(1, 2, 3), None], ["01:02:03", None]),
    (T.ListType(T.Field("element", T.IntegerType(16, False))), [[1, None], None, []], [[1, None], None, []]),
    (T.StructType((T.Field("u", T.UUID), T.Field("i", T.INT32))), [{"u": bytes(16), "i": 1}, None],
     [{"u": str(uuid.UUID(int=0)), "i": 1}, None]),
    (T.MapType(T.Field("key", T.STRING, False), T.Field("value", T.IntegerType(32, False))),
     [[("a", 2**32 - 1)], None, []], [[("a", 2**32 - 1)], None, []]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "values", "expected"), VALUES, ids=[str(v[0]) for v in VALUES])
def test_values_widen_also_in_slices(type, values, expected):
    array = pa.array([values[0], *values], to_arrow_type(type))
    assert to_spark_array(array, type).to_pylist() == [expected[0], *expected]
    assert to_spark_array(array.slice(1), type).to_pylist() == expected


def test_instants_come_back_in_utc_whatever_the_zone():
    instant = pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "America/Los_Angeles"))
    nested = pa.StructArray.from_arrays([instant], names=["t"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), nested)
    batch = from_spark_batch(pa.record_batch({"a": instant, "n": nested, "l": lists}))
    utc = pa.timestamp("us", "UTC")
    assert batch.schema.types == [utc, pa.struct([("t", utc)]), pa.list_(pa.field("item", pa.struct([("t", utc)])))]
    assert batch.column(0)[0].as_py() == dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def test_variants_change_their_order_and_come_back():
    rows = [{"metadata": b"\1\0\0", "value": b"\0"}, None]
    batch = pa.record_batch({"v": pa.array(rows, to_arrow_type(T.VARIANT))})
    sent = to_spark_batch(batch, [T.VARIANT])
    assert [f.name for f in sent.schema.field(0).type] == ["value", "metadata"]
    assert from_spark_batch(sent).column(0).to_pylist() == rows


def test_batches_travel_as_bytes():
    batch = pa.record_batch({"u": pa.array([1], pa.uint64()), "s": pa.array([{}], pa.struct([]))})
    assert decode(encode(batch)) == [batch]


def test_paths_are_spelled_as_spark_spells_them():
    assert encode_path('a b%20/ü#?[x]{y}^`|\\<>"') == "a%20b%2520/ü%23%3F%5Bx%5D%7By%7D%5E%60%7C%5C%3C%3E%22"
    assert hadoop_uri("file:///tmp/a b") == "file:/tmp/a%20b"
    assert input_file("file:///tmp/a b") == "file:///tmp/a%20b"
    assert hadoop_uri("s3a://bucket/k=1/ü +") == "s3a://bucket/k=1/ü%20+"

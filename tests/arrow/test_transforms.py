"""Partition transforms: the specification's vectors, pyiceberg's own transforms, the scalar twins."""

import datetime as dt
import re
import uuid
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.transforms import TruncateTransform
from pyiceberg.types import DecimalType as IcebergDecimal

from boathouse.arrow import literals
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.transforms import hash_array, transform
from boathouse.bits.murmur3 import hash_bytes, hash_one
from boathouse.errors import EvaluationError, UnsupportedFeatureError
from boathouse.expr import transforms as scalar
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
    FixedType,
    StructType,
    TimestampType,
    TimeType,
    Transform,
)  # fmt: skip

DEC = DecimalType(9, 2)


@pytest.mark.spec("I-301", "I-302", "I-303", "I-304", "I-305", "I-307", "I-308", "I-309")
@pytest.mark.parametrize(
    ("type", "value", "expected"),
    [
        (INT32, 34, 2017239379),
        (INT64, 34, 2017239379),
        (DEC, Decimal("14.20"), -500754589),
        (DATE, dt.date(2017, 11, 16), -653330422),
        (TimeType("us"), dt.time(22, 31, 8), -662762989),
        (TIMESTAMP_NTZ, dt.datetime(2017, 11, 16, 22, 31, 8), -2047944441),
        (TIMESTAMP_NTZ, dt.datetime(2017, 11, 16, 22, 31, 8, 1), -1207196810),
        (TIMESTAMP, dt.datetime(2017, 11, 16, 14, 31, 8, tzinfo=dt.timezone(dt.timedelta(hours=-8))), -2047944441),
        (STRING, "iceberg", 1210000089),
        (STRING, "", 0),
        (STRING, "é\U0001f389", 1751253523),
        (UUID, uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340),
        (BINARY, b"\x00\x01\x02\x03", -188683207),
        (FixedType(4), b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_hash_vectors(type, value, expected):
    array = pa.array([value, None, value], to_arrow_type(type))
    assert hash_array(array, type)[[0, 2]].tolist() == [expected, expected]
    # A slice must not read its parent's offsets.
    assert hash_array(array.slice(2), type).tolist() == [expected]


@pytest.mark.spec("I-306")
def test_nanoseconds_hash_as_floored_microseconds():
    nanos = pa.array([1510871468000001001, -1], pa.int64()).view(pa.timestamp("ns"))
    micros = pa.array([1510871468000001, -1], pa.int64()).view(pa.timestamp("us"))
    assert hash_array(nanos, TimestampType(False, "ns")).tolist() == hash_array(micros, TIMESTAMP_NTZ).tolist()


@pytest.mark.spec("I-116")
@pytest.mark.parametrize(
    ("type", "value", "bucket"), [(INT32, 34, 3), (STRING, "iceberg", 9), (INT32, 0, 12), (STRING, "", 0)]
)
def test_buckets_of_16(type, value, bucket):
    assert transform(pa.array([value], to_arrow_type(type)), Transform("bucket", 16), type).to_pylist() == [bucket]


@given(st.lists(st.binary(max_size=40)))
def test_hashing_many_is_hashing_each(values):
    data = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)])
    assert hash_bytes(data, offsets).tolist() == [hash_one(v) for v in values]


@given(st.binary(max_size=40))
def test_murmur_agrees_with_mmh3(value):
    mmh3 = pytest.importorskip("mmh3")
    assert hash_one(value) == mmh3.hash(value)


@pytest.mark.spec("I-118")
def test_truncate_integers():
    values = pa.array([1, -1, 0, -10, None], pa.int32())
    assert transform(values, Transform("truncate", 10), INT32).to_pylist() == [0, -10, 0, -10, None]
    for type, least in ((INT32, -(2**31)), (INT64, -(2**63))):
        with pytest.raises(EvaluationError, match="below the range"):
            transform(pa.array([least], to_arrow_type(type)), Transform("truncate", 10), type)


def test_truncate_decimals_at_the_end_of_their_range():
    for precision in (1, 9, 18, 38):
        for scale in {0, precision // 2, precision}:
            type = DecimalType(precision, scale)
            least = Decimal(-(10**precision - 1)).scaleb(-scale, Context(80))
            values = pa.array([least, None, least.copy_negate(), Decimal(0).scaleb(-scale)], to_arrow_type(type))
            assert transform(values, Transform("truncate", 1), type) == values
            exact = 3 if precision > 1 else 9
            assert transform(values, Transform("truncate", exact), type)[0].as_py() == least
            with pytest.raises(
                EvaluationError, match=rf"truncate\[8\] of -.* is below the range of {re.escape(str(type))}"
            ):
                transform(values, Transform("truncate", 8), type)


@pytest.mark.spec("I-119", "I-120", "I-121")
@pytest.mark.parametrize("precision, scale", [(4, 2), (9, 9), (18, 0), (38, 10)])
def test_truncate_decimals_as_pyiceberg(precision, scale):
    """What has more digits than the type is refused here, as it is where iceberg-java and pyiceberg write it into a
    manifest."""
    type, ends = DecimalType(precision, scale), 10**precision - 1
    for width in (1, 3, 7, 10, 1000):
        for unscaled in (ends, ends - 1, ends - 999, 0, -1, -(ends - 999), -(ends - width), -(ends - 1), -ends):
            value = Decimal(unscaled).scaleb(-scale, Context(80))
            wanted = unscaled - unscaled % width
            theirs = TruncateTransform(width).transform(IcebergDecimal(precision, scale))(value)
            assert theirs == Decimal(wanted).scaleb(-scale, Context(80))
            given = pa.array([value], to_arrow_type(type))
            if abs(wanted) <= ends:
                assert transform(given, Transform("truncate", width), type)[0].as_py() == theirs
            else:
                with pytest.raises(EvaluationError, match="below the range"):
                    transform(given, Transform("truncate", width), type)


def test_truncate_others():
    cut = transform(
        pa.array([Decimal("10.65"), Decimal("-10.65")], pa.decimal128(9, 2)), Transform("truncate", 50), DEC
    )
    assert cut.to_pylist() == [Decimal("10.50"), Decimal("-11.00")]
    words = pa.array(["iceberg", "\U0001f389\U0001f389\U0001f389x", "e\u0301e\u0301", "ab", None])
    assert transform(words, Transform("truncate", 3), STRING).to_pylist() == [
        "ice", "\U0001f389" * 3, "e\u0301e", "ab", None,
    ]  # fmt: skip
    assert transform(pa.array([b"\x00\x01\x02\x03", b"a"]), Transform("truncate", 3), BINARY).to_pylist() == [
        b"\x00\x01\x02", b"a",
    ]  # fmt: skip


@pytest.mark.spec("I-123")
def test_before_the_epoch():
    day = pa.array([dt.date(1969, 12, 31), None], pa.date32())
    assert transform(day, Transform("year"), DATE).to_pylist() == [-1, None]
    assert transform(day, Transform("month"), DATE).to_pylist() == [-1, None]
    assert transform(day, Transform("day"), DATE).to_pylist() == [dt.date(1969, 12, 31), None]
    instant = pa.array([-1, 0], pa.int64()).view(pa.timestamp("us", "UTC"))
    assert transform(instant, Transform("hour"), TIMESTAMP).to_pylist() == [-1, 0]
    assert transform(instant, Transform("day"), TIMESTAMP).cast(pa.int32()).to_pylist() == [-1, 0]


@pytest.mark.spec("I-117")
@pytest.mark.parametrize("type", [BOOLEAN, FLOAT, DOUBLE, StructType()])
def test_bucket_is_refused(type):
    with pytest.raises(UnsupportedFeatureError):
        transform(pa.nulls(1), Transform("bucket", 4), type)


def test_unknown_is_refused():
    with pytest.raises(UnsupportedFeatureError, match="zorder"):
        transform(pa.array([1]), Transform("unknown", text="zorder"), INT64)


PAIRS = [
    (INT32, ["bucket[7]", "truncate[13]"], st.integers(-(2**31) + 20, 2**31 - 1)),
    (INT64, ["bucket[7]", "truncate[13]"], st.integers(-(2**63) + 20, 2**63 - 1)),
    (STRING, ["bucket[7]", "truncate[3]"], st.text(max_size=12)),
    (BINARY, ["bucket[7]", "truncate[3]"], st.binary(max_size=12)),
    (DEC, ["bucket[7]", "truncate[50]"], st.decimals("-1000000", "1000000", places=2)),
    (DATE, ["bucket[7]", "year", "month", "day"], st.dates()),
    (TIMESTAMP, ["bucket[7]", "year", "month", "day", "hour"], st.datetimes(timezones=st.just(dt.UTC))),
    (TIMESTAMP_NTZ, ["bucket[7]", "year", "month", "day", "hour"], st.datetimes()),
    (UUID, ["bucket[7]"], st.uuids().map(lambda u: u.bytes)),
]


@pytest.mark.few(9)
@pytest.mark.spec("I-127")
@pytest.mark.parametrize(("type", "how", "values"), [(t, h, v) for t, hows, v in PAIRS for h in hows])
def test_agrees_with_pyiceberg_and_with_the_scalar_form(type, how, values):
    from pyiceberg import transforms as ice
    from pyiceberg import types

    ice_type = {INT32: types.IntegerType(), INT64: types.LongType(), STRING: types.StringType(),
                BINARY: types.BinaryType(), DEC: types.DecimalType(9, 2), DATE: types.DateType(),
                TIMESTAMP: types.TimestamptzType(), TIMESTAMP_NTZ: types.TimestampType(),
                UUID: types.UUIDType()}[type]  # fmt: skip
    theirs = ice.parse_transform(how).transform(ice_type)
    name, _, number = how.partition("[")
    ours = Transform(name, int(number[:-1]) if number else None)

    @settings(max_examples=40)
    @given(st.lists(st.none() | values, min_size=1, max_size=8))
    def check(given_values):
        array = pa.array(given_values, to_arrow_type(type))
        out = transform(array, ours, type)
        assert out.type == to_arrow_type(ours.result(type))
        physical = [literals.to_literal(v, type).value for v in array]
        results = [literals.to_literal(v, ours.result(type)).value for v in out]
        assert results == [scalar.apply(ours, type, v) for v in physical]
        for value, result in zip(physical, results):
            if value is None:
                assert result is None
            else:
                assert result == theirs(uuid.UUID(bytes=value) if type == UUID else value)

    check()

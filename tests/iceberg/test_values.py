"""Bounds in their binary form, their truncation, and what is believed of those that others wrote."""

import math
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.iceberg.manifests.values import (
    arrow_array,
    decode,
    encode,
    from_avro,
    minimal_bytes,
    physical,
    raised,
    to_avro,
    truncated,
)
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
    UUID,
    DecimalType,
    Field,
    FixedType,
    ListType,
    NullType,
    TimeType,
)  # fmt: skip

DEC = DecimalType(38, 2)
NUMBERS = [
    (BOOLEAN, True, b"\x01"), (BOOLEAN, False, b"\x00"), (INT32, -1, b"\xff" * 4), (INT64, 1, b"\x01" + b"\x00" * 7),
    (DATE, -1, b"\xff" * 4), (TimeType(), 1, b"\x01" + b"\x00" * 7), (TIMESTAMP, -2, b"\xfe" + b"\xff" * 7),
    (FLOAT, 1.5, struct.pack("<f", 1.5)), (DOUBLE, -0.0, struct.pack("<d", -0.0)), (STRING, "ü", b"\xc3\xbc"),
    (UUID, bytes(range(16)), bytes(range(16))), (FixedType(2), b"\x00\x01", b"\x00\x01"), (BINARY, b"", b""),
    (DEC, 0, b"\x00"), (DEC, -1, b"\xff"), (DEC, 127, b"\x7f"), (DEC, 128, b"\x00\x80"), (DEC, -128, b"\x80"),
    (DEC, -129, b"\xff\x7f"), (DEC, 1420, b"\x05\x8c"),
]  # fmt: skip


@pytest.mark.spec("I-320", "I-321")
@pytest.mark.parametrize(("type", "value", "data"), NUMBERS, ids=lambda v: str(v)[:20])
def test_single_values(type, value, data):
    assert encode(value, type) == data
    back = decode(data, type)
    assert (
        back == value and math.copysign(1, back or 0) == math.copysign(1, value or 0)
        if type == DOUBLE
        else back == value
    )


@pytest.mark.spec("I-320", "I-321")
def test_single_values_are_the_bytes_of_the_reference():
    conversions = pytest.importorskip("pyiceberg.conversions")
    from pyiceberg import types as theirs

    pairs = [
        (BOOLEAN, theirs.BooleanType(), True, True), (INT32, theirs.IntegerType(), -7, -7),
        (INT64, theirs.LongType(), 2**40, 2**40), (DATE, theirs.DateType(), 17000, 17000),
        (TIMESTAMP, theirs.TimestamptzType(), -5, -5), (FLOAT, theirs.FloatType(), 0.5, 0.5),
        (DOUBLE, theirs.DoubleType(), 1e300, 1e300), (STRING, theirs.StringType(), "né", "né"),
        (BINARY, theirs.BinaryType(), b"\x01", b"\x01"), (DEC, theirs.DecimalType(38, 2), -129, Decimal("-1.29")),
    ]  # fmt: skip
    for mine, type, value, python in pairs:
        assert encode(value, mine) == conversions.to_bytes(type, python)


@pytest.mark.spec("I-320")
def test_any_byte_but_zero_is_true():
    assert decode(b"\x07", BOOLEAN) is True


@pytest.mark.spec("I-322", "I-158", "I-159")
def test_what_has_no_bounds():
    assert encode("x", ListType(Field("element", STRING))) is None
    assert encode(math.nan, DOUBLE) is None and encode(None, INT32) is None
    assert decode(struct.pack("<d", math.nan), DOUBLE) is None
    assert decode(struct.pack("<f", math.nan), FLOAT) is None


def test_bounds_of_the_wrong_length_are_unknown():
    for type, data in ((INT64, b"\x01"), (UUID, b"\x01"), (FixedType(2), b"\x01"), (DOUBLE, b""), (STRING, b"\xff")):
        assert decode(data, type) is None
    assert decode(b"\x07\x00\x00\x00", INT64) == 7
    assert decode(struct.pack("<f", 1.5), DOUBLE) == 1.5


@pytest.mark.spec("I-157")
def test_truncation():
    assert truncated("a" * 20, "a" * 20, 16) == ("a" * 16, "a" * 15 + "b")
    assert truncated("💥" * 17, "\U0010ffff" * 17, 16) == ("💥" * 16, None)
    assert truncated("x", "\ud7ff" * 17, 16)[1] == "\ud7ff" * 15 + "\ue000"
    assert truncated(b"\x01" * 17, b"\xff" * 17, 16) == (b"\x01" * 16, None)
    assert truncated(b"\x01" * 17, b"\x01\xff" * 9, 16)[1] == b"\x01\xff" * 7 + b"\x02"
    assert truncated("ab", "ab", 16) == ("ab", "ab")
    assert truncated("ab" * 20, "ab" * 20, None) == ("ab" * 20, "ab" * 20)


@given(st.text(min_size=1, max_size=5), st.text(max_size=3))
@pytest.mark.spec("I-157")
def test_a_raised_prefix_is_above_all_that_begin_with_it(prefix, rest):
    above = raised(prefix)
    assert above is None or above.encode() > (prefix + rest).encode("utf-8", "surrogatepass")


@given(st.integers(-(10**38) + 1, 10**38 - 1))
def test_decimals_travel_through_avro_and_bounds(number):
    assert from_avro(to_avro(number, DEC), DEC) == number
    assert decode(minimal_bytes(number), DEC) == number
    exact = arrow_array([number], DEC)[0].as_py()
    assert physical(exact, DEC) == number


def test_values_of_a_column_that_became_void():
    found = arrow_array(["a", 7, None], NullType())
    assert found.type == pa.null() and len(found) == 3

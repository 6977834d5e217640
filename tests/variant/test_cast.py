"""Casts: rules that Spark has no word on, Python's and exact values, errors. test_cast_spark has the whole table."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.errors import EvaluationError, MalformedVariant, SchemaError, UnsupportedTypeError
from boathouse.types import (
    INT64,
    STRING,
    UUID,
    DurationType,
    Field,
    FixedSizeListType,
    FixedType,
    FloatType,
    IntegerType,
    TimestampType,
    TimeType,
)
from boathouse.variant.builder import VariantBuilder
from boathouse.variant.cast import cast_exact, cast_value, nearest_float32
from boathouse.variant.cast_text import to_text
from boathouse.variant.value import Variant


def put(name: str, *arguments: object) -> Variant:
    builder = VariantBuilder()
    getattr(builder, f"append_{name}")(*arguments)
    return builder.finish()


UUID_BYTES = bytes(range(16))
NOON = 43_200_000_000


@pytest.mark.spec("V-063")
@pytest.mark.parametrize(
    ("v", "type", "value"),
    [
        (put("int16", 300), "smallint", 300),
        (put("boolean", True), "decimal(3,1)", Decimal("1.0")),
        (put("decimal4", 250, 2), "int", 2),
        (put("decimal4", -250, 2), "int", -2),
        (put("decimal4", 1235, 3), "decimal(10,2)", Decimal("1.24")),
        (put("decimal4", 1100, 3), "string", "1.1"),
        (put("double", 1e10), "string", "1.0E10"),
        (put("double", 2.0**63), "bigint", 2**63 - 1),
        (put("string", " 7 "), "tinyint", 7),
        (put("string", "yes"), "boolean", True),
        (put("string", "ab"), "binary", b"ab"),
        (put("int8", 2), "timestamp", dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC)),
        (put("date", 1), "timestamp_ntz", dt.datetime(1970, 1, 2)),
        (put("timestamp", -1), "date", dt.date(1969, 12, 31)),
        (put("timestamp", -1), "bigint", -1),
        (put("timestamp_ntz", NOON), "time(6)", dt.time(12)),
        (put("string", "12:34:56 PM"), "time(6)", dt.time(12, 34, 56)),
        (put("uuid", UUID_BYTES), "string", str(uuid.UUID(bytes=UUID_BYTES))),
        (Variant.from_python([1, "x"]), "string", '[1,"x"]'),
        (Variant.from_python([1, None]), "array<string>", ["1", None]),
        (Variant.from_python({"b": 1, "a": None}), "map<string,int>", {"a": None, "b": 1}),
        (Variant.from_python({"a": 1, "A": 2}), "struct<A:string,z:int>", {"A": "2", "z": None}),
        (put("null"), "array<int>", None),
    ],
)
def test_casts(v, type, value):
    found = cast_value(v, type)
    assert found == value and found.__class__ is value.__class__


@pytest.mark.spec("V-063")
@pytest.mark.parametrize(
    ("v", "type", "value"),
    [
        (put("time", NOON + 1), "string", "12:00:00.000001"),
        (put("time", NOON), TimeType("ns"), dt.time(12)),
        (put("time", NOON), "int", None),
        (put("time", NOON), "timestamp", None),
        (put("timestamp_nanos", -1), "string", "1969-12-31 23:59:59.999999999"),
        (put("timestamp_nanos", -1), "timestamp", dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)),
        (put("timestamp_nanos", 1_500_000_000), "bigint", 1),
        (put("timestamp_nanos", 1_500_000_000), "decimal(10,1)", Decimal("1.5")),
        (put("timestamp_ntz_nanos", 7), TimestampType(False, "ns"), np.datetime64(7, "ns")),
        (put("timestamp", 7), TimestampType(True, "ns"), np.datetime64(7000, "ns")),
        (put("timestamp", 2**62), TimestampType(True, "ns"), None),
        (put("uuid", UUID_BYTES), UUID, uuid.UUID(bytes=UUID_BYTES)),
        (put("string", str(uuid.UUID(bytes=UUID_BYTES))), UUID, uuid.UUID(bytes=UUID_BYTES)),
        (put("string", "x"), UUID, None),
        (put("binary", UUID_BYTES), UUID, None),
        (put("binary", b"abc"), FixedType(3), b"abc"),
        (put("binary", b"abcd"), FixedType(3), None),
        (put("int16", 255), IntegerType(8, False), 255),
        (put("int8", -1), IntegerType(8, False), None),
        (put("string", str(2**64 - 1)), IntegerType(64, False), 2**64 - 1),
        (put("double", 1e5), FloatType(16), math.inf),
        (put("string", "0.1"), FloatType(16), float(np.float16(0.1))),
        (Variant.from_python([1, 2]), FixedSizeListType(Field("item", INT64), 2), [1, 2]),
        (Variant.from_python([1]), FixedSizeListType(Field("item", INT64), 2), None),
    ],
)
def test_types_that_spark_does_not_have(v, type, value):
    assert cast_value(v, type, safe=True) == value
    if value is None:
        with pytest.raises(EvaluationError):
            cast_value(v, type)


def test_exact_values_have_no_limits():
    assert cast_exact(put("date", -(2**31)), "date") == -(2**31)
    assert cast_exact(put("timestamp", 2**63 - 1), "timestamp") == 2**63 - 1
    assert cast_exact(put("timestamp_nanos", -1), "timestamp") == -1
    assert cast_exact(put("uuid", UUID_BYTES), UUID) == UUID_BYTES
    with pytest.raises(EvaluationError, match="years 1 to 9999"):
        cast_value(put("timestamp", 2**63 - 1), "timestamp")


def test_a_failure_says_what_and_where():
    v = Variant.from_python({"a": [{}, {"b": "x" * 100}]})
    with pytest.raises(
        EvaluationError, match=r"the string 'x{55,}\.\.\. at \$\.a\[1\]\.b cannot be cast to int"
    ) as caught:
        cast_value(v, "struct<a:array<struct<b:int>>>", safe=False)
    assert "try_cast" in str(caught.value)
    with pytest.raises(EvaluationError, match="the object of 1 fields cannot be cast to bigint"):
        v.cast("bigint")
    assert v.try_cast("bigint") is None


def test_a_safe_cast_keeps_what_can_be_cast():
    v = Variant.from_python({"a": [1, "x"], "b": {}})
    assert v.try_cast("struct<a:array<int>,b:int>") == {"a": [1, None], "b": None}


@pytest.mark.parametrize("type", ["void", "map<int,int>", "struct<a:array<void>>", DurationType("us")])
def test_types_that_nothing_is_cast_to(type):
    with pytest.raises(UnsupportedTypeError, match="cannot be cast to"):
        cast_value(Variant.from_python({}), type)
    with pytest.raises(SchemaError):
        cast_value(Variant.from_python({}), "nothing")


def test_variant_is_the_variant():
    v = Variant.from_python({"a": [None]})
    assert v.cast("variant") is v
    assert v.cast("struct<a:array<variant>>")["a"][0].type == "null"


def test_bytes_that_are_no_text_are_no_string():
    assert put("binary", b"\xff").try_cast("string") is None
    with pytest.raises(EvaluationError, match="binary"):
        put("binary", b"\xff").cast(STRING)


@given(st.integers(-(2**63), 2**63 - 1) | st.decimals(-(10**20), 10**20, places=10))
def test_floats_are_rounded_once(number):
    """The nearest of the floats around, by exact arithmetic; numpy rounds an integer directly."""
    found = nearest_float32(number)
    if isinstance(number, int):
        assert found == float(np.int64(number).astype(np.float32))
    below, above = (float(np.nextafter(np.float32(found), np.float32(s * math.inf))) for s in (-1, 1))
    distance = abs(Fraction(found) - Fraction(number))
    assert distance <= min(abs(Fraction(below) - Fraction(number)), abs(Fraction(above) - Fraction(number)))


@given(st.integers(1 - 10**38, 10**38 - 1), st.integers(0, 38))
def test_decimal_text_is_the_number(unscaled, scale):
    text = to_text(put("decimal16", unscaled, scale))
    assert text is not None and Fraction(text) == Fraction(unscaled, 10**scale)
    assert "." not in text or not text.endswith("0")


def test_sharing_does_not_expand():
    value = bytes.fromhex("0c01")
    for _ in range(24):
        value = bytes([0x03, 2, 0, 0, len(value)]) + value
    with pytest.raises(MalformedVariant, match="expand"):
        Variant(b"\x11\x00\x00", value).cast("array<" * 24 + "int" + ">" * 24)


@pytest.mark.spec("V-060")
def test_variants_have_no_order_but_their_casts_do():
    a, b = Variant.from_python(2), Variant.from_python(10)
    with pytest.raises(NotImplementedError, match="Extract a typed value"):
        sorted([a, b])
    assert sorted([b, a], key=lambda v: v.cast("int")) == [a, b]

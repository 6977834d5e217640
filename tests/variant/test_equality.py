"""Equality by equivalence class, hashes, no order (checklist V-056 to V-060)."""

from __future__ import annotations

import math
import operator
import pickle
import struct
from decimal import Decimal
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import UnsupportedFeatureError
from boathouse.variant import Variant, VariantBuilder
from makers import variants as made


def same(*values: Variant) -> None:
    for left in values:
        for right in values:
            assert left == right
            assert hash(left) == hash(right)
    assert len(set(values)) == 1


def different(*values: Variant) -> None:
    for i, left in enumerate(values):
        for right in values[i + 1 :]:
            assert left != right


def one(method: str, *arguments: object) -> Variant:
    builder = VariantBuilder()
    getattr(builder, method)(*arguments)
    return builder.finish()


@pytest.mark.spec("V-056")
def test_exact_numbers_are_one_class():
    same(
        one("append_int8", 1), one("append_int16", 1), one("append_int32", 1), one("append_int64", 1),
        one("append_decimal4", 1, 0), one("append_decimal4", 100, 2), one("append_decimal8", 10**10, 10),
        one("append_decimal16", 100, 2), one("append_decimal16", 10**37, 37),
    )  # fmt: skip
    same(one("append_int8", 0), one("append_decimal4", 0, 38), one("append_decimal16", 0, 0))
    same(one("append_int16", 1000), one("append_decimal4", 1000, 0), one("append_decimal8", 100_000, 2))
    different(*(one("append_decimal4", 1, scale) for scale in range(39)), one("append_int8", -1))
    deep = [{"a": np.int64(1)}, {"a": Decimal("1.00")}]
    same(Variant.from_python(deep[0]), Variant.from_python(deep[1]), Variant.from_python({"a": 1}))


@pytest.mark.spec("V-056")
@given(st.lists(made.scalars(("int8", "int64", "decimal4", "decimal8", "decimal16")), min_size=2, max_size=6))
@settings(max_examples=100)
def test_exact_numbers_are_equal_as_fractions_are(trees):
    def exact(tree):
        unscaled, scale = tree.content if isinstance(tree.content, tuple) else (tree.content, 0)
        return Fraction(unscaled, 10**scale)

    for left in trees:
        for right in trees:
            a, b = made.encode(left), made.encode(right)
            assert (a == b) == (exact(left) == exact(right))
            assert a != b or hash(a) == hash(b)


@pytest.mark.spec("V-057")
@pytest.mark.parametrize("text", ["hello", "", "é", "x" * 63])
def test_short_and_long_strings_are_one(text):
    short = Variant.from_python({text: [text]})
    raw = text.encode()
    long_string = b"\x40" + len(raw).to_bytes(4, "little") + raw
    body = b"\x03\x01\x00" + bytes([len(long_string)]) + long_string
    long = Variant(short.metadata, b"\x02\x01\x00\x00" + bytes([len(body)]) + body)
    same(short, long)
    for function in (
        Variant.to_python,
        Variant.to_json,
        Variant.validate,
        lambda v: v.get((text, 0)).scalar,
        lambda v: v[text][0].type,
        lambda v: VariantBuilder().append_variant(v).finish().value,
        lambda v: v[text][0].cast("string"),
    ):
        assert function(short) == function(long)


@pytest.mark.spec("V-058")
def test_float_and_double_are_two_classes():
    different(Variant.from_python(1.5), Variant.from_python(np.float32(1.5)), Variant.from_python(Decimal("1.5")))
    different(Variant.from_python(1.0), Variant.from_python(1), Variant.from_python(True))


def test_nan_and_signed_zeros():
    nan = Variant(b"\x11\0\0", b"\x1c" + struct.pack("<Q", 0x7FF8_0000_0000_0001))
    same(Variant.from_python(math.nan), nan)
    same(Variant.from_python(0.0), Variant.from_python(-0.0))
    same(Variant.from_python([math.nan]), Variant.from_python([math.nan]))
    different(Variant.from_python(math.nan), Variant.from_python("NaN"), Variant.from_python(np.float32(math.nan)))


@pytest.mark.spec("V-059")
def test_timestamps_of_micros_and_nanos_are_one_class():
    for micros in (0, -1, 1_730_982_834_123_456, -(10**14)):
        same(one("append_timestamp", micros), one("append_timestamp_nanos", micros * 1_000))
        same(one("append_timestamp_ntz", micros), one("append_timestamp_ntz_nanos", micros * 1_000))
        different(
            one("append_timestamp", micros), one("append_timestamp_ntz", micros), one("append_int64", micros),
            one("append_timestamp_nanos", micros * 1_000 + 1), one("append_timestamp_ntz_nanos", micros * 1_000 + 1),
        )  # fmt: skip
    assert one("append_timestamp", 2**63 - 1) != one("append_timestamp_nanos", 2**63 - 1)


def test_types_that_look_alike_differ():
    different(
        Variant.from_python(None),
        Variant.from_python(False),
        Variant.from_python(0),
        Variant.from_python(""),
        Variant.from_python(b""),
        Variant.from_python([]),
        Variant.from_python({}),
        one("append_date", 0),
        one("append_time", 0),
        one("append_uuid", bytes(16)),
        one("append_binary", bytes(16)),
        Variant.from_python(0.0),
        Variant.from_python([[]]),
        Variant.from_python([{}]),
        Variant.from_python([[], []]),
        Variant.from_python([None]),
        Variant.from_python({"a": None}),
        Variant.from_python({"b": None}),
        Variant.from_python({"a": {}}),
        Variant.from_python([{"a": 1}, 2]),
        Variant.from_python([{"a": [1], "b": 2}]),
        Variant.from_python([{"a": [1, 2]}]),
    )
    assert Variant.from_python(1) != 1
    assert Variant.from_python("a") != "a"


def test_objects_are_equal_in_any_order_arrays_are_not():
    same(Variant.from_python({"a": 1, "b": [2]}), Variant.from_python({"b": [2], "a": 1}))
    different(Variant.from_python([1, 2]), Variant.from_python([2, 1]), Variant.from_python([1, 2, 2]))


@given(made.trees(), made.trees(), st.integers(0, 2**32))
@settings(max_examples=100)
def test_any_encoding_of_a_value_is_equal_to_any_other(tree, other, seed):
    value, loose = made.encode(tree), made.encode_loosely(tree, Random(seed), gaps=True)
    same(value, loose, pickle.loads(pickle.dumps(loose)))
    if made.encode(other) == value:
        assert hash(made.encode(other)) == hash(loose)
    else:
        assert tree != other


@pytest.mark.spec("V-060")
@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_order_is_refused_with_advice(compare):
    left, right = Variant.from_python(1), Variant.from_python(2)
    with pytest.raises(UnsupportedFeatureError, match="Extract a typed value by a path"):
        compare(left, right)
    with pytest.raises(UnsupportedFeatureError, match="ordering"):
        compare(left, 2)

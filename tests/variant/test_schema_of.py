"""Schemas of variants as Spark prints them, and their merging."""

from __future__ import annotations

import random
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.errors import MalformedVariant, UnsupportedFeatureError
from boathouse.types import DOUBLE, INT64, VARIANT, DecimalType, Field, ListType, StructType
from boathouse.variant.builder import VariantBuilder
from boathouse.variant.schemas import SchemaBuilder, VariantSchema, merge, narrowest_decimal, schema_of
from boathouse.variant.value import Variant

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["1.5", "1.25", "1e3"]) | st.text(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abA"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("json", "text"),
    [
        ("null", "VOID"),
        ("1", "BIGINT"),
        ("1.10", "DECIMAL(2,1)"),
        ("0.001", "DECIMAL(3,3)"),
        ("100.0", "DECIMAL(3,0)"),
        ("0.00", "DECIMAL(1,0)"),
        ("1e3", "DOUBLE"),
        ("[]", "ARRAY<VOID>"),
        ("{}", "OBJECT<>"),
        ("[null,1]", "ARRAY<BIGINT>"),
        ('[1,"x"]', "ARRAY<VARIANT>"),
        ("[[1],[1.5]]", "ARRAY<ARRAY<DECIMAL(21,1)>>"),
        ("[1,[1]]", "ARRAY<VARIANT>"),
        ('[{"a":1},{"b":2}]', "ARRAY<OBJECT<a: BIGINT, b: BIGINT>>"),
        ('[{"a":1},{"a":"x"}]', "ARRAY<OBJECT<a: VARIANT>>"),
        ('{"a b":1,"A":6,"":3}', "OBJECT<``: BIGINT, A: BIGINT, `a b`: BIGINT>"),
        ('{"a`b":4,"1a":8,"a1_":9}', "OBJECT<`1a`: BIGINT, a1_: BIGINT, `a``b`: BIGINT>"),
    ],
)
def test_text_is_sparks(json, text):
    assert str(schema_of(Variant.from_json(json))) == text


def test_the_type_is_one_of_ours():
    found = schema_of(Variant.from_json('{"b":[1],"a":null}')).type
    assert isinstance(found, StructType) and [f.name for f in found] == ["a", "b"]
    assert found.fields[1] == Field("b", ListType(Field("element", INT64)))


def test_types_that_spark_cannot_print():
    for name, argument, text in [
        ("time", 5, "TIME(6)"),
        ("timestamp_nanos", 5, "TIMESTAMP(NS)"),
        ("timestamp_ntz_nanos", 5, "TIMESTAMP_NTZ(NS)"),
        ("uuid", bytes(16), "UUID"),
    ]:
        builder = VariantBuilder()
        getattr(builder, f"append_{name}")(argument)
        schema = schema_of(builder.finish())
        assert str(schema) == text
        assert merge([schema, VariantSchema(INT64)]).type is VARIANT
        assert merge([schema, schema]) == schema


@given(st.lists(JSON, max_size=5))
def test_merging_has_no_order(values):
    schemas = [schema_of(Variant.from_python(v)) for v in values]
    shuffled = random.Random(len(values)).sample(schemas, len(schemas))
    together = reduce(SchemaBuilder.add, map(Variant.from_python, values), SchemaBuilder()).finish()
    assert merge(schemas) == merge(shuffled) == together == schema_of_all(values)
    assert hash(merge(schemas)) == hash(together)


def schema_of_all(values) -> VariantSchema:
    """As the elements of one array."""
    found = schema_of(Variant.from_python(values)).type
    assert isinstance(found, ListType)
    return VariantSchema(found.element.type)


def test_decimals_that_no_decimal_holds_are_double():
    wide = VariantSchema(DecimalType(38, 30))
    assert merge([wide, VariantSchema(DecimalType(20, 0))]).type == DOUBLE
    assert merge([wide, VariantSchema(INT64)]).type == DOUBLE
    assert narrowest_decimal(-(10**37), 38) == DecimalType(1, 1)


def test_depth_is_a_number():
    deep = Variant.from_json("[" * 999 + '{"a":1}' + "]" * 999)
    schema = schema_of(deep)
    assert str(schema) == "ARRAY<" * 999 + "OBJECT<a: BIGINT>" + ">" * 999
    assert merge([schema, schema]) == schema


def test_wrong_bytes():
    with pytest.raises(MalformedVariant):
        schema_of(Variant(b"\x11\x00\x00", bytes([3, 1, 0, 5, 0x5D])))
    with pytest.raises(UnsupportedFeatureError, match=r"21.*0"):
        schema_of(Variant(b"\x11\x00\x00", bytes([3, 1, 0, 1, 21 << 2])))

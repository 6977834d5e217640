"""Shredding schemas: from types, texts and groups, to Arrow; what the specification's table lacks is refused."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from boathouse.errors import SchemaError, UnsupportedTypeError
from boathouse.types import DOUBLE, INT8, INT64, STRING, UUID, DecimalType, FixedType
from boathouse.types.text import parse_type
from boathouse.variant import Variant
from boathouse.variant.shredding.schema import (
    ShreddedArray,
    ShreddedObject,
    ShreddingSchema,
    from_data_type,
    shredding_schema,
    storage_type,
)
from boathouse.variant.shredding.shred import shred
from boathouse.variant.shredding.unshred import unshred
from makers.shredding import TYPES, schemas
from makers.variants import to_column

# VariantShredding.md, "Shredded Value Types": what pyarrow's Parquet schema says of each.
TABLE = {
    "boolean": ("BOOLEAN", "None"),
    "tinyint": ("INT32", "Int(bitWidth=8, isSigned=true)"),
    "smallint": ("INT32", "Int(bitWidth=16, isSigned=true)"),
    "int": ("INT32", "None"),
    "bigint": ("INT64", "None"),
    "float": ("FLOAT", "None"),
    "double": ("DOUBLE", "None"),
    "decimal(9,2)": ("INT32", "Decimal(precision=9, scale=2)"),
    "decimal(18,2)": ("INT64", "Decimal(precision=18, scale=2)"),
    "decimal(38,2)": ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=2)"),
    "date": ("INT32", "Date"),
    "time": ("INT64", "Time(isAdjustedToUTC=false, timeUnit=microseconds)"),
    "binary": ("BYTE_ARRAY", "None"),
    "string": ("BYTE_ARRAY", "String"),
    "uuid": ("FIXED_LEN_BYTE_ARRAY", "UUID"),
}


def variant_of(typed, nullable=True):
    return pa.struct(
        [
            pa.field("metadata", pa.binary(), False),
            pa.field("value", pa.binary()),
            pa.field("typed_value", typed, nullable),
        ]
    )


@pytest.mark.spec("V-069")
def test_every_type_of_the_table_is_stored_as_the_table_says(tmp_path):
    for text, (physical, logical) in TABLE.items():
        type = storage_type(shredding_schema(text))
        table = pa.schema([pa.field("v", type)]).empty_table() if text != "uuid" else pa.table({"v": pa.nulls(0, type)})
        pq.write_table(table, tmp_path / "f.parquet", store_decimal_as_integer=True)
        leaf = pq.ParquetFile(tmp_path / "f.parquet").schema.column(2)
        assert (leaf.path, leaf.physical_type, str(leaf.logical_type)) == ("v.typed_value", physical, logical), text


@pytest.mark.spec("V-069")
def test_all_four_timestamps_are_stored_with_their_unit_and_zone(tmp_path):
    kinds = ["timestamp", "timestamp_nanos", "timestamp_ntz", "timestamp_ntz_nanos"]
    types = [storage_type(ShreddingSchema(TYPES[kind])) for kind in kinds]
    table = pa.schema([pa.field(kind, type) for kind, type in zip(kinds, types)]).empty_table()
    pq.write_table(table, tmp_path / "f.parquet")
    schema = pq.ParquetFile(tmp_path / "f.parquet").schema
    for i, (utc, unit) in enumerate(
        [("true", "microseconds"), ("true", "nanoseconds"), ("false", "microseconds"), ("false", "nanoseconds")]
    ):
        assert f"isAdjustedToUTC={utc}, timeUnit={unit}" in str(schema.column(3 * i + 2).logical_type)


@settings(max_examples=60)
@given(schemas())
def test_a_schema_comes_back_from_its_arrow_type_and_its_data_type(schema):
    assert shredding_schema(storage_type(schema)) == schema
    assert from_data_type(schema.data_type) == schema


@pytest.mark.spec("V-071", "V-072")
def test_groups_of_fields_and_elements_are_required_and_lists_have_three_levels(tmp_path):
    type = storage_type(shredding_schema("struct<a:array<struct<b:bigint>>>"))
    pq.write_table(pa.schema([pa.field("v", type)]).empty_table(), tmp_path / "f.parquet")
    text = " ".join(str(pq.ParquetFile(tmp_path / "f.parquet").schema).split())
    assert (
        "required binary field_id=-1 metadata; optional binary field_id=-1 value; "
        "optional group field_id=-1 typed_value { required group field_id=-1 a { optional binary field_id=-1 value; "
        "optional group field_id=-1 typed_value (List) { repeated group field_id=-1 list { "
        "required group field_id=-1 element { optional binary field_id=-1 value; "
        "optional group field_id=-1 typed_value { required group field_id=-1 b {"
    ) in text


@pytest.mark.spec("V-069")
@pytest.mark.parametrize(
    "typed",
    [
        pa.uint8(), pa.uint32(), pa.uint64(), pa.binary(4), pa.binary(12), pa.float16(), pa.time32("ms"),
        pa.time64("ns"), pa.timestamp("ms"), pa.timestamp("s", "UTC"), pa.duration("us"), pa.decimal256(40, 2),
        pa.date64(), pa.null(), pa.map_(pa.string(), pa.int32()),
    ],
    ids=str,
)  # fmt: skip
def test_types_outside_the_table_are_refused_by_name(typed):
    inner = pa.struct([pa.field("x", pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", typed)]))])
    with pytest.raises(UnsupportedTypeError) as error:
        shredding_schema(variant_of(inner))
    name = {"uint32": "uint32", "fixed_size_binary[4]": "fixed(4)"}.get(str(typed), "")
    assert "$.x" in str(error.value)
    assert name in str(error.value)


@pytest.mark.spec("V-069")
def test_texts_of_types_outside_the_table_are_refused():
    for text in ("uint32", "struct<a:uint8>", "map<string,int>", "array<halffloat>"):
        with pytest.raises(UnsupportedTypeError):
            shredding_schema(text)
    with pytest.raises(UnsupportedTypeError, match="fixed\\(4\\)"):
        ShreddingSchema(FixedType(4))
    assert ShreddingSchema(FixedType(16)) == ShreddingSchema(UUID)


@pytest.mark.spec("V-079")
def test_names_with_dots_empty_names_and_names_that_differ_by_case_are_fields_of_their_own():
    schema = ShreddingSchema(
        ShreddedObject(
            (
                ("a", ShreddingSchema(INT8)),
                ("A", ShreddingSchema(STRING)),
                ("", ShreddingSchema(INT64)),
                ("a.b", ShreddingSchema(DOUBLE)),
            )
        )
    )
    assert shredding_schema(storage_type(schema)) == schema
    assert list(schema.leaves())[1::2] == [("typed_value", n, "value") for n in ("a", "A", "", "a.b")]


def test_foreign_layouts_of_the_same_columns_give_the_same_schema():
    large = pa.struct(
        [
            pa.field("typed_value", pa.large_list(pa.struct([pa.field("typed_value", pa.string_view())]))),
            pa.field("value", pa.binary_view()),
            pa.field("metadata", pa.dictionary(pa.int32(), pa.binary())),
        ]
    )
    assert shredding_schema(large) == ShreddingSchema(ShreddedArray(ShreddingSchema(STRING, has_value=False)))
    assert shredding_schema(variant_of(pa.binary(16))) == ShreddingSchema(UUID)
    assert shredding_schema(variant_of(pa.decimal128(20, 3))) == ShreddingSchema(DecimalType(20, 3))


@pytest.mark.parametrize(
    "type",
    [
        pa.struct([pa.field("value", pa.binary())]),
        pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.int32())]),
        pa.struct([pa.field("metadata", pa.binary())]),
        variant_of(pa.struct([])),
        variant_of(pa.struct([pa.field("a", pa.int32())])),
        variant_of(pa.struct([pa.field("a", pa.struct([]))])),
        variant_of(pa.list_(pa.string())),
        variant_of(pa.struct([pa.field("a", pa.struct([pa.field("value", pa.binary()), pa.field("x", pa.int8())]))])),
        pa.int32(),
    ],
    ids=str,
)
def test_groups_that_are_no_shredded_variant_are_refused(type):
    with pytest.raises(SchemaError):
        shredding_schema(type)


def test_a_schema_too_deep_for_any_engine_is_refused_not_followed():
    deep = pa.binary()
    for _ in range(150):
        element = pa.field("element", pa.struct([pa.field("typed_value", deep)]))
        deep = pa.list_(element)
    with pytest.raises(SchemaError, match="deeper"):
        shredding_schema(variant_of(deep))
    schema = ShreddingSchema()
    for _ in range(100):
        schema = ShreddingSchema(ShreddedArray(schema))
    with pytest.raises(SchemaError, match="deeper"):
        ShreddingSchema(ShreddedArray(schema))
    value = 1
    for _ in range(120):
        value = [value]
    column = to_column([Variant.from_python(value)])
    assert unshred(shred(column, schema)).to_pylist() == column.to_pylist()


def test_text_of_a_schema_is_that_of_its_types():
    text = "struct<a:bigint,b:array<struct<c:decimal(9,2)>>,d:variant>"
    assert str(shredding_schema(text)) == text
    assert shredding_schema(parse_type(text)) == shredding_schema(text)

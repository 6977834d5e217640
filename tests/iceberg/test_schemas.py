"""Schemas as JSON."""

import json

import pyarrow as pa
import pytest

from boathouse.errors import CorruptTableError, SchemaError
from boathouse.iceberg.metadata.schemas import (
    Ids,
    by_id,
    fresh_schema,
    merged_ids,
    parse_schema,
    parse_type,
    schema_json,
    storable_schema,
    type_json,
)  # fmt: skip
from boathouse.iceberg.metadata.versions import NEW
from boathouse.types import (
    DOUBLE,
    INT32,
    INT64,
    STRING,
    DecimalType,
    Field,
    FixedType,
    GeographyType,
    ListType,
    Schema,
    StructType,
)

NESTED = {
    "type": "struct",
    "schema-id": 3,
    "identifier-field-ids": [1],
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "uuid",
         "initial-default": "0db3e2a8-9d1d-42b9-aa7b-74ebe558dceb",
         "write-default": "ec5911be-b0a7-458c-8438-c9a3e53cffae", "doc": "the id"},
        {"id": 2, "name": "list", "required": False, "type": {
            "type": "list", "element-id": 3, "element": "string", "element-required": True}},
        {"id": 4, "name": "map", "required": False, "type": {
            "type": "map", "key-id": 5, "key": "string", "value-id": 6, "value": {
                "type": "struct", "fields": [{"id": 7, "name": "x", "required": False, "type": "fixed[16]"}]},
            "value-required": False}},
        {"id": 8, "name": "d", "required": False, "type": "decimal(9,2)", "unknown": {"kept": 1}},
    ],
}  # fmt: skip


@pytest.mark.spec("I-312", "I-313", "I-037", "I-039", "I-040")
def test_a_schema_object_round_trips():
    schema = parse_schema(NESTED)
    assert json.loads(json.dumps(schema_json(schema, 3))) == NESTED
    assert sorted(by_id(schema)) == list(range(1, 9))


@pytest.mark.spec("I-312", "I-313")
def test_pyiceberg_reads_our_schema_json():
    theirs = pytest.importorskip("pyiceberg.schema")
    made = theirs.Schema.model_validate_json(json.dumps(schema_json(parse_schema(NESTED), 3)))
    assert made.identifier_field_ids == [1] and made.highest_field_id == 8
    assert made.find_field("map.value.x").field_id == 7


@pytest.mark.spec("I-311")
def test_type_strings():
    names = ["boolean", "int", "long", "float", "double", "date", "time", "timestamp", "timestamptz", "string", "uuid",
             "binary", "fixed[16]", "decimal(9,2)", "timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry",
             "geometry(srid:3857)", "geography", "geography(srid:4326)", "geography(srid:4326, karney)"]  # fmt: skip
    for name in names:
        assert type_json(parse_type(name)) == name
    for spaced in ("decimal(9, 2)", "decimal( 9 ,2 )"):
        assert parse_type(spaced) == DecimalType(9, 2)
    assert parse_type("fixed[16]") == FixedType(16)
    assert parse_type("geography( srid:4326 ,karney)") == GeographyType("srid:4326", "karney")
    for broken in ("decimal(39,2)", "int128", "fixed[]", "", "geometry()", "geometry(a, b)", "geographyx"):
        with pytest.raises(CorruptTableError):
            parse_type(broken)


def test_fresh_ids_are_unique_and_depth_first():
    struct = StructType((Field("b", INT32), Field("c", ListType(Field("item", STRING)))))
    schema, last = fresh_schema(Schema((Field("a", struct), Field("z", INT64))), NEW)
    assert last == 5 and [f.id for _, f in schema.walk()] == [1, 2, 3, 4, 5]
    assert [p for p, _ in schema.walk()][3] == ("a", "c", "element")


def test_a_replacing_schema_keeps_the_ids_of_columns_that_stay():
    old = fresh_schema(Schema((Field("a", INT32), Field("b", StructType((Field("x", INT32),))))), NEW)[0]
    new = merged_ids(
        Schema((Field("b", StructType((Field("y", INT32), Field("x", INT64)))), Field("c", DOUBLE), Field("a", INT64))),
        old,
        Ids(3),
        NEW,
    )
    assert [(p[-1], f.id) for p, f in new.walk()] == [("b", 2), ("y", 4), ("x", 3), ("c", 5), ("a", 1)]


def test_names_are_unique_and_not_empty():
    for fields in ((Field("a", INT32), Field("a", INT32)), (Field("", INT32),)):
        with pytest.raises(SchemaError):
            storable_schema(Schema(fields), NEW)
    assert storable_schema(Schema((Field("a", INT32), Field("A", INT32))), NEW).names == ("a", "A")
    assert pa.__version__

"""Columns as nested Arrow, their schemas and validity: the one-value path row by row, and DuckDB's casts."""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import EvaluationError, UnsupportedTypeError
from boathouse.types import FixedSizeListType, ListType, MapType, StructType, VariantType
from boathouse.types.text import parse_type
from boathouse.variant import Lenient, Variant
from boathouse.variant.cast import cast_exact
from boathouse.variant.columns.extract import extract
from boathouse.variant.columns.schema_of import schema_of
from boathouse.variant.columns.to_arrow import to_arrow
from boathouse.variant.columns.valid import is_valid
from boathouse.variant.schemas import SchemaBuilder
from boathouse.variant.validate import validate
from makers.variants import columns, loose_variants, to_column, variants

Row = Variant | None
TYPES = [
    "struct<a:int,b:string,id:variant>",
    "struct<a:array<struct<a:double,b:variant>>,`a.b`:map<string,string>>",
    "array<int>",
    "array<variant>",
    "array<array<string>>",
    "map<string,variant>",
    "map<string,array<int>>",
    "vector<int,2>",
    "struct<>",
    "struct<A:vector<string,1>,a:boolean>",
]


def as_arrow(value: Any, type: Any) -> Any:
    """A value of `cast_exact` as `to_pylist` of its column shows it."""
    if value is None:
        return None
    match type:
        case ListType(element) | FixedSizeListType(element, _):
            return [as_arrow(one, element.type) for one in value]
        case MapType(_, item):
            return [(name, as_arrow(one, item.type)) for name, one in value.items()]
        case StructType(fields):
            return {f.name: as_arrow(value[f.name], f.type) for f in fields}
        case VariantType():
            return {"metadata": value.metadata, "value": value.value}
    return value


@pytest.mark.spec("V-063")
@pytest.mark.parametrize("text", TYPES)
@settings(max_examples=30)
@given(rows=columns(8))
def test_nested_types_are_those_of_one_value(text: str, rows: list[Row]) -> None:
    type = parse_type(text)
    want = [None if row is None else as_arrow(cast_exact(row, type, safe=True), type) for row in rows]
    found = to_arrow(to_column(rows), text, safe=True)
    found.validate(full=True)
    assert repr(found.to_pylist()) == repr(want)
    try:
        for row in rows:
            if row is not None:
                cast_exact(row, type)
    except EvaluationError:
        with pytest.raises(EvaluationError, match="row"):
            to_arrow(to_column(rows), text)
    else:
        assert repr(to_arrow(to_column(rows), text).to_pylist()) == repr(want)


def sub_variants(rows: list[Row]) -> list[Row]:
    return [None if row is None else row.get(("a",)) for row in rows]


@settings(max_examples=30)
@given(columns(8))
def test_nested_types_below_a_path(rows: list[Row]) -> None:
    type = parse_type("struct<a:string,b:array<variant>>")
    want = [None if v is None else as_arrow(cast_exact(v, type, safe=True), type) for v in sub_variants(rows)]
    assert repr(extract(to_column(rows), "$.a", type, safe=True).to_pylist()) == repr(want)


@settings(max_examples=40)
@given(columns(8), st.integers(0, 7))
def test_schemas_are_those_of_one_value(rows: list[Row], cut: int) -> None:
    builder = SchemaBuilder()
    for row in rows:
        if row is not None:
            builder.add(row)
    assert schema_of(to_column(rows)) == builder.finish()
    parts = pa.chunked_array([to_column(rows[:cut]), to_column(rows[cut:])])
    assert schema_of(parts) == builder.finish()


@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), variants(8), loose_variants(8)), max_size=6))
def test_validity_is_that_of_one_value(rows: list[Row]) -> None:
    want = [None if row is None else all(f.kind != "error" for f in validate(row)) for row in rows]
    assert is_valid(to_column(rows)).to_pylist() == want
    assert is_valid(pa.chunked_array([to_column(rows)])).to_pylist() == want


def test_to_arrow_finds_the_schema() -> None:
    values = [
        {"a": 1, "b": [{"x": "q"}, {"x": None}], "n": None},
        {"a": 2, "b": [], "mixed": "s"},
        {"a": None, "mixed": 1},
    ]
    data = to_column([*(Variant.from_python(v) for v in values), None])
    found = to_arrow(data)
    assert found.type.field("a").type == pa.int64()
    assert found.type.field("n").type == pa.null()
    assert found.type.field("b").type.value_type == pa.struct([pa.field("x", pa.string())])
    assert found.to_pylist()[0]["b"] == [{"x": "q"}, {"x": None}]
    assert found.to_pylist()[1]["mixed"]["value"] == b"\x05s"
    assert found.to_pylist()[3] is None
    assert to_arrow(pa.chunked_array([data, data])).to_pylist() == found.to_pylist() * 2
    schema = pa.schema([("a", pa.int32()), ("b", pa.large_list(pa.struct([("x", pa.string())])))])
    by_schema = to_arrow(data, schema)
    assert [row and row["a"] for row in by_schema.to_pylist()] == [1, 2, None, None]


def test_to_arrow_of_deep_values() -> None:
    value: Any = 1
    for _ in range(900):
        value = [value]
    found = to_arrow(to_column([Variant.from_python(value)]))
    depth, kind = 0, found.type
    while pa.types.is_list(kind):
        depth, kind = depth + 1, kind.value_type
    assert depth == 50 and pa.types.is_struct(kind)


def test_duckdb_casts_the_same() -> None:
    values = [
        {"id": i, "tags": ["a", "b"][: i % 3], "p": {"x": i / 2, "y": str(i)} if i % 5 else None} for i in range(200)
    ]
    data = to_column([Variant.from_python(v) for v in values])
    text = pa.table({"j": [json.dumps(v) for v in values]})
    kind = "STRUCT(id BIGINT, tags VARCHAR[], p STRUCT(x DOUBLE, y VARCHAR))"
    want = duckdb.sql(f"select j::json::{kind} as x from text").to_arrow_table()["x"].to_pylist()
    assert to_arrow(data, "struct<id:bigint,tags:array<string>,p:struct<x:double,y:string>>").to_pylist() == want
    assert len(text) == len(want)


@pytest.mark.spec("V-054")
def test_a_later_type_beside_what_is_asked_for() -> None:
    one = Variant.from_python({"a": 1, "b": 2})
    raw = one.value[:-2] + bytes([33 << 2, 2])
    data = pa.StructArray.from_arrays([pa.array([one.metadata] * 2), pa.array([one.value, raw])], ["metadata", "value"])
    assert to_arrow(data, "struct<a:int>").to_pylist()[0] == {"a": 1}
    assert is_valid(data).to_pylist() == [True, True]
    lenient = Lenient()
    assert str(schema_of(data, lenient=lenient)) == "OBJECT<a: BIGINT, b: BIGINT>"
    assert lenient.rows == [1]


def test_refused_types() -> None:
    data = to_column([Variant.from_python({"a": 1})])
    with pytest.raises(UnsupportedTypeError):
        to_arrow(data, "struct<a:map<int,int>>")

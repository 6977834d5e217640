"""Paths straight from shredded columns: what the rebuilt values would give, from the leaves that are named."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import EvaluationError
from boathouse.parquet.fields import file_fields
from boathouse.parquet.variants import variant_parts
from boathouse.variant import Variant
from boathouse.variant.columns.extract import extract
from boathouse.variant.path import as_path
from boathouse.variant.shredding.get import get
from boathouse.variant.shredding.schema import shredding_schema
from boathouse.variant.shredding.shred import shred
from makers.shredding import schemas_for
from makers.variants import columns, to_column, tree_of

TYPES = ["variant", "string", "bigint", "tinyint", "double", "decimal(20,4)", "boolean", "timestamp", "binary",
         "date"]  # fmt: skip


def paths_of(tree):
    yield ()
    if tree.type == "object":
        for name, child in tree.content:
            yield from ((name, *rest) for rest in paths_of(child))
    if tree.type == "array":
        for i, child in enumerate(tree.content):
            yield from ((i, *rest) for rest in paths_of(child))


@st.composite
def questions(draw):
    rows = draw(columns())
    some = [tree_of(row) for row in rows if row is not None]
    seed = draw(st.sampled_from(some)) if some else None
    known = [path for tree in some for path in paths_of(tree)]
    path = draw(st.sampled_from([*known, (), ("a",), (0,), ("a", "b")]))
    return rows, draw(schemas_for(seed)), path, draw(st.sampled_from(TYPES))


def contents(array):
    if pa.types.is_struct(array.type):
        return [None if row is None else tree_of(Variant(**row)) for row in array.to_pylist()]
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type == pa.date32() else pa.int64())
    return [str(found) for found in array.to_pylist()]


def columns_for(path, type, empty=()):
    """The leaf columns that are read of a file for a path, by their paths below the variant."""
    (group,) = file_fields(pa.schema([pa.field("v", type)]))
    names = {f.first: f.path[1:] for f in group.walk() if not f.children}
    return tuple(names[i] for i in variant_parts(group, [as_path(path)], lambda leaf: names[leaf] in empty).leaves)


def pruned(array, leaves, path=()):
    """The struct array without the leaves that are not among `leaves`."""
    if pa.types.is_struct(array.type) and not isinstance(array, pa.ExtensionArray):
        kept = []
        for i, f in enumerate(array.type):
            child = pruned(array.field(i), leaves, (*path, f.name))
            if child is not None:
                kept.append((f.name, child))
        if not kept:
            return None
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays([c for _, c in kept], names=[n for n, _ in kept], mask=mask)
    if pa.types.is_list(array.type):
        below = pruned(array.values, leaves, (*path, "element"))
        if below is None:
            return None
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, below, mask=mask)
    return array if path in leaves else None


@pytest.mark.spec("V-078", "V-067", "V-074")
@settings(max_examples=30)
@given(questions())
def test_a_path_answers_as_the_whole_value_does_from_the_named_leaves_alone(question):
    rows, schema, path, type = question
    column = to_column(rows)
    want = extract(column, path, type, safe=True)
    shredded = shred(column, schema)
    assert contents(get(shredded, path, type, safe=True)) == contents(want)
    few = pruned(shredded, columns_for(path, shredded.type))
    assert contents(get(few, path, type, safe=True)) == contents(want)


def variants(*values):
    return to_column([None if v is ... else Variant.from_python(v) for v in values])


def test_a_path_reads_no_leaf_that_it_does_not_lead_to():
    schema = shredding_schema("struct<a:struct<b:bigint,c:string>,`x.y`:array<struct<d:int>>,n:variant>")
    type = shred(variants({}), schema).type
    assert columns_for("$.a.b", type) == (
        ("metadata",),
        ("typed_value", "a", "typed_value", "b", "value"),
        ("typed_value", "a", "typed_value", "b", "typed_value"),
    )
    assert columns_for("$.other.deep", type) == (("metadata",), ("value",))
    assert columns_for("$.a.z", type) == (("metadata",), ("typed_value", "a", "value"))
    assert columns_for("$['x.y'][3].d", type)[1:] == tuple(
        ("typed_value", "x.y", "typed_value", "element", "typed_value", "d", leaf) for leaf in ("value", "typed_value")
    )
    assert columns_for("$.n.m", type) == (("metadata",), ("typed_value", "n", "value"))
    assert len(columns_for("$", type)) == 12


@pytest.mark.spec("V-078")
def test_a_typed_column_beside_nothing_but_nulls_is_read_alone():
    column = variants({"a": 1, "b": {"c": 2}}, {"a": 5}, {}, ...)
    shredded = shred(column, "struct<a:tinyint,b:struct<c:tinyint>>")
    leaves = columns_for("$.a", shredded.type, empty={("typed_value", "a", "value")})
    assert leaves == (("typed_value", "a", "typed_value"),)
    few = pruned(shredded, leaves)
    for type, want in (("int", [1, 5, None, None]), ("string", ["1", "5", None, None])):
        assert get(few, "$.a", type).to_pylist() == want
    assert contents(get(few, "$.a"))[:2] == contents(get(shredded, "$.a"))[:2]


def test_exact_widths_of_a_typed_column_and_its_residual_come_together():
    column = variants({"a": 1}, {"a": 300}, {"a": "7"}, {"a": None}, {}, ..., None)
    shredded = shred(column, "struct<a:tinyint>")
    assert get(shredded, "$.a", "bigint").to_pylist() == [1, 300, 7, None, None, None, None]
    assert get(shredded, "$.a", "string").to_pylist() == ["1", "300", "7", None, None, None, None]
    with pytest.raises(EvaluationError):
        get(shredded, "$.a", "tinyint")
    assert get(shredded, "$.a", "tinyint", safe=True).to_pylist() == [1, None, 7, None, None, None, None]
    found = get(shredded, "$.a").to_pylist()
    assert [None if v is None else Variant(**v).type for v in found] == [
        "int8", "int16", "string", "null", None, None, None,
    ]  # fmt: skip


def test_chunks_stay_chunks_and_arrow_types_are_obeyed():
    shredded = shred(variants({"a": [1, {"b": "x"}]}, {"a": 5}), "struct<a:array<variant>>")
    found = get(pa.chunked_array([shredded, shredded.slice(1)]), "$.a[1].b", pa.large_string())
    assert found.num_chunks == 2
    assert found.type == pa.large_string()
    assert found.to_pylist() == ["x", None, None]
    assert get(pa.chunked_array([], shredded.type), "$.a", "int").to_pylist() == []

"""Damaged columns: typed errors or lost rows, never another error and never another value."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import MalformedVariant, UnsupportedFeatureError
from boathouse.variant import Variant, parse_metadata
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.shredding.get import get
from boathouse.variant.shredding.shred import shred
from boathouse.variant.shredding.unshred import unshred
from makers.shredding import pair_at, schemas_for, unshred_tree
from makers.variants import columns, mutate, to_column, tree_of

REFUSALS = (MalformedVariant, UnsupportedFeatureError)
BAD = "bad"


def damaged(array, random, name=""):
    """The column with some of its `value`s and `metadata`s changed, at any depth."""
    if pa.types.is_struct(array.type) and not isinstance(array, pa.ExtensionArray):
        children = [damaged(array.field(i), random, f.name) for i, f in enumerate(array.type)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, names=[f.name for f in array.type], mask=mask)
    if pa.types.is_list(array.type):
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, damaged(array.values, random), mask=mask)
    if name in ("value", "metadata") and pa.types.is_binary(array.type):
        found = [v if v is None or random.random() < 0.7 else mutate(v, random) for v in array.to_pylist()]
        return pa.array(found, pa.binary())
    return array


def read(metadata, value):
    try:
        parse_metadata(metadata)
        return tree_of(Variant(metadata, value))
    except REFUSALS:
        return BAD


def names_of(tree):
    if tree.type == "object":
        return {name for name, _ in tree.content}.union(*(names_of(child) for _, child in tree.content))
    return set().union(*(names_of(child) for child in tree.content)) if tree.type == "array" else set()


def wanted(scalar, schema):
    """What the row holds, or BAD; a shredded name that its metadata lacks cannot be rebuilt."""
    try:
        metadata = parse_metadata(scalar["metadata"].as_py())
        found = unshred_tree(pair_at(scalar, schema), schema)
    except REFUSALS:
        return BAD
    return found if all(metadata.ids(name) for name in names_of(found)) else BAD


@st.composite
def sources(draw):
    rows = draw(columns())
    some = [tree_of(row) for row in rows if row is not None]
    return rows, draw(schemas_for(draw(st.sampled_from(some)) if some else None)), Random(draw(st.integers(0, 2**32)))


@pytest.mark.spec("V-086", "V-087")
@settings(max_examples=30)
@given(sources())
def test_damaged_shredded_columns_are_refused_or_read_right(drawn):
    rows, schema, random = drawn
    column = damaged(shred(to_column(rows), schema), random)
    lenient = Lenient()
    whole = unshred(column, lenient=lenient)
    whole.validate(full=True)
    try:
        unshred(column)
        assert lenient.count == 0
    except REFUSALS:
        assert lenient.count > 0
    for scalar, made in zip(column, whole.to_pylist(), strict=True):
        if not scalar.is_valid:
            assert made is None
            continue
        want = wanted(scalar, schema)
        if made is None:
            assert want == BAD
        elif want != BAD:
            assert read(**made) == want
    for path in ((), ("a",), (0, "b")):
        get(column, path, "string", safe=True, lenient=Lenient())


@pytest.mark.spec("V-086", "V-087")
@settings(max_examples=30)
@given(sources())
def test_damaged_variants_are_refused_or_shredded_without_another_value(drawn):
    rows, schema, random = drawn
    column = damaged(to_column(rows), random)
    shredded = shred(column, schema, lenient=Lenient())
    shredded.validate(full=True)
    for source, made in zip(column.to_pylist(), unshred(shredded).to_pylist(), strict=True):
        if source is None or made is None:
            continue
        before = read(**source)
        assert before in (BAD, read(**made))

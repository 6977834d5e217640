"""Shredding under any schema, against the slow reference over trees, row by row."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import MalformedVariant
from boathouse.variant import Variant
from boathouse.variant.shredding.schema import ShreddedArray, ShreddedObject, storage_type
from boathouse.variant.shredding.shred import shred
from boathouse.variant.shredding.unshred import unshred
from makers.shredding import (
    MISSING,
    Pair,
    pair_at,
    schemas,
    schemas_for,
    shred_tree,
    to_storage,
    unshred_tree,
)
from makers.variants import columns, to_column, tree_of, trees


@st.composite
def columns_with_schemas(draw):
    rows = draw(columns())
    some = [tree_of(row) for row in rows if row is not None]
    seed = draw(st.sampled_from(some)) if some else None
    return rows, draw(schemas_for(seed))


def trees_of(column):
    return [None if row is None else tree_of(Variant(**row)) for row in column.to_pylist()]


@pytest.mark.spec("V-081", "V-069", "V-067", "V-070")
@settings(max_examples=40)
@given(columns_with_schemas())
def test_shredding_loses_nothing(drawn):
    rows, schema = drawn
    column = to_column(rows)
    shredded = shred(column, schema)
    assert shredded.type == storage_type(schema)
    shredded.validate(full=True)
    whole = unshred(shredded)
    whole.validate(full=True)
    for row, made in zip(rows, whole.to_pylist(), strict=True):
        assert (row is None) == (made is None)
        if row is not None:
            assert made["metadata"] == row.metadata
            assert tree_of(Variant(**made)) == tree_of(row)
            assert Variant(**made) == row


@pytest.mark.spec("V-067", "V-071", "V-072", "V-073", "V-074")
@settings(max_examples=40)
@given(columns_with_schemas())
def test_shredded_columns_are_those_of_the_reference(drawn):
    rows, schema = drawn
    shredded = shred(to_column(rows), schema)
    for row, scalar in zip(rows, shredded, strict=True):
        assert pair_at(scalar, schema) == (None if row is None else shred_tree(tree_of(row), schema))


@st.composite
def pairs(draw, schema, anything=True):
    """What a file may hold, most of it as the specification has it."""
    if draw(st.integers(0, 8)) == 0:
        return MISSING
    if schema.typed is None or draw(st.integers(0, 3)) == 0:
        return Pair(draw(trees(4)))
    value = draw(trees(4)) if draw(st.integers(0, 12)) == 0 else None
    match schema.typed:
        case ShreddedObject(fields):
            if draw(st.booleans()):
                value = draw(trees(4).filter(lambda tree: tree.type == "object"))
            return Pair(value, tuple((name, draw(pairs(node))) for name, node in fields))
        case ShreddedArray(element):
            return Pair(value, tuple(draw(st.lists(pairs(element), max_size=3))))
    found = shred_tree(draw(fitting(schema)), schema)
    return Pair(value, found.typed)


def fitting(schema):
    from makers.shredding import type_name
    from makers.variants import scalars

    return scalars((type_name(schema.typed),))


@st.composite
def stored(draw):
    schema = draw(schemas(5))
    return draw(st.lists(st.one_of(st.none(), pairs(schema)), max_size=5)), schema


@pytest.mark.spec("V-067", "V-068", "V-073", "V-076")
@settings(max_examples=45)
@given(stored())
def test_unshredding_agrees_with_the_reference_on_anything_stored(drawn):
    found, schema = drawn
    array = to_storage(found, schema)
    try:
        want = [None if pair is None else unshred_tree(pair, schema) for pair in found]
    except MalformedVariant:
        with pytest.raises(MalformedVariant):
            unshred(array)
        return
    assert trees_of(unshred(array)) == want


@pytest.mark.spec("V-087")
@settings(max_examples=45)
@given(stored())
def test_lenient_reading_loses_the_malformed_rows_alone(drawn):
    from boathouse.variant.columns.faults import Lenient

    found, schema = drawn
    want, bad = [], []
    for number, pair in enumerate(found):
        try:
            want.append(None if pair is None else unshred_tree(pair, schema))
        except MalformedVariant:
            want.append(None)
            bad.append(number)
    lenient = Lenient()
    assert trees_of(unshred(to_storage(found, schema), lenient=lenient)) == want
    assert (lenient.count, lenient.rows) == (len(bad), bad)

"""Schemas chosen from data."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from boathouse.errors import InvalidArgumentError
from boathouse.variant import Variant
from boathouse.variant.shredding.choose import choose
from boathouse.variant.shredding.schema import ShreddedObject, ShreddingSchema
from boathouse.variant.shredding.shred import shred
from boathouse.variant.shredding.unshred import unshred
from makers.variants import Tree, columns, encode, to_column, tree_of


def column(*values):
    return to_column([Variant.from_python(v) for v in values])


def test_fields_of_one_row_in_ten_are_chosen_and_rarer_ones_are_not():
    rows = [{"a": 1, **({"ten": "x"} if i % 10 == 0 else {}), **({"nine": "x"} if i < 9 else {})} for i in range(100)]
    assert str(choose(column(*rows))) == "struct<a:tinyint,ten:string>"
    assert str(choose(column(*rows), min_frequency=0.09)) == "struct<a:tinyint,nine:string,ten:string>"


def test_the_most_frequent_exact_type_is_chosen():
    ints = [1, 300, 301, 70_000, "x", None]
    assert str(choose(column(*ints))) == "smallint"
    decimals = [("decimal4", 1, 2), ("decimal4", 2, 2), ("decimal4", 3, 1), ("decimal8", 4, 2)]
    trees = [encode(Tree(type, (n, scale))) for type, n, scale in decimals]
    assert str(choose(to_column(trees))) == "decimal(9,2)"
    # A scale that no decimal of nine digits can have.
    assert choose(to_column([encode(Tree("decimal4", (1, 12)))])) == ShreddingSchema()
    assert str(choose(column({"a": 1}, [1], {"a": 2}))) == "struct<a:tinyint>"


def test_nested_objects_and_arrays_are_chosen_as_trees():
    row = {"a": {"b": [{"c": 1.5, "d": None}], "e": []}, "f": None, "g.h": True, "": [[1]]}
    assert (
        str(choose(column(row, row)))
        == "struct<:array<array<tinyint>>,a:struct<b:array<struct<c:double>>,e:variant>,g.h:boolean>"
    )
    assert choose(column(None, None)) == ShreddingSchema()
    assert choose(to_column([])) == ShreddingSchema()
    assert choose(column({}, [])) == ShreddingSchema()


def test_random_keys_are_left_together_in_one_column():
    rows = [{"marks": {f"k{i}": i}, "id": i % 3} for i in range(50)]
    assert str(choose(column(*rows))) == "struct<id:tinyint,marks:variant>"


def test_no_more_fields_than_asked_the_most_frequent_first():
    rows = [{f"f{n}": n for n in range(20) if i % (n + 1) == 0} for i in range(60)]
    found = choose(column(*rows), max_fields=3)
    assert str(found) == "struct<f0:tinyint,f1:tinyint,f2:tinyint>"
    wide = column({f"f{n:03}": {"x": 1} for n in range(400)})
    kept = choose(wide)
    assert isinstance(kept.typed, ShreddedObject)
    assert len(kept.typed.fields) + sum(node.is_shredded for _, node in kept.typed.fields) <= 300
    assert len(list(kept.leaves())) <= 601


def test_no_deeper_than_asked():
    value = 1
    for _ in range(80):
        value = {"a": value}
    text = str(choose(column(value)))
    assert text.count("struct<") == 50
    assert str(choose(column(value), max_depth=2)) == "struct<a:struct<a:variant>>"


def test_a_sample_is_spread_over_the_column():
    rows = [{"a": 1} if i < 900 else {"b": "x"} for i in range(1800)]
    assert str(choose(column(*rows), sample=10)) == "struct<a:tinyint,b:string>"
    for wrong in ({"min_frequency": 0}, {"max_fields": 0}, {"max_depth": 101}, {"sample": 0}):
        with pytest.raises(InvalidArgumentError):
            choose(column(1), **wrong)


@pytest.mark.spec("V-081")
@settings(max_examples=60)
@given(columns())
def test_whatever_is_chosen_loses_nothing(rows):
    source = to_column(rows)
    again = unshred(shred(source, choose(source))).to_pylist()
    assert [row and tree_of(Variant(**row)) for row in again] == [row and tree_of(row) for row in rows]

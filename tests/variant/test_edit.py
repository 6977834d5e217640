"""Changed copies and rows of children: results, exact types, canonical bytes, errors. test_edit_spark asks Spark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.errors import EvaluationError, ExpressionError, InvalidArgumentError, MalformedVariant
from boathouse.variant import edit
from boathouse.variant.builder import VariantBuilder
from boathouse.variant.explode import explode
from boathouse.variant.value import Variant

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-300, 300) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


def wide() -> Variant:
    """Numbers in wider types than they need, a long string in its long form, an unsorted dictionary."""
    value = bytes([2, 2, 1, 0, 0, 5, 14]) + bytes([5 << 2, 1, 0, 0, 0]) + bytes([6 << 2, 2, 0, 0, 0, 0, 0, 0, 0])
    return Variant(b"\x01\x02\x00\x01\x02ba", value)


def doc() -> Variant:
    return Variant.from_python({"a": 1, "b": {"c": [1, {"d": 2}]}, "n": None, "l": [1, None, 3]})


SAME = '{"a":1,"b":{"c":[1,{"d":2}]},"l":[1,null,3],"n":null}'


@pytest.mark.parametrize(
    ("edited", "old", "new"),
    [
        (lambda v: edit.set(v, "$.a", "x"), '"a":1', '"a":"x"'),
        (lambda v: edit.set(v, "$.b.x[1].y", True), '{"d":2}]', '{"d":2}],"x":[null,{"y":true}]'),
        (lambda v: edit.insert(v, "$.l[1]", 9), "[1,null", "[1,9,null"),
        (lambda v: edit.insert(v, "$.l[4]", 9), "null,3]", "null,3,null,9]"),
        (lambda v: edit.delete(v, "$.b.c[1].d", None, "$.zz", "$.a.b"), '"d":2', ""),
        (lambda v: edit.delete(v, "$.l[0]", "$.l[0]"), "[1,null,3]", "[3]"),
        (lambda v: edit.array_append(v, "$.b.c", {"e": 1}), "2}]", '2},{"e":1}]'),
        (lambda v: edit.strip_nulls(v), '[1,null,3],"n":null', "[1,3]"),
        (lambda v: edit.strip_nulls(v, include_arrays=False), ',"n":null', ""),
        (lambda v: edit.set(v, "$.q", 1, create_if_missing=False), "", ""),
        (lambda v: edit.array_append(v, "$.q[0]", 1), "", ""),
    ],
)
def test_results(edited, old, new):
    v = doc()
    before = v.metadata, v.value
    found = edited(v)
    assert SAME.count(old) == 1 or not old
    assert found.to_json() == (SAME.replace(old, new) if old else SAME)
    assert (v.metadata, v.value) == before
    assert not found.validate()


def test_untouched_parts_keep_their_types_and_the_bytes_are_canonical():
    for found in (edit.set(wide(), "$.c", 1), edit.insert(wide(), ("c",), 1)):
        assert found is not None
        assert [(name, child.type) for name, child in found.items()] == [("a", "int32"), ("b", "int64"), ("c", "int8")]
        assert found == Variant.from_python({"a": 1, "b": 2, "c": 1}) and not found.validate()
        assert found.metadata == b"\x11\x03\x00\x01\x02\x03abc"
    assert edit.delete(wide(), "$.a").metadata == b"\x11\x01\x00\x01b"


def test_values_are_variants_or_python():
    exact = VariantBuilder().append_int64(7).finish()
    found = edit.set(doc(), "$.a", exact)
    assert found is not None and found["a"].type == "int64"
    found = edit.set(doc(), "$.a", None)
    assert found is not None and found["a"].type == "null"
    found = edit.set(doc(), "$.a", doc())
    assert found is not None and found["a"] == doc()


@pytest.mark.parametrize(
    "call",
    [
        lambda **o: edit.set(doc(), "$.a.b", 1, **o),
        lambda **o: edit.set(doc(), "$.l.x", 1, **o),
        lambda **o: edit.set(doc(), "$.n.x", 1, **o),
        lambda **o: edit.set(doc(), "$.b[0]", 1, **o),
        lambda **o: edit.set(doc(), "$.a.b", 1, create_if_missing=False, **o),
        lambda **o: edit.insert(doc(), "$.a", 1, **o),
        lambda **o: edit.insert(doc(), "$.b.c[1].d", 1, **o),
        lambda **o: edit.array_append(doc(), "$", 1, **o),
        lambda **o: edit.array_append(doc(), "$.a", 1, **o),
        lambda **o: edit.set(doc(), "$.l[2147483647]", 1, **o),
    ],
)
def test_what_does_not_fit(call):
    with pytest.raises(EvaluationError):
        call()
    assert call(safe=True) is None


def test_a_mismatch_says_where():
    with pytest.raises(
        EvaluationError, match=r"\$\.b\.c\[0\]\.x\[1\] does not fit: at \$\.b\.c\[0\] there is the type int8"
    ):
        edit.set(doc(), "$.b.c[0].x[1]", 1)


@pytest.mark.parametrize("path", ["$", "a", "$.a[-1]", "$["])
def test_wrong_paths(path):
    for call in (edit.set, edit.insert):
        with pytest.raises(ExpressionError):
            call(doc(), path, 1, safe=True)
    with pytest.raises(ExpressionError):
        edit.delete(doc(), path)


@given(JSON, st.sampled_from("ab"), JSON)
def test_set_then_get_then_delete(value, name, new):
    v = Variant.from_python({"z": value})
    there = edit.set(v, (name, 1, "q"), new)
    assert there is not None
    assert there.get((name, 1, "q")) == Variant.from_python(new)
    assert there["z"] == v["z"] and there[name][0].type == "null"
    assert edit.delete(there, (name,)) == v
    assert not there.validate()


@given(JSON)
def test_strip_nulls_leaves_no_null(value):
    def stripped(x):
        if isinstance(x, dict):
            return {k: stripped(e) for k, e in x.items() if e is not None}
        return [stripped(e) for e in x if e is not None] if isinstance(x, list) else x

    assert edit.strip_nulls(Variant.from_python(value)).to_python() == stripped(value)


def test_depth_and_sharing_are_bounded():
    with pytest.raises(InvalidArgumentError, match="1,000"):
        edit.set(Variant.from_python([]), (0,) * 1001, 1)
    deep = edit.set(Variant.from_python([]), (0,) * 1000, 1)
    assert deep is not None and edit.strip_nulls(deep) == deep
    value = bytes.fromhex("0c01")
    for _ in range(24):
        value = bytes([0x03, 2, 0, 0, len(value)]) + value
    bomb = Variant(b"\x11\x00\x00", value)
    for call in (lambda: edit.set(bomb, "$[0]", 1), lambda: edit.strip_nulls(bomb), lambda: edit.delete(bomb, "$[0]")):
        with pytest.raises((MalformedVariant, InvalidArgumentError)):
            call()


def test_explode():
    rows = [(pos, key, v.to_json()) for pos, key, v in explode(doc())]
    assert rows == [(0, "a", "1"), (1, "b", '{"c":[1,{"d":2}]}'), (2, "l", "[1,null,3]"), (3, "n", "null")]
    assert [(p, k, v.to_json()) for p, k, v in explode(doc()["l"])] == [
        (0, None, "1"),
        (1, None, "null"),
        (2, None, "3"),
    ]
    for nothing in (None, *map(Variant.from_json, ("null", "5", "[]", "{}", '"x"'))):
        assert list(explode(nothing)) == []
        assert list(explode(nothing, outer=True)) == [(None, None, None)]
    assert list(explode(doc(), outer=True)) == list(explode(doc()))


def test_explode_keeps_the_stored_order():
    """As DuckDB writes it: fields in the order of insertion."""
    v = Variant(b"\x01\x02\x00\x01\x02ba", bytes([2, 2, 0, 1, 0, 2, 4, 12, 1, 12, 2]))
    assert [(pos, key) for pos, key, _ in explode(v)] == [(0, "b"), (1, "a")]


def test_methods_are_the_functions():
    v = Variant.from_json('{"a":1,"b":[1,null,2]}')
    assert v.set("$.c", 5) == Variant.from_json('{"a":1,"b":[1,null,2],"c":5}')
    assert v.insert("$.b[0]", 9) == Variant.from_json('{"a":1,"b":[9,1,null,2]}')
    assert v.delete("$.a", "$.b[0]") == Variant.from_json('{"b":[null,2]}')
    assert v.array_append("$.b", "x") == Variant.from_json('{"a":1,"b":[1,null,2,"x"]}')
    assert v.strip_nulls() == Variant.from_json('{"a":1,"b":[1,2]}')
    assert [(pos, key) for pos, key, _ in v.explode()] == [(0, "a"), (1, "b")]
    assert str(v.schema_of()) == "OBJECT<a: BIGINT, b: ARRAY<BIGINT>>"

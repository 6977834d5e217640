"""Paths: the grammar, what each leads to, and how wrong ones are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.errors import ExpressionError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant.path import as_path, format_path, parse_path
from boathouse.variant.value import Variant

RIGHT = {
    "$": (),
    "$.a": ("a",),
    "$.a.b[0]": ("a", "b", 0),
    "$['a.b']": ("a.b",),
    '$["x"]': ("x",),
    "$['']": ("",),
    "$.a b": ("a b",),
    "$.a ": ("a ",),
    "$.*": ("*",),
    "$.$": ("$",),
    "$.0": ("0",),
    "$.é~😀": ("é~😀",),
    "$.x]y": ("x]y",),
    "$['x]y[z.']": ("x]y[z.",),
    "$['a\"b']": ('a"b',),
    '$["a\'b"]': ("a'b",),
    "$.'a.b'": ("'a", "b'"),
    "$['a?']": ("a?",),
    "$.a\nb": ("a\nb",),
    "$['\\']": ("\\",),
    "$[0][00012]": (0, 12),
    "$[2147483647]": (2147483647,),
    "$['b'].c[1]['d']": ("b", "c", 1, "d"),
}
WRONG = {
    "": (1, "starts with"),
    "a": (1, "starts with"),
    ".a": (1, "starts with"),
    " $.a": (1, "starts with"),
    "$a": (2, "does not start a step"),
    "$ .a": (2, "does not start a step"),
    "$.": (2, "a name follows the dot"),
    "$..a": (2, "not '.'"),
    "$.[0]": (2, "not '\\['"),
    "$.a.": (4, "a name follows"),
    "$[*]": (2, "one value"),
    "$.a[-1]": (4, "from the start"),
    "$[": (2, "digits or a name"),
    "$[]": (2, "digits or a name"),
    "$[a]": (2, "digits or a name"),
    "$[ 0 ]": (2, "digits or a name"),
    "$[0": (2, "digits or a name"),
    "$[+0]": (2, "digits or a name"),
    "$[1.0]": (2, "digits or a name"),
    "$[１]": (2, "digits or a name"),
    "$['a": (2, "not closed by '\\]"),
    "$['a'": (2, "not closed"),
    "$['a' ]": (2, "not closed"),
    "$['a''b']": (2, "not closed"),
    "$['b','a']": (2, "not closed"),
    "$[0]]": (5, "does not start a step"),
    "$['a']b": (7, "does not start a step"),
    "$.b[1]d": (7, "does not start a step"),
    "$[2147483648]": (2, "2,147,483,647"),
    "$[99999999999999999999]": (2, "2,147,483,647"),
}


@pytest.mark.spec("V-061")
@pytest.mark.parametrize(("text", "steps"), RIGHT.items())
def test_the_grammar(text, steps):
    assert parse_path(text) == steps
    assert parse_path(format_path(steps)) == steps


@pytest.mark.spec("V-061")
@pytest.mark.parametrize(("text", "found"), WRONG.items())
def test_wrong_paths_say_the_position(text, found):
    at, words = found
    with pytest.raises(ExpressionError, match=words) as caught:
        parse_path(text)
    assert f"(character {at})" in caught.value.message
    with pytest.raises(ExpressionError):
        Variant.from_python({}).get(text)


@given(st.lists(st.text(max_size=4) | st.text("'\".[]?*$", max_size=6) | st.integers(0, 2**31 - 1), max_size=4))
def test_printed_paths_mean_the_same_or_are_refused(steps):
    text = format_path(steps)
    if any(isinstance(s, str) and "'" in s and '"' in s and ("." in s or "[" in s) for s in steps):
        with pytest.raises(ExpressionError):
            parse_path(text)
    else:
        assert parse_path(text) == tuple(steps)


@pytest.mark.parametrize("steps", [(-1,), (True,), (1.0,), (None,), (2**31,)])
def test_sequences_hold_names_and_positions_only(steps):
    with pytest.raises(ExpressionError):
        as_path(steps)


def test_a_sequence_reaches_names_that_no_path_can_spell():
    name = "'\".["
    assert Variant.from_python({name: [7]}).get((name, 0), "int") == 7


DOCUMENT = {"a": 1, "A": 2, "a.b": 3, "": 4, "n": None, "l": [10, {"x": "y"}, []], "o": {"*": 5, "a": {"a": 6}}}


@pytest.mark.spec("V-061")
@pytest.mark.parametrize(
    ("path", "value"),
    [("$.a", 1), ("$.A", 2), ("$['a.b']", 3), ("$['']", 4), ("$.o.*", 5), ("$.o.a.a", 6), ("$.l[0]", 10)],
)
def test_what_paths_lead_to(path, value):
    v = Variant.from_python(DOCUMENT)
    assert v.get(path, "int") == value
    assert v.get(path) == Variant.from_python(value)


@pytest.mark.spec("V-062")
@pytest.mark.parametrize(
    "path",
    ["$.a.b", "$.a[0]", "$.n.x", "$.n[0]", "$.b", "$.l[3]", "$.l[2147483647]", "$.l.x", "$.l[2][0]", "$.o[0]", "$.o.A"],
)
def test_nothing_there_is_none(path):
    v = Variant.from_python(DOCUMENT)
    assert v.get(path) is None
    assert v.get(path, "int") is None and v.try_get(path, "int") is None


def test_a_variant_null_is_there():
    v = Variant.from_python(DOCUMENT)
    found = v.get("$.n")
    assert found is not None and found.type == "null"
    assert v.get("$.n", "string") is None
    assert v.get("$.n", "variant") == found


@pytest.mark.spec("V-054")
def test_a_path_beside_an_unknown_type_works():
    """{"a": type 21, "b": 7}: b is readable, a is refused by name."""
    v = Variant(b"\x11\x02\x00\x01\x02ab", bytes([2, 2, 0, 1, 0, 1, 3, 21 << 2, 12, 7]))
    assert v.get("$.b", "int") == 7
    with pytest.raises(UnsupportedFeatureError, match="21"):
        v.get("$.a", "int")
    with pytest.raises(UnsupportedFeatureError, match="21"):
        v.try_get("$.a", "string")
    with pytest.raises(UnsupportedFeatureError, match=r"21.*\$.*a"):
        v.cast("struct<a:int,b:int>")


def test_a_malformed_child_is_not_read_unless_asked_for():
    v = Variant(b"\x11\x02\x00\x01\x02ab", bytes([2, 2, 0, 1, 0, 1, 3, 0x5D, 12, 7]))
    assert v.get("$.b", "int") == 7
    with pytest.raises(MalformedVariant):
        v.get("$.a", "string")


def test_long_paths():
    depth = 1000
    v = Variant.from_json("[" * depth + "]" * depth)
    found = v.get((0,) * (depth - 1))
    assert found is not None and found.type == "array" and len(found) == 0
    assert v.get("$" + "[0]" * depth) is None
    assert len(parse_path("$" + "[0]" * 50_000)) == 50_000

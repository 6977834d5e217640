"""JSON in and out, one value at a time (checklist V-064, V-065)."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import BoathouseError, InvalidArgumentError, InvalidJsonError
from boathouse.variant import Variant, VariantBuilder
from makers import variants as made


@pytest.mark.spec("V-064")
@pytest.mark.parametrize(
    ("text", "type", "scalar"),
    [
        ("1.10", "decimal4", (110, 2)),
        ("1e3", "double", 1000.0),
        ("1E3", "double", 1000.0),
        ("1.5e-3", "double", 0.0015),
        ("12345678901234567890", "decimal16", (12345678901234567890, 0)),
        ("-0.0", "decimal4", (0, 1)),
        ("-0", "int8", 0),
        ("0", "int8", 0),
        ("128", "int16", 128),
        ("-9223372036854775808", "int64", -(2**63)),
        ("0.5", "decimal4", (5, 1)),
        ("9223372036854775808", "decimal16", (2**63, 0)),
        ("0.000000001", "decimal4", (1, 9)),
        ("-1.5", "decimal4", (-15, 1)),
        ("0.0000000001", "decimal8", (1, 10)),
        ("123456789.5", "decimal8", (1234567895, 1)),
        ("9" * 38, "decimal16", (10**38 - 1, 0)),
        ("-" + "9" * 38, "decimal16", (1 - 10**38, 0)),
        ("9" * 39, "double", 1e39),
        ("0." + "1" * 38, "decimal16", (int("1" * 38), 38)),
        ("0." + "1" * 39, "double", 0.1111111111111111),
        ("1." + "0" * 37, "decimal16", (10**37, 37)),
        ("1." + "0" * 38, "double", 1.0),
        ("0." + "0" * 38, "decimal16", (0, 38)),
        ("true", "boolean", True),
        ("null", "null", None),
        ('"x"', "string", "x"),
        ("-1e-400", "double", -0.0),
        ("1e308", "double", 1e308),
    ],
)
def test_types_of_numbers_and_words(text, type, scalar):
    for given_text in (text, f" \t\r\n{text}\n", text.encode()):
        value = Variant.from_json(given_text)
        assert (value.type, value.scalar) == (type, scalar)
        assert math.copysign(1, value.scalar or 0) == math.copysign(1, scalar or 0) if type == "double" else True
    assert made.tree_of(Variant.from_json(f"[{text}]")[0]) == made.tree_of(value)
    assert made.tree_of(Variant.from_json(f'{{"a": {text} }}')["a"]) == made.tree_of(value)


def test_numbers_agree_with_pyspark():
    sql = pytest.importorskip("pyspark.sql.types")
    for text in ("1.10", "1e3", "12345678901234567890", "0.0000000001", "-7", "300", "9" * 38, "123.456789012345678"):
        theirs = sql.VariantVal.parseJson(text)
        assert made.tree_of(Variant.from_json(text)) == made.tree_of(Variant(theirs.metadata, theirs.value)), text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"\u00e9\n\t\"\\\/\b\f\r"', 'é\n\t"\\/\b\f\r'),
        (r'"\ud83d\ude00"', "😀"),
        ('"😀～"', "😀～"),
        ('"\u007f\u2028"', "\u007f\u2028"),
        (r'"\u0000"', "\0"),
        ('""', ""),
        ('"' + "x" * 70_000 + '"', "x" * 70_000),
        (r'"a\u0041"', "aA"),
    ],
)
def test_strings(text, expected):
    assert Variant.from_json(text).scalar == expected
    assert Variant.from_json("{" + text + ": " + text + "}").to_python() == {expected: expected}
    assert Variant.from_json(text.encode()).scalar == expected


@pytest.mark.spec("V-064")
@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ('{"a":1,"a":2}', 12, "'a' twice"),
        (r'{"a":1,"\u0061":2}', 17, "'a' twice"),
        ('[{"é":{"x":1,"x":1}}]', 19, "'x' twice"),
        (r'"\ud800"', 0, "surrogate"),
        (r'{"\ud800":1}', 1, "surrogate"),
        (r'["é", "\udc00"]', 7, "surrogate"),
        (r'"\ud800\u0041"', 0, "surrogate"),
        ('"\ud800"', 0, "surrogate"),
        ('{"\ud800":1}', 1, "surrogate"),
        ("[1] x", 4, "text follows"),
        ("1 2", 2, "text follows"),
        ('{"a":1} x', 8, "text follows"),
        ("{}{}", 2, "text follows"),
        ("NaN", 0, "a value"),
        ("[Infinity]", 1, "a value"),
        ("-Infinity", 0, "a value"),
        ("nul", 0, "a value"),
        ("True", 0, "a value"),
        ("01", 1, "follows"),
        ("[01]", 2, "comma"),
        ("1.", 1, "follows"),
        (".5", 0, "a value"),
        ("+1", 0, "a value"),
        ("-", 0, "a value"),
        ("1e", 1, "follows"),
        ("0x10", 1, "follows"),
        ("1_000", 1, "follows"),
        ("٣", 0, "a value"),
        ("", 0, "ends"),
        ("   ", 3, "ends"),
        ("[", 1, "ends"),
        ("[1", 2, "ends"),
        ("[1,", 3, "ends"),
        ('{"a"', 4, "ends"),
        ('{"a":', 5, "ends"),
        ('{"a":1', 6, "ends"),
        ('{"a":1,', 7, "ends"),
        ("[1,]", 3, "a value"),
        ('{"a":1,}', 7, "double quotes"),
        ("{1:2}", 1, "double quotes"),
        ("{'a':1}", 1, "double quotes"),
        ('{"a" 1}', 5, "colon"),
        ("[1 2]", 3, "comma"),
        ("[1}", 2, "comma"),
        ('{"a":1]', 6, "comma"),
        ("]", 0, "a value"),
        ("[,1]", 1, "a value"),
        ("[}", 1, "comma"),
        ('"abc', 0, "unterminated"),
        ('"a\tb"', 2, "control"),
        ('"a\nb"', 2, "control"),
        (r'"\x41"', 1, "escape"),
        (r'"\u12"', 2, "escape"),
        (r'"\u+123"', 2, "escape"),
        ("\ufeff1", 0, "a value"),
        ("\xa01", 0, "a value"),
        ("1e999", 0, "range of double"),
        ("[-1e999]", 1, "range"),
        ("9" * 400, 0, "range"),
        ("/* c */ 1", 0, "a value"),
        (b'"\xff"', 1, "not UTF-8"),
        (b'["ok", "\xc3"]', 8, "not UTF-8"),
    ],
)
def test_what_is_refused_and_where(text, offset, message):
    with pytest.raises(InvalidJsonError, match=message) as caught:
        Variant.from_json(text)
    assert caught.value.offset == offset


@pytest.mark.spec("V-064")
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_from_json(opening, closing):
    value = Variant.from_json(opening * 999 + "[]" + closing * 999)
    assert value.to_json() == opening * 999 + "[]" + closing * 999
    for depth in (1_001, 5_000, 100_000):
        for text in (opening * depth + "[]" + closing * depth, opening * depth):
            with pytest.raises(InvalidJsonError, match="1,000 nested") as caught:
                Variant.from_json(text)
            assert caught.value.offset == 1_000 * len(opening)


@pytest.mark.parametrize("wrong", [5, None, ["1"], {"a": 1}])
def test_what_is_no_text_is_refused(wrong):
    with pytest.raises(InvalidArgumentError, match="str or bytes"):
        Variant.from_json(wrong)


def outcome(read, text):
    try:
        return read(text)
    except (ValueError, RecursionError):
        return None


JSON_TEXT = st.one_of(
    made.json_values().map(json.dumps),
    made.json_values().map(lambda x: json.dumps(x, ensure_ascii=False, indent=1)),
    st.text('[]{}:,"\\0123456789.eE+-truefalsnu \t\n', max_size=20),
    st.text(max_size=12),
)


@given(JSON_TEXT)
@settings(max_examples=300)
def test_any_text_is_read_or_refused_as_the_standard_library_does(text):
    def strict(text):
        def unique(pairs):
            if len({name for name, _ in pairs}) < len(pairs):
                raise ValueError
            return dict(pairs)

        def refuse(word):
            raise ValueError

        def number(text):
            found = float(text)
            if math.isinf(found):
                raise ValueError
            return Decimal(text) if not set(text) & set("eE") and len(text) <= 39 else found

        found = json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_float=number)
        json.dumps(found, ensure_ascii=False, default=str).encode()  # no unpaired surrogates
        return [found]

    expected = outcome(strict, text)
    actual = outcome(lambda text: [Variant.from_json(text).to_python()], text)
    assert actual == expected


@given(made.json_values())
@settings(max_examples=100)
def test_json_text_round_trips(obj):
    value = Variant.from_json(json.dumps(obj))
    text = value.to_json()
    assert value.validate() == ()
    back = json.loads(text)
    assert back == value_of(obj)
    assert Variant.from_json(text).to_json() == text
    assert list(map(str, find_names(back))) == sorted(find_names(back)) or isinstance(back, list)


def value_of(obj):
    """What is left of a JSON value once integers beyond 38 digits are doubles, and -0.0 without exponent is 0."""
    if isinstance(obj, dict):
        return {name: value_of(child) for name, child in obj.items()}
    if isinstance(obj, list):
        return [value_of(child) for child in obj]
    return float(obj) if isinstance(obj, int) and not isinstance(obj, bool) and abs(obj) >= 10**38 else obj


def find_names(obj):
    return list(obj) if isinstance(obj, dict) else []


@pytest.mark.spec("V-065")
@given(made.variants())
@settings(max_examples=150)
def test_what_is_written_is_canonical_json(value):
    text = value.to_json(special="string")
    again = json.loads(text)
    assert text == text.strip()
    assert json.loads(json.dumps(again)) == again
    assert VariantBuilder().append_variant(value).finish().to_json(special="string") == text
    back = Variant.from_json(text)
    assert back.to_json() == text or "-0.0" in text
    skeleton = json.dumps(again, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    assert skeleton.count("{") == text.count("{")


@pytest.mark.spec("V-065")
def test_each_type_has_its_one_form():
    builder = VariantBuilder().begin_object()
    forms = {
        "null": ("null", ()), "boolean": ("true", (True,)), "int8": ("-5", (-5,)), "int16": ("300", (300,)),
        "int32": ("70000", (70_000,)), "int64": ("1099511627776", (1 << 40,)), "float": ("0.1", (0.1,)),
        "double": ("0.1", (0.1,)), "decimal4": ("1.10", (110, 2)), "decimal8": ("-0.05", (-5, 2)),
        "decimal16": ("0.00000000000000000000000000000000000001", (1, 38)), "date": ('"2025-04-16"', (20_194,)),
        "timestamp": ('"2025-04-16T16:34:56.780000Z"', (1_744_821_296_780_000,)),
        "timestamp_ntz": ('"2025-04-16T16:34:56.780000"', (1_744_821_296_780_000,)),
        "timestamp_nanos": ('"2024-11-07T12:33:54.123456789Z"', (1_730_982_834_123_456_789,)),
        "timestamp_ntz_nanos": ('"2024-11-07T12:33:54.123456789"', (1_730_982_834_123_456_789,)),
        "time": ('"12:33:54.123456"', (45_234_123_456,)), "binary": ('"AP8="', (b"\0\xff",)),
        "string": ('"\\"\\\\\\n\\u0001\x7fé😀/"', ('"\\\n\x01\x7fé😀/',)),
        "uuid": ('"00010203-0405-0607-0809-0a0b0c0d0e0f"', (bytes(range(16)),)),
    }  # fmt: skip
    for type, (_, arguments) in forms.items():
        getattr(builder.key(type), f"append_{type}")(*arguments)
    value = builder.end().finish()
    assert set(forms) == {child.type for child in value.values()}
    assert value.to_json() == "{" + ",".join(f'"{type}":{forms[type][0]}' for type in sorted(forms)) + "}"
    assert {type: value[type].to_json() for type in forms} == {type: text for type, (text, _) in forms.items()}


@pytest.mark.parametrize(
    ("number", "text"),
    [(1000.0, "1000.0"), (1e16, "1e+16"), (1e15, "1000000000000000.0"), (1e-5, "1e-05"), (-0.0, "-0.0"), (1.5, "1.5")],
)
def test_texts_of_floats(number, text):
    assert Variant.from_python(number).to_json() == text
    assert Variant.from_python(np.float32(number)).to_json() in (text, "1e+15", "1000000000000000.0")


def test_float32_has_its_own_shortest_digits():
    assert Variant.from_python(np.float32(1.1)).to_json() == "1.1"
    assert Variant.from_python(np.float32(1_234_567_936)).to_json() == "1234568000.0"
    assert Variant.from_python(np.float32(1e-5)).to_json() == "1e-05"


def test_repr_never_raises_for_bad_bytes():
    assert repr(Variant.from_python({"a": math.nan})) == '<Variant object {"a":"NaN"}>'
    assert "beyond the end" in repr(Variant(b"\x11\0\0", b"\x0c"))
    assert "type 30" in repr(Variant(b"\x11\0\0", b"\x78"))
    assert len(repr(Variant.from_python(["x" * 1_000]))) < 130


def test_errors_are_of_the_house():
    with pytest.raises(BoathouseError) as caught:
        Variant.from_json("[1,")
    assert caught.value.code == "INVALID_JSON"

"""Columns of JSON text: row by row what `Variant.from_json` gives, whatever the text."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import InvalidArgumentError, InvalidJsonError
from boathouse.variant import Variant
from boathouse.variant.columns import json_batches as module
from boathouse.variant.columns import metadata_builder
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.from_json import from_json
from makers.variants import tree_of

# By what they are about, as in well-known collections of texts that parsers get wrong.
ACCEPTED = {
    "numbers": [
        "0", "-0", "0.0", "-0.0", "1", "-1", "127", "128", "-128", "-129", "32767", "32768", "-32769", "2147483647",
        "2147483648", "-2147483649", "99999999", "100000000", "999999999999999999", "9223372036854775807",
        "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "12345678901234567890", "9" * 38,
        "9" * 39, "1.10", "1.5", "-1.50", "0.1", "0.000000001", "0.0000000001", "999999999.9", "99999999.9",
        "123456789.123456789", "1234567890.123456789", "0.00012345678901234567", "0.8444218515250481",
        "0.123456789012345678", "0.1234567890123456789", "0." + "0" * 35 + "1", "0." + "0" * 37 + "1",
        "0." + "0" * 38 + "1", "1." + "0" * 37, "1." + "0" * 38, "9999999999999999.25", "99999999999999999.25", "1e3",
        "1E3", "1e+3", "1e-3", "-1.5e10", "0e0", "-0e1", "1e308", "1.7976931348623157e308", "5e-324", "2e-400",
        "1e-320",
        "1e0000000000000000000000000000000003", "123456789012345678e5", "0.1e1", "2.2250738585072011e-308", "1e23",
        "9007199254740993e0",
    ],
    "literals": ["null", "true", "false"],
    "strings": [
        '""', '"a"', '"' + "x" * 62 + '"', '"' + "x" * 63 + '"', '"' + "x" * 64 + '"', '"' + "x" * 70_000 + '"',
        '"\\"\\\\\\/\\b\\f\\n\\r\\t"', '"\\\\"', '"\\\\\\""', '"\\u0041\\u00e9\\u20ac\\ud83d\\ude00"', '"\\u0000"',
        '"\\uD83D\\uDE00\\uD83D\\uDE00"', '"\\u0041' + "y" * 62 + '"', '"\\u0041' + "y" * 63 + '"', '"é😀～"', '"\x7f"',
        '"{[,:]}"', '"\\u005c\\u0022"', '"a\\nb' + "é" * 40 + '"', '"//"', '"\\u2028"', '"\u2028"', '"\ufeff"',
    ],
    "structure": [
        "[]", "{}", "[[]]", "[{}]", '{"a":{}}', '{"a":[]}', "[[],[],{}]", '{"":0}', '{"a":1,"b":2}', '{"b":1,"a":2}',
        '{"é":1,"～":2,"😀":3}', '{"a\\u0062":1,"\\"":2,"\\\\":3}', '{"a":{"a":{"a":null}}}', '{"A":1,"a":2}',
        '{"a":[{"b":1},{"b":2,"c":[]}],"b":[[1,2],[3]]}', '{"a.b":1,"a":{"b":2}}',
        '{"z":{"y":1,"x":2},"a":[3,{"q":4}]}',
        "[" * 1000 + "]" * 1000, '{"a":' * 1000 + "1" + "}" * 1000, '{"a:b":"c:d","e,f":"{","g":"]"}',
    ],
    "white space": [
        " 1 ", "\t\r\n1\n", "[ ]", "{ }", ' { "a" : 1 , "b" : [ 1 , 2 ] } ', '[1\n,\n"a b"\r,\ttrue ]', ' " " ',
        '{"a" :1}',
        '{"a": "b: c", "d" : null}', "[ 1.5 , -2e1 ]",
    ],
}  # fmt: skip
REFUSED = {
    "numbers": [
        "-", "+1", "01", "-01", "1.", ".5", "1.e3", "1e", "1e+", "0x10", "1_000", "NaN", "Infinity", "-Infinity",
        "1.2.3",
        "1-2", "1e5e5", "--1", "1e400", "-1e400", "9" * 400 + "e0", "0123456789012345678", "- 1", "1 2", "1. 5", "1,2",
        "٣", "1\x00", "00", "-00.5", "1.5.", "1e1.5", "12345678a", "1234567890123456x", "0.1234567890123456789x",
    ],
    "literals": ["nul", "nulll", "True", "tru e", "t", "undefined", "nullnull", "falsy", "fals", "falsee"],
    "strings": [
        '"', '"a', 'a"', '"a""b"', '"\\"', '"\\x41"', '"\\u"', '"\\u12"', '"\\u123g"', '"\\u12 3"', '"\t"', '"\n"',
        '"\x00"',
        '"\x1f"', "'a'", '"\\ud800"', '"\\udc00"', '"\\ude00\\ud83d"', '"\\ud83d\\ud83d\\ude00"', '"\\ud83dx\\ude00"',
        '"\\ud83d', '"a"1', '1"a"', '"a" "b"', '\\"a"', '\\"a"b"', '"\\u-123"', '"\\u+123"', '"\\ud83d\\u0041"',
        '"\\U0041"',
        '"\\\n"', '"\\',
    ],
    "structure": [
        "", " ", "[", "]", "{", "}", "[}", "{]", "[1", "1]", "[1,]", "[,1]", "[,]", "[1,,2]", "{,}", '{"a"}', '{"a":}',
        '{"a":1,}', '{"a":1 "b":2}', '{:1}', "{1:2}", '{"a" "b"}', '{"a":1:2}', '["a":1]', '{"a":"b" "c"}', "[1]x",
        "[1] 2",
        '{"a":1} x', ":", ",", '"a":1', "{}{}", "[][]", '{"a":1}}', "[[1]", '{"a":[}', '{"a":[1}', '{"a":{"b":1]}',
        "{[1]:2}", '{"a",1}', "]1[", "}{", '{"a":1,2}', "{true:1}", "[1]]", '{"a":1,"b"}', "[" * 1001 + "]" * 1001,
        "[" * 5000, '{"a":' * 1001 + "1" + "}" * 1001, "// c\n1", "1 /* c */", "\ufeff1", "\x0b1", "\xa01", "1;", "[1)",
    ],
    "names twice": [
        '{"a":1,"a":1}', '{"a":1,"b":{"c":1,"d":2,"c":3}}', '{"a":1,"\\u0061":2}', '[{"x":1},{"x":1,"x":2}]',
        '{"":1,"":2}', '{"\\n":1,"\\u000a":2}',
    ],
    "names": ['{"\\ud800":1}', '{"\\x":1}', '{"a\nb":1}', '{"\\u00":1}', '{"\\udc00\\ud800":1}'],
}  # fmt: skip


def one(text: str | bytes) -> dict[str, bytes] | str:
    try:
        variant = Variant.from_json(text)
    except InvalidJsonError as problem:
        return f"byte {problem.offset}: {problem.message}"
    return {"metadata": variant.metadata, "value": variant.value}


def assert_as_one_by_one(texts: list[Any], type: pa.DataType = pa.string()) -> None:
    expected = [None if text is None else one(text) for text in texts]
    lenient = Lenient()
    column = from_json(pa.array(texts, type), lenient=lenient)
    column.validate(full=True)
    assert column.to_pylist() == [None if isinstance(found, str) else found for found in expected]
    wrong = [row for row, found in enumerate(expected) if isinstance(found, str)]
    assert (lenient.count, lenient.rows) == (len(wrong), wrong[:100])
    if wrong:
        with pytest.raises(InvalidJsonError) as problem:
            from_json(pa.array(texts, type))
        assert problem.value.row == wrong[0]
        assert f"byte {problem.value.offset}: {problem.value.message}" == expected[wrong[0]]


@pytest.mark.parametrize("about", ACCEPTED)
def test_accepts(about: str) -> None:
    assert not [text for text in ACCEPTED[about] if isinstance(one(text), str)]
    assert_as_one_by_one(ACCEPTED[about])
    assert_as_one_by_one([f'{{"a":[{text},{text}],"b": {text}}}' for text in ACCEPTED[about] if len(text) < 500])


@pytest.mark.parametrize("about", REFUSED)
def test_refuses(about: str) -> None:
    assert not [text for text in REFUSED[about] if not isinstance(one(text), str)]
    assert_as_one_by_one(REFUSED[about])
    for text in REFUSED[about]:
        assert_as_one_by_one(['{"a":"b"}', text, "1"])
        assert_as_one_by_one([f'{{"a":[{text}],"b":1}}', f"[1 ,{text}]", '"x"'])


def test_what_is_common_is_not_left_to_the_one_value_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of ordinary data, unusual numbers aside, are taken by the scanners of whole columns."""

    def refuse(text: bytes) -> NoReturn:
        raise AssertionError(text)

    texts = [
        text
        for about in ("literals", "strings", "structure", "white space")
        for text in ACCEPTED[about]
        if text.count("[") < 1000 and text.count("{") < 1000
    ]
    expected = [one(text) for text in texts]
    monkeypatch.setattr(module, "encode_json", refuse)
    assert from_json(pa.array(texts)).to_pylist() == expected


@pytest.mark.spec("V-064")
def test_rules_of_json_in() -> None:
    """1.10, 1e3, a long integer and -0.0 as documented; what is malformed is refused with its row and byte."""
    column = from_json(pa.array(["1.10", "1e3", "12345678901234567890", "-0.0"]))
    found = [Variant(row["metadata"], row["value"]) for row in column.to_pylist()]
    assert [(value.type, value.scalar) for value in found] == [
        ("decimal4", (110, 2)),
        ("double", 1000.0),
        ("decimal16", (12345678901234567890, 0)),
        ("decimal4", (0, 1)),
    ]
    refused = {
        '{"a":1,"a":2}': 12,
        '["x","\\ud800"]': 5,
        '{"a":1} x': 8,
        "[" * 5000: 1000,
        '{"a": [1, 2}': 11,
    }
    for text, offset in refused.items():
        with pytest.raises(InvalidJsonError) as problem:
            from_json(pa.array(["1", text, "2"]))
        assert problem.value.row == 1
        assert problem.value.offset == offset


SPACE = st.sampled_from(["", "", "", " ", "\n", "\t ", " \r\n"])
SCALARS = st.one_of(
    st.sampled_from(ACCEPTED["numbers"] + ACCEPTED["literals"] + ACCEPTED["strings"][:8]),
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str).map(lambda t: t.replace("E+", "e").replace("E", "e")),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text(max_size=20).map(json.dumps),
    st.text(max_size=70).map(lambda text: json.dumps(text, ensure_ascii=False)),
)
NAMES = st.one_of(
    st.sampled_from(['"a"', '"b"', '"c"', '"A"', '""', '"a\\u0062"', '"ab"', '"é"', '"～"', '"😀"']),
    st.text(max_size=3).map(json.dumps),
)


def containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    value = st.tuples(SPACE, inner, SPACE).map("".join)
    field = st.tuples(SPACE, NAMES, SPACE, st.just(":"), value).map("".join)
    return st.one_of(
        st.lists(value, max_size=4).map(lambda parts: f"[{','.join(parts)}]"),
        st.lists(field, max_size=5).map(lambda parts: f"{{{','.join(parts)}}}"),
    )


TEXTS = st.tuples(SPACE, st.recursive(SCALARS, containers, max_leaves=15), SPACE).map("".join)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A text with a few bytes cut, put in or replaced."""
    text = bytearray(draw(TEXTS).encode(errors="replace"))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        width = draw(st.integers(0, 2))
        piece = draw(
            st.one_of(
                st.sampled_from([*b'{}[],:"\\ 0-.etnu\n\x00\xff']).map(lambda b: bytes([b])), st.binary(max_size=2)
            )
        )
        text[at : at + width] = piece
    return bytes(text)


@settings(max_examples=60)
@given(st.lists(TEXTS, max_size=8))
def test_any_text_as_one_by_one(texts: list[str]) -> None:
    assert_as_one_by_one(texts)


@settings(max_examples=80)
@given(st.lists(st.one_of(mutated(), TEXTS.map(lambda t: t.encode(errors="replace"))), min_size=1, max_size=6))
def test_mutated_texts_as_one_by_one(texts: list[bytes]) -> None:
    assert_as_one_by_one(texts, pa.binary())


@settings(max_examples=40)
@given(st.lists(st.text('{}[]:,"\\01.e-tn u', max_size=12), min_size=1, max_size=20))
def test_any_punctuation_as_one_by_one(texts: list[str]) -> None:
    assert_as_one_by_one(texts)


MIXED = ['{"a":1}', None, "[1, 2]", '{"b":"x","a":[]}', None, '"é"', "wrong", "{}", '{"a":1}']
EXPECTED = [None if text in (None, "wrong") else one(text) for text in MIXED]


@pytest.mark.parametrize(
    "type",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.dictionary(pa.int32(), pa.large_binary()),
    ],
    ids=str,
)
def test_layouts(type: pa.DataType) -> None:
    plain = pa.array(MIXED)
    array = plain.dictionary_encode().cast(type) if pa.types.is_dictionary(type) else plain.cast(type)
    assert from_json(array, lenient=Lenient()).to_pylist() == EXPECTED
    assert from_json(array.slice(2, 5), lenient=Lenient()).to_pylist() == EXPECTED[2:7]
    chunked = pa.chunked_array([array.slice(0, 4), array.slice(4, 0), array.slice(4)])
    lenient = Lenient()
    found = from_json(chunked, lenient=lenient)
    assert isinstance(found, pa.ChunkedArray)
    assert found.to_pylist() == EXPECTED
    assert (lenient.count, lenient.rows) == (1, [6])
    with pytest.raises(InvalidJsonError) as problem:
        from_json(chunked)
    assert problem.value.row == 6


def test_null_rows_may_hold_any_bytes() -> None:
    offsets = pa.py_buffer(np.array([0, 3, 6, 9], np.int32))
    array = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), offsets, pa.py_buffer(b'[1]"{[[2]')])
    assert from_json(array).to_pylist() == [one("[1]"), None, one("[2]")]


def test_columns_of_other_libraries() -> None:
    polars = pytest.importorskip("polars")
    assert from_json(polars.Series(MIXED[:6])).to_pylist() == EXPECTED[:6]


def test_types_without_text() -> None:
    assert from_json(pa.nulls(2)).to_pylist() == [None, None]
    assert from_json(pa.array([], pa.string())).to_pylist() == []
    assert from_json(pa.chunked_array([], pa.string())).to_pylist() == []
    for other in (pa.array([1]), ["{}"], "{}"):
        with pytest.raises(InvalidArgumentError):
            from_json(other)


def test_broken_utf8_in_strings_that_say_otherwise() -> None:
    offsets = pa.py_buffer(np.array([0, 3, 6], np.int32))
    array = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b'"\xff"[1]')])
    lenient = Lenient()
    assert from_json(array, lenient=lenient).to_pylist() == [None, one("[1]")]
    assert lenient.rows == [0]


@pytest.mark.parametrize("step", [1, 64, 1000])
@pytest.mark.parametrize("many", [0.25, 2])
def test_steps_of_any_size(monkeypatch: pytest.MonkeyPatch, step: int, many: float) -> None:
    monkeypatch.setattr(module, "_STEP", step)
    monkeypatch.setattr(module, "_MANY", many)
    texts = [text for about in ACCEPTED for text in ACCEPTED[about]]
    texts.insert(40, REFUSED["structure"][9])
    assert_as_one_by_one(texts)


def test_wide_counts_ids_offsets_and_dictionaries() -> None:
    """Counts, ids, offsets and dictionary sizes on both sides of one and two bytes."""
    texts = []
    for count in (255, 256, 257, 66_000):
        texts.append(json.dumps({f"k{i}": i for i in range(count)}))
        texts.append(json.dumps(list(range(count))))
    texts.append(json.dumps({f"k{i}": {"a": {"b": "x" * i}} for i in range(240, 300)}))
    texts.append(json.dumps([["x" * 200], ["y" * 251], ["y" * 252], ["z" * 65_530], ["z" * 65_540], ["w" * (1 << 24)]]))
    texts.append(json.dumps({"a": [{"q": 1}] * 300, **{f"n{i:03}" * 60: None for i in range(260)}}))
    assert_as_one_by_one(texts)


def test_rows_with_the_same_names_share_their_metadata() -> None:
    texts = ['{"a":1,"b":{"c":2}}', '{"b":[{"c":null}],"a":"x"}', '{"c":1,"b":2,"a":3}', "[1]"]
    metadata = from_json(pa.array(texts)).field("metadata").to_pylist()
    assert len(set(metadata)) == 2
    assert len(set(metadata[:3])) == 1


# Spark's parser stops after the first value of a text, and takes numbers beyond the range of double for infinity.
SPARK_STOPS_EARLY = [
    "1 2", '"a""b"', '"a"1', '"a" "b"', "[1]x", "[1] 2", '{"a":1} x', '"a":1', "{}{}", "[][]", '{"a":1}}', "[1]]",
    "1 /* c */",
]  # fmt: skip
SPARK_SAYS_INFINITY = ["1e400", "-1e400", "9" * 400 + "e0"]


def by_spark(spark: Any, texts: list[str]) -> list[Variant | None]:
    frame = spark.createDataFrame(list(enumerate(texts)), "i int, x string").selectExpr("i", "try_parse_json(x) as v")
    found = dict(frame.collect())
    made = [found[i] for i in range(len(texts))]
    return [None if v is None else Variant(bytes(v.metadata), bytes(v.value)) for v in made]


@pytest.mark.spark
def test_as_parse_json_of_spark_but_for_listed_divergences(spark: Any) -> None:
    """Types and values of every accepted text; what Spark takes beyond that is listed, no less and no more."""
    texts = [text for group in (ACCEPTED, REFUSED) for about in group for text in group[about]]
    deep = [text for text in texts if max(text.count("["), text.count("{")) >= 1000]
    texts = [text for text in texts if text not in deep]
    ours = from_json(pa.array(texts + deep), lenient=Lenient()).to_pylist()
    theirs = by_spark(spark, texts + deep)
    different = []
    for text, mine, their in zip(texts, ours, theirs):
        if (None if mine is None else tree_of(Variant(**mine))) != (None if their is None else tree_of(their)):
            different.append(text)
            assert mine is None
            if text in SPARK_SAYS_INFINITY:
                assert their is not None and their.to_python() in (float("inf"), float("-inf"))
    assert sorted(different) == sorted(SPARK_STOPS_EARLY + SPARK_SAYS_INFINITY)
    assert [their is None for their in theirs[len(texts) :]] == [mine is None for mine in ours[len(texts) :]]


@pytest.mark.spark
@settings(max_examples=3)
@given(texts=st.lists(TEXTS, min_size=40, max_size=60))
def test_any_text_as_parse_json_of_spark(spark: Any, texts: list[str]) -> None:
    ours = from_json(pa.array(texts), lenient=Lenient()).to_pylist()
    for text, mine, their in zip(texts, ours, by_spark(spark, texts)):
        if mine is None:
            assert their is None or "range of double" in str(one(text))  # for Spark that is infinity
        else:
            assert their is not None and tree_of(Variant(**mine)) == tree_of(their)


def test_chunks_of_different_widths_become_one_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chunk of more than 2 GiB (here: 20 bytes) has 64-bit offsets, and so have all then."""
    monkeypatch.setattr(metadata_builder, "_INT32_MAX", 20)
    texts = ["1", json.dumps("x" * 30), None]
    column = from_json(pa.chunked_array([texts[:1], texts[1:]]))
    assert column.to_pylist() == [one(text) if text else None for text in texts]


def test_one_bad_row_among_many() -> None:
    """Strict: the row and the byte; lenient: null and a count."""
    texts = [f'{{"id":{i},"tags":["a","b"]}}' for i in range(60_000)]
    texts[41_234] = '{"id":1,"tags":["a"}'
    with pytest.raises(InvalidJsonError) as problem:
        from_json(pa.array(texts))
    assert (problem.value.row, problem.value.offset) == (41_234, 19)
    lenient = Lenient()
    column = from_json(pa.array(texts), lenient=lenient)
    assert (lenient.count, lenient.rows, column.null_count) == (1, [41_234], 1)
    assert column[41_234].as_py() is None
    for row in (0, 41_233, 41_235, 59_999):
        assert column[row].as_py() == one(texts[row])

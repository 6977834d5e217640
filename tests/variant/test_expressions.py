"""The functions on variants in expressions: against the one-value path, on every layout, and refused comparisons."""

from __future__ import annotations

import itertools
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.arrow.schema import MARK, VARIANT_STORAGE, from_arrow
from boathouse.compute.evaluate import evaluate, fold_constants, mask
from boathouse.errors import BoathouseError, EvaluationError, ExpressionError, InvalidJsonError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind, bind_predicate
from boathouse.types import BOOLEAN, DOUBLE, INT32, STRING, VARIANT, Field, Schema
from boathouse.variant import Variant
from boathouse.variant.cast import cast_exact
from makers import variants as gen

FIELD = pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})
SCHEMA = Schema((Field("v", VARIANT), Field("t", STRING), Field("i", INT32)))
VALUES = [
    {"a": 1, "b": {"c": "x"}},
    {"a": "12"},
    {"a": None},
    [1, {"a": 2}],
    None,
    ...,
    7,
    {"a": 2.5},
    {"a": Decimal("1.10")},
]
TEXTS = ['{"a": 1}', "[1, 1.10]", "null", None, '"x"', "{}", "12345678901234567890", "true", "[]"]


def batch(values: list[Any] = VALUES) -> pa.RecordBatch:
    rows = [None if v is ... else v if isinstance(v, Variant) else Variant.from_python(v) for v in values]
    v = pa.array([r and {"metadata": r.metadata, "value": r.value} for r in rows], VARIANT_STORAGE)
    n = len(values)
    texts = list(itertools.islice(itertools.cycle(TEXTS), n))
    return pa.RecordBatch.from_arrays(
        [v, pa.array(texts, pa.string()), pa.array(range(n), pa.int32())],
        schema=pa.schema([FIELD, pa.field("t", pa.string()), pa.field("i", pa.int32())]),
    )


def run(text: str, rows: pa.RecordBatch | None = None) -> list[Any]:
    rows = batch() if rows is None else rows
    return evaluate(bind(parse(text), from_arrow(rows.schema)), rows).to_pylist()


def python(rows: list[Any]) -> list[Any]:
    return [... if r is None else Variant(r["metadata"], r["value"]).to_python() for r in rows]


def test_variant_get() -> None:
    assert run("try_variant_get(v, '$.a', 'int')") == [1, 12, None, None, None, None, None, 2, 1]
    assert run("variant_get(v, '$[1].a', 'bigint')") == [None, None, None, 2, None, None, None, None, None]
    assert run("variant_get(v, '$.b.c', 'string')") == ["x", *[None] * 8]
    assert run("variant_get(v, '$.a', 'string')") == ["1", "12", None, None, None, None, None, "2.5", "1.1"]
    assert python(run("variant_get(v, '$.a')")) == [1, "12", None, ..., ..., ..., ..., 2.5, Decimal("1.10")]
    assert python(run("variant_get(v, '$.b', 'variant')"))[0] == {"c": "x"}
    assert run("CAST(v AS STRING)")[6] == "7"
    assert run("TRY_CAST(v AS INT)") == [None] * 6 + [7, None, None]
    assert run("variant_get(variant_get(v, '$.b'), '$.c', 'string')")[0] == "x"


def test_what_cannot_be_cast_is_an_error_only_where_it_is_asked_for() -> None:
    with pytest.raises(EvaluationError):
        run("variant_get(v, '$', 'int')")
    guarded = "i = 6 AND variant_get(v, '$', 'int') = 7"
    assert run(guarded) == [False] * 6 + [True, False, False]
    assert run("CASE WHEN i = 6 THEN variant_get(v, '$', 'int') END")[6] == 7
    assert run("try_variant_get(v, '$', 'int')")[6] == 7
    with pytest.raises(ExpressionError, match="path"):
        run("variant_get(v, 'a', 'int')")


def test_nulls_of_three_kinds() -> None:
    assert run("is_variant_null(v)") == [False, False, False, False, True, False, False, False, False]
    assert run("v IS NULL") == [False] * 5 + [True] + [False] * 3
    assert run("is_variant_null(variant_get(v, '$.a'))") == [False, False, True, *[False] * 6]
    assert run("variant_get(v, '$.a') IS NULL") == [False, False, False, True, True, True, True, False, False]


def test_json_in_and_out() -> None:
    assert run("to_json(parse_json(t))") == [
        '{"a":1}', "[1,1.10]", "null", None, '"x"', "{}", "12345678901234567890", "true", "[]",
    ]  # fmt: skip
    broken = batch().set_column(1, "t", pa.array(["{", "1", None, "x", "[1", "{}", "1 1", "", '{"a":1,"a":2}']))
    with pytest.raises(InvalidJsonError):
        run("parse_json(t)", broken)
    assert python(run("try_parse_json(t)", broken)) == [..., 1, ..., ..., ..., {}, ..., ..., ...]
    assert run("to_json(v)") == [None if v is ... else Variant.from_python(v).to_json() for v in VALUES]


def test_schema_of_variant() -> None:
    got = run("schema_of_variant(v)")
    assert got[0] == "OBJECT<a: BIGINT, b: OBJECT<c: STRING>>"
    assert got[4:7] == ["VOID", None, "BIGINT"]


def test_constants() -> None:
    e = bind(parse("variant_get(parse_json('{\"a\": 5}'), '$.a', 'int') = i"), SCHEMA)
    assert mask(e, batch()).to_pylist() == [i == 5 for i in range(9)]
    assert "5" in str(fold_constants(e))
    assert run("variant_get(NULL, '$.a', 'int')") == [None] * 9
    assert python(run("coalesce(v, parse_json('[]'))"))[5] == []
    assert python(run("CASE WHEN i > 6 THEN v END")) == [
        ...,
        ...,
        ...,
        ...,
        ...,
        ...,
        ...,
        {"a": 2.5},
        {"a": Decimal("1.10")},
    ]


@pytest.mark.spec("V-060")
@pytest.mark.parametrize(
    "text",
    [
        "v = v", "v < 3", "v = 'x'", "v <=> v", "v IN (1, 2)", "v BETWEEN 1 AND 2", "greatest(v, v) IS NULL",
        "least(v, 1) = 1", "nullif(v, v) IS NULL", "CASE v WHEN 1 THEN true END", "v + 1 = 2", "upper(v) = 'X'",
        "variant_get(v, '$.a') = 1", "v != parse_json('1')", "abs(v) = 1",
    ],
)  # fmt: skip
def test_variants_are_neither_compared_nor_ordered(text: str) -> None:
    with pytest.raises(ExpressionError) as error:
        bind(parse(text), SCHEMA)
    assert "variant_get(v, '$.a.b', 'int')" in str(error.value), str(error.value)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("variant_get(i, '$') IS NULL", "parse_json"),
        ("variant_get(v, t) IS NULL", "path must be a constant"),
        ("variant_get(v, '$', t) IS NULL", "type must be a constant"),
        ("variant_get(v, '$.a', 'nope') = 1", "no type 'nope'"),
        ("variant_get(v) IS NULL", "takes 2 to 3 arguments"),
        ("to_json(i) = '1'", "variant is needed"),
    ],
)
def test_wrong_arguments(text: str, match: str) -> None:
    with pytest.raises(ExpressionError, match=match):
        bind(parse(text), SCHEMA)


def test_types_of_results() -> None:
    for text, type in [
        ("variant_get(v, '$')", VARIANT), ("variant_get(v, '$', 'double')", DOUBLE), ("parse_json(t)", VARIANT),
        ("is_variant_null(v)", BOOLEAN), ("to_json(v)", STRING), ("schema_of_variant(v)", STRING),
        ("CAST(v AS DOUBLE)", DOUBLE),
    ]:  # fmt: skip
        e = bind(parse(text), SCHEMA)
        assert e.type == type
        assert bind(parse(str(e)), SCHEMA) == e


PATHS = ["$", "$.a", "$.b", "$.a.b", "$[0]", "$.a[1]", "$['it''s']", "$[0].a", "$.é"]
TYPES = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)", "decimal(38,10)",
         "string", "binary", "date", "timestamp", "timestamp_ntz"]  # fmt: skip


def same(a: Any, b: Any) -> bool:
    return a == b or (a != a and b != b)


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.none(), gen.variants(8)), min_size=1, max_size=5),
    st.sampled_from(PATHS[:6]),
    st.sampled_from(TYPES),
)
def test_try_variant_get_is_the_one_value_path(rows: list[Variant | None], path: str, type: str) -> None:
    values = [... if v is None else v for v in rows]
    e = bind(parse(f"try_variant_get(v, \"{path}\", '{type}')"), SCHEMA)
    got = evaluate(e, batch(values))
    want = []
    for v in rows:
        found = None if v is None else v.get(path)
        want.append(None if found is None else cast_exact(found, type, safe=True))
    have = got.to_pylist() if not pa.types.is_temporal(got.type) else _plain(got)
    assert all(same(a, b) for a, b in zip(have, want)), (have, want)


def _plain(array: pa.Array) -> list[Any]:
    return array.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64()).to_pylist()


@settings(max_examples=40)
@given(
    st.lists(st.one_of(st.none(), gen.variants(8)), min_size=1, max_size=4),
    st.sampled_from(PATHS[:6]),
    st.sampled_from(TYPES),
)
def test_variant_get_fails_where_a_value_fails(rows: list[Variant | None], path: str, type: str) -> None:
    e = bind(parse(f"variant_get(v, \"{path}\", '{type}')"), SCHEMA)

    def fails(v: Variant | None) -> bool:
        try:
            if v is not None and (found := v.get(path)) is not None:
                cast_exact(found, type)
            return False
        except BoathouseError:
            return True

    try:
        evaluate(e, batch([... if v is None else v for v in rows]))
        assert not any(map(fails, rows))
    except EvaluationError:
        assert any(map(fails, rows))


def test_conditions_are_boolean() -> None:
    with pytest.raises(ExpressionError, match="a condition must be boolean"):
        bind_predicate(parse("variant_get(v, '$.a')"), SCHEMA)

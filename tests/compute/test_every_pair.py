"""Conditions over every type beside itself and its kin, against Python: unsigned, half floats, void among them."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import operator
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.arrow.schema import from_arrow
from boathouse.compute.evaluate import evaluate, mask
from boathouse.compute.prune import Pruner
from boathouse.errors import BoathouseError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate

OPS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EDGES = [0, 1, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**16, 2**31, 2**32 - 1, 2**32, 2**53 + 1]
EDGES += [2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
LITERALS = st.sampled_from([*EDGES, 2**64, 2**65, -1, -(2**63), -(2**63) - 1, -(2**64)])
WHOLE = {f"{'' if signed else 'u'}int{bits}": (bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)}
UNSIGNED = [name for name in WHOLE if name.startswith("u")]


def span(name: str) -> tuple[int, int]:
    bits, signed = WHOLE[name]
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)


def numbers(name: str):
    low, high = span(name)
    return st.none() | st.sampled_from([e for e in EDGES if e <= high] + [low, high])


def asked(expression: str, **columns: pa.Array):
    return evaluate(parse(expression), pa.record_batch(columns)).to_pylist()


def compared(op, a, b):
    return None if a is None or b is None else OPS[op](a, b)


@settings(max_examples=300)
@given(st.data(), st.sampled_from(UNSIGNED), st.sampled_from(sorted(OPS)), LITERALS, LITERALS, st.booleans())
def test_unsigned_beside_literals(data, name, op, first, second, flip):
    rows = data.draw(st.lists(numbers(name), min_size=1, max_size=6))
    column = pa.array(rows, getattr(pa, name)())
    text = f"{first} {op} u" if flip else f"u {op} {first}"
    want = [compared(op, *((first, v) if flip else (v, first))) for v in rows]
    assert asked(text, u=column) == want
    assert asked(f"NOT ({text})", u=column) == [None if w is None else not w for w in want]
    between = [None if v is None else first <= v <= second for v in rows]
    assert asked(f"u BETWEEN {first} AND {second}", u=column) == between
    assert asked(f"u IN ({first}, {second})", u=column) == [None if v is None else v in (first, second) for v in rows]
    assert asked(f"u <=> {first}", u=column) == [v == first for v in rows]


@settings(max_examples=200)
@given(st.data(), st.sampled_from(UNSIGNED), st.sampled_from(sorted(WHOLE)), st.sampled_from(sorted(OPS)))
def test_unsigned_beside_integers(data, left, right, op):
    rows = data.draw(st.lists(st.tuples(numbers(left), numbers(right)), min_size=1, max_size=6))
    columns = {
        "a": pa.array([a for a, _ in rows], getattr(pa, left)()),
        "b": pa.array([b for _, b in rows], getattr(pa, right)()),
    }
    assert asked(f"a {op} b", **columns) == [compared(op, a, b) for a, b in rows]
    assert asked("a IN (b)", **columns) == [compared("=", a, b) for a, b in rows]
    greatest = [max((v for v in row if v is not None), default=None) for row in rows]
    assert asked("greatest(a, b)", **columns) == greatest
    assert asked("coalesce(a, b)", **columns) == [b if a is None else a for a, b in rows]


@settings(max_examples=200)
@given(st.data(), st.sampled_from(UNSIGNED), st.sampled_from(["+", "-", "*", "%"]), st.integers(-3, 300))
def test_unsigned_arithmetic_is_exact_or_an_overflow(data, name, op, other):
    rows = data.draw(st.lists(numbers(name), min_size=1, max_size=6))
    column = pa.array(rows, getattr(pa, name)())
    made = {"+": operator.add, "-": operator.sub, "*": operator.mul, "%": math.fmod}[op]
    if op == "%":
        made = lambda a, b: a % abs(b)  # noqa: E731 - a is not negative, so the sign is the dividend's
    try:
        found = asked(f"u {op} {other}", u=column)
    except BoathouseError:
        # Spark has the next wider signed integer for each: a product or sum may not fit it, or the divisor is 0.
        bits = WHOLE[name][0]
        limit = 2 ** (max(2 * bits, 32) - 1)
        wide = [] if other == 0 else [v for v in rows if v is not None and abs(made(v, other)) >= limit]
        assert (op == "%" and other == 0) or wide
        return
    assert found == [None if v is None else made(v, other) for v in rows]


@pytest.mark.parametrize(
    ("name", "op"), [*itertools.product([*WHOLE, "float32", "float64"], "/%"), *((name, "div") for name in WHOLE)]
)
def test_null_divided_by_zero_is_null(name, op):
    nothing = pa.array([None, 7], getattr(pa, name)())
    zero = pa.array([0, 7], getattr(pa, name)())
    assert asked(f"a {op} b", a=nothing, b=zero) == [None, 0 if op == "%" else 1]
    assert asked(f"a {op} 0", a=nothing[:1]) == [None]
    assert asked(f"b {op} a", a=nothing, b=zero)[0] is None
    assert asked("pmod(a, b)", a=nothing, b=zero) == [None, 0]


@given(st.data(), st.sampled_from(UNSIGNED))
def test_the_sign_of_unsigned(data, name):
    rows = data.draw(st.lists(numbers(name), min_size=1, max_size=6))
    column = pa.array(rows, getattr(pa, name)())
    assert asked("-u", u=column) == [None if v is None else -v for v in rows]
    assert asked("abs(-u)", u=column) == rows
    assert asked("CAST(u AS STRING)", u=column) == [None if v is None else str(v) for v in rows]
    assert asked("TRY_CAST(u AS BIGINT)", u=column) == [None if v is None or v >= 2**63 else v for v in rows]


def test_unsigned_beside_text_and_fractions():
    column = pa.array([0, 2**63, 2**64 - 2, 2**64 - 1, None], pa.uint64())
    assert asked("u = '18446744073709551615'", u=column) == [False, False, False, True, None]
    assert asked("u >= 18446744073709551614.5", u=column) == [False, False, False, True, None]
    assert asked("u > 1.5D", u=column) == [False, True, True, True, None]


@settings(max_examples=150)
@given(st.data(), st.sampled_from(UNSIGNED), st.sampled_from(sorted(OPS)), LITERALS, LITERALS)
def test_statistics_of_unsigned_lose_no_file(data, name, op, first, second):
    arrow = getattr(pa, name)()
    files = data.draw(st.lists(st.lists(numbers(name), max_size=4), min_size=1, max_size=5))
    known = [[v for v in rows if v is not None] for rows in files]
    member = pa.StructArray.from_arrays(
        [
            pa.array([min(k, default=None) for k in known], arrow),
            pa.array([max(k, default=None) for k in known], arrow),
            pa.array([True] * len(files)),
            pa.array([True] * len(files)),
            pa.array([rows.count(None) for rows in files], pa.int64()),
        ],
        ["lower", "upper", "lower_exact", "upper_exact", "nulls"],
    )
    stats = pa.StructArray.from_arrays([member], ["0"])
    for text in (f"u {op} {first}", f"u BETWEEN {first} AND {second}", f"NOT (u IN ({first}, {second}))"):
        bound = bind_predicate(parse(text), from_arrow(pa.schema([("u", arrow)])))
        hits = [mask(bound, pa.record_batch({"u": pa.array(rows, arrow)})).to_pylist() for rows in files]
        pruner, counts = Pruner(bound, [("u",)]), pa.array([len(rows) for rows in files], pa.int64())
        for hit, kept, whole in zip(hits, pruner.may_match(stats, counts), pruner.must_match(stats, counts)):
            assert kept.as_py() or not any(hit), text
            assert not whole.as_py() or all(hit), text


HALVES = st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.0, 65504.0, 6e-8, math.inf, -math.inf, math.nan])


@settings(max_examples=150)
@given(st.lists(st.tuples(HALVES, HALVES), min_size=1), st.sampled_from(sorted(OPS)))
def test_half_floats(pairs, op):
    half = {
        name: pa.array([None if p[i] is None else np.float16(p[i]) for p in pairs], pa.float16())
        for i, name in enumerate("ab")
    }
    wide = {name: column.cast(pa.float32()) for name, column in half.items()}
    for text in (
        f"a {op} b",
        f"a {op} 1.5",
        "a IN (b, 1.5)",
        "a <=> b",
        "isnan(a)",
        f"-a {op} abs(b)",
        "a BETWEEN b AND 2",
    ):
        assert asked(text, **half) == asked(text, **wide), text
    for text in ("a + b", "a - 1", "a * b", "greatest(a, b)", "round(a)", "coalesce(a, b)"):
        assert repr(asked(text, **half)) == repr(asked(text, **wide)), text
    assert asked("CAST(a AS STRING)", **half) == asked("CAST(a AS STRING)", **wide)


def test_statistics_of_half_floats():
    arrow = pa.float16()
    member = pa.StructArray.from_arrays(
        [pa.array(np.array([1, 3, np.nan], np.float16)), pa.array(np.array([2, 4, np.nan], np.float16))],
        ["lower", "upper"],
    )
    stats = pa.StructArray.from_arrays([member], ["0"])
    bound = bind_predicate(parse("h > 2.5"), from_arrow(pa.schema([("h", arrow)])))
    # NaN, which may be in every file, is greater than all.
    assert Pruner(bound, [("h",)]).may_match(stats, pa.array([1, 1, 1])).to_pylist() == [True, True, True]
    bound = bind_predicate(parse("h < 0.5"), from_arrow(pa.schema([("h", arrow)])))
    assert Pruner(bound, [("h",)]).may_match(stats, pa.array([1, 1, 1])).to_pylist() == [False, False, True]


SAMPLES = {
    "n": pa.nulls(3),
    "b": pa.array([True, False, None]),
    **{name: pa.array([1, 2, None], getattr(pa, name)()) for name in WHOLE},
    "h": pa.array([np.float16(1.5), np.float16(2), None], pa.float16()),
    "f": pa.array([1.5, 2, None], pa.float32()),
    "d": pa.array([1.5, 2, None]),
    "dec": pa.array([Decimal("1.50"), Decimal(2), None], pa.decimal128(10, 2)),
    "wide": pa.array([Decimal("1.50"), Decimal(2), None], pa.decimal256(50, 3)),
    "s": pa.array(["1", "2", None]),
    "x": pa.array([b"a", b"b", None]),
    "fx": pa.array([b"aaaa", b"bbbb", None], pa.binary(4)),
    "day": pa.array([dt.date(2020, 1, 1), dt.date(2021, 1, 1), None]),
    "t32": pa.array([1, 2, None], pa.time32("ms")),
    "t64": pa.array([1, 2, None], pa.time64("ns")),
    "ts": pa.array([1, 2, None], pa.timestamp("us", "UTC")),
    "ntz": pa.array([1, 2, None], pa.timestamp("us")),
    "tns": pa.array([1, 2, None], pa.timestamp("ns", "UTC")),
    "tss": pa.array([1, 2, None], pa.timestamp("s")),
    "dur": pa.array([1, 2, None], pa.duration("us")),
}
ONE = [
    "-{a}", "abs({a})", "isnan({a})", "ceil({a})", "round({a}, -1)", "{a} IN (NULL)", "{a} <=> NULL",
    "coalesce({a}, {a})", "greatest({a}, {a})", "nullif({a}, {a})", "CASE WHEN {a} IS NULL THEN {a} ELSE {a} END",
    "{a} IN ({a}, {a})", "{a} BETWEEN {a} AND {a}", "pmod({a}, {a})", "CAST({a} AS STRING)", "TRY_CAST({a} AS TINYINT)",
    "CAST({a} AS DECIMAL(38,0))", "CAST({a} AS DOUBLE)", "CAST({a} AS BOOLEAN)", "NOT {a}", "{a} AND {a}",
    "{a} LIKE {a}", "length({a})", "size({a})", "sqrt({a})", "year({a})", "hour({a})", "concat({a}, {a})",
    "{a} < 9223372036854775808", "{a} > -1", "{a} = 1.5D", "{a} IN ('1')", "date_add({a}, {a})",
]  # fmt: skip
TWO = [f"{{a}} {op} {{b}}" for op in (*OPS, "<=>", "+", "-", "*", "/", "%", "div")]
TWO += ["coalesce({a}, {b})", "greatest({a}, {b})", "{a} IN ({b}, {a})"]


@pytest.mark.few(9)
@pytest.mark.parametrize("a", SAMPLES)
def test_every_type_has_an_answer_or_a_refusal(a):
    """No error of Arrow's own comes out of any operation on any two types; no null is equal to anything."""
    batch = pa.record_batch(SAMPLES)
    texts = [t.format(a=a) for t in ONE] + [t.format(a=a, b=b) for t in TWO for b in SAMPLES]
    for text in texts:
        try:
            found = evaluate(parse(text), batch)
        except BoathouseError:
            continue
        found.validate(full=True)
        assert len(found) == batch.num_rows
        if " = " in text and "NULL" not in text:
            assert found[2].as_py() is None, text


@pytest.mark.parametrize("name", [n for n in SAMPLES if n != "n"])
def test_every_type_beside_itself(name):
    column = SAMPLES[name]
    first, second = (True, False) if name == "b" else (False, True)
    both = {"p": column, "q": pa.concat_arrays([column.slice(1, 1), column.slice(0, 1), column.slice(2)])}
    assert asked("p = q", **both) == [False, False, None]
    assert asked("p = p", **both) == [True, True, None]
    assert asked("p < q", **both) == [second, first, None]
    assert asked("p IN (q, p)", **both) == [True, True, None]


def test_void_is_null_beside_everything():
    for name in SAMPLES:
        for op in OPS:
            assert (
                asked(f"{name} {op} n", n=SAMPLES["n"], **({} if name == "n" else {name: SAMPLES[name]})) == [None] * 3
            )
    assert asked("n <=> n", n=SAMPLES["n"]) == [True] * 3

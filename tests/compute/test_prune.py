"""Pruning against brute force: no file with a matching row is lost, and no file is claimed that has another row."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.arrow.schema import from_arrow
from boathouse.bits.zones import zone
from boathouse.compute.evaluate import mask
from boathouse.compute.prune import Pruner
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate

TYPES = {
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float64(),
    "s": pa.string(),
    "d": pa.date32(),
    "ts": pa.timestamp("us", "UTC"),
    "dec": pa.decimal128(6, 2),
    "b": pa.bool_(),
}
SCHEMA = from_arrow(pa.schema(TYPES.items()))
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
VALUES = {
    "i": st.sampled_from([-(2**31), -2, -1, 0, 1, 2, 5, 2**31 - 1]),
    "l": st.sampled_from([-(2**63), -1, 0, 1, 2, 5, 2**53 + 1, 2**63 - 1]),
    "f": st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1.0, 1.5, 5.0, math.inf, math.nan]),
    "s": st.sampled_from(["", "a", "ab", "abc", "abd", "b", "é", "\U0010ffff", "ab\U0001f389", "A"]),
    "d": st.sampled_from([dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2020, 2, 29)]),
    "ts": st.sampled_from([EPOCH + dt.timedelta(microseconds=n) for n in (-86_400_000_000, -1, 0, 1, 86_400_000_000)]),
    "dec": st.sampled_from([Decimal("-9.99"), Decimal("0.00"), Decimal("1.25"), Decimal("9999.99")]),
    "b": st.booleans(),
}
LITERALS = {
    "i": ["-2147483648", "-1", "0", "1", "5", "1.5", "3000000000", "2.0D"],
    "l": ["-1", "0", "1", "5", "1.5", "9007199254740993"],
    "f": ["-1.5D", "0.0D", "-0.0D", "1", "5", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)"],
    "s": ["''", "'a'", "'ab'", "'abd'", "'é'", "'zz'"],
    "d": ["DATE'1969-12-31'", "DATE'1970-01-01'", "TIMESTAMP'1970-01-01 00:00:01'", "'2020-02-29'"],
    "ts": ["TIMESTAMP'1970-01-01'", "DATE'1970-01-01'", "TIMESTAMP'1969-12-31 23:59:59.999999'"],
    "dec": ["0", "1.25", "-9.99", "1.251", "1e3"],
    "b": ["true", "false"],
}
CASTS = ["CAST(i AS BIGINT) > 1", "CAST(l AS DOUBLE) >= 9.1e15", "CAST(d AS TIMESTAMP) < ts", "isnan(f)", "i < l",
         "CAST(ts AS DATE) = DATE'1969-12-31'", "length(s) > 1", "CAST(i AS DOUBLE) < 0.5D", "abs(f) > 1"]  # fmt: skip


@st.composite
def leaf(draw):
    name = draw(st.sampled_from(sorted(TYPES)))
    literal = st.sampled_from([*LITERALS[name], "NULL"])
    kind = draw(st.sampled_from(["compare", "compare", "in", "null", "between", "text", "cast", "column"]))
    if kind == "compare":
        op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"]))
        sides = [name, draw(literal)]
        return f" {op} ".join(sides if draw(st.booleans()) else reversed(sides))
    if kind == "in":
        return f"{name} IN ({', '.join(draw(st.lists(literal, min_size=1, max_size=4)))})"
    if kind == "between":
        return f"{name} BETWEEN {draw(literal)} AND {draw(literal)}"
    if kind == "text":
        pattern = draw(st.sampled_from(["a%", "ab%", "ab", "%", "a%c", "_b%", "é%", "", "ab\\\\%%"]))
        return f"s LIKE '{pattern}'"
    if kind == "cast":
        return draw(st.sampled_from(CASTS))
    return "b" if kind == "column" else f"{name} IS NULL"


EXPRESSIONS = st.recursive(
    leaf(),
    lambda inner: st.one_of(
        inner.map("NOT ({})".format),
        st.lists(inner, min_size=2, max_size=3).map(lambda x: " AND ".join(f"({e})" for e in x)),
        st.lists(inner, min_size=2, max_size=3).map(lambda x: " OR ".join(f"({e})" for e in x)),
    ),
    max_leaves=5,
)


@st.composite
def a_file(draw):
    rows = draw(st.integers(0, 4))
    columns = {}
    for name, type in TYPES.items():
        style = draw(st.sampled_from(["any", "any", "null", "same"]))
        if style == "null":
            values = [None] * rows
        elif style == "same":
            values = [draw(VALUES[name])] * rows
        else:
            values = draw(st.lists(st.none() | VALUES[name], min_size=rows, max_size=rows))
        columns[name] = pa.array(values, type)
    return pa.record_batch(columns)


def statistics(array: pa.Array, style: str) -> dict:
    """One file's statistics of a column: exact, with wide inexact bounds, partly or wholly missing."""
    out = dict.fromkeys(["lower", "upper", "lower_exact", "upper_exact", "nulls", "nans", "values"])
    if style == "missing":
        return out
    present = array.drop_null()
    floating = pa.types.is_floating(array.type)
    numbers = present.filter(pc.invert(pc.is_nan(present))) if floating else present
    if style != "bounds":
        out["nulls"], out["values"] = array.null_count, len(array)
        out["nans"] = len(present) - len(numbers) if floating else None
    if style == "counts" or not len(numbers):
        return out
    low, high = min(numbers.to_pylist()), max(numbers.to_pylist())
    exact = style != "inexact"
    if not exact and isinstance(low, str):
        low = low[:1]
        high = high if len(high) < 2 or ord(high[0]) >= 0x10FFFF else chr(ord(high[0]) + 1)
    elif not exact and isinstance(low, dt.datetime):
        high += dt.timedelta(microseconds=999)
    return out | {"lower": low, "upper": high, "lower_exact": exact, "upper_exact": exact}


def stats_array(files, styles, names):
    fields = []
    for i, name in enumerate(names):
        type = TYPES[name]
        struct = pa.struct([("lower", type), ("upper", type), ("lower_exact", pa.bool_()), ("upper_exact", pa.bool_()),
                            ("nulls", pa.int64()), ("nans", pa.int64()), ("values", pa.int64())])  # fmt: skip
        rows = [statistics(f.column(name), style) for f, style in zip(files, styles)]
        fields.append((str(i), pa.array(rows, struct)))
    return pa.StructArray.from_arrays([a for _, a in fields], [n for n, _ in fields])


@pytest.mark.spec("I-206")
@settings(max_examples=400)
@given(
    sql=EXPRESSIONS,
    files=st.lists(a_file(), min_size=1, max_size=4),
    styles=st.lists(st.sampled_from(["exact", "inexact", "counts", "bounds", "missing"]), min_size=4, max_size=4),
    asked=st.sets(st.sampled_from(sorted(TYPES)), min_size=4),
)
def test_never_loses_a_row_and_never_over_claims(sql, files, styles, asked):
    bound = bind_predicate(parse(sql), SCHEMA)
    names = sorted(asked)
    stats = stats_array(files, styles, names)
    rows = pa.array([f.num_rows for f in files], pa.int64())
    pruner = Pruner(bound, [(n,) for n in names])
    may, must = pruner.may_match(stats, rows).to_pylist(), pruner.must_match(stats, rows).to_pylist()
    for file, kept, whole in zip(files, may, must):
        matching = mask(bound, file).true_count
        assert kept or matching == 0
        assert not whole or matching == file.num_rows


def one(sql: str, type: pa.DataType, rows: int = 10, **known):
    """(may, must) of one file with one column `x`."""
    schema = from_arrow(pa.schema([("x", type)]))
    keys = {"lower": type, "upper": type, "lower_exact": pa.bool_(), "upper_exact": pa.bool_()}
    keys |= dict.fromkeys(["nulls", "nans", "values"], pa.int64())
    if "lower" in known:
        known = {"lower_exact": True, "upper_exact": True, **known}
    struct = pa.struct(keys.items())
    stats = pa.StructArray.from_arrays([pa.array([{**dict.fromkeys(keys), **known}], struct)], ["0"])
    pruner = Pruner(bind_predicate(parse(sql), schema), [("x",)])
    total = pa.array([rows], pa.int64())
    return pruner.may_match(stats, total)[0].as_py(), pruner.must_match(stats, total)[0].as_py()


NO_NULLS = {"nulls": 0, "values": 10}


@pytest.mark.parametrize(
    ("sql", "known", "expected"),
    [
        ("x > 5", {"lower": 1, "upper": 5}, (False, False)),
        ("x > 4", {"lower": 1, "upper": 5}, (True, False)),
        ("x > 0", {"lower": 1, "upper": 5}, (True, False)),  # nulls unknown
        ("x > 0", {"lower": 1, "upper": 5, **NO_NULLS}, (True, True)),
        ("NOT (x > 5)", {"lower": 1, "upper": 5, "nulls": 1}, (True, False)),
        ("NOT (x > 5)", {"lower": 1, "upper": 5, "nulls": 0}, (True, True)),
        ("x = 3", {"lower": 3, "upper": 3, "nulls": 0}, (True, True)),
        ("x = 3", {"lower": 3, "upper": 3, "nulls": 0, "upper_exact": False}, (True, False)),
        ("x <=> 3", {"lower": 3, "upper": 3, "nulls": 2}, (True, False)),
        ("x <=> NULL", {"nulls": 10}, (True, True)),
        ("x IS NULL", {"nulls": 0}, (False, False)),
        ("x IS NOT NULL", {"nulls": 10}, (False, False)),
        ("x IS NOT NULL", {"nulls": 0}, (True, True)),
        ("x = 1", {"nulls": 10}, (False, False)),
        ("x NOT IN (1, NULL)", {"lower": 3, "upper": 3, "nulls": 0}, (False, False)),
        ("x IN (1, 2, 9)", {"lower": 3, "upper": 8}, (False, False)),
        ("x IN (1, 2, 9)", {}, (True, False)),
        ("x IN (3, NULL)", {"lower": 3, "upper": 3, "nulls": 0}, (True, True)),
        ("false", {}, (False, False)),
        ("true", {}, (True, True)),
        ("NULL", {}, (False, False)),
        ("x > 1.5", {"lower": 0, "upper": 1}, (False, False)),
        ("x % 2 = 0", {"lower": 1, "upper": 1}, (True, False)),
    ],
)
def test_integers(sql, known, expected):
    assert one(sql, pa.int32(), **known) == expected


@pytest.mark.parametrize(
    ("sql", "known", "expected"),
    [
        ("x > 5", {"lower": 1.0, "upper": 2.0}, (True, False)),  # NaN unknown, and NaN > 5
        ("x > 5", {"lower": 1.0, "upper": 2.0, "nans": 0}, (False, False)),
        ("x > 5", {"lower": 6.0, "upper": 7.0, "nulls": 0, "nans": 3}, (True, True)),
        ("x < 5", {"lower": 1.0, "upper": 2.0, "nulls": 0}, (True, False)),
        ("x < 5", {"lower": 1.0, "upper": 2.0, "nulls": 0, "nans": 0}, (True, True)),
        ("x < 5", {"nulls": 0, "nans": 10}, (False, False)),
        ("x = CAST('NaN' AS DOUBLE)", {"lower": 1.0, "upper": 2.0, "nans": 0}, (False, False)),
        ("x = CAST('NaN' AS DOUBLE)", {"nulls": 0, "nans": 10}, (True, True)),
        ("x = 0.0", {"lower": -0.0, "upper": -0.0, "nulls": 0, "nans": 0}, (True, True)),
        ("x > 5", {"lower": 1.0, "upper": math.nan, "nans": 0}, (True, False)),  # a NaN bound is distrusted
        ("isnan(x)", {"nulls": 0, "nans": 10}, (True, True)),
        ("isnan(x)", {"nans": 0}, (False, False)),
    ],
)
def test_floats(sql, known, expected):
    assert one(sql, pa.float64(), **known) == expected


@pytest.mark.parametrize(
    ("sql", "known", "expected"),
    [
        ("x LIKE 'abc%'", {"lower": "abd", "upper": "b"}, (False, False)),
        ("x LIKE 'abc%'", {"lower": "ab", "upper": "abcd"}, (True, False)),
        ("x LIKE 'ab%'", {"lower": "aba", "upper": "abz", "nulls": 0}, (True, True)),
        ("x LIKE 'ab%d'", {"lower": "aba", "upper": "abz", "nulls": 0}, (True, False)),
        ("x NOT LIKE 'ab%'", {"lower": "aba", "upper": "abz", "nulls": 0}, (False, False)),
        ("x = 'abcz'", {"lower": "abc", "upper": "abd", "upper_exact": False}, (True, False)),
        ("x > 'é'", {"lower": "a", "upper": "z"}, (False, False)),
        ("upper(x) = 'A'", {"lower": "z", "upper": "z"}, (True, False)),
    ],
)
def test_strings(sql, known, expected):
    assert one(sql, pa.string(), **known) == expected


def test_a_long_in_list_prunes():
    schema = from_arrow(pa.schema([("x", pa.int64())]))
    struct = pa.struct([("lower", pa.int64()), ("upper", pa.int64())])
    bounds = [{"lower": 10 * n + 1, "upper": 10 * n + 9} for n in range(50)]
    stats = pa.StructArray.from_arrays([pa.array(bounds, struct)], ["0"])
    wanted = [10 * n for n in range(300)] + [15]
    pruner = Pruner(bind_predicate(parse(f"x IN ({', '.join(map(str, wanted))})"), schema), [("x",)])
    may = pruner.may_match(stats, pa.array(np.full(50, 5)))
    assert np.flatnonzero(may.to_numpy(zero_copy_only=False)).tolist() == [1]


ZONES = ["America/New_York", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia", "Asia/Manila"]


@st.composite
def around_a_change(draw):
    """(zone, condition, instants), all within hours of one change of the zone's clocks."""
    name = draw(st.sampled_from(ZONES))
    turn = int(draw(st.sampled_from([s for s in zone(name).starts if -4e9 < s < 3e9])))
    near = st.builds(lambda hours, more: turn + hours * 900 + more, st.integers(-12, 12), st.sampled_from([-1, 0, 1]))
    clock = zone(name).clock(draw(near), 1)
    at = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=clock)
    left, right = draw(
        st.sampled_from(
            [
                ("CAST(ts AS DATE)", f"DATE'{at.date()}'"),
                ("d", f"TIMESTAMP'{at.date()}'"),
                ("ts", f"'{at}'"),
                ("CAST(n AS TIMESTAMP)", f"TIMESTAMP'{at}'"),
                ("CAST(ts AS TIMESTAMP_NTZ)", f"TIMESTAMP_NTZ'{at}'"),
            ]
        )
    )
    op = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    return name, f"{left} {op} {right}", draw(st.lists(near, min_size=2, max_size=5))


@settings(max_examples=600)
@given(around_a_change())
def test_in_any_time_zone(drawn):
    """Clocks that were set back or on turn no bound around."""
    name, sql, seconds = drawn
    clocks = [zone(name).clock(s, 1) for s in seconds]
    columns = {
        "ts": pa.array([s * 1_000_000 for s in seconds], pa.int64()).view(pa.timestamp("us", "UTC")),
        # Clocks as they are written down, and those that were skipped between them.
        "n": pa.array([c * 1_000_000 for c in (*clocks[:-1], clocks[-1] + 1800)], pa.int64()).view(pa.timestamp("us")),
        "d": pa.array([c // 86_400 for c in clocks], pa.int32()).view(pa.date32()),
    }
    batch = pa.record_batch(columns)
    expr = bind_predicate(parse(sql), from_arrow(batch.schema), name)
    stats = pa.array([{str(i): statistics(a, "exact") for i, a in enumerate(columns.values())}])
    pruner = Pruner(expr, [(n,) for n in columns])
    rows = pa.array([batch.num_rows])
    hits = mask(expr, batch).true_count
    assert pruner.may_match(stats, rows)[0].as_py() or hits == 0
    assert not pruner.must_match(stats, rows)[0].as_py() or hits == batch.num_rows

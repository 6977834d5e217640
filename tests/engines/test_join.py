"""Joins as MERGE composes them: rows of a scan with their positions, joined, projected and filtered.

The local engine is compared with DuckDB, and both engines with each other.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse import types as T
from boathouse.arrow.schema import to_arrow
from boathouse.engines import join as joins
from boathouse.engines.local import LocalEngine
from boathouse.engines.sources import Batches
from boathouse.errors import ColumnNotFoundError, EvaluationError, ExpressionError, InvalidArgumentError

ENGINE = LocalEngine()
NAN, INF = float("nan"), float("inf")
HOW = ["inner", "left", "right", "full", "semi", "anti"]
NEST = pa.struct([("a", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.int64()))])
TARGET = pa.schema(
    [
        ("id", pa.int32()), ("f", pa.float64()), ("s", pa.string()), ("n", pa.decimal128(9, 2)), ("nest", NEST),
        ("a.b", pa.int64()), ("_unit", pa.int32()), ("_pos", pa.int64()),
    ]
)  # fmt: skip
SOURCE = pa.schema(
    [
        ("ID", pa.int64()), ("f", pa.float64()), ("S", pa.string()), ("n", pa.decimal128(12, 3)), ("op", pa.string()),
        ("more", NEST), ("d", pa.date32()), ("ord", pa.int32()),
    ]
)  # fmt: skip

ON = [
    "target.id = source.id",
    "target.id <=> source.id",
    "target.f = source.f",
    "target.f <=> source.f",
    "source.s = target.s and target.id <=> source.id",
    "target.n = source.n",
    "target.id = source.f",
    "target.id + 1 = source.id + 1 and target.f < source.f",
    "target.id = source.id and source.op = 'u' and target.s <> 'b'",
    "target.id < source.id",
    "target.id = source.id or target.s = source.s",
    "target.s = 'a'",
]
"""What DuckDB and Spark read alike. DuckDB has `IS NOT DISTINCT FROM` for `<=>`."""

COLUMNS = [
    ("_action", "CASE WHEN source.ord IS NULL THEN 'keep' WHEN target._pos IS NULL THEN 'insert' "
                "WHEN source.op = 'd' AND target.f > 1 THEN 'delete' WHEN source.op = 'u' THEN 'update' "
                "ELSE 'none' END"),
    ("_unit", "target._unit"),
    ("_pos", "target._pos"),
    ("ord", "source.ord"),
    ("id", "CASE WHEN target._pos IS NULL THEN source.id ELSE target.id END"),
    ("f", "coalesce(source.f, target.f)"),
    ("s", "CASE WHEN source.op = 'u' THEN source.s ELSE target.s END"),
    ("n", "coalesce(source.n, target.n)"),
    ("d", "source.d"),
]  # fmt: skip

nested = st.none() | st.fixed_dictionaries(
    {
        "a": st.none() | st.lists(st.none() | st.integers(0, 3), max_size=2),
        "m": st.none() | st.lists(st.tuples(st.sampled_from("xy"), st.integers(0, 2)), max_size=1),
    }
)
ids = st.none() | st.integers(0, 4)
floats = st.none() | st.sampled_from([0.0, -0.0, 1.0, 2.5, NAN, INF, -INF, 5e-324])
strings = st.none() | st.sampled_from(["a", "b", "", "ü"])
decimals = st.none() | st.sampled_from([Decimal("1.00"), Decimal("2.50"), Decimal("-1.00")])


@st.composite
def targets(draw):
    one = st.tuples(ids, floats, strings, decimals, nested, ids)
    rows = draw(st.lists(one, max_size=8))
    return pa.Table.from_pylist(
        [dict(zip(TARGET.names, (*row, i % 2, i), strict=True)) for i, row in enumerate(rows)], TARGET
    )


@st.composite
def sources(draw):
    one = st.tuples(
        ids, floats, strings, decimals, st.sampled_from("udi"), nested, st.none() | st.just(dt.date(1, 1, 1))
    )
    rows = draw(st.lists(one, max_size=6))
    return pa.Table.from_pylist([dict(zip(SOURCE.names, (*row, i), strict=True)) for i, row in enumerate(rows)], SOURCE)


def batches(table: pa.Table, size: int) -> Batches:
    """The rows as a stream of small batches."""
    return Batches(table.schema, lambda: iter(table.to_batches(max_chunksize=size)))


def bag(table: pa.Table) -> Counter:
    """The rows, in any order; NaN is itself and the zeros differ."""
    return Counter(map(repr, table.select(sorted(table.column_names)).to_pylist()))


def duckdb_rows(target: pa.Table, source: pa.Table, on: str, how: str) -> pa.Table:
    con = duckdb.connect()
    con.register("t", target.drop_columns(["nest"]))
    con.register("s", source.drop_columns(["more"]))
    on = on.replace("<=>", "IS NOT DISTINCT FROM")
    if how in ("semi", "anti"):
        return con.sql(f"SELECT * FROM t target {how} JOIN s source ON {on}").to_arrow_table()
    columns = ", ".join(f'{sql} AS "{name}"' for name, sql in COLUMNS)
    return con.sql(f"SELECT {columns} FROM t target {how} JOIN s source ON {on}").to_arrow_table()


@settings(max_examples=150)
@given(targets(), sources(), st.sampled_from(ON), st.sampled_from(HOW), st.integers(1, 4), st.integers(1, 5))
def test_joins_agree_with_duckdb(target, source, on, how, size, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joins, "PAIR_ROWS", block)
        patch.setattr(joins, "LEFT_ROWS", 3)
        joined = ENGINE.join(batches(target, size), batches(source, size), on, how)
        if how in ("semi", "anti"):
            ours = joined.table()
            assert ours.schema == TARGET
            assert bag(ours.drop_columns(["nest"])) == bag(duckdb_rows(target, source, on, how))
            known = {row["_pos"]: row for row in target.to_pylist()}
            assert all(repr(row) == repr(known[row["_pos"]]) for row in ours.to_pylist())
            return
        assert joined.schema.names == ["target", "source"]
        pairs = joined.table()
        projected = ENGINE.project(joined, COLUMNS).table()
    pairs.validate(full=True)
    assert bag(projected) == bag(duckdb_rows(target, source, on, how))
    theirs = {row["_pos"]: row for row in target.to_pylist()}, {row["ord"]: row for row in source.to_pylist()}
    for pair in pairs.to_pylist():
        # Payload of every type is that of the row; a side without a match is null as a whole.
        for known, key, side in zip(theirs, ("_pos", "ord"), pair.values(), strict=True):
            assert side is None or repr(side) == repr(known[side[key]])


def random_tables(seed: int) -> tuple[pa.Table, pa.Table]:
    rng = random.Random(seed)

    def nest():
        return rng.choice([None, {"a": [1, None], "m": None}, {"a": None, "m": [("x", 1)]}])

    def row(extra):
        some = [None, 0, 1, 2, 3]
        f = rng.choice([None, 0.0, -0.0, 1.0, 2.5, NAN])
        n = rng.choice([None, Decimal("1.00"), Decimal("2.50")])
        return [rng.choice(some), f, rng.choice([None, "a", "b", "ü"]), n, *extra]

    target = [[*row([nest(), rng.choice([None, 5])]), i % 2, i] for i in range(12)]
    source = [[*row([rng.choice("udi"), nest(), rng.choice([None, dt.date(2000, 1, 1)])]), i] for i in range(9)]
    tables = ((target, TARGET), (source, SOURCE))
    left, right = (pa.Table.from_pylist([dict(zip(s.names, r, strict=True)) for r in rows], s) for rows, s in tables)
    return (left, right) if seed % 5 else (left.slice(0, 0), right) if seed % 10 else (left, right.slice(0, 0))


EXTRA = [
    *COLUMNS,
    ("first", "source IS NULL"),
    ("second", "target IS NULL"),
    ("dotted", "target.`a.b`"),
    ("alone", "`a.b`"),
    ("upper", "concat(OP, '!')"),
    ("case", "TARGET._Pos"),
]
"""With what DuckDB does not read alike: whole sides, names without a side, names with dots and in another case."""


@pytest.mark.spark
@pytest.mark.parametrize("number", [pytest.param(n, marks=pytest.mark.slow if n % 2 else ()) for n in range(len(ON))])
@pytest.mark.route("joins")
def test_both_engines_agree(spark, number):
    from boathouse.engines.spark.engine import SparkEngine

    other = SparkEngine(spark)
    for i, how in enumerate(HOW):
        if (i + number) % 2:
            continue
        target, source = random_tables(number * len(HOW) + i)
        frames = spark.createDataFrame(target), spark.createDataFrame(source)
        where = "target.f IS NULL OR source.ord < 6 OR op IS NULL" if number % 4 < 2 else None
        local = ENGINE.join(batches(target, 4), batches(source, 4), ON[number], how)
        remote = other.join(*frames, ON[number], how)
        if how in ("semi", "anti"):
            assert remote.columns == target.column_names
            assert bag(local.table()) == bag(remote.toArrow()), (ON[number], how)
            continue
        assert remote.columns == local.schema.names == ["target", "source"]
        ours = ENGINE.project(local, EXTRA, where).table()
        theirs = other.project(remote, EXTRA, where).toArrow()
        assert bag(ours) == bag(theirs), (ON[number], how, target.to_pylist(), source.to_pylist())
        assert bag(local.table()) == bag(remote.toArrow())
        asked = [
            ("n", "count_all", ""),
            ("lo", "min", "source.id"),
            ("hi", "max", "abs(target.f)"),
            ("c", "count", "op"),
        ]
        sums = ENGINE.summary(local, asked), other.summary(remote, asked)
        assert repr(sums[0].to_pylist()) == repr(sums[1].to_pylist())


@pytest.mark.spark
def test_spark_plans_an_equality_as_one(spark):
    from boathouse.engines.spark.engine import SparkEngine

    frames = [spark.range(100).selectExpr("id AS `a.b`", "id AS v", "true AS _present") for _ in range(2)]
    for how in ("full", "left", "right", "inner"):
        joined = SparkEngine(spark).join(*frames, "target.`a.b` = source.`a.b` AND target.v > 5", how)
        plan = joined._jdf.queryExecution().executedPlan().toString()
        assert "BroadcastHashJoin" in plan or "SortMergeJoin" in plan, plan
        assert "NestedLoop" not in plan and "Cartesian" not in plan
        assert joined.count() == {"full": 106, "left": 100, "right": 100, "inner": 94}[how]


@pytest.mark.spark
def test_a_table_joins_itself_on_both_engines(spark):
    from boathouse.engines.spark.engine import SparkEngine

    data = pa.table({"id": [1, 2, 3], "next": [2, 3, 4]})
    frame = spark.createDataFrame(data)
    columns = [("a", "one.id"), ("b", "two.id")]
    for engine, rel in ((ENGINE, ENGINE.source(data)), (SparkEngine(spark), frame)):
        joined = engine.join(rel, rel, "one.next = two.id", "left", ("one", "two"))
        found = engine.project(joined, columns)
        rows = found.table() if engine is ENGINE else found.toArrow()
        assert bag(rows) == Counter(map(repr, [{"a": 1, "b": 2}, {"a": 2, "b": 3}, {"a": 3, "b": None}]))


LEFT = pa.table({"id": pa.array([1, 2], pa.int32()), "v": ["1", "x"], "l": [True, False]})
RIGHT = pa.table({"ID": [1, 2], "w": ["1", "y"]})
BAD = [("id = w", "`id` is ambiguous"), ("target.id = nope", "`nope`"), ("target.w = source.w", "`w`")]


@pytest.mark.parametrize("on, words", BAD)
def test_names_that_no_side_or_both_have_are_errors(on, words):
    with pytest.raises(ColumnNotFoundError, match=words):
        ENGINE.join(ENGINE.source(LEFT), ENGINE.source(RIGHT), on, "inner")
    joined = ENGINE.join(ENGINE.source(LEFT), ENGINE.source(RIGHT), "l and target.id = source.id", "inner")
    with pytest.raises(ColumnNotFoundError, match=words):
        ENGINE.project(joined, [("x", on)])
    with pytest.raises(ColumnNotFoundError, match=words):
        ENGINE.project(joined, [("x", "1")], on)
    with pytest.raises(ColumnNotFoundError, match=words):
        ENGINE.summary(joined, [("x", "count", on)])
    assert ENGINE.project(joined, [("x", "v || w")]).table().to_pylist() == [{"x": "11"}]
    assert ENGINE.project(ENGINE.pin(joined), [("x", "v || w")]).table().to_pylist() == [{"x": "11"}]


@pytest.mark.spark
@pytest.mark.parametrize("on, words", BAD)
def test_names_that_no_side_or_both_have_are_errors_on_spark(spark, on, words):
    from boathouse.engines.spark.engine import SparkEngine

    engine = SparkEngine(spark)
    left, right = spark.createDataFrame(LEFT), spark.createDataFrame(RIGHT)
    words = words.split("`")[1]
    with pytest.raises(ColumnNotFoundError, match=words):
        engine.join(left, right, on, "inner")
    joined = engine.join(left, right, "l and target.id = source.id", "inner")
    for attempt in ([("x", on)], None), ([("x", "1")], on):
        with pytest.raises(ColumnNotFoundError, match=words):
            engine.project(joined, *attempt)
    with pytest.raises(ColumnNotFoundError, match=words):
        engine.summary(joined, [("x", "count", on)])
    assert engine.project(joined, [("x", "v || w")]).toArrow().to_pylist() == [{"x": "11"}]


def test_bad_conditions_are_errors():
    rel = ENGINE.source(pa.table({"nest": [{"a": 1}], "s": ["x"], "id": [1]}))
    with pytest.raises(ExpressionError, match="struct"):
        ENGINE.join(rel, rel, "target.nest = source.nest", "inner")
    with pytest.raises(ExpressionError, match="boolean"):
        ENGINE.join(rel, rel, "target.id", "inner")
    with pytest.raises(InvalidArgumentError, match="both sides"):
        ENGINE.join(rel, rel, "true", "inner", ("a", "A"))
    with pytest.raises(EvaluationError, match="'x'"):
        ENGINE.join(rel, rel, "target.id = source.s", "inner").table()


def test_what_can_fail_is_shielded_by_what_comes_before_it():
    left = ENGINE.source(pa.table({"id": [1, 2], "d": [0, 2]}))
    right = ENGINE.source(pa.table({"k": [1, 2]}))
    found = ENGINE.join(left, right, "id = k AND d <> 0 AND 4 div d = 2", "left").table()
    assert [row["source"] for row in found.to_pylist()] == [None, {"k": 2}]


def test_keys_of_two_types_are_promoted_not_narrowed():
    left = ENGINE.source(pa.table({"id": pa.array([0, 7], pa.int32())}))
    right = ENGINE.source(pa.table({"k": [2**32, 7], "s": ["0", " 7 "]}))
    assert ENGINE.join(left, right, "id = k", "inner").table().num_rows == 1
    assert ENGINE.join(left, right, "id = s", "inner").table().num_rows == 2


def test_the_left_side_streams_and_the_right_is_read_once():
    opened = Counter()

    def left():
        for i in range(100):
            opened["left"] += 1
            yield pa.record_batch({"id": [i, i + 1]})

    def right():
        opened["right"] += 1
        yield pa.record_batch({"k": list(range(0, 100, 2)), "v": ["x"] * 50})

    schemas = pa.schema([("id", pa.int64())]), pa.schema([("k", pa.int64()), ("v", pa.string())])
    joined = ENGINE.join(Batches(schemas[0], left), Batches(schemas[1], right, once=True), "id = k", "full")
    assert not opened
    rows = joined.open()
    first = next(rows)
    assert opened == {"left": 1, "right": 1}
    assert first.to_pylist() == [
        {"target": {"id": 0}, "source": {"k": 0, "v": "x"}},
        {"target": {"id": 1}, "source": None},
    ]
    assert sum(batch.num_rows for batch in rows) == 198
    assert joined.table().num_rows == 200
    assert opened == {"left": 200, "right": 1}


def test_pairs_are_made_in_bounded_batches():
    """1,000 by 3,000 rows with one key are three million pairs, which never exist at once."""
    left = ENGINE.source(pa.table({"a": [1] * 1000}))
    right = ENGINE.source(pa.table({"b": [1] * 3000, "pad": ["x" * 100] * 3000}))
    for on in ("a = b", "a <= b"):
        sizes = [batch.num_rows for batch in ENGINE.join(left, right, on, "inner").open()]
        assert sum(sizes) == 3_000_000
        assert max(sizes) <= joins.PAIR_ROWS
    pad = ENGINE.source(pa.table({"b": [1] * 300, "pad": ["x" * (1 << 20)] * 300}))
    few = ENGINE.source(pa.table({"a": [1] * 2}))
    assert [batch.num_rows for batch in ENGINE.join(few, pad, "a = b", "inner").open()] == [63] * 9 + [33]


def test_layouts_that_arrow_cannot_take_are_joined():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", "y"]))
    table = pa.table(
        {
            "id": pa.array(["a", "b", "c"]).cast(pa.string_view()),
            "runs": runs,
            "dict": pa.array(["p", None, "q"]).dictionary_encode(),
            "view": pa.array([[1], None, [2, 3]], pa.list_view(pa.int32())),
            "whole": pa.array([[1, 2], [3, 4], None], pa.list_(pa.int8(), 2)),
        }
    )
    source = pa.table({"id": ["b", "z"], **{f"r_{n}": table[n].slice(1) for n in ("runs", "dict", "view", "whole")}})
    found = ENGINE.join(ENGINE.source(table), ENGINE.source(source), "target.id = source.id", "full")
    assert [row["source"] and row["source"]["id"] for row in found.table().to_pylist()] == [None, "b", None, "z"]
    out = ENGINE.project(found, [("a", "target.runs"), ("b", "r_runs"), ("c", "r_dict"), ("d", "source.id")]).table()
    assert out.to_pylist() == [
        {"a": "x", "b": None, "c": None, "d": None},
        {"a": "x", "b": "x", "c": None, "d": "b"},
        {"a": "y", "b": None, "c": None, "d": None},
        {"a": None, "b": "y", "c": "q", "d": "z"},
    ]
    assert [row["source"] and row["source"]["r_whole"] for row in found.table().to_pylist()] == [
        None, [3, 4], None, None,
    ]  # fmt: skip


def test_clauses_choose_between_values_of_any_type():
    schema = T.Schema((T.Field("id", T.INT64), T.Field("u", T.UUID), T.Field("v", T.VARIANT)))
    arrow = to_arrow(schema).append(pa.field("nest", NEST))
    variant = {"metadata": b"\x01\x00\x00", "value": b"\x0c\x01"}
    left = pa.table([[1, 2], [b"a" * 16, None], [variant, None], [{"a": [1], "m": [("x", 1)]}, None]], schema=arrow)
    right = pa.table([[2, 3], [b"b" * 16, b"c" * 16], [None, variant], [{"a": None, "m": []}, None]], schema=arrow)
    joined = ENGINE.join(ENGINE.source(left), ENGINE.source(right), "target.id = source.id", "full")
    names = arrow.names
    picked = [(n, f"CASE WHEN source IS NULL THEN target.{n} ELSE source.{n} END") for n in names]
    found = ENGINE.project(joined, picked).table()
    assert found.to_pylist() == [left.to_pylist()[0], *right.to_pylist()]
    assert ENGINE.schema(ENGINE.source(found)).fields[:3] == schema.fields


def test_clauses_choose_between_nested_values_of_two_writers():
    """Formats name the elements of lists differently, and a user's fields need not be nullable."""

    def nested(element: str, nullable: bool, id: str) -> pa.Schema:
        one = pa.field("a", pa.int64(), nullable, metadata={b"PARQUET:field_id": id})
        lists = pa.list_(pa.field(element, pa.struct([one]), nullable))
        return pa.schema([pa.field("id", pa.int64()), pa.field("l", lists), pa.field("m", pa.map_(pa.string(), lists))])

    rows = [{"id": 1, "l": [{"a": 5}], "m": [("x", [{"a": 6}])]}, {"id": 2, "l": None, "m": []}]
    left = pa.Table.from_pylist(rows[:1], nested("element", True, "7"))
    right = pa.Table.from_pylist(rows, nested("item", False, "9"))
    joined = ENGINE.join(ENGINE.source(left), ENGINE.source(right), "target.id = source.id", "right")
    for first, second in (("target", "source"), ("source", "target")):
        columns = [(n, f"CASE WHEN {first} IS NULL THEN {second}.{n} ELSE {first}.{n} END") for n in ("id", "l", "m")]
        assert ENGINE.project(joined, columns).table().to_pylist() == rows
    assert (
        ENGINE.join(ENGINE.source(right), ENGINE.source(left), "target.id = source.id", "semi").schema == right.schema
    )


def test_tables_of_thousands_of_columns_are_projected_quickly():
    wide = pa.table({f"c{i}": [1] for i in range(3000)})
    joined = ENGINE.join(ENGINE.source(wide), ENGINE.source(wide), "target.c0 = source.c0", "full")
    begin = dt.datetime.now()
    found = ENGINE.project(joined, [(f"c{i}", f"coalesce(source.c{i}, target.c{i})") for i in range(3000)]).table()
    assert found.num_columns == 3000
    assert dt.datetime.now() - begin < dt.timedelta(seconds=20)

"""Random merges against a plain Python model of SQL's MERGE, and the same merges on both engines."""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peers import by_peer

import boathouse as bh
from boathouse import errors

NAN = math.nan
TYPES = {"id": pa.int64(), "f": pa.float64(), "s": pa.string(), "p": pa.string()}
SCHEMA = pa.schema(list(TYPES.items()))
VALUES: dict[str, list[Any]] = {
    "id": [0, 1, 2, 3, 4, -1, 2**40, None],
    "f": [NAN, -0.0, 0.0, 1.5, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, None],
    "s": ["", "a", "ünï", "z", None],
    "p": ["x", "y /=%", None],
}
Row = dict[str, Any]
ABSENT: Row = dict.fromkeys(TYPES)


@dataclass(frozen=True)
class Term:
    """SQL text, and its value for a row of the target and one of the source."""

    text: str
    value: Callable[[Row, Row], Any] = field(repr=False)


@dataclass(frozen=True)
class When:
    """A clause of the model; `values` None: all columns of the source."""

    when: str
    action: str
    values: dict[str, Term] | None
    where: Term | None


def key(value: Any) -> Any:
    """As Spark compares: NaN is the greatest and equals itself, the two zeros are the same."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def compare(op: str, a: Any, b: Any) -> bool | None:
    if op == "<=>":
        return (a is None) == (b is None) and (a is None or key(a) == key(b))
    if a is None or b is None:
        return None
    x, y = key(a), key(b)
    return {"=": x == y, "<>": x != y, "<": x < y, ">=": x >= y}[op]


def sql(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"cast('{value}' as double)"
    return f"'{value}'" if isinstance(value, str) else str(value)


def column(side: str, name: str) -> Term:
    return Term(f"{side}.{name}", lambda t, s: (t if side == "target" else s)[name])


def plus(a: Term, n: int) -> Term:
    return Term(f"({a.text} + {n})", lambda t, s: None if a.value(t, s) is None else a.value(t, s) + n)


def relation(op: str, a: Term, b: Term) -> Term:
    return Term(f"{a.text} {op} {b.text}", lambda t, s: compare(op, a.value(t, s), b.value(t, s)))


def literal(value: Any) -> Term:
    return Term(sql(value), lambda t, s: value)


def both(parts: list[Term]) -> Term:
    """AND; only whether it is true counts."""
    text = " and ".join(p.text for p in parts)
    return Term(text, lambda t, s: all(p.value(t, s) is True for p in parts))


OPS = st.sampled_from(["=", "<=>", "<>", "<", ">="])


@st.composite
def terms(draw: Any, name: str, sides: tuple[str, ...]) -> Term:
    """A value for a column of this name."""
    kind = draw(st.sampled_from(["column", "column", "literal", "plus"]))
    if kind == "literal":
        return literal(draw(st.sampled_from(VALUES[name])))
    found = column(draw(st.sampled_from(sides)), name)
    return plus(found, draw(st.integers(-2, 2))) if kind == "plus" and name == "id" else found


@st.composite
def conditions(draw: Any, sides: tuple[str, ...] = ("target", "source")) -> Term:
    name = draw(st.sampled_from(list(TYPES)))
    one = column(draw(st.sampled_from(sides)), name)
    return relation(draw(OPS), one, draw(terms(name, sides)))


@st.composite
def matches(draw: Any) -> Term:
    """The condition of a merge: mostly equalities, and whatever else."""
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(["id", "id", "f", "s", "p"]))
        right = column("source", name)
        right = plus(right, 1) if name == "id" and draw(st.integers(0, 3)) == 0 else right
        pair = (column("target", name), right)
        left, right = pair if draw(st.booleans()) else pair[::-1]
        parts.append(relation(draw(st.sampled_from(["=", "=", "=", "<=>", "<"])), left, right))
    parts += draw(st.lists(conditions(), max_size=1))
    return both(draw(st.permutations(parts)))


@st.composite
def clauses(draw: Any) -> When:
    when = draw(st.sampled_from(["matched", "matched", "not matched", "not matched by source"]))
    sides = {"matched": ("target", "source"), "not matched": ("source",), "not matched by source": ("target",)}[when]
    action = "insert" if when == "not matched" else draw(st.sampled_from(["update", "update", "delete"]))
    where = draw(st.none() | conditions(sides))
    if action == "delete" or (when != "not matched by source" and draw(st.booleans())):
        return When(when, action, None, where)
    names = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4, unique=True))
    return When(when, action, {n: draw(terms(n, sides)) for n in names}, where)


def model(target: list[Row], source: list[Row], on: Term, whens: list[When]) -> tuple[list[Row], tuple[int, int, int]]:
    """The rows after the merge, and how many were updated, deleted and inserted. Raises ValueError where two source
    rows change a row."""
    pairs = [(i, j) for i, t in enumerate(target) for j, s in enumerate(source) if on.value(t, s) is True]
    hits, hit = {i for i, _ in pairs}, {j for _, j in pairs}
    events = [("matched", i, j) for i, j in pairs]
    events += [("not matched", None, j) for j in range(len(source)) if j not in hit]
    events += [("not matched by source", i, None) for i in range(len(target)) if i not in hits]
    rows: dict[int, Row | None] = dict(enumerate(target))
    new: list[Row] = []
    changed: Counter[int] = Counter()
    figures = Counter({"update": 0, "delete": 0, "insert": 0})
    same = [(w.when, w.action, w.where) for w in whens] == [("matched", "delete", None)]
    for when, i, j in events:
        t, s = ABSENT if i is None else target[i], ABSENT if j is None else source[j]
        for w in whens:
            if w.when == when and (w.where is None or w.where.value(t, s) is True):
                break
        else:
            continue
        if i is not None and changed[i]:
            if same:
                continue
            raise ValueError
        figures[w.action] += 1
        values = {n: s[n] for n in TYPES} if w.values is None else {n: e.value(t, s) for n, e in w.values.items()}
        if w.action == "insert":
            new.append(ABSENT | values)
        else:
            changed[i] += 1
            rows[i] = None if w.action == "delete" else t | values
    kept = [r for r in rows.values() if r is not None]
    return kept + new, (figures["update"], figures["delete"], figures["insert"])


def bag(rows: list[Row]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(repr(r[c]) for c in TYPES) for r in rows)


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def perform(table: Any, source: Any, on: Term, whens: list[When]) -> Any:
    merge = table.merge(source, on.text)
    for w in whens:
        where = None if w.where is None else w.where.text
        values = None if w.values is None else {n: e.text for n, e in w.values.items()}
        match w.when, w.action:
            case "matched", "delete":
                merge = merge.when_matched_delete(where)
            case "matched", _:
                merge = (
                    merge.when_matched_update_all(where) if values is None else merge.when_matched_update(values, where)
                )
            case "not matched", _ if values is None:
                merge = merge.when_not_matched_insert_all(where)
            case "not matched", _:
                merge = merge.when_not_matched_insert(values, where)
            case _, "delete":
                merge = merge.when_not_matched_by_source_delete(where)
            case _:
                merge = merge.when_not_matched_by_source_update(values, where)
    return merge.execute()


NUMBERS = itertools.count()
ROWS = st.lists(st.fixed_dictionaries({c: st.sampled_from(v) for c, v in VALUES.items()}), max_size=6)


def check(format: str, folder: str, pieces: list[list[Row]], by: tuple[str, ...], merges: list[Any]) -> None:
    """The merges one after the other, each compared with the model and read by another implementation."""
    uri = f"{folder}/t{next(NUMBERS)}"
    bh.create(uri, SCHEMA, format=format, partition_by=by)
    table = bh.open(uri, format=format)
    now: list[Row] = []
    for piece in pieces:
        table.append(table_of(piece))
        now += piece
    for source, on, whens in merges:
        version = table.version
        try:
            want, figures = model(now, source, on, whens)
        except ValueError:
            with pytest.raises(errors.ConstraintViolationError):
                perform(table, table_of(source), on, whens)
            assert table.refresh().version == version
            continue
        done = perform(table, table_of(source), on, whens)
        assert (done.rows_updated, done.rows_deleted, done.rows_added) == figures
        assert (done.version is None) == (figures == (0, 0, 0))
        assert bag(by_peer(uri, format).to_pylist()) == bag(want)
        assert table.count() == len(want)
        now = want


def run(format: str, examples: int) -> None:
    folder = tempfile.mkdtemp(prefix="boathouse-merge-")
    merge = st.tuples(ROWS, matches(), st.lists(clauses(), min_size=1, max_size=4))

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=examples < 100,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=True,
    )
    @given(
        st.lists(ROWS, max_size=3),
        st.sampled_from([(), ("p",)]),
        st.lists(merge, min_size=1, max_size=3),
    )
    def lives(pieces: list[list[Row]], by: tuple[str, ...], merges: list[Any]) -> None:
        check(format, folder, pieces, by, merges)

    try:
        lives()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("format", ["toy", "delta"])
def test_random_merges(format):
    run(format, 15)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format", ["toy", "delta", "iceberg"])
def test_many_random_merges(format):
    run(format, 600)


def row(id: Any, f: Any = None, s: Any = None, p: Any = None) -> Row:
    return {"id": id, "f": f, "s": s, "p": p}


TARGET = [
    [row(1, NAN, "a", "x"), row(2, -0.0, None, "x"), row(3, 1.5, "ünï", None), row(None, None, "z", "y /=%")],
    [row(4, 0.0, "", "y /=%"), row(2**40, -math.inf, "a", None), row(0, NAN, None, "x"), row(-1, 7.0, "b", "x")],
]
SOURCE = [
    row(1, 0.0, "new", "y /=%"), row(None, NAN, "null", "x"), row(4, None, None, None),
    row(2**40, 2.5, "big", "x"), row(9, NAN, "nine", "z"), row(10, -0.0, None, None),
]  # fmt: skip
ID = relation("=", column("target", "id"), column("source", "id"))
SAFE = relation("<=>", column("target", "id"), column("source", "id"))
F_KEY = relation("=", column("target", "f"), column("source", "f"))
SMALL = relation("<", column("target", "id"), literal(5))
CASES = [
    (ID, [When("matched", "update", None, None), When("not matched", "insert", None, None)]),
    (SAFE, [When("matched", "delete", None, SMALL), When("matched", "update", {"p": column("source", "s")}, None),
            When("not matched by source", "update", {"id": plus(column("target", "id"), 100)}, SMALL),
            When("not matched by source", "delete", None, None)]),
    (F_KEY, [When("matched", "delete", None, None)]),
    (F_KEY, [When("matched", "update", {"id": column("source", "id")}, None)]),
    (both([ID, relation("<>", column("target", "s"), column("source", "s")), SMALL]),
     [When("matched", "update", {"s": literal("hit"), "f": literal(NAN)}, None),
      When("not matched", "insert", {"id": column("source", "id"), "p": literal("z")},
           relation(">=", column("source", "f"), literal(0.0))),
      When("not matched", "insert", None, None)]),
    (relation("<", column("target", "f"), column("source", "f")),
     [When("matched", "update", {"s": column("source", "s")}, relation("=", column("source", "id"), literal(2**40)))]),
]  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("case", range(len(CASES)))
def test_spark_does_the_same(spark, tmp_path, case):
    on, whens = CASES[case]
    results = []
    for name, data in (("local", table_of(SOURCE)), ("spark", spark.createDataFrame(table_of(SOURCE)))):
        uri = str(tmp_path / name)
        bh.create(uri, SCHEMA, format="delta", partition_by="p")
        table = bh.open(uri)
        for piece in TARGET:
            table.append(table_of(piece))
        try:
            done = perform(table, data, on, whens)
            figures = {n: getattr(done, n) for n in ("rows_updated", "rows_deleted", "rows_added", "rows_copied")}
        except errors.ConstraintViolationError:
            figures = {}
        results.append(
            (bag(by_peer(uri, "delta").to_pylist()), figures, table.history(limit=1)[0].metrics if figures else None)
        )
    try:
        want, figures = model([r for piece in TARGET for r in piece], SOURCE, on, whens)
    except ValueError:
        assert results[0][1] == results[1][1] == {}
        return
    assert results[0][0] == results[1][0] == bag(want)
    assert results[0][1] == results[1][1] and tuple(results[0][1].values())[:3] == figures

"""Random lives of a table against a plain Python model with Spark's semantics, judged by each format's reference."""

from __future__ import annotations

import datetime as dt
import math
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from peers import by_peer
from toy_format.state import TABLES

import boathouse as bh
from makers.traits import TRAITS

UTC = dt.UTC
NAN = float("nan")
TYPES = {
    "id": pa.int64(),
    "f": pa.float64(),
    "s": pa.string(),
    "d": pa.date32(),
    "n": pa.decimal128(10, 2),
    "ts": pa.timestamp("us", "UTC"),
    "b": pa.bool_(),
    "p": pa.string(),
}
VALUES: dict[str, list[Any]] = {
    "id": [*range(12), -1, 2**62, None],
    "f": [NAN, -0.0, 0.0, 1.5, -2.25, math.inf, -math.inf, 5e-324, 1.7976931348623157e308, None],
    "s": ["", "a", "A", "ünï", "東京", "🙂 é", "zz" * 40, None],
    "d": [dt.date(1582, 10, 15), dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31), None],
    "n": [Decimal("0.00"), Decimal("-1.25"), Decimal("1.25"), Decimal("99999999.99"), None],
    "ts": [
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        dt.datetime(2024, 2, 29, 12, 0, 0, 1, UTC),
        dt.datetime(2024, 2, 29, 12, 0, tzinfo=UTC),
        None,
    ],
    "b": [True, False, None],
    "p": ["a", "b", "ü /%=x", None],
    "x": [0, 1, 7, None],
}
PARTITIONS: dict[str, list[list[str]]] = {
    "toy": [[], ["p"]],
    "delta": [[], ["p"], ["d"], ["b", "p"], ["n"], ["ts"], ["id", "d"], ["f"]],
    "iceberg": [
        [], ["p"], ["s"], ["b", "n"], ["f"], ["d"], ["bucket(4, id)"], ["bucket(3, s)", "truncate(2, s)"],
        ["day(ts)", "p"], ["year(d)"], ["month(ts)"], ["hour(ts)"], ["truncate(5, id)"], ["truncate(50, n)"],
    ],
    "lance": [[]],
}  # fmt: skip
MAINTAINED = ("toy", "delta")
"""Formats with vacuum and restore."""
EXTRA = ["x1", "x2", "X-thrée", "X four"]


def extra_of(format: str) -> list[str]:
    """The columns that a table of this format can get."""
    return EXTRA if TRAITS[format].spaced_names else [name for name in EXTRA if " " not in name]


def values_of(column: str) -> list[Any]:
    return VALUES["x"] if column in EXTRA else VALUES[column]


def sql(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return f"cast('{value}' as double)"
        case str():
            return f"'{value}'"
        case dt.datetime():
            return f"timestamp '{value.isoformat().replace('+00:00', 'Z')}'"
        case dt.date():
            return f"date '{value}'"
    return str(value)


def order(value: Any) -> Any:
    """A key that compares as Spark compares: NaN greatest and equal to itself, the two zeros the same."""
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value + 0.0)
    return value.encode() if isinstance(value, str) else value


def compare(op: str, a: Any, b: Any) -> bool | None:
    if op == "<=>":
        return (a is None) == (b is None) and (a is None or order(a) == order(b))
    if a is None or b is None:
        return None
    x, y = order(a), order(b)
    return {"=": x == y, "<>": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]


@dataclass(frozen=True)
class Predicate:
    """SQL text and what it means for a row; `columns` are those it names."""

    text: str
    holds: Any = field(repr=False)
    columns: frozenset[str] = frozenset()

    def true(self, row: dict[str, Any]) -> bool:
        return self.holds(row) is True


def _and(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _not(a: bool | None) -> bool | None:
    return None if a is None else not a


@st.composite
def comparisons(draw: Any) -> Predicate:
    column = draw(st.sampled_from([*TYPES, EXTRA[0]]))
    name, only = f"`{column}`", frozenset([column])
    kind = draw(st.sampled_from(["compare", "compare", "null", "in", "between"]))
    one = st.sampled_from(values_of(column))
    if kind == "null":
        if draw(st.booleans()):
            return Predicate(f"{name} is null", lambda r: r[column] is None, only)
        return Predicate(f"{name} is not null", lambda r: r[column] is not None, only)
    if kind == "in":
        items = draw(st.lists(one, min_size=1, max_size=3))
        text = f"{name} in ({', '.join(map(sql, items))})"

        def within(r: dict[str, Any]) -> bool | None:
            found = [compare("=", r[column], v) for v in items]
            return True if True in found else None if None in found else False

        return Predicate(text, within, only)
    if kind == "between":
        a, b = draw(one), draw(one)
        text = f"{name} between {sql(a)} and {sql(b)}"
        return Predicate(text, lambda r: _and(compare(">=", r[column], a), compare("<=", r[column], b)), only)
    op, value = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])), draw(one)
    return Predicate(f"{name} {op} {sql(value)}", lambda r: compare(op, r[column], value), only)


def _combine(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    def both(pair: tuple[Predicate, Predicate]) -> Predicate:
        a, b = pair
        return Predicate(f"({a.text} and {b.text})", lambda r: _and(a.holds(r), b.holds(r)), a.columns | b.columns)

    def either(pair: tuple[Predicate, Predicate]) -> Predicate:
        a, b = pair
        meaning = lambda r: _not(_and(_not(a.holds(r)), _not(b.holds(r))))  # noqa: E731
        return Predicate(f"({a.text} or {b.text})", meaning, a.columns | b.columns)

    def negated(a: Predicate) -> Predicate:
        return Predicate(f"not ({a.text})", lambda r: _not(a.holds(r)), a.columns)

    pairs = st.tuples(inner, inner)
    return st.one_of(pairs.map(both), pairs.map(either), inner.map(negated))


PREDICATES = st.recursive(comparisons(), _combine, max_leaves=4)
ROWS = st.lists(st.fixed_dictionaries({c: st.sampled_from(values_of(c)) for c in [*TYPES, *EXTRA]}), max_size=12)
WHO = st.integers(0, 1)


def canonical(row: dict[str, Any]) -> tuple[Any, ...]:
    """Values that compare by identity of content: NaN is itself, the two zeros differ."""
    return tuple(sorted((k, repr(v) if isinstance(v, float) else v) for k, v in row.items()))


def bag(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(map(canonical, rows))


def zeroless(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """A bag in which the two zeros are one."""
    return bag([{k: v + 0.0 if isinstance(v, float) else v for k, v in r.items()} for r in rows])


@dataclass(frozen=True)
class State:
    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]


def kind_of(column: str) -> pa.DataType:
    return pa.int32() if column in EXTRA else TYPES[column]


class Life(RuleBasedStateMachine):
    format = "toy"
    made_with: ClassVar[dict[str, str]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="boathouse-model-")
        self.uri = os.path.join(self.folder, "täble")
        self.now = State(tuple(TYPES), ())
        self.past: dict[int, State] = {}
        self.owned: dict[int, dict[str, str]] = {}
        self.gone: set[int] = set()
        self.commits: list[str] = []
        self.applied: dict[str, int] = {}
        self.properties: dict[str, str] = {}
        self.handles: list[Any] = []

    @initialize(data=st.data())
    def create(self, data: Any) -> None:
        by = data.draw(st.sampled_from(PARTITIONS[self.format]))
        schema = pa.schema([pa.field(n, t) for n, t in TYPES.items()])
        bh.create(self.uri, schema, format=self.format, partition_by=by, properties=self.made_with)
        self.handles = [bh.open(self.uri, format=self.format) for _ in range(2)]
        [first] = self.handles[0].history()
        self.landed(first)

    def landed(self, done: Any) -> None:
        """A commit, which is a version of its own unless it made none."""
        assert done.commit not in self.commits
        self.commits.append(done.commit)
        if done.version is not None and not getattr(done, "metadata_only", False):
            assert done.version not in self.past
            self.past[done.version] = self.now
            self.owned[done.version] = dict(self.properties)

    def set_rows(self, rows: list[dict[str, Any]], done: Any) -> None:
        assert done.version is not None
        self.now = State(self.now.columns, tuple(rows))
        self.landed(done)

    def fitting(self, rows: list[dict[str, Any]], columns: tuple[str, ...] | None = None) -> list[dict[str, Any]]:
        """The generated rows with the table's columns; those not written are null."""
        written = self.now.columns if columns is None else columns
        return [{c: r[c] if c in written else None for c in self.now.columns} for r in rows]

    def data(self, rows: list[dict[str, Any]], columns: tuple[str, ...] | None = None) -> pa.Table:
        names = self.now.columns if columns is None else columns
        return pa.table({c: pa.array([r[c] for r in rows], kind_of(c)) for c in names})

    @rule(rows=ROWS, who=WHO)
    def append(self, rows: list[dict[str, Any]], who: int) -> None:
        new = self.fitting(rows)
        done = self.handles[who].append(self.data(new))
        assert done.rows_added == len(new)
        self.set_rows([*self.now.rows, *new], done)

    @rule(rows=ROWS, who=WHO, pick=st.permutations(list(TYPES)), size=st.integers(1, len(TYPES)))
    def append_part(self, rows: list[dict[str, Any]], who: int, pick: list[str], size: int) -> None:
        columns = tuple(pick[:size])
        new = self.fitting(rows, columns)
        done = self.handles[who].append(self.data(new, columns))
        self.set_rows([*self.now.rows, *new], done)

    @rule(rows=ROWS, who=WHO, app=st.sampled_from(["etl", "ünï"]), version=st.integers(0, 3))
    def append_once(self, rows: list[dict[str, Any]], who: int, app: str, version: int) -> None:
        new = self.fitting(rows)
        done = self.handles[who].append(self.data(new), txn=(app, version))
        if self.applied.get(app, -1) >= version:
            assert done.skipped and done.version is None and done.rows_added == 0
        else:
            self.applied[app] = version
            self.set_rows([*self.now.rows, *new], done)

    @rule(rows=ROWS, who=WHO)
    def append_wider(self, rows: list[dict[str, Any]], who: int) -> None:
        name = next((c for c in extra_of(self.format) if c not in self.now.columns), None)
        if name is None:
            return
        self.now = State((*self.now.columns, name), tuple({**r, name: None} for r in self.now.rows))
        new = self.fitting(rows)
        done = self.handles[who].append(self.data(new), merge_schema=True)
        self.set_rows([*self.now.rows, *new], done)

    @rule(rows=ROWS, who=WHO)
    def overwrite(self, rows: list[dict[str, Any]], who: int) -> None:
        new = self.fitting(rows)
        done = self.handles[who].overwrite(self.data(new))
        assert (done.rows_added, done.rows_deleted) == (len(new), len(self.now.rows))
        self.set_rows(new, done)

    @rule(rows=ROWS, who=WHO, where=PREDICATES)
    def overwrite_where(self, rows: list[dict[str, Any]], who: int, where: Predicate) -> None:
        if not where.columns <= set(self.now.columns):
            return
        new = [r for r in self.fitting(rows) if where.true(r)]
        stay = [r for r in self.now.rows if not where.true(r)]
        done = self.handles[who].overwrite(self.data(new), where=where.text)
        assert (done.rows_added, done.rows_deleted) == (len(new), len(self.now.rows) - len(stay))
        if done.version is not None:
            self.set_rows([*stay, *new], done)

    @rule(who=WHO, where=PREDICATES)
    def delete(self, who: int, where: Predicate) -> None:
        if not where.columns <= set(self.now.columns):
            return
        stay = [r for r in self.now.rows if not where.true(r)]
        done = self.handles[who].delete(where.text)
        assert done.rows_deleted == len(self.now.rows) - len(stay)
        assert (done.version is None) == (len(stay) == len(self.now.rows))
        if done.version is not None:
            self.set_rows(stay, done)

    @rule(who=WHO, size=st.sampled_from([None, 4000]), most=st.sampled_from([None, 1]))
    def optimize(self, who: int, size: int | None, most: int | None) -> None:
        done = self.handles[who].optimize(target_file_bytes=size, commit_bytes=most)
        assert (done.rows_added, done.rows_deleted, done.version is None) == (0, 0, not done.versions)
        entries = {e.version: e for e in self.handles[who].history(limit=len(done.versions))}
        for version in done.versions:
            self.landed(entries[version])

    @rule(who=WHO, data=st.data())
    def restore(self, who: int, data: Any) -> None:
        there = [v for v in self.past if v not in self.gone]
        if self.format not in MAINTAINED or not there:
            return
        version = data.draw(st.sampled_from(there))
        same = (self.past[version], self.owned[version]) == (self.now, self.properties)
        done = self.handles[who].restore(version)
        self.now, self.properties = self.past[version], dict(self.owned[version])
        assert done.version is not None or same
        if done.version is not None:
            self.landed(done)

    @rule(who=WHO, mode=st.sampled_from(["full", "lite"]))
    def vacuum(self, who: int, mode: str) -> None:
        if self.format not in MAINTAINED:
            return
        done = self.handles[who].vacuum(0, mode=mode, enforce_retention_duration=False)
        assert not done.failed
        self.gone |= set(self.past)
        entries = {e.version: e for e in self.handles[who].history(limit=2)}
        for version in done.versions:
            self.landed(entries[version])

    @rule(who=WHO)
    def add_column(self, who: int) -> None:
        name = next((c for c in extra_of(self.format) if c not in self.now.columns), None)
        if name is None:
            return
        done = self.handles[who].add_column(name, "int")
        self.now = State((*self.now.columns, name), tuple({**r, name: None} for r in self.now.rows))
        self.landed(done)

    @rule(who=WHO, key=st.sampled_from(["owner", "my.key"]), value=st.sampled_from(["", "x", "ü", None]))
    def set_properties(self, who: int, key: str, value: str | None) -> None:
        done = self.handles[who].set_properties({key: value})
        self.properties = {k: v for k, v in {**self.properties, key: value}.items() if v is not None}
        if done.commit is not None:
            self.landed(done)

    @rule(who=WHO)
    def refresh(self, who: int) -> None:
        self.handles[who].refresh()

    @rule(where=PREDICATES)
    def look(self, where: Predicate) -> None:
        if not where.columns <= set(self.now.columns):
            return
        table = bh.open(self.uri, format=self.format)
        wanted = [r for r in self.now.rows if where.true(r)]
        assert table.scan(where=where.text).count() == len(wanted)
        assert bag(table.scan(where=where.text).to_arrow().to_pylist()) == bag(wanted)
        found = table.scan(columns=["P", "id"], where=where.text).to_arrow()
        assert bag(found.to_pylist()) == bag([{"p": r["p"], "id": r["id"]} for r in wanted])

    @rule(data=st.data())
    def travel(self, data: Any) -> None:
        there = [v for v in self.past if v not in self.gone]
        if not there:
            return
        version = data.draw(st.sampled_from(there))
        then = self.past[version]
        table = bh.open(self.uri, format=self.format, version=version)
        assert table.schema.names == then.columns
        assert bag(table.to_arrow().to_pylist()) == bag(list(then.rows))
        assert table.count() == len(then.rows)

    @rule(data=st.data())
    def changes(self, data: Any) -> None:
        order = [v for v in self.past if v not in self.gone]
        if not order:
            return
        first = data.draw(st.integers(0, len(order) - 1))
        last = data.draw(st.integers(first, len(order) - 1))
        if not first and self.gone:  # what it is compared with is gone
            return
        table = bh.open(self.uri, format=self.format)
        found = table.changes(order[first], order[last]).to_arrow().to_pylist()
        columns = self.past[order[last]].columns
        rows = self.past[order[first - 1]].rows if first else ()
        left = zeroless([{c: r.get(c) for c in columns} for r in rows])
        for r in found:
            assert r["_commit_version"] in order[first : last + 1]
            one = zeroless([{c: r[c] for c in columns}])
            if r["_change_type"] in ("insert", "update_postimage"):
                left.update(one)
            else:
                left.subtract(one)
        left = +left if all(n >= 0 for n in left.values()) else left
        assert left == zeroless(list(self.past[order[last]].rows))

    @invariant()
    def agrees(self) -> None:
        if not self.handles:
            return
        table = bh.open(self.uri, format=self.format)
        assert table.schema.names == self.now.columns
        assert bag(table.to_arrow().to_pylist()) == bag(list(self.now.rows))
        assert table.count() == len(self.now.rows)
        history = table.history()
        assert [e.commit for e in history] == self.commits[::-1]
        assert [e.version for e in history if not e.metadata_only] == list(self.past)[::-1]
        assert [e.timestamp_ms for e in history] == sorted((e.timestamp_ms for e in history), reverse=True)
        own = {k: table.properties.get(k) for k in ("owner", "my.key") if k in table.properties}
        assert own == self.properties

    def teardown(self) -> None:
        try:
            if self.handles:
                assert bag(by_peer(self.uri, self.format).to_pylist()) == bag(list(self.now.rows))
        finally:
            TABLES.pop(f"file://{self.uri}", None)
            shutil.rmtree(self.folder)


CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def live(format: str, properties: dict[str, str], examples: int, steps: int) -> None:
    machine = type(f"Life_{format}", (Life,), {"format": format, "made_with": properties})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=CHECKS,
            derandomize=examples < 50,
            phases=[Phase.generate, Phase.shrink],
            print_blob=True,
        ),
    )


def test_random_lives(format_name, properties):
    live(format_name, properties, 3, 14)


@pytest.mark.parametrize("examples", [3, pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_random_lives_with_change_files(examples):
    live("delta", {"delta.enableChangeDataFeed": "true"}, examples, 14)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_random_lives(format_name, properties):
    live(format_name, properties, int(os.environ.get("BOATHOUSE_LIVES", "40")), 30)

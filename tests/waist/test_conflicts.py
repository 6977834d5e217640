"""Every pair of writes, one landing while the other is about to commit: the result is one of the two serial orders,
or the loser is told so; nothing is lost, doubled or left behind."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from peers import by_peer

import boathouse as bh
from boathouse import errors, registry
from boathouse.ops import run as run_op
from boathouse.ops.handle import Handle
from boathouse.ops.table import create as create_op
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.features import LiveFiles
from boathouse.table.location import Location
from boathouse.testing.faults import Fault, FaultyStorage, Plan
from makers.traits import REAL, TRAITS

State = tuple[tuple[str, ...], tuple[tuple[Any, ...], ...], tuple[tuple[str, str], ...]]
"""Columns, rows and properties."""


@pytest.fixture(params=REAL)
def format_name(request) -> str:
    return request.param


def rows(*ids: int, **more: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), **more})


@dataclass(frozen=True)
class Write:
    """A write, and what it makes of a state; `then` raises ValueError where the write has to fail."""

    run: Callable[[Any], Any]
    then: Callable[[State], State]


def _append(*ids: int) -> Callable[[State], State]:
    def then(state: State) -> State:
        columns, old, properties = state
        if "id" not in columns:
            raise ValueError
        new = tuple(tuple(i if c == "id" else None for c in columns) for i in ids)
        return columns, old + new, properties

    return then


def _delete(keep: Callable[[int], bool]) -> Callable[[State], State]:
    def then(state: State) -> State:
        columns, old, properties = state
        if "id" not in columns:
            raise ValueError
        return columns, tuple(r for r in old if keep(r[columns.index("id")])), properties

    return then


def _overwrite(*ids: int) -> Callable[[State], State]:
    return lambda s: _append(*ids)((s[0], (), s[2]))


def _replace(keep: Callable[[int], bool], *ids: int) -> Callable[[State], State]:
    return lambda s: _append(*ids)(_delete(keep)(s))


def _schema(state: State) -> State:
    return ("other",), (("x",),), state[2]


def _column(name: str) -> Callable[[State], State]:
    def then(state: State) -> State:
        if name in state[0]:
            raise ValueError
        return (*state[0], name), tuple((*r, None) for r in state[1]), state[2]

    return then


def _properties(**new: str) -> Callable[[State], State]:
    return lambda s: (s[0], s[1], tuple(sorted({**dict(s[2]), **new}.items())))


WRITES: dict[str, Write] = {
    "append": Write(lambda t: t.append(rows(100, 1)), _append(100, 1)),
    "delete": Write(lambda t: t.delete("id < 3"), _delete(lambda i: i >= 3)),
    "delete the same file": Write(lambda t: t.delete("id in (2, 4)"), _delete(lambda i: i not in (2, 4))),
    "delete a file": Write(lambda t: t.delete("id < 5"), _delete(lambda i: i >= 5)),
    "delete all": Write(lambda t: t.delete(), lambda s: (s[0], (), s[2])),
    "overwrite": Write(lambda t: t.overwrite(rows(200)), _overwrite(200)),
    "overwrite where": Write(lambda t: t.overwrite(rows(1, 1), where="id < 4"), _replace(lambda i: i >= 4, 1, 1)),
    "overwrite schema": Write(lambda t: t.overwrite(pa.table({"other": ["x"]}), overwrite_schema=True), _schema),
    "compact": Write(lambda t: t.optimize(), lambda s: s),
    "add column": Write(lambda t: t.add_column("extra", "int"), _column("extra")),
    "add other column": Write(lambda t: t.add_column("second", "int"), _column("second")),
    "set properties": Write(lambda t: t.set_properties({"a": "1"}), _properties(a="1")),
    "set the same property": Write(lambda t: t.set_properties({"a": "2"}), _properties(a="2")),
}
VARIANTS = {"delete a file", "delete all", "add other column", "set the same property", "delete the same file"}
PAIRS = [
    pytest.param(a, b, id=f"{a} over {b}", marks=[pytest.mark.slow] if VARIANTS & {a, b} and a != "delete" else [])
    for a, b in itertools.product(WRITES, WRITES)
]


def _moved(ids: set[int]) -> Callable[[State], State]:
    return lambda s: (s[0], tuple((r[0] + 1000, *r[1:]) if r[0] in ids else r for r in s[1]), s[2])


MARKING = {
    **{name: WRITES[name] for name in ("delete", "delete the same file", "compact")},
    "update": Write(lambda t: t.update({"id": "id + 1000"}, "id in (2, 3)"), _moved({2, 3})),
    "update others": Write(lambda t: t.update({"id": "id + 1000"}, "id in (7, 1002)"), _moved({7, 1002})),
}
"""Writes that mark rows, and one that writes files without them."""
BESIDE = {**MARKING, **{name: WRITES[name] for name in ("append", "overwrite where", "delete a file")}}


def made(path: str, format: str, properties: dict[str, str] | None = None) -> None:
    bh.create(path, "id bigint", format=format, properties=properties)
    table = bh.open(path)
    table.append(rows(*range(5)))
    table.append(rows(*range(5, 10)))


def state_of(path: str) -> State:
    table = bh.open(path)
    own = tuple(sorted((k, v) for k, v in table.properties.items() if k == "a"))
    return table.schema.names, _sorted(tuple(r.values()) for r in table.to_arrow().to_pylist()), own


def _sorted(found: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple(sorted(found, key=repr))


def meanwhile(monkeypatch: pytest.MonkeyPatch, module: Any, act: Callable[[], Any], times: int = 1) -> list[int]:
    """`act` happens right before a commit of the module, `times` times; the list counts how often it did."""
    real, calls, inside = module.commit, [], []

    def commit(*arguments: Any) -> Any:
        if not inside and len(calls) < times:
            calls.append(1)
            inside.append(1)
            try:
                act()
            finally:
                inside.pop()
        return real(*arguments)

    monkeypatch.setattr(module, "commit", commit)
    return calls


def orphans(path: str, format: str) -> set[str]:
    """Files on disk that no version needs; manifests that a later attempt would have used again are harmless."""
    snapshot = registry.load(format).open(TableContext(Location(f"file://{path}"), Stores()))
    needed = {u.removeprefix("file://") for u in snapshot.offers(LiveFiles).uris()}
    there = {os.path.join(f, n) for f, _, names in os.walk(path) for n in names}
    return {f for f in there - needed if not f.endswith(("-m0.avro", "version-hint.text", ".crc"))}


def rows_by_peer(path: str, format: str) -> tuple[tuple[Any, ...], ...]:
    return _sorted(tuple(r.values()) for r in by_peer(path, format).to_pylist())


def serial(state: State, *writes: Write) -> State | None:
    try:
        for write in writes:
            state = write.then(state)
    except ValueError:
        return None
    return state[0], _sorted(state[1]), state[2]


@pytest.mark.few(36)
@pytest.mark.parametrize("ours,theirs", PAIRS)
def test_two_writes_are_serial(format_name, tmp_path, monkeypatch, ours, theirs):
    path = str(tmp_path / "t")
    made(path, format_name)
    start, first, second = state_of(path), WRITES[ours], WRITES[theirs]
    table, other = bh.open(path), bh.open(path)
    calls = meanwhile(monkeypatch, run_op, lambda: second.run(other))
    try:
        done = first.run(table)
    except errors.BoathouseError as error:
        assert isinstance(error, errors.CommitConflictError | errors.SchemaError | errors.ExpressionError) or (
            isinstance(error, errors.InvalidArgumentError) and ours == theirs and "column" in ours
        ), error
        assert state_of(path) == serial(start, second)
        assert (ours, theirs) not in MUST_WORK - (OVER_NEW_TABLES if TRAITS[format_name].overwrite_replaces else set())
    else:
        assert calls
        orders = {"after": serial(start, second, first), "before": serial(start, first, second)}
        found = state_of(path)
        assert found in orders.values()
        if found == orders["after"] != orders["before"]:
            before = serial(start, second)
            gone = Counter(r[0] for r in before[1]) - Counter(r[0] for r in found[1])
            assert done.rows_deleted - done.rows_added == len(before[1]) - len(found[1]), done
            assert gone.total() <= done.rows_deleted
        assert state_of(path)[1] == _sorted(tuple(r.values()) for r in table.to_arrow().to_pylist())
    assert rows_by_peer(path, format_name) == state_of(path)[1]
    assert orphans(path, format_name) == set()


@pytest.mark.few(10)
@pytest.mark.parametrize(
    "kind",
    ["iceberg-vectors", *(pytest.param(n, marks=pytest.mark.slow) for n in ("iceberg-positions", "delta-vectors"))],
)
@pytest.mark.parametrize("theirs", BESIDE)
@pytest.mark.parametrize("ours", MARKING)
def test_two_writes_that_mark_rows_are_serial(properties_of, tmp_path, monkeypatch, kind, ours, theirs):
    """Every one of them can be planned again, so that none may fail."""
    path, format = str(tmp_path / "t"), kind.split("-")[0]
    made(path, format, properties_of(kind))
    bh.open(path).delete("id = 0")
    start, first, second = state_of(path), MARKING[ours], BESIDE[theirs]
    table, other = bh.open(path), bh.open(path)
    assert meanwhile(monkeypatch, run_op, lambda: second.run(other)) == []
    first.run(table)
    found = state_of(path)
    assert found in (serial(start, second, first), serial(start, first, second))
    assert rows_by_peer(path, format) == found[1]
    assert orphans(path, format) == set()


MUST_WORK = {
    *itertools.product(
        ["append"], ["append", "compact", "delete", "delete all", "overwrite", "set properties", "overwrite where"]
    ),
    *itertools.product(
        ["delete", "delete the same file", "delete all", "overwrite", "overwrite where"],
        ["append", "compact", "delete", "delete the same file", "set properties", "overwrite where"],
    ),
    *itertools.product(
        ["compact"], ["append", "compact", "delete", "delete all", "set properties", "overwrite", "overwrite where"]
    ),
    ("set properties", "append"),
    ("add column", "append"),
    ("add column", "add other column"),
    ("add column", "set properties"),
    ("overwrite schema", "append"),
    ("overwrite", "overwrite"),
}
"""(ours, theirs) that may not fail: nobody would see why."""
OVER_NEW_TABLES = {("append", "overwrite"), ("compact", "overwrite")}
"""Where an overwrite replaces the table, what was planned before it is refused, as Lance's own library does."""


def test_two_creators(format_name, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    meanwhile(monkeypatch, create_op, lambda: bh.write(rows(1), path, format=format_name))
    with pytest.raises(errors.AlreadyExistsError):
        bh.write(rows(2), path, format=format_name)
    assert state_of(path)[1] == ((1,),) == rows_by_peer(path, format_name)
    assert orphans(path, format_name) == set()


@pytest.mark.parametrize("mode", ["append", "overwrite", "ignore"])
def test_a_table_created_meanwhile_is_written_by_mode(format_name, tmp_path, monkeypatch, mode):
    path = str(tmp_path / "t")
    meanwhile(monkeypatch, create_op, lambda: bh.write(rows(1), path, format=format_name))
    done = bh.write(rows(2), path, format=format_name, mode=mode)
    wanted = {"append": ((1,), (2,)), "overwrite": ((2,),), "ignore": ((1,),)}[mode]
    assert state_of(path)[1] == wanted == rows_by_peer(path, format_name)
    assert bool(done.skipped) == (mode == "ignore")
    assert orphans(path, format_name) == set()


def test_rows_read_once_are_not_lost_silently_over_a_table_created_meanwhile(format_name, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    meanwhile(monkeypatch, create_op, lambda: bh.write(rows(1), path, format=format_name))
    with pytest.raises(errors.CommitConflictError, match="only once"):
        bh.write(rows(2).to_reader(), path, format=format_name, mode="append")
    assert state_of(path)[1] == ((1,),) and orphans(path, format_name) == set()


def test_a_conflict_is_planned_again_and_counted(format_name, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    made(path, format_name)
    table, other = bh.open(path), bh.open(path)
    ids = iter(range(1, 100))
    meanwhile(monkeypatch, run_op, lambda: other.append(rows(next(ids))), times=3)
    done = table.overwrite(rows(7), where="id < 50")
    if TRAITS[format_name].fixed_units:
        assert done.retries == 1 and table.count() == 2  # the first attempt looks for no newer head
    else:
        assert done.retries == 3 and done.rows_deleted == 13 and table.count() == 1
    assert orphans(path, format_name) == set()


def test_a_transaction_that_another_applied_is_skipped(format_name, tmp_path, monkeypatch):
    path = str(tmp_path / "t")
    made(path, format_name)
    table, other = bh.open(path), bh.open(path)
    meanwhile(monkeypatch, run_op, lambda: other.append(rows(100), txn=("etl", 5)))
    done = table.append(rows(100), txn=("etl", 5))
    assert done.version is None and done.skipped and done.rows_added == 0
    assert table.count() == 11 and orphans(path, format_name) == set()


def test_an_unknown_outcome_keeps_the_files(format_name, tmp_path):
    path = str(tmp_path / "t")
    made(path, format_name)
    before = {str(p) for p in tmp_path.rglob("*")}
    lost: set[str] = set()

    def silent(o: Any) -> Fault | None:
        if o.name == "put" and o.key.endswith(TRAITS[format_name].document):
            lost.add(o.key)
            return Fault.LOST
        return Fault.UNSENT if o.key in lost else None

    stores = Stores(wrap=lambda inner: FaultyStorage(inner, Plan(choose=silent)))
    found = registry.load(format_name)
    location = Location(f"file://{path}")
    table = bh.api.table.Table(Handle(found.open(TableContext(location, stores))))
    with pytest.raises(errors.CommitUnknownError):
        table.append(rows(300))
    kept = {str(p) for p in tmp_path.rglob("*")} - before
    assert any(p.endswith((".parquet", ".lance")) for p in kept)
    assert 300 in [r[0] for r in rows_by_peer(path, format_name)]

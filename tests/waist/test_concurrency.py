"""Many writers, lost answers, killed processes: every row once, no version lost, and peers agree."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable

import pyarrow as pa
import pytest
from peers import PEERS, by_peer

import boathouse as bh
from boathouse import errors, registry
from boathouse.api.table import Table
from boathouse.bits import system
from boathouse.ops.handle import Handle
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location
from boathouse.testing.faults import Fault, FaultyStorage, Plan
from makers.traits import REAL, TRAITS

FORK = multiprocessing.get_context("fork")
WRITERS, APPENDS = 8, 25


@pytest.fixture(params=REAL)
def format_name(request) -> str:
    return request.param


@pytest.fixture
def uri(format_name, tmp_path) -> str:
    path = str(tmp_path / "table")
    bh.create(path, "writer int, n int, note string", format=format_name)
    return path


def rows(writer: int, n: int) -> pa.Table:
    return pa.table({"writer": pa.array([writer], pa.int32()), "n": pa.array([n], pa.int32()), "note": ["x"]})


def opened(uri: str, format: str, plan: Plan | None = None) -> Table:
    """The table, over a storage that misbehaves as planned."""
    location = Location(f"file://{uri}")
    stores = Stores() if plan is None else Stores(wrap=lambda inner: FaultyStorage(inner, plan))
    found = registry.load(format)
    return Table(Handle(found.open(TableContext(location, stores))))


def rows_by_peer(uri: str, format: str) -> list[dict]:
    return sorted(by_peer(uri, format).to_pylist(), key=lambda r: (r["writer"], r["n"]))


def by_us(uri: str, format: str) -> list[dict]:
    return sorted(bh.open(uri, format=format).to_arrow().to_pylist(), key=lambda r: (r["writer"], r["n"]))


def run_all(target: Callable[..., None], arguments: list[tuple]) -> list[int | None]:
    processes = [FORK.Process(target=target, args=a) for a in arguments]
    for p in processes:
        p.start()
    for p in processes:
        p.join(300)
    return [p.exitcode for p in processes]


def append_many(uri: str, format: str, writer: int) -> None:
    for n in range(APPENDS):
        bh.open(uri, format=format).append(rows(writer, n))


@pytest.mark.slow
@pytest.mark.spec("D-001")
def test_eight_processes_append(uri, format_name):
    before = len(bh.open(uri, format=format_name).history())
    codes = run_all(append_many, [(uri, format_name, w) for w in range(WRITERS)])
    assert codes == [0] * WRITERS
    wanted = [rows(w, n).to_pylist()[0] for w in range(WRITERS) for n in range(APPENDS)]
    assert by_us(uri, format_name) == wanted
    assert rows_by_peer(uri, format_name) == wanted
    table = bh.open(uri, format=format_name)
    created = 0 if TRAITS[format_name].creation_forgotten else before
    assert len(table.history()) == WRITERS * APPENDS + created
    assert versions_without_a_hole(uri, format_name) == WRITERS * APPENDS + max(before, 1)


def versions_without_a_hole(uri: str, format: str) -> int:
    """How many versions the folder holds; fails if one is missing between the first and the last."""
    folder, parse = {
        "delta": ("_delta_log", lambda n: int(n[:20]) if n.endswith(".json") and n[:20].isdigit() else None),
        "iceberg": ("metadata", lambda n: int(n[1:].split(".")[0]) if n.endswith(".metadata.json") else None),
        "lance": ("_versions", lambda n: 2**64 - 1 - int(n.split(".")[0]) if n.endswith(".manifest") else None),
    }[format]
    numbers = sorted(v for v in (parse(n) for n in os.listdir(f"{uri}/{folder}")) if v is not None)
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return len(numbers)


def append_with_faults(uri: str, format: str, writer: int) -> None:
    """Appends through a store that loses answers; an unknown outcome is settled before the row is written again."""
    seeds = itertools.count(writer * 1000)
    for n in range(8):
        while True:
            plan = Plan.seeded(
                next(seeds), rate=0.25, faults=[Fault.LOST, Fault.UNSENT], only=lambda o: o.name == "put"
            )
            table = opened(uri, format, plan)
            try:
                table.append(rows(writer, n))
                break
            except errors.CommitUnknownError as unknown:
                write_id = unknown.advice.split("'")[1]
                if bh.open(uri, format=format).find_write(write_id) is not None:
                    break
            except errors.StorageError:
                continue


def test_lost_answers_lose_and_double_nothing(uri, format_name):
    codes = run_all(append_with_faults, [(uri, format_name, w) for w in range(4)])
    assert codes == [0] * 4
    wanted = [rows(w, n).to_pylist()[0] for w in range(4) for n in range(8)]
    assert by_us(uri, format_name) == wanted
    assert rows_by_peer(uri, format_name) == wanted


def _write(uri: str, format: str, operation: str, at: int, fault: Fault) -> None:
    table = opened(uri, format, Plan.script(fault, at=at))
    if operation == "append":
        table.append(rows(7, 7))
    elif operation == "overwrite":
        table.overwrite(rows(8, 8))
    else:
        table.delete("n = 1")


@pytest.mark.few(4)
@pytest.mark.parametrize("operation", ["append", "overwrite", "delete"])
def test_a_killed_writer_leaves_the_old_or_the_new_version(uri, format_name, operation):
    killed(uri, format_name, operation)


@pytest.mark.parametrize("kind", ["iceberg-vectors", pytest.param("iceberg-positions", marks=pytest.mark.slow)])
def test_a_killed_delete_that_marks_rows_leaves_the_old_or_the_new_version(tmp_path, properties_of, kind):
    uri, format = str(tmp_path / "table"), kind.split("-")[0]
    bh.create(uri, "writer int, n int, note string", format=format, properties=properties_of(kind))
    killed(uri, format, "delete")


def killed(uri: str, format_name: str, operation: str) -> None:
    """Kills a writer before and after each of its requests."""
    table = bh.open(uri, format=format_name)
    table.append(pa.concat_tables([rows(0, n) for n in range(3)]))
    kept = [r for n in range(3) for r in rows(0, n).to_pylist()]
    after = {
        "append": [*kept, *rows(7, 7).to_pylist()],
        "overwrite": rows(8, 8).to_pylist(),
        "delete": [r for r in kept if r["n"] != 1],
    }[operation]
    seen_old = seen_new = kills = 0
    for at in range(1, 60):
        fault = Fault.KILL if at % 2 else Fault.CRASH_AFTER
        process = FORK.Process(target=_write, args=(uri, format_name, operation, at, fault))
        process.start()
        process.join(120)
        found = by_us(uri, format_name)
        assert found in (kept, after)
        assert rows_by_peer(uri, format_name) == found
        if process.exitcode == 0:
            assert found == after
            break
        assert process.exitcode in (-signal.SIGKILL, 137)
        kills += 1
        seen_old += found == kept
        seen_new += found == after
        if found == after:
            bh.open(uri, format=format_name).overwrite(pa.concat_tables([rows(0, n) for n in range(3)]))
    assert process.exitcode == 0 and kills >= 2 and seen_old >= 1


def test_a_stale_writer_over_cleaned_history_loses_nothing(uri, format_name):
    """Planned at v, then 20 foreign commits and a clean-up below the head: put-if-absent of v+1 would succeed."""

    def batches():
        for n in range(20):
            bh.open(uri, format=format_name).append(rows(1, n))
        PEERS[format_name].forget(uri, 1)
        yield from rows(0, 0).to_batches()

    bh.open(uri, format=format_name).append(pa.RecordBatchReader.from_batches(rows(0, 0).schema, batches()))
    wanted = [*rows(0, 0).to_pylist(), *(r for n in range(20) for r in rows(1, n).to_pylist())]
    assert by_us(uri, format_name) == wanted
    assert rows_by_peer(uri, format_name) == wanted


def test_a_put_below_a_cleaned_head_is_never_taken_for_a_commit(uri, format_name, monkeypatch):
    """The writer sleeps between finding the head and its put; 20 commits and a clean-up pass it by."""
    table = bh.open(uri, format=format_name)
    kind = type(table._handle.snapshot.commits)
    real, slept = kind.prepare, []

    def prepare(self, change):
        attempt = real(self, change)
        if change.operation == "append" and not slept:
            slept.append(1)
            for n in range(20):
                bh.open(uri, format=format_name).append(rows(1, n))
            PEERS[format_name].forget(uri, 1)
        return attempt

    monkeypatch.setattr(kind, "prepare", prepare)
    others = [r for n in range(20) for r in rows(1, n).to_pylist()]
    try:
        table.append(rows(0, 0))
        wanted = [*rows(0, 0).to_pylist(), *others]
    except errors.CommitUnknownError:
        wanted = others
    assert by_us(uri, format_name) == wanted
    assert rows_by_peer(uri, format_name) == wanted


def test_an_unanswered_commit_is_unknown_and_settled(uri, format_name):
    """The commit lands and nobody can say so: the error gives the write id, and find_write the version."""
    log = TRAITS[format_name].document
    landed: set[str] = set()

    def silent(o):
        if o.key.endswith(log) and o.name == "put":
            landed.add(o.key)
            return Fault.LOST
        return Fault.UNSENT if o.key in landed else None

    table = opened(uri, format_name, Plan(choose=silent))
    with system.use(system.SeededSystem(3)), pytest.raises(errors.CommitUnknownError) as caught:
        table.append(rows(5, 5))
    write_id = caught.value.advice.split("'")[1]
    assert bh.open(uri, format=format_name).find_write(write_id) is not None
    assert by_us(uri, format_name) == rows(5, 5).to_pylist() == rows_by_peer(uri, format_name)


def test_failed_writes_leave_no_data_files(uri, format_name):
    before = data_files(uri)
    bad = Plan(choose=lambda o: Fault.REFUSED if o.name == "put" else None)
    with pytest.raises((errors.StorageError, errors.CommitUnknownError)):
        opened(uri, format_name, bad).append(rows(1, 1))
    assert by_us(uri, format_name) == []
    assert data_files(uri) == before


def data_files(uri: str) -> set[str]:
    return {
        os.path.join(folder, name)
        for folder, _, names in os.walk(uri)
        for name in names
        if name.endswith((".parquet", ".lance")) and "_delta_log" not in folder
    }


def test_peers_read_files_that_spread_over_many_writers(uri, format_name):
    for n in range(12):
        bh.open(uri, format=format_name).append(rows(0, n))
    assert rows_by_peer(uri, format_name) == by_us(uri, format_name)

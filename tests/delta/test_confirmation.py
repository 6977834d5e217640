"""Commits put below a log that was cleaned, on tables with deletion vectors, column mapping and change feed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

import boathouse as bh
from boathouse.errors import BoathouseError, CommitUnknownError
from boathouse.table.attempt import Attempt
from boathouse.table.commit import FileCommitter

KINDS: dict[str, dict[str, str]] = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "mapped": {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
    "feed": {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    "copied": {"delta.enableChangeDataFeed": "true"},
}
STEPS: dict[str, tuple[Callable[[bh.Table], Any], Callable[[dict[int, int]], dict[int, int]]]] = {
    "append": (lambda t: t.append(rows({50: 0})), lambda d: d | {50: 0}),
    "delete": (lambda t: t.delete("id in (3, 4)"), lambda d: {k: v for k, v in d.items() if k not in (3, 4)}),
    "update": (lambda t: t.update({"v": "v + 1"}, "id in (3, 4)"), lambda d: d | {3: d[3] + 1, 4: d[4] + 1}),
    "upsert": (lambda t: t.upsert(rows({3: 7, 60: 6}), on="id"), lambda d: d | {3: 7, 60: 6}),
    "overwrite": (lambda t: t.overwrite(rows({5: 55}), where="id = 5"), lambda d: d | {5: 55}),
    "delete twice": (lambda t: (t.delete("id = 8"), t.delete("id = 7"))[1],
                     lambda d: {k: v for k, v in d.items() if k not in (7, 8)}),
}  # fmt: skip


def rows(values: dict[int, int]) -> pa.Table:
    return pa.table({"id": pa.array(values.keys(), pa.int64()), "v": pa.array(values.values(), pa.int64())})


@pytest.fixture(params=KINDS)
def table(request, tmp_path) -> bh.Table:
    t = bh.create(str(tmp_path / "t"), rows({}).schema, format="delta", properties=KINDS[request.param])
    t.append(rows(dict.fromkeys(range(10), 0)))
    t.delete("id = 9")
    return t


def go_past(path: Path) -> None:
    """Two appends of another writer, a checkpoint by deltalake, and every older file of the log gone."""
    other = bh.open(str(path))
    for i in (100, 101):
        other.append(rows({i: 0}))
    DeltaTable(str(path)).create_checkpoint()
    version = other.refresh().version
    for file in (path / "_delta_log").glob("0*"):
        if int(file.name[:20]) < version:
            file.unlink()


def around_the_put(monkeypatch, path: Path, before: bool) -> None:
    """The next put happens below a log that was cleaned, or is followed by others who clean it."""
    real = FileCommitter.publish

    def publish(self: FileCommitter, attempt: Attempt) -> Any:
        monkeypatch.setattr(FileCommitter, "publish", real)
        if before:
            go_past(path)
            return real(self, attempt)
        outcome = real(self, attempt)
        go_past(path)
        return outcome

    monkeypatch.setattr(FileCommitter, "publish", publish)


def state(path: Path) -> dict[int, int]:
    """As we read the table, and deltalake's engine."""
    found = bh.open(str(path)).to_arrow().to_pylist()
    theirs = pa.table(QueryBuilder().register("t", DeltaTable(str(path))).execute("select id, v from t"))
    assert sorted(map(str, theirs.to_pylist())) == sorted(map(str, found))
    assert len({r["id"] for r in found}) == len(found)
    return {r["id"]: r["v"] for r in found}


START = dict.fromkeys(range(9), 0)
OTHERS = {100: 0, 101: 0}


@pytest.mark.few(8)
@pytest.mark.parametrize("step", STEPS)
def test_what_is_put_below_a_cleaned_log_is_put_again(table, tmp_path, monkeypatch, step):
    write, model = STEPS[step]
    around_the_put(monkeypatch, tmp_path / "t", before=True)
    done = write(table)
    assert state(tmp_path / "t") == {**OTHERS, **model(START)}
    assert table.find_write(done.write_id) == done.version == bh.open(str(tmp_path / "t")).version


@pytest.mark.few(8)
@pytest.mark.parametrize("step", [s for s in STEPS if s != "delete twice"])
def test_what_others_followed_and_checkpointed_is_found_there(table, tmp_path, monkeypatch, step):
    write, model = STEPS[step]
    around_the_put(monkeypatch, tmp_path / "t", before=False)
    done = write(table)
    assert done.retries == 0
    assert state(tmp_path / "t") == model(START) | OTHERS


@pytest.mark.parametrize("change", ["id = 3", "id >= 0"])
def test_a_restore_that_is_put_below_a_cleaned_log_is_not_said_to_be_done(table, tmp_path, monkeypatch, change):
    """The files that it adds were in the table before, and stand in others' checkpoints as removed."""
    table.delete(change)
    before = state(tmp_path / "t")
    around_the_put(monkeypatch, tmp_path / "t", before=True)
    with pytest.raises(BoathouseError):
        table.restore(version=2)
    assert state(tmp_path / "t") == before | OTHERS


@pytest.mark.parametrize("change", ["id = 3", "id >= 0"])
def test_a_restore_that_others_followed_is_done_or_undecided(table, tmp_path, monkeypatch, change):
    table.delete(change)
    around_the_put(monkeypatch, tmp_path / "t", before=False)
    try:
        assert table.restore(version=2).retries == 0
    except CommitUnknownError:
        assert change == "id >= 0"
    assert state(tmp_path / "t") == START | OTHERS

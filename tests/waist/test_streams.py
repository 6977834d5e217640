"""Streams of tables of every format, in process: batches, restarts, and what ends a stream."""

from __future__ import annotations

import itertools
import json

import pyarrow as pa
import pytest
from peers import PEERS

import boathouse as bh
from boathouse import errors, registry
from boathouse.ops.stream.commits import Wanted
from boathouse.ops.stream.offset import INITIAL, Offset
from boathouse.ops.stream.source import Batch, Beginning, ReadLimit, TableStream
from boathouse.ops.tasks.difference import Difference, difference_rows
from boathouse.table.features import Restorable, Retention

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(params=["local"])
def engine_name(request) -> str:
    """Streams are planned in the same way for every engine."""
    return request.param


@pytest.fixture
def made(format_name, traits, properties, tmp_path, make_people):
    def make(count: int = 0, by: str | None = None, **more: str) -> bh.Table:
        partition_by = () if by is None else traits.by(by)
        uri, schema = str(tmp_path / "t"), make_people(0, 0).schema
        bh.create(uri, schema, format=format_name, partition_by=partition_by, properties={**properties, **more})
        t = bh.open(uri, format=format_name)
        if count:
            t.append(make_people(0, count))
        return t

    return make


class Query:
    """What Spark does with a stream: it keeps the offset as JSON, and may be restarted from it."""

    def __init__(self, t: bh.Table, wanted: Wanted = Wanted(), beginning: Beginning = Beginning()) -> None:
        self.t, self.wanted, self.beginning = t, wanted, beginning
        self.offset = json.dumps(INITIAL)
        self.restart()

    def restart(self) -> None:
        newest = bh.open(self.t.uri, format=self.t.format)._handle.snapshot
        self.stream = TableStream.of(newest, self.wanted, self.beginning)
        self.planned: Batch | None = None

    def plan(self, files: int | None = None, bytes: int | None = None) -> str:
        start = Offset.of(json.loads(self.offset))
        newest = self.stream.newest(self.planned and self.planned.newest)
        self.planned = self.stream.next(start, ReadLimit(files, bytes), newest, self.planned)
        return json.dumps(self.planned.end.document())

    def between(self, start: str, end: str) -> list[dict]:
        asked = Offset.of(json.loads(start)), Offset.of(json.loads(end))
        batch = self.planned
        if batch is None or (batch.start, batch.end) != asked:
            batch = self.stream.between(*asked, self.stream.base if batch is None else batch.newest)
        return [row for task in batch.tasks() for batch in _read(task) for row in batch.to_pylist()]

    def batch(self, files: int | None = None, bytes: int | None = None) -> list[dict] | None:
        """The rows of the next batch; None if nothing is new."""
        end = self.plan(files, bytes)
        if end == self.offset:
            return None
        found = self.between(self.offset, end)
        self.offset = end
        return found

    def ids(self, files: int | None = None, bytes: int | None = None) -> list[int] | None:
        found = self.batch(files, bytes)
        return None if found is None else sorted(r["id"] for r in found)


def _read(task):
    if isinstance(task, Difference):
        return difference_rows(task)
    return registry.tasks(task.read.format).read(task)


def test_all_rows_then_what_is_added(made, make_people):
    t = made(6, by="city")
    t.delete("id = 2")
    query = Query(t)
    assert query.ids() == [0, 1, 3, 4, 5]
    assert query.ids() is None
    t.append(make_people(6, 8))
    t.append(make_people(8, 9))
    query.restart()
    assert query.ids() is None or query.offset  # what was read is known by the offset alone
    assert query.between(json.dumps(INITIAL), query.offset) and query.ids() is None


@pytest.mark.few(7)
@pytest.mark.parametrize("files", [1, 2, 5])
def test_limits_and_restarts_lose_and_repeat_nothing(made, make_people, files):
    """The table has a row deleted, is compacted and grows while its first rows are read one file at a time."""
    t = made(3, by="city")
    t.append(make_people(3, 5))
    t.delete("id = 1")
    query, seen = Query(t), []
    for step in itertools.count():
        end = query.plan(files)
        if end == query.offset and step > 1:
            break
        planned = query.between(query.offset, end)
        if step % 2:  # the driver dies before the batch is done, and does it again
            query.restart()
            again = query.between(query.offset, end)
            assert sorted(map(str, again)) == sorted(map(str, planned))
        if step == 1:
            t.append(make_people(5, 9))
            t.optimize()
            t.append(make_people(9, 10))
        query.offset = end
        seen += [r["id"] for r in planned]
        assert len(json.dumps(query.offset)) < 400
    assert sorted(seen) == [0, 2, 3, 4, 5, 6, 7, 8, 9]
    assert json.loads(query.offset)["version"] == bh.open(t.uri, format=t.format).version


def test_bytes_limit_a_batch(made, traits, make_people):
    t = made(2)
    for i in range(2, 5):
        t.append(make_people(i, i + 1))
    first = min(e.version for e in t.history() if e.version is not None)
    beginning = Beginning(version=first) if traits.numbered else Beginning(timestamp_ms=0)
    query, seen = Query(t, beginning=beginning), []
    while (ids := query.ids(bytes=1)) is not None:  # less than any file: one at a time, and not none
        seen += [ids] if ids else []
    assert [i for ids in seen for i in ids] == [0, 1, 2, 3, 4]
    assert len(seen) >= 4


def test_where_a_stream_begins(made, make_people):
    t = made(2)
    t.append(make_people(2, 3))
    second = t.version
    t.append(make_people(3, 4))
    assert Query(t, beginning=Beginning(version=second)).ids() == [2, 3]
    time = next(e.timestamp_ms for e in t.history() if e.version == second)
    assert set(Query(t, beginning=Beginning(timestamp_ms=time)).ids()) >= {2, 3}
    assert Query(t, beginning=Beginning(timestamp_ms=0)).ids() == [0, 1, 2, 3]
    query = Query(t, beginning=Beginning(latest=True))
    assert query.batch() == []  # the offset is kept, so that what follows is not missed
    t.append(make_people(4, 5))
    query.restart()
    assert query.ids() == [4]
    for beginning in (Beginning(version=12345), Beginning(timestamp_ms=1 << 60)):
        with pytest.raises(errors.VersionNotFoundError, match="with which the stream is to start"):
            Query(t, beginning=beginning).plan()


def test_a_first_batch_that_failed_begins_where_it_began(made, make_people):
    t = made(3)
    query = Query(t)
    end = query.plan()
    t.append(make_people(3, 5))
    query.restart()
    assert sorted(r["id"] for r in query.between(query.offset, end)) == [0, 1, 2]
    query.offset = end
    assert query.ids() == [3, 4]


@pytest.mark.parametrize("skip", [False, True])
def test_changed_rows_end_a_stream_or_are_passed_over(made, make_people, skip):
    t = made(4)
    query = Query(t, Wanted(skip_changes=skip, ignore_deletes=True))
    assert query.ids() == [0, 1, 2, 3]
    t.append(make_people(4, 5))
    t.update({"score": "0.5"}, where="id = 1")
    t.append(make_people(5, 6))
    if skip:
        assert query.ids() == [4, 5]
        return
    assert query.ids() == [4]  # what comes before is given first
    with pytest.raises(errors.StreamError, match=r"changed or deleted rows.*skipChangeCommits"):
        query.plan()


def test_a_restored_source(made, make_people, traits):
    """The rows that a restore takes away may have been given; those that it brings back are not given again."""
    t = made(2)
    if t._handle.snapshot.offers(Restorable) is None:
        pytest.skip(f"{traits.format} tables are not restored")
    query, loose = Query(t), Query(t, Wanted(skip_changes=True))
    first = t.version
    t.append(make_people(2, 4))
    assert query.ids() == loose.ids() == [0, 1, 2, 3]
    t.restore(first)
    t.append(make_people(4, 5))
    query.restart()
    if not traits.numbered:  # the branch is back: what was read is on no line that leads to now
        for one in (query, loose):
            with pytest.raises(errors.VersionNotFoundError, match="no longer has all commits between"):
                one.plan()
        return
    with pytest.raises(errors.StreamError, match="deleted rows that the stream may have given"):
        query.plan()
    assert loose.ids() == [4]


def test_a_source_that_was_vacuumed_below_the_stream(made, make_people, traits):
    """Rows that a compaction moved to other files are read from those of their commit: gone, they end the stream."""
    t = made(2)
    if t._handle.snapshot.offers(Retention) is None or traits.in_memory:
        pytest.skip(f"{traits.format} tables are not vacuumed")
    late, query = Query(t), Query(t)
    assert query.ids() == late.ids() == [0, 1]
    for i in range(2, 4):
        t.append(make_people(i, i + 1))
    assert query.ids() == [2, 3]
    t.optimize()
    t.vacuum(0, enforce_retention_duration=False)
    t.append(make_people(4, 5))
    for one in (query, late):
        one.restart()
    assert query.ids() == [4]
    with pytest.raises(errors.MissingFileError, match="needs a data file that is missing"):
        late.ids()
    fresh = Query(t)
    assert fresh.ids() == [0, 1, 2, 3, 4]


def test_deletes_of_whole_units(made, traits, make_people):
    t = made()
    t.append(make_people(0, 2))
    t.append(make_people(2, 4))
    strict, loose = Query(t), Query(t, Wanted(ignore_deletes=True))
    assert strict.ids() == loose.ids() == [0, 1, 2, 3]
    t.delete("id >= 2")
    t.append(make_people(4, 5))
    with pytest.raises(errors.StreamError, match="deleted rows"):
        strict.plan()
    if not traits.empty_units_go:
        pytest.skip("a unit without rows stays or goes as the writer likes")
    assert loose.ids() == [4]


def test_a_new_column_ends_a_stream_until_it_is_restarted(made, make_people):
    t = made(2)
    query = Query(t)
    assert query.ids() == [0, 1]
    t.append(make_people(2, 3))
    t.add_column("extra", "int")
    t.append(make_people(3, 4))
    assert query.ids() == [2]
    with pytest.raises(errors.StreamError, match=r"column `extra` is new.*[Rr]estart the query"):
        query.plan()
    query.restart()
    assert [(r["id"], r["extra"]) for r in query.batch()] == [(3, None)]


def test_commits_that_are_gone(made, make_people, traits):
    if traits.history_in_head:
        pytest.skip("pyiceberg expires snapshots only through a catalog")
    t = made(2)
    query = Query(t)
    assert query.ids() == [0, 1]
    for i in range(2, 6):
        t.append(make_people(i, i + 1))
    t.optimize()
    PEERS[t.format].forget(t.uri, 2)
    query.restart()
    with pytest.raises(errors.VersionNotFoundError, match="no longer has all commits between it and version"):
        query.plan()


def _checkpoint(t: bh.Table) -> None:
    import deltalake

    deltalake.DeltaTable(t.uri.removeprefix("file://")).create_checkpoint()


def test_another_table_at_the_path(made):
    t = made(2)
    query = Query(t)
    query.ids()
    document = json.loads(query.offset)
    query.offset = json.dumps({**document, "table": "other"})
    with pytest.raises(errors.StreamError, match="dropped and created again"):
        query.plan()
    query.offset = json.dumps({"reservoirVersion": 3})
    with pytest.raises(errors.InvalidArgumentError, match="is not an offset"):
        query.plan()


def test_the_changes_of_commits(made, make_people):
    """As `t.changes()` gives them, whole commits at a time, after the rows that there were as inserts."""
    t = made(6, by="city")
    first = t.version
    query = Query(t, Wanted(changes=True))
    rows = query.batch()
    assert sorted(r["id"] for r in rows) == [*range(6)]
    assert {(r["_change_type"], r["_commit_version"]) for r in rows} == {("insert", first)}
    t.append(make_people(6, 8))
    t.update({"score": "score + 1"}, where="id in (1, 7)")
    t.optimize()
    t.delete("id = 0")
    t.merge(make_people(5, 9), "target.id = source.id").when_matched_delete(
        "source.id = 5"
    ).when_not_matched_insert_all().execute()
    found = []
    while (batch := query.batch(files=1)) is not None:
        assert len({r["_commit_version"] for r in batch}) <= 1
        found += batch
    start = t.history()[::-1]
    versions = [e.version for e in start if e.version is not None]
    expected = t.changes(versions[versions.index(first) + 1]).to_arrow().to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, expected))
    query.wanted = Wanted()
    query.restart()
    with pytest.raises(errors.StreamError, match="readChangeFeed=true"):
        query.plan()


def test_columns(made, make_people):
    t = made(3)
    assert [*Query(t, Wanted(("name", "id"))).batch()[0]] == ["name", "id"]
    found = Query(t, Wanted(("name",), changes=True)).batch()[0]
    assert [*found] == ["name", "_change_type", "_commit_version", "_commit_timestamp"]
    assert isinstance(found["name"], str) and pa.array([found["_commit_timestamp"]]).null_count == 0

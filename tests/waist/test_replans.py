"""A write that a concurrent commit forces to plan again applies its source once and whole, whatever the source is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from toy_format.state import clean

import boathouse as bh
from boathouse.ops import write as write_op

ON = "target.id = source.id"


@pytest.fixture(params=["toy", "delta"])
def format_name(request) -> str:
    return request.param


@pytest.fixture
def table(tmp_path, format_name, session, make_people):
    uri = str(tmp_path / "t")
    bh.create(uri, make_people(0, 1).schema, format=format_name, partition_by="city")
    bh.open(uri, format=format_name).append(make_people(0, 30))
    return bh.open(uri, format=format_name, spark=session)


@pytest.fixture
def source(session, make_people):
    """Rows from 20 on that can be read once; `n` of them, with a score that no second reading gives."""
    seen: list[int] = []

    def make(n: int):
        data = make_people(20, 20 + n)
        if session is None:

            def batches():
                for batch in data.to_batches(max_chunksize=4):
                    seen.extend(batch.column("id").to_pylist())
                    yield batch

            return pa.RecordBatchReader.from_batches(data.schema, batches()), lambda: len(seen)
        counter = session.sparkContext.accumulator(0)

        def counted(id):
            counter.add(1)
            return id

        from pyspark.sql.functions import udf

        once = udf(counted, "bigint").asNondeterministic()
        frame = session.createDataFrame(data)
        frame = frame.select(once("id").alias("id"), "name", "score", "city").selectExpr(
            "id", "concat(rand(), ' ', monotonically_increasing_id()) as name", "rand() as score", "city"
        )
        return frame, lambda: counter.value

    return make


def by_properties(other, make_people) -> list[int]:
    other.set_properties({"x": "1"})
    return []


def by_a_cleaned_history(other, make_people) -> list[int]:
    for i in range(5):
        other.append(make_people(100 + i, 101 + i))
    clean(other.uri, keep=2)
    return [*range(100, 105)]


OUTDATED = {"delta": by_properties, "toy": by_a_cleaned_history}
"""What another writer does so that an append is planned again; returns the ids of its rows."""


@pytest.fixture
def meanwhile(monkeypatch, table):
    """Lets `act` happen once, after the first rows were written and before they are committed."""

    def arrange(act):
        calls: list[int] = []
        for kind in (write_op.RowWork, write_op.TaskWork):

            def perform(work, engine, real=kind.perform):
                done = real(work, engine)
                if not calls:
                    calls.append(1)
                    act(bh.open(table.uri, format=table.format))
                return done

            monkeypatch.setattr(kind, "perform", perform)
        return calls

    return arrange


def rows_of(table) -> dict[int, dict]:
    rows = bh.open(table.uri, format=table.format).to_arrow().to_pylist()
    assert len({r["id"] for r in rows}) == len(rows)
    return {r["id"]: r for r in rows}


def no_orphans(table) -> None:
    """Every data file is one that some version has had."""
    here = Path(table.uri.removeprefix("file://"))
    known: set[str] = set()
    for entry in table.history():
        at = bh.open(table.uri, format=table.format, version=entry.version)
        for batch in at._handle.snapshot.files():
            known |= {p.rpartition("/")[2] for p in batch.column("path").to_pylist()}
            for parts in batch.column("parts").to_pylist():
                known |= {p["path"].rpartition("/")[2] for p in parts or ()}
    files = {p.name for p in here.rglob("*") if p.is_file() and p.suffix in (".parquet", ".lance")}
    assert files - known == set()


def test_append(table, source, meanwhile, make_people):
    data, read = source(25)
    table.delete("id >= 20")

    others: list[int] = []
    meanwhile(lambda other: others.extend(OUTDATED[table.format](other, make_people)))
    result = table.append(data)
    assert result.rows_added == 25 and result.retries >= 1 and read() == 25
    assert sorted(rows_of(table)) == [*range(45), *others]
    no_orphans(table.refresh())


def test_overwrite(table, source, meanwhile, make_people):
    data, read = source(25)
    meanwhile(lambda other: other.append(make_people(100, 103)))
    result = table.overwrite(data)
    assert result.rows_added == 25 and result.rows_deleted == 33 and read() == 25
    assert sorted(rows_of(table)) == list(range(20, 45))
    no_orphans(table.refresh())


def test_overwrite_where(table, source, meanwhile):
    data, read = source(25)
    meanwhile(lambda other: other.delete("id in (21, 5)"))
    result = table.overwrite(data, where="id >= 20")
    assert result.rows_added == 25 and result.retries >= 1 and read() == 25
    assert sorted(rows_of(table)) == [i for i in range(45) if i != 5]
    no_orphans(table.refresh())


def test_merge(table, source, meanwhile):
    data, read = source(25)
    calls = meanwhile(lambda other: other.update({"name": "'other'", "id": "id + 10"}, "id between 18 and 22"))
    merge = table.merge(data, ON).when_matched_update({"name": "concat(target.name, '!')", "score": "source.score"})
    merge = merge.when_not_matched_insert_all().when_not_matched_by_source_update({"score": "-1"}, "target.id < 3")
    table_ids = [*range(18), *range(23, 30), *range(28, 33)]
    assert len(set(table_ids)) < len(table_ids)  # 28 and 29 are there twice
    with pytest.raises(AssertionError):
        merge.execute()
        rows_of(table)
    assert calls and read() == 25
    found = bh.open(table.uri, format=table.format).to_arrow().to_pylist()
    assert sorted(r["id"] for r in found) == sorted([*table_ids, *range(20, 23), *range(33, 45)])
    assert sum(r["name"] == "other!" for r in found) == 5
    assert [r["score"] for r in found if r["id"] < 3] == [-1.0] * 3
    no_orphans(table.refresh())


def test_merge_twice_and_its_inserts(table, source, meanwhile, make_people):
    data, read = source(25)
    meanwhile(lambda other: other.append(make_people(30, 35)))
    result = table.merge(data, ON).when_not_matched_insert_all().execute()
    assert (result.rows_added, result.retries, read()) == (10, 1, 25)
    assert sorted(rows_of(table)) == list(range(45))
    no_orphans(table.refresh())


def test_update(table, meanwhile):
    meanwhile(lambda other: other.update({"score": "id * 100"}, "id in (4, 7)"))
    result = table.update({"score": "score + 1", "name": "'x'"}, "id < 8 and score is not null")
    assert result.retries == 1
    rows = rows_of(table)
    assert [rows[i]["score"] for i in range(9)] == [None, 1.5, 2.0, 2.5, 401.0, None, 4.0, 701.0, 4.0]
    assert sum(r["name"] == "x" for r in rows.values()) == result.rows_updated == 6
    no_orphans(table.refresh())


def test_a_delete_by_rows(table, meanwhile, session):
    if session is None:
        pytest.skip("in process every condition is the library's")
    meanwhile(lambda other: other.delete("id < 3"))
    result = table.delete("name rlike '^n.me [0-9]$'")
    assert (result.retries, result.rows_deleted) == (1, 6)  # 3 has no name
    assert sorted(rows_of(table)) == [3, *range(10, 30)]
    no_orphans(table.refresh())

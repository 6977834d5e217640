"""What a merge reads of the target: the columns that its condition and clauses name, and on Spark no shuffle of it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.api.engines import spark_engine
from boathouse.arrow.schema import from_arrow
from boathouse.ops.rows import merge as merges
from boathouse.ops.rows.merge_columns import target_columns

COLUMNS = {"id": pa.int64(), "Name": pa.string(), "score": pa.float64(), "a.b": pa.int32(), "u": pa.int32()}
TABLE = from_arrow(pa.schema(COLUMNS))


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ((), ()),
        (("t.id = s.id",), ("id",)),
        (("T.`a.b` = s.x", "t.ID + 1"), ("id", "a.b")),
        (("name || s.other", "u"), ("Name", "u")),
        (("t._unit IS NOT NULL", "CASE WHEN t.score > 0 THEN 'x' END"), ("score",)),
        (("only_spark_knows(t.id)",), None),
        (("t.id IN (SELECT id FROM v)",), None),
        (("t IS NULL",), None),
    ],
)
def test_the_columns_that_texts_name(texts, found):
    assert target_columns(TABLE, "t", texts) == found


def test_a_column_called_as_the_side():
    assert target_columns(TABLE, "u", ("u.id = 1",)) == ("id", "u")


@pytest.fixture
def wide(format_name, traits, properties, tmp_path, session):
    """Rows of six columns in two partitions."""
    rows = {"id": range(40), "day": ["a", "b"] * 20, **{c: [f"{c}{i}" for i in range(40)] for c in "pqrs"}}
    uri = str(tmp_path / "wide")
    bh.write(pa.table({k: list(v) for k, v in rows.items()}), uri, format=format_name, partition_by=traits.by("day"),
             properties=properties)  # fmt: skip
    return bh.open(uri, format=format_name, spark=session)


@pytest.fixture
def read(monkeypatch):
    """The columns that each scan of a target is asked for."""
    found, original = [], merges.target_rows

    def spy(*args):
        plan = original(*args)
        found.append(plan.read.output)
        return plan

    monkeypatch.setattr(merges, "target_rows", spy)
    return found


def rows(table) -> dict[int, tuple]:
    return {r["id"]: tuple(r.values())[1:] for r in bh.open(table.uri, format=table.format).to_arrow().to_pylist()}


def test_only_columns_that_are_needed_are_read(wide, to_data, read):
    news = pa.table({"id": [3, 50], "day": ["b", "a"], **{c: ["new"] * 2 for c in "pqrs"}})
    wide.upsert(to_data(news), "id")
    some = pa.table({"id": [4, 5, 6], "day": ["a", "b", "a"]})
    merge = wide.merge(to_data(some), "target.id = source.id")
    merge.when_matched_delete("target.id = 4").when_matched_delete("source.day = 'b'").execute()
    wide.merge(to_data(some), "target.id = source.id").when_matched_delete().execute()
    wide.merge(to_data(some), "target.id = source.id").when_not_matched_insert({"id": "source.id"}).execute()
    merge = wide.merge(to_data(pa.table({"id": [7]})), "target.id = source.id")
    merge.when_matched_update({"p": "upper(target.q)"}).execute()
    assert read == [("id",), ("id",), ("id",), ("id",), ("id", "day", "q", "r", "s")]
    left = rows(wide)
    assert left[3] == ("b", *["new"] * 4) and left[50] == ("a", *["new"] * 4)
    assert left[4] == left[5] == left[6] == (None,) * 5
    assert left[7] == ("b", "Q7", "q7", "r7", "s7") and left[8] == ("a", "p8", "q8", "r8", "s8")
    assert len(left) == 41


def test_no_column_but_the_places(wide, to_data, read):
    merge = wide.merge(to_data(pa.table({"x": [1]})), "1 = 0").when_not_matched_insert({"id": "source.x + 99"})
    merge.execute()
    wide.merge(to_data(pa.table({"x": [1]})), "source.x = 2").when_not_matched_by_source_delete().execute()
    assert read == [(), ()] and rows(wide) == {}


@pytest.mark.spark
@pytest.mark.route("merge of a small source")
def test_spark_does_not_shuffle_the_target_for_a_small_source(spark):
    engine = spark_engine(spark)
    target = spark.range(100_000).selectExpr("id", "id * 2 AS twice")
    source = spark.range(5, 100_005, 50_000).selectExpr("id", "'new' AS name")
    for how in ("inner", "right"):
        pairs = engine.join(target, source, "target.id = source.id", how)
        planned = pairs._jdf.queryExecution().executedPlan().toString()
        assert "BroadcastHashJoin [id" in planned and "LeftSemi, BuildRight" in planned, planned
        found = engine.project(pairs, [("t", "target.twice"), ("s", "source.id")]).toArrow().to_pylist()
        assert sorted(r["t"] for r in found) == [10, 100_010] and {r["s"] for r in found} == {5, 50_005}

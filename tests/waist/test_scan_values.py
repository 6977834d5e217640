"""What a scan returns beside whole columns: fields, computed values, a few rows; in process and on Spark."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.table.plan import ScanPlan

ROWS = [{"id": i, "name": f"n{i % 7}", "price": i / 4, "s": {"a": i, "b": {"c": f"c{i}"}}} for i in range(40)]


@pytest.fixture
def table(format_name, properties, tmp_path, session):
    uri = str(tmp_path / "t")
    schema = "id bigint, name string, price double, s struct<a: bigint, b: struct<c: string>>"
    t = bh.create(uri, schema, format=format_name, properties=properties)
    for start in range(0, 40, 10):
        t.append(ROWS[start : start + 10])
    t.delete("id = 11")
    return bh.open(uri, format=format_name, spark=session)


@pytest.mark.feature("computed columns and limits")
@pytest.mark.route("computed columns")
def test_fields_and_values(table, read):
    assert read(table.scan(["S.a", "id", "s.b.c"], "id BETWEEN 10 AND 12")) == [
        {"a": i, "id": i, "c": f"c{i}"} for i in (10, 12)
    ]
    values = {"cents": "CAST(price * 100 AS BIGINT)", "who": bh.col("s.b.c"), "one": "1", "where": "_pos >= 0"}
    found = read(table.scan(values, "id IN (3, 11, 39)"))
    assert found == [{"cents": i * 25, "who": f"c{i}", "one": 1, "where": True} for i in (3, 39)]
    assert table.scan({"n": "1"}).count() == len(read(table.scan({"n": "1"}))) == 39


def test_some_rows(table, read):
    assert len(read(table.scan(["id"], "id > 20", limit=7))) == 7
    assert {r["id"] for r in read(table.scan(["id"], "id >= 35", limit=100))} == set(range(35, 40))
    assert read(table.scan(limit=0)) == []
    assert table.scan(limit=12).count() == 12 and table.scan(where="price > 9").limit(2).count() == 2
    assert table.scan(limit=3).limit(9).count() == 3 and table.scan(limit=9).limit(3).to_arrow().num_rows == 3
    assert table.head(3).schema.names == table.columns == ["id", "name", "price", "s"] and table.head().num_rows == 5
    assert table.scan({"x": "id", "y": "price"}).columns == ["x", "y"] and table.scan(["s.a"]).columns == ["a"]


def test_few_rows_need_few_files(format_name, properties, tmp_path, monkeypatch):
    t = bh.create(str(tmp_path / "t"), "id bigint", format=format_name, properties=properties)
    for i in range(12):
        t.append(pa.table({"id": [i]}))
    started = []
    tasks = ScanPlan.tasks
    monkeypatch.setattr(ScanPlan, "tasks", lambda *args, **how: (started.append(x) or x for x in tasks(*args, **how)))
    assert t.head(1).num_rows == 1
    assert sum(task.units.num_rows for task in started) <= 2 + (os.cpu_count() or 2)


@pytest.mark.parametrize(
    ("columns", "error", "says"),
    [
        (["s.z"], errors.ColumnNotFoundError, "no field `z` of `s`"),
        (["z.a"], errors.ColumnNotFoundError, "no column `z`"),
        (["s.a", "s.b.c", "a"], errors.ColumnNotFoundError, "no column `a`"),
        (["id.a"], errors.ColumnNotFoundError, "has no field `a`"),
        (["s.a", "S.a"], errors.InvalidArgumentError, "'a' is named twice"),
        ({"x": "nope + 1"}, errors.ColumnNotFoundError, "no column `nope`"),
        ({"x": "id +"}, errors.ExpressionError, ""),
        ({"x": 3}, errors.InvalidArgumentError, "'x': 3 is not a value"),
        ({}, errors.InvalidArgumentError, "no columns"),
        ("id", errors.InvalidArgumentError, r"pass a list: \['id'\]"),
    ],
    ids=str,
)
def test_what_is_refused(tmp_path, columns, error, says):
    t = bh.create(str(tmp_path / "t"), "id bigint, s struct<a: bigint, b: struct<c: string>>")
    with pytest.raises(error, match=f"(?i){says}"):
        t.scan(columns)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "3"])
def test_limits_that_are_none(tmp_path, limit):
    t = bh.create(str(tmp_path / "t"), "id bigint")
    with pytest.raises(errors.InvalidArgumentError, match="is not a number of rows"):
        t.scan(limit=limit)
    with pytest.raises(errors.InvalidArgumentError, match="is not a number of rows"):
        t.scan().limit(limit)


def test_columns_whose_names_look_like_paths(tmp_path):
    t = bh.create(str(tmp_path / "t"), pa.schema([("s.a", pa.int64()), ("s", pa.struct([("a", pa.int64())]))]),
                  properties={"delta.columnMapping.mode": "name"})  # fmt: skip
    t.append(pa.table({"s.a": [1], "s": [{"a": 2}]}))
    assert t.scan(["s.a"]).to_arrow().to_pydict() == {"s.a": [1]}
    assert t.scan({"x": "s.a", "y": "`s.a`"}).to_arrow().to_pydict() == {"x": [2], "y": [1]}


def test_values_in_a_time_zone(tmp_path):
    uri = str(tmp_path / "t")
    bh.create(uri, "at timestamp").append(pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))}))
    hours = [
        bh.open(uri, timezone=zone).scan({"h": "hour(at)"}).to_arrow().to_pydict() for zone in (None, "Asia/Tokyo")
    ]
    assert hours == [{"h": [0]}, {"h": [9]}]

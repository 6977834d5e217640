"""Defaults that columns of existing tables get, columns that are added at a place, and versions of the protocol that
properties ask for."""

from __future__ import annotations

import json

import deltalake
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.api.create import create_table
from boathouse.table.edits import CreateTable
from boathouse.types import INT64, Field, Schema

ALLOWED = {"delta.feature.allowColumnDefaults": "supported"}


def made(folder, schema="id bigint, city string, s struct<x: int>", **properties):
    return bh.create(str(folder / "t"), schema, format="delta", properties=properties)


def fields(t):
    """Of the newest metaData, name and metadata."""
    logs = sorted((t.uri_path / "_delta_log").glob("*.json"), reverse=True)
    actions = (json.loads(line) for log in logs for line in log.read_text("utf-8").splitlines())
    document = next(a["metaData"]["schemaString"] for a in actions if "metaData" in a)
    return {f["name"]: f["metadata"] for f in json.loads(document)["fields"]}


@pytest.fixture
def table(tmp_path):
    class At:
        """A table, and where it is."""

        uri_path = tmp_path / "t"
        t = made(tmp_path, **ALLOWED)

    return At


def test_a_default_is_set_changed_and_dropped(table):
    t = table.t
    t.append([{"id": 0, "city": None}])
    t.set_default("CITY", "'Kiel'")
    assert fields(table)["city"] == {"CURRENT_DEFAULT": "'Kiel'"}
    t.append(pa.table({"id": pa.array([1], pa.int64())}))
    t.set_default("city", "concat('O', 'slo')")
    t.append(pa.table({"id": pa.array([2], pa.int64())}))
    t.set_default("city", None)
    assert fields(table)["city"] == {}
    t.append(pa.table({"id": pa.array([3], pa.int64())}))
    found = [(0, None), (1, "Kiel"), (2, "Oslo"), (3, None)]
    assert sorted((r["id"], r["city"]) for r in t.to_arrow().to_pylist()) == found
    read = deltalake.DeltaTable(t.uri.removeprefix("file://")).to_pyarrow_table().to_pylist()
    assert sorted((r["id"], r["city"]) for r in read) == found
    assert [e.operation for e in t.history(1)] != []


def test_what_has_no_default_is_refused(tmp_path, table):
    plain = bh.create(str(tmp_path / "plain"), "id bigint", format="delta")
    with pytest.raises(errors.UnsupportedFeatureError, match="protocol has no defaults") as refused:
        plain.set_default("id", 1)
    assert "delta.feature.allowColumnDefaults" in refused.value.advice and plain.version == 0
    before = table.t.version
    for name, value, kind in (
        ("s.x", 1, errors.UnsupportedFeatureError),
        ("nothing", 1, errors.ColumnNotFoundError),
        ("city", "id + 1", errors.ExpressionError),
    ):
        with pytest.raises(kind):
            table.t.set_default(name, value)
    schema = Schema((Field("id", INT64), Field("n", INT64)))
    create_table(str(tmp_path / "g"), "delta", CreateTable(schema, (), ALLOWED, generated={"n": "id + 1"}))
    made_up = bh.open(str(tmp_path / "g"))
    with pytest.raises(errors.UnsupportedFeatureError, match="generated"):
        made_up.set_default("n", 1)
    assert bh.open(table.t.uri).version == before


@pytest.mark.parametrize("mapped", [{}, {"delta.columnMapping.mode": "name"}], ids=["plain", "mapped"])
def test_columns_are_added_at_a_place_with_a_comment(tmp_path, mapped):
    t = made(tmp_path, **mapped)
    t.append([{"id": 1, "city": "Kiel", "s": {"x": 2}}])
    t.add_column("first", "int", first=True)
    t.add_column("later", "int", after="ID", comment="after id")
    t.add_column("s.y", "string", first=True)
    assert t.schema.names == ("first", "id", "later", "city", "s")
    assert str(t.schema.field("s").type) == "struct<y:string,x:int>" and t.schema.field("later").doc == "after id"
    t.append([{"first": 1, "id": 2, "later": 3, "city": "Oslo", "s": {"y": "a", "x": 4}}])
    rows = [
        {"first": None, "id": 1, "later": None, "city": "Kiel", "s": {"y": None, "x": 2}},
        {"first": 1, "id": 2, "later": 3, "city": "Oslo", "s": {"y": "a", "x": 4}},
    ]
    assert sorted(t.to_arrow().to_pylist(), key=lambda r: r["id"]) == rows
    read = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(tmp_path / "t")))
    found = pa.table(read.execute("select * from t order by id").read_all()).to_pylist() if not mapped else rows
    assert found == rows
    with pytest.raises(errors.UnsupportedFeatureError, match="set_default"):
        t.add_column("z", "int", default=1)
    with pytest.raises(errors.BoathouseError):
        t.add_column("z", "int", after="nothing")
    assert "z" not in bh.open(t.uri).schema.names


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ((1, 3), (1, 3)),
        ((1, 4), (1, 4)),
        ((2, 5), (2, 5)),
        ((2, 6), (2, 6)),
        ((1, 1), (1, 2)),
        ((3, 7), (1, 2)),
        ((2, 4), (1, 4)),
    ],
)
def test_versions_ask_for_what_they_imply(tmp_path, asked, found):
    t = made(tmp_path)
    reader, writer = map(str, asked)
    t.set_properties({"delta.minReaderVersion": reader, "delta.minWriterVersion": writer, "mine": "x"})
    detail = t.detail()
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == found
    assert t.properties == {"mine": "x"}
    assert deltalake.DeltaTable(str(tmp_path / "t")).protocol().min_writer_version == found[1]
    new = bh.create(str(tmp_path / "n"), "id bigint", format="delta", properties={"delta.minWriterVersion": writer})
    lowest = {"1": 2, "5": 4, "7": 2}  # what a version adds for readers alone is not asked for
    assert new.detail()["minWriterVersion"] == lowest.get(writer, int(writer))


def test_versions_that_are_none_are_refused(tmp_path):
    t = made(tmp_path)
    for key, value in (("Reader", "4"), ("Writer", "8"), ("Writer", "x"), ("Reader", "0"), ("Reader", None)):
        with pytest.raises(errors.InvalidArgumentError, match="not a version"):
            t.set_properties({f"delta.min{key}Version": value})
    assert bh.open(t.uri).version == 0

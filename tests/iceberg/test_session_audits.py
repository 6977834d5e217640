"""`spark.wap.id` and `spark.wap.branch` of a session: where its writes go, as iceberg-spark has it."""

from types import SimpleNamespace

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.api import table as api_table
from boathouse.api import write as api_write
from boathouse.api.audit import run_audited
from boathouse.engines.local import LocalEngine
from boathouse.errors import InvalidArgumentError, VersionNotFoundError
from boathouse.ops.options import WriteOptions
from boathouse.ops.rows.append import Append
from boathouse.ops.write import Source

SCHEMA = pa.schema([("id", pa.int64())])


def rows(*ids):
    return pa.table({"id": list(ids)}, SCHEMA)


def ids(table):
    return sorted(table.to_arrow()["id"].to_pylist())


class Session(LocalEngine):
    """An engine of a session with these settings."""

    def __init__(self, settings):
        super().__init__()
        self.spark = SimpleNamespace(conf=settings)


@pytest.fixture
def settings(monkeypatch):
    """What the session is set to, for every write of a test."""
    found = {}

    def audited(handle, engine, write, options, written=None):
        return run_audited(handle, Session(found), write, options, written)

    monkeypatch.setattr(api_table, "run_audited", audited)
    monkeypatch.setattr(api_write, "run_audited", audited)
    return found


@pytest.fixture
def table(tmp_path, settings):
    made = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", properties={"write.wap.enabled": "true"})
    made.append(rows(1, 2, 3))
    return made


@pytest.mark.spec("I-338")
def test_a_session_stages_its_writes(table, settings):
    settings["spark.wap.id"] = "night"
    done = table.append(rows(4))
    assert ids(table) == [1, 2, 3] == ids(bh.open(table.uri))
    assert ids(bh.open(table.uri, version=done.version)) == [1, 2, 3, 4]
    settings["spark.wap.id"] = "another"
    assert bh.write(rows(5), table.uri, mode="append").version != done.version
    # What a call says itself comes first; maintenance and metadata are not staged.
    table.delete("id = 1", metadata={"wap.id": "mine"})
    assert ids(bh.open(table.uri)) == [1, 2, 3]
    table.optimize()
    table.set_properties({"x": "y"})
    table.refs.create_tag("now")
    settings.clear()
    table.refresh().refs.publish("night")
    table.refs.publish("another")
    assert ids(table) == [1, 2, 3, 4, 5]
    with pytest.raises(VersionNotFoundError, match="nothing"):
        table.refs.publish("nothing")


@pytest.mark.spec("I-338")
def test_a_session_writes_to_its_branch(table, settings):
    """It begins at the head of main; the handle stays where it is."""
    settings["spark.wap.branch"] = "audit"
    assert table.append(rows(4), dry_run=True).dry_run and table.inspect.refs()["name"].to_pylist() == ["main"]
    table.append(rows(4))
    bh.write(rows(5), table.uri, mode="append")
    table.delete("id = 1")
    table.update({"id": "20"}, "id = 2")
    table.upsert(rows(6), on="id")
    assert ids(bh.open(table.uri, ref="audit")) == [3, 4, 5, 6, 20]
    assert ids(table) == [1, 2, 3] == ids(bh.open(table.uri))
    audit = bh.open(table.uri, ref="audit")
    audit.append(rows(7))
    assert ids(audit) == [3, 4, 5, 6, 7, 20]
    table.refs.create_branch("other")
    with pytest.raises(InvalidArgumentError, match=r"'other', and spark\.wap\.branch is 'audit'"):
        bh.open(table.uri, ref="other").append(rows(8))
    settings["spark.wap.id"] = "night"
    with pytest.raises(InvalidArgumentError, match="exclude each other"):
        table.append(rows(8))
    settings.clear()
    table.refs.fast_forward("main", "audit")
    assert ids(table) == [3, 4, 5, 6, 7, 20]


def test_other_tables_are_written_as_ever(tmp_path, table, settings):
    settings |= {"spark.wap.id": "night", "spark.wap.branch": "audit"}
    for format in ("iceberg", "delta", "lance"):
        path = str(tmp_path / format)
        bh.write(rows(1), path, format)
        bh.write(rows(2), path, mode="append")
        assert ids(bh.open(path)) == [1, 2]
    settings.clear()
    settings["spark.wap.id"] = " "
    table.append(rows(4))
    assert ids(table) == [1, 2, 3, 4]
    settings["spark.wap.branch"] = "first"
    empty = bh.create(str(tmp_path / "e"), SCHEMA, format="iceberg", properties={"write.wap.enabled": "true"})
    with pytest.raises(InvalidArgumentError, match="no version that the branch could begin with"):
        empty.append(rows(1))


def test_a_handle_from_before_the_property(table, settings):
    """The newest version decides."""
    table.set_properties({"write.wap.enabled": None})
    stale = bh.open(table.uri)
    table.set_properties({"write.wap.enabled": "true"})
    settings["spark.wap.id"] = "night"
    stale.append(rows(4))
    assert ids(bh.open(table.uri)) == [1, 2, 3]


def test_without_a_session_nothing_is_asked(table, monkeypatch):
    monkeypatch.undo()
    engine = LocalEngine()
    snapshot, _ = run_audited(table._handle, engine, Append(Source.of(engine, engine.source(rows(9)))), WriteOptions())
    assert snapshot.version != table.version and ids(bh.open(table.uri)) == [1, 2, 3, 9]


@pytest.mark.spark
def test_on_spark(spark, tmp_path):
    path = str(tmp_path / "t")
    bh.create(path, SCHEMA, format="iceberg", properties={"write.wap.enabled": "true"}).append(rows(1, 2))
    try:
        spark.conf.set("spark.wap.branch", "audit")
        bh.write(spark.range(3, 5), path, mode="append")
        bh.sql(spark, f"DELETE FROM iceberg.`{path}` WHERE id = 1")
        bh.sql(spark, f"INSERT INTO iceberg.`{path}` VALUES (9)")
        spark.conf.unset("spark.wap.branch")
        spark.conf.set("spark.wap.id", "night")
        staged = bh.open(path, spark=spark).append(spark.range(7, 8))
    finally:
        spark.conf.unset("spark.wap.branch")
        spark.conf.unset("spark.wap.id")
    assert ids(bh.open(path)) == [1, 2] and ids(bh.open(path, ref="audit")) == [2, 3, 4, 9]
    assert ids(bh.open(path, version=staged.version)) == [1, 2, 7]

"""ALTER TABLE of Iceberg's extensions: parsed as text, run on a table, and Spark's where it is another one."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.api.sql import alter as sql_alter
from boathouse.api.sql.tables import Tables
from boathouse.errors import ExpressionError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.statements import parse_statement, single

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), False), ("a b", pa.string()), ("ts", pa.timestamp("us")),
     pa.field("s", pa.struct([pa.field("x", pa.int32(), False)]), False)]
)  # fmt: skip


class Rows:
    """As much of a session as statements without rows need."""

    def range(self, rows):
        return self

    def drop(self, name):
        return "nothing"


@pytest.fixture
def table(tmp_path):
    return bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg")


@pytest.fixture
def alter(table, tmp_path):
    def run(text):
        sql = f"ALTER TABLE iceberg.`{tmp_path}/t` {text}"
        statement = parse_statement(sql, single(sql), lambda _: True)
        if statement is None:
            return None
        runs = {
            "AlterPartitionFields": sql_alter.partition, "AlterWriteOrder": sql_alter.order,
            "AlterIdentifiers": sql_alter.identifiers,
        }  # fmt: skip
        assert runs[type(statement).__name__](Tables(Rows(), sql), statement) == "nothing"
        return bh.open(str(tmp_path / "t"))

    return run


def seen(root):
    return StaticTable.from_metadata(
        f"file://{max((root / 'metadata').glob('v*.json'), key=lambda p: int(p.name[1:].split('.')[0]))}"
    )


def fields(found):
    return [(f.name, str(f.transform)) for f in found.partitioning.current]


@pytest.mark.feature("SQL of partition fields, orders and identifiers", format="iceberg")
def test_partition_fields(alter, tmp_path):
    assert fields(alter("ADD PARTITION FIELD bucket(16, id)")) == [("id_bucket_16", "bucket[16]")]
    assert fields(alter("add partition field truncate(`a b`, 4) AS short"))[1:] == [("short", "truncate[4]")]
    assert fields(alter("ADD PARTITION FIELD days(ts)"))[2:] == [("ts_day", "day")]
    assert fields(alter("DROP PARTITION FIELD short")) == [("id_bucket_16", "bucket[16]"), ("ts_day", "day")]
    found = alter("REPLACE PARTITION FIELD days(ts) WITH hours(ts) AS `the hour`")
    assert fields(found) == [("id_bucket_16", "bucket[16]"), ("the hour", "hour")]
    assert fields(alter("DROP PARTITION FIELD bucket(16, id)")) == [("the hour", "hour")]
    assert fields(alter("ADD PARTITION FIELD s.x"))[1:] == [("s.x", "identity")]
    assert [f.name for f in seen(tmp_path / "t").spec().fields] == ["the hour", "s.x"]
    for refused in (
        "ADD PARTITION FIELD hours(ts)", "ADD PARTITION FIELD id AS `the hour`", "DROP PARTITION FIELD id",
        "DROP PARTITION FIELD days(ts)", "REPLACE PARTITION FIELD short WITH id", "ADD PARTITION FIELD some(id)",
    ):  # fmt: skip
        with pytest.raises(InvalidArgumentError):
            alter(refused)


def test_orders_and_distribution(alter, tmp_path):
    def state(found):
        order = [
            (str(f.transform), f.direction.name, f.null_order.name) for f in seen(tmp_path / "t").sort_order().fields
        ]
        return order, found.properties["write.distribution-mode"]

    first = ("identity", "ASC", "NULLS_FIRST")
    assert state(alter("WRITE ORDERED BY id")) == ([first], "range")
    down = ("bucket[4]", "DESC", "NULLS_LAST")
    assert state(alter("WRITE LOCALLY ORDERED BY `a b`, bucket(4, id) DESC")) == ([first, down], "none")
    text = "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY (ts ASC NULLS LAST, id)"
    assert state(alter(text)) == ([("identity", "ASC", "NULLS_LAST"), first], "hash")
    assert state(alter("WRITE DISTRIBUTED BY PARTITION")) == ([], "hash")
    assert state(alter("WRITE UNORDERED")) == ([], "none")
    before = len(bh.open(str(tmp_path / "t")).history())
    alter("WRITE ORDERED BY days(ts)")
    assert len(bh.open(str(tmp_path / "t")).history()) == before + 1  # order and property in one commit


def test_identifiers(alter, tmp_path):
    alter("SET IDENTIFIER FIELDS id, s.x")
    assert seen(tmp_path / "t").schema().identifier_field_names() == {"id", "s.x"}
    alter("DROP IDENTIFIER FIELDS s.x")
    assert seen(tmp_path / "t").schema().identifier_field_names() == {"id"}
    with pytest.raises(InvalidArgumentError, match="does not identify"):
        alter("DROP IDENTIFIER FIELDS id, `a b`")
    assert seen(tmp_path / "t").schema().identifier_field_names() == {"id"}
    alter("DROP IDENTIFIER FIELDS id")
    assert not seen(tmp_path / "t").schema().identifier_field_ids


def test_what_is_wrong_names_the_place(alter):
    for text, message in (
        ("ADD PARTITION FIELD", "a partition transform"), ("REPLACE PARTITION FIELD id", "WITH"),
        ("WRITE", "ORDERED BY, UNORDERED"), ("WRITE LOCALLY", "ORDERED BY"), ("WRITE ORDERED BY", "a column"),
        ("WRITE ORDERED BY id,", "a column"), ("SET IDENTIFIER FIELDS", "a column"), ("WRITE UNORDERED id", "the end"),
        ("ADD PARTITION FIELD id AS", "a name"),
    ):  # fmt: skip
        with pytest.raises(ExpressionError, match=f"line 1, column .*expected {message}"):
            alter(text)


def test_other_statements_are_refused_by_name(alter):
    """Spark knows no table at a path."""
    for text in ("SET SERDE 'x'", "ADD PARTITION (a = 1)", "SET LOCATION '/x'"):
        with pytest.raises(UnsupportedFeatureError, match="this form of ALTER TABLE is not offered"):
            alter(text)


def test_formats_without_refuse_by_name(tmp_path):
    t = bh.create(str(tmp_path / "d"), "id bigint", format="delta")
    sql = f"ALTER TABLE delta.`{tmp_path}/d` WRITE ORDERED BY id"
    statement = parse_statement(sql, single(sql), lambda _: True)
    with pytest.raises(UnsupportedFeatureError, match="not offered"):
        sql_alter.order(Tables(Rows(), sql), statement)
    assert t.refresh().version == 0


@pytest.mark.spark
def test_on_a_session(spark, table, tmp_path):
    name = f"iceberg.`{tmp_path}/t`"
    assert bh.sql(spark, f"ALTER TABLE {name} WRITE ORDERED BY id DESC").columns == []
    bh.sql(spark, f"ALTER TABLE {name} ADD PARTITION FIELD bucket(2, id)")
    bh.sql(spark, f"ALTER TABLE {name} SET IDENTIFIER FIELDS id")
    found = bh.open(str(tmp_path / "t"))
    assert fields(found) == [("id_bucket_2", "bucket[2]")] and found.properties["write.distribution-mode"] == "range"
    bh.sql(spark, f"INSERT INTO {name} SELECT id, 'x', null, named_struct('x', 1) FROM range(50)")
    assert set(found.refresh().inspect.files()["sort_order_id"].to_pylist()) == {1} and found.count() == 50

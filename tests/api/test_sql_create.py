"""CREATE, REPLACE and DROP TABLE by bh.sql: at paths, by names of Spark's metastore, in catalogs; and what is left when
something fails."""

from __future__ import annotations

import datetime as dt
import os

import deltalake
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.api import named_tables
from boathouse.table.features import Clonable
from makers.traits import REAL, TRAITS

pytestmark = pytest.mark.spark
DAY = dt.date(2026, 1, 1)


@pytest.fixture
def database(spark):
    """An empty database; its folder in the warehouse."""
    spark.sql("CREATE DATABASE made")
    (row,) = spark.sql("DESCRIBE DATABASE made").where("info_name = 'Location'").collect()
    yield row["info_value"].removeprefix("file:")
    spark.sql("DROP DATABASE made CASCADE")


@pytest.fixture
def run(spark, database):
    def rows(text: str) -> list:
        return sorted(tuple(r) for r in bh.sql(spark, text).collect())

    return rows


def names(spark) -> list[str]:
    return sorted(r.tableName for r in spark.sql("SHOW TABLES IN made").collect() if not r.isTemporary)


def described(spark, name: str) -> dict[str, str]:
    (row,) = spark.sql(f"SHOW TABLE EXTENDED IN made LIKE '{name}'").collect()
    return dict(line.split(": ", 1) for line in row["information"].splitlines() if ": " in line)


@pytest.mark.feature("named tables")
@pytest.mark.route("named tables")
@pytest.mark.parametrize("format", REAL)
def test_named_tables_come_and_go(spark, run, database, tmp_path, format):
    by = "PARTITIONED BY (day)" if TRAITS[format].partitions else ""
    made = f"made.t (id bigint NOT NULL COMMENT 'key', name string, day date) USING {format} {by}"
    assert run(f"CREATE TABLE {made}") == []
    entry = described(spark, "t")
    assert (entry["Type"], entry["Provider"]) == ("MANAGED", "boathouse")
    table = bh.open("made.t", spark=spark)
    assert table.format == format and table.uri == f"file://{database}/t"
    assert not table.schema.field("id").nullable and table.schema.field("id").doc == "key"
    run("INSERT INTO made.t VALUES (1, 'a', DATE'2026-01-01')")
    run(f"CREATE TABLE IF NOT EXISTS {made}")
    with pytest.raises(errors.AlreadyExistsError, match=r"made\.t already exists"):
        run(f"CREATE TABLE {made}")
    assert run("SELECT * FROM made.t") == [(1, "a", DAY)]

    outside = tmp_path / "a täble %20"
    run(f"CREATE TABLE made.e USING {format} LOCATION '{outside}' AS SELECT id * 2 AS id, name FROM made.t")
    assert described(spark, "e")["Type"] == "EXTERNAL"
    assert run("SELECT * FROM made.e") == [(2, "a")]
    before = bh.open("made.e", spark=spark).version
    run(f"CREATE OR REPLACE TABLE made.e USING {format} AS SELECT id + 1 AS n FROM made.e")
    assert run("SELECT * FROM made.e") == [(3,)]
    assert bh.open("made.e", spark=spark, version=before).to_arrow().column_names == ["id", "name"]
    run("CREATE TABLE made.l LIKE made.t")
    like = bh.open("made.l", spark=spark)
    assert (like.format, like.count(), like.schema.names) == (format, 0, ("id", "name", "day"))
    assert len(like.partitioning.current) == len(table.partitioning.current)

    for name in ("t", "e", "l"):
        run(f"DROP TABLE made.{name}")
    assert not os.path.exists(f"{database}/t") and bh.open(str(outside)).count() == 1
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        run("DROP TABLE made.t")
    run("DROP TABLE IF EXISTS made.t")


@pytest.mark.parametrize("format", REAL)
def test_a_table_that_is_there_gets_a_name(spark, run, tmp_path, format):
    path = str(tmp_path / "t")
    bh.write(pa.table({"id": [1], "name": ["a"]}), path, format=format)
    run(f"CREATE TABLE made.a USING boathouse LOCATION '{path}'")
    run(f"CREATE TABLE made.b (id bigint, name string) USING {format} LOCATION '{path}'")
    assert run("SELECT a.id, b.name FROM made.a a JOIN made.b b ON a.id = b.id") == [(1, "a")]
    other = next(f for f in REAL if f != format)
    for text, error, says in (
        (f"made.c (id int, name string) USING {format}", errors.AlreadyExistsError, "other columns"),
        (f"made.c (id bigint, name string) USING {other}", errors.UnsupportedFeatureError, f"is {format}"),
        (f"made.c USING {format} TBLPROPERTIES ('a.b' = 'c')", errors.AlreadyExistsError, r"property a\.b is None"),
    ):
        with pytest.raises(error, match=says):
            run(f"CREATE TABLE {text} LOCATION '{path}'")
    with pytest.raises(errors.AlreadyExistsError, match="USING"):
        run(f"CREATE TABLE made.c USING {format} LOCATION '{path}' AS SELECT 1 AS id")
    with pytest.raises(errors.AlreadyExistsError, match="taken"):
        run(f"CREATE TABLE made.a (id bigint) USING {format} LOCATION '{path}2'")
    assert names(spark) == ["a", "b"]
    run(f"CREATE OR REPLACE TABLE made.c (x int) USING {format} LOCATION '{path}'")
    assert bh.open(path).schema.names == ("x",) and bh.open(path).count() == 0


@pytest.mark.parametrize("location", ["", "LOCATION"])
def test_a_failure_leaves_neither_a_table_nor_a_name(spark, run, database, tmp_path, location, monkeypatch):
    place = f"LOCATION '{tmp_path / 'out'}'" if location else ""
    for text, error in (
        (f"(id nonsense) USING delta {place}", errors.SchemaError),
        (f"(id bigint) USING delta PARTITIONED BY (day) {place}", errors.ColumnNotFoundError),
        (f"(id bigint) USING lance PARTITIONED BY (id) {place}", errors.UnsupportedFeatureError),
        (f"(id bigint) USING iceberg CLUSTER BY (id) {place}", errors.UnsupportedFeatureError),
        (f"(id bigint DEFAULT 1) USING lance {place}", errors.UnsupportedFeatureError),
        (f"(id bigint GENERATED ALWAYS AS IDENTITY) USING iceberg {place}", errors.UnsupportedFeatureError),
        (f"USING delta {place}", errors.SchemaError),
        (f"USING delta {place} AS SELECT assert_true(id < 5), id FROM range(9)", errors.BoathouseError),
        (f"SHALLOW CLONE made.nothing {place}", Exception),
    ):
        with pytest.raises(error):
            run(f"CREATE TABLE made.bad {text}")
        assert names(spark) == [], text
        assert not os.path.exists(f"{database}/bad") and not (tmp_path / "out" / "_delta_log").exists(), text
    with pytest.raises(errors.TableNotFoundError, match="database"):
        run(f"CREATE TABLE nowhere.bad (id bigint) USING delta {place}")

    # Where nobody knows whether the table is there, its name stays.
    def unknown(*_, **__):
        raise errors.CommitUnknownError("the store did not answer")

    monkeypatch.setattr("boathouse.api.sql.create.create_table", unknown)
    with pytest.raises(errors.CommitUnknownError):
        run(f"CREATE TABLE made.t (id bigint) USING delta {place}")
    monkeypatch.undo()
    with pytest.raises(errors.TableNotFoundError):
        bh.open("made.t", spark=spark)
    # A name without a table is completed by the same statement.
    run(f"CREATE TABLE IF NOT EXISTS made.t (id bigint) USING delta {place}")
    assert run("INSERT INTO made.t VALUES (1)") == [(1, 1)]


def test_two_who_make_one_name(spark, run, database, tmp_path, monkeypatch):
    """One comes between the look at the name and its making."""
    before = named_tables.under_name

    def late(spark, entry, *args):
        monkeypatch.undo()
        bh.sql(spark, "CREATE TABLE made.t (other int) USING iceberg")
        return before(spark, entry, *args)

    monkeypatch.setattr("boathouse.api.sql.create.under_name", late)
    with pytest.raises(errors.AlreadyExistsError, match=r"made\.t is taken"):
        run("CREATE TABLE made.t (id bigint) USING delta")
    assert bh.open("made.t", spark=spark).schema.names == ("other",)


def test_a_folder_of_the_warehouse_that_lost_its_name(spark, run, database):
    run("CREATE TABLE made.x (id bigint) USING delta")
    run("INSERT INTO made.x VALUES (1)")
    os.rename(f"{database}/x", f"{database}/y")  # as after a session without a lasting metastore
    with pytest.raises(errors.AlreadyExistsError, match="LOCATION"):
        run("CREATE TABLE made.y (id bigint) USING delta")
    run(f"CREATE TABLE made.y USING delta LOCATION '{database}/y'")
    assert run("SELECT * FROM made.y") == [(1,)]


def test_what_delta_has_of_columns(spark, run, database):
    run("""CREATE TABLE made.t (id bigint GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 10), ts timestamp,
        day date GENERATED ALWAYS AS (CAST(ts AS DATE)), n int DEFAULT 7 COMMENT 'seven') USING delta
        CLUSTER BY (day, n) COMMENT 'of tests' TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')""")
    run("INSERT INTO made.t (ts) VALUES (TIMESTAMP'2026-01-01 10:00:00')")
    assert [r[:1] + r[2:] for r in run("SELECT * FROM made.t")] == [(10, DAY, 7)]
    t = bh.open("made.t", spark=spark)
    assert t.detail()["clusteringColumns"] == ["day", "n"] and t.schema.field("n").doc == "seven"
    assert t.properties["delta.enableDeletionVectors"] == "true" and t.detail()["description"] == "of tests"
    read = deltalake.DeltaTable(f"{database}/t")
    assert {"clustering", "allowColumnDefaults", "deletionVectors"} <= set(read.protocol().writer_features or ())
    with pytest.raises(errors.ConstraintViolationError):
        run("INSERT INTO made.t (ts, day) VALUES (TIMESTAMP'2026-01-01 10:00:00', DATE'2020-01-01')")
    run("CREATE OR REPLACE TABLE made.t (a int, b string DEFAULT 'x') USING delta")
    run("INSERT INTO made.t (a) VALUES (1)")
    assert run("SELECT * FROM made.t") == [(1, "x")] and "clusteringColumns" not in bh.open(f"{database}/t").detail()
    assert bh.open(f"{database}/t").detail().get("description") is None


def test_what_iceberg_has_of_columns(spark, run, database):
    run("""CREATE TABLE made.t (id bigint, ts timestamp, n int DEFAULT 7) USING iceberg COMMENT 'of tests'
        PARTITIONED BY (days(ts), bucket(4, id)) TBLPROPERTIES ('format-version' = '3')""")
    run("INSERT INTO made.t (id, ts) VALUES (1, TIMESTAMP'2026-01-01 10:00:00')")
    assert [r[2] for r in run("SELECT * FROM made.t")] == [7]
    t = bh.open("made.t", spark=spark)
    assert [str(f.transform) for f in t.partitioning.current] == ["day", "bucket[4]"]
    assert t.properties["comment"] == "of tests"
    with pytest.raises(errors.UnsupportedFeatureError, match="default"):
        run("CREATE TABLE made.u (id bigint DEFAULT 1) USING iceberg")


@pytest.mark.parametrize("format", [f for f in REAL if Clonable in TRAITS[f].offers])
def test_shallow_clones(spark, run, database, tmp_path, format):
    run(f"CREATE TABLE made.s USING {format} AS SELECT 1 AS id")
    first = bh.open("made.s", spark=spark).version
    run("INSERT INTO made.s VALUES (2)")
    run(f"CREATE TABLE made.c SHALLOW CLONE made.s VERSION AS OF {first}")
    assert run("SELECT * FROM made.c") == [(1,)]
    run("INSERT INTO made.c VALUES (9)")
    assert run("SELECT * FROM made.s") == [(1,), (2,)]
    replaced = f"CREATE OR REPLACE TABLE made.c SHALLOW CLONE {format}.`{database}/s` TBLPROPERTIES ('owner' = 'me')"
    if not TRAITS[format].altered_clones:
        with pytest.raises(errors.UnsupportedFeatureError, match="replaces"):
            run(replaced)
        return
    id = bh.open("made.c", spark=spark).detail()["id"]
    run(replaced)
    c = bh.open("made.c", spark=spark)
    assert run("SELECT * FROM made.c") == [(1,), (2,)] and c.properties["owner"] == "me" and c.detail()["id"] == id
    assert c.history(1)[0].operation == "CLONE" and bh.open(c.uri, version=1).count() == 2
    run("DELETE FROM made.c WHERE id = 1")
    assert run("SELECT * FROM made.c") == [(2,)]
    assert run("SELECT * FROM made.s") == [(1,), (2,)]


def test_whose_a_statement_is(spark, run, database, tmp_path):
    path = str(tmp_path / "t")
    bh.write(pa.table({"id": [1]}), path)
    run("CREATE TABLE made.plain (id bigint) USING parquet")
    run("CREATE VIEW made.v AS SELECT 1 AS id")
    for text in ("made.plain (id bigint)", "made.v (id bigint)"):
        with pytest.raises(errors.AlreadyExistsError):
            run(f"CREATE TABLE {text} USING delta")
        run(f"CREATE TABLE IF NOT EXISTS {text} USING delta")
    assert described(spark, "plain")["Provider"] == "parquet"
    run("CREATE TABLE made.like LIKE made.plain USING delta")
    assert bh.open("made.like", spark=spark).schema.names == ("id",)
    with pytest.warns(UserWarning, match="USING delta"):
        bh.sql(spark, f"CREATE TABLE made.raw (id bigint) USING parquet LOCATION '{path}'")
    with pytest.raises(errors.UnsupportedFeatureError, match="no name to be dropped"):
        run(f"DROP TABLE delta.`{path}`")
    spark.sql("USE made")
    try:
        run("CREATE TABLE short (id bigint) USING lance")
        assert bh.open("made.short", format="lance", spark=spark).count() == 0
    finally:
        spark.sql("USE default")


@pytest.mark.parametrize("format", REAL)
def test_tables_at_paths(spark, run, tmp_path, format):
    t = f"{format}.`{tmp_path / 't'}`"
    with pytest.raises(errors.TableNotFoundError):
        run(f"REPLACE TABLE {t} (id bigint)")
    run(f"CREATE TABLE {t} (id bigint, s struct<a: int>)")
    with pytest.raises(errors.AlreadyExistsError):
        run(f"CREATE TABLE {t} (id bigint)")
    run(f"CREATE TABLE IF NOT EXISTS {t} (other int)")
    assert bh.open(str(tmp_path / "t")).schema.names == ("id", "s")
    run(f"REPLACE TABLE {t} AS SELECT 5 AS n")
    assert run(f"SELECT * FROM {t}") == [(5,)]
    with pytest.raises(errors.InvalidArgumentError, match="USING"):
        run(f"CREATE OR REPLACE TABLE {t} (id bigint) USING {next(f for f in REAL if f != format)}")
    assert names(spark) == []


@pytest.fixture
def prod(tmp_path, monkeypatch):
    """A catalog of PyIceberg's configuration."""
    for key, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/c.db", "WAREHOUSE": f"file://{tmp_path}/w"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__PROD__{key}", value)
    bh.catalog("prod").create_namespace("sales")
    return bh.catalog("prod")


def test_tables_of_a_catalog(spark, run, prod):
    run("CREATE TABLE prod.sales.t (id bigint NOT NULL, ts timestamp) PARTITIONED BY (days(ts)) COMMENT 'c'")
    assert prod.tables() == ["sales.t"] and prod.open("sales.t").properties["comment"] == "c"
    run("INSERT INTO prod.sales.t VALUES (1, NULL)")
    run("CREATE TABLE IF NOT EXISTS prod.sales.t (x int) USING iceberg")
    with pytest.raises(errors.AlreadyExistsError):
        run("CREATE TABLE prod.sales.t (x int)")
    run("CREATE TABLE prod.sales.u AS SELECT id + 1 AS id FROM prod.sales.t")
    assert run("SELECT u.id FROM prod.sales.u JOIN prod.sales.t ON u.id = t.id + 1") == [(2,)]
    assert run("SELECT count(*) FROM prod.sales.u.branch_main") == [(1,)]
    with pytest.raises(errors.BoathouseError):
        run("CREATE TABLE prod.sales.v AS SELECT assert_true(id < 0) AS x FROM prod.sales.t")
    run("CREATE OR REPLACE TABLE prod.sales.u AS SELECT 'x' AS name")
    assert run("SELECT * FROM prod.sales.u") == [("x",)]
    assert prod.tables("sales") == ["sales.t", "sales.u"]
    with pytest.raises(errors.InvalidArgumentError, match="USING says delta"):
        run("CREATE TABLE prod.sales.w (id bigint) USING delta")
    with pytest.raises(errors.TableNotFoundError):
        run("SELECT * FROM prod.sales.nothing")
    run("DROP TABLE prod.sales.u PURGE")
    run("DROP TABLE IF EXISTS prod.sales.u")
    with pytest.raises(errors.TableNotFoundError):
        run("DROP TABLE prod.sales.u")
    assert prod.tables() == ["sales.t"]

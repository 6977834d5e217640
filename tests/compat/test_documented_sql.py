"""The SQL of delta-spark's pages, by `bh.sql`, on tables by path and by name."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

import boathouse as bh
from boathouse import errors
from boathouse.compat.delta_tables import DeltaTable

pytestmark = pytest.mark.spark


@pytest.fixture
def run(spark):
    """Runs a statement; its rows as tuples."""
    return lambda text: sorted((tuple(r) for r in bh.sql(spark, text).collect()), key=str)


# ---- tables


@pytest.mark.route("delta-spark's SQL")
def test_tables_are_made_filled_and_changed(run, spot):
    columns = "id INT NOT NULL, name STRING, gender STRING, birthDate TIMESTAMP"
    run(f"CREATE TABLE IF NOT EXISTS {spot.sql} ({columns}) USING DELTA")
    run(f"CREATE OR REPLACE TABLE {spot.sql} ({columns}) USING DELTA PARTITIONED BY (gender)")
    run(f"INSERT INTO {spot.sql} VALUES (1, 'Ada', 'F', date'1815-12-10'), (2, 'Alan', 'M', date'1912-06-23')")
    assert run(f'SELECT COUNT(*) > 0 AS `Partition exists` FROM {spot.sql} WHERE gender = "M"') == [(True,)]
    run(f"UPDATE {spot.sql} SET gender = 'Female' WHERE gender = 'F';")
    run(f"DELETE FROM {spot.sql} WHERE birthDate < '1900-01-01'")
    assert run(f"SELECT id, gender FROM {spot.sql}") == [(2, "M")]
    assert run(f"SELECT id, gender FROM {spot.sql} VERSION AS OF 2") == [(1, "F"), (2, "M")]
    for time in (
        "'2100-10-18T22:15:12.013Z'",
        "current_timestamp() + interval 12 hours",
        "date_sub(current_date(), -1)",
    ):
        assert run(f"SELECT id FROM {spot.sql} TIMESTAMP AS OF {time}") == [(2,)]
    run(f"INSERT OVERWRITE TABLE {spot.sql} SELECT 3, 'Grace', 'F', timestamp'1906-12-09 00:00:00'")
    run(
        f"INSERT INTO TABLE {spot.sql} REPLACE WHERE gender = 'F' SELECT 4, 'Joan', 'F', timestamp'1930-01-01 00:00:00'"
    )
    assert run(f"SELECT id FROM {spot.sql}") == [(4,)]


def test_merge(run, spot):
    updates = spot.beside("updates")
    for where, rows in ((spot, "(1, 'a'), (2, 'b')"), (updates, "(2, 'z'), (3, 'c')")):
        run(f"CREATE TABLE {where.sql} (id INT, v STRING) USING delta")
        run(f"INSERT INTO {where.sql} VALUES {rows}")
    run(f"""
        MERGE INTO {spot.sql} AS people USING {updates.sql} AS updates ON people.id = updates.id
        WHEN MATCHED THEN UPDATE SET id = updates.id, v = updates.v
        WHEN NOT MATCHED THEN INSERT (id, v) VALUES (updates.id, updates.v)
        WHEN NOT MATCHED BY SOURCE AND people.id < 0 THEN DELETE
    """)
    assert run(f"SELECT * FROM {spot.sql}") == [(1, "a"), (2, "z"), (3, "c")]
    if spot.name is not None:  # without aliases a table is called as it is named
        run(f"""MERGE INTO {spot.name} USING {updates.name} ON documented.t.id = documented.t_updates.id
                WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
                WHEN NOT MATCHED BY SOURCE THEN DELETE""")
        assert run(f"SELECT * FROM {spot.sql}") == [(2, "z"), (3, "c")]


def test_a_name_is_given_to_a_table_that_is_there(run, spot, tmp_path):
    there = str(tmp_path / "there")
    run(f"CREATE TABLE delta.`{there}` USING DELTA AS SELECT col1 AS id FROM VALUES 0, 1, 2")
    if spot.name is None:
        run(f"INSERT OVERWRITE delta.`{there}` SELECT col1 AS id FROM VALUES 5, 6")
        assert run(f"SELECT * FROM delta.`{there}`") == [(5,), (6,)]
        return
    run(f"CREATE TABLE {spot.name} USING DELTA LOCATION '{there}'")
    assert run(f"SELECT * FROM {spot.name}") == [(0,), (1,), (2,)]
    run(f"DROP TABLE {spot.name}")
    with pytest.raises(errors.AlreadyExistsError, match="other columns"):
        run(f"CREATE TABLE {spot.name} (other STRING) USING DELTA LOCATION '{there}'")
    assert bh.detect(there) == ("delta",)


def test_columns_are_changed(run, spot):
    run(f"CREATE TABLE {spot.sql} (colA STRING, colB STRUCT<field1: STRING, field2: STRING>) USING delta")

    def shape():
        return ", ".join(f"{f.name} {f.type}" for f in bh.open(place).schema)

    place = run_detail(run, spot)["location"]
    run(f"INSERT INTO {spot.sql} VALUES ('a', named_struct('field1', 'x', 'field2', 'y'))")
    run(f"ALTER TABLE {spot.sql} ADD COLUMNS (colB.nested STRING COMMENT 'n' AFTER field1, colC INT)")
    assert shape() == "colA string, colB struct<field1:string,nested:string,field2:string>, colC int"
    run(f"ALTER TABLE {spot.sql} CHANGE COLUMN colB.field2 field2 STRING FIRST")
    run(f"ALTER TABLE {spot.sql} CHANGE COLUMN colC colC INT COMMENT 'third' FIRST")
    assert shape() == "colC int, colA string, colB struct<field2:string,field1:string,nested:string>"
    assert bh.open(place).schema.field("colC").doc == "third"
    with pytest.raises(errors.UnsupportedFeatureError, match="RENAME COLUMN"):
        run(f"ALTER TABLE {spot.sql} CHANGE COLUMN colC other INT")
    run(f"""ALTER TABLE {spot.sql} SET TBLPROPERTIES (
            'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5', 'delta.columnMapping.mode' = 'name')""")
    detail = run_detail(run, spot)
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (2, 5)
    assert not any(key.startswith("delta.min") for key in detail["properties"])
    run(f"ALTER TABLE {spot.sql} RENAME COLUMN colB.field1 TO field001")
    run(f"ALTER TABLE {spot.sql} DROP COLUMNS (colA, colC)")
    assert shape() == "colB struct<field2:string,field001:string,nested:string>"
    assert run(f"SELECT colB.field001, colB.field2, colB.nested FROM {spot.sql}") == [("x", "y", None)]


def run_detail(run, spot):
    (row,) = run(f"DESCRIBE DETAIL {spot.sql}")
    names = ("format", "id", "name", "description", "location", "createdAt", "lastModified", "partitionColumns",
             "clusteringColumns", "numFiles", "sizeInBytes", "properties", "minReaderVersion", "minWriterVersion",
             "tableFeatures")  # fmt: skip
    return dict(zip(names, row, strict=True))


def test_types_are_widened(run, spot):
    run(f"CREATE TABLE {spot.sql} (n INT) USING DELTA TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    run(f"ALTER TABLE {spot.sql} ALTER COLUMN n TYPE BIGINT")
    run(f"INSERT INTO {spot.sql} VALUES ({2**40})")
    run(f"ALTER TABLE {spot.sql} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'false')")
    assert run(f"SELECT * FROM {spot.sql}") == [(2**40,)]
    assert run(f"SHOW TBLPROPERTIES {spot.sql} ('delta.enableTypeWidening')") == [("delta.enableTypeWidening", "false")]


def test_defaults_of_columns(run, spot):
    run(f"CREATE TABLE {spot.sql} (id INT, c STRING, d INT) USING delta")
    with pytest.raises(errors.UnsupportedFeatureError, match="allowColumnDefaults"):
        run(f"ALTER TABLE {spot.sql} ALTER COLUMN c SET DEFAULT 'x'")
    run(f"ALTER TABLE {spot.sql} SET TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'enabled')")
    run(f"ALTER TABLE {spot.sql} ALTER COLUMN c SET DEFAULT 'it''s, (x)'")
    run(f"INSERT INTO {spot.sql} VALUES (16, DEFAULT, DEFAULT), (17, 'DEFAULT', abs(-1))")
    run(f"INSERT INTO {spot.sql} (id) VALUES (18)")
    run(f"INSERT INTO {spot.sql} (d, c) VALUES (5, DEFAULT)")
    made = "it's, (x)"
    assert run(f"SELECT * FROM {spot.sql}") == [(16, made, None), (17, "DEFAULT", 1), (18, made, None), (None, made, 5)]
    run(f"UPDATE {spot.sql} SET c = DEFAULT, d = DEFAULT WHERE id = 17")
    run(f"""MERGE INTO {spot.sql} t USING (SELECT 18 AS id UNION ALL SELECT 19) s ON t.id = s.id
            WHEN MATCHED THEN UPDATE SET c = 'm', d = DEFAULT
            WHEN NOT MATCHED THEN INSERT (id, c) VALUES (s.id, DEFAULT)""")
    run(f"ALTER TABLE {spot.sql} ALTER COLUMN c DROP DEFAULT")
    run(f"INSERT INTO {spot.sql} (id) VALUES (20)")
    assert run(f"SELECT * FROM {spot.sql} WHERE id > 16") == [
        (17, made, None),
        (18, "m", None),
        (19, made, None),
        (20, None, None),
    ]
    with pytest.raises(errors.UnsupportedFeatureError, match="SET DEFAULT"):
        run(f"ALTER TABLE {spot.sql} ADD COLUMN e INT DEFAULT 16")
    with pytest.raises(errors.SchemaMismatchError, match="more than the 3 values"):
        run(f"INSERT INTO {spot.sql} VALUES (1, 'a', 2, DEFAULT)")


def test_the_schema_evolves_with_an_insert(run, spot, spark):
    run(f"CREATE TABLE {spot.sql} (id INT) USING delta")
    run(f"INSERT WITH SCHEMA EVOLUTION INTO {spot.sql} SELECT 1, 'x' AS more")
    with pytest.raises(errors.SchemaMismatchError):
        run(f"INSERT INTO {spot.sql} SELECT 2, 'y', true AS last")
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", "true")
    try:
        run(f"INSERT INTO {spot.sql} SELECT 2, 'y', true AS last")
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    assert run(f"SELECT id, more, last FROM {spot.sql}") == [(1, "x", None), (2, "y", True)]


# ---- properties, constraints, features


def test_properties_and_constraints(run, spot, spark):
    run(f"CREATE TABLE {spot.sql} (id INT NOT NULL, middle STRING NOT NULL, born TIMESTAMP) USING DELTA")
    run(f"ALTER TABLE {spot.sql} CHANGE COLUMN middle DROP NOT NULL")
    run(f"ALTER TABLE {spot.sql} SET TBLPROPERTIES ('department' = 'accounting', 'delta.appendOnly' = 'true')")
    assert run(f"SHOW TBLPROPERTIES {spot.sql} ('department')") == [("department", "accounting")]
    run(f"ALTER TABLE {spot.sql} ADD CONSTRAINT dateWithinRange CHECK (born > '1900-01-01')")
    run(f"ALTER TABLE {spot.sql} ADD CONSTRAINT validIds CHECK (id > 1 and id < 99999999)")
    assert {k.lower(): v for k, v in run_detail(run, spot)["properties"].items()}[
        "delta.constraints.validids"
    ] == "id > 1 and id < 99999999"
    run(f"INSERT INTO {spot.sql} VALUES (2, NULL, date'1950-01-01')")
    with pytest.raises(errors.ConstraintViolationError):
        run(f"INSERT INTO {spot.sql} VALUES (1, 'x', date'1950-01-01')")
    run(f"ALTER TABLE {spot.sql} DROP CONSTRAINT dateWithinRange")
    run(f"INSERT INTO {spot.sql} VALUES (3, 'x', date'1850-01-01')")
    with pytest.raises(errors.ConstraintViolationError, match="appendOnly"):
        run(f"DELETE FROM {spot.sql} WHERE id = 2")
    assert run(f"SELECT id FROM {spot.sql}") == [(2,), (3,)]


def test_a_session_gives_properties_to_new_tables(run, spot, spark):
    spark.conf.set("spark.databricks.delta.properties.defaults.appendOnly", "true")
    try:
        run(f"CREATE TABLE {spot.sql} (id INT) USING delta")
        said = "TBLPROPERTIES ('delta.appendOnly' = 'false')"
        run(f"CREATE TABLE {spot.beside('b').sql} USING delta {said} AS SELECT 1 AS a")
        made = spot.beside("c").builder().addColumn("id", "INT").execute()
    finally:
        spark.conf.unset("spark.databricks.delta.properties.defaults.appendOnly")
    assert run_detail(run, spot)["properties"] == made.detail().first()["properties"] == {"delta.appendOnly": "true"}
    assert run_detail(run, spot.beside("b"))["properties"] == {"delta.appendOnly": "false"}


def test_features(run, spot):
    run(f"CREATE TABLE {spot.sql} (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = true)")
    run(f"INSERT INTO {spot.sql} SELECT id FROM range(0, 4, 1, 1)")
    run(f"DELETE FROM {spot.sql} WHERE id = 1")
    assert run(f"REORG TABLE {spot.sql} APPLY (PURGE)")[0][1]["numFilesRemoved"] == 1
    run(f"ALTER TABLE {spot.sql} DROP FEATURE deletionVectors")
    assert "deletionVectors" not in run_detail(run, spot)["tableFeatures"]
    copy = spot.beside("copy")
    run(f"CREATE TABLE {copy.sql} LIKE {spot.sql}")
    assert (run(f"SELECT * FROM {copy.sql}"), len(run(f"SELECT * FROM {spot.sql}"))) == ([], 3)


def test_changes(run, spot):
    run(f"CREATE TABLE {spot.sql} (id INT) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)")
    run(f"INSERT INTO {spot.sql} VALUES (1)")
    run(f"UPDATE {spot.sql} SET id = 2")
    name = f"'{spot.sql}'"
    assert run(f"SELECT id, _change_type FROM table_changes({name}, 0, 1)") == [(1, "insert")]
    every = run(f"SELECT id, _change_type FROM table_changes({name}, 0)")
    assert every == [(1, "insert"), (1, "update_preimage"), (2, "update_postimage")]
    assert (
        run(f"SELECT id, _change_type FROM table_changes({name}, '2021-04-21 05:45:46', '2100-05-21 12:00:00')")
        == every
    )


def test_clustering(run, spot):
    run(f"CREATE TABLE {spot.sql} (a INT, b STRING) USING DELTA CLUSTER BY (a)")
    run(f"INSERT INTO {spot.sql} VALUES (1, 'x')")
    assert run(f"OPTIMIZE {spot.sql}")[0][1]["numFilesAdded"] in (0, 1)
    run(f"ALTER TABLE {spot.sql} CLUSTER BY (b, a)")
    assert run_detail(run, spot)["clusteringColumns"] == ["b", "a"]
    run(f"ALTER TABLE {spot.sql} CLUSTER BY NONE")
    assert run_detail(run, spot)["clusteringColumns"] == []


# ---- utilities


def test_utilities_by_every_spelling(run, spot, spark):
    run(f"CREATE TABLE {spot.sql} (id INT, date DATE) USING delta PARTITIONED BY (date)")
    for n in range(2):
        run(f"INSERT INTO {spot.sql} VALUES ({n}, date'2017-01-0{n + 1}')")
    spellings = [spot.sql]
    if spot.name is None:
        spellings += [f"'{spot.path}'", f"'{spot.path}/'", f"delta.`{spot.path}/`"]
    for name in spellings:
        assert [r[4] for r in run(f"DESCRIBE HISTORY {name} LIMIT 1")] and run(f"DESCRIBE DETAIL {name}")[0][
            0
        ] == "delta"
        run(f"OPTIMIZE {name} WHERE date >= '2017-01-01'")
        run(f"OPTIMIZE {name} WHERE date = '2017-01-01' ZORDER BY (id)")
        run(f"VACUUM {name}")
        run(f"VACUUM {name} LITE")
        run(f"VACUUM {name} RETAIN 200 HOURS")
        assert run(f"VACUUM {name} DRY RUN") == []
    run(f"RESTORE TABLE {spot.sql} TO VERSION AS OF 1")
    assert run(f"SELECT id FROM {spot.sql}") == [(0,)]
    assert run(f"RESTORE TABLE {spot.sql} TO TIMESTAMP AS OF '2100-01-01'")[0][2:4] == (0, 0)
    assert run(f"SHOW COLUMNS IN {spot.sql}") == [("date",), ("id",)]
    assert [r[:2] for r in run(f"DESCRIBE TABLE {spot.sql}")][-2:] == [("date", "date"), ("id", "int")]


def test_shallow_clones(run, spot, tmp_path):
    run(f"CREATE TABLE {spot.sql} (id INT) USING delta")
    run(f"INSERT INTO {spot.sql} SELECT id FROM range(0, 3, 1, 1)")
    targets = [spot.beside(w) for w in "abc"]
    size = run_detail(run, spot)["sizeInBytes"]
    assert run(f"CREATE TABLE {targets[0].sql} SHALLOW CLONE {spot.sql}") == [(size, 1, 0, 0, 0, 0)]
    assert run(f"CREATE TABLE IF NOT EXISTS {targets[0].sql} SHALLOW CLONE {spot.sql}") == []
    run(f"DELETE FROM {spot.sql} WHERE id = 0")
    run(f"CREATE TABLE {targets[1].sql} SHALLOW CLONE {spot.sql} VERSION AS OF 1")
    run(f"CREATE TABLE {targets[2].sql} SHALLOW CLONE {spot.sql} TIMESTAMP AS OF current_timestamp() "
        "TBLPROPERTIES (delta.logRetentionDuration = '3650 days')")  # fmt: skip
    found = [[r[0] for r in run(f"SELECT id FROM {t.sql}")] for t in targets]
    assert found == [[0, 1, 2], [0, 1, 2], [1, 2]]
    assert run_detail(run, targets[2])["properties"] == {"delta.logRetentionDuration": "3650 days"}
    replaced = run(f"CREATE OR REPLACE TABLE {targets[0].sql} SHALLOW CLONE {spot.sql}")
    assert replaced[0][1:3] == (1, 1) and run(f"SELECT id FROM {targets[0].sql}") == [(1,), (2,)]


# ---- CONVERT TO DELTA by name


@pytest.fixture
def entries(spark):
    spark.sql("CREATE DATABASE taken")
    yield spark
    spark.sql("DROP DATABASE taken CASCADE")


def entry(spark, name):
    text = spark.sql(f"SHOW TABLE EXTENDED IN taken LIKE '{name}'").first()["information"]
    found = dict(line.partition(": ")[::2] for line in text.splitlines() if ": " in line)
    return found["Provider"], found["Type"], found["Location"].removeprefix("file:")


@pytest.mark.parametrize("managed", [True, False], ids=["managed", "external"])
def test_a_name_of_parquet_files_becomes_one_of_a_delta_table(run, entries, tmp_path, managed):
    frame = entries.range(4).selectExpr("id", "id % 2 AS part", "named_struct('x', id) AS s").coalesce(1)
    writer = frame.write.format("parquet").partitionBy("part")
    (writer if managed else writer.option("path", str(tmp_path / "out"))).saveAsTable("taken.t")
    before = entry(entries, "t")
    with pytest.raises(errors.InvalidArgumentError, match="eave them out"):
        run("CONVERT TO DELTA taken.t PARTITIONED BY (part INT)")
    assert entry(entries, "t") == before and entries.table("taken.t").count() == 4
    run(
        "CONVERT TO DELTA taken.t NO STATISTICS" if managed else "CONVERT TO DELTA taken.t PARTITIONED BY (part BIGINT)"
    )
    assert entry(entries, "t") == ("boathouse", *before[1:])
    run("DELETE FROM taken.t WHERE id = 1")
    assert run("SELECT id, part, s.x FROM taken.t") == [(0, 0, 0), (2, 0, 2), (3, 1, 3)]
    table = DeltaTable.forName(entries, "taken.t")
    assert table.detail().first()["partitionColumns"] == ["part"] and table.history().count() == 2
    assert entries.read.option("path", before[2]).table("taken.t").count() == 3  # Spark knows no partitions of it
    assert run("CONVERT TO DELTA taken.t") == []  # as it is
    run("DROP TABLE taken.t")
    assert Path(before[2]).exists() != managed


def test_names_are_converted_by_the_builder_and_after_a_failure(run, entries, tmp_path, monkeypatch):
    entries.range(3).write.format("parquet").saveAsTable("taken.a")
    assert DeltaTable.convertToDelta(entries, "taken.a").toDF().select("a.id").count() == 3
    entries.range(3).write.format("parquet").option("path", str(tmp_path / "b")).saveAsTable("taken.b")
    monkeypatch.setattr("boathouse.engines.spark.entries.change_provider", fails)
    with pytest.raises(RuntimeError):
        run("CONVERT TO DELTA taken.b")
    monkeypatch.undo()
    assert entry(entries, "b")[0] == "parquet" and run("SELECT count(*) FROM taken.b") == [(3,)]
    run("CONVERT TO DELTA taken.b")
    assert entry(entries, "b")[0] == "boathouse" and bh.open(str(tmp_path / "b")).version == 0


def fails(*_):
    raise RuntimeError


def test_other_names_are_not_converted(run, entries):
    entries.range(3).write.format("orc").saveAsTable("taken.orc")
    entries.range(3).createOrReplaceTempView("a_view")
    for name, kind in (
        ("taken.orc", errors.UnsupportedFeatureError),
        ("taken.none", errors.TableNotFoundError),
        ("a_view", errors.InvalidArgumentError),
        ("iceberg.`/tmp/x`", errors.UnsupportedFeatureError),
    ):
        with pytest.raises(kind):
            run(f"CONVERT TO DELTA {name}")
        with pytest.raises(kind):
            DeltaTable.convertToDelta(entries, name)
    entries.catalog.dropTempView("a_view")
    assert entries.table("taken.orc").count() == 3


def test_a_date_is_a_time(run, spot):
    run(f"CREATE TABLE {spot.sql} (day DATE) USING delta")
    run(f"INSERT INTO {spot.sql} VALUES (date'2026-01-01')")
    assert run(f"SELECT * FROM {spot.sql} TIMESTAMP AS OF '2100-01-01'") == [(dt.date(2026, 1, 1),)]

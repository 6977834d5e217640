"""docs/sql.md, "What differs from delta-spark": each line is true, and nothing in the list is untested."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")
from pyspark.errors import AnalysisException

import boathouse as bh
from boathouse import errors
from boathouse.compat.delta_tables import DeltaTable

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
COLUMNS = "id bigint, city string"


def listed() -> list[str]:
    """What stands on the left side of the list."""
    part = PAGE.read_text("utf-8").partition("# What differs from delta-spark\n")[2].partition("\n# ")[0]
    return [m[1].strip() for m in re.finditer(r"^\| (.+?) \| .+ \|$", part, re.MULTILINE)][2:]


class Case:
    """A Delta table of two rows, and what a check needs beside it."""

    def __init__(self, spark, folder, monkeypatch):
        self.spark, self.folder, self.monkeypatch = spark, folder, monkeypatch
        self.path = str(folder / "t")
        self.table = DeltaTable.create(spark).location(self.path).addColumns(self.frame().schema).execute()
        bh.open(self.path, spark=spark).append(self.frame())

    def frame(self, rows=((1, "Kiel"), (2, "Oslo"))):
        return self.spark.createDataFrame(list(rows), COLUMNS).coalesce(1)

    def place(self, name):
        return str(self.folder / name)

    def sql(self, text):
        return sorted((tuple(r) for r in bh.sql(self.spark, text.format(t=f"delta.`{self.path}`")).collect()), key=str)

    def refused(self, call, kind=errors.UnsupportedFeatureError, match=None):
        before = bh.open(self.path).version
        with pytest.raises(kind, match=match):
            call()
        assert bh.open(self.path).version == before

    def said(self, **settings):
        """Settings of the session, until the test ends."""
        for key, value in settings.items():
            self.spark.conf.set(key, value)
        return settings


CHECKS = {}


def holds(line):
    def known(check):
        CHECKS[line] = check
        return check

    return known


def test_every_line_is_held():
    assert sorted(listed()) == sorted(CHECKS)


# ---- Spark's own calls


@holds("`spark.sql(text)` of statements on Delta tables")
def _(c):
    for text in ("SELECT * FROM {t}", "DELETE FROM {t}", "DESCRIBE HISTORY {t}", "OPTIMIZE {t}"):
        with pytest.raises(Exception, match=r"SYNTAX|UNSUPPORTED|NOT_FOUND"):
            c.spark.sql(text.format(t=f"delta.`{c.path}`")).collect()
        c.sql(text)


@holds('`spark.table("n")`, `saveAsTable("n")`, `toTable("n")` and others by a name alone')
def _(c):
    c.spark.sql("CREATE DATABASE differs")
    try:
        c.sql(f"CREATE TABLE differs.t USING delta LOCATION '{c.path}'")
        with pytest.raises(AnalysisException, match="the path is missing"):
            c.spark.table("differs.t").collect()
        assert c.spark.read.option("path", c.path).table("differs.t").count() == 2
        with pytest.raises(AnalysisException):
            c.frame().write.format("delta").mode("append").saveAsTable("differs.t")
    finally:
        c.spark.sql("DROP DATABASE differs CASCADE")
    assert "](names.md#what-sparks-own-calls-do)" in PAGE.read_text("utf-8")
    assert "## What Spark's own calls do" in (PAGE.parent / "names.md").read_text("utf-8")


@holds('`df.write.format("delta").save(path)`, mode `ignore`')
def _(c):
    for mode in ("error", "ignore"):
        with pytest.raises(AnalysisException, match="mode"):
            c.frame().write.format("delta").mode(mode).save(c.place("new"))
    with pytest.raises(errors.AlreadyExistsError):
        bh.write(c.frame(), c.path)
    bh.write(c.frame(), c.place("new"))
    assert bh.open(c.place("new")).count() == 2


@holds('`df.write.partitionBy("a")`')
def _(c):
    with pytest.raises(Exception, match="partitioning"):
        c.frame().write.format("delta").mode("append").partitionBy("city").save(c.place("new"))
    c.frame().write.format("delta").mode("append").option("partitionBy", "city").save(c.place("new"))
    assert DeltaTable.forPath(c.spark, c.place("new")).detail().first()["partitionColumns"] == ["city"]


@holds("options `replaceUsing`, `replaceOn`, `dataChange`, `fs.*`")
def _(c):
    for option in ("replaceUsing", "replaceOn", "dataChange", "fs.s3a.access.key"):
        save = c.frame().write.format("delta").mode("overwrite").option(option, "id").save
        c.refused(lambda save=save: save(c.path), AnalysisException, f"unknown option '{option.lower()}'")


@holds("options of streams `ignoreChanges`, `withEventTimeOrder`, `schemaTrackingLocation`, `excludeRegex`")
def _(c):
    for option in ("ignoreChanges", "withEventTimeOrder", "schemaTrackingLocation", "excludeRegex"):
        with pytest.raises(AnalysisException, match=f"(?i){option}"):
            c.spark.readStream.format("delta").option(option, "true").load(c.path)


@holds("`timestampAsOf` and its like are in the session's time zone")
def _(c):
    made = bh.open(c.path).history(1)[0].timestamp_ms
    local = c.spark.sql(f"SELECT date_format(timestamp_millis({made} + 60000), 'yyyy-MM-dd HH:mm:ss')").first()[0]
    zone = c.spark.conf.get("spark.sql.session.timeZone")
    c.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")  # nine hours before UTC has this time
    try:
        with pytest.raises(errors.VersionNotFoundError):
            c.table.restoreToTimestamp(local)
        with pytest.raises(errors.VersionNotFoundError):
            c.sql("SELECT * FROM {t} TIMESTAMP AS OF '" + local + "'")
        read = c.spark.read.format("delta").option("timestampAsOf", local)
        assert read.load(c.path).count() == 2
        with pytest.raises(AnalysisException, match="VersionNotFoundError"):
            read.option("timeZone", "Asia/Tokyo").load(c.path)
    finally:
        c.spark.conf.set("spark.sql.session.timeZone", zone)


@holds('rows without an identity or generated column, or one with a default, by `format("delta")`')
def _(c):
    for name, kind, match in (
        ("g", "GENERATED ALWAYS AS (id + 1)", "which the table computes"),
        ("d", "DEFAULT 7", "which the table computes"),
        ("i", "GENERATED ALWAYS AS IDENTITY", "identity column"),
    ):
        c.sql(f"CREATE TABLE delta.`{c.place(name)}` (n BIGINT {kind}, id BIGINT, city STRING) USING delta")
        with pytest.raises(AnalysisException, match=match):
            c.frame().write.format("delta").mode("append").save(c.place(name))
    c.sql(f"INSERT INTO delta.`{c.place('g')}` (id, city) VALUES (3, 'x')")
    bh.open(c.place("i"), spark=c.spark).append(c.frame())
    c.sql(f"INSERT INTO delta.`{c.place('i')}` (id, city) VALUES (3, 'x')")
    assert len({r["n"] for r in bh.open(c.place("i")).to_arrow().to_pylist()}) == 3


@holds("other settings `spark.databricks.delta.*`, as `write.txnAppId`, `replaceWhere.constraintCheck.enabled`")
def _(c):
    said = {
        "spark.databricks.delta.write.txnAppId": "a",
        "spark.databricks.delta.write.txnVersion": "1",
        "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false",
    }
    for key, value in said.items():
        c.spark.conf.set(key, value)
    try:
        for _ in range(2):
            c.sql("INSERT INTO {t} VALUES (3, 'x')")
        c.refused(lambda: c.sql("INSERT INTO {t} REPLACE WHERE id = 3 SELECT 4, 'y'"), errors.BoathouseError)
    finally:
        for key in said:
            c.spark.conf.unset(key)
    assert bh.open(c.path).count() == 4
    table = bh.open(c.path, spark=c.spark)
    for _ in range(2):
        table.append(c.frame(), txn=("a", 1))
    assert table.count() == 6


@holds(
    "`configure_spark_with_delta_pip`, and the settings `spark.sql.extensions` and `spark.sql.catalog.spark_catalog` "
    "of Delta"
)
def _(c):
    from boathouse.compat import delta_tables

    assert not hasattr(delta_tables, "configure_spark_with_delta_pip")
    with pytest.raises(Exception, match="DeltaCatalog"):
        c.spark._jvm.java.lang.Class.forName("org.apache.spark.sql.delta.catalog.DeltaCatalog")


@holds("`delta.exceptions.ConcurrentAppendException` and its sisters")
def _(c):
    schema = pa.schema([("id", pa.int64()), ("city", pa.string())])

    def batches():
        bh.open(c.path).add_column("later", "int")  # meanwhile, and the rows can be read only once
        yield pa.record_batch([[5], ["x"]], schema=schema)

    with pytest.raises(errors.CommitConflictError, match="metadata-changed"):
        bh.open(c.path).append(pa.RecordBatchReader.from_batches(schema, batches()))


# ---- what is refused


@holds('`generate("symlink_format_manifest")`, `GENERATE symlink_format_manifest FOR TABLE t`')
def _(c):
    c.refused(lambda: c.table.generate("symlink_format_manifest"), match="generate")
    c.refused(lambda: c.sql("GENERATE symlink_format_manifest FOR TABLE {t}"), match="GENERATE")


@holds("`dropFeatureSupport(name, True)`, `DROP FEATURE name TRUNCATE HISTORY`")
def _(c):
    c.table.addFeatureSupport("deletionVectors")
    c.refused(lambda: c.table.dropFeatureSupport("deletionVectors", True), match="truncateHistory")
    c.refused(lambda: c.sql("ALTER TABLE {t} DROP FEATURE deletionVectors TRUNCATE HISTORY"), match="TRUNCATE HISTORY")
    c.sql("ALTER TABLE {t} DROP FEATURE deletionVectors")
    assert "deletionVectors" not in c.table.detail().first()["tableFeatures"]
    assert c.sql("SELECT count(*) FROM {t} VERSION AS OF 1") == [(2,)]


@holds("``CONVERT TO DELTA iceberg.`/path` ``, ``SHALLOW CLONE parquet.`/path` `` or of an Iceberg table")
def _(c):
    bh.write(c.frame(), c.place("ice"), format="iceberg")
    c.frame().write.parquet(c.place("files"))
    for source in (f"iceberg.`{c.place('ice')}`", f"parquet.`{c.place('files')}`"):
        c.refused(lambda source=source: c.sql(f"CREATE TABLE delta.`{c.place('new')}` SHALLOW CLONE {source}"))
    c.refused(lambda: c.sql(f"CONVERT TO DELTA iceberg.`{c.place('ice')}`"))
    assert bh.detect(c.place("ice")) == ("iceberg",) and bh.detect(c.place("new")) == ()
    bh.write(bh.open(c.place("ice")), c.place("new"))
    assert bh.open(c.place("new"), "delta").count() == 2


@holds("a shallow clone of a table with row tracking, which gets new row ids")
def _(c):
    c.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    c.refused(lambda: c.table.clone(c.place("new"), isShallow=True), match="row tracking")
    c.refused(lambda: c.sql(f"CREATE TABLE delta.`{c.place('new')}` SHALLOW CLONE {{t}}"), match="row tracking")


@holds("`clone(target)`, which is a deep one")
def _(c):
    c.refused(lambda: c.table.clone(c.place("new")), match="deep clone")
    for words in ("CLONE", "DEEP CLONE"):
        c.refused(lambda words=words: c.sql(f"CREATE TABLE delta.`{c.place('new')}` {words} {{t}}"), match="deep clone")
    bh.write(bh.open(c.path), c.place("copy"))
    assert bh.open(c.place("copy")).count() == 2 and bh.detect(c.place("new")) == ()


@holds("`VACUUM t USING INVENTORY i`")
def _(c):
    for source in ("files", "(SELECT * FROM files)"):
        c.refused(lambda source=source: c.sql(f"VACUUM {{t}} USING INVENTORY {source}"), match="INVENTORY")
    c.sql("VACUUM {t} LITE")


@holds("`OPTIMIZE t FULL`")
def _(c):
    c.refused(lambda: c.sql("OPTIMIZE {t} FULL"), match="FULL")
    c.sql("OPTIMIZE {t}")


@holds("`ALTER TABLE t REPLACE COLUMNS (...)`")
def _(c):
    c.refused(lambda: c.sql("ALTER TABLE {t} REPLACE COLUMNS (city STRING, id BIGINT)"), match="REPLACE COLUMNS")
    c.sql("ALTER TABLE {t} ALTER COLUMN city FIRST")
    assert bh.open(c.path).schema.names == ("city", "id")


@holds("`ALTER TABLE t ALTER COLUMN a SYNC IDENTITY`")
def _(c):
    c.refused(lambda: c.sql("ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY"), match="SYNC IDENTITY")
    c.sql(f"CREATE TABLE delta.`{c.place('i')}` (n BIGINT GENERATED BY DEFAULT AS IDENTITY, id BIGINT)")
    c.sql(f"INSERT INTO delta.`{c.place('i')}` VALUES (-5, 1)")
    c.sql(f"INSERT INTO delta.`{c.place('i')}` (id) SELECT id FROM range(9)")
    assert len({r["n"] for r in bh.open(c.place("i")).to_arrow().to_pylist()}) == 10


@holds("`SELECT _metadata.row_id, _metadata.row_commit_version FROM t`")
def _(c):
    c.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    with pytest.raises(AnalysisException, match="row_id"):
        c.sql("SELECT _metadata.row_id FROM {t}")
    scan = bh.open(c.path, spark=c.spark).scan(columns=["_row_id", "id"])
    assert sorted(tuple(r) for r in scan.to_spark().collect()) == [(0, 1), (1, 2)]
    with pytest.raises(errors.ColumnNotFoundError):
        bh.open(c.path).scan(columns=["_row_commit_version"])


# ---- what does more


@holds("`CREATE OR REPLACE TABLE b SHALLOW CLONE a` and `replace=True` need a `b` without rows")
def _(c):
    target = c.place("b")
    bh.write(c.frame([(9, "x")]), target)
    c.sql(f"CREATE OR REPLACE TABLE delta.`{target}` SHALLOW CLONE {{t}}")
    assert bh.open(target).count() == 2 and bh.open(target, version=0).count() == 1
    assert c.table.clone(target, isShallow=True, replace=True).toDF().count() == 2


@holds("changes of versions before `delta.enableChangeDataFeed` are refused")
def _(c):
    c.table.update("id = 1", {"city": "'x'"})
    found = c.sql(f"SELECT _commit_version, id, city, _change_type FROM table_changes_by_path('{c.path}', 2)")
    assert found == [(2, 1, "Kiel", "delete"), (2, 1, "x", "insert")]


# The last: its cases are those of the checks above.
@pytest.mark.spark
@pytest.mark.parametrize("line", list(CHECKS))
def test_the_line_is_true(line, spark, tmp_path, monkeypatch):
    CHECKS[line](Case(spark, tmp_path, monkeypatch))

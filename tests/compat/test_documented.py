"""What delta-spark's pages and docstrings show of `DeltaTable`, typed with the import changed, by path and by name."""

from __future__ import annotations

import datetime as dt

import pytest

pytest.importorskip("pyspark")
from pyspark.sql.functions import col, expr, lit
from pyspark.sql.functions import max as greatest_of
from pyspark.sql.types import DateType, LongType, StructField, StructType

import boathouse as bh
from boathouse import errors
from boathouse.compat.delta_tables import DeltaMergeBuilder, DeltaOptimizeBuilder, DeltaTable, IdentityGenerator

pytestmark = pytest.mark.spark

PEOPLE = [(1, "Ada", "F", "1815-12-10"), (2, "Alan", "M", "1912-06-23"), (3, "Grace", "F", "1906-12-09")]
COLUMNS = "id int, name string, gender string, born string"


def rows(found) -> list:
    df = found.toDF() if isinstance(found, DeltaTable) else found
    return sorted((tuple(r) for r in df.collect()), key=str)


@pytest.fixture
def people(spot):
    return spot.filled(PEOPLE, COLUMNS)


# ---- quick start


@pytest.mark.route("delta-spark's quick start")
def test_quick_start(spark, spot):
    table = spot.filled([(n,) for n in range(5, 10)], "id bigint")
    table.update(condition=expr("id % 2 == 0"), set={"id": expr("id + 100")})
    assert rows(table) == [(106,), (108,), (5,), (7,), (9,)]
    table.delete(condition=expr("id % 2 == 0"))
    assert rows(table) == [(5,), (7,), (9,)]
    news = spark.range(0, 8)
    (
        table.alias("old")
        .merge(news.alias("news"), "old.id = news.id")
        .whenMatchedUpdate(set={"id": col("news.id")})
        .whenNotMatchedInsert(values={"id": col("news.id")})
        .execute()
    )
    assert sorted(r.id for r in table.toDF().collect()) == [*range(8), 9]


# ---- delete and update


def test_delete_by_text_and_by_functions(people):
    people.delete("born < '1900-01-01'")
    assert rows(people) == [PEOPLE[1], PEOPLE[2]]
    people.delete(col("born") < "1910-01-01")
    assert rows(people) == [PEOPLE[1]]
    people.delete()
    assert rows(people) == []


def test_update_by_text_and_by_functions(people):
    people.update(condition="gender = 'F'", set={"gender": "'Female'"})
    people.update(condition=col("gender") == "M", set={"gender": lit("Male")})
    assert [r[2] for r in rows(people)] == ["Female", "Male", "Female"]
    people.update(set={"name": "upper(name)"})
    assert [r[1] for r in rows(people)] == ["ADA", "ALAN", "GRACE"]


# ---- merge


def test_merge_of_every_column_by_name(spark, people, spot):
    updates = spot.beside("updates").filled(
        [(3, "Grace H.", "F", "1906-12-09"), (4, "Edsger", "M", "1930-05-11")], COLUMNS
    )
    names = ("id", "name", "gender", "born")
    (
        people.alias("people")
        .merge(updates.toDF().alias("updates"), "people.id = updates.id")
        .whenMatchedUpdate(set={n: f"updates.{n}" for n in names})
        .whenNotMatchedInsert(values={n: f"updates.{n}" for n in names})
        .execute()
    )
    assert [r[1] for r in rows(people)] == ["Ada", "Alan", "Grace H.", "Edsger"]


def test_merge_makes_the_target_what_the_source_is(spark, people):
    source = spark.createDataFrame([(2, "Alan", "M", "1912"), (9, "Barbara", "F", "1939")], COLUMNS).alias("source")
    builder = people.alias("target").merge(source, "source.id = target.id")
    assert isinstance(builder, DeltaMergeBuilder)
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().whenNotMatchedBySourceDelete().execute()
    assert rows(people) == [(2, "Alan", "M", "1912"), (9, "Barbara", "F", "1939")]


def test_merge_marks_rows_that_the_source_lacks(spark, spot):
    now, old = dt.datetime.now(), dt.datetime(2001, 1, 1)
    target = spot.filled([("a", now, "active"), ("b", now, "active"), ("c", old, "active")],
                         "key string, lastSeen timestamp, status string")  # fmt: skip
    source = spark.createDataFrame([("a", now), ("d", now)], "key string, timestamp timestamp").alias("source")
    (
        target.alias("target")
        .merge(source, "source.key = target.key")
        .whenMatchedUpdate(set={"target.lastSeen": "source.timestamp"})
        .whenNotMatchedInsert(
            values={"target.key": "source.key", "target.lastSeen": "source.timestamp", "target.status": "'active'"}
        )
        .whenNotMatchedBySourceUpdate(
            condition="target.lastSeen >= (current_date() - INTERVAL '5' DAY)", set={"target.status": "'inactive'"}
        )
        .execute()
    )
    assert [(r[0], r[2]) for r in rows(target)] == [
        ("a", "active"),
        ("b", "inactive"),
        ("c", "active"),
        ("d", "active"),
    ]


def test_merge_without_duplicates(spark, spot):
    today = dt.date.today()
    logs = spot.filled([("u1", today), ("u2", today)], "uniqueId string, date date")
    news = spark.createDataFrame(
        [("u2", today), ("u3", today), ("u4", dt.date(2001, 1, 1))], "uniqueId string, date date"
    )
    (
        logs.alias("logs")
        .merge(
            news.alias("news"),
            "logs.uniqueId = news.uniqueId AND logs.date > current_date() - INTERVAL 7 DAYS",
        )
        .whenNotMatchedInsertAll("news.date > current_date() - INTERVAL 7 DAYS")
        .execute()
    )
    assert [r[0] for r in rows(logs)] == ["u1", "u2", "u3"]
    logs.alias("logs").merge(news.alias("news"), "logs.uniqueId = news.uniqueId").whenNotMatchedInsertAll().execute()
    assert [r[0] for r in rows(logs)] == ["u1", "u2", "u3", "u4"]


def test_merge_keeps_the_history_of_a_dimension(spark, spot):
    customers = spot.filled(
        [(1, "Kiel", True, "2020", None), (2, "Oslo", True, "2020", None)],
        "customerId int, address string, current boolean, effectiveDate string, endDate string",
    )
    updates = spark.createDataFrame(
        [(1, "Turku", "2026"), (3, "Bergen", "2026")], "customerId int, address string, effectiveDate string"
    ).alias("updates")
    moved = updates.join(customers.toDF().alias("customers"), "customerid").where(
        "customers.current = true AND updates.address <> customers.address"
    )
    staged = moved.selectExpr("NULL as mergeKey", "updates.*").union(
        updates.selectExpr("updates.customerId as mergeKey", "*")
    )
    (
        customers.alias("customers")
        .merge(staged.alias("staged_updates"), "customers.customerId = mergeKey")
        .whenMatchedUpdate(
            condition="customers.current = true AND customers.address <> staged_updates.address",
            set={"current": "false", "endDate": "staged_updates.effectiveDate"},
        )
        .whenNotMatchedInsert(
            values={
                "customerid": "staged_updates.customerId",
                "address": "staged_updates.address",
                "current": "true",
                "effectiveDate": "staged_updates.effectiveDate",
                "endDate": "null",
            }
        )
        .execute()
    )
    assert rows(customers) == [
        (1, "Kiel", False, "2020", "2026"),
        (1, "Turku", True, "2026", None),
        (2, "Oslo", True, "2020", None),
        (3, "Bergen", True, "2026", None),
    ]


def test_merge_of_captured_changes(spark, spot):
    table = spot.filled([("a", "1"), ("b", "2")], "key string, value string")
    changes = spark.createDataFrame(
        [("a", 1, "5", False), ("a", 2, None, True), ("b", 1, "7", False), ("c", 1, "9", False), ("d", 1, None, True)],
        "key string, time int, newValue string, deleted boolean",
    )
    latest = (
        changes.selectExpr("key", "struct(time, newValue, deleted) as otherCols")
        .groupBy("key")
        .agg(greatest_of("otherCols").alias("latest"))
        .select("key", "latest.*")
    )
    (
        table.alias("t")
        .merge(latest.alias("s"), "s.key = t.key")
        .whenMatchedDelete(condition="s.deleted = true")
        .whenMatchedUpdate(set={"key": "s.key", "value": "s.newValue"})
        .whenNotMatchedInsert(condition="s.deleted = false", values={"key": "s.key", "value": "s.newValue"})
        .execute()
    )
    assert rows(table) == [("b", "7"), ("c", "9")]


def test_merge_evolves_the_schema_where_it_is_asked_to(spark, spot):
    table = spot.filled([("a", 1)], "key string, value int")
    source = spark.createDataFrame([("a", 2, "x"), ("b", 3, "y")], "key string, value int, more string").alias("s")

    def merged():
        return table.alias("t").merge(source, "t.key = s.key").whenMatchedUpdateAll().whenNotMatchedInsertAll()

    merged().execute()
    assert rows(table) == [("a", 2), ("b", 3)]
    merged().withSchemaEvolution().execute()
    assert rows(table) == [("a", 2, "x"), ("b", 3, "y")]
    spark.conf.set("spark.databricks.delta.schema.autoMerge.enabled", True)
    try:
        later = source.withColumn("last", lit(True)).alias("s")
        table.alias("t").merge(later, "t.key = s.key").whenMatchedUpdateAll().execute()
    finally:
        spark.conf.unset("spark.databricks.delta.schema.autoMerge.enabled")
    assert rows(table) == [("a", 2, "x", True), ("b", 3, "y", True)]


# ---- tables are made


def test_builders_describe_tables(spark, spot):
    made = (
        spot.builder("createIfNotExists")
        .addColumn("id", "INT", nullable=False)
        .addColumn("name", "STRING", comment="surname")
        .addColumn("birthDate", "TIMESTAMP")
        .addColumn("dateOfBirth", DateType(), generatedAlwaysAs="CAST(birthDate AS DATE)")
        .addColumn("gender", "STRING")
        .partitionedBy("gender")
        .property("description", "table with people data")
        .comment("people")
        .execute()
    )
    detail = made.detail().first()
    assert (detail["partitionColumns"], detail["description"]) == (["gender"], "people")
    assert detail["properties"] == {"description": "table with people data"}
    born = dt.datetime(1912, 6, 23, 11, 30)
    people = spark.createDataFrame(
        [(1, "Turing", born, "M")], "id int, name string, birthDate timestamp, gender string"
    )
    bh.open(detail["location"], spark=spark).append(people)
    assert rows(made) == [(1, "Turing", born, born.date(), "M")]
    spot.builder("createIfNotExists").addColumn("other", "INT").execute()
    assert made.toDF().columns == ["id", "name", "birthDate", "dateOfBirth", "gender"]
    fields = StructType([StructField("a", LongType(), False)])
    again = spot.builder("createOrReplace").addColumns(fields).addColumn("b", "STRING").clusterBy("b").execute()
    assert (rows(again), again.toDF().columns) == ([], ["a", "b"])
    assert again.detail().first()["clusteringColumns"] == ["b"]
    spot.builder("replace").addColumn("c", "DATE").execute()
    assert spot.table().toDF().columns == ["c"]
    with pytest.raises(errors.AlreadyExistsError):
        spot.builder().addColumn("c", "DATE").execute()


def test_identity_columns(spark, spot):
    table = (
        spot.builder()
        .addColumn("a", dataType=LongType(), generatedAlwaysAs=IdentityGenerator())
        .addColumn("b", dataType=LongType(), generatedAlwaysAs=IdentityGenerator(start=-1, step=1))
        .addColumn("c", dataType=LongType(), generatedByDefaultAs=IdentityGenerator(start=5, step=2))
        .addColumn("day", dataType=DateType())
        .execute()
    )
    handle, day = bh.open(table.detail().first()["location"], spark=spark), dt.date(2026, 1, 1)
    handle.append(spark.createDataFrame([(100, day)], "c bigint, day date"))
    handle.append(spark.createDataFrame([(day,)], "day date"))
    first, second = sorted(rows(table), key=lambda r: r[0])
    assert first[0] >= 1 and first[1] >= -1 and first[2] == 100
    assert second[0] > first[0] and second[1] > first[1] and second[2] >= 5 and second[2] % 2 == 1


# ---- utilities


def test_history_and_detail(spark, people, spot):
    people.delete("id = 1")
    assert [r["operation"] for r in people.history().collect()] == ["DELETE", "WRITE", "CREATE TABLE"]
    last = people.history(1).first()
    assert (last["version"], last["operationMetrics"]["numDeletedRows"]) == (2, "1")
    detail = people.detail().first()
    assert (detail["format"], detail["minReaderVersion"], detail["minWriterVersion"]) == ("delta", 1, 2)
    assert detail["name"] == (None if spot.name is None else "spark_catalog.documented.t")
    assert people.alias("p").detail().first()["name"] == detail["name"]


def test_vacuum(spark, people):
    people.delete("id = 1")
    assert rows(people.vacuum()) == []
    with pytest.raises(errors.InvalidArgumentError, match="168"):
        people.vacuum(100)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        people.vacuum(0)
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert [r[0] for r in rows(people)] == [2, 3]
    with pytest.raises(errors.MissingFileError):
        people.restoreToVersion(1)


def test_optimize(spark, spot):
    table = spot.builder().addColumn("date", "STRING").addColumn("kind", "INT").partitionedBy("date").execute()
    place = table.detail().first()["location"]
    for n in range(3):
        frame = spark.createDataFrame([("2021-11-18", n), ("2021-11-19", n)], "date string, kind int").coalesce(1)
        frame.write.format("delta").mode("append").save(place)
    builder = table.optimize()
    assert isinstance(builder, DeltaOptimizeBuilder)
    done = builder.where("date='2021-11-18'").executeCompaction().first()
    assert (done["metrics"]["numFilesAdded"], done["metrics"]["numFilesRemoved"]) == (1, 3)
    assert table.optimize().executeCompaction().first()["metrics"]["numFilesRemoved"] == 3
    assert table.optimize().executeCompaction().first()["metrics"]["numFilesRemoved"] == 0  # idempotent
    assert table.optimize().where("date='2021-11-18'").executeZOrderBy("kind").first()["metrics"]["numFilesAdded"] == 1
    assert len(rows(table)) == 6


def test_restore(people):
    people.delete("id = 1")
    figures = people.restoreToVersion(1).first()
    assert figures["num_restored_files"] == 1 and rows(people) == PEOPLE
    people.delete("id = 2")
    moment = people.history(1).first()["timestamp"] + dt.timedelta(minutes=1)
    people.restoreToTimestamp(moment.strftime("%Y-%m-%d %H:%M:%S"))
    assert [r[0] for r in rows(people)] == [1, 3]
    with pytest.raises(errors.VersionNotFoundError):
        people.restoreToTimestamp("2019-02-14")


def test_clones(people, spot):
    people.delete("id = 1")
    targets = [spot.beside(w) for w in ("now", "then", "time")]
    places = [t.name or t.path for t in targets]
    clone = people.clone(target=places[0], isShallow=True, replace=False, properties={"delta.appendOnly": "true"})
    assert rows(clone) == PEOPLE[1:] and clone.detail().first()["properties"]["delta.appendOnly"] == "true"
    assert rows(people.cloneAtVersion(1, places[1], isShallow=True)) == PEOPLE
    assert rows(people.cloneAtTimestamp("2100-01-01", places[2], isShallow=True)) == PEOPLE[1:]
    targets[1].table().delete()
    assert rows(people.clone(places[1], isShallow=True, replace=True)) == rows(targets[1].table()) == PEOPLE[1:]
    with pytest.raises(errors.AlreadyExistsError):
        people.clone(places[1], isShallow=True)


def test_protocols_and_features(people):
    people.upgradeTableProtocol(1, 3)
    detail = people.detail().first()
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (1, 3)
    people.upgradeTableProtocol(readerVersion=2, writerVersion=5)
    people.upgradeTableProtocol(1, 2)  # what it is beyond
    detail = people.detail().first()
    assert (detail["minReaderVersion"], detail["minWriterVersion"]) == (2, 5)
    assert "columnMapping" in detail["tableFeatures"]
    people.addFeatureSupport("deletionVectors")
    assert "deletionVectors" in people.detail().first()["tableFeatures"]
    people.dropFeatureSupport("deletionVectors")
    assert "deletionVectors" not in people.detail().first()["tableFeatures"] and rows(people) == PEOPLE
    with pytest.raises(errors.InvalidArgumentError, match="not a version"):
        people.upgradeTableProtocol(4, 9)


def test_parquet_becomes_a_table_in_place(spark, tmp_path):
    spark.range(4).coalesce(1).write.parquet(str(tmp_path / "plain"))
    table = DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 'plain'}`")
    assert rows(table) == [(0,), (1,), (2,), (3,)]
    spark.range(4).selectExpr("id", "id % 2 AS part").write.partitionBy("part").parquet(str(tmp_path / "parts"))
    parted = DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 'parts'}`", "part int")
    assert rows(parted) == [(0, 0), (1, 1), (2, 0), (3, 1)] and parted.detail().first()["partitionColumns"] == ["part"]
    assert DeltaTable.isDeltaTable(spark, str(tmp_path / "parts"))
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path))

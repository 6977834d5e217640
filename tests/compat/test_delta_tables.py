"""A job moves by one import: `boathouse.compat.delta_tables` takes what delta-spark's `delta.tables` takes."""

from __future__ import annotations

import datetime as dt
import inspect
import pickle

import deltalake
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors

pytest.importorskip("pyspark")
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F
from pyspark.sql import types as S

from boathouse.compat.delta_tables import DeltaTable, DeltaTableBuilder, IdentityGenerator

pytestmark = pytest.mark.spark

LETTERS = [("a", 1), ("b", 2), ("c", 3), ("d", 4)]
NEWS = [("a", -1), ("b", 0), ("e", -5), ("f", -6)]


def frame(spark, rows, names="key string, value bigint"):
    return spark.createDataFrame(rows, names)


@pytest.fixture
def path(spark, tmp_path):
    uri = str(tmp_path / "t")
    keys, values = zip(*LETTERS, strict=True)
    bh.write(pa.table({"key": keys, "value": pa.array(values, pa.int64())}), uri)
    return uri


@pytest.fixture
def table(spark, path):
    return DeltaTable.forPath(spark, path)


def rows(found) -> list:
    df = found.toDF() if isinstance(found, DeltaTable) else found
    return sorted(tuple(r) for r in df.collect())


def as_read_by_deltalake(path) -> list:
    reader = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    return sorted(tuple(r.values()) for r in pa.table(reader.execute("select * from t").read_all()).to_pylist())


# ---- opening


def test_tables_are_opened_by_path_and_told_from_others(spark, path, tmp_path):
    assert rows(DeltaTable.forPath(spark, path)) == LETTERS
    keys = {"fs.s3a.access.key": "x", "fs.s3a.committer.name": "magic", "dfs.replication": "1"}
    assert rows(DeltaTable.forPath(spark, path, keys)) == LETTERS
    with pytest.raises(errors.InvalidArgumentError, match="storage option"):
        DeltaTable.forPath(spark, path, {"regoin": "x"})
    assert DeltaTable.isDeltaTable(spark, path)
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path))
    bh.write(pa.table({"id": [1]}), str(tmp_path / "ice"), "iceberg")
    assert not DeltaTable.isDeltaTable(spark, str(tmp_path / "ice"))
    with pytest.raises(errors.TableNotFoundError, match="Iceberg"):
        DeltaTable.forPath(spark, str(tmp_path / "ice"))
    with pytest.raises(errors.TableNotFoundError):
        DeltaTable.forPath(spark, str(tmp_path / "nothing"))


def test_tables_are_opened_by_name(spark, path):
    spark.sql(f"create table letters (key string, value bigint) using parquet location '{path}'")
    try:
        t = DeltaTable.forName(spark, "letters")
        t.update("letters.key = 'a'", {"letters.value": "letters.value + 100"})
        assert rows(t)[0] == ("a", 101)
        assert rows(t.toDF().select("letters.key"))[0] == ("a",)
        t = DeltaTable.forName(spark, "default.letters")
        t.delete("default.letters.value < 4 AND letters.value > 1")
        assert rows(t) == [("a", 101), ("d", 4)]
    finally:
        spark.sql("drop table letters")
    assert rows(DeltaTable.forName(spark, f"delta.`{path}`")) == [("a", 101), ("d", 4)]
    with pytest.raises(errors.TableNotFoundError, match="letters"):
        DeltaTable.forName(spark, "letters")


def test_an_alias_names_the_columns(table):
    found = table.alias("x").toDF().select("x.key", F.col("x.value"))
    assert rows(found) == LETTERS
    table.alias("x").delete("x.key = 'a' and `x`.value = 1")
    table.alias("x").update(F.col("x.key") == "b", {"x.value": "x.value * 10"})
    assert rows(table) == [("b", 20), ("c", 3), ("d", 4)]


# ---- delete and update


@pytest.mark.route("DeltaTable.delete")
def test_delete_by_text_by_column_and_of_all(table, path):
    table.delete("key = 'a'")
    table.delete(F.col("key") == F.lit("b"))
    assert rows(table) == as_read_by_deltalake(path) == [("c", 3), ("d", 4)]
    assert table.delete(F.expr("value > 3 or key like 'z%'")) is None
    table.delete()
    assert rows(table) == []
    with pytest.raises(TypeError, match="must be a Spark SQL Column or a string"):
        table.delete(condition=1)


@pytest.mark.route("DeltaTable.update")
def test_update_by_text_and_by_columns(table, path):
    assert table.update("key = 'a' or key = 'b'", {"value": "1"}) is None
    assert rows(table) == [("a", 1), ("b", 1), ("c", 3), ("d", 4)]
    table.update(F.expr("key = 'a' or key = 'b'"), {"value": F.expr("0")})
    table.update(condition=F.col("key").isin("c", "d"), set={"value": F.col("value") + F.lit(1), "key": F.upper("key")})
    assert rows(table) == as_read_by_deltalake(path) == [("C", 4), ("D", 5), ("a", 0), ("b", 0)]
    table.update(set={"value": F.when(F.col("key") == "a", 7).otherwise(F.lit(200).cast("bigint"))})
    assert rows(table) == [("C", 200), ("D", 200), ("a", 7), ("b", 200)]


def test_wrong_arguments_of_update_are_refused_as_there(table):
    for kind, match, arguments in (
        (ValueError, "cannot be None", ({"value": "200"},)),
        (ValueError, "cannot be None", ("a",)),
        (TypeError, "must be a dict", (None, 1)),
        (TypeError, "must be a Spark SQL Column or a string", (1, {})),
        (TypeError, r"Values of dict in .* must contain only", (None, {"value": 1})),
        (TypeError, r"Keys of dict in .* must contain only", (None, {1: ""})),
    ):
        with pytest.raises(kind, match=match) as found:
            table.update(*arguments)
        assert isinstance(found.value, errors.InvalidArgumentError)


# ---- merge


def merge(table, spark, on="key = k"):
    return table.merge(frame(spark, NEWS, "k string, v bigint"), on)


@pytest.mark.parametrize("as_column", [False, True])
@pytest.mark.route("DeltaTable.merge")
def test_merge_with_every_clause_and_conditions(table, spark, path, as_column):
    sql = F.expr if as_column else str
    done = (
        merge(table, spark, sql("key = k"))
        .whenMatchedUpdate(sql("k = 'a'"), {"value": F.col("v") + 0 if as_column else "v + 0"})
        .whenMatchedDelete(condition=sql("k = 'b'"))
        .whenNotMatchedInsert(sql("k = 'e'"), {"key": "k", "value": F.col("v") if as_column else "v"})
        .whenNotMatchedBySourceUpdate(condition=sql("key = 'c'"), set={"value": sql("value + 30")})
        .whenNotMatchedBySourceDelete(sql("key = 'd'"))
        .execute()
    )
    assert rows(table) == as_read_by_deltalake(path) == [("a", -1), ("c", 33), ("e", -5)]
    names = ["num_affected_rows", "num_updated_rows", "num_deleted_rows", "num_inserted_rows"]
    assert done.columns == names
    assert tuple(done.first()) == (5, 2, 2, 1)


def test_the_first_clause_that_applies_decides(table, spark):
    (
        merge(table, spark)
        .whenNotMatchedBySourceDelete("key = 'c'")
        .whenNotMatchedBySourceUpdate("key = 'c'", {"value": "5"})
        .whenNotMatchedBySourceUpdate(set={"value": "6"})
        .execute()
    )
    assert rows(table) == [("a", 1), ("b", 2), ("d", 6)]


def test_merge_of_all_columns_with_aliases(table, spark):
    source = frame(spark, NEWS).alias("s")
    m = table.alias("t").merge(source, F.expr("t.key = s.key"))
    m.whenMatchedUpdateAll(F.col("s.key") == "a").whenNotMatchedInsertAll("s.key = 'e'").execute()
    assert rows(table) == [("a", -1), ("b", 2), ("c", 3), ("d", 4), ("e", -5)]
    # Names that both have are the table's where there is no source row, and the source's where there is no table row.
    m.whenNotMatchedBySourceUpdate(set={"t.value": "value + 1"}).whenNotMatchedInsert(
        "value < -5", {"t.key": "key", "value": F.col("value") * 2}
    ).execute()
    assert rows(table) == [("a", -1), ("b", 2), ("c", 4), ("d", 5), ("e", -5), ("f", -12)]


def test_merge_of_a_view_and_of_columns_that_belong_to_frames(table, spark):
    frame(spark, [("a", 5)], "k string, v bigint").createOrReplaceTempView("letters_of_today")
    source = spark.table("letters_of_today")
    table.merge(source, "key = letters_of_today.k").whenMatchedUpdate(set={"value": "letters_of_today.v"}).execute()
    assert rows(table)[0] == ("a", 5)
    table.merge(source, source["k"] == F.col("key")).whenMatchedUpdate(set={"value": source["v"] + 1}).execute()
    assert rows(table)[0] == ("a", 6)
    spark.catalog.dropTempView("letters_of_today")


def test_fields_of_structs(spark, tmp_path):
    rows = spark.createDataFrame([(1, (1, 2)), (2, None)], "id int, s struct<x: int, y: int>")
    bh.write(rows, str(tmp_path / "n"), format="delta")
    t = DeltaTable.forPath(spark, str(tmp_path / "n"))
    t.alias("t").update(set={"t.s.x": "id * 10"})
    news = spark.createDataFrame([(2, 5)], "id int, v int").alias("n")
    t.alias("t").merge(news, "t.id = n.id").whenMatchedUpdate(set={"t.s.y": "n.v", "s.x": "t.s.x + 1"}).execute()
    assert [tuple(r) for r in t.toDF().select("id", "s.x", "s.y").orderBy("id").collect()] == [(1, 10, 2), (2, 21, 5)]


def test_merge_with_schema_evolution(table, spark):
    source = frame(spark, [("a", 9, "new"), ("z", 8, "row")], "key string, value bigint, more string").alias("s")
    m = table.alias("t").merge(source, "t.key = s.key").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    before = m.whenMatchedDelete("false")
    m.withSchemaEvolution().execute()
    assert rows(table)[0] == ("a", 9, "new") and rows(table)[-1] == ("z", 8, "row")
    assert before is not m and not m._evolve  # each method returns a new builder


def test_a_row_that_two_source_rows_match_is_refused(table, spark):
    source = frame(spark, [("a", 1), ("a", 2)], "k string, v bigint")
    with pytest.raises(errors.ConstraintViolationError, match="more than one source row"):
        table.merge(source, "key = k").whenMatchedUpdate(set={"value": "v"}).execute()


def test_wrong_arguments_of_merge_are_refused_as_there(table, spark):
    with pytest.raises(TypeError, match="must be DataFrame"):
        table.merge(1, "key = k")
    with pytest.raises(TypeError, match="must be a Spark SQL Column or a string"):
        merge(table, spark, 1)
    with pytest.raises(ValueError, match="cannot be None"):
        merge(table, spark, None)
    m = merge(table, spark)
    for clause in (m.whenMatchedUpdate, m.whenNotMatchedInsert, m.whenNotMatchedBySourceUpdate):
        for kind, match, arguments in (
            (ValueError, "cannot be None", ({"value": "v"},)),
            (TypeError, "must be a Spark SQL Column or a string", (1, {"value": "v"})),
            (TypeError, "must be a dict", ("k = 'a'", 1)),
            (TypeError, r"Values of dict in .* must contain only", (None, {"value": 1})),
            (TypeError, r"Keys of dict in .* must contain only", (None, {1: ""})),
        ):
            with pytest.raises(kind, match=match):
                clause(*arguments)
    for clause in (m.whenMatchedDelete, m.whenMatchedUpdateAll, m.whenNotMatchedInsertAll):
        with pytest.raises(TypeError, match="must be a Spark SQL Column or a string"):
            clause(1)


# ---- what it says of the table


@pytest.mark.route("DeltaTable.history")
def test_history_has_the_columns_of_delta(table, spark):
    table.delete("key = 'a'")
    table.update(set={"value": "0"})
    found = table.history()
    assert found.columns == [
        "version", "timestamp", "userId", "userName", "operation", "operationParameters", "job", "notebook",
        "clusterId", "readVersion", "isolationLevel", "isBlindAppend", "operationMetrics", "userMetadata", "engineInfo",
    ]  # fmt: skip
    assert [r["operation"] for r in found.collect()] == ["UPDATE", "DELETE", "CREATE TABLE AS SELECT"]
    (last,) = table.history(1).collect()
    assert (last["version"], last["readVersion"], last["isolationLevel"]) == (2, 1, "Serializable")
    assert last["isBlindAppend"] is False and last["operationMetrics"]["numUpdatedRows"] == "3"
    assert abs(last["timestamp"].astimezone(dt.UTC) - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=10)


def test_detail_has_the_columns_of_delta(spark, tmp_path):
    path = str(tmp_path / "d")
    made = DeltaTable.create(spark).location(path).addColumn("id", "bigint").addColumn("day", S.DateType())
    made = made.partitionedBy("day").comment("about days").property("delta.appendOnly", "false").execute()
    (found,) = made.detail().collect()
    assert made.detail().columns == [
        "format", "id", "name", "description", "location", "createdAt", "lastModified", "partitionColumns",
        "clusteringColumns", "numFiles", "sizeInBytes", "properties", "minReaderVersion", "minWriterVersion",
        "tableFeatures",
    ]  # fmt: skip
    theirs = deltalake.DeltaTable(path)
    assert (found["id"], found["description"]) == (str(theirs.metadata().id), "about days")
    assert theirs.metadata().description == "about days"
    assert (found["format"], found["partitionColumns"], found["clusteringColumns"]) == ("delta", ["day"], [])
    assert (found["numFiles"], found["sizeInBytes"], found["minWriterVersion"]) == (0, 0, 2)
    assert found["tableFeatures"] == ["appendOnly", "invariants"]
    assert found["properties"] == {"delta.appendOnly": "false"}
    assert found["createdAt"] is not None and found["location"].endswith("/d")


# ---- maintenance


@pytest.mark.route("DeltaTable.optimize")
def test_optimize_and_vacuum(spark, tmp_path):
    path = str(tmp_path / "small")
    for i in range(4):
        bh.write(pa.table({"id": [i], "part": [i % 2]}), path, mode="append", partition_by=["part"])
    t = DeltaTable.forPath(spark, path)
    (found,) = t.optimize().where("part = 0").executeCompaction().collect()
    assert found["path"].endswith("/small")
    m = found["metrics"]
    assert (m["numFilesAdded"], m["numFilesRemoved"], m["totalConsideredFiles"]) == (1, 2, 4)
    assert m["filesAdded"]["totalSize"] == m["filesAdded"]["max"] > 0 and m["filesRemoved"]["totalFiles"] == 2
    assert t.optimize().where("part = 1").executeZOrderBy(["id"]).first()["metrics"]["numFilesRemoved"] == 2
    with pytest.raises(TypeError, match="must be str"):
        t.optimize().executeZOrderBy([1])
    with pytest.raises(errors.InvalidArgumentError, match="retention"):
        t.vacuum(0)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        assert t.vacuum(0.0).columns == []
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert len(list((tmp_path / "small").rglob("*.parquet"))) == 2
    assert t.toDF().count() == 4


def test_restore_to_a_version_and_a_time(table, spark):
    time = table.history().first()["timestamp"]
    table.delete("key < 'c'")
    (found,) = table.restoreToVersion(0).collect()
    assert found.asDict().keys() == {
        "table_size_after_restore", "num_of_files_after_restore", "num_removed_files", "num_restored_files",
        "removed_files_size", "restored_files_size",
    }  # fmt: skip
    assert (found["num_of_files_after_restore"], found["num_removed_files"], found["num_restored_files"]) == (1, 1, 1)
    assert found["table_size_after_restore"] == found["restored_files_size"] > 0
    assert rows(table) == LETTERS
    table.delete()
    after = (time.astimezone(dt.UTC) + dt.timedelta(milliseconds=1)).strftime("%Y-%m-%d %H:%M:%S.%f")
    table.restoreToTimestamp(after)
    assert rows(table) == LETTERS
    with pytest.raises(ValueError, match="version needs to be of type int"):
        table.restoreToVersion("0")
    with pytest.raises(ValueError, match="timestamp needs to be of type str"):
        table.restoreToTimestamp(12342323232)
    with pytest.raises(errors.VersionNotFoundError):
        table.restoreToVersion(99)


# ---- creating


def described(builder: DeltaTableBuilder, path: str) -> DeltaTableBuilder:
    made = builder.location(path).addColumn("id", "bigint", nullable=False, comment="the key")
    return made.addColumn("twice", S.LongType(), generatedAlwaysAs="id * 2").property("owner", "me")


@pytest.mark.route("DeltaTable.create")
def test_create_in_every_mode(spark, tmp_path):
    path = str(tmp_path / "new")
    with pytest.raises(errors.TableNotFoundError):
        described(DeltaTable.replace(spark), path).execute()
    t = described(DeltaTable.create(spark), path).execute()
    with pytest.raises(errors.AlreadyExistsError):
        described(DeltaTable.create(spark), path).execute()
    schema = bh.open(path).schema
    assert not schema.field("id").nullable and schema.field("id").doc == "the key"
    bh.open(path).append(pa.table({"id": [1, 2]}))
    assert rows(t) == [(1, 2), (2, 4)]
    with pytest.raises(errors.ConstraintViolationError):
        bh.open(path).append(pa.table({"id": [1], "twice": [3]}))
    assert rows(described(DeltaTable.createIfNotExists(spark), path).execute()) == [(1, 2), (2, 4)]

    columns = S.StructType(
        [S.StructField("a", S.StringType()), S.StructField("b", S.ArrayType(S.IntegerType()), False)]
    )
    builder = DeltaTable.createOrReplace().location(path).addColumns(columns).partitionedBy(["a"])
    t = builder.property("delta.appendOnly", "true").comment("anew").execute()
    table = bh.open(path)
    assert (rows(t), table.version, table.detail()["partition_by"]) == ([], 2, ["a"])
    assert table.properties == {"delta.appendOnly": "true"} and table.detail()["description"] == "anew"
    assert [(f.name, f.nullable) for f in table.schema] == [("a", True), ("b", False)]
    assert deltalake.DeltaTable(path).metadata().partition_columns == ["a"]
    assert bh.open(path, version=1).count() == 2  # the versions before stay
    t = DeltaTable.createIfNotExists(spark).location(str(tmp_path / "other")).addColumns(list(columns)).execute()
    assert rows(t) == []


def test_replacing_a_table_by_one_with_generated_columns_raises_its_protocol(spark, path):
    t = described(DeltaTable.replace(spark), path).execute()
    assert t.detail().first()["minWriterVersion"] == 4
    bh.open(path).append(pa.table({"id": [4]}))
    assert rows(t) == [(4, 8)]


def test_identity_columns(spark, tmp_path):
    path = str(tmp_path / "i")
    b = DeltaTable.create(spark).location(path).addColumn("name", "string")
    t = b.addColumn("id", "bigint", generatedByDefaultAs=IdentityGenerator(start=10, step=5)).execute()
    bh.open(path).append(pa.table({"name": ["a", "b"]}))
    assert rows(t) == [("a", 10), ("b", 15)]
    again = DeltaTable.replace(spark).location(path).addColumn("id", "bigint", generatedAlwaysAs=IdentityGenerator())
    with pytest.raises(errors.UnsupportedFeatureError, match="identity columns"):
        again.execute()


def test_wrong_arguments_of_the_builder_are_refused_as_there(spark, tmp_path):
    b = DeltaTable.create(spark)
    for call in (
        lambda: b.tableName(1),
        lambda: b.location(1),
        lambda: b.comment(1),
        lambda: b.addColumn(1, "int"),
        lambda: b.addColumn("a", 1),
        lambda: b.addColumn("a", "int", nullable=1),
        lambda: b.addColumn("a", "int", generatedAlwaysAs=1),
        lambda: b.addColumn("a", "int", comment=1),
        lambda: b.addColumns(1),
        lambda: b.addColumns(["a"]),
        lambda: b.partitionedBy(1),
        lambda: b.property(1, "x"),
        lambda: b.property("x", 1),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(errors.InvalidArgumentError, match="location"):
        DeltaTable.create(spark).addColumn("a", "int").execute()
    with pytest.raises(TypeError):
        b.addColumn("a", "bigint", generatedByDefaultAs=1)
    with pytest.raises(ValueError, match="step"):
        b.addColumn("a", "bigint", generatedAlwaysAs=IdentityGenerator(step=0))


def test_builders_make_names(spark, tmp_path):
    spark.sql("CREATE DATABASE builds")
    try:
        made = DeltaTable.create(spark).tableName("builds.t").addColumn("a", "int").addColumn("b", "string")
        t = made.clusterBy("b").comment("c").execute()
        bh.open("builds.t", spark=spark).append(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}))
        assert rows(t) == rows(DeltaTable.forName(spark, "builds.t")) == [(1, "x")]
        assert t.detail().first()["clusteringColumns"] == ["b"] and rows(t.toDF().select("t.a")) == [(1,)]
        with pytest.raises(errors.AlreadyExistsError):
            made.execute()
        DeltaTable.createIfNotExists(spark).tableName("builds.t").addColumn("z", "int").execute()
        again = DeltaTable.createOrReplace(spark).tableName("builds.t").addColumn("z", "int").execute()
        assert rows(again) == [] and again.toDF().columns == ["z"]
        place = str(tmp_path / "out")
        DeltaTable.createOrReplace(spark).tableName("builds.e").location(place).addColumn("a", "int").execute()
        assert bh.open(place).schema.names == ("a",)
        spark.sql("DROP TABLE builds.e")
        DeltaTable.create(spark).tableName("builds.e").location(place).addColumn("a", "int").execute()
        with pytest.raises(errors.AlreadyExistsError, match="other columns"):
            DeltaTable.create(spark).tableName("builds.f").location(place).addColumn("a", "bigint").execute()
        with pytest.raises(errors.TableNotFoundError):
            DeltaTable.replace(spark).tableName("builds.f").addColumn("a", "int").execute()
        for column in ("nope", "a"):
            with pytest.raises(errors.BoathouseError):
                DeltaTable.create(spark).tableName("builds.f").addColumn("a", "array<int>").clusterBy(column).execute()
        clone = DeltaTable.forName(spark, "builds.e").clone("builds.c", True, properties={"delta.appendOnly": "true"})
        assert clone.detail().first()["properties"] == {"delta.appendOnly": "true"}
        clone = DeltaTable.forName(spark, "builds.t").clone("builds.c", isShallow=True, replace=True)
        assert clone.toDF().columns == ["z"]
        found = spark.sql("SHOW TABLES IN builds").collect()
        assert {r.tableName for r in found if not r.isTemporary} == {"t", "e", "c"}
    finally:
        spark.sql("DROP DATABASE builds CASCADE")


def test_errors_are_those_of_spark_too(spark, table, tmp_path):
    for kind, ours, call in (
        (AnalysisException, errors.TableNotFoundError, lambda: DeltaTable.forPath(spark, str(tmp_path / "no"))),
        (AnalysisException, errors.ColumnNotFoundError, lambda: table.update(set={"nope": "1"})),
        (AnalysisException, errors.ColumnNotFoundError, lambda: table.delete("nope = 1")),
        (ParseException, errors.ExpressionError, lambda: bh.sql(spark, f"UPDATE delta.`{tmp_path / 't'}` WHERE")),
        (AnalysisException, errors.VersionNotFoundError, lambda: table.restoreToVersion(99)),
        (AnalysisException, errors.ArgumentTypeError, lambda: table.delete(1)),
        (AnalysisException, errors.TableNotFoundError, lambda: bh.sql(spark, "SELECT * FROM delta.`/no/such`")),
    ):
        with pytest.raises(kind) as caught:
            call()
        error = caught.value
        assert isinstance(error, ours) and error.getCondition() == ours.code, error
        again = pickle.loads(pickle.dumps(error))
        assert isinstance(again, ours) and str(again) == str(error)
    with pytest.raises(errors.TableNotFoundError) as caught:
        bh.open(str(tmp_path / "no"))
    assert not isinstance(caught.value, AnalysisException)


# ---- what is not offered


def test_what_is_not_offered_is_refused_by_name(spark, table):
    for call, name in (
        (lambda: table.clone("/elsewhere"), "deep clone"),
        (lambda: table.generate("symlink_format_manifest"), "generate"),
        (lambda: table.dropFeatureSupport("deletionVectors", True), "truncateHistory"),
    ):
        with pytest.raises(errors.UnsupportedFeatureError, match=name):
            call()
    table.upgradeTableProtocol(1, 2)  # what it has
    table.upgradeTableProtocol(1, 1)
    with pytest.raises(ValueError, match="readerVersion"):
        table.upgradeTableProtocol("abc", 3)


def test_features_are_added(table, path):
    table.addFeatureSupport("appendOnly")  # what it has
    assert bh.open(path).version == 0
    table.addFeatureSupport("deletionVectors")
    assert (table.detail().first()["minReaderVersion"], bh.open(path).version) == (3, 1)
    assert "deletionVectors" in table.detail().first()["tableFeatures"] and rows(table) == LETTERS
    table.dropFeatureSupport("deletionVectors")
    assert "deletionVectors" not in table.detail().first()["tableFeatures"] and rows(table) == LETTERS


def test_shallow_clones(spark, table, tmp_path):
    table.delete("key = 'a'")
    clone = table.clone(str(tmp_path / "now"), isShallow=True)
    clone.delete()
    assert (rows(clone), len(rows(table))) == ([], 3)
    assert rows(table.cloneAtVersion(0, f"delta.`{tmp_path / 'then'}`", True)) == LETTERS
    assert rows(table.cloneAtTimestamp("2100-01-01", str(tmp_path / "later"), True)) == LETTERS[1:]


def test_convert_to_delta(spark, tmp_path):
    spark.range(4).selectExpr("id", "id % 2 AS part").write.partitionBy("part").parquet(str(tmp_path / "p"))
    t = DeltaTable.convertToDelta(spark, f"parquet.`{tmp_path / 'p'}`", "part int")
    assert rows(t) == [(0, 0), (1, 1), (2, 0), (3, 1)] and t.detail().first()["partitionColumns"] == ["part"]
    with pytest.raises(errors.InvalidArgumentError, match="parquet"):
        DeltaTable.convertToDelta(spark, str(tmp_path))


def test_the_signatures_are_those_of_delta_spark():
    """Names, order and defaults of delta-spark 4.0's parameters."""
    wanted = {
        "forPath": "sparkSession path hadoopConf", "forName": "sparkSession tableOrViewName",
        "isDeltaTable": "sparkSession identifier", "create": "sparkSession=None", "replace": "sparkSession=None",
        "createIfNotExists": "sparkSession=None", "createOrReplace": "sparkSession=None", "toDF": "",
        "alias": "aliasName", "delete": "condition=None", "update": "condition=None set=None",
        "merge": "source condition", "vacuum": "retentionHours=None", "history": "limit=None", "detail": "",
        "optimize": "", "restoreToVersion": "version", "restoreToTimestamp": "timestamp", "generate": "mode",
        "upgradeTableProtocol": "readerVersion writerVersion", "addFeatureSupport": "featureName",
        "dropFeatureSupport": "featureName truncateHistory=None",
        "clone": "target isShallow=False replace=False properties=None",
        "cloneAtVersion": "version target isShallow=False replace=False properties=None",
    }  # fmt: skip
    for name, parameters in wanted.items():
        found = inspect.signature(getattr(DeltaTable, name)).parameters.values()
        given = [p for p in found if p.name != "self"]
        for p, text in zip(given, parameters.split(), strict=True):
            word, _, default = text.partition("=")
            assert p.name == word, name
            assert not default or str(p.default) == default, (name, word)

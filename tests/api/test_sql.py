"""bh.sql: statements on tables of every format, by name, by path and by version."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors
from makers.traits import REAL

F = pytest.importorskip("pyspark.sql.functions")
pytestmark = pytest.mark.spark

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


@pytest.fixture(params=REAL)
def format(request) -> str:
    return request.param


@pytest.fixture
def path(tmp_path, format) -> str:
    uri = str(tmp_path / "a täble")
    bh.write(ROWS, uri, format=format)
    return uri


@pytest.fixture
def run(spark):
    def rows(text: str) -> list:
        return sorted(tuple(r) for r in bh.sql(spark, text).collect())

    return rows


@pytest.fixture
def delta(tmp_path) -> str:
    """A Delta table by its path, as SQL."""
    bh.write(ROWS, str(tmp_path / "d"))
    return f"delta.`{tmp_path / 'd'}`"


def views(spark) -> set[str]:
    return {t.name for t in spark.catalog.listTables() if t.isTemporary}


@pytest.mark.feature("SQL")
@pytest.mark.route("SQL")
def test_rows_are_changed_and_queried_in_every_format(spark, run, path, format):
    t = f"{format}.`{path}`"
    before = views(spark)
    assert run(f"SELECT * FROM {t}") == [(1, "a"), (2, "b"), (3, "c")]
    assert run(f"UPDATE {t} AS x SET name = upper(x.name), x.id = id * 10 WHERE x.id < 3 -- two") == [(2,)]
    assert run(f"INSERT INTO {t} VALUES (4, 'd'), (5, 'e')") == [(2, 2)]
    assert run(f"DELETE FROM boathouse.`{path}` WHERE id IN (SELECT max(id) + 0 FROM {t} WHERE id < 5)") == [(1,)]
    merged = run(f"""
        MERGE INTO {t} t USING (VALUES (3, 'drei'), (5, NULL), (6, 'f')) AS s (id, word) ON t.id = s.id
        WHEN MATCHED AND s.word IS NULL THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.name = s.word
        WHEN NOT MATCHED THEN INSERT (id, name) VALUES (id, word)
        WHEN NOT MATCHED BY SOURCE AND id = 10 THEN UPDATE SET name = concat(name, '!')
    """)
    assert merged == [(4, 2, 1, 1)]
    wanted = [(3, "drei"), (6, "f"), (10, "A!"), (20, "B")]
    assert run(f"SELECT * FROM {t}") == wanted
    assert sorted(tuple(r.values()) for r in bh.open(path).to_arrow().to_pylist()) == wanted
    last = bh.sql(spark, f"DESCRIBE HISTORY {t} LIMIT 2").first()
    assert last["operation"].upper() in ("MERGE", "OVERWRITE", "UPDATE") and last["version"] == bh.open(path).version
    (detail,) = bh.sql(spark, f"DESC DETAIL {t}").collect()
    assert detail["format"] == format and detail["numFiles"] >= 1 and detail["sizeInBytes"] > 0
    assert views(spark) == before


def test_versions_in_every_format(run, path, format):
    first = bh.open(path).version
    bh.open(path).append(pa.table({"id": [4], "name": ["d"]}))
    t = f"{format}.`{path}`"
    assert run(f"SELECT count(*) FROM {t} VERSION AS OF {first} UNION ALL SELECT count(*) FROM {t}") == [(3,), (4,)]
    joined = f"SELECT n.id FROM {t} n LEFT ANTI JOIN {t} FOR VERSION AS OF {first} o ON n.id = o.id"
    assert run(joined) == [(4,)]
    soon = "TIMESTAMP AS OF current_timestamp() + INTERVAL 1 DAY"
    assert run(f"SELECT count(*) FROM {t} {soon} AS k WHERE k.id > 1") == [(3,)]
    with pytest.raises(errors.VersionNotFoundError):
        run(f"SELECT * FROM {t} TIMESTAMP AS OF '2001-01-01'")
    with pytest.raises(errors.ExpressionError, match="null"):
        run(f"SELECT * FROM {t} TIMESTAMP AS OF (NULL)")


@pytest.fixture
def orders(spark, tmp_path):
    """A table with a name in the metastore."""
    bh.write(ROWS, str(tmp_path / "o"))
    spark.sql("create database if not exists sales")
    spark.sql(f"create table sales.orders (id bigint, name string) using parquet location '{tmp_path / 'o'}'")
    yield "sales.orders"
    spark.sql("drop database sales cascade")


@pytest.mark.route("SQL by name")
def test_values_are_parameters(spark, path, format):
    t = f"{format}.`{path}`"
    first = bh.open(path).version
    bh.sql(spark, f"UPDATE {t} SET name = :n WHERE id = :i", {"n": "it's", "i": 2})
    bh.sql(spark, f"INSERT INTO {t} VALUES (?, ?)", [4, None])
    bh.sql(spark, f"DELETE FROM {t} WHERE array_contains(?, id)", [[1, 9]])
    found = bh.sql(spark, f"SELECT name FROM {t} WHERE name = :n OR id > :i ORDER BY id", {"n": "it's", "i": F.lit(3)})
    assert [r[0] for r in found.collect()] == ["it's", None]
    assert bh.sql(spark, f"SELECT * FROM {t} VERSION AS OF :v LIMIT :l", {"v": first, "l": 2}).count() == 2
    with pytest.raises(errors.ExpressionError, match="the parameter :i has no value"):
        bh.sql(spark, f"DELETE FROM {t} WHERE id = :i", {"n": 1})
    assert bh.open(path).count() == 3


def test_default_of_a_field_is_not_that_of_a_column_of_its_name(spark, run, tmp_path):
    t = f"delta.`{tmp_path / 'defaults'}`"
    run(f"CREATE TABLE {t} (id int, x int DEFAULT 7, s struct<x: int>) USING delta")
    run(f"INSERT INTO {t} VALUES (1, 1, named_struct('x', 1)), (2, 2, named_struct('x', 2))")
    run(f"UPDATE {t} SET s.x = DEFAULT, x = DEFAULT WHERE id = 1")
    changed = "UPDATE SET s.x = DEFAULT, t.x = DEFAULT"
    run(f"MERGE INTO {t} t USING (SELECT 2 AS id) u ON t.id = u.id WHEN MATCHED THEN {changed}")
    assert run(f"SELECT id, x, s.x FROM {t}") == [(1, 7, None), (2, 7, None)]


def test_tables_by_name(spark, run, orders):
    assert run("SELECT orders.id, name FROM sales.orders WHERE orders.id > 1") == [(2, "b"), (3, "c")]
    assert run("DELETE FROM sales.orders WHERE sales.orders.id = 1 OR orders.id = 2") == [(2,)]
    spark.createDataFrame([(3, "z"), (9, "y")], "id bigint, name string").createOrReplaceTempView("updates")
    merge = """MERGE INTO sales.orders USING updates ON orders.id = updates.id
        WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
    assert run(merge) == [(2, 1, 0, 1)]
    query = "WITH orders AS (SELECT 7 AS id) SELECT * FROM orders UNION ALL SELECT id FROM sales.orders"
    assert run(query) == [(3,), (7,), (9,)]
    spark.sql("use sales")
    try:
        assert run("SELECT name FROM orders") == [("y",), ("z",)]
        spark.range(1).createOrReplaceTempView("orders")  # a view comes first, as in Spark
        assert run("SELECT id FROM orders") == [(0,)]
    finally:
        spark.catalog.dropTempView("orders")
        spark.sql("use default")
    spark.catalog.dropTempView("updates")


def test_what_names_no_table_of_ours_is_sparks(spark, run):
    assert run("SELECT id FROM range(2) WHERE id IN (SELECT 1)") == [(1,)]
    assert run("VALUES (1), (2);") == [(1,), (2,)]
    spark.range(3).createOrReplaceTempView("numbers")
    assert run("SELECT count(*) FROM numbers") == [(3,)]
    for text in ("DELETE FROM numbers WHERE id = 1", "SELECT * FROM no_such_table", "UPDATE no_such_table SET a = 1"):
        with pytest.raises(Exception) as found:
            bh.sql(spark, text)
        assert not isinstance(found.value, errors.BoathouseError)
    spark.catalog.dropTempView("numbers")


def test_other_statements_read_our_tables(spark, run, delta):
    bh.sql(spark, f"CREATE OR REPLACE TEMP VIEW ours AS SELECT id FROM {delta} WHERE id > 1")
    assert run("SELECT * FROM ours") == [(2,), (3,)]
    assert run(f"EXPLAIN SELECT * FROM {delta}")
    bh.sql(spark, f"CREATE TABLE copied USING parquet AS SELECT * FROM {delta}")
    try:
        bh.sql(spark, f"INSERT INTO copied SELECT * FROM {delta}")
        assert run("SELECT count(*) FROM copied") == [(6,)]
        assert run(f"INSERT INTO {delta} SELECT id + 100, name FROM copied WHERE id = 1") == [(2, 2)]
    finally:
        spark.sql("drop table copied")
        for name in views(spark):
            spark.catalog.dropTempView(name)


# ---- insert


@pytest.mark.route("INSERT")
def test_insert_by_position_by_columns_and_by_name(run, tmp_path):
    uri = str(tmp_path / "t")
    bh.create(uri, "id bigint, price decimal(6,2), `odd-name` string, day timestamp")
    t = f"delta.`{uri}`"
    run(f"INSERT INTO {t} VALUES (1, 2.5, 'x', DATE'2026-01-01'), (2, 3, NULL, NULL)")
    run(f"INSERT INTO {t} (`odd-name`, id) SELECT 7, 3")
    run(f"INSERT INTO {t} BY NAME SELECT 1 AS price, 4 AS id")
    run(f"INSERT INTO TABLE {t} (SELECT 5, 6.125, 'y', NULL)")
    found = run(f"SELECT id, CAST(price AS string), `odd-name`, CAST(day AS string) FROM {t}")
    assert [tuple(map(str, r)) for r in found] == [
        ("1", "2.50", "x", "2026-01-01 00:00:00"), ("2", "3.00", "None", "None"), ("3", "None", "7", "None"),
        ("4", "1.00", "None", "None"), ("5", "6.13", "y", "None"),
    ]  # fmt: skip
    with pytest.raises(errors.SchemaMismatchError, match="2 columns, and 4 are inserted"):
        run(f"INSERT INTO {t} VALUES (1, 2)")
    with pytest.raises(errors.SchemaMismatchError):
        run(f"INSERT INTO {t} (id) VALUES ('one')")
    with pytest.raises(errors.ColumnNotFoundError, match="nope"):
        run(f"INSERT INTO {t} (nope) VALUES (1)")


def test_overwrite_of_all_rows_and_of_some(spark, run, delta):
    run(f"INSERT INTO {delta} REPLACE WHERE id >= 3 SELECT id + 3, 'new' FROM {delta} WHERE id < 3")
    assert run(f"SELECT id FROM {delta}") == [(1,), (2,), (4,), (5,)]
    with pytest.raises(errors.ConstraintViolationError):
        run(f"INSERT INTO {delta} REPLACE WHERE id >= 3 VALUES (1, 'x')")
    assert run(f"INSERT OVERWRITE {delta} SELECT * FROM {delta} WHERE id = 5")[0][1] == 1
    assert run(f"SELECT * FROM {delta}") == [(5, "new")]
    assert bh.open(delta[7:-1]).history(1)[0].operation == "WRITE"


@pytest.fixture
def parted(tmp_path):
    """Rows in the partitions (p, q) = (1, a), (1, b), (2, a), (null, a)."""
    t = bh.create(str(tmp_path / "p"), "p int, id bigint, q string", partition_by=["p", "q"])
    p = pa.array([1, 1, 2, None], pa.int32())
    t.append(pa.table({"p": p, "id": [1, 2, 3, 4], "q": ["a", "b", "a", "a"]}))
    return f"delta.`{tmp_path / 'p'}`"


def test_insert_with_a_partition(run, parted):
    run(f"INSERT INTO {parted} PARTITION (p = '1', q) VALUES (5, 'c')")
    run(f"INSERT INTO {parted} PARTITION (P = NULL, `q` = 'a') (id) SELECT 6")
    run(f"INSERT INTO {parted} PARTITION (p = 3) BY NAME SELECT 'z' AS q, 7 AS id")
    assert run(f"SELECT id, p, q FROM {parted} WHERE id > 4") == [(5, 1, "c"), (6, None, "a"), (7, 3, "z")]
    assert run(f"INSERT OVERWRITE {parted} PARTITION (p = 1, q) SELECT 8, 'd'")[0][1] == 1
    assert run(f"SELECT id FROM {parted} ORDER BY id") == [(3,), (4,), (6,), (7,), (8,)]
    run(f"INSERT OVERWRITE {parted} PARTITION (p = null) SELECT 9, 'd'")
    assert run(f"SELECT id FROM {parted} ORDER BY id") == [(3,), (7,), (8,), (9,)]
    run(f"INSERT OVERWRITE {parted} PARTITION (p, q) VALUES (1, 10, 'd')")
    assert run(f"SELECT p, id, q FROM {parted}") == [(1, 10, "d")]
    for text, error, match in (
        ("PARTITION (id = 1) SELECT 1, 'x'", errors.SchemaError, "`id` is in PARTITION.*are p, q"),
        ("PARTITION (p = 1, P = 2) SELECT 1, 'x'", errors.SchemaError, "twice"),
        ("PARTITION (p = 1) SELECT 1, 1, 'x'", errors.SchemaMismatchError, "3 columns, and 2 are inserted"),
        ("PARTITION (p = 1) BY NAME SELECT 1 AS p, 1 AS id", errors.SchemaMismatchError, "and so do the rows"),
        ("PARTITION (p = 1) IF NOT EXISTS SELECT 1, 'x'", errors.UnsupportedFeatureError, "IF NOT EXISTS"),
    ):
        with pytest.raises(error, match=match):
            run(f"INSERT OVERWRITE {parted} {text}")
    assert run(f"SELECT id FROM {parted}") == [(10,)]


def test_overwrite_of_dynamic_partitions(spark, run, parted):
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        run(f"INSERT OVERWRITE {parted} VALUES (1, 5, 'a'), (3, 6, 'a')")
        assert run(f"SELECT id FROM {parted} ORDER BY id") == [(2,), (3,), (4,), (5,), (6,)]
        run(f"INSERT OVERWRITE {parted} PARTITION (p = 1, q) SELECT 7, 'b'")
        assert run(f"SELECT id FROM {parted} ORDER BY id") == [(3,), (4,), (5,), (6,), (7,)]
        run(f"INSERT OVERWRITE {parted} PARTITION (p = 1) SELECT 8, 'b' WHERE false")
        run(f"INSERT INTO {parted} REPLACE WHERE p = 1 VALUES (1, 9, 'z')")
        assert run(f"SELECT id FROM {parted} ORDER BY id") == [(3,), (4,), (6,), (9,)]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


# ---- merge


def test_merge_with_schema_evolution_and_a_version_as_source(run, delta):
    done = run(f"""
        MERGE WITH SCHEMA EVOLUTION INTO {delta} USING (SELECT 3 AS id, 'x' AS name, 1.5D AS more) ON false
        WHEN NOT MATCHED THEN INSERT *""")
    assert done == [(1, 0, 0, 1)]
    run(f"DELETE FROM {delta}")
    run(f"""MERGE INTO {delta} t USING {delta} VERSION AS OF 0 AS s ON t.id = s.id
        WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, DEFAULT)""")
    assert run(f"SELECT * FROM {delta}") == [(1, None, None), (2, None, None), (3, None, None)]


def test_fields_of_structs_are_set_alone(run, tmp_path, format):
    where, rows = str(tmp_path / "n"), [{"x": 1, "y": 1}, {"x": 2, "y": 2}, None]
    bh.write(pa.table({"id": [1, 2, 3], "s": rows}), where, format=format)
    t = f"{format}.`{where}`"
    run(f"UPDATE {t} AS t SET t.s.x = t.id * 10, `s`.y = NULL WHERE id <> 2")
    assert run(f"SELECT id, s.x, s.y FROM {t}") == [(1, 10, None), (2, 2, 2), (3, 30, None)]
    run(f"""MERGE INTO {t} AS t USING (SELECT 2 AS id, 7 AS v) AS u ON t.id = u.id
        WHEN MATCHED THEN UPDATE SET t.s.x = u.v + t.s.y WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s.y = 0""")
    assert run(f"SELECT id, s.x, s.y FROM {t}") == [(1, 10, 0), (2, 9, 2), (3, 30, 0)]
    for values in ("s = NULL, s.x = 1", "s.x = 1, s.x = 2", "id = 1, id = 2"):
        with pytest.raises(errors.InvalidArgumentError):
            run(f"UPDATE {t} SET {values}")


def test_schema_evolution_brings_what_is_assigned(run, delta):
    merge = (
        f"MERGE WITH SCHEMA EVOLUTION INTO {delta} t USING (SELECT 3 AS id, 'x' AS a, 1 AS b, 2 AS c) s ON t.id = s.id"
    )
    run(f"{merge} WHEN MATCHED THEN UPDATE SET b = s.b + s.c WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)")
    assert run(f"SELECT * FROM {delta} WHERE id = 3")[0][2:] == (3,)


def test_merge_of_a_source_without_alias(spark, run, delta):
    spark.createDataFrame([(3, "z")], "id bigint, name string").createOrReplaceTempView("`up dates`")
    run(f"MERGE INTO {delta} AS t USING `up dates` ON t.id = `up dates`.id WHEN MATCHED THEN UPDATE SET name = 'hit'")
    assert run(f"SELECT name FROM {delta} WHERE id = 3") == [("hit",)]
    run(f"MERGE INTO {delta} t USING (SELECT 1 AS k) ON id = k WHEN MATCHED THEN DELETE")
    assert run(f"SELECT id FROM {delta}") == [(2,), (3,)]
    spark.catalog.dropTempView("`up dates`")
    with pytest.raises(errors.ConstraintViolationError, match="more than one source row"):
        run(f"MERGE INTO {delta} t USING (VALUES (2), (2)) s (k) ON id = k WHEN MATCHED THEN UPDATE SET name = 'x'")


# ---- maintenance


@pytest.mark.route("SQL maintenance")
def test_maintenance(spark, run, tmp_path):
    uri = str(tmp_path / "t")
    for i in range(3):
        bh.write(pa.table({"id": [i], "p": [0]}), uri, mode="append", partition_by=["p"])
    t = f"delta.`{uri}`"
    time = bh.open(uri).history()[0].timestamp_ms
    (done,) = bh.sql(spark, f"OPTIMIZE {t} WHERE p = 0").collect()
    assert (done["metrics"]["numFilesAdded"], done["metrics"]["numFilesRemoved"]) == (1, 3)
    with pytest.raises(errors.InvalidArgumentError, match="retention"):
        run(f"VACUUM {t} RETAIN 0 HOURS")
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        assert run(f"VACUUM {t} DRY RUN") == []
        doomed = run(f"VACUUM {t} RETAIN 0 HOURS DRY RUN")
        assert len(doomed) == 3 and all(p.startswith("file:///") and p.endswith(".parquet") for (p,) in doomed)
        restored = run(f"RESTORE TABLE {t} TO VERSION AS OF 1")
        assert restored[0][1:4] == (2, 1, 2)
        after = dt.datetime.fromtimestamp(time / 1000 + 0.001, dt.UTC).isoformat()
        assert run(f"RESTORE {t} TIMESTAMP AS OF '{after}'")[0][1] == 3
        ((root,),) = run(f"VACUUM '{uri}' LITE RETAIN 0 HOURS")
        assert root.endswith("/t") and run(f"SELECT count(*) FROM {t}") == [(3,)]
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    ((root, figures),) = run(f"OPTIMIZE {t} ZORDER BY (id)")
    assert (figures["numFilesAdded"], figures["numFilesRemoved"]) == (1, 3)
    assert run(f"SELECT id FROM {t}") == [(0,), (1,), (2,)]
    bh.open(uri).set_properties({"delta.enableDeletionVectors": "true"})
    run(f"DELETE FROM {t} WHERE id = 1")
    ((root, figures),) = run(f"REORG TABLE {t} APPLY (PURGE)")
    assert (figures["numFilesAdded"], figures["numFilesRemoved"]) == (1, 1)
    assert run(f"SELECT id FROM {t}") == [(0,), (2,)]


# ---- errors


def test_errors_name_the_place_or_the_table(spark, run, delta, tmp_path):
    with pytest.raises(errors.ExpressionError, match=r"line 2, column 3: expected SET"):
        run(f"UPDATE {delta} t\n  WHERE id = 1")
    with pytest.raises(errors.ColumnNotFoundError, match="nope"):
        run(f"UPDATE {delta} SET nope = 1")
    with pytest.raises(errors.ExpressionError, match="nope"):
        run(f"DELETE FROM {delta} WHERE nope = 1")
    with pytest.raises(errors.TableNotFoundError):
        run(f"SELECT * FROM delta.`{tmp_path / 'nothing'}`")
    with pytest.raises(errors.TableNotFoundError, match="Delta"):
        run(f"SELECT * FROM iceberg.{delta[6:]}")
    with pytest.raises(errors.ExpressionError, match="second statement"):
        run(f"SELECT 1 FROM {delta}; SELECT 2")


def test_in_process_it_is_refused_with_advice():
    for arguments in ((None, "SELECT 1"), ("SELECT 1", "SELECT 1"), (object(), "SELECT 1"), (None, 1)):
        with pytest.raises(errors.InvalidArgumentError, match=r"(?i)session"):
            bh.sql(*arguments)

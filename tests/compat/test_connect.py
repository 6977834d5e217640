"""SQL and delta.tables on Spark Connect, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.smoke]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "2").getOrCreate()
import pyarrow as pa
from pyspark.sql import functions as F
import boathouse as bh
from boathouse.compat.delta_tables import DeltaTable

path = sys.argv[1]
bh.write(pa.table({"key": ["a", "b", "c"], "value": [1, 2, 3]}), path)
t = DeltaTable.forPath(spark, path)
t.delete(F.col("key") == "a")
source = spark.createDataFrame([("b", 9), ("z", 8)], "key string, value bigint").alias("s")
merge = t.alias("t").merge(source, F.col("t.key") == F.col("s.key")).whenMatchedUpdateAll().whenNotMatchedInsertAll()
assert tuple(merge.execute().first()) == (2, 1, 0, 1)
assert t.history(1).first()["operation"] == "MERGE" and t.detail().first()["format"] == "delta"
q = f"delta.`{path}`"
assert bh.sql(spark, f"SELECT count(*) AS n FROM {q} VERSION AS OF 0 x").first()["n"] == 3
bh.sql(spark, f"UPDATE {q} SET value = 5 WHERE key IN (SELECT key FROM {q} WHERE value = 9)")
news = "(SELECT 'q' AS key, 1 AS value)"
bh.sql(spark, f"MERGE INTO {q} t USING {news} s ON t.key = s.key WHEN NOT MATCHED THEN INSERT *")
bh.sql(spark, f"INSERT INTO {q} VALUES ('n', 3)")
found = bh.sql(spark, f"SELECT * FROM {q}")
assert sorted(map(tuple, found.collect())) == [("b", 5), ("c", 3), ("n", 3), ("q", 1), ("z", 8)]
bh.sql(spark, "CREATE DATABASE named")
bh.sql(spark, "CREATE TABLE named.t (`a b` bigint, s struct<`x y`: int>, n int DEFAULT 3) USING iceberg "
       "TBLPROPERTIES ('format-version' = '3')")
bh.sql(spark, "INSERT INTO named.t (`a b`) VALUES (1)")
assert tuple(bh.sql(spark, "SELECT `a b`, n FROM named.t").first()) == (1, 3)
for text in ("(id bigint) USING lance PARTITIONED BY (id)", "USING delta AS SELECT assert_true(id < 0) FROM range(3)"):
    try:
        bh.sql(spark, f"CREATE TABLE named.bad {text}")
    except bh.errors.BoathouseError:
        pass
    else:
        raise AssertionError(text)
assert bh.sql(spark, "SELECT count(*) FROM table_changes('named.t', 0)").first()[0] == 1
assert [r.tableName for r in spark.sql("SHOW TABLES IN named").collect() if not r.isTemporary] == ["t"]
bh.sql(spark, "DROP DATABASE named CASCADE")
assert spark.read.format("delta").load(path).count() == 5
spark.sql("CREATE DATABASE taken")
spark.range(3).write.format("parquet").option("path", path + "_files").saveAsTable("taken.e")
spark.range(3).write.format("parquet").saveAsTable("taken.m")
bh.sql(spark, "CONVERT TO DELTA taken.e")
bh.sql(spark, "DELETE FROM taken.e WHERE id = 1")
assert sorted(map(tuple, bh.sql(spark, "SELECT * FROM taken.e").collect())) == [(0,), (2,)]
try:
    bh.sql(spark, "CONVERT TO DELTA taken.m")
except bh.errors.UnsupportedFeatureError:
    assert spark.table("taken.m").count() == 3
else:
    raise AssertionError("the entry was changed")
bh.sql(spark, "DROP DATABASE taken CASCADE")
print("done")
"""


def test_statements_and_builders_on_connect(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "t")],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split()[-1] == "done"

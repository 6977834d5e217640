"""Scans of an Iceberg table on Spark against iceberg-spark, in one session: without deletes, and with each kind.

`./run bench40 iceberg_spark`: on PySpark 4.0, whose iceberg-spark is fetched from Maven once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from equality import keys
from harness import DATA, Case, alternate, fresh, lineitem, record
from iceberg_made import delete_by_keys
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark import aggregate

import boathouse as bh

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "interop"))
from reference_spark import Release

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
WAREHOUSE = DATA / "iceberg-spark"
NAME = "ice.bench.lineitem"
RUNTIME = "iceberg-spark-runtime-4.0_2.13"
ICEBERG = Release(
    "reference-spark",
    "4.0.1",
    (f"org/apache/iceberg/{RUNTIME}/1.11.0/{RUNTIME}-1.11.0.jar",),
    {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(WAREHOUSE),
        "spark.sql.catalog.ice.cache-enabled": "false",
    },
)
SHARES = {"1 %": "l_orderkey % 100 = 7", "20 %": "l_orderkey % 5 = 2"}
"""Rows of many places in every file."""
SMALL, SMALL_FILES, LATER = "ice.bench.small", 100, 5
BRANCHES = {
    "no deletes": ("main", 1.0),
    "1 % deleted by position deletes": ("positions1", 1.2),
    "20 % deleted by position deletes": ("positions20", 1.2),
    "1 % deleted by vectors": ("vectors1", 1.2),
    "20 % deleted by vectors": ("vectors20", 1.2),
    "1 % deleted by 60,000 keys of two columns": ("keys", 1.5),
}
"""Branches of one table, with the same data files, and how long we may take."""


def session() -> SparkSession:
    ICEBERG.build()
    jars = ",".join(str(ICEBERG.home / "jars" / Path(jar).name) for jar in ICEBERG.jars)
    settings = {
        **ICEBERG.conf,
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.driver.memory": "6g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def table(spark: SparkSession) -> str:
    """Written by iceberg-spark, but for the equality deletes. Made once."""
    root = WAREHOUSE / "bench" / "lineitem"
    if not (root / "done").exists():
        fresh(WAREHOUSE)
        spark.read.parquet(str(lineitem())).createOrReplaceTempView("lineitem")
        modes = "'format-version' = '2', 'write.delete.mode' = 'merge-on-read'"
        spark.sql(f"CREATE TABLE {NAME} USING iceberg TBLPROPERTIES ({modes}) AS SELECT * FROM lineitem")
        delete_by_keys(str(root), keys(), "keys")
        for kind in ("positions", "vectors"):
            for share, where in SHARES.items():
                branch = f"{kind}{share.split()[0]}"
                spark.sql(f"ALTER TABLE {NAME} CREATE BRANCH {branch}")
                spark.sql(f"DELETE FROM {NAME}.branch_{branch} WHERE {where}")
            spark.sql(f"ALTER TABLE {NAME} SET TBLPROPERTIES ('format-version' = '3')")
        (root / "done").write_text("")
    return str(root)


def case(spark: SparkSession, root: str, title: str, rounds: int) -> Case:
    branch, most = BRANCHES[title]
    name = NAME if branch == "main" else f"{NAME}.branch_{branch}"
    runners = {
        "iceberg-spark": lambda: aggregate(spark.table(name)),
        "boathouse": lambda: aggregate(bh.open(root, ref=branch, spark=spark).to_spark()),
    }
    counts: dict[str, list] = {}

    def check(runner: str, rows: object) -> None:
        counts[runner] = sorted((*row[:2], row[-1]) for row in rows)

    found = alternate(f"aggregate, {title}", runners, "boathouse", rounds, 1, f"at most {most}x", check=check)
    assert counts["boathouse"] == counts["iceberg-spark"]
    return found


def small(spark: SparkSession) -> tuple[str, int]:
    """A table of 100 small files, and the version that had them; later ones replaced and added others."""
    root = WAREHOUSE / "bench" / "small"
    if not (root / "done").exists():
        spark.sql(f"DROP TABLE IF EXISTS {SMALL}")
        rows = spark.range(0, 100 * SMALL_FILES, 1, SMALL_FILES).selectExpr("id", "id % 10 AS p", "rand() AS x")
        rows.writeTo(SMALL).using("iceberg").option("distribution-mode", "none").create()
        version = spark.table(f"{SMALL}.snapshots").select("snapshot_id").first()[0]
        spark.sql(f"DELETE FROM {SMALL} WHERE p = 3")
        for _ in range(LATER):
            rows.limit(1000).writeTo(SMALL).append()
        (root / "done").write_text(str(version))
    version = int((root / "done").read_text())
    assert bh.open(str(root), version=version).files().num_rows == SMALL_FILES
    return str(root), version


def travels(spark: SparkSession, rounds: int) -> list[Case]:
    """A version of 100 small files, opened and read each time."""
    root, version = small(spark)

    def theirs() -> DataFrame:
        return spark.read.option("snapshot-id", version).table(SMALL)

    def ours() -> DataFrame:
        return bh.open(root, version=version, spark=spark).to_spark()

    asks: dict[str, Callable[[DataFrame], object]] = {
        "summed": lambda d: d.agg(F.sum("id"), F.max("x")).collect(),
        "with a later condition": lambda d: d.where("id = 54").collect(),
    }
    found = []
    for name, ask in asks.items():
        assert ask(theirs()) == ask(ours())
        runners = {"iceberg-spark": lambda a=ask: a(theirs()), "boathouse": lambda a=ask: a(ours())}
        title = f"a version of {SMALL_FILES} small files, {name}"
        found.append(alternate(title, runners, "boathouse", 2 * rounds, 3, "at most 1.0x"))
    return found


def main() -> None:
    """`python benchmarks/iceberg_spark.py [ROUNDS]`: with a number of rounds nothing is recorded."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    spark = session()
    root = table(spark)
    cases = [*travels(spark, rounds), *(case(spark, root, title, rounds) for title in BRANCHES)]
    if len(sys.argv) == 1:
        files = bh.open(root, ref="main").files().num_rows
        record(f"Spark: scans of an Iceberg table against {Path(ICEBERG.jars[0]).stem}", cases,
               f"TPC-H lineitem at scale 1, {files} files, branches of one table, local[2].")  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()

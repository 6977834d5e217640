"""Changes of a Delta table on Spark against delta-spark, in one session, with deletion vectors.

`./run bench40 delta_spark`: on PySpark 4.0, whose delta-spark is fetched from Maven once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

from harness import DATA, Case, alternate, fresh, lineitem, linked, record
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import boathouse as bh

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "interop"))
from reference_spark import DELTA
from spark import aggregate

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
VECTORS = {"delta.enableDeletionVectors": "true"}
FEW = "l_orderkey % 100 = 7"
"""1 % of the rows, in many places of every file."""
FIFTH = "l_orderkey % 5 = 2"
SMALL = 1000
KEYS = ["l_orderkey", "l_linenumber"]
ON = " AND ".join(f"t.{key} = s.{key}" for key in KEYS)
NUMBERS = count()
Run = Callable[[str], object]


def session() -> SparkSession:
    DELTA.build()
    jars = ",".join(str(DELTA.home / "jars" / Path(jar).name) for jar in DELTA.jars)
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    settings = {
        **DELTA.conf,
        "spark.ui.enabled": "false",
        "spark.driver.memory": "6g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def made(name: str, make: Callable[[str], object]) -> Path:
    path = DATA / name
    if not (path / "done").exists():
        make(fresh(path))
        (path / "done").write_text("")
    return path


def in_small_files(spark: SparkSession) -> Callable[[str], object]:
    rows = spark.read.parquet(str(lineitem())).repartition(SMALL)
    return lambda path: rows.write.format("delta").option("delta.enableDeletionVectors", "true").save(path)


def news(spark: SparkSession) -> DataFrame:
    """60,000 rows with another quantity, and 60,000 that the table has not."""
    rows = spark.read.parquet(str(lineitem())).where("l_orderkey % 100 = 11")
    changed = rows.withColumn("l_quantity", F.col("l_quantity") + 1)
    new = rows.withColumn("l_orderkey", F.col("l_orderkey") + 100_000_000)
    path = fresh(DATA / "rows-news")
    changed.select(rows.columns).unionByName(new.select(rows.columns)).coalesce(1).write.parquet(path)
    return spark.read.parquet(path)


def case(title: str, base: Path, theirs: Run, ours: Run, target: str, rounds: int, again: bool = True) -> Case:
    """Each call changes a copy of its own, or, if not `again`, both go on with theirs.

    Every copy has a path of its own: delta-spark remembers what it knows of a path.
    """
    paths = dict.fromkeys(("delta-spark", "boathouse"), "")

    def copies() -> None:
        fresh(DATA / "rows")
        for name in paths:
            paths[name] = linked(base, f"{name}-{next(NUMBERS)}")

    copies()
    runners = {
        "delta-spark": lambda: theirs(paths["delta-spark"]),
        "boathouse": lambda: ours(paths["boathouse"]),
    }
    return alternate(title, runners, "boathouse", rounds, 1, target, copies if again else None)


def changes(spark: SparkSession, rounds: int) -> list[Case]:
    def table(path: str) -> bh.Table:
        return bh.open(path, spark=spark, allow_mixed_writers=True)  # delta-spark made some of the tables

    def write(path: str) -> None:
        bh.write(spark.read.parquet(str(lineitem())), path, format="delta", properties=VECTORS)

    def deleted(where: str) -> Callable[[str], object]:
        def make(path: str) -> None:
            write(path)
            table(path).delete(where)

        return make

    whole = made("spark-marked", write)
    small = made("spark-small", in_small_files(spark))
    source = news(spark)
    source.createOrReplaceTempView("news")
    one = spark.read.parquet(str(lineitem())).limit(1).toArrow()
    row = spark.createDataFrame(one)

    def sql(text: str) -> Run:
        return lambda path: spark.sql(text.format(t=f"delta.`{path}`")).collect()

    merge = f"MERGE INTO {{t}} t USING news s ON {ON} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    found = [
        case("delete 1 % of the rows, scattered", whole, sql(f"DELETE FROM {{t}} WHERE {FEW}"),
             lambda p: table(p).delete(FEW), "at most 0.5x", rounds),
        case("update 1 % of the rows, scattered", whole,
             sql(f"UPDATE {{t}} SET l_quantity = l_quantity + 1 WHERE {FEW}"),
             lambda p: table(p).update({"l_quantity": "l_quantity + 1"}, where=FEW), "at most 0.6x", rounds),
        case("merge 60,000 changed rows and 60,000 new ones", whole, sql(merge),
             lambda p: table(p).upsert(source, on=KEYS), "at most 0.7x", rounds),
        case(f"optimize {SMALL:,} files", small, sql("OPTIMIZE {t}"), lambda p: table(p).optimize(), "at most 0.5x",
             rounds),
        case("append of one row", whole, lambda p: row.write.format("delta").mode("append").save(p),
             lambda p: table(p).append(row), "at most 0.3x", 2 * rounds, again=False),
    ]  # fmt: skip
    marked, fifth = made("spark-deleted", deleted(FEW)), made("spark-fifth-deleted", deleted(FIFTH))
    theirs, ours = lambda p: aggregate(spark.read.format("delta").load(p)), lambda p: aggregate(table(p).to_spark())
    return [
        *found,
        case("aggregate, 1 % deleted", marked, theirs, ours, "at most 1.0x", 2 * rounds, again=False),
        case("aggregate, 20 % deleted", fifth, theirs, ours, "at most 1.0x", 2 * rounds, again=False),
    ]


def main() -> None:
    """`python benchmarks/delta_spark.py [ROUNDS]`: with a number of rounds nothing is recorded."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    spark = session()
    cases = changes(spark, rounds)
    fresh(DATA / "rows")
    if len(sys.argv) == 1:
        record(f"Spark: changes of a Delta table against delta-spark ({Path(DELTA.jars[0]).stem})", cases,
               "TPC-H lineitem at scale 1, deletion vectors turned on, local[2].")  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()

"""Spark: what comes after `to_spark()`, compared with delta-spark in the same session.

`./run bench41 later_delta`: on PySpark 4.1, whose delta-spark is fetched from Maven once.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness import DATA, alternate, fresh, record
from later import FILES, PARTITIONS, many_files
from pyspark.sql import DataFrame, SparkSession

import boathouse as bh

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "interop"))
from reference_spark import DELTA_41

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
THEIRS, OURS = "delta-spark", "boathouse"


def session() -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.jars", DELTA_41.fetch())
    settings = {**DELTA_41.conf, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def of_partitions(spark: SparkSession, path: Path) -> Path:
    rows = spark.range(0, 1_000_000, 1, 4).selectExpr("id", f"cast(id % {PARTITIONS} AS int) p", "rand() x")
    bh.write(rows.repartition(4, "p"), str(path), format="delta", partition_by=["p"])
    return path


def main() -> None:
    spark, folder = session(), Path(fresh(DATA / "later_delta"))

    def frames(path: Path) -> dict[str, DataFrame]:
        read = spark.read.format("delta").load(str(path))
        return {THEIRS: read, OURS: bh.open(str(path), spark=spark, allow_mixed_writers=True).to_spark()}

    many, parts = frames(many_files(folder)), frames(of_partitions(spark, folder / "parts"))
    asks = {
        f"{FILES:,} files, id = 54": (many, lambda d: d.where("id = 54").collect(), "at most 1.2x"),
        f"{FILES:,} files, the first row": (many, lambda d: d.limit(1).collect(), "at most 1.5x"),
        f"{FILES:,} files, count of id < 100": (many, lambda d: d.where("id < 100").count(), "at most 1.0x"),
        f"one of {PARTITIONS} partitions": (parts, lambda d: d.where("p = 77").collect(), "at most 1.0x"),
    }
    cases = [
        alternate(name, {w: lambda f=f, a=ask: a(f) for w, f in both.items()}, OURS, target=target)
        for name, (both, ask, target) in asks.items()
    ]
    spark.stop()
    record(f"Spark: conditions after to_spark() against delta-spark ({Path(DELTA_41.jars[0]).stem})", cases)


if __name__ == "__main__":
    main()

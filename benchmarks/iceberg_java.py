"""Plans of a large Iceberg table against Iceberg's Java library, which runs in the JVM of PySpark.

`./run bench40 iceberg_java`: with a number of files nothing is recorded.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness import DATA, Case, alternate, fresh, record
from iceberg_made import A_MANIFEST_OF_PLANS, BOUND, WHERE, build
from iceberg_spark import ICEBERG, session
from pyspark.sql import SparkSession

import boathouse as bh
from boathouse.api.engines import LOCAL, spark_engine
from boathouse.table.engine import Engine


def ours(engine: Engine, root: str, where: str | None) -> int:
    return bh.open(root).scan(where=where).plan(engine).units.num_rows


def theirs(spark: SparkSession, root: str, where: str | None) -> int:
    """As many threads plan as there are cores."""
    iceberg = spark.sparkContext._jvm.org.apache.iceberg
    scan = iceberg.hadoop.HadoopTables(spark.sparkContext._jsc.hadoopConfiguration()).load(root).newScan()
    if where is not None:
        made = iceberg.expressions.Expressions
        scan = scan.filter(getattr(made, "and")(made.equal("n7", 7), made.greaterThanOrEqual("n0", BOUND)))
    files = scan.planFiles()
    try:
        return iceberg.relocated.com.google.common.collect.Iterables.size(files)
    finally:
        files.close()


def case(spark: SparkSession, title: str, engine: Engine, root: str, where: str | None) -> Case:
    runners = {"iceberg-java": lambda: theirs(spark, root, where), "boathouse": lambda: ours(engine, root, where)}
    counts = set()
    found = alternate(title, runners, "boathouse", 5, 2, "at most 1.0x", check=lambda _, n: counts.add(n))
    assert len(counts) == 1, counts
    return found


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 1_500_000
    root = build(fresh(DATA / "iceberg-plan-java"), files, A_MANIFEST_OF_PLANS)
    spark = session()
    engines = {"in process": LOCAL, "by Spark's tasks": spark_engine(spark)}
    cases = [
        case(spark, f"open and plan {files:,} files {how}: {which}", engine, root, where)
        for which, where in {"a partition and a bound": WHERE, "all": None}.items()
        for how, engine in engines.items()
    ]
    if len(sys.argv) == 1:
        notes = f"{Path(ICEBERG.jars[0]).stem} in the JVM of PySpark, with as many planning threads as cores."
        record("Iceberg: plans of 1,500,000 files against Iceberg's Java library", cases, notes)
    spark.stop()


if __name__ == "__main__":
    main()

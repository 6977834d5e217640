"""Changes of Iceberg tables on Spark whose rows are marked, and a rewrite of small files, against iceberg-spark in one
session.

`./run bench40 iceberg_spark_changes [ROUNDS [NAME ...]]`: on PySpark 4.0, whose iceberg-spark is fetched from Maven
once. With a number of rounds nothing is recorded; names are `vectors`, `positions` and `small`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from harness import DATA, Case, alternate, fresh, lineitem, record
from iceberg_spark import ICEBERG, WAREHOUSE, session
from kept import Kept
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import boathouse as bh

MODES = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
KINDS = {"vectors": {"format-version": "3"}, "positions": {"format-version": "2"}}
FEW = "l_orderkey % 100 = 7"
"""1 % of the rows, in many places of every file."""
KEYS = ["l_orderkey", "l_linenumber"]
ON = " AND ".join(f"t.{key} = s.{key}" for key in KEYS)
FILES, SMALL = 8, 1000
WHO = ("theirs", "ours")
SPARK, PROCESS = "boathouse", "boathouse in process"


def made(spark: SparkSession, name: str, files: int, properties: dict[str, str]) -> dict[str, Kept]:
    """The same table twice, both written by iceberg-spark, so that what differs is what is done to them."""
    texts = ", ".join(f"'{k}'='{v}'" for k, v in {**properties, "write.distribution-mode": "none"}.items())
    found = {}
    for who in WHO:
        table = f"ice.bench.{name}_{who}"
        root = WAREHOUSE / "bench" / f"{name}_{who}"
        spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
        fresh(root)
        spark.read.parquet(str(lineitem())).repartition(files).createOrReplaceTempView("rows")
        spark.sql(f"CREATE TABLE {table} USING iceberg TBLPROPERTIES ({texts}) AS SELECT * FROM rows")
        found[who] = Kept.of(root)
    return found


def news(spark: SparkSession) -> DataFrame:
    """60,000 rows with another quantity, and 60,000 that the table has not."""
    rows = spark.read.parquet(str(lineitem())).where("l_orderkey % 100 = 11")
    changed = rows.withColumn("l_quantity", (F.col("l_quantity") + 1).cast(rows.schema["l_quantity"].dataType))
    new = rows.withColumn("l_orderkey", F.col("l_orderkey") + 100_000_000)
    path = fresh(DATA / "iceberg-news")
    changed.select(rows.columns).unionByName(new.select(rows.columns)).coalesce(1).write.parquet(path)
    return spark.read.parquet(path)


Ours = Callable[[bh.Table], object]


def case(
    spark: SparkSession,
    title: str,
    kept: dict[str, Kept],
    statement: str,
    ours: dict[str, tuple[Ours, str]],
    rounds: int,
) -> list[Case]:
    """One for each way of ours, with its target; all run in turn."""
    name = f"ice.bench.{kept['theirs'].path.name}"

    def undo() -> None:
        for table in kept.values():
            table.undo()

    def call(run: Ours, session: SparkSession | None) -> Callable[[], object]:
        return lambda: run(bh.open(str(kept["ours"].path), spark=session))

    runners: dict[str, Callable[[], object]] = {"iceberg-spark": lambda: spark.sql(statement.format(t=name)).collect()}
    for who, (run, _) in ours.items():
        runners[who] = call(run, None if who == PROCESS else spark)

    counts: dict[str, int] = {}

    def check(runner: str, _: object) -> None:
        table = kept["theirs" if runner == "iceberg-spark" else "ours"]
        counts[runner] = bh.open(str(table.path)).count()
        assert len(set(counts.values())) == 1, counts

    found = alternate(title, runners, next(iter(ours)), rounds, 1, between=undo, check=check)
    undo()
    peer = {"iceberg-spark": found.seconds["iceberg-spark"]}
    return [Case(title, who, {**peer, who: found.seconds[who]}, target=target) for who, (_, target) in ours.items()]


def changes(spark: SparkSession, kind: str, rounds: int) -> list[Case]:
    kept, source = made(spark, kind, FILES, MODES | KINDS[kind]), news(spark)
    source.createOrReplaceTempView("news")
    merge = f"MERGE INTO {{t}} t USING news s ON {ON} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    rows = source.toArrow()
    work: dict[str, tuple[str, Ours, Ours]] = {
        "delete 1 % of the rows, scattered": (
            f"DELETE FROM {{t}} WHERE {FEW}", lambda t: t.delete(FEW), lambda t: t.delete(FEW)),
        "update 1 %, scattered": (
            f"UPDATE {{t}} SET l_quantity = l_quantity + 1 WHERE {FEW}",
            lambda t: t.update({"l_quantity": "l_quantity + 1"}, FEW),
            lambda t: t.update({"l_quantity": "l_quantity + 1"}, FEW)),
        "merge 120,000 rows, half of them new": (
            merge, lambda t: t.upsert(source, on=KEYS), lambda t: t.upsert(rows, on=KEYS)),
    }  # fmt: skip
    return [
        found
        for title, (statement, on_spark, in_process) in work.items()
        for found in case(
            spark, f"{title}, {kind}", kept, statement,
            {SPARK: (on_spark, "at most 0.6x"), PROCESS: (in_process, "at most 0.2x")}, rounds,
        )
    ]  # fmt: skip


def small(spark: SparkSession, rounds: int) -> list[Case]:
    kept = made(spark, "small", SMALL, {"format-version": "2"})
    assert bh.open(str(kept["ours"].path)).files().num_rows == SMALL
    call = "CALL ice.system.rewrite_data_files(table => '{t}')"
    ours: dict[str, tuple[Ours, str]] = {who: (lambda t: t.optimize(), "at most 0.3x") for who in (SPARK, PROCESS)}
    return case(spark, f"rewrite of {SMALL:,} small files", kept, call, ours, rounds)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    names = sys.argv[2:] or [*KINDS, "small"]
    spark = session()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.bench")
    cases = [found for kind in KINDS if kind in names for found in changes(spark, kind, rounds)]
    cases += small(spark, rounds) if "small" in names else []
    for found in cases:
        print(found.row(), flush=True)
    if len(sys.argv) == 1:
        record(f"Spark: changes of an Iceberg table by marks, against {Path(ICEBERG.jars[0]).stem}", cases,
               f"TPC-H lineitem at scale 1, {FILES} files written by iceberg-spark, local[2]; each undone before the "
               "next.")  # fmt: skip
    spark.stop()


if __name__ == "__main__":
    main()

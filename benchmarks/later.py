"""Spark: what comes after `to_spark()`, compared with plain Parquet; `connect` as the argument does it on Connect."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from delta_million import build
from harness import DATA, alternate, fresh, record
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import boathouse as bh

ROWS, PARTITIONS, FILES, PER_FILE = 6_000_000, 500, 10_000, 10
PLAIN, OURS = "plain Parquet", "boathouse"


def session(connect: bool) -> SparkSession:
    builder: Any = SparkSession.builder
    made = builder.remote("local[2]") if connect else builder.master("local[2]")
    return made.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false").getOrCreate()


def partitioned(spark: SparkSession, folder: Path) -> list:
    rows = spark.range(0, ROWS, 1, 4).selectExpr("id", f"cast(id % {PARTITIONS} AS int) p", "rand() x")
    rows.repartition(4, "p").write.partitionBy("p").parquet(str(folder / "plain"))
    bh.write(rows.repartition(4, "p"), str(folder / "delta"), format="delta", partition_by=["p"])
    frames = {
        PLAIN: spark.read.parquet(str(folder / "plain")),
        OURS: bh.open(str(folder / "delta"), spark=spark).to_spark(),
    }
    few = spark.range(77, 78).selectExpr("cast(id AS int) k")
    asks = {
        "grouped by p": lambda d: d.groupBy("p").agg(F.sum("x")).count(),
        "max(p)": lambda d: d.agg(F.max("p"), F.max("x")).collect(),
        "p % 7 = 3": lambda d: d.where("p % 7 = 3").agg(F.sum("x")).collect(),
        "joined on p": lambda d: d.join(few, F.col("p") == F.col("k")).agg(F.sum("x")).collect(),
    }
    return [
        alternate(f"{PARTITIONS} partitions, {name}", {w: lambda f=f, a=ask: a(f) for w, f in frames.items()}, OURS,
                  rounds=3, target="at most 1.3x")
        for name, ask in asks.items()
    ]  # fmt: skip


def many_files(folder: Path) -> Path:
    """A Delta table of small files, written as plain JSON."""
    root = folder / "many"
    (root / "_delta_log").mkdir(parents=True)
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (("id", "long"), ("v", "string"))]
    schema = json.dumps({"type": "struct", "fields": fields})
    actions: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "many", "format": {"provider": "parquet", "options": {}}, "schemaString": schema,
                      "partitionColumns": [], "configuration": {}}},
    ]  # fmt: skip
    for i in range(FILES):
        path, first = root / f"f{i}.parquet", i * PER_FILE
        pq.write_table(pa.table({"id": range(first, first + PER_FILE), "v": ["x"] * PER_FILE}), path)
        stats = {
            "numRecords": PER_FILE,
            "minValues": {"id": first},
            "maxValues": {"id": first + PER_FILE - 1},
            "nullCount": {"id": 0, "v": 0},
        }
        add = {"path": path.name, "partitionValues": {}, "size": path.stat().st_size, "modificationTime": 0}
        actions.append({"add": add | {"dataChange": True, "stats": json.dumps(stats)}})
    (root / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return root


def later(spark: SparkSession, root: Path) -> list:
    table = bh.open(str(root), spark=spark)
    frame, early = table.to_spark(), "scan(where=)"
    asked = {
        "id = 54": (lambda: frame.where("id = 54").collect(), lambda: table.scan(where="id = 54").to_spark().collect()),
        "count of id < 100": (
            lambda: frame.where("id < 100").count(), lambda: table.scan(where="id < 100").to_spark().count()),
    }  # fmt: skip
    return [alternate(f"{FILES:,} files, {n}", {early: first, OURS: last}, OURS) for n, (last, first) in asked.items()]


def million(spark: SparkSession, folder: Path) -> list:
    """A version of 1,009,000 files, of which those of one day are there."""
    root = build(folder / "million")
    day = "day = DATE'2024-01-01'"
    rows = pa.table({"id": range(PER_FILE), "name": ["x"] * PER_FILE, "price": [1.0] * PER_FILE,
                     "seen": pa.array([0] * PER_FILE, pa.timestamp("us", "UTC"))})  # fmt: skip
    pq.write_table(rows, root / "one.parquet")
    table = bh.open(str(root), spark=spark)
    for uri in table.scan(where=day).files():
        path = Path(uri.removeprefix("file://"))
        path.parent.mkdir(exist_ok=True)
        path.hardlink_to(root / "one.parquet")
    frame, early = table.to_spark(), "scan(where=)"
    asked = {
        "one of 1,000 days, the frame made before": lambda: frame.where(day).count(),
        "one of 1,000 days, the frame made each time": lambda: table.to_spark().where(day).count(),
    }
    first = lambda: table.scan(where=day).to_spark().count()  # noqa: E731
    return [
        alternate(f"1,009,000 files, {name}", {early: first, OURS: last}, OURS, target="at most 1.5x")
        for name, last in asked.items()
    ]


def main() -> None:
    connect = "connect" in sys.argv[1:]
    folder = Path(fresh(DATA / "later"))
    spark = session(connect)
    cases = partitioned(spark, folder)
    if not connect:
        cases += later(spark, many_files(folder))
        cases += million(spark, folder)
    spark.stop()
    record("Spark: conditions and partition columns after to_spark()" + (", Connect" if connect else ""), cases)


if __name__ == "__main__":
    main()

"""Spark: aggregates over our tables against spark.read.parquet of the same files; appends against df.write."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from harness import DATA, alternate, fresh, lineitem, record
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import boathouse as bh

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def aggregate(df) -> object:
    """TPC-H query 1's aggregate: reads seven columns."""
    price = F.col("l_extendedprice") * (1 - F.col("l_discount"))
    return (
        df.where("l_shipdate <= date'1998-09-02'")
        .groupBy("l_returnflag", "l_linestatus")
        .agg(F.sum("l_quantity"), F.sum("l_extendedprice"), F.sum(price), F.avg("l_discount"), F.count("*"))
        .collect()
    )


def scans(spark, formats=("delta", "iceberg")) -> list:
    source = spark.read.parquet(str(lineitem()))
    cases = []
    for parts in (1, 500):
        by = [] if parts == 1 else ["bucket_no"]
        df = source if parts == 1 else source.withColumn("bucket_no", (F.col("l_orderkey") % parts).cast("int"))
        for format in formats:
            uri = fresh(DATA / f"spark-{format}-{parts}")
            bh.write(df, uri, format=format, partition_by=by)
            files = bh.open(uri).scan().files()
            plain = [f.removeprefix("file://") for f in files]
            reader = spark.read.schema(spark.read.parquet(plain[0]).schema).option("__globPaths__", "false")
            spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.threshold", "1000000")
            runners = {
                "spark.read.parquet": lambda p=plain, r=reader: aggregate(r.parquet(*p)),
                "boathouse": lambda u=uri: aggregate(bh.open(u).to_spark(spark)),
            }
            if parts == 1:
                names = ["l_quantity", "l_extendedprice", "l_discount", "l_returnflag", "l_linestatus", "l_shipdate"]
                schema = bh.open(uri).to_spark(spark).select(*names).schema
                runners["format('boathouse'), columns named"] = lambda u=uri, s=schema: aggregate(
                    spark.read.format("boathouse").schema(s).load(u)
                )
            target = "at most 1.1x" if parts == 1 else "at most 1.3x"
            title = f"aggregate, {format}, {len(files)} files" + ("" if parts == 1 else f", {parts} partitions")
            cases.append(alternate(title, runners, "boathouse", rounds=7, warm=2, target=target))
    return cases


def appends(spark) -> list:
    source = spark.read.parquet(str(lineitem()))
    cases = []
    for codec, key in (("snappy", "snappy"), ("zstd", "zstd")):
        runners = {
            "df.write.parquet": lambda c=codec: source.write.option("compression", c).parquet(fresh(DATA / "plain")),
            "boathouse delta": lambda k=key: bh.write(
                source, fresh(DATA / "ours-delta"), format="delta", properties={"delta.parquet.compression.codec": k}
            ),
            "boathouse iceberg": lambda k=key: bh.write(
                source, fresh(DATA / "ours-iceberg"), format="iceberg",
                properties={"write.parquet.compression-codec": k},
            ),
        }  # fmt: skip
        case = alternate(f"append, {codec}", runners, "boathouse delta", rounds=7, target="at most 1.35x")
        two = {n: case.seconds[n] for n in ("df.write.parquet", "boathouse iceberg")}
        cases += [case, type(case)(f"append, {codec}, iceberg", "boathouse iceberg", two, target="at most 1.35x")]
    return cases


def main() -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    what = sys.argv[1:] or ["scan", "append"]
    if "scan" in what:
        record("Spark: aggregates over TPC-H lineitem, scale 1", scans(spark))
    if "append" in what:
        record("Spark: appends of TPC-H lineitem, scale 1", appends(spark))
    spark.stop()
    print(Path(DATA))


if __name__ == "__main__":
    main()

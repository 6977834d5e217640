"""A driver of streams from one table to several, as a program: the tests kill it.

python stream_driver.py FOLDER

follows the table FOLDER/source: its rows go to FOLDER/delta, FOLDER/iceberg and FOLDER/lance, and the number of rows of
each key to FOLDER/merged, which has to exist. Prints `started` when all queries run. A query that ends because of the
table's new schema is started again with the same checkpoint, as its error says, and so is one whose Python did not
start within Spark's ten seconds, as happens on a busy machine. With the file FOLDER/end, the queries process what is
there, and the program ends. Any other error ends it with that error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import boathouse as bh

FORMATS = ("delta", "iceberg", "lance")
Start = Callable[[bool], StreamingQuery]
"""Starts a query; `end`: it ends with what is there."""
PASSING = (
    "restart the query, with the same checkpoint",
    "Python worker failed to connect back",
    "Illegal size",  # Spark serializes a collection that another query of the session changes
)
"""Words of the errors after which a query is started again."""


def main(folder: str) -> None:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "1")
    spark = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1").getOrCreate()
    starts: dict[str, Start] = {name: partial(copying, spark, folder, name) for name in FORMATS}
    starts["merged"] = partial(merging, spark, folder)
    queries = {name: start(False) for name, start in starts.items()}
    print("started", flush=True)
    while not Path(folder, "end").exists():
        time.sleep(0.2)
        for name, query in queries.items():
            if not query.isActive:
                queries[name] = again(query, starts[name], False)
    for name, query in queries.items():
        query.stop()
        last = starts[name](True)
        while last.isActive or last.exception() is not None:
            last = last if last.isActive else again(last, starts[name], True)
            time.sleep(0.1)
    print("done", flush=True)
    spark.stop()


def again(query: StreamingQuery, start: Start, end: bool) -> StreamingQuery:
    """The query started again, if it ended well or with an error that asks for it."""
    error = query.exception()
    if error is not None and not any(words in str(error) for words in PASSING):
        assert isinstance(error, StreamingQueryException)
        raise error
    return start(end)


def rows(spark: SparkSession, folder: str) -> DataFrame:
    return spark.readStream.format("boathouse").option("maxFilesPerTrigger", "2").load(f"{folder}/source")


def copying(spark: SparkSession, folder: str, name: str, end: bool) -> StreamingQuery:
    writer = rows(spark, folder).writeStream.format("boathouse").option("mergeSchema", "true")
    writer = writer.option("tableFormat", name).option("checkpointLocation", f"{folder}/checkpoints/{name}")
    return (writer.trigger(availableNow=True) if end else writer).start(f"{folder}/{name}")


def merging(spark: SparkSession, folder: str, end: bool) -> StreamingQuery:
    def add(batch: DataFrame, number: int) -> None:
        table = bh.open(f"{folder}/merged", spark=batch.sparkSession)
        counted = batch.groupBy("key").count().selectExpr("key", "count AS rows")
        merge = table.merge(counted, "target.key = source.key")
        merge = merge.when_matched_update({"rows": "target.rows + source.rows"})
        merge.when_not_matched_insert_all().execute(txn=("counted", number))

    writer = rows(spark, folder).writeStream.foreachBatch(add)
    writer = writer.option("checkpointLocation", f"{folder}/checkpoints/merged")
    return (writer.trigger(availableNow=True) if end else writer).start()


if __name__ == "__main__":
    main(sys.argv[1])

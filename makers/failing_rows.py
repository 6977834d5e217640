"""Rows of two Spark tasks of which one fails, once the other one has finished its data file."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession


def failing_rows(spark: SparkSession, folder: str, how: str) -> DataFrame:
    """A frame of `id bigint, v bigint`, ids 0 to 99. The second task waits for a new data file below the folder, then
    fails: `kill`, `exit`, `raise`, `cast`, `overflow`, or `constraint` (a `v` below 0)."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers may lack this module
    before = {str(p) for p in Path(folder).rglob("*")}

    def wait_and_fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column(0)[0].as_py() < 50:
                yield batch
                continue
            if how in ("kill", "exit", "raise"):
                yield batch  # this task has begun a file, too
            for _ in range(1200):
                new = (
                    p for p in Path(folder).rglob("*") if p.suffix in (".parquet", ".lance") and str(p) not in before
                )
                if any(p.read_bytes()[-4:] in (b"PAR1", b"LANC") for p in new):
                    break
                time.sleep(0.05)
            else:
                raise TimeoutError("the other task has written nothing")
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "exit":
                os._exit(3)
            if how == "raise":
                raise KeyError("no such thing")
            yield batch

    frame = spark.range(0, 100, 1, 2).mapInArrow(wait_and_fail, "id bigint")
    values = {
        "cast": "CAST(IF(id = 99, 'x', '1') AS bigint)",
        "overflow": "CAST(CAST(IF(id = 99, 9223372036854775807, 1) + id AS int) AS bigint)",
        "constraint": "IF(id = 99, -1, id)",
    }
    return frame.selectExpr("id", f"{values.get(how, 'id')} AS v")

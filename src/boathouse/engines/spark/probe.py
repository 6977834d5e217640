"""A capability check of Spark's Parquet reader, once per session: behaviour that native scans rely on but that is not
documented.

Ten tiny files with awkward names, with constants by path, row positions, a default, and NaN outside of bounds. It needs
a driver that shares its disk with Spark (`local[*]`); elsewhere only the scan's own guards apply.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from boathouse.engines.spark.constants import input_file, lookup
from boathouse.engines.spark.floats import opaque
from boathouse.engines.spark.reader import read_parquet
from boathouse.storage.hadoop import hadoop_uri
from boathouse.types import DOUBLE

_NAMES = ("a.parquet", "b c", "d%20e", "f#g", "h[i", "j{k", "l*m", "n?o", "p+q=r", "ü.parquet")
_ROWS = 3
_FAILED: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()
_PASSED: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()


def reader_fault(spark: SparkSession) -> str | None:
    """A description of what Spark's reader gets wrong; None if nothing. Checked once per session."""
    if spark in _PASSED or not str(spark.conf.get("spark.master", "")).startswith("local"):
        return None
    if spark not in _FAILED:
        found = _probe(spark)
        if found is None:
            _PASSED[spark] = True
            return None
        _FAILED[spark] = found
    return _FAILED[spark]


def _probe(spark: SparkSession) -> str | None:
    folder = tempfile.mkdtemp(prefix="boathouse probe ")
    try:
        return _compare(spark, _write(Path(folder)))
    except PySparkException as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(folder: Path) -> list[str]:
    uris = []
    for i, name in enumerate(_NAMES):
        rows = {"x": pa.array(range(i * _ROWS, (i + 1) * _ROWS), pa.int64()), "f": [0.0, *[math.nan] * (_ROWS - 1)]}
        pq.write_table(pa.table(rows), folder / name)
        uris.append(f"file://{folder}/{name}")
    return uris


def _compare(spark: SparkSession, uris: list[str]) -> str | None:
    default = S.StructField("d", S.IntegerType(), True, {"EXISTS_DEFAULT": "7"})
    struct = S.StructType([S.StructField("x", S.LongType()), S.StructField("f", S.DoubleType()), default])
    frame = read_parquet(spark, uris, struct)
    if sorted(frame.inputFiles()) != sorted(map(input_file, uris)):
        return "it does not list the given files"
    meta = frame.metadataColumn("_metadata")
    entries = {hadoop_uri(u): {"u": i} for i, u in enumerate(uris)}
    unit = lookup(entries, {"u": "bigint"}, meta["file_path"])["u"]
    f = opaque(F.col("f"), DOUBLE)
    found = frame.select("x", "d", unit.alias("u"), meta["row_index"].alias("p"), f.alias("f"))
    rows = found.where((F.col("p") < _ROWS) & (F.col("f") > 1)).drop("f").collect()
    expected = {(i * _ROWS + j, 7, i, j) for i in range(len(uris)) for j in range(1, _ROWS)}
    if {tuple(r) for r in rows} != expected or len(rows) != len(expected):
        return "it does not return the rows, positions, paths, defaults and NaN of ten small files"
    return None

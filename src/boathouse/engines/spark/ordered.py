"""Rows in an order: each file's keys in one Spark partition, sorted there; nothing comes to the driver."""

from __future__ import annotations

from typing import Final

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import types as S

from boathouse.bits.murmur3 import hash_ints
from boathouse.engines.spark.worker import AddKeys
from boathouse.table.engine import RowOrder

COLUMN: Final = "__column"
"""Columns are named by position, since Spark's mapInArrow resolves them by name, and fails for names with a dot."""
_WORKER, _KEY = "__worker", "__key"
_SEED: Final = 42
"""That of Spark's hash of partitioning columns."""


def ordered(frame: DataFrame, order: RowOrder) -> DataFrame:
    """The rows with the columns named by position, in one partition for each file.

    The bounds of files are known, so that Spark need not read the rows once more to find them, as its own partitioning
    by range does.
    """
    names, files = tuple(frame.columns), len(order.starts) + 1
    rows = frame.toDF(*(f"{COLUMN}{i}" for i in range(len(names))))
    fields = [S.StructField(f.name, f.dataType) for f in rows.schema.fields]
    schema = S.StructType([*fields, S.StructField(_WORKER, S.IntegerType()), S.StructField(_KEY, S.LongType())])
    keyed = rows.mapInArrow(AddKeys(order, names, workers(files), (_WORKER, _KEY)), schema)
    return keyed.repartition(files, _WORKER).sortWithinPartitions(_KEY).drop(_WORKER, _KEY)


def workers(count: int) -> tuple[int, ...]:
    """An integer for each of `count` partitions, which Spark sends there: pmod(hash, count) is the partition."""
    tried = 16 * count
    while True:
        places = np.mod(hash_ints(np.arange(tried, dtype=np.int32), _SEED), count)
        found, first = np.unique(places, return_index=True)
        if len(found) == count:
            return tuple(int(i) for i in first)
        tried *= 2

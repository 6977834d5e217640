"""Equality deletes in native scans: the driver reads the deleted keys, and an anti join drops their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from boathouse.engines.spark.sources import to_frame
from boathouse.registry import tasks
from boathouse.table.plan import PlannedUnits
from boathouse.table.tasks import ReadColumn, ReadSpec, data_files_of
from boathouse.table.units import EQUALITY
from boathouse.types import FloatType

MAX_KEYS = 1_000_000
"""Deleted keys that are broadcast; executor tasks read only those of their own units."""
MAX_COMBINATIONS = 16
"""Combinations of deletes that units share: each is a scan of its own."""
_PREFIX = "__k"


def equality_obstacle(read: ReadSpec, planned: PlannedUnits) -> str | None:
    """Why a join cannot drop the rows that equality deletes match; None if nothing does, or there are none."""
    found = planned.deletes.filter(pc.equal(planned.deletes.column("kind"), EQUALITY))
    if found.num_rows == 0:
        return None
    rows = found.column("rows")
    if rows.null_count:
        return "equality deletes whose number of keys is unknown"
    count = pc.sum(rows).as_py()
    if count > MAX_KEYS:
        return f"equality deletes with {count:,} keys are too many to broadcast"
    ids = set(pc.list_flatten(found.column("keys")).to_pylist())
    floats = next((c.name for c in read.columns if c.field_id in ids and isinstance(c.type, FloatType)), None)
    if floats is not None:
        return f"equality deletes by `{floats}`: Spark takes 0.0 and -0.0 for equal"
    known = set(found.column("delete").to_pylist())
    lists = planned.units.column("deletes").to_pylist()
    combinations = len({tuple(n for n in numbers or () if n in known) for numbers in lists} - {()})
    if combinations > MAX_COMBINATIONS:
        return f"equality deletes in {combinations} combinations, each of which would be a scan of its own"
    return None


class EqualityJoins:
    """The equality deletes of one plan; each is read once, when the first frame needs it."""

    def __init__(self, spark: SparkSession, read: ReadSpec, deletes: pa.Table) -> None:
        self._spark = spark
        self._read = read
        self._deletes = {d["delete"]: d for d in deletes.to_pylist() if d["kind"] == EQUALITY}
        self._keys: dict[int, pa.Table] = {}

    def among(self, deletes: Sequence[int] | None) -> tuple[int, ...]:
        """Those of a unit's deletes that are by equality."""
        return tuple(n for n in deletes or () if n in self._deletes)

    def without(self, frame: DataFrame, numbers: Sequence[int], value: Callable[[ReadColumn], Column]) -> DataFrame:
        """The rows that none of these deletes match: null is equal to null, NaN to NaN."""
        by_keys: dict[tuple[int, ...], list[int]] = {}
        for number in numbers:
            by_keys.setdefault(tuple(sorted(self._deletes[number]["keys"])), []).append(number)
        for ids, group in by_keys.items():
            columns = [next(c for c in self._read.columns if c.field_id == id) for id in ids]
            gone = pa.concat_tables([self._table(n, columns) for n in group])
            names = [f"{_PREFIX}{i}" for i in range(len(columns))]
            right = to_frame(self._spark, gone.rename_columns(names))
            # Without nulls on one side, = finds the same rows as <=>, and Spark looks them up faster.
            same = [
                value(c).eqNullSafe(F.col(n)) if gone.column(c.name).null_count else value(c) == F.col(n)
                for n, c in zip(names, columns, strict=True)
            ]
            frame = frame.join(F.broadcast(right), reduce(and_, same), "left_anti")
        return frame

    def _table(self, number: int, columns: Sequence[ReadColumn]) -> pa.Table:
        if number not in self._keys:
            with data_files_of(self._read.version):
                load = tasks(self._read.format).load_keys
                self._keys[number] = load(self._read, self._deletes[number], columns)
        return self._keys[number]

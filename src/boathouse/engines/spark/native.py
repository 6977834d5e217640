"""Native scans: Spark's vectorised Parquet reader over exactly the plan's files, with code generation throughout.

Files are read in groups with the same treatment: those with deleted rows separately from the others, those with other
equality deletes, and those whose partition values replace a column separately from those that contain it.
"""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from boathouse.bits.roaring import Bitmap, deserialize64
from boathouse.engines.spark.asked import Asked, asking_obstacle, looked_at
from boathouse.engines.spark.constants import restored
from boathouse.engines.spark.equality import EqualityJoins
from boathouse.engines.spark.floats import opaque, skipping, unskippable
from boathouse.engines.spark.groups import Group, Rows, Source, groups
from boathouse.engines.spark.listed import Listed
from boathouse.engines.spark.read_schema import Shape, quoted, shape_of
from boathouse.engines.spark.route import as_spark_reads, files_obstacle
from boathouse.engines.spark.selection import Expression, Stored, as_column, selected
from boathouse.engines.spark.values import text
from boathouse.table.metadata_columns import METADATA_COLUMNS, POSITION, UNIT
from boathouse.table.plan import ScanPlan, deletes_of
from boathouse.table.tasks import ReadColumn, ReadSpec
from boathouse.types import FloatType, StructType

_ROW, _WORDS = "__row", "__words"
_PREFIX = "__c"


def native_frame(spark: SparkSession, plan: ScanPlan) -> DataFrame:
    """Every row of the plan, with the columns `plan.read.schema`; `route` must have chosen the native strategy."""
    read = plan.read
    planned = looked_at(spark, plan)
    units = as_spark_reads(spark, planned.units)
    equality = EqualityJoins(spark, read, planned.deletes)
    found = groups(read, units, planned.units.column("path"), equality)
    source = _source(spark, plan, units)
    frames = [_group_frame(spark, source, read, group, planned.deletes, equality) for group in found]
    frame = reduce(DataFrame.unionAll, frames)
    if read.where is not None:
        frame = frame.where(F.expr(text(read.where)))
    wanted = (*read.output, *read.hidden)
    return frame if list(wanted) == frame.columns else frame.select(*(quoted(n) for n in wanted))


def _source(spark: SparkSession, plan: ScanPlan, units: pa.Table) -> Source:
    if asking_obstacle(spark, units) is not None:
        return Listed(spark, plan.read)
    return Asked(spark, plan, partial(files_obstacle, spark), partial(as_spark_reads, spark))


def _group_frame(
    spark: SparkSession, source: Source, read: ReadSpec, group: Group, deletes: pa.Table, equality: EqualityJoins
) -> DataFrame:
    """The rows of one group, columns named as in the read specification, metadata columns last."""
    stored = tuple(c for c in read.columns if c.name not in group.constants)
    shape = shape_of(read, stored)
    skips = not unskippable(stored)
    rows = source.rows(group, stored, shape, skips)
    frame = rows.frame
    floats = {c.name: c for c in stored if isinstance(c.type, FloatType)}
    if skips and (certain := skipping(read.where, floats, shape.column)) is not None:
        frame = frame.where(certain)
    numbered = ((f"{_PREFIX}{i}", c) for i, c in enumerate(read.columns) if c.name not in group.constants)
    columns = ((name, _read_as(c, shape, skips)) for name, c in numbered)
    frame = selected(spark, frame, (*columns, *rows.staged, *_position(frame, read, group)))
    if group.deleted:
        frame = _without_deleted(spark, frame, group, rows, deletes)
    frame = equality.without(frame, group.equality, lambda c: as_column(_value(read.columns.index(c), c, rows)))
    return selected(spark, frame, _named(read, rows))


def _read_as(c: ReadColumn, shape: Shape, skips: bool) -> Expression:
    """A column as conditions see it."""
    if isinstance(c.type, StructType) or c.name in shape.casts:
        return opaque(shape.column(c), c.type) if skips else shape.column(c)
    return Stored(shape.names[c.name], c.type if skips and isinstance(c.type, FloatType) else None)


def _position(frame: DataFrame, read: ReadSpec, group: Group) -> list[tuple[str, Expression]]:
    if not (group.deleted or POSITION in read.hidden):
        return []
    return [(_ROW, frame.metadataColumn("_metadata")["row_index"])]


def _named(read: ReadSpec, rows: Rows) -> list[tuple[str, Expression]]:
    """The columns under their own names, which until here could collide with those of Spark or of this module."""
    out: list[tuple[str, Expression]] = [(c.name, _value(i, c, rows)) for i, c in enumerate(read.columns)]
    for h in read.hidden:
        if h in read.constants:
            out.append((h, restored(F.lit(read.constants[h]), METADATA_COLUMNS[h].type, h)))
        elif h == UNIT and rows.unit is not None:
            out.append((h, rows.unit))
        else:
            out.append((h, Stored(_ROW)))
    return out


def _value(i: int, c: ReadColumn, rows: Rows) -> Expression:
    return rows.values.get(c.name, Stored(f"{_PREFIX}{i}"))


def _without_deleted(spark: SparkSession, frame: DataFrame, group: Group, rows: Rows, deletes: pa.Table) -> DataFrame:
    """Rows whose bit is not set in the deletion vector of their file, broadcast as words; a file without one fails the
    query."""
    if rows.key is None or rows.keys is None:
        raise ValueError("a group with deleted rows has keys")
    vectors = spark.createDataFrame(pa.table({"key": rows.keys, _WORDS: _words(group.units, deletes)}))
    joined = frame.join(F.broadcast(vectors), rows.key == F.col("key"), "left")
    missing = F.raise_error(F.concat(F.lit("boathouse: no deletion vector for the file "), rows.key.cast("string")))
    # Rows beyond the last word are not deleted: get() is null there, where w[i] would fail under ANSI.
    word = F.coalesce(F.get(_WORDS, F.shiftright(_ROW, 6).cast("int")), F.lit(0).cast("bigint"))
    bit = F.bit_get(word, F.col(_ROW).bitwiseAND(F.lit(63)).cast("int"))
    return joined.where(F.when(F.col("key").isNull(), missing).otherwise(bit) == 0)


def _words(units: pa.Table, deletes: pa.Table) -> pa.Array:
    """The deleted positions of each unit as 64-bit words up to the last one deleted."""
    kept = deletes_of(units, deletes)
    inline = dict(zip(kept.column("delete").to_pylist(), kept.column("inline").to_pylist(), strict=True))
    words = []
    for uri, ids in zip(units.column("path").to_pylist(), units.column("deletes").to_pylist(), strict=True):
        found = (data for i in ids if (data := inline[i]) is not None)
        bitmap = reduce(Bitmap.__or__, (deserialize64(data, where=uri) for data in found))
        last = int(bitmap.positions()[-1]) if len(bitmap) else 0
        words.append(bitmap.words(0, last + 1))
    offsets = np.concatenate(([0], np.cumsum([len(w) for w in words]))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(words)))

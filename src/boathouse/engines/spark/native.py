"""Native scans: Spark's vectorised Parquet reader over exactly the plan's files, with code generation throughout.

Files are read in groups with the same treatment: those with deleted rows separately from the others, those with other
equality deletes, and those whose partition values replace a column separately from those that contain it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from boathouse.bits.roaring import Bitmap, deserialize64
from boathouse.engines.spark.constants import (
    carried,
    carrier,
    file_key,
    input_file,
    lookup,
    partition_values,
    restored,
    table_of,
)
from boathouse.engines.spark.equality import EqualityJoins
from boathouse.engines.spark.floats import opaque, skipping, unskippable
from boathouse.engines.spark.read_schema import Shape, quoted, shape_of
from boathouse.engines.spark.reader import literal, read_parquet
from boathouse.engines.spark.route import as_spark_reads
from boathouse.errors import CorruptTableError
from boathouse.table.metadata_columns import METADATA_COLUMNS, POSITION, UNIT
from boathouse.table.plan import ScanPlan, deletes_of
from boathouse.table.reading import constants
from boathouse.table.tasks import ReadColumn, ReadSpec, missing_data_file
from boathouse.types import FloatType

CHECKED_FILES = 1000
"""Up to this number of files, Spark's list of a frame's input files is compared with the plan's."""
_PATH, _ROW, _FILE, _WORDS = "__path", "__row", "__file", "__words"
_PREFIX = "__c"


@dataclass(frozen=True, slots=True)
class Group:
    """Units that are read the same way: `constants` are the columns whose values come from a partition field,
    `deleted` whether positions are deleted, `equality` the numbers of their equality deletes."""

    units: pa.Table
    constants: Mapping[str, int]
    deleted: bool
    equality: tuple[int, ...] = ()


def native_frame(spark: SparkSession, plan: ScanPlan) -> DataFrame:
    """Every row of the plan, with the columns `plan.read.schema`; `route` must have chosen the native strategy."""
    read = plan.read
    units = as_spark_reads(spark, plan.units)
    equality = EqualityJoins(spark, read, plan.deletes)
    frames = [_group_frame(spark, read, group, plan.deletes, equality) for group in groups(read, units, equality)]
    frame = reduce(DataFrame.unionAll, frames)
    if read.where is not None:
        frame = frame.where(F.expr(str(read.where)))
    wanted = (*read.output, *read.hidden)
    return frame if list(wanted) == frame.columns else frame.select(*(quoted(n) for n in wanted))


def groups(read: ReadSpec, units: pa.Table, equality: EqualityJoins) -> list[Group]:
    """Units by how they are read, in order of first appearance; the order of units within a group is kept."""
    specs = units.column("spec").to_pylist()
    deletes = units.column("deletes").to_pylist()
    found: dict[tuple[int, bool, tuple[int, ...]], list[int]] = {}
    known: dict[int, Mapping[str, int]] = {}
    alike: dict[int, int] = {}
    for i, (spec, ids) in enumerate(zip(specs, deletes, strict=True)):
        if spec not in known:
            known[spec] = constants(read, spec)
            alike[spec] = next(s for s, c in known.items() if c == known[spec])
        by_key = equality.among(ids)
        found.setdefault((alike[spec], len(ids or ()) > len(by_key), by_key), []).append(i)
    return [Group(units.take(pa.array(rows)), known[key[0]], *key[1:]) for key, rows in found.items()]


def _group_frame(
    spark: SparkSession, read: ReadSpec, group: Group, deletes: pa.Table, equality: EqualityJoins
) -> DataFrame:
    """The rows of one group, columns named as in the read specification, metadata columns last."""
    uris = group.units.column("path").to_pylist()
    stored = tuple(c for c in read.columns if c.name not in group.constants)
    shape = shape_of(read, stored)
    skips = not unskippable(stored)
    frame = _read(spark, read, uris, shape, skips)
    _check_inputs(frame, uris)
    floats = {c.name: shape.column(c) for c in stored if isinstance(c.type, FloatType)}
    if skips and (certain := skipping(read.where, floats)) is not None:
        frame = frame.where(certain)
    frame = _staged(frame, read, group, {c.name: _read_as(c, shape, skips) for c in stored})
    if group.deleted:
        frame = _without_deleted(spark, frame, group.units, deletes)
    frame = equality.without(frame, group.equality, lambda c: _value(read.columns.index(c), c, group))
    return frame.select(*_named(read, group))


def _read(spark: SparkSession, read: ReadSpec, uris: Sequence[str], shape: Shape, skips: bool) -> DataFrame:
    """The files' rows, unchanged. Raises MissingFileError for the first missing file."""
    try:
        return read_parquet(spark, uris, S.StructType(list(shape.fields)), skips)
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        path = (error.getMessageParameters() or {}).get("path", "")
        gone = next((u for u in uris if path in (input_file(u), u, literal(u))), path)
        raise missing_data_file(read.version, gone) from error


def _check_inputs(frame: DataFrame, uris: Sequence[str]) -> None:
    """Checks that the frame reads all files: under some settings Spark silently skips files."""
    if len(uris) > CHECKED_FILES:
        return
    wanted, found = set(map(input_file, uris)), set(frame.inputFiles())
    if wanted != found:
        first = sorted(wanted ^ found)[0]
        raise CorruptTableError(
            f"Spark would read {len(found)} files where the table has {len(wanted)}: {first}",
            where=first,
            advice="read the table in process with to_arrow(), and report the file's name",
        )


def _read_as(c: ReadColumn, shape: Shape, skips: bool) -> Column:
    """A column as conditions see it."""
    return opaque(shape.column(c), c.type) if skips else shape.column(c)


def _staged(frame: DataFrame, read: ReadSpec, group: Group, stored: Mapping[str, Column]) -> DataFrame:
    """The columns renamed, so that no name of the table collides with one of Spark's or of this module's."""
    meta = frame.metadataColumn("_metadata")
    columns = [stored[c.name].alias(f"{_PREFIX}{i}") for i, c in enumerate(read.columns) if c.name in stored]
    if group.constants or UNIT in read.hidden:
        columns.append(_constants(read, group, meta["file_path"]).alias(_FILE))
    if group.deleted:
        columns.append(meta["file_path"].alias(_PATH))
    if group.deleted or POSITION in read.hidden:
        columns.append(meta["row_index"].alias(_ROW))
    return frame.select(*columns)


def _constants(read: ReadSpec, group: Group, file_path: Column) -> Column:
    keys = [file_key(u) for u in group.units.column("path").to_pylist()]
    columns: list[tuple[str, list[Any]]] = []
    ddl: dict[str, str] = {}
    if UNIT in read.hidden:
        columns.append(("u", group.units.column("unit").to_pylist()))
        ddl["u"] = "bigint"
    for i, c in enumerate(read.columns):
        if c.name in group.constants:
            columns.append((f"c{i}", carried(partition_values(group.units, group.constants[c.name]), c.type)))
            ddl[f"c{i}"] = str(carrier(c.type))
    return lookup(table_of(columns, keys), ddl, file_path)


def _named(read: ReadSpec, group: Group) -> list[Column]:
    out = []
    for i, c in enumerate(read.columns):
        out.append(_value(i, c, group).alias(c.name))
    for h in read.hidden:
        if h in read.constants:
            type = METADATA_COLUMNS[h].type
            out.append(restored(F.lit(read.constants[h]), type, h).alias(h))
        else:
            out.append(F.col(f"{_FILE}.u" if h == UNIT else _ROW).alias(h))
    return out


def _value(i: int, c: ReadColumn, group: Group) -> Column:
    if c.name in group.constants:
        return restored(F.col(f"{_FILE}.c{i}"), c.type, c.name)
    return F.col(f"{_PREFIX}{i}")


def _without_deleted(spark: SparkSession, frame: DataFrame, units: pa.Table, deletes: pa.Table) -> DataFrame:
    """Rows whose bit is not set in the deletion vector of their file, broadcast as words; a file without one fails the
    query."""
    files, words = _words(units, deletes)
    keys, key_of = _keys(files)
    vectors = spark.createDataFrame(pa.table({"key": keys, _WORDS: words}))
    joined = frame.join(F.broadcast(vectors), key_of(F.col(_PATH)) == F.col("key"), "left")
    missing = F.raise_error(F.concat(F.lit("boathouse: no deletion vector for "), F.col(_PATH)))
    # Rows beyond the last word are not deleted: get() is null there, where w[i] would fail under ANSI.
    word = F.coalesce(F.get(_WORDS, F.shiftright(_ROW, 6).cast("int")), F.lit(0).cast("bigint"))
    bit = F.bit_get(word, F.col(_ROW).bitwiseAND(F.lit(63)).cast("int"))
    return joined.where(F.when(F.col("key").isNull(), missing).otherwise(bit) == 0)


def _keys(files: Sequence[str]) -> tuple[pa.Array, Callable[[Column], Column]]:
    """A key for each file, and the key of a row by its file: checksums unless two files share one, since Spark looks up
    a number for every row in a tenth of the time that a path takes."""
    sums = [crc32(f.encode()) for f in files]
    if len(set(sums)) < len(sums):
        return pa.array(files), lambda path: path
    return pa.array(sums, pa.int64()), lambda path: F.crc32(path.cast("binary"))


def _words(units: pa.Table, deletes: pa.Table) -> tuple[list[str], pa.Array]:
    """The files, and the deleted positions of each as 64-bit words up to the last one deleted."""
    kept = deletes_of(units, deletes)
    inline = dict(zip(kept.column("delete").to_pylist(), kept.column("inline").to_pylist(), strict=True))
    files, words = [], []
    for uri, ids in zip(units.column("path").to_pylist(), units.column("deletes").to_pylist(), strict=True):
        found = (data for i in ids if (data := inline[i]) is not None)
        bitmap = reduce(Bitmap.__or__, (deserialize64(data, where=uri) for data in found))
        last = int(bitmap.positions()[-1]) if len(bitmap) else 0
        files.append(file_key(uri))
        words.append(bitmap.words(0, last + 1))
    offsets = np.concatenate(([0], np.cumsum([len(w) for w in words]))).astype(np.int32)
    return files, pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(words)))

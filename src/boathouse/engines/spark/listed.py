"""Rows of files that Spark lists: constants of files come from a map by `_metadata.file_path`, whose conditions Spark
folds when it plans, so that those that come later choose files too. Classic and Connect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from boathouse.engines.spark.constants import (
    carried,
    carrier,
    input_file,
    lookup,
    partition_values,
    restored,
    table_of,
)
from boathouse.engines.spark.groups import Group, Rows
from boathouse.engines.spark.read_schema import Shape
from boathouse.engines.spark.reader import literal, read_parquet
from boathouse.engines.spark.selection import Expression
from boathouse.errors import CorruptTableError
from boathouse.storage.hadoop import hadoop_uri
from boathouse.table.metadata_columns import UNIT
from boathouse.table.tasks import ReadColumn, ReadSpec, missing_data_file

CHECKED_FILES = 1000
"""Up to this number of files, Spark's list of a frame's input files is compared with the plan's."""
_PATH, _FILE = "__path", "__file"


class Listed:
    """A source of rows for `native_frame`: frames over lists of files."""

    def __init__(self, spark: SparkSession, read: ReadSpec) -> None:
        self._spark = spark
        self._read = read

    def rows(self, group: Group, stored: Sequence[ReadColumn], shape: Shape, skips: bool) -> Rows:
        """The rows of one group."""
        uris = group.units.column("path").to_pylist()
        frame = self._frame(uris, shape, skips)
        _check_inputs(frame, uris)
        file_path = frame.metadataColumn("_metadata")["file_path"]
        staged: list[tuple[str, Expression]] = []
        constants = {c.name: (f"c{i}", c) for i, c in enumerate(self._read.columns) if c.name in group.constants}
        with_unit = UNIT in self._read.hidden
        if constants or with_unit:
            columns = [(n, c, group.constants[c.name]) for n, c in constants.values()]
            staged.append((_FILE, _constants(group.units, columns, with_unit, file_path)))
        keys = key = None
        if group.deleted:
            staged.append((_PATH, file_path))
            keys, key_of = _keys([hadoop_uri(u) for u in uris])
            key = key_of(F.col(_PATH))
        values = {name: restored(F.col(f"{_FILE}.{n}"), c.type, c.name) for name, (n, c) in constants.items()}
        unit = F.col(f"{_FILE}.u") if with_unit else None
        return Rows(frame, tuple(staged), values, unit, key, keys)

    def _frame(self, uris: Sequence[str], shape: Shape, skips: bool) -> DataFrame:
        """The files' rows, unchanged. Raises MissingFileError for the first missing file."""
        try:
            return read_parquet(self._spark, uris, S.StructType(list(shape.fields)), skips)
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            path = (error.getMessageParameters() or {}).get("path", "")
            gone = next((u for u in uris if path in (input_file(u), u, literal(u))), path)
            raise missing_data_file(self._read.version, gone) from error


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


def _constants(
    units: pa.Table, constants: Sequence[tuple[str, ReadColumn, int]], with_unit: bool, file_path: Column
) -> Column:
    keys = [hadoop_uri(u) for u in units.column("path").to_pylist()]
    columns: list[tuple[str, list[Any]]] = []
    ddl: dict[str, str] = {}
    if with_unit:
        columns.append(("u", units.column("unit").to_pylist()))
        ddl["u"] = "bigint"
    for name, c, field in constants:
        columns.append((name, carried(partition_values(units, field), c.type)))
        ddl[name] = str(carrier(c.type))
    return lookup(table_of(columns, keys), ddl, file_path)


def _keys(files: Sequence[str]) -> tuple[pa.Array, Callable[[Column], Column]]:
    """A key for each file, and the key of a row by its file: checksums unless two files share one, since Spark looks up
    a number for every row in a tenth of the time that a path takes."""
    sums = [crc32(f.encode()) for f in files]
    if len(set(sums)) < len(sums):
        return pa.array(files), lambda path: path
    return pa.array(sums, pa.int64()), lambda path: F.crc32(path.cast("binary"))

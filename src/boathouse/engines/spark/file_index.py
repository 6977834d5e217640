"""What Spark's planner asks for the files of each query: a FileIndex, written in Python."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.engines.spark.catalyst import FILE_INDEX, Catalyst, Numbers
from boathouse.engines.spark.constants import input_file
from boathouse.engines.spark.file_lists import FileList
from boathouse.engines.spark.later import Values, implied
from boathouse.engines.spark.statuses import chunks
from boathouse.errors import BoathouseError
from boathouse.expr.tree import Expr, all_of
from boathouse.storage.uris import split
from boathouse.table.tasks import missing_data_file

CHECKED_FILES: Final = 100_000
"""Up to this number of local files, their presence, size and time are looked up before Spark gets them."""


class FileIndex:
    """The files of one relation; its methods are called by Spark, also from several threads.

    Filters on partition columns are applied by Spark's own evaluation and to the last row, as Spark does not apply them
    again; those on other columns prune files as far as they can be read.
    """

    class Java:
        implements = [FILE_INDEX]

    def __init__(
        self, catalyst: Catalyst, files: FileList, partition: Any, columns: Mapping[str, Expr], version: str
    ) -> None:
        """`partition` is the schema of the files' values; `columns` are the table's by the names in the files;
        `version` is in words."""
        self._catalyst = catalyst
        self._files = files
        self._partition = partition
        self._columns = columns
        self._version = version

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        try:
            return self._listed(partition_filters, data_filters)
        except BoathouseError as error:
            return self._catalyst.failing(f"boathouse.errors.{type(error).__name__}: {error}")
        except Exception as error:
            return self._catalyst.failing(f"{type(error).__name__}: {error}", error)

    def _listed(self, partition_filters: Any, data_filters: Any) -> Any:
        conditions = [*self._conditions(partition_filters), *self._conditions(data_filters)]
        accepted = partial(self._catalyst.accepted, partition_filters, self._partition)
        found = self._files.matching(
            all_of(conditions) if conditions else None, accepted if partition_filters.size() else None
        )
        found = found.chosen(np.argsort(found.numbers, kind="stable"))
        sizes, times = _looked_up(self._version, found.spelled, found.sizes)
        numbers, counts = np.unique(found.numbers, return_counts=True)
        statuses = self._catalyst.statuses(list(chunks(found.spelled, sizes, times)))
        return self._catalyst.directories(found.rows, numbers, np.cumsum(counts), statuses)

    def _conditions(self, filters: Any) -> list[Expr]:
        found = (implied(nodes, self._columns, _values(e)) for e, nodes in self._catalyst.trees(filters))
        return [condition for condition in found if condition is not None]

    def rootPaths(self) -> Any:
        """What `explain()` shows as the location: the version, then the table's folder."""
        words, _, uri = self._version.partition(" of the table at ")
        said = f"{words}, {self._files.words}, asked for by each query"
        return self._catalyst.paths([said, *filter(None, [uri])])

    def partitionSchema(self) -> Any:
        return self._partition

    def inputFiles(self) -> Any:
        return self._catalyst.strings([input_file(p) for p in self._files.all().to_pylist()])

    def refresh(self) -> None:
        """The files are those of one version."""

    def sizeInBytes(self) -> int:
        return self._files.bytes

    def metadataOpsTimeNs(self) -> Any:
        return self._catalyst.nothing()

    def toString(self) -> str:
        return f"boathouse {self._version} {self._files.identity}"

    def hashCode(self) -> int:
        return zlib.crc32(self.toString().encode()) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """By what is read, so that Spark finds the cached rows of another frame of the same files."""
        return other is not None and bool(other.toString() == self.toString())


def _values(expression: Any) -> Values:
    def plain(number: int, text: str) -> int | None:
        node = expression.apply(number)
        value = node.value() if node.nodeName() == "Literal" else None
        return value if isinstance(value, int) and text in (node.toString(), str(value)) else None

    def members(number: int) -> Sequence[str] | None:
        found = expression.apply(number).hset()
        if found.contains(None):
            return None
        strings = str(found.mkString("\0")).split("\0")
        return strings if len(strings) == found.size() else None

    return Values(plain, members)


def _looked_up(version: str, spelled: pa.Array, sizes: Numbers) -> tuple[Numbers, Numbers]:
    """The sizes of files and their times in milliseconds; of local ones as they are now, of others as the metadata
    tells, and without times. Raises MissingFileError for a local file that is gone."""
    times = np.zeros(len(spelled), np.int64)
    local = pc.starts_with(spelled, "file:")
    if len(spelled) > CHECKED_FILES or not pc.all(local).as_py():
        return sizes, times
    found = np.empty(len(spelled), np.int64)
    for i, uri in enumerate(spelled.to_pylist()):
        try:
            state = os.stat("/" + split(uri)[2])
        except FileNotFoundError as error:
            raise missing_data_file(version, uri) from error
        found[i], times[i] = state.st_size, state.st_mtime_ns // 1_000_000
    return found, times

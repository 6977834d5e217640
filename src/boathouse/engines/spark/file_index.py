"""What Spark's planner asks for the files of each query: a FileIndex, written in Python."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.engines.spark.catalyst import FILE_INDEX, Catalyst, Numbers
from boathouse.engines.spark.constants import input_file
from boathouse.engines.spark.later import Values, implied
from boathouse.engines.spark.statuses import chunks
from boathouse.errors import BoathouseError
from boathouse.expr.tree import Expr, all_of
from boathouse.storage.uris import split
from boathouse.table.tasks import missing_data_file

CHECKED_FILES: Final = 100_000
"""Up to this number of local files, their presence, size and time are looked up before Spark gets them."""
_REMEMBERED: Final = 16


@dataclass(frozen=True, slots=True, eq=False)
class Pruning:
    """Paths of the units that may match a later condition; the last few answers are kept."""

    ask: Callable[[Expr], pa.ChunkedArray]
    _known: dict[str, pa.Array] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def paths(self, where: Expr) -> pa.Array | None:
        """None where the metadata cannot tell: then nothing is pruned."""
        text = str(where)
        with self._lock:
            if text in self._known:
                return self._known[text]
        try:
            found = self.ask(where).combine_chunks()
        except BoathouseError:  # its metadata may be gone by now, while the files that were planned are not
            return None
        with self._lock:
            self._known[text] = found
            while len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """Files that are read alike: `paths` as the table spells them and `spelled` as Spark does, `sizes` in bytes, and
    `tuples`, for each the number of its values of partition columns."""

    paths: pa.Array
    spelled: pa.Array
    sizes: Numbers
    tuples: Numbers

    @property
    def digest(self) -> str:
        """Equal for the same files with the same numbers of values."""
        found = sha256(self.sizes.tobytes())
        found.update(self.tuples.tobytes())
        # Serialized, since arrays that are slices of one have the same buffers.
        found.update(pa.record_batch([self.spelled], names=["path"]).serialize())
        return found.hexdigest()


class FileIndex:
    """The files of one relation; its methods are called by Spark, also from several threads.

    Filters on partition columns are applied by Spark's own evaluation and to the last row, as Spark does not apply them
    again; those on other columns prune files as far as they can be read.
    """

    class Java:
        implements = [FILE_INDEX]

    def __init__(
        self,
        catalyst: Catalyst,
        files: Files,
        partition: Any,
        rows: Any,
        columns: Mapping[str, Expr],
        pruning: Pruning | None,
        version: str,
        values: str,
    ) -> None:
        """`partition` is the schema of `rows`, an InternalRow[] of the values; `columns` are the table's by the names
        in the files; `version` is in words; `values` tells the values of `rows` apart."""
        self._catalyst = catalyst
        self._files = files
        self._partition = partition
        self._rows = rows
        self._columns = columns
        self._pruning = pruning
        self._version = version
        self._identity = f"boathouse {self._version} {files.digest} {values}"

    def listFiles(self, partition_filters: Any, data_filters: Any) -> Any:
        try:
            return self._listed(partition_filters, data_filters)
        except BoathouseError as error:
            return self._catalyst.failing(f"boathouse.errors.{type(error).__name__}: {error}")
        except Exception as error:
            return self._catalyst.failing(f"{type(error).__name__}: {error}", error)

    def _listed(self, partition_filters: Any, data_filters: Any) -> Any:
        kept = self._kept(partition_filters, data_filters)
        files = self._files
        order = kept[np.argsort(files.tuples[kept], kind="stable")]
        spelled = files.spelled.take(pa.array(order))
        sizes, times = _looked_up(self._version, spelled, files.sizes[order])
        numbers, counts = np.unique(files.tuples[order], return_counts=True)
        statuses = self._catalyst.statuses(list(chunks(spelled, sizes, times)))
        return self._catalyst.directories(self._rows, numbers, np.cumsum(counts), statuses)

    def _kept(self, partition_filters: Any, data_filters: Any) -> Numbers:
        files = self._files
        kept = np.ones(len(files.paths), np.bool_)
        conditions = [*self._conditions(partition_filters), *self._conditions(data_filters)]
        if conditions and self._pruning is not None:
            found = self._pruning.paths(all_of(conditions))
            if found is not None:
                kept &= pc.is_in(files.paths, value_set=found).to_numpy(zero_copy_only=False)
        if partition_filters.size():
            accepted = self._catalyst.accepted(partition_filters, self._partition, self._rows)
            kept &= accepted[files.tuples]
        return np.flatnonzero(kept)

    def _conditions(self, filters: Any) -> list[Expr]:
        if self._pruning is None:
            return []
        found = (implied(nodes, self._columns, _values(e)) for e, nodes in self._catalyst.trees(filters))
        return [condition for condition in found if condition is not None]

    def rootPaths(self) -> Any:
        """What `explain()` shows as the location: the version, then the table's folder."""
        words, _, uri = self._version.partition(" of the table at ")
        said = f"{words}, {len(self._files.paths):,} files, asked for by each query"
        return self._catalyst.paths([said, *filter(None, [uri])])

    def partitionSchema(self) -> Any:
        return self._partition

    def inputFiles(self) -> Any:
        return self._catalyst.strings([input_file(p) for p in self._files.spelled.to_pylist()])

    def refresh(self) -> None:
        """The files are those of one version."""

    def sizeInBytes(self) -> int:
        return int(self._files.sizes.sum())

    def metadataOpsTimeNs(self) -> Any:
        return self._catalyst.nothing()

    def toString(self) -> str:
        return self._identity

    def hashCode(self) -> int:
        return zlib.crc32(self._identity.encode()) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        """By what is read, so that Spark finds the cached rows of another frame of the same files."""
        return other is not None and bool(other.toString() == self._identity)


def _values(expression: Any) -> Values:
    def plain(number: int, text: str) -> int | None:
        node = expression.apply(number)
        return node.value() if node.nodeName() == "Literal" and node.toString() == text else None

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

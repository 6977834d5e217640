"""What writers of data files in rows share: rows that wait for others, what a finished file is, what an unfinished one
leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import OutputFiles


@dataclass(frozen=True, slots=True)
class Written:
    """A finished file: `size` in bytes, where readers may begin, and the bytes of columns by field id, if they are
    known."""

    size: int
    rows: int
    offsets: list[int] | None = None
    sizes: Mapping[int, int] = field(default_factory=dict)


class Gathered:
    """Rows that wait until so many bytes (of Arrow memory) of them are together."""

    def __init__(self, schema: pa.Schema, limit: int) -> None:
        self.bytes = 0
        self._schema, self._limit = schema, limit
        self._waiting: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Takes rows; gives those that are enough."""
        step = batch.num_rows
        if batch.nbytes > self._limit:
            step = max(1, batch.num_rows * self._limit // batch.nbytes)
        for start in range(0, batch.num_rows, max(step, 1)):
            part = batch.slice(start, step)
            self._waiting.append(part)
            self.bytes += part.nbytes
            if self.bytes >= self._limit:
                yield self.rest()

    def rest(self) -> pa.Table:
        """All rows that wait."""
        found = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting, self.bytes = [], 0
        return found


def discarded(sink: pa.NativeFile | None, files: OutputFiles, uri: str) -> None:
    """Closes and removes a file that is not whole; never raises."""
    if sink is None:
        return
    with suppress(Exception):
        sink.close()
    with suppress(Exception):
        files.delete(uri)

"""How much a version of a table holds: files, bytes and rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

SMALL_FILE: Final = 16 << 20
"""Files below this many bytes are counted as small."""

FileCounts = tuple[int | None, int | None, int | None]
"""Bytes, rows and deleted rows of one file, as in FILES: None is unknown."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Counts over all files. `rows` are those that remain; it and `deleted` are None if some file does not record
    them. A file of unknown size has no bytes here, and is not small."""

    files: int
    bytes: int
    rows: int | None
    deleted: int | None
    small_files: int

    @classmethod
    def of(cls, counts: Iterable[FileCounts], small: int) -> Sizes:
        """The sums over files; those below `small` bytes are small."""
        files = bytes_ = there = gone = below = 0
        known = True
        for size, rows, deleted in counts:
            files += 1
            bytes_ += size or 0
            below += size is not None and size < small
            known = known and rows is not None and deleted is not None
            there += rows or 0
            gone += deleted or 0
        return cls(files, bytes_, there - gone if known else None, gone if known else None, below)


def counts_of(batches: Iterable[pa.RecordBatch]) -> Iterator[FileCounts]:
    """The counts of FILES, for a format that has them in no other form."""
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in ("size", "rows", "deleted")))

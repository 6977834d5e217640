"""Finds a data file that a snapshot has twice, among millions in a fraction of a second."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.unaligned import window
from boathouse.errors import CorruptTableError

_WORDS: Final = (8, 32)
"""How many words of eight bytes are compared: the ends of nearly all names differ, and few are longer than that."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(29)


def check_once(paths: pa.ChunkedArray, table: str) -> None:
    """Raises CorruptTableError if two of the paths are the same: what the rows of such a file are is undefined."""
    again = repeated(paths)
    if again is not None:
        raise CorruptTableError(
            "a data file is live twice in one snapshot",
            where=again,
            advice=f"if its rows shall be read twice, as some engines do, open {table} with verify=False",
        )


def repeated(paths: pa.ChunkedArray) -> str | None:
    """The first value that is there more than once. Only those whose ends are alike are compared as a whole."""
    if len(paths) < 2:
        return None
    if pc.min(pc.binary_length(paths)).as_py() < 8:
        return _first(paths)
    for words in _WORDS:
        ends = np.concatenate([_ends(chunk, words) for chunk in paths.chunks if len(chunk)])
        order = np.sort(ends)
        alike = order[1:][order[1:] == order[:-1]]
        if not len(alike):
            return None
        paths = paths.filter(pa.array(np.isin(ends, alike)))
    return _first(paths)


def _first(paths: pa.ChunkedArray) -> str | None:
    seen: set[str] = set()
    for path in paths.to_pylist():
        if path in seen:
            return str(path)
        seen.add(path)
    return None


def _ends(paths: pa.StringArray, count: int) -> npt.NDArray[np.uint64]:
    """A number for each path, made of its length and its last words; all paths have one at least."""
    _, offsets, data = paths.buffers()
    ends: npt.NDArray[Any] = np.frombuffer(offsets, np.int32, len(paths) + 1, paths.offset * 4)
    text = np.frombuffer(data, np.uint8)
    words = window(text, np.uint64)
    found = (ends[1:] - ends[:-1]).astype(np.uint64)
    for i in range(1, count + 1):
        found = (found ^ words[np.maximum(ends[1:] - 8 * i, ends[:-1])]) * _FACTOR
        found ^= found >> _SHIFT
    return found

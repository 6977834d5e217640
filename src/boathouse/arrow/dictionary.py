"""Decodes dictionary arrays to one value per row."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.memory import read_pool


def spread(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary array row by row, in the read pool. Raises ArrowIndexError for an out-of-range
    index."""
    return pc.take(array.dictionary, array.indices, memory_pool=read_pool())


def pieces(array: pa.DictionaryArray, rows: int) -> Iterator[pa.Array]:
    """The result of `spread`, in arrays of at most `rows` rows: a long string in the dictionary may occur in each."""
    for at in range(0, max(len(array), 1), rows):
        yield spread(array.slice(at, rows))

"""Dictionaries spread out to a value a row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.memory import read_pool

_LAST_OFFSET = (1 << 31) - 1
_NUMBERS = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32(), 8: pa.uint64()}


def spread(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary array row by row, in the read pool. Raises ArrowIndexError for a wild index."""
    found = _of_one_width(array)
    return pc.cast(array, array.type.value_type, memory_pool=read_pool()) if found is None else found


def _of_one_width(array: pa.DictionaryArray) -> pa.Array | None:
    """Texts that are all equally long, as flags and codes are: they are taken as numbers, three times as fast."""
    values, indices = array.dictionary, array.indices
    if values.type not in (pa.string(), pa.binary()) or not len(values) or indices.null_count or values.null_count:
        return None
    _, offsets, data = values.buffers()
    ends = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset)
    width = int(ends[1] - ends[0])
    if width not in _NUMBERS or (np.diff(ends) != width).any() or (len(array) + 1) * width > _LAST_OFFSET:
        return None
    numbers = pa.Array.from_buffers(_NUMBERS[width], len(values), [None, data.slice(int(ends[0]))])
    taken = pc.take(numbers, indices, memory_pool=read_pool())
    starts = np.arange(0, (len(array) + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(values.type, len(array), [None, pa.py_buffer(starts), taken.buffers()[1]])

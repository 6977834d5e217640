"""Checks that the strings of an array are UTF-8: Arrow does not validate what it reads from a file, and then fails in
Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.errors import CorruptTableError

_HIGH = 0x8080808080808080
_OFFSETS: dict[pa.DataType, Any] = {pa.string(): np.int32, pa.large_string(): np.int64}


def require_utf8(array: pa.Array | pa.ChunkedArray, where: str, what: str = "a column") -> None:
    """Raises CorruptTableError for a string at any depth that is not UTF-8; plain ASCII costs one pass over the
    bytes."""
    if isinstance(array, pa.ChunkedArray):
        for chunk in array.chunks:
            require_utf8(chunk, where, what)
        return
    if has_text(array.type) and not _sound(array):
        raise CorruptTableError(f"{what} contains a string that is not UTF-8", where=where)


def has_text(type: pa.DataType) -> bool:
    """Whether values of the type contain strings."""
    if pa.types.is_dictionary(type):
        return has_text(type.value_type)
    if isinstance(type, pa.BaseExtensionType):
        return has_text(type.storage_type)
    if type in _OFFSETS or pa.types.is_string_view(type):
        return True
    return any(has_text(type.field(i).type) for i in range(type.num_fields))


def _sound(array: Any) -> bool:
    type = array.type
    if isinstance(type, pa.BaseExtensionType):
        return _sound(array.storage)
    if pa.types.is_dictionary(type):
        return _sound(array.dictionary)
    if type in _OFFSETS:
        return _ascii(array, _OFFSETS[type]) or _valid(array)
    if pa.types.is_struct(type):
        return all(_sound(array.field(i)) for i in range(type.num_fields) if has_text(type.field(i).type))
    if pa.types.is_map(type):
        return all(_sound(part) for part in (array.keys, array.items) if has_text(part.type))
    if pa.types.is_list(type) or pa.types.is_large_list(type) or pa.types.is_fixed_size_list(type):
        return _sound(array.values)
    return _valid(array)


def _ascii(array: Any, offset: Any) -> bool:
    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return True
    ends = np.frombuffer(offsets, offset, len(array) + 1, array.offset * np.dtype(offset).itemsize)
    first, last = int(ends[0]), int(ends[-1])
    text = np.frombuffer(data, np.uint8)[first:last]
    words = text[: len(text) // 8 * 8].view(np.uint64)
    return not (int(np.bitwise_or.reduce(words)) & _HIGH or int(np.bitwise_or.reduce(text[len(words) * 8 :])) & 0x80)


def _valid(array: Any) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True

"""A checksum of rows that does not depend on their order: equal multisets of rows have equal ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Words = npt.NDArray[np.uint64]

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX: Final = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_NULL: Final = np.uint64(0x6A09E667F3BCC909)
_MASK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Checksum:
    """The number of rows, and the sum and exclusive or of the rows' 64-bit hashes."""

    rows: int = 0
    total: int = 0
    mixed: int = 0

    def plus(self, batch: pa.RecordBatch) -> Checksum:
        """With the rows of a batch, whose columns have the same order and types in every one."""
        hashes = np.zeros(batch.num_rows, np.uint64)
        for column in batch.columns:
            hashes = _scrambled(hashes * _MIX[0] + _STEP + _hashes(column))
        total = self.total + int(hashes.sum(dtype=np.uint64))
        mixed = self.mixed ^ int(np.bitwise_xor.reduce(hashes)) if len(hashes) else self.mixed
        return Checksum(self.rows + batch.num_rows, total & _MASK, mixed)

    @staticmethod
    def of(batches: Iterable[pa.RecordBatch]) -> Checksum:
        found = Checksum()
        for batch in batches:
            found = found.plus(batch)
        return found

    @property
    def text(self) -> str:
        """32 hexadecimal digits."""
        return f"{self.total:016x}{self.mixed:016x}"


def _scrambled(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * _MIX[0]
    words = (words ^ (words >> np.uint64(27))) * _MIX[1]
    return words ^ (words >> np.uint64(31))


def _hashes(array: pa.Array) -> Words:
    """The hash of each value. Zeros of both signs are equal, and so are all NaN."""
    type = array.type
    if (
        pa.types.is_integer(type)
        or pa.types.is_floating(type)
        or pa.types.is_boolean(type)
        or pa.types.is_temporal(type)
    ):
        words = _words(array)
    else:
        # Strings, binaries, decimals and nested values: each distinct one once.
        coded = _encoded(array)
        distinct = np.array([_digest(v) for v in coded.dictionary.to_pylist()] or [0], np.uint64)
        words = distinct[coded.indices.fill_null(0).to_numpy(zero_copy_only=False)]
    found = _scrambled(words + _STEP)
    return np.where(array.is_valid().to_numpy(zero_copy_only=False), found, _NULL) if array.null_count else found


def _words(array: pa.Array) -> Words:
    type = array.type
    if pa.types.is_floating(type):
        values = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    if pa.types.is_boolean(type):
        array = array.cast(pa.uint8())
    elif pa.types.is_temporal(type):
        array = array.view(pa.int32() if type.bit_width == 32 else pa.int64())
    return array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False).view(np.uint64)


def _encoded(array: pa.Array) -> pa.DictionaryArray:
    if pa.types.is_nested(array.type):
        strings = [None if v is None else repr(_sorted(v)) for v in array.to_pylist()]
        array = pa.array(strings, pa.string())
    return array.dictionary_encode()


def _sorted(value: object) -> object:
    """Nested values in one spelling: NaN and zeros print alike."""
    if isinstance(value, dict):
        return {k: _sorted(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_sorted(v) for v in value]
    return value + 0.0 if isinstance(value, float) else value


def _digest(value: object) -> int:
    data = value if isinstance(value, bytes) else str(value).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")

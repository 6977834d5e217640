"""Builds the metadata of columns: one dictionary for all rows, or one for each.

(VariantEncoding.md, "Metadata encoding")
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from boathouse.bits.unaligned import Ints, Mask, put
from boathouse.variant.columns.assemble import widths
from boathouse.variant.columns.byte_columns import Ragged, loose, rope, splits_of
from boathouse.variant.primitives import metadata_header

_INT32_MAX = (1 << 31) - 1


def dictionary(names: Iterable[bytes]) -> tuple[bytes, dict[bytes, int]]:
    """One dictionary of all `names` (UTF-8; any order, repetition allowed): its bytes, and the id of each name."""
    ranked = sorted(set(names))
    raw = dictionary_rows(np.array([0, len(ranked)]), Ragged.of(ranked))[0]
    return raw, {name: i for i, name in enumerate(ranked)}


def dictionary_rows(splits: Ints, names: Ragged) -> Ragged:
    """Row i is the dictionary of the names [splits[i], splits[i + 1]), which must be sorted and unique."""
    counts = np.diff(splits)
    ends = splits_of(names.sizes)
    body = ends[splits]
    width = widths(np.maximum(counts, np.diff(body)))
    starts = splits_of(1 + (counts + 2) * width)
    data = np.empty(int(starts[-1]), np.uint8)
    first, each = starts[:-1], np.repeat(width, counts)
    data[first] = metadata_header(True, width)
    put(data, first + 1, counts, width)
    slot = np.arange(splits[0], splits[-1]) - np.repeat(splits[:-1], counts)
    inside = slice(int(splits[0]), int(splits[-1]))
    put(
        data, np.repeat(first + 1 + width, counts) + slot * each, ends[:-1][inside] - np.repeat(body[:-1], counts), each
    )
    put(data, first + 1 + (counts + 1) * width, np.diff(body), width)
    return rope(loose(Ragged(starts, data)), loose(names.group(splits))).join()


@dataclass(frozen=True, eq=False)
class RowDictionaries:
    """One dictionary for each row, of the names that the row uses."""

    metadata: Ragged
    _keys: Ints  # row * names + name, sorted
    _splits: Ints
    _names: int

    def ids(self, rows: Ints, names: Ints) -> Ints:
        """The ids that `names` (ranks among all names) have in the dictionaries of `rows`."""
        return np.searchsorted(self._keys, rows * self._names + names) - self._splits[rows]


def row_dictionaries(rows: int, row: Ints, name: Ints, names: Ragged) -> RowDictionaries:
    """Dictionaries of `rows` rows from pairs (row, rank of a name used there), in any order, repeats allowed.

    `names` are all names, sorted by their bytes and unique: the rank is the position there.
    """
    count = max(names.rows, 1)
    keys = np.unique(row * count + name)
    splits = np.searchsorted(keys, np.arange(rows + 1) * count)
    used = names.take(keys % count) if names.rows else names
    return RowDictionaries(dictionary_rows(splits, used), keys, splits, count)


def variant_array(metadata: bytes | Ragged, values: Ragged, valid: Mask | None = None) -> pa.StructArray:
    """The column `struct<metadata: binary, value: binary>` (large_binary beyond 2 GiB); rows outside `valid` are null.

    `metadata` is the dictionary of all rows, or one for each.
    """
    if isinstance(metadata, bytes):
        metadata = _repeated(metadata, values.rows)
    children = [binary(metadata), binary(values)]
    fields = [pa.field(name, child.type, False) for name, child in zip(("metadata", "value"), children, strict=True)]
    mask = None if valid is None or valid.all() else pa.array(~valid)
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _repeated(metadata: bytes, rows: int) -> Ragged:
    offsets = np.arange(0, rows * len(metadata) + 1, len(metadata), dtype=np.int64)
    return Ragged(offsets, np.tile(np.frombuffer(metadata, np.uint8), rows))


def binary(bytes: Ragged) -> pa.Array:
    """The rows as a binary array; large_binary beyond 2 GiB."""
    first, last = (int(bytes.offsets[0]), int(bytes.offsets[-1])) if bytes.rows else (0, 0)
    if last - first > _INT32_MAX:
        return bytes.to_arrow()
    offsets = (bytes.offsets - first).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(bytes.data[first:last])]
    return pa.Array.from_buffers(pa.binary(), bytes.rows, buffers)

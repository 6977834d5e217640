"""The column `readable_metrics`: the metric maps turned around, by column instead of by file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.longs import longs
from boathouse.bits.unaligned import gather
from boathouse.iceberg.inspect.columns import MAPS, Leaf, leaf_type
from boathouse.iceberg.manifests.values import bounds_array, number_array, number_kind
from boathouse.types import DataType

Rows = npt.NDArray[np.int64]


def readable(arrays: Mapping[str, pa.Array], leaves: Sequence[Leaf], rows: int) -> pa.Array:
    """One struct of metrics for each column, from the metric maps of these files. A bound that is no value of the
    column's type is null."""
    if not leaves:
        return pa.array([{}] * rows, pa.struct([]))
    by_column = {name: _ByColumn(arrays[name]) for name in MAPS}
    nothing = _Nothing(rows)
    found = [_of_leaf(by_column, leaf, nothing) for leaf in leaves]
    return pa.StructArray.from_arrays(found, fields=[pa.field(f.name, a.type) for f, a in zip(leaves, found)])


class _Nothing:
    """Arrays of nulls, one for each type: most columns have no NaN counts, and many no bounds."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._made: dict[pa.DataType, pa.Array] = {}

    def of(self, type: pa.DataType) -> pa.Array:
        if type not in self._made:
            self._made[type] = pa.nulls(self._rows, type)
        return self._made[type]


def _of_leaf(metrics: Mapping[str, _ByColumn], leaf: Leaf, nothing: _Nothing) -> pa.Array:
    type = leaf_type(leaf)
    values = []
    for (name, found), field in zip(metrics.items(), type):
        array = found.bounds(leaf.id, leaf.type) if name.endswith("_bounds") else found.values(leaf.id)
        values.append(nothing.of(field.type) if array is None else array)
    return pa.StructArray.from_arrays(values, fields=list(type))


@dataclass(frozen=True)
class _ByColumn:
    """Finds the values of one key in all rows of a map."""

    map: pa.MapArray

    @cached_property
    def _offsets(self) -> Rows:
        return self.map.offsets.to_numpy().astype(np.int64)

    @cached_property
    def _keys(self) -> npt.NDArray[np.int32]:
        keys: npt.NDArray[np.int32] = self.map.keys.to_numpy()
        return keys

    @cached_property
    def _width(self) -> int:
        """The number of keys, if every row has the same ones in the same order; else 0."""
        offsets, keys = self._offsets, self._keys
        width = int(offsets[1] - offsets[0]) if len(offsets) > 1 else 0
        if not width or len(keys) != width * len(self.map) or (np.diff(offsets) != width).any():
            return 0
        same = (keys.reshape(-1, width) == keys[:width]).all()
        return width if same and len(set(keys[:width].tolist())) == width else 0

    @cached_property
    def _sorted(self) -> tuple[Rows, npt.NDArray[np.int32]]:
        """The pairs in the order of their keys, and the keys in this order."""
        order = np.argsort(self._keys, kind="stable")
        return order, self._keys[order]

    def values(self, key: int) -> pa.Array | None:
        """The value of each row; null where the map or the key is absent, None if that is so in every row."""
        n = len(self.map)
        if self._width:
            at = np.flatnonzero(self._keys[: self._width] == key)
            if not len(at):
                return None
            return self.map.items.take(longs(np.arange(int(at[0]), n * self._width, self._width)))
        order, keys = self._sorted
        low, high = np.searchsorted(keys, key), np.searchsorted(keys, key, "right")
        pairs = order[low:high]
        if not len(pairs):
            return None
        places = np.full(n, -1, np.int64)
        places[np.searchsorted(self._offsets, pairs, "right") - 1] = pairs
        return self.map.items.take(longs(np.maximum(places, 0), places >= 0))

    def bounds(self, key: int, type: DataType) -> pa.Array | None:
        """The values as bounds of a column of this type."""
        kind = number_kind(type)
        numbers = None if kind is None else self._fixed(key, np.dtype(kind))
        if numbers is not None:
            return number_array(numbers, np.ones(len(numbers), np.bool_), type)
        found = self.values(key)
        return None if found is None else bounds_array(found, type)

    def _fixed(self, key: int, kind: np.dtype[Any]) -> npt.NDArray[Any] | None:
        """The values of all rows, taken from the bytes of the map; None if they are not all numbers of this kind."""
        at = np.flatnonzero(self._keys[: self._width] == key)
        items = self.map.items
        if not len(at) or items.null_count:
            return None
        first, n = int(at[0]), len(self.map)
        _, offsets, data = items.buffers()
        places = np.frombuffer(offsets, np.int32)[items.offset : items.offset + len(items) + 1]
        begin, end = places[first :: self._width][:n], places[first + 1 :: self._width]
        if (end - begin != kind.itemsize).any():
            return None
        return gather(np.frombuffer(data, np.uint8), begin.astype(np.int64), kind)

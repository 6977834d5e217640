"""The files of new indices, as pylance 14 lays them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.lance.indices.lookup import KEYS, PAGE_DATA, PAGES, ZONES
from boathouse.lance.indices.ordering import changes_in, order_of
from boathouse.lance.indices.row_sets import encode_rows

Ints = npt.NDArray[np.int64]
PAGE_ROWS: Final = 4096
ZONE_ROWS: Final = 8192


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file: its rows, the metadata of whose schema is the file's, and global buffers after the schema's."""

    rows: pa.Table
    buffers: tuple[bytes, ...] = ()


Content = Mapping[str, IndexFile]


def btree(values: pa.Array, ids: Ints) -> Content:
    """Pages of ordered values with their rows, and a list of these with the first and last value of each."""
    order = order_of(values)
    return btree_of(values.take(pa.array(order)), ids[order])


def btree_of(ordered: pa.Array, ids: Ints) -> Content:
    """Of values in their order."""
    kind = ordered.type
    data = pa.table([ordered, pa.array(ids, pa.uint64())], pa.schema([pa.field("values", kind), _required("ids")]))
    starts = np.arange(0, len(ordered), PAGE_ROWS)
    ends = np.minimum(starts + PAGE_ROWS, len(ordered))
    nulls = np.concatenate(([0], np.cumsum(ordered.is_null().to_numpy(zero_copy_only=False))))
    schema = pa.schema(
        [
            pa.field("min", kind),
            pa.field("max", kind),
            _required("null_count", 32),
            _required("page_idx", 32),
        ],
        {"batch_size": str(PAGE_ROWS), "range_partitioned": "false"},
    )
    lookup = [
        ordered.take(pa.array(starts)),
        ordered.take(pa.array(ends - 1)),
        pa.array(nulls[ends] - nulls[starts], pa.uint32()),
        pa.array(np.arange(len(starts)), pa.uint32()),
    ]
    return {PAGE_DATA: IndexFile(data), PAGES: IndexFile(pa.table(lookup, schema))}


def bitmap(values: pa.Array, ids: Ints) -> Content:
    """Each value, and the set of rows that have it."""
    order = order_of(values)
    ordered = values.take(pa.array(order))
    begins = changes_in(ordered)
    sets = [encode_rows(part) for part in np.split(ids[order], begins[1:])] if len(begins) else []
    return bitmap_of(ordered.take(pa.array(begins)), sets)


def bitmap_of(keys: pa.Array, sets: Sequence[bytes]) -> Content:
    """Of values in their order, each once, with their rows."""
    stats = {"lance:index_stats": f'{{"num_bitmaps":{len(sets)}}}'}
    schema = pa.schema([pa.field("keys", keys.type), pa.field("bitmaps", pa.binary())], stats)
    return {KEYS: IndexFile(pa.table([keys, pa.array(sets, pa.binary())], schema))}


def zone_map(values: pa.Array, units: Ints, positions: Ints, zone_rows: int) -> Content:
    """Bounds of stretches of a fragment's rows, which are in the order of the fragments. The least value is that of the
    numbers, as pylance has it; the greatest is NaN where there is one, whatever its sign. Dictionaries and binaries of
    one size have no bounds: pylance has none of them."""
    begins = _zones(units, positions, zone_rows)
    ends = np.concatenate((begins[1:], [len(values)])) if len(begins) else begins
    order = order_of(values)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    valid, nan = values.is_valid().to_numpy(zero_copy_only=False), _nans(values)
    least = _reduced(np.minimum, np.where(valid & ~nan, rank, len(order)), begins)
    most = _reduced(np.maximum, np.where(valid & ~nan, rank, -1), begins)
    counts = [_reduced(np.add, flags.astype(np.int64), begins) for flags in (~valid, nan)]
    greatest = _at(values, order, most, -1)
    if counts[1].any():
        greatest = pc.if_else(pa.array(counts[1] > 0), pa.scalar(np.nan, values.type), greatest)
    bounds = [_at(values, order, least, len(order)), greatest]
    if pa.types.is_dictionary(values.type) or pa.types.is_fixed_size_binary(values.type):
        bounds = [pa.nulls(len(begins), values.type)] * 2
    numbers = [units[begins], positions[begins], positions[ends - 1] + 1 - positions[begins]]
    names = ("fragment_id", "zone_start", "zone_length")
    schema = pa.schema(
        [
            *(pa.field(name, values.type) for name in ("min", "max")),
            *(_required(name, 32) for name in ("null_count", "nan_count")),
            *(_required(name) for name in names),
        ],
        {"rows_per_zone": str(zone_rows), "null_bitmap": "1"},
    )
    columns = [*bounds, *(pa.array(c, pa.uint32()) for c in counts), *(pa.array(n, pa.uint64()) for n in numbers)]
    nulls = encode_rows((units << 32 | positions)[~valid])
    return {ZONES: IndexFile(pa.table(columns, schema), (nulls,))}


def _zones(units: Ints, positions: Ints, zone_rows: int) -> Ints:
    """Where another fragment begins, or another stretch of one."""
    if not len(units):
        return np.empty(0, np.int64)
    stretch = positions // zone_rows
    return np.concatenate(([0], np.flatnonzero((np.diff(units) != 0) | (np.diff(stretch) != 0)) + 1))


def _reduced(function: np.ufunc, numbers: Ints, begins: Ints) -> Ints:
    return function.reduceat(numbers, begins) if len(begins) else np.empty(0, np.int64)


def _at(values: pa.Array, order: Ints, rank: Ints, none: int) -> pa.Array:
    """The values of these ranks, null for the rank `none`."""
    places = order[np.where(rank == none, 0, rank)] if len(order) else rank
    return values.take(pa.array(places, mask=rank == none))


def _nans(values: pa.Array) -> npt.NDArray[np.bool_]:
    if not pa.types.is_floating(values.type):
        return np.zeros(len(values), np.bool_)
    return np.isnan(values.to_numpy(zero_copy_only=False)) & values.is_valid().to_numpy(zero_copy_only=False)


def _required(name: str, bits: int = 64) -> pa.Field:
    return pa.field(name, pa.uint32() if bits == 32 else pa.uint64(), False)


def joined(parts: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """One array in the storage type of its column. Raises pyarrow's errors for what does not fit."""
    plain = pa.concat_arrays(parts) if parts else pa.array([], kind)
    if pa.types.is_dictionary(kind):
        plain = plain.dictionary_encode()
    return plain if plain.type == kind else plain.cast(kind)

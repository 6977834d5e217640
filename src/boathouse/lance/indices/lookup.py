"""What the files of one index say about a condition on its column.

They are read as far as they are small beside the rows that they may save: above the limits here an index is of no use,
which None stands for. What does not fit together is damage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from boathouse.compute.evaluate import mask
from boathouse.compute.prune import Pruner
from boathouse.errors import CorruptTableError
from boathouse.expr.tree import Expr
from boathouse.lance.file.reader import LanceFile
from boathouse.lance.indices.filters import Filters, Zones
from boathouse.lance.indices.row_ranges import Ranges, without
from boathouse.lance.indices.row_sets import decode_rows
from boathouse.lance.indices.stored import StoredIndex
from boathouse.table.features.random_access import Numbers

ZONES: Final = "zonemap.lance"
FILTERS: Final = "bloomfilter.lance"
PAGES, PAGE_DATA = "page_lookup.lance", "page_data.lance"
KEYS: Final = "bitmap_page_lookup.lance"
LOOKUP_BYTES: Final = 16 << 20
"""Of a file that is read whole."""
FILTER_BYTES: Final = 64 << 20
"""Of Bloom filters, of which a zone of 8,192 rows has 32 KiB."""
MAX_PAGES: Final = 64
"""Of a B-tree, of which each has some thousand rows; and never more than a quarter of them."""
MAX_KEYS, MAX_SETS = 1 << 16, 1 << 10
"""Of a bitmap index: keys that are looked through, and sets of rows that are read."""


def zones(index: StoredIndex, condition: Expr, rows: Mapping[int, int]) -> dict[int, Ranges] | None:
    """The rows of each covered fragment, of which `rows` are there, that no zone excludes: what is in none is kept."""
    if index.size(ZONES) > LOOKUP_BYTES:
        return None
    with index.open(ZONES) as file:
        found = file.read()
    return _outside(index, found, ~_may_match(index, condition, found, _whole(found, "zone_length"), nans=True), rows)


def filters(index: StoredIndex, condition: Expr, rows: Mapping[int, int]) -> dict[int, Ranges] | None:
    """As `zones`, by Bloom filters."""
    if index.size(FILTERS) > FILTER_BYTES:
        return None
    with index.open(FILTERS) as file:
        found = file.read()
    nulls = _whole(found, "has_null").to_numpy(zero_copy_only=False)
    data = [raw or b"" for raw in found.column("bloom_filter_data").to_pylist()]
    return _outside(index, found, ~Filters(index.stored, data, nulls).may_match(condition), rows)


def _outside(index: StoredIndex, zones: pa.Table, excluded: Zones, rows: Mapping[int, int]) -> dict[int, Ranges]:
    """The rows that are in no zone that is excluded."""
    fragment, start, length = (_numbers(zones, name) for name in ("fragment_id", "zone_start", "zone_length"))
    if len(start) and int(min(start.min(), length.min())) < 0:
        raise CorruptTableError("a zone that begins or ends before its fragment", where=index.folder)
    edges = np.stack((start, start + length), axis=1)
    return {id: without(rows[id], edges[excluded & (fragment == id)]) for id in index.fragments}


def btree(index: StoredIndex, condition: Expr) -> Numbers | None:
    """The addresses or ids of the rows for which the condition is true: of the pages that may have any, the values are
    looked at."""
    if index.size(PAGES) > LOOKUP_BYTES:
        return None
    with index.open(PAGES) as file:
        if file.metadata.get("range_partitioned") == b"true":  # pages of several files
            return None
        size = int(file.metadata.get("batch_size", b"0"))
        lookup = file.read()
    with index.open(PAGE_DATA) as file:
        pages = _numbers(lookup, "page_idx")
        if size < 1 or not np.array_equal(np.sort(pages), np.arange(-(-file.num_rows // size))):
            raise CorruptTableError(f"{len(pages)} pages of {size} rows for {file.num_rows}", where=file.uri)
        in_page = np.minimum(size, file.num_rows - pages * size)
        wanted = pages[_may_match(index, condition, lookup, pa.array(in_page), nans=False)]
        if len(wanted) > min(MAX_PAGES, max(len(pages) // 4, 1)):
            return None
        found = [_page_rows(index, condition, file, page, size) for page in np.sort(wanted).tolist()]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _page_rows(index: StoredIndex, condition: Expr, file: LanceFile, page: int, size: int) -> Numbers:
    rows = file.read(["values", "ids"], range(page * size, min((page + 1) * size, file.num_rows)))
    hit = mask(condition, index.batch(rows.column("values")))
    return _numbers(rows.filter(hit), "ids")


def bitmap(index: StoredIndex, condition: Expr, addresses: bool) -> Numbers | None:
    """As `btree`; a set of every row of a fragment is not read out, nor one of very many rows."""
    with index.open(KEYS) as file:
        if file.num_rows > MAX_KEYS:
            return None
        keys = file.read(["keys"])
        hit = np.flatnonzero(mask(condition, index.batch(keys.column("keys"))).to_numpy(zero_copy_only=False))
        if len(hit) > MAX_SETS:
            return None
        sets = file.take(hit, ["bitmaps"]).column("bitmaps").to_pylist()
    parts: list[Numbers] = []
    for data in sets:
        for upper, positions in decode_rows(data or b"", file.uri):
            if positions is None:
                return None
            if not addresses or upper in index.fragments:
                parts.append(positions | upper << 32)
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _may_match(
    index: StoredIndex, condition: Expr, found: pa.Table, rows: pa.Array, *, nans: bool
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which zones or pages may have a row for which the condition is true. NaN as a bound bounds nothing."""
    columns = {"lower": "min", "upper": "max", "nulls": "null_count"} | ({"nans": "nan_count"} if nans else {})
    inner = pa.StructArray.from_arrays([_whole(found, c) for c in columns.values()], names=[*columns])
    stats = pa.StructArray.from_arrays([inner], names=["0"])
    return Pruner(condition, [(index.column,)]).may_match(stats, rows).to_numpy(zero_copy_only=False)


def _whole(found: pa.Table, name: str) -> pa.Array:
    if name not in found.column_names:
        raise CorruptTableError(f"an index without the column `{name}`")
    column = found.column(name)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _numbers(found: pa.Table, name: str) -> Numbers:
    return _whole(found, name).to_numpy(zero_copy_only=False).astype(np.int64)

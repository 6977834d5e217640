"""Indices after a compaction: they cover the new fragments in place of those that are gone.

Those of stable row ids stay as they are, and cover the fragments that are gone too: pylance 14 then looks which of the
ids that it finds are still rows of the table, where it otherwise gives back fewer of the nearest rows than there are,
as after its own compactions. Of those of addresses the files are written again, under a new id, with the
addresses that the rows have now: B-trees, bitmaps, zone maps and Bloom filters. Any other index stays, and covers what
is left of its fragments: rows in others are searched without it. So are the rows of fragments of which an index
has values from before an overlay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from boathouse.arrow.filesystem import data_files
from boathouse.bits.roaring import Bitmap, deserialize32, serialize32
from boathouse.bits.system import current
from boathouse.errors import BoathouseError
from boathouse.lance.indices import contents, lookup
from boathouse.lance.indices.contents import Content, IndexFile
from boathouse.lance.indices.moves import Moves
from boathouse.lance.indices.row_sets import decode_rows, encode_rows
from boathouse.lance.indices.stored import BITMAP, BLOOM_FILTER, BTREE, FRAGMENT_REUSE, ZONE_MAP, StoredIndex
from boathouse.lance.indices.written import put_files
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.manifests.indices import INDICES, IndexId, IndexMetadata, IndexSection
from boathouse.lance.manifests.messages import RewrittenIndex
from boathouse.lance.manifests.overlays import stale
from boathouse.lance.operations.build import Build
from boathouse.lance.paths import base_uri
from boathouse.storage import join
from boathouse.table.features.random_access import Numbers
from boathouse.types import NULL

OF_IDS: Final = frozenset(
    ("BitmapIndexDetails", "LabelListIndexDetails", "InvertedIndexDetails", "NGramIndexDetails", "VectorIndexDetails")
)
"""The kinds that have ids of rows where these are stable."""
MAX_BYTES: Final = 1 << 30
"""Of the files of an index that is written again, which is held in memory."""
_DAMAGED = (BoathouseError, pa.ArrowException, OSError, ValueError, LookupError, OverflowError)


@dataclass(frozen=True, slots=True)
class MovedIndices:
    """The index section, what the transaction says of indices that were written again, and their files."""

    section: bytes | None
    rewritten: tuple[RewrittenIndex, ...] = ()
    side: tuple[str, ...] = ()


def moved_indices(build: Build, moves: Moves) -> MovedIndices:
    """Of the head. What is damaged, or does not fit together, stays as it is."""
    assert build.head is not None
    data = build.head.document.index
    section = IndexSection() if data is None else IndexSection.decode(data, where=build.root)
    if any(index.kind == FRAGMENT_REUSE for index in section.indices):
        return MovedIndices(data)
    found: list[IndexMetadata] = []
    rewritten: list[RewrittenIndex] = []
    side: list[str] = []
    for index in section.indices:
        made, uris = _moved(build, _without_stale(build, index, moves.removed), moves)
        found.append(made)
        side += uris
        if made.id != index.id:
            version = index.index_version or 0
            rewritten.append(
                RewrittenIndex(
                    old_id=index.id, new_id=made.id, details=index.details, version=version, files=made.files
                )
            )
    changed = tuple(found) != section.indices
    return MovedIndices(
        replace(section, indices=tuple(found)).encode() if changed else data, tuple(rewritten), tuple(side)
    )


def left_indices(build: Build, removed: Collection[int]) -> bytes | None:
    """The index section of the head after fragments went, of which it is not known where their rows are now."""
    assert build.head is not None
    data = build.head.document.index
    if data is None or not any(f.overlays for f in build.base.fragments if f.id in removed):
        return data
    section = IndexSection.decode(data, where=build.root)
    return replace(section, indices=tuple(_without_stale(build, i, removed) for i in section.indices)).encode()


def _without_stale(build: Build, index: IndexMetadata, removed: Collection[int]) -> IndexMetadata:
    """The index without those of the fragments of which it has values that overlays replaced: these go with their
    fragments, and nothing would say any more that it has others."""
    gone = stale(build.base, index, build.root).keys() & set(removed)
    if not gone or index.fragment_bitmap is None:
        return index
    covered = set(deserialize32(index.fragment_bitmap, where=build.root).positions().tolist()) - gone
    return replace(index, fragment_bitmap=serialize32(Bitmap.of(sorted(covered))))


def _moved(build: Build, index: IndexMetadata, moves: Moves) -> tuple[IndexMetadata, Sequence[str]]:
    if index.fragment_bitmap is None or index.id is None:
        return index, ()
    before = frozenset(deserialize32(index.fragment_bitmap, where=build.root).positions().tolist())
    gained = moves.covered(before)
    if not gained:
        return index, ()
    stable = has_stable_row_ids(build.base)
    if stable and (index.kind in OF_IDS or (index.kind == BTREE and not index.index_version)):
        return replace(index, fragment_bitmap=serialize32(Bitmap.of(sorted(before | gained)))), ()
    make = _MADE.get(index.kind)
    if make is None or sum(f.size_bytes for f in index.files) > MAX_BYTES:
        return index, ()
    folder = join(base_uri(build.base, index.base_id, build.root, INDICES), index.id.folder)
    stored = StoredIndex(index, "", NULL, pa.null(), before, folder, data_files(build.context.stores))
    try:
        content = make(stored, moves.within(gained))
    except _DAMAGED:
        return index, ()
    id = IndexId(uuid=current().uuid4().bytes)
    files, uris = put_files(build, id, content)
    covered = serialize32(Bitmap.of(sorted((before - moves.removed) | gained)))
    return replace(index, id=id, fragment_bitmap=covered, base_id=None, files=files), uris


def _btree(index: StoredIndex, moves: Moves) -> Content:
    with index.open(lookup.PAGES) as file:
        if file.metadata.get("range_partitioned") == b"true":
            raise ValueError("pages of several files")
    with index.open(lookup.PAGE_DATA) as file:
        rows = file.read(["values", "ids"])
    ids = moves.addresses(_numbers(rows, "ids"))
    kept = ids >= 0
    return contents.btree_of(_whole(rows, "values").filter(pa.array(kept)), ids[kept])


def _bitmap(index: StoredIndex, moves: Moves) -> Content:
    with index.open(lookup.KEYS) as file:
        rows = file.read(["keys", "bitmaps"])
        sets = [_rows_of(data or b"", file.uri) for data in rows.column("bitmaps").to_pylist()]
    moved = moves.addresses(np.concatenate([np.empty(0, np.int64), *sets]))
    parts = [part[part >= 0] for part in np.split(moved, np.cumsum([len(ids) for ids in sets])[:-1])] if sets else []
    kept = pa.array([i for i, ids in enumerate(parts) if len(ids)], pa.int64())
    return contents.bitmap_of(_whole(rows, "keys").take(kept), [encode_rows(ids) for ids in parts if len(ids)])


def _rows_of(data: bytes, where: str) -> Numbers:
    """The addresses of a set."""
    parts = [np.empty(0, np.int64)]
    for upper, positions in decode_rows(data, where):
        if positions is None:
            raise ValueError("a set of every row of a fragment")
        parts.append(positions | upper << 32)
    return np.concatenate(parts)


def _zones(index: StoredIndex, moves: Moves) -> Content:
    name = lookup.ZONES if index.kind == ZONE_MAP else lookup.FILTERS
    with index.open(name) as file:
        rows, metadata = file.read(), dict(file.metadata)
        null_rows = file.global_buffer(int(metadata["null_bitmap"]))
        moved = moves.addresses(_rows_of(null_rows, file.uri))
        nulls = np.sort(moved[moved >= 0])
    columns = {c: _numbers(rows, c) for c in ("fragment_id", "zone_start", "zone_length")}
    zones = [
        (i, *zone)
        for i, (id, start, length) in enumerate(zip(*(c.tolist() for c in columns.values())))
        for zone in _moved_zone(id, start, length, moves)
    ]
    taken = rows.take(pa.array([i for i, *_ in zones], pa.int64())).combine_chunks()
    places = np.array([zone for _, *zone in zones], np.int64).reshape(-1, 3)
    first = (places[:, 0] << 32) + places[:, 1]
    count = np.searchsorted(nulls, first + places[:, 2]) - np.searchsorted(nulls, first)
    new: dict[str, pa.Array] = {c: pa.array(places[:, i], pa.uint64()) for i, c in enumerate(columns)}
    if index.kind == ZONE_MAP:
        nans = _numbers(taken, "nan_count")
        lost = places[:, 2] != columns["zone_length"][[i for i, *_ in zones]]
        if (lost & (nans > 0)).any():
            raise ValueError("a zone that lost rows, which may have been those that are NaN")
        new["null_count"] = pa.array(count, pa.uint32())
    else:
        new["has_null"] = pa.array(count > 0)
    for c, values in new.items():
        at = taken.schema.get_field_index(c)
        taken = taken.set_column(at, taken.schema.field(at), values)
    order = pa.array(np.argsort(first, kind="stable"))
    schema = taken.schema.with_metadata({**metadata, "null_bitmap": "1"})
    return {name: IndexFile(taken.take(order).cast(schema), (encode_rows(nulls),))}


def _moved_zone(fragment: int, start: int, length: int, moves: Moves) -> list[tuple[int, int, int]]:
    """What a zone became: a stretch of each new fragment that has rows of it; itself if it was not moved."""
    if fragment not in moves.removed:
        return [(fragment, start, length)]
    rows = moves.stretch(fragment, start, length)
    found = []
    for part in np.split(rows, np.flatnonzero(np.diff(rows >> 32)) + 1) if len(rows) else ():
        first, last = int(part[0]), int(part[-1])
        if last - first + 1 != len(part):
            raise ValueError("a zone whose rows are no longer one after the other")
        found.append((first >> 32, first & 0xFFFF_FFFF, len(part)))
    return found


def _whole(rows: pa.Table, name: str) -> pa.Array:
    column = rows.column(name).unify_dictionaries()
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _numbers(rows: pa.Table, name: str) -> Numbers:
    return _whole(rows, name).to_numpy(zero_copy_only=False).astype(np.int64)


_MADE: Final[Mapping[str, Callable[[StoredIndex, Moves], Content]]] = {
    BTREE: _btree,
    BITMAP: _bitmap,
    ZONE_MAP: _zones,
    BLOOM_FILTER: _zones,
}

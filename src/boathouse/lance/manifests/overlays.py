"""What a manifest says of data overlay files: which rows of which fields they cover, and what becomes of them where
columns change (table format, "Data Overlay Files")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from boathouse.bits.roaring import EMPTY, Bitmap, deserialize32
from boathouse.errors import CorruptTableError
from boathouse.lance.file.fields import TOMBSTONE, Field
from boathouse.lance.manifests.indices import IndexMetadata
from boathouse.lance.manifests.messages import DataFile, DataFragment, DataOverlayFile, Manifest


def data_file(overlay: DataOverlayFile, where: str) -> DataFile:
    """Raises CorruptTableError if it has none."""
    if overlay.data_file is None:
        raise CorruptTableError("a data overlay without a file", where=where)
    return overlay.data_file


def coverage(overlay: DataOverlayFile, where: str) -> tuple[bytes, ...]:
    """For each field of its file, in their order, the rows of which it has values, as a portable roaring bitmap.
    Raises CorruptTableError."""
    fields = data_file(overlay, where).fields
    if overlay.shared_offset_bitmap is not None:
        return (overlay.shared_offset_bitmap,) * len(fields)
    found = overlay.field_coverage.offset_bitmaps if overlay.field_coverage is not None else ()
    if len(found) != len(fields):
        raise CorruptTableError(f"{len(found)} sets of rows for {len(fields)} fields of a data overlay", where=where)
    return found


def without_fields(overlays: Iterable[DataOverlayFile], ids: Collection[int]) -> tuple[DataOverlayFile, ...]:
    """The overlays after the fields got other values in the data files: theirs no longer count. A tombstone keeps its
    place, since sets of rows are told apart by the places of fields."""
    found = []
    for overlay in overlays:
        file = overlay.data_file
        if file is not None and not set(ids).isdisjoint(file.fields):
            fields = tuple(TOMBSTONE if id in ids else id for id in file.fields)
            if all(id == TOMBSTONE for id in fields):
                continue
            overlay = replace(overlay, data_file=replace(file, fields=fields))
        found.append(overlay)
    return tuple(found)


def of_fields(overlays: tuple[DataOverlayFile, ...], ids: Collection[int]) -> tuple[DataOverlayFile, ...]:
    """Those that have values of any of the fields."""
    kept = tuple(o for o in overlays if o.data_file is None or not set(ids).isdisjoint(o.data_file.fields))
    return overlays if len(kept) == len(overlays) else kept


def stale(manifest: Manifest, index: IndexMetadata, where: str) -> dict[int, Bitmap]:
    """The rows of which an index has values that are no longer theirs, by fragment: those that an overlay covers which
    came after the version that the index was made of. Raises CorruptTableError."""
    fragments = [f for f in manifest.fragments if f.overlays]
    if not fragments:
        return {}
    fields = _related(manifest.fields, index.fields)
    found = {f.id: _stale_rows(f, index, fields, where) for f in fragments}
    return {id: rows for id, rows in found.items() if len(rows)}


def _related(fields: Sequence[Field], ids: Iterable[int]) -> frozenset[int]:
    """The fields, what they are in, and what is in them."""
    parents = {f.id: f.parent_id for f in fields}
    found, below = set(ids), set(ids)
    for id in tuple(found):
        while (id := parents.get(id, -1)) >= 0:
            found.add(id)
    for f in fields:  # parents come first
        if f.parent_id in below:
            below.add(f.id)
    return frozenset(found | below)


def _stale_rows(fragment: DataFragment, index: IndexMetadata, fields: Collection[int], where: str) -> Bitmap:
    found = EMPTY
    for overlay in fragment.overlays:
        if overlay.committed_version <= index.dataset_version:
            continue
        sets = zip(data_file(overlay, where).fields, coverage(overlay, where), strict=True)
        for raw in {raw for id, raw in sets if id in fields}:
            found |= deserialize32(raw, where=where)
    return found

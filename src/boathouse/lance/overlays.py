"""Data overlay files: other values of some cells of a fragment, which are in files of their own, a value a covered row.
Of two overlays of a cell the later one counts (table format, "Data Overlay Files")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.filesystem import DataFiles
from boathouse.bits.roaring import deserialize32
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.lance.file.reader import LanceFile
from boathouse.lance.file.schema import Node
from boathouse.lance.manifests.messages import DataFile, DataFragment, DataOverlayFile

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Overlays:
    """Those of one fragment, and the URIs of their files."""

    files: DataFiles
    fragment: DataFragment
    uris: Sequence[str]

    def over(self, node: Node, column: pa.ChunkedArray, positions: Positions) -> pa.ChunkedArray:
        """The column of the rows at these positions, with other values where they are covered. Raises
        CorruptTableError, UnsupportedFeatureError for overlays of parts of a column."""
        for overlay, uri in zip(self.fragment.overlays, self.uris, strict=True):
            assert overlay.data_file is not None
            file = overlay.data_file
            offsets = _covered(overlay, file, node, uri)
            if not len(offsets):
                continue
            ranks = np.searchsorted(offsets, positions)
            hit = np.append(offsets, -1)[ranks] == positions
            if hit.any():
                column = _replaced(column, hit, self._values(file, uri, node, ranks[hit], len(offsets)))
        return column

    def _values(self, file: DataFile, uri: str, node: Node, ranks: Positions, covered: int) -> pa.ChunkedArray:
        columns = dict(zip(file.fields, file.column_indices, strict=True))
        with LanceFile.open(self.files, uri, file.file_size_bytes or None, columns=columns) as opened:
            if opened.num_rows < covered:
                raise CorruptTableError(f"{opened.num_rows} values for {covered} rows", where=uri)
            return opened.take(ranks, [node]).column(0)


def _covered(overlay: DataOverlayFile, file: DataFile, node: Node, uri: str) -> Positions:
    """The rows, ascending, of which it has values of the column."""
    leaves = [leaf.id for leaf in node.leaves()]
    held = [id for id in leaves if id in file.fields]
    if not held:
        return np.empty(0, np.int64)
    shared, own = overlay.shared_offset_bitmap, overlay.field_coverage
    if len(held) < len(leaves) or (shared is None and len(leaves) > 1):
        raise UnsupportedFeatureError(
            f"a data overlay file of some fields of column `{node.name}`",
            where=uri,
            advice="read other columns only, or compact the table with pylance",
        )
    if shared is None:
        bitmaps = own.offset_bitmaps if own is not None else ()
        if len(bitmaps) != len(file.fields):
            raise CorruptTableError(f"{len(bitmaps)} sets of rows for {len(file.fields)} fields", where=uri)
        shared = bitmaps[file.fields.index(held[0])]
    return deserialize32(shared, where=uri).positions().astype(np.int64)


def _replaced(column: pa.ChunkedArray, hit: npt.NDArray[np.bool_], values: pa.ChunkedArray) -> pa.ChunkedArray:
    both = pa.chunked_array([*column.chunks, *values.chunks], column.type).unify_dictionaries()
    places = np.arange(len(column))
    places[hit] = len(column) + np.arange(len(values))
    return both.take(pa.array(places))

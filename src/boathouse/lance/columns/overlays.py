"""Data overlay files as they are read: other values of some cells of a fragment, which are in files of their own, a
value a covered row. Of two overlays of a cell the later one counts (table format, "Data Overlay Files").

What has a value in every row is covered as a whole: a list, or a field of structs that is none itself. So an overlay
may have some fields of a struct, and others are those of the data file, or of another overlay. Whether the struct is
null is then said twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.filesystem import DataFiles
from boathouse.bits.roaring import deserialize32
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.lance.columns.split_fields import pruned
from boathouse.lance.file.columns import naming
from boathouse.lance.file.reader import LanceFile
from boathouse.lance.file.schema import Node
from boathouse.lance.manifests.messages import DataFragment
from boathouse.lance.manifests.overlays import coverage, data_file

Positions = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
_Part = tuple[Node, Positions]
"""A column with the leaves of which an overlay has values, and the rows of which it has them, ascending."""


class Overlays:
    """Those of one fragment, and the URIs of their files, which are opened on first use and closed with the stack."""

    def __init__(self, files: DataFiles, fragment: DataFragment, uris: Sequence[str], stack: ExitStack) -> None:
        self._files, self._stack = files, stack
        by_age = zip(fragment.overlays, uris, strict=True)
        self._overlays = sorted(by_age, key=lambda pair: pair[0].committed_version)
        self._parts: dict[tuple[int, int], list[_Part]] = {}
        self._open: dict[tuple[int, int], LanceFile] = {}

    def touch(self, node: Node) -> bool:
        """Whether any of them has values of the column. Raises CorruptTableError, UnsupportedFeatureError for a part of
        a list or map, and for blobs."""
        return any(self._of(i, node) for i in range(len(self._overlays)))

    def over(self, node: Node, column: pa.ChunkedArray, positions: Positions) -> pa.ChunkedArray:
        """The column of the rows at these positions, with other values where they are covered. Raises as `touch`, and
        UnsupportedFeatureError where a struct is null in one file and not in the other."""
        for i, (_, uri) in enumerate(self._overlays):
            for part, rows in self._of(i, node):
                if not len(rows):
                    continue
                ranks = np.searchsorted(rows, positions)
                hit = np.append(rows, -1)[ranks] == positions
                if hit.any():
                    values = self._file(i, len(rows)).take(ranks[hit], [part]).column(0)
                    with naming(uri, f"field `{node.name}`"):
                        column = _replaced(node, part, column, values, hit, uri)
        return column

    def _of(self, number: int, node: Node) -> list[_Part]:
        found = self._parts.get((number, node.id))
        if found is None:
            found = self._parts[number, node.id] = list(self._found(number, node))
        return found

    def _found(self, number: int, node: Node) -> Iterator[_Part]:
        overlay, uri = self._overlays[number]
        sets = dict(zip(data_file(overlay, uri).fields, coverage(overlay, uri), strict=True))
        leaves: dict[bytes, set[int]] = {}
        for whole in _wholes(node):
            ids = {leaf.id for leaf in whole.leaves()}
            held = ids & sets.keys()
            if not held:
                continue
            if held < ids or whole.is_blob:
                raise UnsupportedFeatureError(
                    f"a data overlay file of {'blobs' if whole.is_blob else 'a part'} of column `{node.name}`",
                    where=uri,
                    advice="read other columns only",
                )
            rows = {sets[id] for id in held}
            if len(rows) > 1:
                raise CorruptTableError(f"parts of `{whole.name}` of different rows", where=uri)
            leaves.setdefault(rows.pop(), set()).update(held)
        for raw, ids in leaves.items():
            part = pruned(node, ids)
            assert part is not None
            yield part, deserialize32(raw, where=uri).positions().astype(np.int64)

    def _file(self, number: int, rows: int) -> LanceFile:
        """The file, of whose columns those that cover so many rows are read: they may have different lengths."""
        found = self._open.get((number, rows))
        if found is None:
            overlay, uri = self._overlays[number]
            file = data_file(overlay, uri)
            columns = dict(zip(file.fields, file.column_indices, strict=True))
            found = LanceFile.open(self._files, uri, file.file_size_bytes or None, columns=columns, rows=rows)
            self._open[number, rows] = self._stack.enter_context(found)
        return found


def _is_whole(node: Node) -> bool:
    return node.is_leaf or node.logical_type != "struct"


def _wholes(node: Node) -> Iterator[Node]:
    """What is covered as a whole."""
    if _is_whole(node):
        yield node
    else:
        for child in node.children:
            yield from _wholes(child)


def _replaced(
    node: Node, part: Node, column: pa.ChunkedArray, values: pa.ChunkedArray, hit: _Mask, uri: str
) -> pa.ChunkedArray:
    """The column with `values`, which are those of a part of it, in the rows that are hit."""
    if _is_whole(node):
        both = pa.chunked_array([*column.chunks, *values.chunks], column.type).unify_dictionaries()
        places = np.arange(len(column))
        places[hit] = len(column) + np.arange(len(values))
        return both.take(pa.array(places))
    base, new = _array(column), _array(values)
    if not np.array_equal(np.asarray(base.is_valid())[hit], np.asarray(new.is_valid())):
        raise UnsupportedFeatureError(
            f"`{node.name}` is null in the data file and not in a data overlay file, or the reverse, which versions of "
            "Lance read differently",
            where=uri,
            advice="read other columns only, or write these rows again with pylance",
        )
    parts = {child.id: (child, new.field(i)) for i, child in enumerate(part.children)}
    members = []
    for i, child in enumerate(node.children):
        member = pa.chunked_array([base.field(i)])
        if child.id in parts:
            below, other = parts[child.id]
            member = _replaced(child, below, member, pa.chunked_array([other]), hit, uri)
        members.append(_array(member))
    mask = base.is_null() if base.null_count else None
    return pa.chunked_array([pa.StructArray.from_arrays(members, fields=list(base.type), mask=mask)])


def _array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.unify_dictionaries().combine_chunks() if column.num_chunks else pa.array([], column.type)

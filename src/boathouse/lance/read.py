"""Reads fragments: columns from the data files that contain them, without deleted rows; other columns are read after
filtering.

A column is found by field id; one that no file of a fragment contains is null there. With a predicate its columns are
decoded first, and the others only for the remaining rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.filesystem import DataFiles
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.roaring import EMPTY, Bitmap
from boathouse.compute.evaluate import mask
from boathouse.errors import CorruptTableError
from boathouse.expr.tree import columns as columns_of
from boathouse.lance.blobs.rows import with_files
from boathouse.lance.columns.jsonb import to_text
from boathouse.lance.columns.overlays import Overlays
from boathouse.lance.columns.split_fields import joined, pruned
from boathouse.lance.file.columns import naming
from boathouse.lance.file.fields import SchemaMessage
from boathouse.lance.file.reader import LanceFile
from boathouse.lance.file.schema import JSON, Node, arrow_type, tree
from boathouse.lance.indices.row_ranges import Ranges, count, decode, merged, positions_of
from boathouse.lance.lineage.stored import FIELD_IDS, Fragment
from boathouse.lance.manifests.messages import DataFragment
from boathouse.lance.options import BFLOAT16, NativeRead
from boathouse.table.metadata_columns import POSITION
from boathouse.table.reading import UnitRead, read_units
from boathouse.table.tasks import ReadColumn, ScanTask
from boathouse.table.units import LANCE

BATCH_BYTES = 4 << 20
MIN_BATCH_ROWS, MAX_BATCH_ROWS = 1 << 10, 1 << 16
_FEW = 16
"""If fewer than one row in this number remains, the other columns are taken row by row."""
_GAP = 1 << 12
"""Rows that are read between ranges of rows, rather than that reading begins anew."""
Positions = npt.NDArray[np.int64]
_Held = list[tuple[Node, pa.ChunkedArray]]
"""The parts of a column, each with its leaves."""
T = TypeVar("T")


def read(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """The rows of the task's fragments, in order, with the schema `task.read.schema`."""
    native = task.read.native
    assert isinstance(native, NativeRead)
    nodes = {node.id: node for node in tree(SchemaMessage.decode(native.fields).fields)}
    lineage = any(c.field_id in FIELD_IDS.values() for c in task.read.columns)
    messages = _by_unit(task, "fragment", DataFragment.decode) if lineage or native.overlays else {}
    planned = native.where is not None and native.where == task.read.where
    ranges = _by_unit(task, "rows", decode) if planned else {}

    def fragment(read: UnitRead) -> Iterator[pa.RecordBatch]:
        unit = read.unit["unit"]
        with ExitStack() as stack:
            parts = _Parts(read.spec.files, read.unit, nodes, stack)
            message = messages.get(unit)
            over = None
            if message is not None and message.overlays:
                beside = read.unit["parts"][len(message.files) :]
                over = Overlays(read.spec.files, message, [part["path"] for part in beside], stack)
            yield from _Fragment(read, parts, message, ranges.get(unit), over).batches()

    return read_units(task, {LANCE: fragment})


def _by_unit(task: ScanTask, member: str, decoded: Callable[[bytes], T]) -> dict[int, T]:
    """What the units have of their own, by their ids."""
    raw = task.units.column("native").combine_chunks().field(member).to_pylist()
    units = task.units.column("unit").to_pylist()
    return {unit: decoded(data) for unit, data in zip(units, raw) if data is not None}


class _Parts:
    """The data files of one fragment, opened on first use."""

    def __init__(self, files: DataFiles, unit: Mapping[str, Any], nodes: Mapping[int, Node], stack: ExitStack) -> None:
        self._files, self._unit, self._nodes, self._stack = files, unit, nodes, stack
        self._columns = [part_columns(part) for part in unit["parts"]]
        self._open: dict[int, LanceFile] = {}

    def holders(self, column: ReadColumn) -> list[tuple[int, Node]]:
        """The numbers of the files that contain a column, each with its leaves of it."""
        node = self.node(column)
        leaves = [leaf.id for leaf in node.leaves()]
        if any(sum(id in columns for columns in self._columns) > 1 for id in leaves):
            raise CorruptTableError(f"column `{column.name}` is in two files of one fragment", where=self._unit["path"])
        found = [(i, pruned(node, columns)) for i, columns in enumerate(self._columns)]
        return [(i, node if part == node else part) for i, part in found if part is not None]

    def node(self, column: ReadColumn) -> Node:
        return self._nodes[column.field_id if column.field_id is not None else -1]

    def file(self, i: int) -> LanceFile:
        """File i. Raises CorruptTableError if it is missing or has another number of rows than the fragment."""
        if i not in self._open:
            part = self._unit["parts"][i]
            opened = open_part(self._files, part)
            self._stack.callback(opened.close)
            if opened.num_rows != self._unit["rows"]:
                raise CorruptTableError(
                    f"a data file of {opened.num_rows} rows in fragment {self._unit['unit']}, "
                    f"which has {self._unit['rows']}",
                    where=part["path"],
                )
            self._open[i] = opened
        return self._open[i]


def part_columns(part: Mapping[str, Any]) -> dict[int, int]:
    """Field id -> column of a data file; ids below 0 are tombstones and hidden columns."""
    fields, columns = part["fields"], part["columns"] or part["fields"]
    return {id: column for id, column in zip(fields, columns) if id >= 0}


def open_part(files: DataFiles, part: Mapping[str, Any]) -> LanceFile:
    """Opens a data file by its entry in FILES. Raises NotFoundError if it is missing."""
    return LanceFile.open(files, part["path"], part["size"], columns=part_columns(part) if part["columns"] else None)


@dataclass(frozen=True)
class _Fragment:
    """One fragment being read; `ranges` are the rows that may satisfy the condition, None: any."""

    read: UnitRead
    parts: _Parts
    message: DataFragment | None = None
    ranges: Ranges | None = None
    overlays: Overlays | None = None
    types: Mapping[str, pa.DataType] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", {c.name: to_arrow_type(c.type) for c in self.read.columns})

    @property
    def unit(self) -> Mapping[str, Any]:
        return self.read.unit

    def batches(self) -> Iterator[pa.RecordBatch]:
        where, lineage = self.read.where, self._lineage()
        columns = [c for c in self.read.columns if c.name not in lineage]
        deleted = EMPTY if self.read.deleted is None else self.read.deleted
        wanted = {path[0] for path in columns_of(where)} if where is not None else {c.name for c in columns}
        first = [c for c in columns if c.name in wanted]
        rest = [c for c in columns if c.name not in wanted]
        for window, positions, arrays in self._candidates(first, deleted):
            if where is not None:
                hit = mask(where, _batch(arrays, len(positions)))
                positions = positions[hit.to_numpy(zero_copy_only=False)]
                arrays = {name: array.filter(hit) for name, array in arrays.items()}
            if len(positions):
                own = {name: pa.array(numbers[positions]) for name, numbers in lineage.items()}
                others = self._taken(rest, positions) if window is None else self._others(rest, window, positions)
                yield self._finish({**arrays, **others, **own}, positions)

    def _candidates(
        self, columns: Sequence[ReadColumn], deleted: Bitmap
    ) -> Iterator[tuple[range | None, Positions, dict[str, pa.Array]]]:
        """Windows of rows that are not deleted: which they are (None: few rows were selected), positions, columns."""
        few = self._few()
        if few is not None:
            left = (few - deleted).positions()
            for i in range(0, len(left), self._batch_rows):
                positions = left[i : i + self._batch_rows]
                yield None, positions, self._taken(columns, positions)
            return
        whole = np.array([[0, self.unit["rows"]]])
        for start, stop in (whole if self.ranges is None else merged(self.ranges, _GAP)).tolist():
            for window, arrays in self._windows(columns, range(start, stop)):
                positions = np.arange(window.start, window.stop)
                alive = ~deleted.mask(window.start, len(window))
                if not alive.all():
                    positions = positions[alive]
                    keep = pa.array(alive)
                    arrays = {name: array.filter(keep) for name, array in arrays.items()}
                yield window, positions, arrays

    def _few(self) -> Bitmap | None:
        """The rows that are looked at, if they are so few that each is read for itself."""
        selected, ranges, rows = self.read.selected, self.ranges, self.unit["rows"]
        if selected is not None and len(selected) * 2 < rows:
            return selected
        if ranges is not None and count(ranges) * _FEW < rows:
            return Bitmap(positions_of(ranges))
        return None

    def _lineage(self) -> dict[str, Positions]:
        """The sequences that are read, of all rows."""
        kinds = {id: kind for kind, id in FIELD_IDS.items()}
        wanted = {c.name: kinds[c.field_id] for c in self.read.columns if c.field_id in kinds}
        if not wanted or self.message is None:
            return {}
        unit = self.unit
        found = Fragment(self.message, unit["rows"], tuple(unit["parts"]), self.read.spec.files, unit["path"])
        return {n: found.row_ids() if kind == "row_ids" else found.versions(kind) for n, kind in wanted.items()}

    @property
    def _batch_rows(self) -> int:
        """The same for all parts, so that their batches begin at the same rows."""
        per_row = (self.unit["size"] or 0) / max(self.unit["rows"], 1)
        return int(min(max(BATCH_BYTES / max(per_row, 1), MIN_BATCH_ROWS), MAX_BATCH_ROWS))

    def _windows(self, columns: Sequence[ReadColumn], rows: range) -> Iterator[tuple[range, dict[str, pa.Array]]]:
        """Rows and columns of every window of `_batch_rows` of these rows."""
        by_part = self._grouped(columns)
        streams = {
            i: _Stream(self.parts.file(i).batches([n for _, n in held], self._batch_rows, rows))
            for i, held in by_part.items()
        }
        for start in range(rows.start, rows.stop, self._batch_rows):
            window = range(start, min(start + self._batch_rows, rows.stop))
            tables = {i: streams[i].rows(len(window)) for i in by_part}
            yield window, self._columns(columns, by_part, tables, np.arange(window.start, window.stop))

    def _grouped(self, columns: Sequence[ReadColumn]) -> dict[int, list[tuple[str, Node]]]:
        """What to read from each file; a column that no file contains is in none."""
        by_part: dict[int, list[tuple[str, Node]]] = {}
        for column in columns:
            for i, node in self.parts.holders(column):
                by_part.setdefault(i, []).append((column.name, node))
        return by_part

    def _columns(
        self,
        columns: Sequence[ReadColumn],
        by_part: Mapping[int, Sequence[tuple[str, Node]]],
        tables: Mapping[int, pa.Table],
        positions: Positions,
    ) -> dict[str, pa.Array]:
        """The columns in their plain types, from what was read from each file."""
        found: dict[str, list[tuple[Node, pa.ChunkedArray]]] = {}
        for i, held in by_part.items():
            for (name, node), column in zip(held, tables[i].columns):
                found.setdefault(name, []).append((node, self._blobs(name, i, column) if node.is_blob else column))
        if self.overlays is not None:
            found = {c.name: self._overlaid(self.overlays, c, found.get(c.name, []), positions) for c in columns}
        return {c.name: self._column(c, found.get(c.name, []), len(positions)) for c in columns}

    def _overlaid(self, overlays: Overlays, column: ReadColumn, parts: _Held, positions: Positions) -> _Held:
        if column.field_id in FIELD_IDS.values():
            return parts
        node = self.parts.node(column)
        if not overlays.touch(node):
            return parts
        held = parts or [(node, pa.chunked_array([pa.nulls(len(positions), arrow_type(node))]))]
        with naming(self.unit["path"], f"column `{column.name}`"):
            whole = self._whole(node, held)
        return [(node, overlays.over(node, whole, positions))]

    def _blobs(self, name: str, part: int, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """With the files that have their bytes, if the rows are read to be written again."""
        wanted = self.types[name]
        if wanted.num_fields == column.type.num_fields:
            return column
        path = self.unit["parts"][part]["path"]
        with naming(path, f"column `{name}`"):
            return with_files(column, wanted, path, self.parts.file(part).version)

    def _column(self, column: ReadColumn, parts: _Held, count: int) -> pa.Array:
        if not parts:
            return pa.nulls(count, self.types[column.name])
        with naming(self.unit["path"], f"column `{column.name}`"):
            node = self.parts.node(column)
            return self._plain(column.name, node, self._whole(node, parts))

    def _whole(self, node: Node, parts: _Held) -> pa.ChunkedArray:
        """The column that is in these parts, which may be of several files."""
        first, whole = parts[0]
        if len(parts) == 1 and first is node:
            return whole
        single = [(part, plain_array(values, values.type)) for part, values in parts]
        return pa.chunked_array([joined(node, single, self.unit["path"])])

    def _others(self, columns: Sequence[ReadColumn], window: range, positions: Positions) -> dict[str, pa.Array]:
        """The columns of the rows at `positions`, all of one window."""
        if len(positions) * _FEW < len(window):
            return self._taken(columns, positions)
        by_part = self._grouped(columns)
        tables = {}
        for i, held in by_part.items():
            tables[i] = self.parts.file(i).read([node for _, node in held], window)
            if len(positions) < len(window):
                tables[i] = tables[i].take(pa.array(positions - window.start))
        return self._columns(columns, by_part, tables, positions)

    def _taken(self, columns: Sequence[ReadColumn], positions: Positions) -> dict[str, pa.Array]:
        """The columns of the rows at `positions`, of which only the chunks that hold them are read."""
        by_part = self._grouped(columns)
        tables = {i: self.parts.file(i).take(positions, [node for _, node in held]) for i, held in by_part.items()}
        return self._columns(columns, by_part, tables, positions)

    def _plain(self, name: str, node: Node, column: pa.ChunkedArray) -> pa.Array:
        """A column in its plain type: dictionaries, large layouts and zones are Lance's own."""
        if node.extension == JSON:
            texts = [None if v is None else to_text(v, where=self.unit["path"]) for v in column.to_pylist()]
            return pa.array(texts, pa.string())
        if node.extension == BFLOAT16:
            return floats_of(column)
        return plain_array(column, self.types[name])

    def _finish(self, arrays: Mapping[str, pa.Array], positions: Positions) -> pa.RecordBatch:
        found = [(c.name, arrays[c.name]) for c in self.read.columns]
        if self.read.positions:
            found.append((POSITION, pa.array(positions, pa.int64())))
        if not found:
            return _batch({}, len(positions)).select([])
        return pa.record_batch([array for _, array in found], [name for name, _ in found])


def plain_array(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.Array:
    """The column as one array of the type `wanted`."""
    if column.type != wanted:
        column = column.cast(wanted)
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], wanted)


def floats_of(column: pa.ChunkedArray) -> pa.Array:
    """16-bit brain floats, stored as two bytes, as the 32-bit floats whose upper half they are."""
    array = plain_array(column, pa.binary(2))
    halves = np.frombuffer(array.buffers()[1], "<u2", count=len(array), offset=2 * array.offset)
    values = (halves.astype(np.uint32) << 16).view(np.float32)
    return pa.array(values, pa.float32(), mask=np.asarray(array.is_null()) if array.null_count else None)


def _batch(arrays: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
    """A batch that keeps its row count even without columns."""
    return pa.record_batch([*arrays.values(), pa.nulls(rows)], [*arrays, ""])


class _Stream:
    """Batches of one data file, split at the ends of windows."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: pa.RecordBatch | None = None

    def rows(self, count: int) -> pa.Table:
        """The next `count` rows, which must exist."""
        found: list[pa.RecordBatch] = []
        while count > 0:
            batch = self._left if self._left is not None else next(self._batches)
            found.append(batch.slice(0, count))
            self._left = batch.slice(count) if batch.num_rows > count else None
            count -= found[-1].num_rows
        return pa.Table.from_batches(found)

"""Lance data files read by rows and columns: a scan in batches, ranges, single rows.

    with LanceFile.open(files, uri) as file:
        file.read(rows=range(100))
        file.take(np.array([5, 3]), [file.node("name")])

Only the metadata and pages of the requested columns are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np
import pyarrow as pa

from boathouse.errors import ColumnNotFoundError, InvalidArgumentError
from boathouse.lance.file.arrays import ArrayReader
from boathouse.lance.file.columns import FieldReader, StructuralReader, naming
from boathouse.lance.file.container import Container, Files, Source
from boathouse.lance.file.fields import HIDDEN, Field, SchemaMessage
from boathouse.lance.file.legacy import LegacyReader
from boathouse.lance.file.pages import Wanted
from boathouse.lance.file.plain import Ints
from boathouse.lance.file.schema import Node, arrow_field, arrow_schema, tree

SLAB_BYTES = 16 << 20
MIN_SLAB_ROWS = 1 << 16


class LanceFile:
    """One data file of version 0.1, 2.0, 2.1 or 2.2.

    `columns` maps field ids to columns (a manifest's `fields` and `column_indices`); by default the
    file's own schema gives them. Fields are `Node`s: those of the file, or of the table (renamed, with fewer or more
    nested fields); what the file lacks is read as null. `rows` are those of the columns that are read, where a file has
    columns of different lengths.
    """

    def __init__(self, source: Source, columns: Mapping[int, int] | None, rows: int | None = None) -> None:
        self.uri = source.uri
        self._source = source
        self.fields: tuple[Field, ...]
        self.metadata: dict[str, bytes]
        self.nodes: tuple[Node, ...]
        self.num_rows: int
        with naming(source.uri, "the container"):
            container = Container(source)
            self.version = container.version
            self._open(container, columns, rows)

    def _open(self, container: Container, columns: Mapping[int, int] | None, rows: int | None) -> None:
        self._container = container
        self._reader: FieldReader
        if self.version == "0.1":
            legacy = LegacyReader(self._source)
            self.fields, self.metadata, self.num_rows = legacy.fields, legacy.metadata, legacy.rows
            self.nodes, self._reader = tree(self.fields, where=self.uri), legacy
            return
        message = container.descriptor.schema or SchemaMessage()
        self.fields = tuple(f for f in message.fields if f.id not in HIDDEN)
        self.metadata = dict(message.metadata)
        self.num_rows = container.descriptor.length if rows is None else rows
        self.nodes = tree(self.fields, where=self.uri)
        every = self.version == "2.0"  # a column for each field, else one for each leaf
        if columns is None:
            owners = [n.id for top in self.nodes for n in (_owners(top) if every else top.leaves())]
            columns = {id: i for i, id in enumerate(owners)}
        reader = ArrayReader if every else StructuralReader
        self._reader = reader(container, columns, self.num_rows)

    @classmethod
    def open(
        cls,
        files: Files,
        uri: str,
        size: int | None = None,
        *,
        columns: Mapping[int, int] | None = None,
        rows: int | None = None,
    ) -> Self:
        """Open with `files.open_input(uri)`; a known `size` saves a request.

        Raises CorruptTableError, UnsupportedFeatureError (an unknown version), and the errors of the store.
        """
        file = files.open_input(uri)
        try:
            with naming(uri, "the container"):
                return cls(Source(file, uri, size), columns, rows)
        except BaseException:
            file.close()
            raise

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def schema(self) -> pa.Schema:
        """The file's own Arrow schema."""
        with naming(self.uri, "the schema"):
            return arrow_schema(self.fields, self.metadata)

    def node(self, column: int | str) -> Node:
        """A top-level field by id or name. Raises ColumnNotFoundError."""
        for node in self.nodes:
            if column in (node.id, node.name):
                return node
        raise ColumnNotFoundError(f"no column {column!r} in the file", where=self.uri)

    def _nodes(self, columns: Sequence[Node | int | str] | None) -> list[Node]:
        if columns is None:
            return list(self.nodes)
        return [c if isinstance(c, Node) else self.node(c) for c in columns]

    def _rows(self, rows: range | None) -> range:
        if rows is None:
            return range(self.num_rows)
        if rows.step != 1 or rows.start < 0 or (len(rows) and rows.stop > self.num_rows):
            raise InvalidArgumentError(f"rows {rows} of a file of {self.num_rows}", where=self.uri)
        return rows

    def read(self, columns: Sequence[Node | int | str] | None = None, rows: range | None = None) -> pa.Table:
        """A table of the columns (all by default) and rows; chunks are pages."""
        return self._table(self._nodes(columns), self._rows(rows))

    def _table(self, nodes: Sequence[Node], wanted: Wanted) -> pa.Table:
        with naming(self.uri, "the schema"):
            fields = [arrow_field(node) for node in nodes]
        arrays = []
        for node, field in zip(nodes, fields):
            with naming(self.uri, f"field `{node.name}`"):
                chunks = self._reader.read(node, wanted) if len(wanted) else []
                arrays.append(pa.chunked_array(chunks, field.type))
        return pa.table(arrays, pa.schema(fields)) if fields else _no_columns(len(wanted))

    def batches(
        self,
        columns: Sequence[Node | int | str] | None = None,
        batch_rows: int = 8192,
        rows: range | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in order, in batches of at most `batch_rows`, a few megabytes decoded at a time."""
        nodes, rows = self._nodes(columns), self._rows(rows)
        if batch_rows < 1:
            raise InvalidArgumentError(f"batches of {batch_rows} rows")
        step = self._slab_rows(nodes, batch_rows)
        for start in range(rows.start, rows.stop, step):
            table = self._table(nodes, range(start, min(start + step, rows.stop)))
            if not nodes:
                yield from table.to_batches() or [_no_columns_batch(table.num_rows)]
                continue
            yield from table.unify_dictionaries().combine_chunks().to_batches(max_chunksize=batch_rows)

    def _slab_rows(self, nodes: Sequence[Node], batch_rows: int) -> int:
        """A multiple of `batch_rows` of about SLAB_BYTES as stored."""
        with naming(self.uri, "the container"):
            stored = sum(self._reader.size(node) for node in nodes)
        per_row = max(stored / max(self.num_rows, 1), 1 / 64)
        fitting = min(int(SLAB_BYTES / per_row), MIN_SLAB_ROWS * 4)
        return max(fitting // batch_rows, 1) * batch_rows

    def take(self, indices: Ints, columns: Sequence[Node | int | str] | None = None) -> pa.Table:
        """Rows by number in any order, repetitions included; reads only their chunks."""
        indices = np.asarray(indices, np.int64)
        if len(indices) and (int(indices.min()) < 0 or int(indices.max()) >= self.num_rows):
            raise InvalidArgumentError(f"row {int(indices.max())} of a file of {self.num_rows}", where=self.uri)
        ascending = len(indices) < 2 or bool((np.diff(indices) > 0).all())
        if ascending:
            return self._table(self._nodes(columns), indices)
        unique, inverse = np.unique(indices, return_inverse=True)
        return self._table(self._nodes(columns), unique).take(pa.array(inverse.reshape(-1)))

    def global_buffer(self, index: int) -> bytes:
        """One of the buffers that belong to no column; the first has the schema."""
        with naming(self.uri, f"global buffer {index}"):
            return self._container.global_buffer(index).tobytes()

    def read_bytes(self, offset: int, size: int) -> bytes:
        """A byte range of the file, from a blob descriptor."""
        with naming(self.uri, "a blob"):
            return self._source.read(offset, size).tobytes()


def _owners(node: Node) -> Iterator[Node]:
    """The fields that own a column in files of version 2.0."""
    yield node
    if not node.is_leaf and not node.logical_type.startswith("fixed_size_list"):
        for child in node.children:
            yield from _owners(child)


def _no_columns(rows: int) -> pa.Table:
    return pa.table({"": pa.nulls(rows)}).select([])


def _no_columns_batch(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(rows)], [""]).select([])


__all__ = ["LanceFile", "Node"]

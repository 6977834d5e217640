"""Writes the bytes of blobs: into the data file, and from version 2.2 on the larger ones into files beside it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from boathouse.arrow.filesystem import DataFiles
from boathouse.errors import BoathouseError, CorruptTableError, UnsupportedFeatureError
from boathouse.lance.blobs.rows import DEDICATED, EXTERNAL, INLINE, PACKED, beside
from boathouse.lance.file.schema import Node, arrow_type
from boathouse.lance.file.writer import LanceWriter
from boathouse.types.blobs import DATA, FILE

_PIECE: Final = 8 << 20
_OPEN: Final = 8
"""Files that are copied from and stay open."""
_LIMITS: Final = {
    "lance-encoding:blob-inline-size-threshold": 64 << 10,
    "lance-encoding:blob-dedicated-size-threshold": 4 << 20,
    "lance-encoding:blob-pack-file-size-threshold": 1 << 30,
}
"""Metadata of a field, and what holds without it: the largest blob in the data file, the largest in a file with others,
and the size up to which a file gets blobs."""


class BlobWriter:
    """The blobs of one data file, of all its columns."""

    def __init__(self, files: DataFiles, uri: str, version: str, writer: LanceWriter) -> None:
        self._files, self._uri, self._version, self._writer = files, uri, version, writer
        self._sources = _Sources(files)
        self._packed: tuple[int, pa.NativeFile, int] | None = None
        self.paths: list[str] = []
        """The files beside the data file."""

    def stored(self, node: Node, rows: pa.StructArray) -> pa.Array:
        """What the data file stores of these blobs, whose bytes are written. Raises CorruptTableError for a file that
        is shorter than its blobs, UnsupportedFeatureError for a kind that is not known."""
        fields = [rows.type.field(i).name for i in range(rows.type.num_fields)]
        columns = [column.to_pylist() for column in rows.flatten() if not pa.types.is_binary(column.type)]
        data = rows.flatten()[fields.index(DATA)]
        names = [name for name in fields if name != DATA]
        found = [self._value(node, dict(zip(names, values)), data[i]) for i, values in enumerate(zip(*columns))]
        return pa.array(found, arrow_type(node))

    def _value(self, node: Node, given: Mapping[str, Any], data: pa.Scalar) -> Mapping[str, Any] | None:
        kind = given.get("kind")
        if data.is_valid:
            raw = memoryview(data.as_buffer())
            pieces: Iterator[bytes] = (raw[i : i + _PIECE] for i in range(0, len(raw), _PIECE))  # type: ignore[misc]
            return self._put(node, len(raw), pieces)
        if given[FILE] is not None:
            size = given["size"]
            return self._put(node, size, self._sources.pieces(given[FILE], given["position"], size))
        if kind == EXTERNAL:
            return {name: given[name] for name in ("kind", "position", "size", "blob_id", "blob_uri")}
        if kind is not None:
            raise UnsupportedFeatureError(f"blobs of kind {kind} in `{node.name}`", where=self._uri)
        return None

    def _put(self, node: Node, size: int, pieces: Iterator[bytes]) -> Mapping[str, Any]:
        if self._version != "2.2":
            return {"position": self._writer.write_bytes(pieces) if size else 0, "size": size}
        inline, dedicated, most = (_limit(node, key) for key in _LIMITS)
        if size <= inline:
            place = (INLINE, self._writer.write_bytes(pieces) if size else 0, 0)
        elif size > dedicated:
            place = (DEDICATED, 0, self._alone(pieces))
        else:
            place = (PACKED, *self._among(size, most, pieces))
        kind, position, number = place
        return {"kind": kind, "position": position, "size": size, "blob_id": number, "blob_uri": ""}

    def _new(self) -> tuple[int, pa.NativeFile]:
        number = len(self.paths) + 1
        uri = beside(self._uri, number)
        self.paths.append(uri)
        return number, self._files.open_output(uri)

    def _alone(self, pieces: Iterator[bytes]) -> int:
        number, file = self._new()
        with file:
            for piece in pieces:
                file.write(piece)
        return number

    def _among(self, size: int, most: int, pieces: Iterator[bytes]) -> tuple[int, int]:
        """Position and number of the file."""
        if self._packed is not None and self._packed[2] + size > most:
            self._packed[1].close()
            self._packed = None
        number, file, at = self._packed or (*self._new(), 0)
        self._packed = (number, file, at + size)
        for piece in pieces:
            file.write(piece)
        return at, number

    def close(self) -> None:
        """Finishes the files beside the data file."""
        self._sources.close()
        if self._packed is not None:
            self._packed[1].close()

    def abort(self) -> None:
        """Leaves nothing beside the data file; never raises."""
        with suppress(BoathouseError, OSError, pa.ArrowException):
            self.close()
        for path in self.paths:
            with suppress(BoathouseError, OSError, pa.ArrowException):
                self._files.delete(path)


def _limit(node: Node, key: str) -> int:
    said = node.field.metadata.get(key, b"")
    return int(said) if said.isdigit() else _LIMITS[key]


class _Sources:
    """Files that blobs are copied from."""

    def __init__(self, files: DataFiles) -> None:
        self._files = files
        self._open: OrderedDict[str, pa.NativeFile] = OrderedDict()

    def pieces(self, uri: str, position: int, size: int) -> Iterator[bytes]:
        """The bytes from a position on. Raises CorruptTableError if there are fewer."""
        if not size:
            return
        file = self._file(uri)
        for at in range(position, position + size, _PIECE):
            wanted = min(_PIECE, position + size - at)
            piece = file.read_at(wanted, at)
            if len(piece) != wanted:
                raise CorruptTableError(f"a blob of {size:,} bytes at {position:,} ends before", where=uri)
            yield piece

    def _file(self, uri: str) -> pa.NativeFile:
        if uri not in self._open:
            self._open[uri] = self._files.open_input(uri)
            if len(self._open) > _OPEN:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(uri)
        return self._open[uri]

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

"""The container of data files: byte ranges, footer, offset tables, column metadata, global buffers."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.lance.file import messages as m
from boathouse.lance.file.plain import Bytes, Ints
from boathouse.lance.file.segments import Broken

MAGIC = b"LANC"
TAIL_BYTES = 64 << 10
DESCRIPTIONS: Final = 64
"""So many different descriptions of pages are kept: of thousands of columns most have the same ones."""
_GAP = 64 << 10  # ranges closer than this are read in one request
FOOTER = struct.Struct("<QQQIIHH4s")
VERSIONS = {(0, 1): "0.1", (0, 2): "0.1", (0, 3): "2.0", (2, 0): "2.0", (2, 1): "2.1", (2, 2): "2.2"}


class Input(Protocol):
    """The methods of a pyarrow file that are used."""

    def read_at(self, nbytes: int, offset: int) -> bytes: ...
    def size(self) -> int: ...
    def close(self) -> None: ...


class Files(Protocol):
    """Opens data files, on a driver or on an executor."""

    def open_input(self, uri: str, /) -> Input: ...


class Source:
    """Byte ranges of one file. Raises Broken for ranges outside it."""

    def __init__(self, file: Input, uri: str, size: int | None) -> None:
        self.uri = uri
        self._file = file
        self.recorded = size or None
        self.size = size if size else self._size_of(file)

    @staticmethod
    def _size_of(file: Input) -> int:
        size = file.size
        return int(size() if callable(size) else size)

    def measure(self) -> bool:
        """Requests the actual size; returns whether it differs from the given one."""
        before, self.size = self.size, self._size_of(self._file)
        return self.size != before

    def read(self, offset: int, size: int) -> Bytes:
        if offset < 0 or size < 0 or offset + size > self.size:
            raise Broken(f"bytes {offset} to {offset + size} of a file of {self.size}")
        if size == 0:
            return np.empty(0, np.uint8)
        raw = self._read(offset, size)
        if len(raw) != size:
            raise Broken(f"{len(raw)} bytes at {offset} instead of {size}: the file is shorter than recorded")
        return np.frombuffer(raw, np.uint8)

    def _read(self, offset: int, size: int) -> bytes:
        read_at = getattr(self._file, "read_at", None)
        if read_at is not None:
            raw: bytes = read_at(size, offset)
            return raw
        self._file.seek(offset)  # type: ignore[attr-defined]
        raw = self._file.read(size)  # type: ignore[attr-defined]
        return raw

    def read_many(self, offsets: Ints, sizes: Ints) -> Bytes:
        """Ranges in ascending order, concatenated; adjacent ones in one request."""
        if not len(offsets):
            return np.empty(0, np.uint8)
        ends = offsets + sizes
        cuts = np.flatnonzero(offsets[1:] - ends[:-1] > _GAP) + 1
        out = []
        for group in np.split(np.arange(len(offsets)), cuts):
            start, stop = int(offsets[group[0]]), int(ends[group[-1]])
            data = self.read(start, stop - start)
            if int(sizes[group].sum()) == stop - start:
                out.append(data)
            else:
                out.extend(data[a : a + n] for a, n in zip((offsets[group] - start).tolist(), sizes[group].tolist()))
        return out[0] if len(out) == 1 else np.concatenate(out)

    def read_spread(self, offsets: Ints, sizes: Ints) -> tuple[Bytes, Ints]:
        """Ranges in ascending order, near ones in one request with what is between them; where each begins."""
        ends = offsets + sizes
        cuts = np.flatnonzero(offsets[1:] - ends[:-1] > _GAP) + 1
        first, last = np.concatenate(([0], cuts)), np.concatenate((cuts, [len(offsets)])) - 1
        found = [self.read(a, b - a) for a, b in zip(offsets[first].tolist(), ends[last].tolist())]
        lengths = ends[last] - offsets[first]
        moved = np.cumsum(lengths) - lengths - offsets[first]
        starts = offsets + np.repeat(moved, last - first + 1)
        return found[0] if len(found) == 1 else np.concatenate(found), starts

    def close(self) -> None:
        self._file.close()


class Container:
    """Footer and tables of a 2.x file; column metadata is read on request."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._metadata: dict[int, m.ColumnMetadata] = {}
        self._read_tail()
        _, columns, buffers, n_global, self.columns, major, minor, _ = FOOTER.unpack(
            self._tail[-FOOTER.size :].tobytes()
        )
        self.version = version_of(major, minor, source.uri)
        if self.version == "0.1":
            return
        self._column_table = self._table(columns, self.columns)
        self._buffer_table = self._table(buffers, n_global)
        if not n_global:
            raise Broken("no global buffer with the schema")
        self.descriptor = m.FileDescriptor.decode(self.global_buffer(0).tobytes(), where=source.uri)

    def _read_tail(self) -> None:
        """The tail. Writers of 0.1 recorded wrong sizes, so the actual size of those files is requested."""
        source = self.source
        if self._tail_ends_well():
            return
        known = source.recorded
        if known is None or not source.measure() or not self._tail_ends_well():
            raise Broken("no Lance magic number at the end")
        major, minor = FOOTER.unpack(self._tail[-FOOTER.size :].tobytes())[5:7]
        if VERSIONS.get((major, minor)) != "0.1":
            raise Broken(f"a file of {source.size} bytes, recorded with {known}")

    def _tail_ends_well(self) -> bool:
        size = self.source.size
        self._start = max(0, size - TAIL_BYTES)
        try:
            self._tail = self.source.read(self._start, size - self._start)
        except Broken:
            return False
        return size >= FOOTER.size and self._tail[-4:].tobytes() == MAGIC

    def bytes(self, offset: int, size: int) -> Bytes:
        """A range, from the tail that is already read if it is inside."""
        if offset >= self._start and offset + size <= self.source.size:
            return self._tail[offset - self._start : offset - self._start + size]
        return self.source.read(offset, size)

    def _table(self, offset: int, entries: int) -> npt.NDArray[np.uint64]:
        if entries * 16 > self.source.size:
            raise Broken(f"a table of {entries} entries in a file of {self.source.size} bytes")
        return np.frombuffer(self.bytes(offset, entries * 16).tobytes(), "<u8").reshape(-1, 2)

    def global_buffer(self, index: int) -> Bytes:
        """Raises Broken if there is none."""
        if not 0 <= index < len(self._buffer_table):
            raise Broken(f"global buffer {index} of {len(self._buffer_table)}")
        offset, size = self._buffer_table[index].tolist()
        return self.bytes(offset, size)

    def column(self, index: int) -> m.ColumnMetadata:
        """The metadata of one column. Raises Broken if the column does not exist."""
        if not 0 <= index < self.columns:
            raise Broken(f"column {index} of {self.columns}")
        if index not in self._metadata:
            offset, size = self._column_table[index].tolist()
            self._metadata[index] = m.ColumnMetadata.decode(self.bytes(offset, size).tobytes(), where=self.source.uri)
        return self._metadata[index]

    def encoding(self, encoding: m.Encoding | None) -> m.AnyMessage:
        """The content of an encoding, inline or elsewhere in the file."""
        if encoding is not None and encoding.direct is not None:
            return _held(encoding.direct.encoding, self.source.uri)
        if encoding is not None and encoding.indirect is not None:
            raw = self.bytes(encoding.indirect.location, encoding.indirect.length)
            return m.AnyMessage.decode(raw.tobytes(), where=self.source.uri)
        raise Broken("a page without an encoding")


@lru_cache(DESCRIPTIONS)
def _held(encoded: bytes, where: str) -> m.AnyMessage:
    return m.AnyMessage.decode(encoded, where=where)


def version_of(major: int, minor: int, where: str) -> str:
    """The name of a file version. Raises UnsupportedFeatureError for unsupported versions."""
    version = VERSIONS.get((major, minor))
    if version is None:
        raise UnsupportedFeatureError(
            f"a Lance data file of version {major}.{minor}", where=where, advice="write the table with version 2.2"
        )
    return version


def corrupt(error: Exception, where: str, place: str = "") -> CorruptTableError:
    """The public error for bytes that violate the format."""
    text = f"{place}: {error}" if place else str(error)
    return CorruptTableError(text, where=where, advice="restore the file or delete the rows of its fragment")

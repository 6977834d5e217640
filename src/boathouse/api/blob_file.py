"""A value of a blob column as a file."""

from __future__ import annotations

import io
from typing import Any

from boathouse.errors import CorruptTableError, NotFoundError
from boathouse.storage import Stores
from boathouse.table.features.blobs import Span
from boathouse.table.tasks import missing_data_file


class BlobFile(io.RawIOBase):
    """A value of a blob column, as a file to read from: each read fetches the bytes that it returns, and nothing else.

    It has what a binary file has, as `read(n)`, `seek(offset, whence)`, `tell()` and `close()`, and `size()`.
    `io.BufferedReader(blob)` reads ahead, for many small reads. What goes wrong is raised where it is read:
    MissingFileError, CorruptTableError for a file that is too short, StorageError.
    """

    def __init__(self, stores: Stores, span: Span, version: str) -> None:
        self._stores, self._span, self._version = stores, span, version
        self._at = 0
        self._size = span.size

    def size(self) -> int:
        """How many bytes it has. Raises MissingFileError, StorageError."""
        self._open()
        if self._size is None:
            storage, key = self._stores.resolve(self._span.uri)
            try:
                self._size = storage.head(key).size - self._span.offset
            except NotFoundError as error:
                raise missing_data_file(self._version, self._span.uri) from error
        return self._size

    def readable(self) -> bool:
        """Whether it can be read: it can."""
        self._open()
        return True

    def seekable(self) -> bool:
        """Whether the next read can be moved: it can."""
        self._open()
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        self._open()
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves the next read, relative to the start, the current place or the end. Raises ValueError."""
        self._open()
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise ValueError(f"whence={whence!r} is none of 0, 1, 2")
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence)
        to = (self.size() if start is None else start) + offset
        if to < 0:
            raise ValueError(f"a place {-to} bytes before the start")
        self._at = to
        return to

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer as far as there are bytes. Raises MissingFileError, CorruptTableError, StorageError."""
        view = memoryview(buffer).cast("B")
        found = self._fetch(len(view))
        view[: len(found)] = found
        return len(found)

    def readall(self) -> bytes:
        """All bytes from here on, by one request. Raises MissingFileError, CorruptTableError, StorageError."""
        return self._fetch(self.size())

    def _fetch(self, count: int) -> bytes:
        count = min(count, self.size() - self._at)
        if count <= 0:
            return b""
        storage, key = self._stores.resolve(self._span.uri)
        try:
            found = storage.get_range(key, self._span.offset + self._at, count)
        except NotFoundError as error:
            raise missing_data_file(self._version, self._span.uri) from error
        if len(found) < count:
            raise CorruptTableError(
                f"a blob ends after {self._at + len(found):,} of {self.size():,} bytes", where=self._span.uri
            )
        self._at += count
        return found

    def _open(self) -> None:
        if self.closed:
            raise ValueError("the blob was closed")

    def __repr__(self) -> str:
        return f"BlobFile({self._span.uri!r}, offset={self._span.offset}, size={self._size})"

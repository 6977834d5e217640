"""One Parquet file of a checkpoint: opened from any store, described by its footer."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from boathouse.errors import NotFoundError, StorageError
from boathouse.parquet.errors import damage
from boathouse.storage import Storage

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class RangeFile(io.RawIOBase):
    """An object as a file with ranged reads."""

    def __init__(self, storage: Storage, key: str, size: int) -> None:
        self._storage, self._key, self._size, self._at = storage, key, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        length = self._size - self._at if size is None or size < 0 else size
        data = self._storage.get_range(self._key, self._at, length) if length > 0 else b""
        self._at += len(data)
        return data


def open_parquet(storage: Storage, key: str, size: int, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Opens a Parquet file of the log. Raises CorruptTableError, NotFoundError, StorageError."""
    import pyarrow.parquet as pq  # noqa: PLC0415  # not loaded for the many tables that have no checkpoint yet

    uri = storage.uri(key)
    with damage("not a readable checkpoint file", uri):
        if uri.startswith("file:///"):
            return pq.ParquetFile(_local_file(uri), metadata=metadata)
        source = pa.PythonFile(RangeFile(storage, key, size), mode="r")
        return pq.ParquetFile(source, metadata=metadata, pre_buffer=True)


def _local_file(uri: str) -> pa.OSFile:
    try:
        return pa.OSFile(uri[len("file://") :])
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise NotFoundError("the checkpoint file is missing", where=uri) from error
    except OSError as error:
        if error.errno is None:  # a folder: damage of the table
            raise
        raise StorageError(f"the checkpoint file cannot be opened: {error}", where=uri) from error


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file with actions, described by its footer; `first` is the number of its first row in the
    checkpoint."""

    storage: Storage
    key: str
    size: int
    metadata: pq.FileMetaData
    first: int
    leaves: Mapping[str, int]
    """Leaf columns by their dotted paths."""
    schema: pa.Schema
    """The file's schema in Arrow."""

    @classmethod
    def of(cls, storage: Storage, key: str, size: int, file: pq.ParquetFile, first: int) -> Part:
        """Of the open file."""
        schema = file.metadata.schema
        leaves: dict[str, int] = {}
        for i in range(len(schema.names)):
            leaves.setdefault(schema.column(i).path, i)
        return cls(storage, key, size, file.metadata, first, leaves, file.schema_arrow)

    @property
    def uri(self) -> str:
        return self.storage.uri(self.key)

    @property
    def rows(self) -> int:
        return int(self.metadata.num_rows)

    def open(self) -> pq.ParquetFile:
        """Opened again for every reader: listings may run concurrently."""
        return open_parquet(self.storage, self.key, self.size, self.metadata)

    def leaf(self, *path: str) -> int | None:
        """The number of a leaf column."""
        return self.leaves.get(".".join(path))

    @property
    def needs_parsed(self) -> bool:
        """Whether some files have statistics only as a struct."""
        if not any(path.startswith("add.stats_parsed.") for path in self.leaves):
            return False
        texts = self.nulls("add", "stats")
        return texts < 0 or texts > self.nulls("add", "path")

    def groups(self, leaf: int | None) -> Iterator[int]:
        """Row groups in which the leaf is not always null, as far as statistics show."""
        if leaf is None:
            return
        for i in range(self.metadata.num_row_groups):
            group = self.metadata.row_group(i)
            stats = group.column(leaf).statistics
            if stats is not None and stats.has_null_count and stats.null_count >= group.num_rows:
                continue
            yield i

    def nulls(self, *path: str) -> int:
        """The number of nulls of a leaf column; -1 if it is absent or has no statistics."""
        leaf, found = self.leaf(*path), 0
        for i in range(self.metadata.num_row_groups if leaf is not None else 0):
            stats = self.metadata.row_group(i).column(leaf).statistics
            if stats is None or not stats.has_null_count:
                return -1
            found += stats.null_count
        return -1 if leaf is None else found

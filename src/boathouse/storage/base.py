"""The interface of object stores: `Storage`, and its argument and result types.

A key is raw text relative to the storage's root (the bucket, or `/` on the local disk), never percent-encoded,
with `/` between segments and none at either end. Folders exist only as prefixes of keys.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self, TypeAlias, runtime_checkable

Wanted: TypeAlias = Callable[[Sequence[str]], Collection[str]]
Bytes: TypeAlias = bytes | bytearray | memoryview


class PutMode(enum.Enum):
    """How a write treats a key that already exists."""

    OVERWRITE = "overwrite"
    CREATE = "create"  # put-if-absent, atomic between processes, or AlreadyExistsError


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One stored object: size in bytes, last change in milliseconds since 1970 UTC, the store's entity tag (ETag)."""

    key: str
    size: int
    modified_ms: int
    etag: str | None = None

    def certainly(self, other: ObjectInfo | None) -> bool:
        """Whether the other one is certainly the same object with the same bytes."""
        return self == other and self.etag is not None


class Writer(ABC):
    """A file-like sink whose object appears, whole, when `close` returns, and never otherwise.

    Leaving the `with` block by an exception aborts. A writer that is dropped without `close` aborts as well.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.closed = False
        self._written = 0

    def write(self, data: Bytes) -> int:
        """Appends; returns the number of bytes written (always all of them)."""
        if self.closed:
            raise ValueError(f"write to a closed writer of {self.uri}")
        size = memoryview(data).nbytes
        self._append(data)
        self._written += size
        return size

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:  # noqa: B027
        """Does nothing: no part of an object is visible before `close`."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Publishes the object. AlreadyExistsError with `PutMode.CREATE`; no error leaves anything of ours behind,
        except UndecidedError, after which the object may exist."""
        if not self.closed:
            self.closed = True
            self._publish()

    def abort(self) -> None:
        """Discards what was written; does nothing after `close`."""
        if not self.closed:
            self.closed = True
            self._discard()

    @abstractmethod
    def _append(self, data: Bytes) -> None: ...

    @abstractmethod
    def _publish(self) -> None: ...

    @abstractmethod
    def _discard(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        if not getattr(self, "closed", True):
            self.abort()


@runtime_checkable
class Storage(Protocol):
    """A bucket, or the local disk. Every method may raise StorageError, or UndecidedError (time-out, 5xx, connection
    lost: a write may or may not have taken effect); `where` of an error is the URI. Safe to share between threads.
    """

    @property
    def atomic_create(self) -> bool:
        """Whether `PutMode.CREATE` is atomic here: if not, tables must not be committed to this store."""
        ...

    @property
    def page(self) -> int:
        """As many objects one request of `list` describes; on a disk each is another one."""
        ...

    def uri(self, key: str) -> str:
        """The canonical URI of `key` (see `boathouse.storage.uris`)."""
        ...

    def get(self, key: str) -> bytes:
        """The whole object. NotFoundError, also for a folder."""
        ...

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """`data[start:][:length]` of the object's bytes: a negative `start` counts from the end, and a range that
        extends beyond the object is clipped. NotFoundError."""
        ...

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """`get_range` of each (start, length), in the given order, adjacent ones fetched together. NotFoundError."""
        ...

    def head(self, key: str) -> ObjectInfo:
        """NotFoundError, also for a folder."""
        ...

    def exists(self, key: str) -> bool:
        """Whether `head` would find an object; False for a folder."""
        ...

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[ObjectInfo]:
        """All objects in the folder `prefix` ("" is the root) and below, sorted by key (by code point, which is the
        order of the UTF-8 bytes), without those up to and including the key `start_after`. Nothing if there is no such
        folder."""
        ...

    def holds(self, prefix: str) -> bool:
        """Whether `list` would find an object."""
        ...

    def list_dir(self, prefix: str, wanted: Wanted | None = None) -> tuple[Sequence[str], Sequence[ObjectInfo]]:
        """One level: keys of the folders in `prefix` without a `/` at the end, and the objects in it, both sorted.

        `wanted` is given the names of all objects, and says which of them are looked at: on a disk, each is a request.
        """
        ...

    def put(self, key: str, data: Bytes, mode: PutMode = PutMode.OVERWRITE) -> None:
        """Writes the whole object at once: readers see either the old bytes or the new ones. AlreadyExistsError with
        CREATE; UnsafeStorageError if the store cannot create atomically."""
        ...

    def open_write(self, key: str, mode: PutMode = PutMode.OVERWRITE) -> Writer:
        """A writer for an object too large for memory; it is visible once closed."""
        ...

    def delete(self, keys: Iterable[str]) -> None:
        """Removes objects; missing keys are ignored."""
        ...


def folder_prefix(prefix: str) -> str:
    """The string that every key inside the folder `prefix` begins with."""
    stripped = prefix.strip("/")
    return stripped + "/" if stripped else ""


def looked_at(infos: Sequence[ObjectInfo], inside: str, wanted: Wanted | None) -> list[ObjectInfo]:
    """The objects of the folder `inside` that are wanted, where listing them said everything about all."""
    if wanted is None:
        return [*infos]
    names = wanted([info.key[len(inside) :] for info in infos])
    return [info for info in infos if info.key[len(inside) :] in names]


def slice_of(data: bytes, start: int, length: int) -> bytes:
    """`data[start:][:length]`, a negative start is clipped to the beginning."""
    begin = max(len(data) + start, 0) if start < 0 else start
    return data[begin : begin + max(length, 0)]

"""Objects in memory, shared in the process by name: `memory://name/key`."""

from __future__ import annotations

import builtins
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from boathouse.bits import system
from boathouse.errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from boathouse.storage.base import Bytes, ObjectInfo, PutMode, Wanted, Writer, folder_prefix, looked_at, slice_of


@dataclass(frozen=True, slots=True)
class _Held:
    data: bytes
    modified_ms: int
    etag: str


class MemoryStorage:
    """A bucket in memory. `MemoryStorage.named(name)` is the one that `memory://name/` resolves to."""

    page = 1000
    atomic_create = True

    _named: dict[str, MemoryStorage] = {}
    _naming = threading.Lock()

    def __init__(self, name: str) -> None:
        self.name = name
        self._objects: dict[str, _Held] = {}
        self._lock = threading.Lock()
        self._puts = 0

    @classmethod
    def named(cls, name: str) -> MemoryStorage:
        """The process-wide store of this name, created at first use."""
        with cls._naming:
            return cls._named.setdefault(name, cls(name))

    def __repr__(self) -> str:
        return f"MemoryStorage({self.name!r})"

    def uri(self, key: str) -> str:
        return f"memory://{self.name}/{key}" if key else f"memory://{self.name}"

    def get(self, key: str) -> bytes:
        return self._held(key).data

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return slice_of(self._held(key).data, start, length)

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> builtins.list[bytes]:
        data = self._held(key).data
        return [slice_of(data, start, length) for start, length in ranges]

    def head(self, key: str) -> ObjectInfo:
        return _info(key, self._held(key))

    def exists(self, key: str) -> bool:
        return key in self._objects

    def list(self, prefix: str, start_after: str | None = None) -> Iterator[ObjectInfo]:
        inside = folder_prefix(prefix)
        with self._lock:
            keys = sorted(self._objects)
            begin = bisect_left(keys, inside)
            if start_after is not None:
                begin = max(begin, bisect_right(keys, start_after))
            held = [(key, self._objects[key]) for key in keys[begin:] if key.startswith(inside)]
        return (_info(key, value) for key, value in held)

    def holds(self, prefix: str) -> bool:
        return next(self.list(prefix), None) is not None

    def list_dir(
        self, prefix: str, wanted: Wanted | None = None
    ) -> tuple[builtins.list[str], builtins.list[ObjectInfo]]:
        inside = folder_prefix(prefix)
        folders: dict[str, None] = {}
        files: builtins.list[ObjectInfo] = []
        for info in self.list(prefix):
            first, slash, _ = info.key[len(inside) :].partition("/")
            if slash:
                folders[inside + first] = None
            else:
                files.append(info)
        return sorted(folders), looked_at(files, inside, wanted)

    def put(self, key: str, data: Bytes, mode: PutMode = PutMode.OVERWRITE) -> None:
        if not key:
            raise InvalidArgumentError("An empty key does not name an object.", where=self.uri(key))
        content = bytes(data)
        now = system.current().now_ms()
        with self._lock:
            if mode is PutMode.CREATE and key in self._objects:
                raise AlreadyExistsError("The object already exists.", where=self.uri(key))
            self._puts += 1
            self._objects[key] = _Held(content, now, f"m{self._puts}")

    def open_write(self, key: str, mode: PutMode = PutMode.OVERWRITE) -> Writer:
        return _MemoryWriter(self, key, mode)

    def delete(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._objects.pop(key, None)

    def _held(self, key: str) -> _Held:
        try:
            return self._objects[key]
        except KeyError:
            raise NotFoundError("The object does not exist.", where=self.uri(key)) from None


def _info(key: str, held: _Held) -> ObjectInfo:
    return ObjectInfo(key, len(held.data), held.modified_ms, held.etag)


class _MemoryWriter(Writer):
    def __init__(self, storage: MemoryStorage, key: str, mode: PutMode) -> None:
        super().__init__(storage.uri(key))
        self._storage, self._key, self._mode = storage, key, mode
        self._parts: list[bytes] = []

    def _append(self, data: Bytes) -> None:
        self._parts.append(bytes(data))

    def _publish(self) -> None:
        self._storage.put(self._key, b"".join(self._parts), self._mode)
        self._parts = []

    def _discard(self) -> None:
        self._parts = []

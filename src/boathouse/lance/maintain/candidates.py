"""Files that may go, and what takes them out again: what any version that stays needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from boathouse.lance.maintain.needs import FOLDERS, Need, below, folder_of
from boathouse.storage import Storage
from boathouse.table.features.expiry import HeldFile


class Candidates:
    """Files and folders below a root, by their paths there; those of other tables are never among them."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._found: dict[str, HeldFile] = {}
        self._names: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def take(self, needs: Iterable[Need]) -> None:
        for uri, kind, size in needs:
            path = below(uri, self._root)
            if path and path.partition("/")[0] in FOLDERS:
                self._found[path] = HeldFile(kind, size)
                self._names[_name(path)] = path

    def subtract(self, needs: Iterable[Need]) -> None:
        """A file elsewhere keeps the one that has its name: the table's own folder may have two."""
        for uri, _, _ in needs:
            path = below(uri, self._root)
            if path is None:
                path = self._names.get(_name(uri), "")
            self._found.pop(path, None)

    def files(self, storage: Storage, key: str) -> Iterator[tuple[str, HeldFile]]:
        """What is left, by URI: of folders the files that are there. `key` is that of the root."""
        start = f"{key}/" if key else ""
        for path, held in self._found.items():
            if not path.endswith("/"):
                yield f"{self._root}/{path}", held
                continue
            for info in storage.list(start + path.rstrip("/")):
                if folder_of(info.key[len(start) :]) == path:
                    yield storage.uri(info.key), HeldFile(held.kind, info.size)

    def still(self, uri: str) -> bool:
        """Whether a file of them, or its folder, is left."""
        path = below(uri, self._root) or ""
        return path in self._found or folder_of(path) in self._found


def _name(path: str) -> str:
    """The last part; names of files and of folders of versions are random."""
    return path.rstrip("/").rpartition("/")[2]

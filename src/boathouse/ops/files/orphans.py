"""Files that no version needs: what a listing of the table's folder, or its metadata, has beyond what is retained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from boathouse import registry
from boathouse.errors import NotFoundError
from boathouse.storage import ObjectInfo, Storage
from boathouse.storage.local import LocalStorage
from boathouse.table.features import Retention
from boathouse.table.snapshot import Snapshot

_REQUESTS: Final = 16
"""Listings and look-ups at a time: they wait for the store."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """`sizes` are the bytes of each file, by its path below the root; `folders` is how many were searched."""

    sizes: dict[str, int]
    folders: int = 0

    def without(self, kept: Iterable[pa.Array]) -> Garbage:
        """The files that are not among these: paths, or absolute URIs.

        The table's own folder may have two names, so a URI elsewhere also keeps the files that are named alike.
        """
        elsewhere = set()
        for paths in kept:
            for path in paths.to_pylist():
                self.sizes.pop(path, None)
                if "://" in path:
                    elsewhere.add(path.rpartition("/")[2])
        if elsewhere:
            for path in [p for p in self.sizes if p.rpartition("/")[2] in elsewhere]:
                del self.sizes[path]
        return self


def _plain(path: str) -> bool:
    return not path.rpartition("/")[2].startswith((".", "_"))


def listed(
    snapshot: Snapshot,
    searched: Callable[[str], bool],
    before_ms: int,
    kept: Iterable[pa.Array],
    own: Callable[[str], bool] = _plain,
) -> Garbage:
    """Files in the table's folders, as far as `searched` says so of a folder and `own` of a path in it, that were last
    modified before then and are not among those that are kept, which are asked for after the listing."""
    storage, root = snapshot.context.stores.resolve(snapshot.context.location.uri)
    folders, files = storage.list_dir(root)
    marks = frozenset(m for n in registry.FORMATS if (m := registry.signs(n).mark) is not None)
    found = _Found(storage, f"{root}/" if root else "", searched, own, before_ms, marks)
    found.take(files)
    inside = [f for f in folders if searched(f[len(found.root) :])]
    if snapshot.context.location.uri.startswith("file:"):  # nothing to wait for
        for folder in inside:
            found.take(storage.list(folder))
    else:
        with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="boathouse") as pool:
            for part in pool.map(found.below, inside):
                found.add(part)
    if isinstance(storage, LocalStorage):
        found.files.update({i.key[len(found.root) :]: i.size for i in storage.abandoned(root)})
    folders_seen = {"", *(folder for folder, yes in found.folders.items() if yes)}
    return Garbage(found.own(), len(folders_seen)).without(kept)


def recorded(snapshot: Snapshot, retention: Retention, before_ms: int) -> Garbage:
    """Files that the table's metadata records as removed before then, as far as they still exist."""
    paths = dict.fromkeys(retention.expired(before_ms), 0)
    gone = Garbage(paths).without(retention.kept(before_ms)).sizes
    storage, root = snapshot.context.stores.resolve(snapshot.context.location.uri)

    def size(path: str) -> int | None:
        try:
            return storage.head(f"{root}/{path}" if root else path).size
        except NotFoundError:
            return None

    with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="boathouse") as pool:
        sizes = zip(gone, pool.map(size, gone), strict=True)
        return Garbage({path: size for path, size in sizes if size is not None})


@dataclass(slots=True)
class _Found:
    """Old files by their paths, and the roots of other tables, which have a folder that marks them."""

    storage: Storage
    root: str
    searches: Callable[[str], bool]
    is_own: Callable[[str], bool]
    before_ms: int
    marks: frozenset[str]
    files: dict[str, int] = field(default_factory=dict)
    tables: set[str] = field(default_factory=set)
    folders: dict[str, bool] = field(default_factory=dict)

    def below(self, folder: str) -> _Found:
        found = _Found(self.storage, self.root, self.searches, self.is_own, self.before_ms, self.marks)
        found.take(self.storage.list(folder))
        return found

    def take(self, infos: Iterable[ObjectInfo]) -> None:
        start = len(self.root)
        for info in infos:
            path = info.key[start:]
            folder = path.rpartition("/")[0]
            searched = self.folders.get(folder)
            if searched is None:
                searched = self.folders[folder] = self.searches(folder)
                self.tables.update(_tables_above(folder, self.marks))
            if searched and info.modified_ms < self.before_ms and self.is_own(path):
                self.files[path] = info.size

    def add(self, other: _Found) -> None:
        self.files.update(other.files)
        self.tables |= other.tables
        self.folders |= other.folders

    def own(self) -> dict[str, int]:
        """The files that are not in another table."""
        within = tuple(f"{t}/" for t in self.tables)
        return {p: size for p, size in self.files.items() if not p.startswith(within)} if within else self.files


def _tables_above(folder: str, marks: frozenset[str]) -> Iterator[str]:
    """The roots of tables below ours that this folder, which has files, shows to exist."""
    names = folder.split("/")
    for i, name in enumerate(names):
        if i and name in marks:
            yield "/".join(names[:i])

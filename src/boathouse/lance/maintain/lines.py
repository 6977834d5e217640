"""Every version that is there: of the main line and of branches, which may need files of each other; detached ones; and
staged ones that are newer, which an external store may name as the newest version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from boathouse.errors import CorruptTableError, NotFoundError
from boathouse.lance.external.finish import repair
from boathouse.lance.manifests import features
from boathouse.lance.manifests.file import ManifestFile, parse, parse_header
from boathouse.lance.manifests.names import final_name, numbered, store_name
from boathouse.lance.manifests.versions import VERSIONS, parse_name
from boathouse.lance.refs.files import TREE, of_main
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import LocalStorage, ObjectInfo, Storage, join
from boathouse.table.context import TableContext

_DETACHED: Final = re.compile(r"d\d+\.manifest")
_REQUESTS: Final = 16
"""Manifests that are read at a time: they wait for the store."""
_TOGETHER: Final = 64


@dataclass(frozen=True, slots=True)
class Kept:
    """A manifest: its key, its version (None: detached, or staged and newer), its size, and whether it is staged."""

    key: str
    version: int | None
    size: int
    staged: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """The manifests of one place, `own`, and by their roots those of the table's other lines."""

    root: str
    own: tuple[Kept, ...]
    others: dict[str, tuple[Kept, ...]]

    @property
    def besides(self) -> Iterator[tuple[str, Kept]]:
        """Each manifest that is no version of this line, with its root."""
        yield from ((self.root, kept) for kept in self.own if kept.version is None)
        yield from ((root, kept) for root, line in self.others.items() for kept in line)


def lines(snapshot: LanceSnapshot) -> Lines:
    """The manifests that are there now. A branch that is being made, and one that is half dropped, count too.

    Raises CorruptTableError if neither the snapshot's version nor a later one is there: without it nothing would be
    needed.
    """
    context = snapshot.context
    own = context.location.uri
    main = of_main(context, snapshot.manifest.branch).location.uri
    storage, folder = context.stores.resolve(join(main, VERSIONS))
    found: dict[str, list[ObjectInfo]] = {}
    for infos in (storage.list(folder), storage.list(context.stores.resolve(join(main, TREE))[1])):
        for info in infos:
            root, _, name = info.key.rpartition("/")[0].rpartition("/")
            if name == VERSIONS:
                found.setdefault(storage.uri(root), []).append(info)
    kept = {root: tuple(_kept(context, root, infos)) for root, infos in found.items()}
    lines = Lines(own, kept.pop(own, ()), kept)
    if not any(k.version is not None and k.version >= snapshot.version for k in lines.own):
        raise CorruptTableError(f"version {snapshot.version} is not listed any more", where=own)
    return lines


def _kept(context: TableContext, root: str, infos: Sequence[ObjectInfo]) -> Iterator[Kept]:
    versions = {info.key: found.version for info in infos if (found := parse_name(info.key)) is not None}
    newest = max(versions.values(), default=0)
    staged = {info.key: version for info in infos if (version := _staged(info.key)) is not None}
    named = _named(context, root, {key: version for key, version in staged.items() if version <= newest})
    for info in infos:
        if info.key in versions:
            yield Kept(info.key, versions[info.key], info.size)
        elif _DETACHED.fullmatch(info.key.rpartition("/")[2]):
            yield Kept(info.key, None, info.size)
        elif staged.get(info.key, 0) > newest or info.key in named:
            yield Kept(info.key, None, info.size, staged=True)


def _staged(key: str) -> int | None:
    name = final_name(key.rpartition("/")[2])
    found = None if name is None else numbered(name)
    return None if found is None else found[0]


def _named(context: TableContext, root: str, staged: Mapping[str, int]) -> frozenset[str]:
    """Those that the table's manifest store names even though there are newer versions: if the final manifest is there,
    the store is told so, and then names that."""
    if not staged or store_name(context) is None:
        return frozenset()
    line = replace(context, location=replace(context.location, uri=root))
    return repair(line, staged)


Broken = Callable[[Kept, CorruptTableError], None]


def documents(
    storage: Storage, found: Sequence[tuple[str, Kept]], broken: Broken | None = None
) -> Iterator[tuple[str, Kept, ManifestFile]]:
    """Each of the manifests, with its root, that are still there, parsed.

    One that is staged may be half of one; of any other that cannot be read `broken` is told, or it is an error, since
    what it needs is not known. Raises CorruptTableError, UnsupportedFeatureError.
    """
    for root, kept, body in _read(storage, found):
        where = storage.uri(kept.key)
        try:
            document = parse(body, where=where)
        except CorruptTableError as error:
            if broken is None and not kept.staged:
                raise _unknown(error, where) from error
            if broken is not None:
                broken(kept, error)
            continue
        features.check_readable(document.manifest, where)
        yield root, kept, document


def times(storage: Storage, found: Sequence[tuple[str, Kept]]) -> Iterator[tuple[Kept, int]]:
    """When each of the manifests that are still there was made, in milliseconds. Raises as `documents`."""
    for _, kept, body in _read(storage, found):
        where = storage.uri(kept.key)
        try:
            header = parse_header(body, where=where)
        except CorruptTableError as error:
            raise _unknown(error, where) from error
        features.check_readable(header, where)
        yield kept, header.timestamp.ms if header.timestamp else 0


def _read(storage: Storage, found: Sequence[tuple[str, Kept]]) -> Iterator[tuple[str, Kept, bytes]]:
    def data(kept: Kept) -> bytes | None:
        try:
            return storage.get(kept.key)
        except NotFoundError:  # cleaned up since the listing
            return None

    with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="boathouse") as pool:
        # On a disk there is nothing to wait for.
        run = map if isinstance(storage, LocalStorage) else pool.map
        for i in range(0, len(found), _TOGETHER):
            part = found[i : i + _TOGETHER]
            for (root, kept), body in zip(part, run(data, [kept for _, kept in part]), strict=True):
                if body is not None:
                    yield root, kept, body


def _unknown(error: CorruptTableError, where: str) -> CorruptTableError:
    return CorruptTableError(
        f"which files a version needs is not known: {error.message}",
        where=where,
        advice="restore the file, or let it expire by its number: expire_snapshots(snapshot_ids=[...])",
    )

"""The locations of metadata files, and the paths inside them.

Paths in metadata are raw and should be absolute with a scheme; in practice the scheme may be missing or spelled
differently, or the path relative. A relocated table is read by replacing the folders that it was told.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits import system
from boathouse.bits.inflate import Budget
from boathouse.errors import BoathouseError, CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.storage import ObjectInfo, Stores, absolute, basename, join, parent, relative
from boathouse.table.context import TableContext

METADATA_FOLDER: Final = "metadata"
HINT: Final = "version-hint.text"
_FILE_SYSTEM = re.compile(r"v(\d+)(?:\.gz)?\.metadata\.json|v(\d+)\.metadata\.json\.gz")
_MARK: Final = ".metadata.json"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")
_CATALOG = re.compile(r"(\d+)-[0-9A-Za-z-]+(?:\.gz)?\.metadata\.json(?:\.gz)?")


@dataclass(frozen=True, slots=True)
class MetadataFiles:
    """The metadata documents in a table's folder: those of a file-system table, and those of a catalog's."""

    file_system: tuple[tuple[int, str], ...]
    catalog: tuple[tuple[int, str], ...]
    infos: Mapping[str, ObjectInfo] = field(default_factory=dict)
    """The objects by URI that were looked at."""

    def newest(self) -> tuple[int, str] | None:
        """The head of a file-system table: by listing, regardless of version-hint.text."""
        if not self.file_system:
            return None
        number, uri = self.file_system[-1]
        rivals = [u for n, u in self.file_system if n == number]
        if len(rivals) > 1:
            raise CorruptTableError(
                f"version {number} exists twice: {', '.join(basename(u) for u in rivals)}",
                where=uri,
                advice="find out which writer changed the compression of metadata, and remove the unused file",
            )
        return number, uri


def list_metadata(context: TableContext, known: str | None = None) -> MetadataFiles:
    """One listing of the table's `metadata` folder, sorted by number. Looked at are the newest documents, and the one
    of the URI `known`."""
    storage, key = context.stores.resolve(join(context.location.uri, METADATA_FOLDER))
    file_system: dict[str, int] = {}
    catalog: dict[str, int] = {}
    looked_at: set[str] = set()

    def wanted(names: Sequence[str]) -> Collection[str]:
        for name in [n for n in names if _MARK in n]:
            if m := _FILE_SYSTEM.fullmatch(name):
                file_system[name] = int(m[1] or m[2])
            elif m := _CATALOG.fullmatch(name):
                catalog[name] = int(m[1])
        looked_at.update({basename(known)}.intersection(names) if known is not None else (), _newest(file_system))
        looked_at.update(_newest(catalog))
        return looked_at

    listed = storage.list_dir(key, wanted)[1]
    infos = {storage.uri(info.key): info for info in listed}
    for gone in looked_at.difference(basename(uri) for uri in infos):
        file_system.pop(gone, None)
        catalog.pop(gone, None)
    folder = storage.uri(key)
    return MetadataFiles(
        tuple(sorted((i, f"{folder}/{name}") for name, i in file_system.items())),
        tuple(sorted((i, f"{folder}/{name}") for name, i in catalog.items())),
        infos,
    )


def _newest(numbers: Mapping[str, int]) -> list[str]:
    last = max(numbers.values(), default=0)
    return [name for name, number in numbers.items() if number == last]


def version_of(uri: str) -> int | None:
    """N of `v<N>.metadata.json` in any of its forms; None for other names."""
    m = _FILE_SYSTEM.fullmatch(basename(uri))
    return int(m[1] or m[2]) if m else None


def next_uri(head: str) -> str:
    """The name of the version after `head`, in the same form."""
    name = basename(head)
    number = version_of(head)
    if number is None:
        raise CorruptTableError(f"{name} is not a version of a file-system table", where=head)
    return join(parent(head), f"v{number + 1}{name[len(f'v{number}') :]}")


def next_of_catalog(head: str, named: str | None = None) -> str:
    """The name of the version after `head` in a catalog's table: only the catalog knows which one is current, so that
    it needs no put-if-absent. `named` is the table's property `write.metadata.path`."""
    number = _CATALOG.fullmatch(basename(head))
    count = 0 if number is None else int(number[1]) + 1
    folder = (_canonical(named) if named else None) or parent(head)
    return join(folder, f"{count:05d}-{system.current().uuid4()}.metadata.json")


def compressed(uri: str) -> bool:
    return ".gz" in basename(uri)


def read_bytes(stores: Stores, uri: str) -> bytes:
    """A file, decompressed if it is gzip, regardless of its name."""
    storage, key = stores.resolve(uri)
    return decompressed(storage.get(key), uri)


def decompressed(data: bytes, uri: str) -> bytes:
    """The bytes of a metadata file, decompressed if they are gzip. Raises CorruptTableError."""
    if data[:2] != b"\x1f\x8b":
        return data
    return Budget(len(data), uri).gzip(data)


Relocated = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Paths:
    """Turns recorded paths into URIs. `recorded` is the location in the metadata, `root` the actual one; `relocated`
    are folders that metadata names, and where they are, the longest first."""

    recorded: str
    root: str
    moved: bool
    relocated: Relocated = ()

    @classmethod
    def of(
        cls, recorded: str, root: str, metadata_uri: str, metadata_path: str | None = None, relocated: Relocated = ()
    ) -> Paths:
        """`metadata_path` is the property write.metadata.path: metadata may be outside the location.

        Raises UnsupportedFeatureError for a table that is not where its metadata says, nor where `relocated` leads: the
        files that it names may be those of another table.
        """
        recorded = recorded.rstrip("/")
        canonical = _canonical(recorded)
        longest = tuple(sorted(relocated, key=lambda pair: -len(pair[0])))
        there = led_by(canonical or recorded, longest)
        if there is not None:
            return cls(recorded, there, True, longest)
        if canonical is None:
            return cls(recorded, root, True, longest)
        homes = [canonical] + ([h] if metadata_path and (h := _canonical(metadata_path)) else [])
        if canonical == root or any(relative(metadata_uri, home) is not None for home in homes):
            return cls(recorded, canonical, False, longest)
        if _linked(canonical, root):
            return cls(recorded, canonical, False, longest)
        raise UnsupportedFeatureError(
            f"the table's metadata says that it is at {recorded}, and it is at {root}",
            where=metadata_uri,
            advice=f"if its files were copied along, open it with relocated={{{recorded!r}: {root!r}}}; "
            f"if they are still there, with relocated={{{recorded!r}: {recorded!r}}}",
        )

    def uri(self, path: str) -> str:
        """The URI of a path in metadata. Raises CorruptTableError for one that does not name a file, and
        UnsupportedFeatureError for an unsupported scheme."""
        if not path or "\0" in path:
            raise CorruptTableError(f"the path {path!r:.80} does not name a file", where=self.root)
        prefix = self.recorded
        if not self.relocated and path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] == "/":
            return self.root + path[len(prefix) :]
        found = _canonical(path)
        if found is not None:
            return led_by(found, self.relocated) or found
        if _URI.match(path):
            there = led_by(path, self.relocated)
            if there is not None:
                return there
            try:
                absolute(path)
            except InvalidArgumentError as error:
                raise CorruptTableError(
                    f"the path {path!r:.200} does not name a file: {error.message}", where=self.root
                ) from None
        base = posixpath.normpath(prefix)
        plain = posixpath.normpath(path)
        if plain.startswith(base + "/"):
            return self.root + plain[len(base) :]
        home = self._folder_of(base, plain)
        if home is not None:
            return home + plain
        raise CorruptTableError(
            f"the path {path!r:.200} is relative, but not below the table's {prefix!r:.200}", where=self.root
        )

    def uris(self, paths: pa.Array) -> pa.Array:
        """The URIs of many paths, which mostly begin with the table's location."""
        if self.relocated:
            return pa.array([self.uri(p) for p in paths.to_pylist()], pa.string())
        beginning = self.recorded + "/"
        below = pc.and_not(pc.starts_with(paths, beginning), pc.match_substring(paths, "\0"))
        if not pc.all(below).as_py():
            return pa.array([self.uri(p) for p in paths.to_pylist()], pa.string())
        if self.root == self.recorded:
            return paths
        return pc.binary_replace_slice(paths, 0, len(self.recorded.encode()), self.root)

    def _folder_of(self, base: str, plain: str) -> str | None:
        """The folder that a relative path starts from, derived from the table's own location."""
        if self.root.endswith("/" + base) and not plain.startswith("../"):
            return self.root[: -len(base)]
        parts = plain.split("/")
        for i in range(len(parts) - 1, 0, -1):
            beginning = "/".join(parts[:i])
            if self.root.endswith("/" + beginning):
                return self.root[: -len(beginning)]
        return None


def led_by(uri: str, relocated: Relocated) -> str | None:
    """Where the first of these folders that has the URI leads it; None if none has it. URIs of a scheme without a store
    are compared as texts."""
    known = _canonical(uri) is not None
    for before, now in relocated:
        if known != (_canonical(before) is not None):
            continue
        below = relative(uri, before) if known else _below(uri, before)
        if below is not None:
            return join(now, below) if below else now
    return None


def _below(text: str, folder: str) -> str | None:
    if text.rstrip("/") == folder:
        return ""
    return text[len(folder) + 1 :] if text.startswith(folder + "/") else None


def _linked(one: str, other: str) -> bool:
    """Whether two folders of the local disk are one, by way of links."""
    local = "file://"
    if not (one.startswith(local) and other.startswith(local)):
        return False
    return os.path.realpath(one.removeprefix(local)) == os.path.realpath(other.removeprefix(local))


def _canonical(path: str) -> str | None:
    """The canonical URI of an absolute path or URI; None for a relative one."""
    if not path or not (path.startswith("/") or ":/" in path):
        return None
    try:
        return absolute(path)
    except BoathouseError:
        return None

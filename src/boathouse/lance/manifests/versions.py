"""The files of `_versions`: which versions exist, and their naming scheme.

V1 is `{version}.manifest`; V2 is `{u64::MAX - version:020}.manifest`, so that the newest sorts first. Detached
versions (`d...`), staged names (`....manifest-{uuid}`) and the version hint are not versions of the main line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from boathouse.errors import CorruptTableError, VersionNotFoundError
from boathouse.storage import ObjectInfo, Storage, join
from boathouse.table.context import TableContext
from boathouse.table.location import Location

Scheme = Literal["V1", "V2"]
VERSIONS = "_versions"
_NAME = re.compile(r"(\d{1,20})\.manifest")
_MAX = (1 << 64) - 1
_V2_DIGITS = 20
FEW = 16
"""So many of the newest files are looked at on a disk."""
_AFTER_V2 = f"{_MAX}.manifest0"
"""Sorts after every V2 name."""


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One manifest of the main line."""

    version: int
    scheme: Scheme
    key: str
    etag: str | None = None
    size: int | None = None


def manifest_name(version: int, scheme: Scheme) -> str:
    return f"{version}.manifest" if scheme == "V1" else f"{_MAX - version:020}.manifest"


def manifest_uri(location: Location, version: int, scheme: Scheme) -> str:
    return join(location.uri, VERSIONS, manifest_name(version, scheme))


def parse_name(key: str, etag: str | None = None, size: int | None = None) -> VersionFile | None:
    """The version that a key of `_versions` names; None if it is not of the main line."""
    found = _NAME.fullmatch(key.rpartition("/")[2])
    if found is None:
        return None
    digits = found[1]
    if len(digits) == _V2_DIGITS:
        version = _MAX - int(digits)
        return VersionFile(version, "V2", key, etag, size) if version >= 0 else None
    return VersionFile(int(digits), "V1", key, etag, size)


def list_versions(context: TableContext) -> tuple[VersionFile, ...]:
    """Every retained version, newest first. Raises CorruptTableError if both naming schemes are in use."""
    storage, folder = _folder(context)
    found = _parsed(storage.list(folder))
    _one_scheme(found, context.location)
    return tuple(sorted(found, key=lambda v: -v.version))


def has_versions(context: TableContext) -> bool:
    """Whether there is a manifest, under a name of either scheme; the listing ends at the first one."""
    storage, folder = _folder(context)
    return any(parse_name(info.key) is not None for info in storage.list(folder))


def recent(context: TableContext) -> tuple[VersionFile, ...]:
    """The newest versions without a gap, newest first, found with one listing. Raises as `list_versions`.

    With V2 names the first entry is the newest, so the first ones are enough; whether V1 names follow is checked only
    if there are more. A disk is asked for the names, and then about these files; another store for a page.
    """
    storage, folder = _folder(context)
    if storage.page < FEW:
        found = _parsed(storage.list_dir(folder, _newest_names)[1])
    else:
        infos = storage.list(folder)
        page = [*islice(infos, storage.page)]
        found = _parsed(page)
        if len(page) == storage.page:
            alone = found and all(v.scheme == "V2" for v in found)
            found += _parsed(storage.list(folder, start_after=f"{folder}/{_AFTER_V2}") if alone else infos)
    _one_scheme(found, context.location)
    return tuple(sorted(found, key=lambda v: -v.version))


def _newest_names(names: Sequence[str]) -> list[str]:
    ordered = sorted(names)
    first = ordered[:FEW]
    found = [v for v in map(parse_name, first) if v is not None]
    alone = found and all(v.scheme == "V2" for v in found)
    return [*first, *ordered[max(FEW, bisect_right(ordered, _AFTER_V2) if alone else 0) :]]


def missing_version(location: Location, version: int, kept: tuple[VersionFile, ...]) -> VersionNotFoundError:
    """The error for a missing version, naming the retained ones."""
    numbers = sorted(v.version for v in kept)
    shown = ", ".join(map(str, numbers)) if len(numbers) <= 20 else f"{numbers[0]} to {numbers[-1]}"
    return VersionNotFoundError(
        f"version {version} does not exist", where=location.uri, advice=f"the retained versions are {shown or '(none)'}"
    )


def _folder(context: TableContext) -> tuple[Storage, str]:
    return context.stores.resolve(join(context.location.uri, VERSIONS))


def _parsed(infos: Iterable[ObjectInfo]) -> list[VersionFile]:
    return [v for v in (parse_name(info.key, info.etag, info.size) for info in infos) if v is not None]


def _one_scheme(found: list[VersionFile], location: Location) -> None:
    if len({v.scheme for v in found}) > 1:
        by_scheme = {v.scheme: v.key.rpartition("/")[2] for v in found}
        raise CorruptTableError(
            f"manifests of both naming schemes: {by_scheme['V1']} (V1) and {by_scheme['V2']} (V2)",
            where=join(location.uri, VERSIONS),
            advice="finish the migration of the names with the library that started it",
        )

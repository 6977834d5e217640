"""The files of `_versions`: which versions exist, and their naming scheme.

V1 is `{version}.manifest`; V2 is `{u64::MAX - version:020}.manifest`, so that the newest sorts first. Detached
versions (`d...`), staged names (`....manifest-{uuid}`) and the version hint are not versions of the main line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from boathouse.errors import CorruptTableError, VersionNotFoundError
from boathouse.lance.manifests.names import MAX, Scheme, manifest_name, numbered, store_name
from boathouse.lance.manifests.names import VERSIONS as VERSIONS
from boathouse.storage import ObjectInfo, Storage, join
from boathouse.table.context import TableContext
from boathouse.table.location import Location

if TYPE_CHECKING:
    from boathouse.lance.external.store import Entry

FEW = 16
"""So many of the newest files are looked at on a disk."""
_AFTER_V2: Final = f"{MAX}.manifest0"
"""Sorts after every V2 name."""


@dataclass(frozen=True, slots=True)
class VersionFile:
    """One manifest of the main line."""

    version: int
    scheme: Scheme
    key: str
    etag: str | None = None
    size: int | None = None


def manifest_uri(location: Location, version: int, scheme: Scheme) -> str:
    return join(location.uri, VERSIONS, manifest_name(version, scheme))


def parse_name(key: str, etag: str | None = None, size: int | None = None) -> VersionFile | None:
    """The version that a key of `_versions` names; None if it is not of the main line."""
    found = numbered(key.rpartition("/")[2])
    return None if found is None else VersionFile(found[0], found[1], key, etag, size)


def list_versions(context: TableContext) -> tuple[VersionFile, ...]:
    """Every retained version, newest first. Raises CorruptTableError if both naming schemes are in use, or an external
    store names a newer version that is not there; what that store raises."""
    agreed = _agreed(context)
    storage, folder = _folder(context)
    return _checked(context, _parsed(storage.list(folder)), agreed)


def has_versions(context: TableContext) -> bool:
    """Whether there is a manifest, under a name of either scheme; the listing ends at the first one."""
    _agreed(context)
    return has_manifests(context)


def has_manifests(context: TableContext) -> bool:
    """`has_versions` by the folder alone, whatever an external store says."""
    storage, folder = _folder(context)
    return any(parse_name(info.key) is not None for info in storage.list(folder))


def recent(context: TableContext) -> tuple[VersionFile, ...]:
    """The newest versions without a gap, newest first, found with one listing. Raises as `list_versions`.

    With V2 names the first entry is the newest, so the first ones are enough; whether V1 names follow is checked only
    if there are more. A disk is asked for the names, and then about these files; another store for a page.
    """
    agreed = _agreed(context)
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
    return _checked(context, found, agreed)


def _agreed(context: TableContext) -> Entry | None:
    """The newest version of the external store that the table has, made final before the folder is listed."""
    if store_name(context) is None:
        return None
    # Not loaded for the tables without one, which are nearly all.
    from boathouse.lance.external.finish import settle  # noqa: PLC0415

    return settle(context)


def _checked(context: TableContext, found: list[VersionFile], agreed: Entry | None) -> tuple[VersionFile, ...]:
    _one_scheme(found, context.location)
    listed = tuple(sorted(found, key=lambda v: -v.version))
    if agreed is None:
        return listed
    if not listed or listed[0].version < agreed.version:
        raise CorruptTableError(
            f"the manifest store {store_name(context)} has version {agreed.version}, which is not in the folder",
            where=agreed.uri,
            advice="restore the folder; if the table was removed, remove its entries from the store too",
        )
    size = listed[0].size
    if listed[0].version == agreed.version and None not in (size, agreed.size) and size != agreed.size:
        raise CorruptTableError(
            f"a manifest of {size} bytes, which by the manifest store {store_name(context)} has {agreed.size}",
            where=agreed.uri,
        )
    return listed


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

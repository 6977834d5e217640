"""Detects the formats at a path; errors say what else was found there, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from boathouse import registry
from boathouse.bits import system
from boathouse.errors import AmbiguousFormatError, BoathouseError, CorruptTableError, TableNotFoundError
from boathouse.storage import Stores, absolute, basename, join, parent
from boathouse.storage.external import external
from boathouse.table.context import TableContext
from boathouse.table.format import TableFormat
from boathouse.table.location import Location


def locate(uri: str) -> Location:
    """The location of a user's path; a `*.metadata.json` names that one document, `s3+ddb://` a manifest store."""
    place, manifests = external(uri)
    whole = absolute(place)
    if whole.endswith(".metadata.json") or whole.endswith(".metadata.json.gz"):
        return Location(parent(parent(whole)), metadata=whole)
    return Location(whole.rstrip("/") if not whole.endswith("://") else whole, manifests=manifests)


def formats_at(location: Location, stores: Stores) -> tuple[str, ...]:
    """The names of the formats that have a table at the location."""
    return detected(location, stores, marked_at(location, stores))


def marked_at(location: Location, stores: Stores) -> tuple[str, ...]:
    """The formats of which there is some file, so that they may have a table at the location."""
    return tuple(name for name in registry.FORMATS if _marked(name, location, stores))


def detected(location: Location, stores: Stores, marked: Sequence[str]) -> tuple[str, ...]:
    """Those of the marked formats that have a table at the location."""
    context = TableContext(location, stores)
    return tuple(name for name in marked if registry.load(name).detect(context))


def _marked(name: str, location: Location, stores: Stores) -> bool:
    mark = registry.signs(name).mark
    if mark is None or location.metadata is not None:
        return True
    storage, key = stores.resolve(join(location.uri, mark))
    return storage.holds(key)


def require_free(location: Location, stores: Stores) -> None:
    """Raises CorruptTableError for a partial table: it has files, but none that defines a version.

    It may be an unfinished copy, or the remains of a table: a new table would be mixed with it.
    """
    for signs in map(registry.signs, registry.FORMATS):
        if signs.mark is None:
            continue
        storage, key = stores.resolve(join(location.uri, signs.mark))
        for info in storage.list(key):
            if signs.is_remains(info.key[len(key) + 1 :], system.current().now_ms() - info.modified_ms):
                raise CorruptTableError(
                    f"part of {signs.title} already exists here: {signs.mark}/ has files, but no version",
                    where=storage.uri(info.key),
                    advice=f"let the copy finish or restore what is missing; remove {signs.mark}/ to create another "
                    "table",
                )


def choose(location: Location, stores: Stores, format: str | None) -> TableFormat:
    """The format to open with. Raises TableNotFoundError, AmbiguousFormatError, InvalidArgumentError."""
    if format is not None:
        chosen = registry.load(format)
        if chosen.detect(TableContext(location, stores)):
            return chosen
        return chosen_among(formats_at(location, stores), location, stores, format)
    return chosen_among(formats_at(location, stores), location, stores)


def chosen_among(found: tuple[str, ...], location: Location, stores: Stores, format: str | None = None) -> TableFormat:
    """The format to open with, where these were found; errors as of `choose`."""
    if format is not None:
        chosen = registry.load(format)
        if chosen.name in found:
            return chosen
        if found:
            raise _another(found, chosen, location)
    elif len(found) == 1:
        return registry.load(found[0])
    elif found:
        raise AmbiguousFormatError(
            f"there is more than one table here: {', '.join(found)}",
            where=str(location),
            advice=f"open it with format={found[0]!r} or format={found[1]!r}",
        )
    raise not_found(location, stores)


def _another(found: tuple[str, ...], chosen: TableFormat, location: Location) -> TableNotFoundError:
    return TableNotFoundError(
        f"this is {registry.signs(found[0]).title}, not {registry.signs(chosen.name).title}",
        where=str(location),
        advice=f"open it with format={found[0]!r}, or without format",
    )


def not_found(location: Location, stores: Stores) -> TableNotFoundError:
    """The error for a location without a table, naming what was found instead."""
    storage, key = stores.resolve(location.uri)
    try:
        folders, files = storage.list_dir(key)
        single = storage.exists(key)
    except BoathouseError as error:
        return TableNotFoundError(f"no table can be opened: {error.message}", where=str(location))
    below = [basename(storage.uri(f)) for f in folders]
    names = [basename(storage.uri(f.key)) for f in files]
    what, advice = _describe(location, stores, below, names, single)
    return TableNotFoundError(f"no Delta, Iceberg or Lance table here: {what}", where=str(location), advice=advice)


def _describe(
    location: Location, stores: Stores, folders: list[str], files: list[str], single: bool
) -> tuple[str, str | None]:
    above = _table_above(location, stores)
    if above is not None:
        return f"this is inside the {above[0]} table at {above[1]}", f"open {above[1]}"
    if single:
        return "this is a single file", "pass the folder of the table"
    if not folders and not files:
        return "the path does not exist, or is an empty folder", "check the path, or create a table there"
    if ".hoodie" in folders:
        return "this is a Hudi table", "boathouse reads Delta, Iceberg and Lance"
    begun = _begun(location, stores, folders, files)
    if begun is not None:
        return f"files of a write that was to create {begun} and did not end, or has not yet", "run the write again"
    marks = [f"{mark}/ exists but contains no version" for mark in _marks() if mark in folders]
    if marks:
        return "; ".join(marks), "the table may be incomplete, or its files were removed"
    if any(f.endswith(".parquet") for f in files) or any("=" in f for f in folders):
        return "a folder of Parquet files without table metadata", "read it with spark.read.parquet or pyarrow"
    below = [f for f in folders if formats_at(Location(join(location.uri, f)), stores)][:3]
    if below:
        return f"there are tables below it: {', '.join(below)}", "open one of them, or use `boathouse inventory`"
    advice = "check the path" + (", or search below it with `boathouse inventory`" if folders else "")
    return f"found {_some('folder', folders)}{' and ' if folders and files else ''}{_some('file', files)}", advice


def _begun(location: Location, stores: Stores, folders: list[str], files: list[str]) -> str | None:
    """What a writer began to create here, without coming to its first version."""
    names = [*files, *(f"{folder}/" for folder in folders)]
    for signs in map(registry.signs, registry.FORMATS):
        if signs.mark is None or signs.mark not in folders:
            continue
        storage, key = stores.resolve(join(location.uri, signs.mark))
        for info in storage.list(key):
            name = info.key[len(key) + 1 :]
            if signs.is_remains(name, system.current().now_ms() - info.modified_ms):
                return None
            names.append(f"{signs.mark}/{name}")
    return next((s.title for s in map(registry.signs, registry.FORMATS) if s.is_begun(names)), None)


def _marks() -> list[str]:
    return [mark for name in registry.FORMATS if (mark := registry.signs(name).mark) is not None]


def _some(what: str, names: list[str]) -> str:
    """`3 folders (a, b, c)`, at most three named; nothing for none."""
    if not names:
        return ""
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} {what}{'' if len(names) == 1 else 's'} ({listed})"


def _table_above(location: Location, stores: Stores) -> tuple[str, str] | None:
    """A table that contains the path, at most four levels up."""
    uri = location.uri
    for _ in range(4):
        up = parent(uri)
        if up == uri or up.endswith(":/") or not up:
            return None
        uri = up
        try:
            found = formats_at(Location(uri), stores)
        except BoathouseError:
            return None
        if found:
            return found[0], uri
    return None

"""The data of `inventory`: the tables below a prefix, and the state of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from boathouse import registry
from boathouse.api.detail import sizes
from boathouse.api.detection import formats_at, locate
from boathouse.api.engines import LOCAL
from boathouse.api.text import iso
from boathouse.errors import BoathouseError, NotFoundError
from boathouse.ops.handle import Handle
from boathouse.storage import Stores, basename, join
from boathouse.table.context import TableContext
from boathouse.table.location import Location

_INSIDE = ("_delta_log", "metadata", "_versions", "_transactions", "_deletions", "_indices")


def find_tables(prefix: str, options: dict[str, str], depth: int) -> Iterator[tuple[str, str]]:
    """(URI, format) in the order of their names; tables inside tables are not searched.

    Raises NotFoundError if the prefix does not exist.
    """
    stores = Stores(options)
    root = locate(prefix)
    storage, key = stores.resolve(root.uri)
    folders, files = storage.list_dir(key)
    if not folders and not files:
        single = storage.exists(key)
        raise NotFoundError(
            "this is a single file" if single else "the path does not exist, or is an empty folder",
            where=root.uri,
            advice="pass a folder with tables somewhere below it",
        )
    queue = [(root, depth)]
    while queue:
        location, levels = queue.pop()
        names = formats_at(location, stores)
        for name in names:
            yield location.uri, name
        if names or levels == 0:
            continue
        storage, key = stores.resolve(location.uri)
        below = sorted(basename(storage.uri(f)) for f in storage.list_dir(key)[0])
        queue += [(Location(join(location.uri, f)), levels - 1) for f in reversed(below) if f not in _INSIDE]


def describe(uri: str, format: str, options: dict[str, str]) -> dict[str, Any]:
    """One row of the inventory, with the reason if a table cannot be read or written."""
    row: dict[str, Any] = {"path": uri, "format": format, "readable": False, "writable": False, "why": None}
    try:
        handle = _open(uri, format, options)
        row |= _facts(handle)
        _read_a_little(handle)
        row["readable"] = True
        handle.check_writable()
        row["writable"] = True
    except BoathouseError as error:
        row["why"] = str(error)
    return row


def _open(uri: str, format: str, options: dict[str, str]) -> Handle:
    location = locate(uri)
    stores = Stores(options, home=location.uri)
    table_format = registry.load(format)
    return Handle(table_format.open(TableContext(location, stores)))


def _read_a_little(handle: Handle) -> None:
    """Plans a full scan and reads the beginning of the first file: a table that cannot be read is refused there."""
    plan = handle.snapshot.plan(None, None, (), LOCAL.map)
    for task in islice(plan.tasks(target_bytes=1), 1):
        next(iter(registry.tasks(task.read.format).read(task)), None)


def _facts(handle: Handle) -> dict[str, Any]:
    found = sizes(handle)
    rows, deleted = found["rows"], found["deleted_rows"]
    there = None if rows is None else rows + deleted
    last = next(iter(handle.snapshot.history.entries(1)), None)
    detail = handle.snapshot.detail()
    return {
        "version": handle.snapshot.version,
        **found,
        "deleted_share": None if there is None else deleted / there if there else 0.0,
        "protocol": {k: v for k, v in detail.items() if "version" in k.lower() and isinstance(v, int | str)},
        "features": _features(detail),
        "last_commit": iso(handle.snapshot.timestamp_ms),
        "engine": None if last is None else last.engine,
    }


def _features(detail: Mapping[str, Any]) -> list[str]:
    """The names in every list of features, each once; the formats name these lists differently."""
    lists = [v for k, v in detail.items() if "feature" in k.lower() and isinstance(v, list | tuple)]
    return list(dict.fromkeys(str(name) for names in lists for name in names))

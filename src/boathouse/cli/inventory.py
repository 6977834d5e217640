"""`boathouse inventory PREFIX`: every table below a prefix, and how it does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn

from boathouse.api.detail import iso, sizes
from boathouse.api.found import formats_at, locate
from boathouse.api.open import open as open_table
from boathouse.cli import show
from boathouse.cli.commands import Json, Option, storage_options
from boathouse.errors import BoathouseError, NotFoundError
from boathouse.ops.handle import Handle
from boathouse.storage import Stores, join
from boathouse.storage.uris import basename
from boathouse.table.location import Location

_INSIDE = ("_delta_log", "metadata", "_versions", "_transactions", "_deletions", "_indices")


def register(app: typer.Typer) -> None:
    app.command()(inventory)


def inventory(
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="A folder that has tables somewhere below.")],
    depth: Annotated[int, typer.Option("--depth", min=1, help="How many levels are searched.")] = 8,
    option: Option = None,
    json: Json = False,
) -> None:
    """Every table below a prefix: format, version, rows, size, files, protocol, last commit, what we can do."""
    options = storage_options(option)
    console = Console(stderr=True)
    rows = []
    with Progress(
        SpinnerColumn(), TextColumn("{task.description}"), console=console, transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:  # fmt: skip
        task = progress.add_task("looking for tables", total=None)
        for location, name in find_tables(prefix, options, depth):
            progress.update(task, description=f"{len(rows)} tables, now {location}")
            rows.append(describe(location.uri, name, options))
    if json:
        show.as_json(rows)
        return
    _print(rows)


def find_tables(prefix: str, options: dict[str, str], depth: int) -> Iterator[tuple[Location, str]]:
    """Locations with their format, in the order of their names; tables inside of tables are not looked for.

    Raises NotFoundError if there is nothing at the prefix.
    """
    stores = Stores(options)
    root = locate(prefix)
    storage, key = stores.resolve(root.uri)
    folders, files = storage.list_dir(key)
    if not folders and not files:
        raise NotFoundError("nothing is there", where=root.uri, advice="check the path")
    queue = [(root, depth)]
    while queue:
        location, levels = queue.pop()
        names = formats_at(location, stores)
        for name in names:
            yield location, name
        if names or levels == 0:
            continue
        storage, key = stores.resolve(location.uri)
        below = sorted(basename(f.rstrip("/")) for f in storage.list_dir(key)[0])
        queue += [(Location(join(location.uri, f)), levels - 1) for f in reversed(below) if f not in _INSIDE]


def describe(uri: str, format: str, options: dict[str, str]) -> dict[str, Any]:
    """One row of the inventory; a table that cannot be read says why."""
    row: dict[str, Any] = {"path": uri, "format": format}
    try:
        table = open_table(uri, format=format, storage_options=options)
        handle: Handle = table._handle
        row |= {"version": table.version, **sizes(handle)}
        rows, deleted = row["rows"], row["deleted_rows"]
        row["deleted_share"] = None if rows is None else deleted / (rows + deleted) if rows + deleted else 0.0
        row |= {k: v for k, v in handle.snapshot.detail().items() if k in ("protocol", "features")}
        last = next(iter(table.history(1)), None)
        row["last_commit"] = iso(handle.snapshot.timestamp_ms)
        row["engine"] = None if last is None else last.engine
        row |= {"readable": True, "writable": True}
    except BoathouseError as error:
        return row | {"readable": False, "writable": False, "why": str(error)}
    try:
        handle.check_writable()
    except BoathouseError as error:
        row |= {"writable": False, "why": str(error)}
    return row


def _print(rows: list[dict[str, Any]]) -> None:
    if not rows:
        typer.echo("no tables")
        return
    header = ("path", "format", "version", "rows", "size", "files", "small", "deleted", "last commit", "engine", "can")
    text = [
        (
            r["path"], r["format"], r.get("version"), show.number(r.get("rows")), show.size(r.get("bytes")),
            show.number(r.get("files")), show.number(r.get("small_files")),
            "" if r.get("deleted_share") is None else f"{r['deleted_share']:.1%}", r.get("last_commit"),
            r.get("engine"), "read, write" if r["writable"] else "read" if r["readable"] else "nothing",
        )
        for r in rows
    ]  # fmt: skip
    show.table(header, text, right=("version", "rows", "size", "files", "small", "deleted"))
    for r in rows:
        if r.get("why"):
            typer.echo(f"{r['path']}: {r['why']}", err=True)

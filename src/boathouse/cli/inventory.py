"""The command `boathouse inventory PREFIX`: every table below a prefix, and its state."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from boathouse.cli import show
from boathouse.cli.commands import Json, Option, storage_options
from boathouse.cli.progress import bar, spinner


def register(app: typer.Typer) -> None:
    app.command()(inventory)


def inventory(
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="A folder with tables somewhere below it.")],
    depth: Annotated[int, typer.Option("--depth", min=1, help="How many levels are searched.")] = 8,
    option: Option = None,
    json: Json = False,
) -> None:
    """Every table below a prefix: format, rows, size, small files, features, last commit, what we can do."""
    options = storage_options(option)
    survey = import_module("boathouse.cli.survey")
    with spinner(f"looking for tables below {prefix}"):
        found = list(survey.find_tables(prefix, options, depth))
    rows = [survey.describe(uri, name, options) for uri, name in bar(found, len(found), "reading tables")]
    if json:
        show.as_json(rows)
    else:
        _print(prefix, rows)


def _print(prefix: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        typer.echo(f"no Delta, Iceberg or Lance table below {prefix}")
        return
    start = _common([r["path"] for r in rows])
    header = ("table", "format", "version", "rows", "size", "files", "small", "deleted", "last commit", "engine", "can")
    text = [
        (
            r["path"][start:] or r["path"], r["format"], r.get("version"), show.number(r.get("rows")),
            show.size(r.get("bytes")), show.number(r.get("files")), show.number(r.get("small_files")),
            "" if r.get("deleted_share") is None else f"{r['deleted_share']:.1%}", r.get("last_commit"),
            r.get("engine"), "read, write" if r["writable"] else "read" if r["readable"] else "nothing",
        )
        for r in rows
    ]  # fmt: skip
    typer.echo(f"{len(rows)} table{'' if len(rows) == 1 else 's'} below {rows[0]['path'][:start] or prefix}")
    show.table(header, text, right=("version", "rows", "size", "files", "small", "deleted"))
    for r, line in zip(rows, text, strict=True):
        notes = [show.inline(r[k]) for k in ("protocol", "features") if r.get(k)]
        if notes:
            typer.echo(f"{line[0]}: {'; '.join(notes)}")
    for r, line in zip(rows, text, strict=True):
        if r.get("why"):
            typer.echo(f"{line[0]}: {r['why']}", err=True)


def _common(paths: list[str]) -> int:
    """The length of the folder prefix that all paths share, without a path's own name."""
    folders = [p.rsplit("/", 1)[0] + "/" for p in paths]
    shortest = min(folders, key=len)
    for end in range(len(shortest), 0, -1):
        if shortest[end - 1] == "/" and all(f.startswith(shortest[:end]) for f in folders):
            return end
    return 0

"""verify: other libraries read the same rows."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

import boathouse
from boathouse.cli import show
from boathouse.cli.commands import Format, Json, Option, Path, Timestamp, Version, storage_options
from boathouse.cli.progress import spinner
from boathouse.errors import InvalidArgumentError

Against = Annotated[
    str | None,
    typer.Option(
        "--against", metavar="NAMES", help="deltalake, pyiceberg, pylance, duckdb; those installed by default."
    ),
]


def register(app: typer.Typer) -> None:
    app.command()(verify)


def verify(
    path: Path, against: Against = None, format: Format = None, version: Version = None, timestamp: Timestamp = None,
    option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """Compares rows and a checksum that does not depend on their order with what other libraries read."""
    table = boathouse.open(path, format, version, timestamp, storage_options=storage_options(option))
    # Imports Arrow, which the other commands and --help do not need.
    foreign = import_module("boathouse.cli.foreign")
    readers = foreign.readers(table.format, against)
    if "duckdb" in readers and table.format == "delta" and (version, timestamp) != (None, None):
        raise InvalidArgumentError("duckdb reads the newest version of a Delta table only", advice="leave it out")
    found: list[dict[str, Any]] = []
    with spinner("reading"):
        ours = foreign.checksum(table)
        for name in readers:
            found.append({"reader": name} | foreign.compared(name, table, storage_options(option), ours))
    holds = all(entry["same"] for entry in found)
    if json:
        own = {"rows": ours.rows, "checksum": ours.text}
        show.as_json({"format": table.format, "version": table.version, **own, "same": holds, "readers": found})
    else:
        rows = [("boathouse", show.number(ours.rows), ours.text, "")]
        rows += [(e["reader"], show.number(e["rows"]), e["checksum"], e["error"] or _said(e["same"])) for e in found]
        show.table(("reader", "rows", "checksum", ""), rows, right=("rows",))
    if not holds:
        raise typer.Exit(1)


def _said(same: bool) -> str:
    return "the same" if same else "other rows"

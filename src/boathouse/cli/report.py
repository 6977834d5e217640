"""The command `report`: a table on one page of HTML."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path as File
from typing import Annotated

import typer

import boathouse
from boathouse.cli.commands import Format, Path, Ref, Timestamp, Version, storage_options
from boathouse.cli.progress import spinner

Output = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="The page; - is standard output.")]
Metadata = Annotated[bool, typer.Option("--metadata-only", help="Do not look up data files.")]
Options = Annotated[list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="A storage option.")]


def register(app: typer.Typer) -> None:
    app.command()(report)


def report(
    path: Path, output: Output = "report.html", metadata_only: Metadata = False, format: Format = None,
    version: Version = None, timestamp: Timestamp = None, ref: Ref = None, option: Options = None,
) -> None:  # fmt: skip
    """One HTML page: what the table is, its history, files, columns, what makes it slow, and what to run."""
    with spinner("reading metadata"):
        table = boathouse.open(path, format, version, timestamp, ref, storage_options(option))
        findings = table.examine("metadata" if metadata_only else "files")
        page = import_module("boathouse.report").write(table._handle, findings)
    if output == "-":
        typer.echo(page, nl=False)
        return
    try:
        File(output).write_text(page, encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{output}: {error.strerror}", param_hint="--output") from error
    typer.echo(f"wrote {output}")

"""The command `doctor`: what is wrong with a table, what to do, and the repairs that lose nothing."""

from __future__ import annotations

from dataclasses import asdict, replace
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import boathouse
from boathouse.cli import show
from boathouse.cli.commands import Format, Json, Option, Path, Version, storage_options
from boathouse.cli.progress import spinner
from boathouse.errors import CorruptTableError

if TYPE_CHECKING:
    from boathouse.table.findings import Finding

Repair = Annotated[bool, typer.Option("--repair", help="Run the repairs, none of which changes a row.")]
Metadata = Annotated[bool, typer.Option("--metadata-only", help="Do not look up data files.")]
CODES: Final = {"hint": 0, "hazard": 1, "damage": 5}
"""The exit code by the worst finding."""


def register(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(
    path: Path, repair: Repair = False, metadata_only: Metadata = False, format: Format = None,
    version: Version = None, option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """What is wrong with the table, or makes it slow, and what to do about it."""
    with spinner("examining"):
        found = _examined(path, format, version, option, "metadata" if metadata_only else "files")
    if repair and version is None and all(f.severity != "damage" for f in found):
        done = [f.repair for f in found if f.repair is not None]
        table = boathouse.open(path, format, storage_options=storage_options(option))
        for name in done:
            getattr(table, name)()
            if not json:
                typer.echo(f"ran {name}")
        if done:
            found = _examined(path, format, None, option, "metadata" if metadata_only else "files")
    if json:
        show.as_json([asdict(f) for f in found])
    else:
        _tell(path, found)
    raise typer.Exit(max((CODES[f.severity] for f in found), default=0))


def _examined(
    path: str, format: str | None, version: int | None, option: list[str] | None, depth: Any
) -> list[Finding]:
    """What cannot be opened has one finding: why."""
    try:
        table = boathouse.open(path, format, version, storage_options=storage_options(option))
    except CorruptTableError as error:
        findings = import_module("boathouse.table.findings")
        return [replace(findings.Finding.of("table.not-opened", error), where=error.where or path)]
    return table.examine(depth)


def _tell(path: str, found: list[Finding]) -> None:
    if not found:
        typer.echo(f"{path}: nothing was found")
    for f in sorted(found, key=lambda f: -CODES[f.severity]):
        typer.echo(f"{f.severity}: {f.message} ({f.code})")
        if f.where is not None:
            typer.echo(f"  in {f.where}")
        if f.advice is not None:
            typer.echo(f"  {f.advice}")
        if f.repair is not None:
            typer.echo(f"  boathouse doctor {path} --repair runs {f.repair}; so does boathouse {f.repair} {path}")

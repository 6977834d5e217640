"""Commands that change a table: convert, optimize, purge, vacuum, restore."""

from __future__ import annotations

from typing import Annotated

import typer

import boathouse
from boathouse.api.text import human_bytes
from boathouse.cli import show
from boathouse.cli.commands import Format, Json, Option, Path, Timestamp, Version, storage_options

Retention = Annotated[
    float | None, typer.Option("--retention", metavar="HOURS", help="Instead of the table's own retention.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]
PartitionBy = Annotated[
    str | None,
    typer.Option("--partition-by", metavar="COLUMNS", help="What the folders are named by: 'year int, month int'."),
]
NewFormat = Annotated[str, typer.Option("--format", help="What the folder becomes: delta or iceberg.")]
Where = Annotated[str | None, typer.Option("--where", metavar="CONDITION", help="On partition columns only.")]
ZOrderBy = Annotated[
    str | None, typer.Option("--zorder-by", metavar="COLUMNS", help="Columns that files get narrow ranges of: a,b.")
]
Lite = Annotated[bool, typer.Option("--lite", help="Remove what the log records; list no folder.")]
Short = Annotated[
    bool, typer.Option("--allow-short-retention", help="Accept a retention below the table's: nobody reads or writes.")
]


def register(app: typer.Typer) -> None:
    app.command()(convert)
    app.command()(optimize)
    app.command()(purge)
    app.command()(vacuum)
    app.command()(restore)


def convert(
    path: Path, partition_by: PartitionBy = None, dry_run: DryRun = False, format: NewFormat = "delta",
    option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """Makes a table of a folder of Parquet files, in place; no file is rewritten."""
    result = boathouse.convert(
        path, format, partition_by=partition_by, storage_options=storage_options(option), dry_run=dry_run
    )
    shown = ("version", "commit", "files_added", "rows_added", "bytes_added", "dry_run")
    show.as_json({name: getattr(result, name) for name in shown}) if json else typer.echo(result)


def optimize(
    path: Path, where: Where = None, zorder_by: ZOrderBy = None, dry_run: DryRun = False, format: Format = None,
    option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """Rewrites small files as larger ones, or all files in Z-order of some columns; no row changes."""
    table = boathouse.open(path, format, storage_options=storage_options(option))
    columns = None if zorder_by is None else [name.strip() for name in zorder_by.split(",")]
    result = table.optimize(where, zorder_by=columns, dry_run=dry_run)
    _rewritten(result, json)


def purge(
    path: Path, where: Where = None, dry_run: DryRun = False, format: Format = None, option: Option = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Rewrites every file that has deleted rows, without them; no row changes."""
    table = boathouse.open(path, format, storage_options=storage_options(option))
    result = table.purge(where, dry_run=dry_run)
    _rewritten(result, json)


def _rewritten(result: boathouse.WriteResult, json: bool) -> None:
    shown = ("version", "commit", "versions", "files_added", "files_removed", "rows_copied", "bytes_added", "dry_run")
    show.as_json({name: getattr(result, name) for name in shown}) if json else typer.echo(result)


def vacuum(
    path: Path, retention: Retention = None, dry_run: DryRun = False, lite: Lite = False,
    allow_short_retention: Short = False, format: Format = None, option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """Removes the files that no version within the retention needs."""
    table = boathouse.open(path, format, storage_options=storage_options(option))
    result = table.vacuum(
        retention,
        mode="lite" if lite else "full",
        enforce_retention_duration=not allow_short_retention,
        dry_run=dry_run,
    )
    if json:
        shown = ("files_removed", "bytes_removed", "retention_hours", "mode", "dry_run", "versions", "paths")
        failed = [{"path": p, "error": e} for p, e in result.failed]
        show.as_json({name: getattr(result, name) for name in shown} | {"failed": failed})
    else:
        if dry_run:
            for file in result.paths:
                typer.echo(file)
        verb = "would remove" if dry_run else "removed"
        typer.echo(f"{verb} {result.files_removed:,} files, {human_bytes(result.bytes_removed)}", err=dry_run)
        for file, error in result.failed:
            typer.echo(f"not removed: {file}: {error}", err=True)
    if result.failed:
        raise typer.Exit(6)


def restore(
    path: Path, version: Version = None, timestamp: Timestamp = None, dry_run: DryRun = False, format: Format = None,
    option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """Makes the table what it was at an older version, as a new version."""
    table = boathouse.open(path, format, storage_options=storage_options(option))
    result = table.restore(version, timestamp, dry_run=dry_run)
    shown = ("version", "commit", "files_added", "files_removed", "bytes_added", "dry_run")
    show.as_json({name: getattr(result, name) for name in shown}) if json else typer.echo(result)

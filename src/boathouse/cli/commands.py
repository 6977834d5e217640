"""Commands on one table: info, schema, history, files, inspect, head, count, plan."""

from __future__ import annotations

from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

import boathouse
from boathouse.api.text import iso
from boathouse.cli import show
from boathouse.cli.progress import spinner

if TYPE_CHECKING:
    from boathouse.api.table import Table
    from boathouse.ops.handle import Handle
    from boathouse.table.history import HistoryEntry

Path = Annotated[str, typer.Argument(metavar="PATH", help="The table's folder, or an Iceberg *.metadata.json.")]
Format = Annotated[str | None, typer.Option("--format", help="delta, iceberg or lance, where the path holds several.")]
Version = Annotated[int | None, typer.Option("--version", help="A version (Iceberg: a snapshot id).")]
Timestamp = Annotated[str | None, typer.Option("--timestamp", help="The newest version not after this time.")]
Ref = Annotated[str | None, typer.Option("--ref", help="A branch or tag.")]
Option = Annotated[list[str] | None, typer.Option("--option", "-o", metavar="NAME=VALUE", help="A storage option.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Where = Annotated[str | None, typer.Option("--where", help="A predicate in Spark SQL.")]
Zone = Annotated[str | None, typer.Option("--timezone", help="The time zone of --where; default UTC.")]
Columns = Annotated[str | None, typer.Option("--columns", help="Column names, separated by commas.")]


def register(app: typer.Typer) -> None:
    for command in (info, schema, history, files, inspect, head, count, plan):
        app.command()(command)


def storage_options(given: list[str] | None) -> dict[str, str]:
    """`name=value` texts as a dict."""
    options = {}
    for text in given or ():
        name, separator, value = text.partition("=")
        if not separator:
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
        options[name] = value
    return options


def _open(
    path: str,
    format: str | None,
    version: int | None = None,
    timestamp: str | None = None,
    ref: str | None = None,
    option: list[str] | None = None,
    timezone: str | None = None,
) -> Table:
    # `boathouse.open` is imported with the first table: --help needs neither Arrow nor a format.
    return boathouse.open(path, format, version, timestamp, ref, storage_options(option), timezone=timezone)


def _handle(path: str, format: str | None, *where: Any) -> Handle:
    """As `_open`, without engines and operations: for commands that read metadata only."""
    *at, option = where
    return import_module("boathouse.api.opening").open_handle(path, format, *at, storage_options(option))


def info(
    path: Path, format: Format = None, version: Version = None, timestamp: Timestamp = None, ref: Ref = None,
    option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """The table's format, version, size, rows, partitioning, protocol, properties."""
    found = import_module("boathouse.api.detail").detail(_handle(path, format, version, timestamp, ref, option))
    if json:
        show.as_json(found)
        return
    shown = found | {"columns": len(found["columns"]), "bytes": show.size(found["bytes"])}
    for name in ("rows", "deleted_rows", "files", "small_files"):
        shown[name] = show.number(found[name])
    show.pairs((name.replace("_", " "), value) for name, value in shown.items())


def schema(
    path: Path, format: Format = None, version: Version = None, timestamp: Timestamp = None, ref: Ref = None,
    option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """The columns, nested ones below their parents."""
    found = _handle(path, format, version, timestamp, ref, option).snapshot.schema
    if json:
        show.as_json(
            [{"path": list(p), "type": str(f.type), "nullable": f.nullable, "id": f.id} for p, f in found.walk()]
        )
        return
    for where, field in found.walk():
        typer.echo("  " * (len(where) - 1) + str(field))


def _number(entry: HistoryEntry) -> object:
    return entry.commit if entry.metadata_only else entry.version


def history(
    path: Path, format: Format = None, limit: Annotated[int, typer.Option("--limit", "-n", min=1)] = 20,
    option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """The latest commits, newest first."""
    handle = _handle(path, format, None, None, None, option)
    entries = list(handle.snapshot.history.entries(limit))
    if json:
        names = (
            "version",
            "commit",
            "timestamp_ms",
            "operation",
            "parameters",
            "metrics",
            "engine",
            "write_id",
            "message",
        )
        show.as_json([{n: getattr(e, n) for n in (*names, "metadata")} for e in entries])
        return
    rows = [
        (
            _number(e),
            iso(e.timestamp_ms),
            e.operation,
            e.engine,
            e.message or show.inline(e.parameters),
        )
        for e in entries
    ]
    show.table(("version", "time", "operation", "engine", "about"), rows, right=("version",))


def files(
    path: Path, format: Format = None, version: Version = None, timestamp: Timestamp = None, ref: Ref = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1)] = None, option: Option = None,
    json: Json = False,
) -> None:  # fmt: skip
    """The data files: path, size, rows, deleted rows, partition."""
    handle = _handle(path, format, version, timestamp, ref, option)
    found = import_module("boathouse.api.detail").files_table(handle)
    rows = found.slice(0, limit if limit is not None else found.num_rows).to_pylist()
    if json:
        show.as_json(rows)
        return
    for r in rows:
        cells = (r["path"], show.size(r["size"]), show.number(r["rows"]), show.number(r["deleted"]), _partition(r))
        typer.echo("\t".join(cells).rstrip())


def _partition(row: dict[str, Any]) -> str:
    return "/".join(f"{k}={v}" for k, v in (row.get("partition") or {}).items())


def inspect(
    path: Path, name: Annotated[str, typer.Argument(metavar="NAME", help="files, snapshots, partitions, ...")],
    format: Format = None, version: Version = None, timestamp: Timestamp = None, ref: Ref = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1)] = None, option: Option = None,
    json: Json = False,
) -> None:  # fmt: skip
    """A metadata table, under the names and with the columns of Iceberg's reference."""
    check = import_module("boathouse.table.inspection").check_name
    features = import_module("boathouse.table.features")
    snapshot = _handle(path, format, version, timestamp, ref, option).snapshot
    found = features.required(snapshot, features.MetadataTables, "inspect").inspect(check(name))
    rows = found.slice(0, limit if limit is not None else found.num_rows).to_pylist(maps_as_pydicts="lossy")
    if json:
        show.as_json(rows)
        return
    show.table(found.column_names, [list(row.values()) for row in rows])


def head(
    path: Path, limit: Annotated[int, typer.Option("--limit", "-n", min=1)] = 10, columns: Columns = None,
    where: Where = None, format: Format = None, version: Version = None, timestamp: Timestamp = None,
    ref: Ref = None, timezone: Zone = None, option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """The first rows."""
    table = _open(path, format, version, timestamp, ref, option, timezone)
    scan = table.scan(_names(columns), where)
    with spinner("reading"):
        found = (row for batch in scan.to_batches() for row in batch.slice(0, limit).to_pylist())
        rows = list(islice(found, limit))
    if json:
        show.as_json(rows)
        return
    names = _names(columns) or list(table.schema.names)
    show.table(names, [list(row.values()) for row in rows])


def _names(columns: str | None) -> list[str] | None:
    return None if columns is None else [c.strip() for c in columns.split(",") if c.strip()]


def count(
    path: Path, where: Where = None, format: Format = None, version: Version = None, timestamp: Timestamp = None,
    ref: Ref = None, timezone: Zone = None, option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """The number of rows; with --where, of those for which the predicate is true."""
    scan = _open(path, format, version, timestamp, ref, option, timezone).scan(None, where)
    with spinner("counting"):
        rows = scan.count()
    show.as_json({"rows": rows}) if json else typer.echo(rows)


def plan(
    path: Path, where: Where = None, columns: Columns = None, format: Format = None, version: Version = None,
    timestamp: Timestamp = None, ref: Ref = None, timezone: Zone = None, option: Option = None, json: Json = False,
) -> None:  # fmt: skip
    """What a filter reads and skips, and why."""
    table = _open(path, format, version, timestamp, ref, option, timezone)
    explanation = table.scan(_names(columns), where).explain()
    show.as_json(explanation.to_dict()) if json else typer.echo(str(explanation))

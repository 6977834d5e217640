"""The command `boathouse variant FILE [PATH]`: one Variant value decoded, checked and shown byte by byte."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer

from boathouse.cli import show
from boathouse.cli.commands import Json

_HEX = 12  # bytes of a value that are printed


def register(app: typer.Typer) -> None:
    app.command()(variant)


def variant(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Metadata, then value; NAME.json is encoded; - is the standard input.")
    ],
    path: Annotated[str, typer.Argument(metavar="[PATH]", help="The part to show: $.a['b c'][0]")] = "$",
    metadata: Annotated[
        str | None, typer.Option("--metadata", metavar="FILE", help="The metadata; FILE is then the value only.")
    ] = None,
    hex: Annotated[bool, typer.Option("--hex", help="The files hold hexadecimal digits.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The largest number of values to show.")] = 1000,
    json: Json = False,
) -> None:
    """A variant: its type, tree and bytes, and what is wrong with them."""
    # Imports the Variant encoding, which the other commands do not need.
    inspection = import_module("boathouse.cli.variant_tree")
    found = inspection.inspect(*inspection.load(file, metadata, hex), path, limit)
    if json:
        show.as_json(found)
    else:
        _print(found)
    if any(finding["kind"] == "error" for finding in found["findings"]):
        raise typer.Exit(5)


def _print(found: dict[str, Any]) -> None:
    names = found["metadata"]["names"]
    show.pairs(
        (
            ("path", found["path"]),
            ("type", found["type"]),
            ("json", None if found["json"] is None else show.cell(found["json"])),
            ("value", f"{found['size']:,} bytes"),
            ("metadata", f"{found['metadata']['size']:,} bytes, {len(names):,} names"),
        )
    )
    if found["tree"]:
        typer.echo("\n  byte   size  " + "bytes".ljust(3 * _HEX + 1) + "  value")
    for node in found["tree"]:
        raw = node["bytes"]
        shown = raw if len(raw) <= 2 * _HEX else raw[: 2 * (_HEX - 1)]
        text = " ".join(shown[i : i + 2] for i in range(0, len(shown), 2)) + (" …" if shown != raw else "")
        name = "" if node["name"] is None else f"{show.cell(node['name'])}: "
        value = "" if node["value"] is None else " " + show.cell(node["value"])
        typer.echo(
            f"{node['offset']:6}  {node['size'] or '?':>5}  {text:{3 * _HEX + 1}}  "
            f"{'  ' * node['depth']}{name}{node['type']}{value}"
        )
    if found["more"]:
        typer.echo("further values are omitted: raise --limit, or name a path")
    typer.echo()
    for finding in found["findings"]:
        typer.echo(f"{finding['kind']} at {finding['path']}, byte {finding['offset']:,}: {finding['message']}")
    if not found["findings"]:
        typer.echo("no errors or oddities")

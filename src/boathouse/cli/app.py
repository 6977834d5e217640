"""The application: its commands, and errors as one readable line with an exit code."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from boathouse import __version__
from boathouse.cli import commands, doctor, inventory, maintenance, queries, report, variant, verify
from boathouse.errors import (
    AmbiguousFormatError,
    BoathouseError,
    CorruptTableError,
    ExpressionError,
    InvalidArgumentError,
    InvalidJsonError,
    MalformedVariant,
    MissingRequirementError,
    NotFoundError,
    StorageError,
    UnsupportedFeatureError,
)

EXIT_CODES: tuple[tuple[type[BoathouseError], int], ...] = (
    (InvalidArgumentError, 2),
    (AmbiguousFormatError, 2),
    (ExpressionError, 2),
    (NotFoundError, 3),
    (UnsupportedFeatureError, 4),
    (CorruptTableError, 5),
    (MalformedVariant, 5),
    (InvalidJsonError, 5),
    (StorageError, 6),
    (MissingRequirementError, 7),
    (BoathouseError, 1),
)
"""The first matching class decides."""

_EPILOG = (
    "Exit codes: 0 success; 1 the table or its rows failed; 2 wrong usage; "
    "3 no such table, file, version or path in a variant; 4 legal, but not supported; 5 corrupt; 6 the store failed; "
    "7 Java, PySpark or the network is missing; 130 interrupted."
)

app = typer.Typer(
    name="boathouse",
    help="Delta, Iceberg and Lance tables from the shell. A path is all that is needed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog=_EPILOG,
)
commands.register(app)
maintenance.register(app)
queries.register(app)
verify.register(app)
inventory.register(app)
doctor.register(app)
report.register(app)
variant.register(app)


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
    """Runs the command line as the program of this process, and exits."""
    run(app)


def run(program: typer.Typer) -> None:
    """Runs a program of commands as that of this process, and exits: errors become one line and an exit code."""
    try:
        _run(program)
    except BrokenPipeError:
        _leave()
    except SystemExit as leaving:
        # The framework exits with 1 if the reader of our output has closed the pipe.
        if isinstance(leaving.__context__, BrokenPipeError):
            _leave()
        raise


def _run(program: typer.Typer) -> None:
    try:
        program()
    except BoathouseError as error:
        typer.echo(f"boathouse: {error} ({error.code})", err=True)
        sys.exit(exit_code(error))
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        sys.stdout.flush()


def _leave() -> NoReturn:
    """Exits with 0: a reader that closes the pipe has read enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def exit_code(error: BoathouseError) -> int:
    """The exit code of the process after this error."""
    return next(code for kind, code in EXIT_CODES if isinstance(error, kind))

"""Formats by name, loaded on first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from boathouse.errors import InvalidArgumentError

if TYPE_CHECKING:
    from boathouse.table.format import TableFormat
    from boathouse.table.tasks import TaskModule

FORMATS: Final[dict[str, str]] = {
    "delta": "boathouse.delta",
    "iceberg": "boathouse.iceberg",
    "lance": "boathouse.lance",
    **dict(pair.split("=", 1) for pair in os.environ.get("BOATHOUSE_FORMATS", "").split(",") if "=" in pair),
}
"""Format name -> package. The package has an `adapter` module with FORMAT, and a `tasks` module for executors.

External formats are listed in BOATHOUSE_FORMATS (`name=package,...`), in the environment of executors too. A package
may have MARK, a folder that each of its tables has, TITLE ("a Delta table"), `is_remains(name, age_ms)`, which says
whether a file below the mark belongs to a table, and `is_begun(names)`, whether files and folders (`name/`) without a
version are those of a writer that began to create one.
"""


@dataclass(frozen=True, slots=True)
class Signs:
    """How tables of a format are recognised without loading it."""

    mark: str | None
    title: str
    is_remains: Callable[[str, int], bool]
    is_begun: Callable[[Sequence[str]], bool]


def signs(name: str) -> Signs:
    """What the package of a format says of itself."""
    package = import_module(_package(name))
    return Signs(
        getattr(package, "MARK", None),
        getattr(package, "TITLE", f"a {name} table"),
        getattr(package, "is_remains", lambda name, age_ms: True),
        getattr(package, "is_begun", lambda names: False),
    )


def load(name: str) -> TableFormat:
    """The format called `name`. Raises InvalidArgumentError."""
    return import_module(f"{_package(name)}.adapter").FORMAT


def tasks(name: str) -> TaskModule:
    """The executor side of a format; imports no object store, parser or metadata code."""
    return import_module(f"{_package(name)}.tasks")


def catalogs(name: str = "iceberg", part: str = "pyiceberg") -> Any:
    """A module of the catalogs of a format's tables."""
    return import_module(f"{_package(name)}.catalogs.{part}")


def _package(name: str) -> str:
    package = FORMATS.get(name.lower()) if isinstance(name, str) else None
    if package is None:
        raise InvalidArgumentError(f"{name!r} is not a table format", advice=f"the formats are {', '.join(FORMATS)}")
    return package

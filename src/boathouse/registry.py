"""Formats by name, loaded on first use."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Final

from boathouse.errors import InvalidArgumentError
from boathouse.table.format import TableFormat
from boathouse.table.tasks import TaskModule

FORMATS: Final[dict[str, str]] = {
    "delta": "boathouse.delta",
    "iceberg": "boathouse.iceberg",
    "lance": "boathouse.lance",
    **dict(pair.split("=", 1) for pair in os.environ.get("BOATHOUSE_FORMATS", "").split(",") if "=" in pair),
}
"""Format name -> package. The package has an `adapter` module with FORMAT, and a `tasks` module for executors.

External formats are listed in BOATHOUSE_FORMATS (`name=package,...`), in the environment of executors too.
"""

MARKS: Final[dict[str, str]] = {"delta": "_delta_log", "iceberg": "metadata", "lance": "_versions"}
"""Format name -> a folder that every table of it has: where it is missing, the format is not loaded."""


def load(name: str) -> TableFormat:
    """The format called `name`. Raises InvalidArgumentError."""
    return import_module(f"{_package(name)}.adapter").FORMAT


def tasks(name: str) -> TaskModule:
    """The executor side of a format; imports no object store, parser or metadata code."""
    return import_module(f"{_package(name)}.tasks")


def _package(name: str) -> str:
    package = FORMATS.get(name.lower()) if isinstance(name, str) else None
    if package is None:
        raise InvalidArgumentError(f"{name!r} is not a table format", advice=f"the formats are {', '.join(FORMATS)}")
    return package

"""What this library says of itself in the tables that it writes."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

LIBRARY = "boathouse"


@cache
def library_version() -> str:
    """The installed version; `0.0.0` if it runs without being installed."""
    try:
        return version(LIBRARY)
    except PackageNotFoundError:
        return "0.0.0"

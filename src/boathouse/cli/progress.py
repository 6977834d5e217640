"""Progress on standard error during long operations; silent if that is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


def spinner(text: str) -> AbstractContextManager[object]:
    """A spinner while the block runs."""
    if not sys.stderr.isatty():
        return nullcontext()
    return _console().status(text)


def bar(items: Iterable[T], total: int, text: str) -> Iterator[T]:
    """The items, with a bar that advances as they are consumed."""
    if not sys.stderr.isatty():
        yield from items
        return
    progress = import_module("rich.progress")
    yield from progress.track(items, text, total=total, console=_console(), transient=True)


def _console() -> Any:
    return import_module("rich.console").Console(stderr=True)

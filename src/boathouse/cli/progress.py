"""Progress on standard error during long operations; silent if that is not a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TypeVar

from boathouse.bits.progress import console, instead, visible

T = TypeVar("T")


@contextmanager
def spinner(text: str) -> Iterator[None]:
    """A spinner while the block runs, in place of the progress of operations in it."""
    if not visible():
        yield
        return
    with instead(), console().status(text):
        yield


def bar(items: Iterable[T], total: int, text: str) -> Iterator[T]:
    """The items, with a bar that advances as they are consumed."""
    if not visible():
        yield from items
        return
    progress = import_module("rich.progress")
    yield from progress.track(items, text, total=total, console=console(), transient=True)

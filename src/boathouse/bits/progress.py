"""Progress of an operation in process, on standard error; silent where that is neither a terminal nor a notebook.

The engine counts the rows and tasks of the operation that runs in its thread, and knows nothing of how they are shown.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from boathouse.bits.environment import switched_off

if TYPE_CHECKING:
    import pyarrow as pa

Count = Callable[[int], None]
"""So many more are done; from any thread."""
DELAY: Final = 1.0
"""Seconds after which an operation is shown: most have ended by then, and load nothing of the display."""
_one: Final = threading.Lock()
"""Held by what is shown: a terminal has one such line. Other threads' operations are not shown meanwhile."""
_running: ContextVar[Progress | None] = ContextVar("boathouse_progress", default=None)


class Progress:
    """What an operation has done so far, and its display, once there is one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._display: Any = None
        self._ended = False
        self._done, self._unit = 0, ""
        self._total: int | None = None

    def phase(self, unit: str, total: int | None = None) -> None:
        """Counts anew: `rows` or `tasks`, of which there are `total`, if that is known."""
        with self._lock:
            self._done, self._total, self._unit = 0, total, unit
            self._update()

    def advance(self, count: int) -> None:
        """So many more are done; from any thread."""
        with self._lock:
            self._done += count
            self._update()

    def show(self) -> None:
        """Begins to be shown, unless the operation has ended."""
        rich = import_module("rich.progress")
        with self._lock:
            if self._ended:
                return
            columns = (
                rich.SpinnerColumn(),
                rich.TextColumn("{task.description}", markup=False),
                rich.BarColumn(bar_width=20),
                rich.TextColumn("{task.fields[counted]}", markup=False),
                rich.TimeElapsedColumn(),
            )
            self._display = rich.Progress(*columns, console=console(), transient=True, get_time=time.monotonic)
            self._display.add_task(self._text, total=None, counted="")
            self._display.tasks[0].start_time = self._began
            self._display.start()
            self._update()

    def end(self) -> None:
        """Is shown no longer."""
        with self._lock:
            self._ended = True
            if self._display is not None:
                self._display.stop()

    def _update(self) -> None:
        if self._display is None:
            return
        of = "" if self._total is None else f" of {self._total:,}"
        counted = f"{self._done:,}{of} {self._unit}" if self._unit else ""
        self._display.update(
            self._display.task_ids[0], completed=self._done, total=self._total, counted=counted, refresh=False
        )


@contextmanager
def shown(text: str) -> Iterator[None]:
    """Shows what the block does, if it takes more than a second."""
    if not visible() or not _one.acquire(blocking=False):
        yield
        return
    progress = Progress(text)
    timer = threading.Timer(DELAY, progress.show)
    timer.daemon = True
    before = _running.set(progress)
    try:
        timer.start()
        yield
    finally:
        timer.cancel()
        progress.end()
        _running.reset(before)
        _one.release()


@contextmanager
def instead() -> Iterator[None]:
    """Another display has the terminal: no operation in the block is shown."""
    held = _one.acquire(blocking=False)
    try:
        yield
    finally:
        if held:
            _one.release()


def uncounted(count: int) -> None:
    """Counts nothing."""


def phase(unit: str, total: int | None) -> Count:
    """What counts `rows` or `tasks` of the operation in this thread, of which there are `total`, if that is known."""
    progress = _running.get()
    if progress is None:
        return uncounted
    progress.phase(unit, total)
    return progress.advance


def counted(batches: Iterable[pa.RecordBatch], done: Count) -> Iterator[pa.RecordBatch]:
    """The batches; the rows of one are done when the next is asked for."""
    for batch in batches:
        yield batch
        done(batch.num_rows)


def visible() -> bool:
    """Whether standard error is a terminal, or this is a notebook that can show it, and BOATHOUSE_PROGRESS is not 0."""
    if switched_off("BOATHOUSE_PROGRESS"):
        return False
    notebook = "ipykernel" in sys.modules and find_spec("ipywidgets") is not None
    return notebook or (sys.stderr is not None and sys.stderr.isatty())


def console() -> Any:
    """Standard error, for rich."""
    return import_module("rich.console").Console(stderr=True)

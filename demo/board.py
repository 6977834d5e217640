"""The demo's output while it runs: a live board on a terminal, lines elsewhere, nothing with --json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from boathouse.cli import show


class Board:
    """Shows nothing; the base class of the others."""

    def open(self, steps: Sequence[str], formats: Sequence[str]) -> None:
        """Before the first step."""

    def say(self, line: str) -> None:
        """Shows a line."""

    def working(self, step: str, format: str, text: str) -> None:
        """Shows the progress of a step."""

    def done(self, step: str, format: str, seconds: float, text: str) -> None:
        """Shows that a step has ended."""

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A result."""

    def close(self) -> None:
        """Called after the last step, even if one failed."""


class Lines(Board):
    """One plain line per finished step."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True, color_system=None)

    def say(self, line: str) -> None:
        self._console.print(line, markup=False)

    def done(self, step: str, format: str, seconds: float, text: str) -> None:
        self.say(f"{seconds:6.1f} s  {format:<8} {step}: {text}")

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        self.say(f"\n{title}")
        names = [h.replace("_", " ") for h in header]
        show.table(names, [[_text(c) for c in row] for row in rows], _numbers(rows, names))


@dataclass
class Terminal(Board):
    """A table of steps and formats that is filled while the demo runs."""

    _steps: list[str] = field(default_factory=list)
    _formats: list[str] = field(default_factory=list)
    _cells: dict[tuple[str, str], Any] = field(default_factory=dict)
    _live: Live | None = None

    def __post_init__(self) -> None:
        self._console = Console(highlight=False)

    def open(self, steps: Sequence[str], formats: Sequence[str]) -> None:
        self._steps, self._formats = list(steps), list(formats)
        self._live = Live(self._draw(), console=self._console, refresh_per_second=8)
        self._live.start()

    def say(self, line: str) -> None:
        self._console.print(line, markup=False)

    def working(self, step: str, format: str, text: str) -> None:
        self._put(step, format, Spinner("dots", Text(text, style="cyan")))

    def done(self, step: str, format: str, seconds: float, text: str) -> None:
        self._put(step, format, Text.assemble(("✓ ", "green"), f"{seconds:.1f} s  ", (text, "dim")))

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        drawn = Table(box=box.SIMPLE_HEAD)
        right = _numbers(rows, header)
        for name in header:
            drawn.add_column(name.replace("_", " "), justify="right" if name in right else "left")
        for row in rows:
            drawn.add_row(*(Text(_text(c)) for c in row))
        self._console.print(Text(title, style="bold"))
        self._console.print(drawn)

    def close(self) -> None:
        if self._live is not None:
            self._live.update(self._draw(), refresh=True)
            self._live.stop()
            self._live = None

    def _put(self, step: str, format: str, content: Any) -> None:
        self._cells[step, format] = content
        if self._live is not None:
            self._live.update(self._draw())

    def _draw(self) -> Table:
        drawn = Table(box=box.SIMPLE_HEAD)
        drawn.add_column("")
        for name in self._formats:
            drawn.add_column(name, min_width=16)
        for step in self._steps:
            drawn.add_row(step, *(self._cells.get((step, f), Text("·", style="dim")) for f in self._formats))
        return drawn


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value)
    return f"{value:,}"


def _numbers(rows: Sequence[Sequence[Any]], header: Sequence[str]) -> list[str]:
    """The columns that hold numbers, which are right-aligned."""
    first = rows[0] if rows else ()
    return [name for name, value in zip(header, first, strict=False) if isinstance(value, int | float)]

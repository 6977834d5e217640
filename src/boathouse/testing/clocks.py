"""Clocks for tests."""

from __future__ import annotations

from boathouse.bits.system import System

HOUR_MS = 3_600_000


class Ahead(System):
    """The machine's clock, moved forward."""

    def __init__(self, hours: float) -> None:
        self.ms = int(hours * HOUR_MS)

    def now_ms(self) -> int:
        return super().now_ms() + self.ms

"""The clock, sleep, uuids and random numbers; no other module takes them from the machine.

Tests install a seeded `System` with `use(...)`, so that crashes and races can be replayed.
"""

from __future__ import annotations

import random as _random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager


class System:
    """The machine's own clock and randomness."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds on a monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def uuid4(self) -> uuid.UUID:
        return uuid.uuid4()

    def random(self) -> float:
        """A number in [0, 1)."""
        return _random.random()


class SeededSystem(System):
    """Replayable: a clock that advances only on sleeps and reads, and randomness from `seed`."""

    def __init__(self, seed: int, start_ms: int = 1_700_000_000_000) -> None:
        self._random = _random.Random(seed)
        self._ms = float(start_ms)

    def now_ms(self) -> int:
        self._ms += 1
        return int(self._ms)

    def monotonic(self) -> float:
        return self._ms / 1000

    def sleep(self, seconds: float) -> None:
        self._ms += seconds * 1000

    def uuid4(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def random(self) -> float:
        return self._random.random()


_current: System = System()


def current() -> System:
    return _current


@contextmanager
def use(system: System) -> Iterator[System]:
    """Installs `system`, process-wide, until the block ends."""
    global _current
    before, _current = _current, system
    try:
        yield system
    finally:
        _current = before

"""What work takes, in counts: a clock also tells what else the machine does."""

from __future__ import annotations

import cProfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Calls:
    """Calls of functions, those in C too, by this thread; known once the counting has ended."""

    count: int = 0


@contextmanager
def counted_calls() -> Iterator[Calls]:
    calls, profile = Calls(), cProfile.Profile()
    profile.enable()
    try:
        yield calls
    finally:
        profile.disable()
        calls.count = sum(entry.callcount for entry in profile.getstats())

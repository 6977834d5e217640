"""How often a commit that lost to others is tried again, where the table says so."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommitRetries:
    """A value that a table has by its properties. What is None the table leaves to the commit loop.

    `retries` counts every loss of one write, also those after which it was planned again. `waits` are the first and the
    longest wait after a loss, in seconds; each is twice the one before. `total_seconds` is how long after the first
    attempt another one begins. `named` are the properties, for messages.
    """

    named: str = ""
    retries: int | None = None
    waits: tuple[float, float] | None = None
    total_seconds: float | None = None

    def wait(self, lost: int) -> float | None:
        """Seconds after this many losses, without the random share that keeps writers apart."""
        if self.waits is None:
            return None
        least, most = self.waits
        return min(least * 2.0 ** min(lost - 1, _DOUBLINGS), most)


_DOUBLINGS = 64

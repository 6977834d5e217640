"""What planning skipped, and by which filter."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Tally:
    """Counts, during planning, the units skipped by each filter (`partition p = 3`, `bounds x > 5`)."""

    skipped: dict[str, int] = field(default_factory=dict)

    def skip(self, test: str, units: int) -> None:
        if units:
            self.skipped[test] = self.skipped.get(test, 0) + units

    @property
    def total(self) -> int:
        return sum(self.skipped.values())

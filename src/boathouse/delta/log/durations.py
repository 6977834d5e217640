"""Durations of table properties: `interval 1 week` and similar."""

from __future__ import annotations

import re
from typing import Final

DAY_MS: Final = 86_400_000
_INTERVAL: Final = re.compile(r"(?:interval\s+)?(\d+)\s+(millisecond|second|minute|hour|day|week)s?", re.IGNORECASE)
_MS: Final = {
    "millisecond": 1,
    "second": 1_000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": DAY_MS,
    "week": 7 * DAY_MS,
}


def duration_ms(text: str, otherwise: int) -> int:
    """Milliseconds; months and years have no fixed length."""
    match = _INTERVAL.fullmatch(text.strip())
    return int(match[1]) * _MS[match[2].lower()] if match else otherwise

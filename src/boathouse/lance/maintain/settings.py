"""How long a table retains its versions, by its config `lance.auto_cleanup.*`, with which pylance cleans up by
itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from boathouse.errors import InvalidArgumentError

OLDER_THAN: Final = "lance.auto_cleanup.older_than"
RETAIN: Final = "lance.auto_cleanup.retain_versions"
DEFAULT_MS: Final = 14 * 24 * 3_600_000
_PART: Final = re.compile(r"\s*(\d+)\s*([a-zA-Zµ]+)")
_SECOND: Final = 1_000_000_000
_UNITS: Final[Mapping[str, int]] = {
    unit: ns
    for units, ns in (
        ("nanos nsec ns", 1),
        ("usec us µs", 1_000),
        ("millis msec ms", 1_000_000),
        ("seconds second secs sec s", _SECOND),
        ("minutes minute mins min m", 60 * _SECOND),
        ("hours hour hrs hr h", 3_600 * _SECOND),
        ("days day d", 86_400 * _SECOND),
        ("weeks week wks wk w", 7 * 86_400 * _SECOND),
        ("months month M", 2_630_016 * _SECOND),
        ("years year yrs yr y", 31_557_600 * _SECOND),
    )
    for unit in units.split()
}
"""Nanoseconds, by the names that pylance reads."""


def older_than_ms(config: Mapping[str, str], where: str) -> int:
    """The age from which versions expire, two weeks by default. Raises InvalidArgumentError for a text that is none."""
    text = config.get(OLDER_THAN)
    if text is None:
        return DEFAULT_MS
    parts = _PART.findall(text)
    if not parts or _PART.sub("", text).strip() or any(unit not in _UNITS for _, unit in parts):
        raise _none(OLDER_THAN, text, where, "14d or 1h 30m")
    return sum(int(number) * _UNITS[unit] for number, unit in parts) // 1_000_000


def retained(config: Mapping[str, str], where: str) -> int:
    """How many of the newest versions stay, whatever their age. Raises InvalidArgumentError for a text that is none."""
    text = config.get(RETAIN, "1")
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise _none(RETAIN, text, where, "10")
    return int(text)


def _none(name: str, text: str, where: str, example: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"the property {name} is {text!r}", where=where, advice=f"set it to {example}")

"""The properties `commit.retry.*`: how often, and after which waits, a commit that lost is tried again.

The reference has a default for each (4 retries, 100 ms, 1 minute, 30 minutes); what a table does not set is left to the
commit loop, which tries longer.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from boathouse.errors import InvalidArgumentError
from boathouse.table.features import CommitRetries

log = logging.getLogger("boathouse")

PREFIX: Final = "commit.retry."
_RETRIES: Final = "commit.retry.num-retries"
_LEAST: Final = "commit.retry.min-wait-ms"
_MOST: Final = "commit.retry.max-wait-ms"
_TOTAL: Final = "commit.retry.total-timeout-ms"
_DEFAULT_WAITS: Final = (100, 60_000)


def asked_retries(properties: Mapping[str, str]) -> CommitRetries | None:
    """None if the table says nothing. A property that is no number is as if it were not set."""
    found = {key: _number(properties[key]) for key in (_RETRIES, _LEAST, _MOST, _TOTAL) if key in properties}
    for key, value in found.items():
        if value is None:
            log.warning("the property %s is %r, which is not a number: it is ignored", key, properties[key])
    known = {key: value for key, value in found.items() if value is not None}
    if not known:
        return None
    waits = None
    if _LEAST in known or _MOST in known:
        least = known.get(_LEAST, _DEFAULT_WAITS[0])
        waits = least / 1000, max(least, known.get(_MOST, _DEFAULT_WAITS[1])) / 1000
    total = known.get(_TOTAL)
    named = ", ".join(f"{key} = {value}" for key, value in known.items())
    return CommitRetries(named, known.get(_RETRIES), waits, None if total is None else total / 1000)


def check(properties: Mapping[str, str]) -> None:
    """Raises InvalidArgumentError for properties that are about to be set and are no numbers."""
    for key, value in properties.items():
        if key in (_RETRIES, _LEAST, _MOST, _TOTAL) and _number(value) is None:
            raise InvalidArgumentError(f"the property {key} would be {value!r}", advice="set it to a whole number")


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else None


_DIGITS: Final = 19

"""Time zones over numpy arrays: instants to wall clocks and back, as Java's `java.time` converts them, for every year.

Python's zoneinfo converts one datetime of the years 1 to 9999 at a time, and Arrow's own conversion applies no rule
beyond the last listed transition (2037), so the transitions are read from the TZif files (RFC 9636) that zoneinfo
finds, and continued by the rule in their footer for 400 years, after which the Gregorian calendar repeats.
"""

from __future__ import annotations

import datetime as dt
import io
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

import numpy as np
import numpy.typing as npt

from boathouse.errors import InvalidArgumentError

Ints = npt.NDArray[np.int64]

_CYCLE = 146_097 * 86_400
"""Seconds of 400 Gregorian years: whole weeks, so every yearly rule repeats."""
_DAY = 86_400
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?", re.A)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_+\-]*(?:/[A-Za-z0-9_+\-]+)*")
_NOT_JAVAS = ("posix/", "right/", "posixrules", "localtime", "Factory")
# java.time.ZoneId.SHORT_IDS, which Spark's session zone is resolved with; only those that tz names differently or not
# at all.
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
    "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Zone:
    """A time zone: `offsets[i]` seconds east of UTC from the instant `starts[i - 1]` (seconds) until `starts[i]`.

    `last` is the instant from which on the transitions repeat every 400 years; None if no more follow.
    """

    name: str
    starts: Ints
    offsets: Ints
    last: int | None = None

    @property
    def fixed(self) -> bool:
        """Whether the offset never changes."""
        return len(self.starts) == 0

    @property
    def utc(self) -> bool:
        return self.fixed and self.offsets[0] == 0

    @cached_property
    def dates_fall(self) -> bool:
        """Whether a clock was ever set back across midnight, so that a later instant has an earlier date."""
        before, after = self.starts + self.offsets[:-1] - 1, self.starts + self.offsets[1:]
        return bool((after // _DAY < before // _DAY).any())

    def to_local(self, instants: Ints, per_second: int) -> Ints:
        """Wall clocks of instants, counted as if they were in UTC; both in the given units per second."""
        return instants + self.offset_at(instants // per_second) * per_second

    def clock(self, instant: int, per_second: int) -> int:
        """`to_local` of one instant, of any size."""
        return instant + int(self.offset_at(np.array([instant // per_second]))[0]) * per_second

    def instant(self, clock: int, per_second: int) -> int:
        """`to_instant` of one wall clock, of any size."""
        return clock - int(self._offset_of(np.array([clock // per_second]))[0]) * per_second

    def offset_at(self, seconds: Ints) -> Ints:
        """Seconds east of UTC at each instant."""
        if self.fixed:
            return np.broadcast_to(self.offsets[0], np.shape(seconds))
        return self.offsets[np.searchsorted(self.starts, self._repeated(seconds), side="right")]

    def to_instant(self, clocks: Ints, per_second: int) -> Ints:
        """Instants of wall clocks. A wall clock that occurs twice is the earlier instant, one that is skipped moves on
        by the gap.

        Both use the offset before the transition, as `java.time.LocalDateTime.atZone` does.
        """
        return clocks - self._offset_of(clocks // per_second) * per_second

    def _offset_of(self, seconds: Ints) -> Ints:
        if self.fixed:
            return np.broadcast_to(self.offsets[0], np.shape(seconds))
        return self.offsets[np.searchsorted(self._ends, self._repeated(seconds), side="right")]

    @cached_property
    def _ends(self) -> Ints:
        """Wall clocks, in seconds, from which on the offset after each transition applies."""
        return np.maximum.accumulate(self.starts + np.maximum(self.offsets[:-1], self.offsets[1:]))

    def start_of_day(self, days: Ints, per_second: int) -> Ints:
        """The first instant of dates (days since the epoch); the end of the gap if midnight is skipped.

        As `java.time.LocalDate.atStartOfDay`: it differs from `to_instant` where a gap begins before midnight.
        """
        seconds = days * _DAY
        out = seconds - self._offset_of(seconds)
        if not self.fixed:
            listed = self._repeated(seconds)
            at = np.minimum(np.searchsorted(self._ends, listed, side="right"), len(self.starts) - 1)
            skipped = (listed >= self.starts[at] + self.offsets[at]) & (listed < self._ends[at])
            gap = skipped & (self.offsets[at + 1] > self.offsets[at])
            out = np.where(gap, self.starts[at] + (seconds - listed), out)
        return out * per_second

    def truncate(self, instants: Ints, start: Callable[[Ints], Ints], per_second: int) -> Ints:
        """The instants of `start` (a function from wall clocks to earlier ones) of each instant's wall clock.

        A wall clock that occurs twice is the one with the instant's own offset, as in Java's `truncatedTo`.
        """
        own = self.offset_at(instants // per_second) * per_second
        clocks = start(instants + own)
        same = clocks - own
        return np.where(self.to_local(same, per_second) == clocks, same, self.to_instant(clocks, per_second))

    def _repeated(self, seconds: Ints) -> Ints:
        """The same instants, with those far in the future moved back to where transitions are listed."""
        if self.last is None:
            return seconds
        # A day of margin: wall clocks are compared here too.
        far = np.maximum(seconds - self.last - _DAY, 0)
        return seconds - -(-far // _CYCLE) * _CYCLE

    def same_as(self, other: Zone) -> bool:
        """Whether every instant has the same wall clock in both."""
        return np.array_equal(self.starts, other.starts) and np.array_equal(self.offsets, other.offsets)


@lru_cache(256)
def zone(name: str) -> Zone:
    """The zone of a name of the tz database, of Java's three letters, or of an offset (`+05:30`, `UTC-3`, `Z`).

    Raises InvalidArgumentError for an unknown name, or if there is no tz database.
    """
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{name!r} is not a time zone", advice="pass a name such as 'Europe/Berlin'")
    target = _SHORT.get(name, name)
    if target in ("Z", "UTC", "GMT", "UT"):
        return _fixed(name, 0)
    m = _OFFSET.fullmatch(target)
    if m is not None:
        hours, minutes, seconds = int(m[2]), int(m[3] or 0), int(m[4] or 0)
        total = hours * 3600 + minutes * 60 + seconds
        if total <= 18 * 3600 and minutes < 60 and seconds < 60:
            return _fixed(name, total if m[1] == "+" else -total)
    data = _file(target) if _NAME.fullmatch(target) and not target.startswith(_NOT_JAVAS) else None
    if data is None or not data.startswith(b"TZif"):
        raise InvalidArgumentError(
            f"{name!r} is not a known time zone",
            advice="pass a name such as 'Europe/Berlin' or an offset such as '+05:30'; "
            "if the system has no tz database, install the package tzdata",
        )
    return _read(name, data)


def _fixed(name: str, offset: int) -> Zone:
    return Zone(name, np.empty(0, np.int64), np.array([offset], np.int64))


def _file(key: str) -> bytes | None:
    """The TZif file of a key, from where zoneinfo searches: the system's folders, then the package tzdata."""
    for folder in TZPATH:
        path = Path(folder, key)
        if path.is_file():
            return path.read_bytes()
    try:
        return resources.files("tzdata").joinpath("zoneinfo", *key.split("/")).read_bytes()
    except (ModuleNotFoundError, OSError):
        return None


def _read(name: str, data: bytes) -> Zone:
    """The 64-bit block of a TZif file (RFC 9636, 3), continued by its footer."""
    start = 0
    if data[4:5] >= b"2":
        *_, leaps, times, types, chars = counts = struct.unpack(">6l", data[20:44])
        start = 44 + times * 5 + types * 6 + chars + leaps * 8 + counts[0] + counts[1]
    wide = 8 if start else 4
    *_, times, types, chars = struct.unpack(">6l", data[start + 20 : start + 44])
    at = start + 44
    starts = np.frombuffer(data, f">i{wide}", times, at).astype(np.int64)
    at += times * wide
    index = np.frombuffer(data, np.uint8, times, at)
    at += times
    known = np.array([struct.unpack_from(">l", data, at + 6 * i)[0] for i in range(types)], np.int64)
    offsets = np.concatenate([known[:1], known[index]])
    footer = data[data.rstrip(b"\n").rfind(b"\n") + 1 :].strip(b"\n") if start else b""
    if b"," not in footer:
        return _kept(name, starts, offsets, None)
    more, after = _by_rule(ZoneInfo.from_file(io.BytesIO(data)), int(starts[-1]) if times else 0)
    last = int(more[-1]) if len(more) else None
    return _kept(name, np.concatenate([starts, more]), np.concatenate([offsets, after]), last)


def _kept(name: str, starts: Ints, offsets: Ints, last: int | None) -> Zone:
    """Without transitions that do not change the offset, only daylight saving or the name."""
    moved = offsets[1:] != offsets[:-1]
    return Zone(name, starts[moved], np.concatenate([offsets[:1], offsets[1:][moved]]), last)


def _by_rule(info: ZoneInfo, since: int) -> tuple[Ints, Ints]:
    """The transitions of the 401 years after the last listed one, found by bisection between weeks whose offsets
    differ."""
    starts: list[int] = []
    offsets: list[int] = []
    low, before = since, _offset(info, since)
    end = since + _CYCLE + 366 * _DAY
    while low < end:
        high = low + 14 * _DAY
        after = _offset(info, high)
        if after != before:
            left, right = low, high
            while right - left > 1:
                middle = (left + right) // 2
                left, right = (middle, right) if _offset(info, middle) == before else (left, middle)
            starts.append(right)
            offsets.append(after)
        low, before = high, after
    return np.array(starts, np.int64), np.array(offsets, np.int64)


def _offset(info: ZoneInfo, seconds: int) -> int:
    instant = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)
    found = instant.astimezone(info).utcoffset()
    assert found is not None
    return int(found.total_seconds())

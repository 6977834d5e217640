"""The proleptic Gregorian calendar over numpy arrays of day numbers, for every year that fits 32 bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

DAY_US = 86_400_000_000


def civil(days: Ints) -> tuple[Ints, Ints, Ints]:
    """(year, month 1..12, day 1..31) of days since 1970-01-01."""
    z = days + 719468
    era = z // 146097
    doe = z - era * 146097
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = np.where(mp < 10, mp + 3, mp - 9)
    return yoe + era * 400 + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1


def day_number(year: Ints, month: Ints | int, day: Ints | int) -> Ints:
    """Days since 1970-01-01; the inverse of `civil`."""
    m = np.asarray(month, np.int64)
    y = year - (m <= 2)
    doy = (153 * (m + np.where(m > 2, -3, 9)) + 2) // 5 + day - 1
    out: Ints = 365 * y + y // 4 - y // 100 + y // 400 + doy - 719468
    return out


def day_of_year(days: Ints) -> Ints:
    return days - day_number(civil(days)[0], 1, 1) + 1


def weekday(days: Ints) -> Ints:
    """0 is Monday."""
    return (days + 3) % 7


def iso_week(days: Ints) -> Ints:
    thursday = days - weekday(days) + 3
    return (day_of_year(thursday) - 1) // 7 + 1


def last_day(days: Ints) -> Ints:
    year, month, _ = civil(days)
    return day_number(year + (month == 12), month % 12 + 1, 1) - 1


def truncate_days(days: Ints, unit: str) -> Ints:
    """The first day of the `unit`: year, quarter, month or week (from Monday)."""
    if unit == "week":
        return days - weekday(days)
    year, month, _ = civil(days)
    if unit == "year":
        return day_number(year, 1, 1)
    return day_number(year, month if unit == "month" else (month - 1) // 3 * 3 + 1, 1)

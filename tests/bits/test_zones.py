"""Time zones over arrays agree with zoneinfo in every year that it knows, and go on beyond."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.bits.zones import zone
from boathouse.errors import InvalidArgumentError

NAMES = ["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Europe/Dublin", "Africa/Casablanca",
         "America/Havana", "Pacific/Apia", "Asia/Manila", "America/Sao_Paulo", "Antarctica/Troll"]  # fmt: skip
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
CYCLE = 146_097 * 86_400


def expected(name: str, seconds: int) -> int:
    return int((EPOCH + dt.timedelta(seconds=seconds)).astimezone(ZoneInfo(name)).utcoffset().total_seconds())


@pytest.mark.parametrize("name", NAMES)
def test_offsets_around_every_transition(name):
    z = zone(name)
    at = np.concatenate([z.starts + around for around in (-1, 0, 1)])
    at = at[at < 253_000_000_000]
    assert len(at) and z.offset_at(at).tolist() == [expected(name, int(s)) for s in at]


@given(st.sampled_from(NAMES), st.lists(st.integers(-62_000_000_000, 253_000_000_000), min_size=1))
def test_offsets_at_any_instant(name, seconds):
    assert zone(name).offset_at(np.array(seconds)).tolist() == [expected(name, s) for s in seconds]


@given(st.sampled_from(NAMES), st.integers(5_000_000_000, 17_000_000_000), st.integers(1, 500))
def test_the_rule_repeats_every_400_years(name, second, times):
    z = zone(name)
    assert z.offset_at(np.array([second + times * CYCLE])) == z.offset_at(np.array([second]))


@given(st.sampled_from(NAMES), st.integers(-62_000_000_000, 253_000_000_000))
def test_a_clock_that_exists_leads_back(name, second):
    """To the instant itself, or to the earlier one of two with the same clock."""
    z = zone(name)
    clock = z.clock(second, 1)
    back = z.instant(clock, 1)
    assert z.clock(back, 1) == clock and back <= second


def test_a_skipped_clock_moves_on_by_the_gap_and_a_day_begins_where_it_can():
    ny, toronto, apia = zone("America/New_York"), zone("America/Toronto"), zone("Pacific/Apia")
    at_two_thirty = int((dt.datetime(2024, 3, 10, 2, 30) - dt.datetime(1970, 1, 1)).total_seconds())
    assert ny.clock(ny.instant(at_two_thirty, 1), 1) == at_two_thirty + 3600
    # The clocks of Toronto went from 23:30 on 1919-03-30 to 00:30: the next day has no midnight.
    day = (dt.date(1919, 3, 31) - dt.date(1970, 1, 1)).days
    assert toronto.to_local(toronto.start_of_day(np.array([day]), 1), 1).tolist() == [day * 86_400 + 1800]
    # Apia had no 2011-12-30 at all.
    skipped = (dt.date(2011, 12, 30) - dt.date(1970, 1, 1)).days
    first, second = apia.start_of_day(np.array([skipped, skipped + 1]), 1)
    assert first == second


@pytest.mark.parametrize(
    ("name", "hours"),
    [("UTC", 0), ("Z", 0), ("+05:30", 5.5), ("-8", -8), ("UTC+3", 3), ("GMT-03:30", -3.5), ("EST", -5)],
)
def test_offsets_as_names(name, hours):
    z = zone(name)
    assert z.fixed and z.offset_at(np.array([0])).tolist() == [hours * 3600]


def test_short_names_are_javas():
    assert zone("PST").same_as(zone("America/Los_Angeles")) and zone("IST").same_as(zone("Asia/Kolkata"))


@pytest.mark.parametrize(
    "name", ["", "Nowhere", "Europe/", "../etc/passwd", "+19", "right/Europe/Berlin", "europe berlin", "/UTC"]
)
def test_names_that_are_not_known(name):
    with pytest.raises(InvalidArgumentError, match="time zone"):
        zone(name)


def test_units_of_a_second():
    z = zone("Asia/Kolkata")
    ns = np.array([1_700_000_000_123_456_789])
    assert z.to_local(ns, 1_000_000_000).tolist() == [1_700_000_000_123_456_789 + 19_800 * 10**9]
    assert z.to_instant(z.to_local(ns, 1_000_000_000), 1_000_000_000).tolist() == ns.tolist()

"""Spark's text forms of values where they surprise; test_cast_spark of the variants asks Spark itself."""

from __future__ import annotations

from decimal import Decimal

import pytest

from boathouse.bits.zones import zone
from boathouse.expr.text import fit_decimal, parse_timestamp

TEN = 1_704_103_200_000_000  # 2024-01-01 10:00 UTC


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2024-01-01 10", TEN),
        ("2024-01-01 10:00:00Z", TEN),
        ("2024-01-01 10:00:00. ", TEN),
        ("2024-01-01T10:00:00.Z", TEN),
        ("2024-01-01 10:00:00 Europe/Berlin", TEN - 3_600_000_000),
        ("2024-01-01 10:00Z", None),
        ("2024-01-01 10:00+02:00", None),
        ("2024-01-01 10+02:00", None),
        ("2024-01-01 +02:00", None),
        ("2024-01-01Z", None),
    ],
)
def test_a_zone_follows_seconds(text, micros):
    found = parse_timestamp(text, zone("UTC"))
    assert found == micros


@pytest.mark.parametrize("text", ["-0", "-0.00", "-0.001", "-0E+5"])
def test_a_decimal_has_no_negative_zero(text):
    found = fit_decimal(Decimal(text), 4, 2)
    assert found is not None and not found.is_signed() and f"{found:f}" == "0.00"

"""Values in the places of parameters."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pytest

from boathouse.errors import ExpressionError, InvalidArgumentError
from boathouse.expr.parameters import bound

HOUR = dt.timezone(dt.timedelta(hours=1))


def of(sql, args):
    return bound(sql, args, lambda value: None)


@pytest.mark.parametrize(
    ("sql", "args", "text"),
    [
        ("a = :x AND b = :y", {"x": 1, "y": "it's; DROP TABLE t --"}, r"a = 1 AND b = 'it\'s; DROP TABLE t --'"),
        ("a = ? AND b < ?", [True, -2], "a = true AND b < (-2)"),
        ("':x' || `:x` || :x -- :x\n", {"x": "v"}, "':x' || `:x` || 'v' -- :x\n"),
        ("CAST(s AS struct<a:int,`b`:x>) = :x", {"x": None}, "CAST(s AS struct<a:int,`b`:x>) = NULL"),
        ("a::string = :a", {"a": 2**40}, f"a::string = {2**40}"),
        ("a IN (:x,:y)", {"x": Decimal("1.50"), "y": 2.5}, "a IN (CAST('1.50' AS DECIMAL(3,2)),2.5D)"),
        ("array_contains(?, a)", [["x", None]], "array_contains(array('x', NULL), a)"),
        ("m = :m", {"m": {"k": 1}}, "m = map('k', 1)"),
        ("ts > :t", {"t": dt.datetime(2026, 1, 2, 3, tzinfo=HOUR)}, "ts > TIMESTAMP'2026-01-02 02:00:00Z'"),
        ("d = :d", {"d": dt.date(2026, 1, 2)}, "d = DATE'2026-01-02'"),
        ("x = ?", [math.nan], "x = CAST('NaN' AS DOUBLE)"),
        ("x = :größe", {"größe": b"\x00\xff"}, "x = X'00FF'"),
        ("VERSION AS OF :v", {"v": 3, "unused": 1}, "VERSION AS OF 3"),
    ],
)
def test_values_become_literals(sql, args, text):
    assert of(sql, args) == text


@pytest.mark.parametrize(
    ("sql", "args", "kind", "message"),
    [
        ("a = :x", {"y": 1}, ExpressionError, "line 1, column 5: the parameter :x has no value"),
        ("a = ? AND b = ?", [1], ExpressionError, "column 15: args has 1 values"),
        ("a = ?", [1, 2], InvalidArgumentError, "2 values for 1 places"),
        ("a = :x", {"x": object()}, ExpressionError, "object is not a literal"),
        ("a = ?", "x", InvalidArgumentError, "args='x'"),
        ("a = ?", {1}, InvalidArgumentError, "args={1}"),
    ],
)
def test_what_does_not_fit_is_said(sql, args, kind, message):
    with pytest.raises(kind, match=message):
        of(sql, args)

"""Rewrites that preserve the meaning, except for errors: folds constants, moves literals to the right, removes casts of
columns."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from boathouse import types as T
from boathouse.bits.floats import to_float32
from boathouse.bits.zones import Zone
from boathouse.expr import text
from boathouse.expr.tree import (
    FALSE,
    TRUE,
    And,
    Case,
    Cast,
    Comparison,
    ComparisonOp,
    Expr,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    rebuild,
)
from boathouse.expr.zoned import cast_needs_zone, needs_zone, zone_of

_FLIPPED: dict[str, ComparisonOp] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<=>": "<=>"}
_NEGATED: dict[str, ComparisonOp] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_UNKNOWN = Literal(None, type=T.BOOLEAN)


def simplify(e: Expr) -> Expr:
    """An equivalent, simpler form of a bound expression."""
    return _step(rebuild(e, simplify))


def _step(e: Expr) -> Expr:
    match e:
        case Not(arg):
            return _not(arg)
        case And(args):
            return _join(And, args, TRUE, FALSE)
        case Or(args):
            return _join(Or, args, FALSE, TRUE)
        case Comparison():
            return _comparison(e)
        case In():
            return _in(e)
        case IsNull(Literal(value)):
            return TRUE if value is None else FALSE
        case Like():
            return _like(e)
        case Cast(arg, to):
            if arg.type == to:
                return arg
            if isinstance(arg, Literal):
                return _cast_of_literal(e, arg)
        case Case():
            return _case(e)
    return e


def _cast_of_literal(e: Cast, arg: Literal) -> Expr:
    if e.zone is None and needs_zone(e):
        return e
    folded = cast_literal(arg, e.to, zone_of(e))
    if folded is None and e.safe and isinstance(arg.type, T.StringType):
        return Literal(None, type=e.to)
    return folded if folded is not None else e


def _not(arg: Expr) -> Expr:
    match arg:
        case Literal(None):
            return _UNKNOWN
        case Literal(value):
            return FALSE if value else TRUE
        case Not(inner):
            return inner
        case Comparison(op) if op in _NEGATED:
            return replace(arg, op=_NEGATED[op])
    return Not(arg, type=T.BOOLEAN)


def _join(kind: type[And] | type[Or], args: tuple[Expr, ...], neutral: Literal, decisive: Literal) -> Expr:
    flat: list[Expr] = []
    for a in args:
        flat.extend(a.args if isinstance(a, kind) else (a,))
    kept = list(dict.fromkeys(a for a in flat if a != neutral))
    if decisive in kept:
        return decisive
    return kind(tuple(kept), type=T.BOOLEAN) if len(kept) > 1 else kept[0] if kept else neutral


def _comparison(e: Comparison) -> Expr:
    op, left, right = e.op, e.left, e.right
    if isinstance(left, Literal) and not isinstance(right, Literal):
        op, left, right = _FLIPPED[op], right, left
    if not isinstance(right, Literal):
        return e
    if right.value is None:
        return _step(IsNull(left, type=T.BOOLEAN)) if op == "<=>" else _UNKNOWN
    if isinstance(left, Literal):
        return _compare_literals(op, left, right)
    bare = _unwrap(left, right)
    if bare is not None:
        left, right = bare
    return Comparison(op, left, right, type=T.BOOLEAN)


def _compare_literals(op: str, a: Literal, b: Literal) -> Expr:
    if a.value is None:
        return FALSE if op == "<=>" else _UNKNOWN
    x, y = sort_key(a.value), sort_key(b.value)
    result = {
        "=": x == y,
        "<=>": x == y,
        "!=": x != y,
        "<": x < y,
        "<=": x <= y,
        ">": x > y,
        ">=": x >= y,
    }[op]
    return TRUE if result else FALSE


def sort_key(value: object) -> Any:
    """A key that orders values as Spark does: NaN last, strings by their UTF-8 bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _in(e: In) -> Expr:
    value, options = e.value, e.options
    if not all(isinstance(o, Literal) for o in options):
        return e
    if isinstance(value, Literal):
        return _step(Or(tuple(_step(Comparison("=", value, o, type=T.BOOLEAN)) for o in options), type=T.BOOLEAN))
    literals = [o for o in options if isinstance(o, Literal)]
    pairs = [_unwrap(value, o) for o in literals if o.value is not None]
    if pairs and all(p is not None for p in pairs):
        value = next(p[0] for p in pairs if p)
        nulls = [Literal(None, type=value.type) for o in literals if o.value is None]
        literals = [p[1] for p in pairs if p] + nulls[:1]
    distinct = tuple(dict.fromkeys(literals))
    if len(distinct) == 1:
        return _step(Comparison("=", value, distinct[0], type=T.BOOLEAN))
    return In(value, distinct, type=T.BOOLEAN)


def _unwrap(left: Expr, right: Literal) -> tuple[Expr, Literal] | None:
    """`CAST(x AS wide) op literal` as `x op narrower literal`, where that is equivalent for every x."""
    if not isinstance(left, Cast) or left.safe or right.value is None:
        return None
    inner, source, value = left.arg, left.arg.type, right.value
    narrow: object = None
    match source, left.to:
        case (T.IntegerType(), T.IntegerType() | T.FloatType() | T.DecimalType()):
            narrow = _as_int(value, source)
        case (T.FloatType(32), T.FloatType(64)) if isinstance(value, float):
            narrow = value if math.isnan(value) or to_float32(value) == value else None
        case (T.DecimalType(p, s), T.DecimalType(q, t)) if q - t >= p - s and t >= s and isinstance(value, Decimal):
            fit = text.fit_decimal(value, p, s)
            narrow = fit if fit == value else None
        case (T.DateType(), T.TimestampType(unit=unit)) if isinstance(value, int):
            narrow = _date_of(value, text.UNITS_PER_SECOND[unit], zone_of(left))
    if narrow is None:
        return None
    pair = _unwrap(inner, Literal(narrow, type=source))  # type: ignore[arg-type]
    return pair or (inner, Literal(narrow, type=source))  # type: ignore[arg-type]


def _date_of(value: int, per_second: int, zone: Zone | None) -> int | None:
    """The one date whose first instant (without a zone: whose midnight) is `value`."""
    clock = value if zone is None else zone.clock(value, per_second)
    day, rest = divmod(clock, 86_400 * per_second)
    if zone is None or rest:
        return None if rest else day
    # A whole day may be skipped: then two dates begin at the same instant.
    around = zone.start_of_day(np.array([day - 1, day, day + 1]), 1) == value // per_second
    return day if around.tolist() == [False, True, False] else None


def _as_int(value: object, type: T.IntegerType) -> int | None:
    if isinstance(value, float) and not (math.isfinite(value) and abs(value) < 2**53):
        return None
    if not isinstance(value, int | float | Decimal) or value != int(value):
        return None
    return int(value) if type.low <= value <= type.high else None


def _like(e: Like) -> Expr:
    """LIKE without wildcards is `=`; with a single `%` at the end it is startswith."""
    if e.ignore_case or not isinstance(e.pattern, Literal):
        return e
    if not isinstance(e.pattern.value, str):
        return _UNKNOWN
    parts = like_parts(e.pattern.value, e.escape)
    if parts is None:
        return e
    prefix, rest = parts
    literal = Literal(prefix, type=e.pattern.type)
    if rest == []:
        return _step(Comparison("=", e.value, literal, type=T.BOOLEAN))
    if rest == ["%"] and prefix:
        return Function("startswith", (e.value, literal), type=T.BOOLEAN)
    return e


def like_parts(pattern: str, escape: str) -> tuple[str, list[str]] | None:
    """(fixed prefix, the rest: single characters, `%` and `_` being wildcards, escaped ones as `\\x`).

    None if the escape character is used where Spark refuses it.
    """
    prefix: list[str] = []
    rest: list[str] = []
    i = 0
    while i < len(pattern):
        c = pattern[i]
        escaped = c == escape
        if escaped:
            i += 1
            if i == len(pattern) or pattern[i] not in ("%", "_", escape):
                return None
            c = pattern[i]
        if rest or (c in "%_" and not escaped):
            rest.append("\\" + c if escaped else c)
        else:
            prefix.append(c)
        i += 1
    return "".join(prefix), rest


def _case(e: Case) -> Expr:
    kept: list[tuple[Expr, Expr]] = []
    for condition, value in e.branches:
        if isinstance(condition, Literal):
            if not condition.value:
                continue
            return Case(tuple(kept), value, type=e.type) if kept else value
        kept.append((condition, value))
    if kept:
        return replace(e, branches=tuple(kept))
    return e.otherwise if e.otherwise is not None else Literal(None, type=e.type)


def cast_literal(e: Literal, to: T.DataType, zone: Zone | None = None) -> Literal | None:
    """CAST of a constant; None where it fails, is left to the evaluator, or needs an unknown zone."""
    if e.value is None:
        return Literal(None, type=to)
    if e.type == to:
        return e
    assert e.type is not None
    if isinstance(e.value, str):
        value = _from_text(e.value, to, zone)
    elif zone is None and cast_needs_zone(e.type, to):
        value = None
    else:
        value = _from_value(e.value, e.type, to, zone)
    return None if value is None else Literal(value, type=to)  # type: ignore[arg-type]


def _from_text(word: str, to: T.DataType, zone: Zone | None) -> object:
    match to:
        case T.BooleanType():
            return text.parse_boolean(word)
        case T.IntegerType(bits, signed):
            number = text.parse_integer(word, bits if signed else bits + 1)
            return number if signed or (number is not None and number >= 0) else None
        case T.FloatType(bits):
            return half(text.parse_float(word, 32)) if bits == 16 else text.parse_float(word, bits)
        case T.TimeType(unit):
            return text.parse_time(word, unit)
        case T.DecimalType(precision, scale):
            return text.parse_decimal(word, precision, scale)
        case T.DateType():
            return text.parse_date(word)
        case T.TimestampType(utc, unit):
            us = text.parse_timestamp(word, zone) if utc else text.parse_timestamp_ntz(word)
            return None if us is None else us * text.UNITS_PER_SECOND[unit] // 1_000_000
        case T.BinaryType():
            return word.encode()
        case T.UUIDType():
            digits = word.replace("-", "")
            return bytes.fromhex(digits) if len(digits) == 32 and not digits.strip("0123456789abcdefABCDEF") else None
    return None


def half(value: float | None) -> float | None:
    """The nearest half float."""
    with np.errstate(over="ignore"):
        return None if value is None else float(np.float16(value))


def _from_value(value: object, source: T.DataType, to: T.DataType, zone: Zone | None) -> object:
    match source, to:
        case (T.BooleanType(), _):
            return None
        case (T.IntegerType() | T.DecimalType(), T.IntegerType()) if isinstance(value, int | Decimal):
            whole = int(value)
            return whole if to.low <= whole <= to.high else None
        case (T.IntegerType() | T.DecimalType() | T.FloatType(), T.FloatType(bits)) if isinstance(
            value, int | float | Decimal
        ):
            return half(float(value)) if bits == 16 else to_float32(float(value)) if bits == 32 else float(value)
        case (T.IntegerType() | T.DecimalType(), T.DecimalType(precision, scale)) if isinstance(value, int | Decimal):
            return text.fit_decimal(Decimal(value), precision, scale)
        case (T.DateType(), T.TimestampType(unit="us")) if isinstance(value, int):
            us = value * text.DAY_US if zone is None else int(zone.start_of_day(np.array([value]), 1)[0]) * 1_000_000
            return us if -(2**63) <= us < 2**63 else None
        case (T.TimestampType(unit="us"), T.TimestampType(utc=utc, unit="us" | "ns" as unit)) if isinstance(value, int):
            us = value if zone is None else zone.instant(value, 1_000_000) if utc else zone.clock(value, 1_000_000)
            us = us if unit == "us" else us * 1000
            return us if -(2**63) <= us < 2**63 else None
        case (T.TimestampType(unit="us"), T.DateType()) if isinstance(value, int):
            return (value if zone is None else zone.clock(value, 1_000_000)) // text.DAY_US
        case (T.TimestampType(utc=True, unit=unit), T.IntegerType()) if isinstance(value, int):
            whole = value // text.UNITS_PER_SECOND[unit]
            return whole if to.low <= whole <= to.high else None
        case (T.TimestampType(utc=True, unit=unit), T.FloatType(32 | 64 as bits)) if isinstance(value, int):
            seconds = value / text.UNITS_PER_SECOND[unit]
            return to_float32(seconds) if bits == 32 else seconds
        case (T.BinaryType(), T.BinaryType()) | (T.UUIDType(), T.BinaryType()):
            return value
    return None

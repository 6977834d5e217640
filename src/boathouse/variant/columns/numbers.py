"""Numbers and times of many values as numpy arrays, cast by the rules of `boathouse.variant.cast`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boathouse import types as T
from boathouse.bits.unaligned import Ints, Mask, prefix, window
from boathouse.expr.text import UNITS_PER_SECOND
from boathouse.variant.columns.nodes import SIZE, Nodes
from boathouse.variant.primitives import DAY_MICROS, DECIMAL16, FALSE, INT8, INT64, KINDS, MAX_SCALE, TRUE, Family, Kind

_POW10 = np.array([10**i for i in range(19)], np.int64)
_FLOAT_POW10 = np.array([float(10**i) for i in range(23)])
_EXACT = 1 << 53  # integers up to here are doubles
_DAY = 86_400
_HALF = 5 * 10**18
INTEGER = INT64  # the group of int8 to int64
_COUNTS = (Family.BOOLEAN, Family.INTEGER)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Values of one group of types: `kind` (int64 stands for all integers), `whole` (integers, unscaled decimals, days
    or fractions of a second) or `real`; `scale` of decimals; `hard` marks those that int64 cannot hold."""

    kind: Kind
    whole: Ints | None = None
    real: npt.NDArray[np.float64] | None = None
    scale: Ints | None = None
    hard: Mask | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """`values` as the type's physical numbers; `bad` ones have no such value; `hard` ones are cast one by one."""

    values: npt.NDArray[Any]
    bad: Mask | None = None
    hard: Mask | None = None


def group_of(kinds: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Kinds, with all integers as INTEGER and both booleans as TRUE."""
    return _GROUP[kinds]


_GROUP = np.arange(256, dtype=np.uint8)
_GROUP[INT8 : INT64 + 1] = INTEGER
_GROUP[FALSE] = TRUE
NUMERIC = {
    int(_GROUP[kind.id])
    for kind in KINDS
    if kind.family not in (Family.NULL, Family.BINARY, Family.STRING, Family.UUID)
}


def read(nodes: Nodes, group: int) -> Numbers:
    """The values of nodes that are all of one group. MalformedVariant for those cut short, or that violate their type's
    rules; if lenient, their values are undefined."""
    kind, data, pos = KINDS[group], nodes.data, nodes.pos
    head = data[pos]
    if kind.family is Family.BOOLEAN:
        return Numbers(kind, whole=(head == TRUE << 2).astype(np.int64))
    size = SIZE[head]
    kept = nodes.check(pos + size <= nodes.end, "a value ends beyond its container")
    if kept is not None:
        pos = np.where(kept, pos, 0)
    if kind.family is Family.DECIMAL:
        return _decimals(nodes, pos, kind)
    whole = _words(nodes, pos + 1)
    match kind.family:
        case Family.INTEGER:
            shift = 72 - (size << 3)
            whole <<= shift
            whole >>= shift
        case Family.FLOAT if kind.size == 4:
            with np.errstate(invalid="ignore"):  # signalling NaNs
                return Numbers(kind, real=whole.astype("<i4").view("<f4").astype(np.float64))
        case Family.FLOAT:
            return Numbers(kind, real=whole.view("<f8"))
        case Family.DATE:
            whole = whole.astype("<i4").astype(np.int64)
        case Family.TIME:
            nodes.check((whole >= 0) & (whole < DAY_MICROS), "not a time of day: it is negative, or 24:00 and later")
    return Numbers(kind, whole=whole)


def _words(nodes: Nodes, pos: Ints) -> Ints:
    """Eight bytes at each position; zeros beyond the buffer."""
    if len(pos) and int(pos.max()) <= len(nodes.data) - 8:
        return np.asarray(window(nodes.data, "<i8")[pos])
    return prefix(nodes.data, pos, 8).view("<i8")[:, 0]


def _decimals(nodes: Nodes, pos: Ints, kind: Kind) -> Numbers:
    block = prefix(nodes.data, pos, 1 + kind.size)
    scale = block[:, 1].astype(np.int64)
    body = np.ascontiguousarray(block[:, 2:])
    nodes.check(scale <= MAX_SCALE, "a decimal of a scale above 38", pos + 1)
    scale = np.minimum(scale, MAX_SCALE)
    if kind.id == DECIMAL16:
        both = body.view("<i8")
        low = np.ascontiguousarray(both[:, 0])
        return Numbers(kind, whole=low, scale=scale, hard=both[:, 1] != low >> 63)
    whole = body.view(kind.number)[:, 0].astype(np.int64)
    limit = kind.limit
    nodes.check((whole <= limit) & (whole >= -limit), "a decimal of too many digits for its width", pos + 2)
    return Numbers(kind, whole=whole, scale=scale)


def cast(found: Numbers, type: T.DataType) -> Outcome | None:
    """The numbers as `type`; None where they are cast one by one."""
    maker = _TARGETS.get(type.__class__)
    out = None if maker is None else maker(found, type)
    if out is not None and found.hard is not None and found.hard.any():
        hard = found.hard if out.hard is None else found.hard | out.hard
        bad = None if out.bad is None else out.bad & ~hard
        return Outcome(out.values, bad, hard)
    return out


def _all_bad(found: Numbers) -> Outcome:
    rows = len(found.real if found.whole is None else found.whole)  # type: ignore[arg-type]
    return Outcome(np.zeros(rows, np.int64), np.ones(rows, np.bool_))


def _cut(whole: Ints, scale: Ints) -> Ints:
    """Decimals without their fraction."""
    power = _POW10[np.minimum(scale, 18)]
    out = whole // power
    out += (whole < 0) & (out * power != whole)
    return np.where(scale > 18, 0, out)


def _integer(found: Numbers, type: T.DataType) -> Outcome | None:
    assert isinstance(type, T.IntegerType)
    if not type.signed:
        return None
    low, high = -(1 << (type.bits - 1)), (1 << (type.bits - 1)) - 1
    if found.kind.family in _COUNTS:
        whole = found.whole
    elif found.scale is not None:
        assert found.whole is not None
        whole = _cut(found.whole, found.scale)
    elif found.real is not None:
        return _from_real(found.real, type.bits)
    elif found.kind.utc:
        assert found.whole is not None
        whole = found.whole // 10**found.kind.digits
    else:
        return _all_bad(found)
    assert whole is not None
    if type.bits == 64:
        return Outcome(whole)
    return Outcome(whole.astype(f"<i{type.bits // 8}"), (whole < low) | (whole > high))


def _from_real(real: npt.NDArray[np.float64], bits: int) -> Outcome:
    limit = 2.0 ** (bits - 1)
    cut = np.trunc(real)
    if bits == 64:
        # The double next to the largest BIGINT saturates, as in Java.
        bad = ~((cut >= -limit) & (cut <= limit))
        top = cut == limit
        out = np.where(bad | top, 0.0, cut).astype(np.int64)
        out[top] = 2**63 - 1
        return Outcome(out, bad)
    bad = ~((cut >= -limit) & (cut < limit))
    return Outcome(np.where(bad, 0.0, cut).astype(f"<i{bits // 8}"), bad)


def _float(found: Numbers, type: T.DataType) -> Outcome | None:
    assert isinstance(type, T.FloatType)
    kind = f"<f{type.bits // 8}"
    with np.errstate(over="ignore", invalid="ignore"):
        if found.real is not None:
            return Outcome(found.real.astype(kind))
        assert found.whole is not None
        if found.scale is not None:
            return _decimal_to_float(found.whole, found.scale, type.bits)
        if found.kind.family in _COUNTS:
            # Half floats are rounded through doubles, floats in one rounding.
            return Outcome((found.whole.astype(np.float64) if type.bits == 16 else found.whole).astype(kind))
        if found.kind.utc:
            return Outcome((found.whole.astype(np.float64) / 10**found.kind.digits).astype(kind))
    return _all_bad(found)


def _decimal_to_float(whole: Ints, scale: Ints, bits: int) -> Outcome:
    """Rounded once, as the quotient of two exact doubles is; as float unless it lies exactly between two of them."""
    double = whole.astype(np.float64) / _FLOAT_POW10[np.minimum(scale, 22)]
    hard = (scale > 22) | (whole > _EXACT) | (whole < -_EXACT)
    if bits == 64:
        return Outcome(double, None, hard)
    if bits == 32:
        hard |= (double.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    return Outcome(double.astype(f"<f{bits // 8}"), None, hard)


def _boolean(found: Numbers, type: T.DataType) -> Outcome | None:
    if found.real is not None:
        return Outcome(found.real != 0)
    if found.kind.family in _COUNTS or found.scale is not None:
        assert found.whole is not None
        return Outcome(found.whole != 0)
    return _all_bad(found)


def _decimal(found: Numbers, type: T.DataType) -> Outcome | None:
    """Unscaled integers, for decimals of at most 18 digits."""
    assert isinstance(type, T.DecimalType)
    if type.precision > 18 or found.real is not None:
        return None
    assert found.whole is not None
    whole, scale = found.whole, found.scale
    if scale is None:
        if found.kind.family in _COUNTS:
            scale = np.zeros(len(whole), np.int64)
        elif found.kind.utc:
            scale = np.full(len(whole), found.kind.digits, np.int64)
        else:
            return _all_bad(found)
    limit = 10**type.precision - 1
    up = _POW10[np.clip(type.scale - scale, 0, 18)]
    bad = (whole > limit // up) | (whole < -(limit // up))
    out = np.where(bad, 0, whole * np.where(bad, 0, up))
    down = np.flatnonzero(scale > type.scale)
    if len(down):
        out[down], bad[down] = _rounded(whole[down], scale[down] - type.scale, limit)
    return Outcome(out, bad)


def _rounded(whole: Ints, digits: Ints, limit: int) -> tuple[Ints, Mask]:
    """Without the last `digits`, rounded half away from zero; and which are beyond `limit`."""
    power = _POW10[np.minimum(digits, 18)]
    cut = _cut(whole, digits)
    rest = np.abs(whole - cut * power)
    cut = cut + np.where(rest >= power - rest, np.sign(whole), 0)
    # At most 19 digits: less than half of 10**20.
    cut = np.where(
        digits > 18, np.where((digits == 19) & ((whole >= _HALF) | (whole <= -_HALF)), np.sign(whole), 0), cut
    )
    return cut, np.abs(cut) > limit


def _date(found: Numbers, type: T.DataType) -> Outcome | None:
    assert found.whole is not None or found.real is not None
    if found.kind.family is Family.TIMESTAMP and found.whole is not None:
        return Outcome(found.whole // (_DAY * 10**found.kind.digits))
    if found.kind.family is Family.DATE and found.whole is not None:
        return Outcome(found.whole)
    return _all_bad(found)


def _time(found: Numbers, type: T.DataType) -> Outcome | None:
    assert isinstance(type, T.TimeType)
    units = UNITS_PER_SECOND[type.unit]
    if found.kind.family is Family.TIME and found.whole is not None:
        whole, places = found.whole, found.kind.digits
    elif found.kind.family is Family.TIMESTAMP and found.whole is not None:
        places = found.kind.digits
        whole = found.whole % (_DAY * 10**places)
    else:
        return _all_bad(found)
    return Outcome(_rescaled(whole, 10**places, units)[0])


def _rescaled(whole: Ints, have: int, units: int) -> tuple[Ints, Mask | None]:
    """Fractions of a second in another unit, rounded down; and which do not fit."""
    if have >= units:
        return whole // (have // units), None
    factor = units // have
    limit = (2**63 - 1) // factor
    bad = (whole > limit) | (whole < -limit)
    # The least integers fit if their product is -2**63 at most by less than a factor.
    bad &= ~((whole < 0) & (whole >= -(2**63 // factor)))
    return np.where(bad, 0, whole) * factor, bad


def _timestamp(found: Numbers, type: T.DataType) -> Outcome | None:
    assert isinstance(type, T.TimestampType)
    units = UNITS_PER_SECOND[type.unit]
    if found.kind.family is Family.TIMESTAMP and found.whole is not None:
        return Outcome(*_rescaled(found.whole, 10**found.kind.digits, units))
    if found.kind.family is Family.DATE and found.whole is not None:
        return Outcome(*_rescaled(found.whole * _DAY, 1, units))
    if not type.utc or found.kind.family in (Family.BOOLEAN, Family.TIME):
        return _all_bad(found)
    if found.real is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            return _from_real(found.real * units, 64)
    assert found.whole is not None
    if found.scale is None:
        return Outcome(*_rescaled(found.whole, 1, units))
    hard = (np.abs(found.whole) > (2**63 - 1) // units) | (found.whole == -(2**63))
    return Outcome(_cut(np.where(hard, 0, found.whole) * units, found.scale), None, hard)


_TARGETS: dict[type[T.DataType], Callable[[Numbers, T.DataType], Outcome | None]] = {
    T.BooleanType: _boolean,
    T.IntegerType: _integer,
    T.FloatType: _float,
    T.DecimalType: _decimal,
    T.DateType: _date,
    T.TimeType: _time,
    T.TimestampType: _timestamp,
}

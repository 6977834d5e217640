"""Values of a variant as SQL types, with the rules of Spark's `variant_get` and `try_variant_get`.

A scalar is cast as ANSI CAST would do it; strings of times are read in UTC. In addition, a whole number becomes a
TIMESTAMP in seconds, a decimal becomes a STRING without trailing zeros, an object or array becomes its JSON. Arrays are
cast element by element, objects to structs and maps field by field, names case-sensitive; a missing field is null. A
variant null is null in every type but VARIANT.

Unlike Spark: decimals become INT, SMALLINT and TINYINT exactly, not through a double; a string with a time only is not
a TIMESTAMP (Spark takes today's date); bytes that are not UTF-8 are not a STRING.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from boathouse import types as T
from boathouse.bits.floats import to_float32
from boathouse.bits.zones import zone
from boathouse.errors import EvaluationError, UnsupportedTypeError
from boathouse.expr.simplify import cast_literal
from boathouse.expr.text import UNITS_PER_SECOND, fit_decimal
from boathouse.expr.tree import Literal
from boathouse.types.text import parse_type
from boathouse.variant.cast_text import parse_time, to_text
from boathouse.variant.json_out import to_json
from boathouse.variant.path import Step, format_path
from boathouse.variant.primitives import Family, budget, kinds_of
from boathouse.variant.to_python import date_of, datetime_of, decimal_of, nanos_of, time_of
from boathouse.variant.view import VariantView
from boathouse.variant.walk import over_budget

_UTC = zone("UTC")
"""Strings without a zone: `compute/variants.py` casts them itself where a condition is meant in another one."""
_ADVICE = "use try_get or try_cast (safe=True), which give null instead"
_FAILED: Any = object()
# Times by `Variant.type`: units per second of the stored integer.
_INSTANTS = {kind.name: 10**kind.digits for kind in kinds_of(Family.TIMESTAMP) if kind.utc}
_CLOCKS = {kind.name: 10**kind.digits for kind in kinds_of(Family.TIMESTAMP) if not kind.utc}
_INTEGERS, _DECIMALS, _FLOATS = (
    {kind.name for kind in kinds_of(family)} for family in (Family.INTEGER, Family.DECIMAL, Family.FLOAT)
)


def cast_value(v: VariantView, type: T.DataType | str, safe: bool = False) -> Any:
    """The variant as a Python value of an SQL type; null is None, and with `safe` so is a failed cast.

    Structs and maps are dicts, times are datetime's (nanoseconds numpy.datetime64), UUIDs uuid.UUID, VARIANT the
    variant itself. Raises EvaluationError where the cast fails or Python has no such date, UnsupportedTypeError for
    types that are not a target of casts.
    """
    return _cast(v, type, safe, to_python_value)


def cast_exact(v: VariantView, type: T.DataType | str, safe: bool = False) -> Any:
    """As `cast_value`, without the limits of Python's types: dates are days, times integers of the type's unit, UUIDs
    bytes. Raises EvaluationError, UnsupportedTypeError."""
    return _cast(v, type, safe, _as_it_is)


def resolve_type(type: T.DataType | str) -> T.DataType:
    """The type that a string names, if a variant can be cast to it. Raises SchemaError, UnsupportedTypeError."""
    found = parse_type(type) if isinstance(type, str) else type
    _check(found)
    return found


def to_python_value(value: Any, type: T.DataType) -> Any:
    """A value of `cast_exact`, of a type that is not nested, as a Python object. Raises EvaluationError."""
    match type:
        case T.DateType():
            return date_of(value)
        case T.TimestampType(utc, unit):
            return nanos_of(value) if unit == "ns" else datetime_of(value * 1_000_000 // UNITS_PER_SECOND[unit], utc)
        case T.TimeType(unit):
            return time_of(value * 1_000_000 // UNITS_PER_SECOND[unit])
        case T.UUIDType():
            return uuid.UUID(bytes=value)
    return value


def _as_it_is(value: Any, _: T.DataType) -> Any:
    return value


def _cast(v: VariantView, type: T.DataType | str, safe: bool, finish: Callable[[Any, T.DataType], Any]) -> Any:
    start, end = v.span
    return _Caster(safe, finish, end - start).run(v, resolve_type(type))


def _check(type: T.DataType) -> None:
    match type:
        case T.ListType(element) | T.FixedSizeListType(element, _):
            _check(element.type)
        case T.MapType(key, value) if isinstance(key.type, T.StringType):
            _check(value.type)
        case T.StructType(fields):
            for field in fields:
                _check(field.type)
        case T.VariantType():
            pass
        case _ if type.__class__ not in _LEAVES:
            raise UnsupportedTypeError(
                f"a variant cannot be cast to {type}", advice="name a scalar, array, struct, or map<string,...>"
            )


class _Caster:
    """One cast: how failures are handled, and how much may still be visited (children may be shared)."""

    def __init__(self, safe: bool, finish: Callable[[Any, T.DataType], Any], size: int) -> None:
        self.safe = safe
        self.finish = finish
        self.size = size
        self.left = budget(size)
        self.path: list[Step] = []

    def run(self, v: VariantView, type: T.DataType) -> Any:
        """Recurses over the type, never over the data."""
        if isinstance(type, T.VariantType):
            self.spend(v)
            return v
        kind = v.type
        if kind == "null":
            return None
        match type:
            case T.ListType(element) | T.FixedSizeListType(element, _) if kind == "array":
                if isinstance(type, T.FixedSizeListType) and len(v) != type.size:
                    return self.fail(v, type)
                return [self.child(i, e, element.type) for i, e in enumerate(self.visit(v, v.values()))]
            case T.MapType(_, value) if kind == "object":
                return {name: self.child(name, e, value.type) for name, e in self.visit(v, v.items())}
            case T.StructType(fields) if kind == "object":
                found = dict(self.visit(v, v.items()))
                return {f.name: self.child(f.name, found.get(f.name), f.type) for f in fields}
        self.spend(v)
        cast = _LEAVES.get(type.__class__)
        value = _FAILED if cast is None else cast(v, kind, type)
        return self.fail(v, type) if value is _FAILED else self.finish(value, type)

    def visit(self, v: VariantView, children: Any) -> Any:
        self.spend(v, 1 + len(children))
        return children

    def spend(self, v: VariantView, cost: int | None = None) -> None:
        """Counts a visit; a value that is read whole counts its bytes."""
        start, end = v.span
        self.left -= end - start if cost is None else cost
        if self.left < 0:
            raise over_budget(v.pos, v.pos + self.size)

    def child(self, step: Step, v: VariantView | None, type: T.DataType) -> Any:
        if v is None:
            return None
        self.path.append(step)
        found = self.run(v, type)
        self.path.pop()
        return found

    def fail(self, v: VariantView, type: T.DataType) -> None:
        if not self.safe:
            at = f" at {format_path(self.path)}" if self.path else ""
            raise EvaluationError(f"the {v.type} {_shown(v)}{at} cannot be cast to {type}", advice=_ADVICE)


def _shown(v: VariantView) -> str:
    """A scalar for a message; for containers the number of children."""
    if v.type in ("object", "array"):
        return f"of {len(v):,} {'fields' if v.type == 'object' else 'elements'}"
    text = to_text(v)
    word = repr(v.scalar) if text is None or v.type in ("string", "binary") else text
    return word if len(word) <= 60 else word[:57] + "..."


def _number(v: VariantView, kind: str) -> int | Decimal | float | None:
    """Booleans as 0 and 1, numbers as they are; None for anything else."""
    if kind in _INTEGERS or kind == "boolean":
        return int(v.scalar)  # type: ignore[arg-type]
    if kind in _FLOATS:
        return float(v.scalar)  # type: ignore[arg-type]
    return decimal_of(*v.scalar) if kind in _DECIMALS else None  # type: ignore[misc]


def _from_string(v: VariantView, type: T.DataType) -> Any:
    literal = cast_literal(Literal(str(v.scalar), type=T.STRING), type, _UTC)
    return _FAILED if literal is None else literal.value


def _boolean(v: VariantView, kind: str, type: T.DataType) -> Any:
    if kind == "string":
        return _from_string(v, type)
    number = _number(v, kind)
    return _FAILED if number is None else number != 0


def _integer(v: VariantView, kind: str, type: T.DataType) -> Any:
    assert isinstance(type, T.IntegerType)
    low, high = type.low, type.high
    if kind == "string":
        literal = cast_literal(Literal(str(v.scalar), type=T.STRING), T.IntegerType(type.bits if type.signed else 65))
        number: Any = None if literal is None else literal.value
    elif kind in _INSTANTS:
        number = _whole(v) // _INSTANTS[kind]
    else:
        number = _number(v, kind)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        return _FAILED
    if isinstance(number, float) and number == high + 1 and type.bits == 64:
        return high  # the double next to the largest BIGINT: Java compares as doubles, and saturates
    whole = int(number)
    return whole if low <= whole <= high else _FAILED


def _whole(v: VariantView) -> int:
    found = v.scalar
    assert isinstance(found, int)
    return found


def _float(v: VariantView, kind: str, type: T.DataType) -> Any:
    assert isinstance(type, T.FloatType)
    if kind == "string":
        value = _from_string(v, T.FloatType(64) if type.bits == 16 else type)
        return value if value is _FAILED or type.bits != 16 else _half(value)
    if kind in _INSTANTS:
        number: Any = float(_whole(v)) / _INSTANTS[kind]
    else:
        number = _number(v, kind)
    if number is None:
        return _FAILED
    return float(number) if type.bits == 64 else nearest_float32(number) if type.bits == 32 else _half(number)


def nearest_float32(number: int | Decimal | float) -> float:
    """The float nearest to an exact number, without rounding to a double first."""
    double = float(number)
    # Rounding to odd as a double first makes the second rounding correct.
    if math.isfinite(double) and double != number and struct.pack("<d", double)[0] & 1 == 0:
        double = math.nextafter(double, math.inf if number > double else -math.inf)
    return to_float32(double)


def _half(number: int | Decimal | float) -> float:
    double = float(number)
    try:
        return float(struct.unpack("<e", struct.pack("<e", double))[0])
    except OverflowError:
        return math.copysign(math.inf, double)


def _decimal(v: VariantView, kind: str, type: T.DataType) -> Any:
    assert isinstance(type, T.DecimalType)
    if kind == "string":
        return _from_string(v, type)
    if kind in _INSTANTS:
        exact = decimal_of(_whole(v), 6 if kind == "timestamp" else 9)
    else:
        number = _number(v, kind)
        if number is None:
            return _FAILED
        # A float becomes a double, and the double its shortest string, as in Spark.
        exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    fit = fit_decimal(exact, type.precision, type.scale)
    return _FAILED if fit is None else fit


def _string(v: VariantView, kind: str, type: T.DataType) -> Any:
    if kind in ("object", "array"):
        return to_json(v, special="string")
    text = to_text(v)
    return _FAILED if text is None else text


def _binary(v: VariantView, kind: str, type: T.DataType) -> Any:
    if kind == "string":
        return str(v.scalar).encode()
    return v.scalar if kind == "binary" else _FAILED


def _fixed(v: VariantView, kind: str, type: T.DataType) -> Any:
    assert isinstance(type, T.FixedType)
    found = v.scalar if kind in ("binary", "uuid") else None
    return found if isinstance(found, bytes) and len(found) == type.length else _FAILED


def _uuid(v: VariantView, kind: str, type: T.DataType) -> Any:
    if kind == "string":
        return _from_string(v, type)
    return v.scalar if kind == "uuid" else _FAILED


def _date(v: VariantView, kind: str, type: T.DataType) -> Any:
    if kind == "string":
        return _from_string(v, type)
    per_second = _INSTANTS.get(kind) or _CLOCKS.get(kind)
    if per_second:
        return _whole(v) // (86_400 * per_second)
    return v.scalar if kind == "date" else _FAILED


def _time(v: VariantView, kind: str, type: T.DataType) -> Any:
    assert isinstance(type, T.TimeType)
    units = UNITS_PER_SECOND[type.unit]
    per_second = _INSTANTS.get(kind) or _CLOCKS.get(kind)
    if kind == "time":
        return _whole(v) * units // 1_000_000
    if per_second:
        return _whole(v) % (86_400 * per_second) * units // per_second
    micros = parse_time(str(v.scalar)) if kind == "string" else None
    return _FAILED if micros is None else micros * units // 1_000_000


def _timestamp(v: VariantView, kind: str, type: T.DataType) -> Any:
    assert isinstance(type, T.TimestampType)
    units = UNITS_PER_SECOND[type.unit]
    found: int | None = None
    if kind == "date":
        found = _whole(v) * 86_400 * units
    elif kind == "string":
        micros = _from_string(v, T.TIMESTAMP if type.utc else T.TIMESTAMP_NTZ)
        found = None if micros is _FAILED else micros * units // 1_000_000
    elif per_second := _INSTANTS.get(kind) or _CLOCKS.get(kind):
        found = _whole(v) * units // per_second
    elif type.utc and kind != "boolean":
        found = _seconds(_number(v, kind), units)
    return found if found is not None and -(2**63) <= found < 2**63 else _FAILED


def _seconds(number: int | Decimal | float | None, units: int) -> int | None:
    """A number of seconds in units; further digits are cut off."""
    if isinstance(number, float):
        scaled = number * units
        if not math.isfinite(scaled):
            return None
        return 2**63 - 1 if scaled == 2.0**63 else int(scaled)
    if isinstance(number, Decimal):
        sign, digits, exponent = number.as_tuple()
        assert isinstance(exponent, int)
        unscaled = int("".join(map(str, digits))) * units // 10**-exponent
        return -unscaled if sign else unscaled
    return None if number is None else number * units


_LEAVES: dict[type[T.DataType], Callable[[VariantView, str, T.DataType], Any]] = {
    T.BooleanType: _boolean,
    T.IntegerType: _integer,
    T.FloatType: _float,
    T.DecimalType: _decimal,
    T.StringType: _string,
    T.BinaryType: _binary,
    T.FixedType: _fixed,
    T.UUIDType: _uuid,
    T.DateType: _date,
    T.TimeType: _time,
    T.TimestampType: _timestamp,
}

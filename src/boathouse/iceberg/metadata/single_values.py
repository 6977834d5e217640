"""Single values as JSON: the defaults of fields (spec, Appendix D, "JSON single-value serialization").

Values in Python are what Arrow takes for the type: times of day and times in nanoseconds are numbers, since Python's
own have microseconds; a uuid is its bytes; a map is a list of pairs.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, cast

from boathouse import types as T
from boathouse.errors import CorruptTableError

INITIAL: Final = "initial-default"
WRITE: Final = "write-default"
WITHOUT_DEFAULT: Final = (T.NullType, T.VariantType, T.GeometryType, T.GeographyType)
"""Types whose default is always null."""
_EPOCH: Final = dt.datetime(1970, 1, 1)
_SECOND: Final = {"us": 10**6, "ns": 10**9}
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.A)
_TIME: Final = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?", re.A)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.A)
_HEX: Final = re.compile(r"([0-9a-fA-F]{2})*", re.A)
_DECIMAL: Final = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d{1,4})?", re.A)
_ZONE: Final = "+00:00"
_FLOAT_MAX: Final = 3.4028234663852886e38


def initial_default(field: T.Field) -> object:
    """The value of a field in files that lack it; None if it is null. Raises CorruptTableError.

    A struct's is made of the defaults of its fields; a value for one of them in the struct's own default, as drafts of
    version 3 allowed, goes before.
    """
    return default_of(field, INITIAL)


def default_of(field: T.Field, which: str) -> object:
    """The initial or the write default of a field. Raises CorruptTableError."""
    stored = field.metadata.get(which)
    if stored is None:
        return None
    try:
        if isinstance(field.type, WITHOUT_DEFAULT):
            raise ValueError("its default is always null")
        if isinstance(field.type, T.StructType):
            return _struct(stored, field.type, which)
        return from_json(stored, field.type)
    except ValueError as error:
        raise CorruptTableError(
            f"column `{field.name}` has the {which} {stored!r:.80}, which is not a value of {field.type}: {error}"
        ) from None


def _struct(stored: object, type: T.StructType, which: str) -> dict[str, object]:
    given = _object(stored, type)
    found = {}
    for f in type.fields:
        value = given.get(str(f.id))
        if str(f.id) not in given:
            found[f.name] = default_of(f, which)
        elif isinstance(f.type, T.StructType) and value is not None:
            found[f.name] = _struct(value, f.type, which)
        else:
            found[f.name] = from_json(value, f.type)
    return found


def _object(value: object, type: T.StructType) -> Mapping[str, Any]:
    """A struct's JSON object, whose names are field ids."""
    if not isinstance(value, dict):
        raise ValueError("not an object")
    unknown = value.keys() - {str(f.id) for f in type.fields}
    if unknown:
        raise ValueError(f"no field has the id {sorted(unknown)[0]!r:.40}")
    return value


def from_json(value: object, type: T.DataType) -> object:
    """A value from its JSON form; null is None. Raises ValueError."""
    if value is None:
        return None
    match type:
        case T.StructType(fields):
            given = _object(value, type)
            return {f.name: from_json(given.get(str(f.id)), f.type) for f in fields}
        case T.ListType(element):
            return [from_json(v, element.type) for v in _array(value)]
        case T.MapType(key, item):
            return _pairs(value, key.type, item.type)
        case T.BooleanType() if isinstance(value, bool):
            return value
        case T.IntegerType() if _is_integer(value) and type.low <= cast(int, value) <= type.high:
            return value
        case T.FloatType(bits) if isinstance(value, float) or _is_integer(value):
            found = float(cast(float, value))
            if bits == 32 and abs(found) > _FLOAT_MAX:
                raise ValueError("beyond 32 bits")
            return found
    if not isinstance(value, str):
        raise ValueError(f"{value!r:.40} is not a value of {type}")
    return _from_text(value, type)


def _is_integer(value: object) -> bool:
    """True and False are not numbers."""
    return isinstance(value, int) and not isinstance(value, bool)


def _array(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("not an array")
    return value


def _pairs(value: object, key: T.DataType, item: T.DataType) -> list[tuple[object, object]]:
    if not isinstance(value, dict) or value.keys() != {"keys", "values"}:
        raise ValueError("not an object of keys and values")
    keys, values = _array(value["keys"]), _array(value["values"])
    if len(keys) != len(values) or None in keys:
        raise ValueError(f"{len(keys)} keys for {len(values)} values, or a null key")
    return [(from_json(k, key), from_json(v, item)) for k, v in zip(keys, values)]


def _from_text(text: str, type: T.DataType) -> object:
    match type:
        case T.StringType():
            return text
        case T.DecimalType():
            return _decimal(text, type)
        case T.DateType():
            return dt.date.fromisoformat(_whole(_DATE, text))
        case T.TimeType(unit):
            return _of_day(text, _SECOND[unit])
        case T.TimestampType():
            return _timestamp(text, type)
        case T.UUIDType():
            return uuid.UUID(_whole(_UUID, text)).bytes
        case T.BinaryType() | T.FixedType():
            found = bytes.fromhex(_whole(_HEX, text))
            if isinstance(type, T.FixedType) and len(found) != type.length:
                raise ValueError(f"{len(found)} bytes")
            return found
    raise ValueError(f"{text!r:.40} is not a value of {type}")


def _whole(pattern: re.Pattern[str], text: str) -> str:
    if pattern.fullmatch(text) is None:
        raise ValueError(f"{text!r:.40} has another form")
    return text


def _decimal(text: str, type: T.DecimalType) -> Decimal:
    try:
        found = Decimal(_whole(_DECIMAL, text))
    except InvalidOperation:
        raise ValueError(f"{text!r:.40} is not a number") from None
    _, digits, exponent = found.as_tuple()
    shift = int(exponent)
    # The decimals show the scale; one below zero is an exponent.
    if (shift != -type.scale and shift <= 0) or (found and len(digits) + shift > type.precision - type.scale):
        raise ValueError(f"{text!r:.40} has other digits than {type}")
    return found


def _of_day(text: str, second: int) -> int:
    """A time of day in fractions of a second."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r:.40} is not a time of day")
    hours, minutes, seconds, fraction = found.groups()
    if int(hours) > 23 or int(minutes) > 59 or int(seconds) > 59:
        raise ValueError(f"{text!r:.40} is not a time of day")
    digits = len(str(second)) - 1
    if fraction is not None and len(fraction) > digits:
        raise ValueError(f"{text!r:.40} has more than {digits} decimals")
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * second + int((fraction or "").ljust(digits, "0"))


def _timestamp(text: str, type: T.TimestampType) -> object:
    if type.utc != text.endswith(_ZONE):
        raise ValueError(f"{text!r:.40} {'does not end with' if type.utc else 'ends with'} {_ZONE}")
    day, _, time = text.removesuffix(_ZONE).partition("T")
    days = dt.date.fromisoformat(_whole(_DATE, day)).toordinal() - _EPOCH.toordinal()
    second = _SECOND[type.unit]
    found = days * 86_400 * second + _of_day(time, second)
    if not -(1 << 63) <= found < 1 << 63:
        raise ValueError(f"{text!r:.40} is beyond 64 bits")
    if type.unit == "ns":
        return found
    made = _EPOCH + dt.timedelta(microseconds=found)
    return made.replace(tzinfo=dt.UTC) if type.utc else made


def to_json(value: object, type: T.DataType) -> object:
    """The JSON form of a value as `from_json` gives it. Raises ValueError for NaN and infinities, which have none."""
    if value is None:
        return None
    given = cast(Any, value)
    match type:
        case T.StructType(fields):
            return {str(f.id): to_json(given[f.name], f.type) for f in fields}
        case T.ListType(element):
            return [to_json(v, element.type) for v in given]
        case T.MapType(key, item):
            return {
                "keys": [to_json(k, key.type) for k, _ in given],
                "values": [to_json(v, item.type) for _, v in given],
            }
        case T.DecimalType(_, scale):
            return f"{given:.{scale}f}"
        case T.DateType():
            return str(given.isoformat())
        case T.TimeType(unit):
            return _time_text(given, _SECOND[unit])
        case T.TimestampType(utc, unit):
            return _timestamp_text(given, unit) + (_ZONE if utc else "")
        case T.UUIDType():
            return str(uuid.UUID(bytes=given))
        case T.BinaryType() | T.FixedType():
            return str(given.hex())
        case T.FloatType() if not math.isfinite(given):
            raise ValueError(f"JSON has no {given}")
    return value


def _time_text(value: int, second: int) -> str:
    seconds, fraction = divmod(value, second)
    digits = len(str(second)) - 1
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:0{digits}}" if fraction else text


def _timestamp_text(value: Any, unit: str) -> str:
    second = _SECOND[unit]
    if isinstance(value, dt.datetime):
        value = (value.replace(tzinfo=None) - _EPOCH) // dt.timedelta(microseconds=1)
    days, rest = divmod(value, 86_400 * second)
    return f"{dt.date.fromordinal(_EPOCH.toordinal() + days).isoformat()}T{_time_text(rest, second)}"

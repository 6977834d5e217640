"""The `stats` text of an add action, from the statistics of a file just written (PROTOCOL.md, "Per-file Statistics").

Safe for readers that know less than ours: no bounds for a column with a NaN, none for infinities, strings cut so
that the bound still holds, decimals as exact numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from boathouse.delta.partition_values import civil_of, clock_text
from boathouse.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    Schema,
    StringType,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    from boathouse.parquet.stats import LeafStats

PREFIX: Final = 32
NAN_COUNT: Final = "nanCount"
"""Beside the protocol's own keys, which readers that do not know it skip: without it no bound of a float is safe."""
_HIGHEST: Final = "\U0010ffff"
_DAY_US: Final = 86_400_000_000
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`|([^.,`\s]+)")


def stats_json(schema: Schema, leaves: Sequence[LeafStats], rows: int, options: Mapping[str, Any]) -> str:
    """The text for a file of these rows; `schema` is what is in the file, `leaves` its leaves."""
    indexed = indexed_columns(schema, int(options.get("indexed", PREFIX)), options.get("stats_columns"))
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    nans: dict[str, Any] = {}
    for leaf in leaves:
        if leaf.path not in indexed:
            continue
        if isinstance(leaf.type, FloatType) and leaf.nans is not None:
            put(nans, leaf.path, leaf.nans)
        if leaf.nulls is not None:
            put(nulls, leaf.path, leaf.nulls)
        for values, text in zip((low, high), _bounds(leaf)):
            if text is not None:
                put(values, leaf.path, text)
    document: dict[str, Any] = {"numRecords": rows, "minValues": low, "maxValues": high, "nullCount": nulls}
    if nans:
        document[NAN_COUNT] = nans
    if options.get("tight"):
        document["tightBounds"] = True
    return dump_stats(document)


def indexed_columns(schema: Schema, count: int, named: str | None = None) -> set[tuple[str, ...]]:
    """The first `count` leaves (-1: all) below no list or map, or those that `delta.dataSkippingStatsColumns` names."""
    leaves: list[tuple[str, ...]] = []

    def below(path: tuple[str, ...], type: DataType) -> None:
        if isinstance(type, StructType):
            for child in type:
                below((*path, child.name), child.type)
        else:
            leaves.append(path)

    for f in schema:
        below((f.name,), f.type)
    if named is not None:
        chosen = [tuple(p.lower() for p in name) for name in column_names(named)]
        return {p for p in leaves if any(tuple(x.lower() for x in p[: len(c)]) == c for c in chosen)}
    return set(leaves if count < 0 else leaves[:count])


def column_names(text: str) -> list[tuple[str, ...]]:
    """Names divided by commas, parts by dots, backticks around what holds either."""
    found: list[tuple[str, ...]] = []
    path: list[str] = []
    at = 0
    for match in _NAME.finditer(text):
        if "," in text[at : match.start()] and path:
            found.append(tuple(path))
            path = []
        path.append(match[1].replace("``", "`") if match[1] is not None else match[2])
        at = match.end()
    return [*found, tuple(path)] if path else found


def put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Puts a value at a path of objects."""
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


def _bounds(leaf: LeafStats) -> tuple[Any, Any]:
    if leaf.lower is None or leaf.upper is None:
        return None, None
    if isinstance(leaf.type, FloatType) and leaf.nans != 0:
        return None, None
    return _value(leaf.lower, leaf.type, False), _value(leaf.upper, leaf.type, True)


def _value(scalar: pa.Scalar, type: DataType, upper: bool) -> Any:
    match type:
        case IntegerType():
            return scalar.as_py()
        case FloatType(bits):
            return _float(scalar.as_py(), bits)
        case DecimalType():
            return scalar.as_py()
        case StringType():
            return cut_upper(scalar.as_py()) if upper else scalar.as_py()[:PREFIX]
        case DateType():
            return _date(scalar.cast(pa.int32()).as_py())
        case TimestampType(utc):
            return _instant(scalar.cast(pa.int64()).as_py(), utc)
    return None


def json_bound(scalar: pa.Scalar, type: DataType) -> Any:
    """A bound that was read from statistics, as JSON; instants keep their microseconds if they have any."""
    if not scalar.is_valid:
        return None
    if isinstance(type, TimestampType):
        micros = scalar.cast(pa.int64()).as_py()
        text = _instant(micros, type.utc)
        return text if text is None or not micros % 1000 else f"{text.rstrip('Z')}{micros % 1000:03d}{'Z' * type.utc}"
    if isinstance(type, BooleanType | StringType):
        return scalar.as_py()
    return _value(scalar, type, False)


def _float(value: float, bits: int) -> Any:
    if not math.isfinite(value):
        return None
    if value == 0:
        return 0.0
    # The shortest text of 32 bits: as a double the same number would be another text.
    return Raw(str(np.float32(value))) if bits == 32 else value


def cut_upper(value: str) -> str | None:
    """An upper bound of at most a few characters more than the prefix; None if there is none that short."""
    if len(value) <= PREFIX:
        return value
    for end in range(PREFIX, min(len(value), 2 * PREFIX)):
        if value[end] < "\x7f":
            return value[:end] + "\x7f"
        if value[end] < _HIGHEST:
            return value[:end] + _HIGHEST
    return value if len(value) <= 2 * PREFIX else None


def _date(days: int) -> str | None:
    year, month, day = civil_of(days)
    return f"{year:04d}-{month:02d}-{day:02d}" if 1 <= year <= 9999 else None


def _instant(micros: int, utc: bool) -> str | None:
    days, rest = divmod(micros, _DAY_US)
    date = _date(days)
    return None if date is None else f"{date}T{clock_text(rest)[:-3]}{'Z' if utc else ''}"


class Raw(str):
    """Text that goes into the JSON as it is."""


def dump_stats(value: Any) -> str:
    """Statistics as JSON text."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{dump_stats(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Raw):
        return str(value)
    return json.dumps(value, ensure_ascii=False)

"""The `stats` JSON of add actions, from the statistics of files just written (PROTOCOL.md, "Per-file Statistics").

Safe for simpler readers: no bounds for a column with a NaN, none for infinities, strings truncated so that the bound
still holds, decimals as exact numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from boathouse import types as T
from boathouse.delta.partition_values import civil_of, clock_text
from boathouse.delta.schema import physical_name

if TYPE_CHECKING:
    from boathouse.parquet.written_stats import LeafColumn

PREFIX: Final = 32
NAN_COUNT: Final = "nanCount"
"""A key beside the protocol's own, which other readers skip: without it no bound of a float is safe."""
_HIGHEST: Final = "\U0010ffff"
_DAY_US: Final = 86_400_000_000
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`|([^.,`\s]+)")


class StatsTexts:
    """The JSON for the files of one write; `schema` is that of the files."""

    def __init__(self, schema: T.Schema, options: Mapping[str, Any]) -> None:
        self._indexed = indexed_columns(schema, int(options.get("indexed", PREFIX)), options.get("stats_columns"))
        self._indexed |= set(options.get("clustered", ()))
        self._physical = dict(_physical_paths(schema.fields, (), ()))
        self._tight = bool(options.get("tight"))

    def of(self, leaves: Sequence[LeafColumn], rows: Sequence[int]) -> list[str]:
        """One JSON text per file; `leaves` are the schema's."""
        chosen = [leaf for leaf in leaves if leaf.path in self._indexed]
        tree = _tree([self._physical[leaf.path] for leaf in chosen])
        bounds = [_bounds(leaf) for leaf in chosen]
        lower, upper = _by_file([b[0] for b in bounds], rows), _by_file([b[1] for b in bounds], rows)
        nulls = _by_file([_counts(leaf.nulls) for leaf in chosen], rows)
        unknown = [None] * len(rows)
        floats = [_counts(leaf.nans) if isinstance(leaf.type, T.FloatType) else unknown for leaf in chosen]
        parts = zip(lower, upper, nulls, _by_file(floats, rows))
        return [self._text(count, [_object(tree, p) for p in part]) for count, part in zip(rows, parts)]

    def _text(self, rows: int, parts: Sequence[str | None]) -> str:
        low, high, nulls, nans = parts
        text = f'{{"numRecords":{rows},"minValues":{low or "{}"},"maxValues":{high or "{}"},"nullCount":{nulls or "{}"}'
        if nans is not None:
            text += f',"{NAN_COUNT}":{nans}'
        return text + (',"tightBounds":true}' if self._tight else "}")


def _physical_paths(
    fields: Sequence[T.Field], path: tuple[str, ...], physical: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The path of every leaf outside lists and maps, and its path in the statistics."""
    for f in fields:
        below, named = (*path, f.name), (*physical, physical_name(f))
        if isinstance(f.type, T.StructType):
            yield from _physical_paths(f.type.fields, below, named)
        else:
            yield below, named


_Texts = Sequence[str | None]
_Tree = list[tuple[str, "int | _Tree"]]
"""The keys of the JSON object, each with the number of a leaf or a nested object."""


def _tree(paths: Sequence[tuple[str, ...]]) -> _Tree:
    found: dict[str, Any] = {}
    for i, path in enumerate(paths):
        put(found, path, i)

    def step(level: dict[str, Any]) -> _Tree:
        return [(_quoted(name) + ":", step(v) if isinstance(v, dict) else v) for name, v in level.items()]

    return step(found)


def _object(tree: _Tree, values: _Texts) -> str | None:
    """The JSON object of the values that are not None; None if there are none."""
    parts = []
    for key, below in tree:
        text = values[below] if isinstance(below, int) else _object(below, values)
        if text is not None:
            parts.append(key + text)
    return "{" + ",".join(parts) + "}" if parts else None


def _by_file(columns: Sequence[_Texts], rows: Sequence[int]) -> Sequence[_Texts]:
    return list(zip(*columns)) if columns else [()] * len(rows)


def _counts(values: Sequence[int | None]) -> _Texts:
    return [None if v is None else str(v) for v in values]


def indexed_columns(schema: T.Schema, count: int, named: str | None = None) -> set[tuple[str, ...]]:
    """The first `count` leaves (-1: all) outside lists and maps, or those that `delta.dataSkippingStatsColumns`
    names."""
    leaves: list[tuple[str, ...]] = []

    def below(path: tuple[str, ...], type: T.DataType) -> None:
        if isinstance(type, T.StructType):
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
    """Names separated by commas, parts by dots, with backticks around parts that contain either."""
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


def _bounds(leaf: LeafColumn) -> tuple[_Texts, _Texts]:
    lower, upper = _strings(leaf.lower, leaf.type, False), _strings(leaf.upper, leaf.type, True)
    if isinstance(leaf.type, T.FloatType):
        safe = [nans == 0 for nans in leaf.nans]
        lower, upper = ([t if s else None for t, s in zip(strings, safe)] for strings in (lower, upper))
    return lower, upper


def _strings(values: pa.Array, type: T.DataType, upper: bool) -> _Texts:
    """The JSON of bounds; None where there are none."""
    kind, text = _spelling(type, upper)
    if text is None:
        return [None] * len(values)
    values = values if kind is None else values.cast(kind)
    return [None if v is None else text(v) for v in values.to_pylist()]


def _spelling(type: T.DataType, upper: bool) -> tuple[pa.DataType | None, Callable[[Any], str | None] | None]:
    """The Arrow type to cast to first, and the JSON of one value; None for types without bounds."""
    match type:
        case T.IntegerType():
            return None, str
        case T.FloatType(bits):
            return None, partial(_float, bits=bits)
        case T.DecimalType():
            return None, "{:f}".format
        case T.StringType():
            return None, _upper_text if upper else _lower_text
        case T.DateType():
            return pa.int32(), _date_text
        case T.TimestampType(utc):
            return pa.int64(), partial(_instant_text, utc=utc)
    return None, None


def json_bound(scalar: pa.Scalar, type: T.DataType) -> Any:
    """A bound that was read from statistics, as JSON; instants keep their microseconds if they have any."""
    if not scalar.is_valid:
        return None
    if isinstance(type, T.TimestampType):
        micros = scalar.cast(pa.int64()).as_py()
        text = _instant(micros, type.utc)
        return text if text is None or not micros % 1000 else f"{text.rstrip('Z')}{micros % 1000:03d}{'Z' * type.utc}"
    if isinstance(type, T.BooleanType | T.StringType):
        return scalar.as_py()
    kind, spelled = _spelling(type, False)
    found = None if spelled is None else spelled((scalar if kind is None else scalar.cast(kind)).as_py())
    return None if found is None else Raw(found)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _lower_text(value: str) -> str:
    return _quoted(value[:PREFIX])


def _upper_text(value: str) -> str | None:
    bound = cut_upper(value)
    return None if bound is None else _quoted(bound)


def _float(value: float, bits: int) -> str | None:
    if not math.isfinite(value):
        return None
    if value == 0:
        return "0.0"
    # The shortest string of the 32-bit number: that of the same number as a double differs.
    return str(np.float32(value)) if bits == 32 else repr(value)


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


def _date_text(days: int) -> str | None:
    date = _date(days)
    return None if date is None else f'"{date}"'


def _instant_text(micros: int, utc: bool) -> str | None:
    instant = _instant(micros, utc)
    return None if instant is None else f'"{instant}"'


def _instant(micros: int, utc: bool) -> str | None:
    days, rest = divmod(micros, _DAY_US)
    date = _date(days)
    return None if date is None else f"{date}T{clock_text(rest)[:-3]}{'Z' if utc else ''}"


def put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Sets a value at a path of objects."""
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


class Raw(str):
    """Text that is inserted into the JSON verbatim."""


def dump_stats(value: Any) -> str:
    """Statistics as JSON text."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(k)}:{dump_stats(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Raw):
        return str(value)
    return json.dumps(value, ensure_ascii=False)

"""Partition values and manifest summaries as bounds of the source columns.

The values of a monotonic transform bound the source: `day(ts) = 19000` puts `ts` inside that day. So predicates on the
source columns are evaluated on such bounds as on those of a file, which is the inclusive projection of the
specification. Buckets are not monotonic: only equality predicates prune them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.transforms import transform
from boathouse.compute.prune import Pruner
from boathouse.expr.tree import Column, Comparison, Expr, In, Literal, columns, conjuncts
from boathouse.iceberg.manifests.records import Summary
from boathouse.iceberg.manifests.values import Physical, arrow_array, decode, physical_list, raised, unscaled
from boathouse.iceberg.metadata.schemas import by_id, field_type
from boathouse.table.units import column_stats_type

_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
Bounds = tuple[Physical, Physical, bool]
"""Lower and upper bound of the source (None: unknown), and whether both are attained."""


class Tests:
    """The tests of one predicate: on the partition values of each spec, and on statistics of the columns `used`.

    `bounds` is None if the statistics decide nothing.
    """

    def __init__(self, where: Expr, schema: T.Schema) -> None:
        self.where = where
        self.schema = schema
        self.used = tuple(columns(where))
        known = self.used and all(field_type(schema, p) is not None for p in self.used)
        self.bounds = Pruner(where, self.used) if known else None
        self._partition: dict[int, PartitionPruner] = {}

    def partition(self, spec: T.PartitionSpec) -> PartitionPruner | None:
        """The test of a spec's partition values; None if they decide nothing."""
        if spec.id not in self._partition:
            self._partition[spec.id] = PartitionPruner(self.where, spec, self.schema)
        found = self._partition[spec.id]
        return found if found.useful else None


def source_bounds(field: T.PartitionField, source: T.DataType, lower: Physical, upper: Physical) -> Bounds | None:
    """Bounds of the source for partition values between `lower` and `upper`; None if the transform gives none."""
    match field.transform.name:
        case "identity":
            return lower, upper, True
        case "truncate":
            return _truncated(lower, upper, field.transform.parameter or 1)
        case "year" | "month" | "day" | "hour":
            return _timed(field.transform.name, source, lower, upper)
    return None


def _truncated(lower: Physical, upper: Physical, width: int) -> Bounds:
    if isinstance(upper, str | bytes):
        return lower, (upper if len(upper) < width else raised(upper)), False
    if isinstance(lower, int) and isinstance(upper, int) and _wraps(lower, upper, width):
        lower = None
    return lower, None if upper is None else upper + width - 1, False


def _wraps(lower: int, upper: int, width: int) -> bool:
    """Whether a partition value between may be that of the least integers, which Java lets wrap around to the greatest
    of the type that the column had when it was written. It is no multiple of the width."""
    if lower == upper:
        return lower % width != 0
    return any(limit % width != 0 and lower < limit and upper > limit - width for limit in (1 << 31, 1 << 63))


def _timed(name: str, source: T.DataType, lower: Physical, upper: Physical) -> Bounds | None:
    # Early writers truncated toward zero: a value of zero or below may contain rows of the previous one.
    first = None if lower is None else int(lower) - (1 if int(lower) <= 0 else 0)
    start = None if first is None else _days_or_units(name, source, first)
    end = None if upper is None else _days_or_units(name, source, int(upper) + 1)
    return start, None if end is None else end - 1, False


def _days_or_units(name: str, source: T.DataType, value: int) -> int:
    """Where period `value` begins, in the source's own units."""
    if name == "hour":
        seconds = value * 3600
    else:
        seconds = _DAY * (value if name == "day" else _first_day(value if name == "month" else value * 12))
    if isinstance(source, T.DateType):
        return seconds // _DAY
    return seconds * _PER_SECOND[source.unit if isinstance(source, T.TimestampType) else "us"]


def _first_day(months: int) -> int:
    """Days from 1970-01-01 to the first day of a month counted from 1970-01, for any year (proleptic Gregorian)."""
    year, month = 1970 + months // 12, months % 12 + 1
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


@dataclass(frozen=True, slots=True)
class Layer:
    """Some fields of a spec, at most one per source, whose values are tested together."""

    fields: tuple[T.PartitionField, ...]


class PartitionPruner:
    """Tests files of one spec, and manifests of it, against a predicate."""

    def __init__(self, where: Expr, spec: T.PartitionSpec, schema: T.Schema) -> None:
        self.spec = spec
        self.schema = schema
        self.paths = columns(where)
        self.types = [field_type(schema, p) for p in self.paths]
        usable = [f for f in _of_schema(spec, schema) if f.source in self.paths]
        self.layers = _layers([f for f in usable if f.transform.name != "bucket"])
        self.buckets = [(f, b) for f in usable if f.transform.name == "bucket" and (b := _buckets(where, f, schema))]
        self.pruner = Pruner(where, self.paths) if self.layers else None
        if any(t is None for t in self.types):
            self.layers, self.pruner = [], None

    @property
    def useful(self) -> bool:
        return bool(self.layers or self.buckets)

    @property
    def field_ids(self) -> tuple[int, ...]:
        """The partition fields whose values are tested."""
        return tuple(dict.fromkeys([f.id for f, _ in self.buckets] + [f.id for x in self.layers for f in x.fields]))

    def files(self, tuples: Sequence[Mapping[int, Physical]], rows: Sequence[int]) -> list[bool]:
        """Which files with these partition values may contain a matching row."""
        keep = [True] * len(tuples)
        for field, allowed in self.buckets:
            keep = [k and t[field.id] in allowed for k, t in zip(keep, tuples)]
        for layer in self.layers:
            found = self._test(layer, lambda f: [_file_stats(f, t[f.id], n) for t, n in zip(tuples, rows)], rows)
            keep = [k and m for k, m in zip(keep, found)]
        return keep

    def certain(self, tuples: Sequence[Mapping[int, Physical]]) -> list[bool]:
        """In which files with these partition values every row certainly matches; the files have rows."""
        rows, sure = [1] * len(tuples), [False] * len(tuples)
        for layer in self.layers:
            struct = self._stats(layer, lambda f: [_file_stats(f, t[f.id], 1) for t in tuples], rows)
            assert self.pruner is not None
            found = self.pruner.must_match(struct, pa.array(rows, pa.int64())).to_pylist()
            sure = [s or m for s, m in zip(sure, found)]
        return sure

    def manifests(self, summaries: Sequence[Sequence[Summary] | None]) -> list[bool]:
        """Which manifests with these summaries may list a file with a matching row."""
        keep = [True] * len(summaries)
        at = {f.id: i for i, f in enumerate(self.spec)}
        for field, allowed in self.buckets:
            found = [_summary_of(s, at[field.id]) for s in summaries]
            keep = [k and (s is None or _some_between(s, allowed)) for k, s in zip(keep, found)]
        for layer in self.layers:
            rows: list[int | None] = [None] * len(summaries)
            tested = self._test(layer, lambda f: [_summary_stats(f, _summary_of(s, at[f.id])) for s in summaries], rows)
            keep = [k and m for k, m in zip(keep, tested)]
        return keep

    def _test(
        self, layer: Layer, stats: Callable[[T.PartitionField], list[Any]], rows: Sequence[int | None]
    ) -> list[bool]:
        assert self.pruner is not None
        struct = self._stats(layer, stats, rows)
        return list(self.pruner.may_match(struct, pa.array(rows, pa.int64())).to_pylist())

    def _stats(
        self, layer: Layer, stats: Callable[[T.PartitionField], list[Any]], rows: Sequence[int | None]
    ) -> pa.StructArray:
        by_source = {f.source: f for f in layer.fields}
        arrays = []
        for path, type in zip(self.paths, self.types):
            assert type is not None
            field = by_source.get(path)
            found: list[Any] = [None] * len(rows) if field is None else stats(field)
            arrays.append(_stats_array(field, type, found))
        return pa.StructArray.from_arrays(arrays, fields=[pa.field(str(i), a.type) for i, a in enumerate(arrays)])


def _of_schema(spec: T.PartitionSpec, schema: T.Schema) -> list[T.PartitionField]:
    """The fields of a spec that say something about columns of this schema, with their paths in it. Ids decide: a
    column may have the name that the source of an old field had."""
    there = by_id(schema)
    known = [f for f in spec if f.source_id in there and f.transform.name not in ("void", "unknown")]
    return [replace(f, source=there[f.source_id][0]) for f in known if f.source_id is not None]


def _layers(fields: Sequence[T.PartitionField]) -> list[Layer]:
    layers: list[list[T.PartitionField]] = []
    for f in fields:
        for layer in layers:
            if all(g.source != f.source for g in layer):
                layer.append(f)
                break
        else:
            layers.append([f])
    return [Layer(tuple(layer)) for layer in layers]


RawStats = tuple[Physical, Physical, int | None, int | None, int | None]
"""Lower and upper partition value; nulls, NaNs and values of the source (None: unknown)."""


def _file_stats(field: T.PartitionField, value: Physical, rows: int) -> RawStats:
    if value is None:
        return None, None, rows, 0, rows
    if isinstance(value, float) and math.isnan(value):
        return None, None, 0, rows, rows
    return value, value, 0, 0, rows


def _summary_of(summaries: Sequence[Summary] | None, index: int) -> Summary | None:
    return summaries[index] if summaries is not None and index < len(summaries) else None


def _summary_stats(field: T.PartitionField, summary: Summary | None) -> RawStats | None:
    if summary is None:
        return None
    lower, upper = decode(summary.lower, field.type), decode(summary.upper, field.type)
    nulls = None if summary.contains_null else 0
    nans = 0 if summary.contains_nan is False else None
    return lower, upper, nulls, nans, None


def _some_between(summary: Summary, allowed: frozenset[int]) -> bool:
    if summary.lower is None or summary.upper is None:
        return summary.contains_nan is None or not summary.contains_null
    lower = int.from_bytes(summary.lower, "little", signed=True)
    upper = int.from_bytes(summary.upper, "little", signed=True)
    return any(lower <= b <= upper for b in allowed)


def _stats_array(field: T.PartitionField | None, type: T.DataType, found: Sequence[RawStats | None]) -> pa.Array:
    """S of the waist for a source column, from the partition values of `field`."""
    lowers: list[Physical] = []
    uppers: list[Physical] = []
    exact: list[bool | None] = []
    for stats in found:
        bounds = None if field is None or stats is None else source_bounds(field, type, stats[0], stats[1])
        lowers.append(bounds[0] if bounds else None)
        uppers.append(bounds[1] if bounds else None)
        exact.append(bounds[2] if bounds else None)
    counts = [pa.array([None if s is None else s[i] for s in found], pa.int64()) for i in (2, 3, 4)]
    if not isinstance(type, T.FloatType):
        counts[1] = pa.nulls(len(found), pa.int64())
    flags = pa.array(exact, pa.bool_())
    return pa.StructArray.from_arrays(
        [arrow_array(lowers, type), arrow_array(uppers, type), flags, flags, *counts],
        fields=list(column_stats_type(to_arrow_type(type))),
    )


def _buckets(where: Expr, field: T.PartitionField, schema: T.Schema) -> frozenset[int] | None:
    """The buckets that the equality predicates of `where` allow; None if it has none on the field's source."""
    type = field_type(schema, field.source)
    allowed: frozenset[int] | None = None
    for part in conjuncts(where):
        values = _equal_to(part, field.source)
        if values is None or type is None or any(v.type != type for v in values):
            continue
        array = arrow_array([_physical_literal(v) for v in values if v.value is not None], type)
        found = frozenset(physical_list(transform(array, field.transform, type), field.type))
        allowed = found if allowed is None else allowed & found  # type: ignore[assignment]
    return allowed


def _physical_literal(literal: Literal) -> Physical:
    value = literal.value
    if isinstance(value, Decimal):
        return unscaled(value, literal.type.scale if isinstance(literal.type, T.DecimalType) else 0)
    return value


def _equal_to(part: Expr, source: tuple[str, ...]) -> list[Literal] | None:
    match part:
        case Comparison("=", Column(path), Literal() as literal) if path == source:
            return [literal]
        case Comparison("=", Literal() as literal, Column(path)) if path == source:
            return [literal]
        case In(Column(path), options) if path == source and all(isinstance(o, Literal) for o in options):
            return list(options)  # type: ignore[arg-type]
    return None

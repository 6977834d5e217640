"""Converts statistics between their two forms in checkpoints: JSON text as in entries, and a struct (`stats_parsed`).

No bound is lost, and none becomes narrower: what is inexact in one form is inexact in the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import to_arrow_type
from boathouse.delta.features.type_changes import was_float
from boathouse.delta.partition_values import physical_array
from boathouse.delta.schema import physical_name
from boathouse.delta.stats.bounds import (
    DOUBLE_DIGITS,
    EXACT_DOUBLE,
    StatsColumn,
    document_of,
    has_bounds,
    natural,
    raw_bound,
    value_at,
)
from boathouse.delta.stats.parsed import HIGH, LOW, NULLS, PARSED, ROWS, TIGHT, cast_or_null, member, overlaid
from boathouse.delta.stats.written import NAN_COUNT, Raw, dump_stats, json_bound, put
from boathouse.types import DataType, DecimalType, Field, Schema, StructType

Found = tuple[str, tuple[str, ...]]
"""A statistic: its kind (`minValues`, ...) and the physical path of its column."""
_WIDE = Context(prec=80)
_KINDS = (LOW, HIGH, NULLS, NAN_COUNT)


def stat_columns(schema: Schema, partition: Sequence[str]) -> tuple[StatsColumn, ...]:
    """Every column that may have statistics: those not inside lists or maps, without partition columns."""
    return tuple(c for f in schema if f.name not in partition for c in _below((), f))


def _below(above: tuple[str, ...], f: Field) -> Iterator[StatsColumn]:
    path = (*above, physical_name(f))
    if isinstance(f.type, StructType):
        for child in f.type:
            yield from _below(path, child)
    else:
        yield StatsColumn(f.type, path, was_float(f))


def found_in(batches: Iterable[pa.RecordBatch]) -> set[Found]:
    """Which statistics some file has, in either form."""
    found: set[Found] = set()
    for batch in batches:
        if PARSED in batch.schema.names:
            found.update(_leaves_of(batch.schema.field(PARSED).type))
        for text in batch.column("stats").drop_null().to_pylist():
            document = document_of(text) or {}
            for kind in _KINDS:
                found.update((kind, path) for path in _paths(document.get(kind), ()))
    return found


def _leaves_of(type: pa.StructType) -> Iterator[Found]:
    for kind in _KINDS:
        if type.get_field_index(kind) >= 0:
            yield from ((kind, path) for path in _type_paths(type.field(kind).type, ()))


def _type_paths(type: pa.DataType, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not pa.types.is_struct(type):
        yield above
        return
    for f in type:
        yield from _type_paths(f.type, (*above, f.name))


def _paths(values: Any, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(values, dict):
        if above:
            yield above
        return
    for name, value in values.items():
        yield from _paths(value, (*above, name))


@dataclass(frozen=True, slots=True)
class ParsedLayout:
    """The struct in which statistics are written: those that exist for the table's columns."""

    columns: tuple[StatsColumn, ...]
    found: frozenset[Found]

    def kinds(self, column: StatsColumn) -> list[str]:
        bounded = has_bounds(column.type)
        return [k for k in _KINDS if (k, column.path) in self.found and (bounded or k not in (LOW, HIGH))]

    @property
    def type(self) -> pa.StructType:
        return self.of(pa.RecordBatch.from_arrays([pa.array([], pa.string())], names=["stats"])).type

    def of(self, adds: pa.RecordBatch) -> pa.StructArray:
        """The struct of each add; null where it has no statistics."""
        texts = adds.column("stats")
        parsed = adds.column(PARSED) if PARSED in adds.schema.names else None
        exact = any(isinstance(c.type, DecimalType) for c in self.columns)
        documents = [document_of(t, exact) if t else None for t in texts.to_pylist()]
        has_text = pa.array([d is not None for d in documents], pa.bool_())
        rows = _Forms(documents, parsed, has_text)
        tree: dict[str, Any] = {
            ROWS: rows.leaf((ROWS,), pa.int64(), lambda d: natural(d.get(ROWS))),
            TIGHT: rows.leaf((TIGHT,), pa.bool_(), lambda d: d.get(TIGHT) if isinstance(d.get(TIGHT), bool) else None),
        }
        for column in self.columns:
            for kind in self.kinds(column):
                put(tree, (kind, *column.path), rows.of(kind, column))
        known = has_text if parsed is None else pc.or_(has_text, pc.is_valid(parsed))
        return _nested(tree, len(adds), pc.invert(known))


@dataclass(frozen=True, slots=True)
class _Forms:
    """The statistics of some files in both forms: documents, structs, and which files have a document."""

    documents: Sequence[dict[str, Any] | None]
    parsed: pa.Array | None
    has_text: pa.Array

    def of(self, kind: str, column: StatsColumn) -> pa.Array:
        if kind in (NULLS, NAN_COUNT):
            return self.leaf((kind, *column.path), pa.int64(), lambda d: natural(value_at(d.get(kind), column.path)))
        values = [raw_bound(value_at((d or {}).get(kind), column.path), column, kind == HIGH) for d in self.documents]
        return self._with_parsed((kind, *column.path), physical_array(values, column.type))

    def leaf(self, path: tuple[str, ...], type: pa.DataType, value: Any) -> pa.Array:
        return self._with_parsed(path, pa.array([None if d is None else value(d) for d in self.documents], type))

    def _with_parsed(self, path: tuple[str, ...], made: pa.Array) -> pa.Array:
        there = None if self.parsed is None else member(self.parsed, *path)
        return made if there is None else overlaid(made, cast_or_null(there, made.type), self.has_text)


def _nested(tree: Mapping[str, Any], count: int, mask: pa.Array | None = None) -> pa.StructArray:
    arrays = [_nested(v, count) if isinstance(v, dict) else v for v in tree.values()]
    if not arrays:
        return pa.array([{}] * count, pa.struct([]))
    return pa.StructArray.from_arrays(arrays, names=list(tree), mask=mask)


def texts_of(adds: pa.RecordBatch, columns: Sequence[StatsColumn]) -> pa.Array:
    """The JSON text of each add: its own, or one made from its struct."""
    texts = adds.column("stats")
    if PARSED not in adds.schema.names or not texts.null_count:
        return texts
    wanted = pc.and_(pc.is_null(texts), pc.is_valid(adds.column(PARSED)))
    made = iter(_made(adds.column(PARSED).filter(wanted), columns))
    return pa.array([next(made) if w else t for w, t in zip(wanted.to_pylist(), texts.to_pylist())], pa.string())


def _made(parsed: pa.Array, columns: Sequence[StatsColumn]) -> Iterator[str]:
    leaves: list[tuple[str, StatsColumn, list[Any]]] = []
    for kind in _KINDS:
        for column in columns:
            found = member(parsed, kind, *column.path)
            if found is not None:
                leaves.append((kind, column, _values(found, kind, column.type)))
    rows, tight = (member(parsed, name) for name in (ROWS, TIGHT))
    for i in range(len(parsed)):
        document: dict[str, Any] = {} if rows is None or not rows[i].is_valid else {ROWS: rows[i].as_py()}
        document |= {LOW: {}, HIGH: {}, NULLS: {}}
        for kind, column, values in leaves:
            if values[i] is not None:
                put(document.setdefault(kind, {}), column.path, values[i])
        if tight is not None and tight[i].is_valid:
            document[TIGHT] = tight[i].as_py()
        yield dump_stats(document)


def _values(found: pa.Array, kind: str, type: DataType) -> list[Any]:
    """Values as in JSON."""
    if kind in (NULLS, NAN_COUNT):
        return [natural(v) for v in cast_or_null(found, pa.int64()).to_pylist()]
    if not has_bounds(type):
        return [None] * len(found)
    values = cast_or_null(found, to_arrow_type(type))
    if isinstance(type, DecimalType):
        return [None if v is None else _decimal(v, kind == HIGH, type.scale) for v in values.to_pylist()]
    return [json_bound(v, type) for v in values]


def _decimal(value: Decimal, upper: bool, scale: int) -> Decimal | Raw:
    """If it may have been converted to a double, with the digits of a double only: more would suggest precision."""
    if abs(value.scaleb(scale, _WIDE)) < EXACT_DOUBLE:
        return value
    return Raw(f"{Context(prec=DOUBLE_DIGITS, rounding=ROUND_CEILING if upper else ROUND_FLOOR).plus(value):E}")

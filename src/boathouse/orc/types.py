"""The columns of an ORC file in Arrow: their types by the attributes of Iceberg, and what pyarrow makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from boathouse.arrow.schema import FIELD_ID
from boathouse.errors import CorruptTableError
from boathouse.orc import footer as orc
from boathouse.orc.footer import Footer, Statistics, Type

_PLAIN: Final = {
    orc.BOOLEAN: pa.bool_(), orc.BYTE: pa.int8(), orc.SHORT: pa.int16(), orc.INT: pa.int32(), orc.LONG: pa.int64(),
    orc.FLOAT: pa.float32(), orc.DOUBLE: pa.float64(), orc.STRING: pa.string(), orc.VARCHAR: pa.string(),
    orc.CHAR: pa.string(), orc.BINARY: pa.binary(), orc.DATE: pa.date32(),
}  # fmt: skip
_LIMIT_MS: Final = (1 << 63) // 1_000_000
_DAY_MS: Final = 86_400_000
"""Old writers took the bounds in their own time zone."""


@dataclass(frozen=True, slots=True)
class _Type:
    """A type in Arrow, about how many bytes a value takes at least, why it is not read, and the numbers of its types of
    timestamps that pyarrow cannot read, in order; in `stored` those are numbers."""

    arrow: pa.DataType
    width: int
    refused: str | None = None
    far: tuple[int, ...] = ()
    numbers: pa.DataType | None = None

    @property
    def stored(self) -> pa.DataType:
        return self.arrow if self.numbers is None else self.numbers


@dataclass(frozen=True, slots=True)
class Column:
    """A top-level field, its type number, about how many bytes a value takes at least, why it is not read, and the
    numbers of its types of timestamps beyond 64 bits of nanoseconds (`orc_times`), which are numbers in `stored`."""

    field: pa.Field
    number: int
    width: int
    refused: str | None
    far: tuple[int, ...]
    stored: pa.DataType


def columns_of(footer: Footer, where: str) -> list[Column]:
    """The top-level fields, with their ids. Raises CorruptTableError."""
    return _Types(footer, where).columns()


@dataclass(frozen=True, slots=True)
class _Types:
    footer: Footer
    where: str

    def columns(self) -> list[Column]:
        root = self.footer.types[0]
        found = []
        for name, number in zip(root.names, root.below):
            made = self._made(number)
            field = self._named(name, number, made.arrow)
            found.append(Column(field, number, made.width, made.refused, made.far, made.stored))
        return found

    def _named(self, name: str, number: int, arrow: pa.DataType, nullable: bool = True) -> pa.Field:
        id = self.footer.types[number].attribute("iceberg.id")
        if id is not None and not (id.isascii() and id.isdigit() and len(id) < 11):
            raise CorruptTableError(f"the ORC file has the field id {id!r:.80}", where=self.where)
        return pa.field(name, arrow, nullable, None if id is None else {FIELD_ID: id.encode()})

    def _made(self, number: int) -> _Type:
        type = self.footer.types[number]
        if type.kind in (orc.TIMESTAMP, orc.INSTANT):
            return self._timestamp(number, type)
        if type.kind not in (orc.STRUCT, orc.LIST, orc.MAP):
            return self._leaf(type)
        below = tuple(self._made(n) for n in type.below)
        arrow = self._group(type, [f.arrow for f in below])
        refused = next((f.refused for f in below if f.refused is not None), None)
        width = 1 + sum(f.width for f in below) if type.kind == orc.STRUCT else 5
        far = tuple(n for f in below for n in f.far)
        return _Type(arrow, width, refused, far, self._group(type, [f.stored for f in below]) if far else None)

    def _group(self, type: Type, below: Sequence[pa.DataType]) -> pa.DataType:
        """A type of these types."""
        match type.kind:
            case orc.STRUCT:
                return pa.struct([self._named(*named) for named in zip(type.names, type.below, below)])
            case orc.LIST:
                return pa.list_(self._named("element", type.below[0], below[0]))
        key = self._named("key", type.below[0], below[0], False)
        return pa.map_(key, self._named("value", type.below[1], below[1]))

    def _leaf(self, type: Type) -> _Type:
        if type.kind == orc.DECIMAL:
            # Hive 0.11 wrote none; pyarrow then takes these.
            precision, scale = (type.precision, type.scale) if type.precision else (38, 6)
            if precision > 38 or scale > precision:
                raise CorruptTableError(f"the ORC file has a decimal({precision}, {scale})", where=self.where)
            return _Type(pa.decimal128(precision, scale), 16)
        if type.kind == orc.LONG and type.attribute("iceberg.long-type") == "TIME":
            return _Type(pa.time64("us"), 8)
        found = _PLAIN.get(-1 if type.kind is None else type.kind)
        if found is None:
            return _Type(pa.dense_union([]), 1, refused="unions are no type of Iceberg's")
        return _Type(found, 8 if found.num_buffers > 2 else max(1, found.bit_width // 8))

    def _timestamp(self, number: int, type: Type) -> _Type:
        """pyarrow gives nanoseconds of 64 bits; some of its versions let others overflow."""
        zone = "UTC" if type.kind == orc.INSTANT else None
        if type.attribute("iceberg.timestamp-unit") == "NANOS" or _within(self.footer.statistics, number):
            return _Type(pa.timestamp("ns", zone), 8)
        return _Type(pa.timestamp("us", zone), 8, far=(number,), numbers=pa.int64())


def _within(statistics: Sequence[Statistics], number: int) -> bool:
    """Whether the statistics say that all values are within 64 bits of nanoseconds."""
    if number >= len(statistics):
        return False
    times = statistics[number].times
    bounds = None if times is None else times.bounds
    if bounds is None:
        return statistics[number].values == 0
    return bounds[0] > _DAY_MS - _LIMIT_MS and bounds[1] < _LIMIT_MS - _DAY_MS

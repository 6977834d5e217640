"""Bloom filters of stretches of rows: split-block filters of XXH64, as those of Parquet.

A filter says of a value that no row of its zone has it, or nothing. Of a condition it answers equalities with
constants, lists of them, nulls, and what AND and OR make of these; other parts may be true in any row. Values are
hashed as they are stored: numbers as little-endian bytes of their width, text as UTF-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.literals import to_scalar
from boathouse.bits.xxhash64 import xxhash64
from boathouse.errors import CorruptTableError
from boathouse.expr.tree import And, Column, Comparison, Expr, In, IsNull, Literal, Or

Zones = npt.NDArray[np.bool_]
_SALT: Final = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint64
)
_BLOCK: Final = 32
MAX_VALUES: Final = 1 << 10
"""Constants that are looked for in each filter."""


@dataclass(frozen=True)
class Filters:
    """Of the zones of an index; `kind` is the type in which the column stores its values."""

    kind: pa.DataType
    data: list[bytes]
    nulls: Zones

    def may_match(self, condition: Expr) -> Zones:
        """Which zones may have a row for which the condition, on the column alone, is true."""
        match condition:
            case And(args):
                return reduce(np.logical_and, map(self.may_match, args))
            case Or(args):
                return reduce(np.logical_or, map(self.may_match, args))
            case IsNull(Column()):
                return self.nulls
            case Comparison("=" | "<=>" as op, Column() as column, Literal() as value):
                return self._any((value,), column, nulls=op == "<=>")
            case In(Column() as column, options) if all(isinstance(o, Literal) for o in options):
                return self._any(tuple(o for o in options if isinstance(o, Literal)), column, nulls=False)
        return self._every

    @property
    def _every(self) -> Zones:
        return np.ones(len(self.data), np.bool_)

    def _any(self, values: tuple[Literal, ...], column: Expr, *, nulls: bool) -> Zones:
        """Which may have one of the values; a null one is none but for `nulls`."""
        found = np.zeros(len(self.data), np.bool_)
        if len(values) > MAX_VALUES:
            return self._every
        for value in values:
            if value.value is None:
                found = found | self.nulls if nulls else found
                continue
            raw = stored_bytes(value, self.kind) if value.type == column.type else None
            if raw is None:
                return self._every
            for one in raw:
                found = found | self._has(xxhash64(one))
        return found

    def _has(self, hashed: int) -> Zones:
        """Which filters may have a value with this hash."""
        bits = np.uint64(1) << ((np.uint64(hashed & 0xFFFF_FFFF) * _SALT & np.uint64(0xFFFF_FFFF)) >> np.uint64(27))
        blocks = []
        for data in self.data:
            count, odd = divmod(len(data), _BLOCK)
            if odd or not count:
                raise CorruptTableError(f"a Bloom filter of {len(data)} bytes")
            at = ((hashed >> 32) * count >> 32) * _BLOCK
            blocks.append(data[at : at + _BLOCK])
        words = np.frombuffer(b"".join(blocks), "<u4").reshape(-1, 8).astype(np.uint64)
        found: Zones = ((words & bits) != 0).all(axis=1)
        return found


def stored_bytes(value: Literal, kind: pa.DataType) -> tuple[bytes, ...] | None:
    """What is hashed of a constant, in each way in which a row may have it; None where that is not known. NaN has many
    bit patterns, and both zeros are one value."""
    t = pa.types
    try:
        scalar = to_scalar(value).cast(kind)
    except pa.ArrowException:
        return None
    if t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind):
        return (scalar.as_buffer().to_pybytes(),)
    if t.is_float32(kind) or t.is_float64(kind):
        number = scalar.as_py()
        numbers = () if number != number else (0.0, -0.0) if number == 0 else (number,)
        return tuple(np.array(n, f"<f{kind.bit_width // 8}").tobytes() for n in numbers) or None
    if t.is_integer(kind) or t.is_date(kind) or t.is_time(kind) or t.is_timestamp(kind):
        width = kind.bit_width
        signed = kind if t.is_integer(kind) else pa.int32() if width == 32 else pa.int64()
        return (pa.array([scalar], kind).view(signed).to_numpy().tobytes(),)
    return None

"""Timestamps of ORC beyond 64 bits of nanoseconds, which pyarrow refuses: the years before 1677 and after 2262.

A timestamp is stored as seconds since 2015 in the time zone of the writer, which pyarrow reads as a column of numbers,
and as nanoseconds beside them, without the zeros at their end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits import zones
from boathouse.errors import CorruptTableError
from boathouse.orc.footer import Stripe, Tail, inflated
from boathouse.orc.runs import unsigned
from boathouse.orc.stripes import NANOS, StripeFooter

Ints = npt.NDArray[np.int64]
EPOCH: Final = 1_420_070_400
"""2015-01-01 00:00:00 UTC, in seconds since 1970."""
_MOST: Final = 9 * 10**12
"""Seconds whose microseconds have 64 bits."""
_OLD: Final = 0
MILLISECOND: Final = 999_999
"""Nanoseconds of less than one."""


@dataclass(frozen=True, slots=True)
class StripePart:
    """One stripe of the file at `where`."""

    stream: pa.NativeFile
    tail: Tail
    stripe: Stripe
    where: str

    def timestamps(self, number: int, seconds: pa.Array, type: pa.DataType) -> pa.Array:
        """The timestamps of the type `number`, in microseconds, of which pyarrow has read these `seconds`. Raises
        CorruptTableError, and the errors of the stream."""
        stripe = self.stripe
        raw = bytes(self.stream.read_at(stripe.footer, stripe.offset + stripe.index + stripe.data))
        footer = StripeFooter.decode(inflated(raw, self.tail.script, self.where), where=self.where)
        valid = np.asarray(seconds.is_valid())
        whole = np.asarray(seconds.fill_null(0), np.int64)[valid]
        try:
            nanos = self._nanos(footer, number, len(whole))
            if len(whole) and not -_MOST < int(whole.min()) <= int(whole.max()) < _MOST:
                raise ValueError(f"a timestamp of {int(whole[np.abs(whole).argmax()]):,} seconds")
            moments = _moments(whole, "UTC" if type.tz is not None else footer.zone or "UTC")
        except (ValueError, IndexError, OverflowError) as error:
            raise CorruptTableError(f"corrupt ORC timestamps: {error}", where=self.where) from None
        moments = moments - ((moments < 0) & (nanos > MILLISECOND))  # writers in Java round toward 1970
        out = np.zeros(len(seconds), np.int64)
        out[valid] = moments * 1_000_000 + nanos // 1000
        return pa.array(out, pa.int64(), mask=~valid).view(type)

    def _nanos(self, footer: StripeFooter, number: int, count: int) -> Ints:
        at = self.stripe.offset
        for found in footer.streams:
            if found.length > self.stripe.end - at:
                raise ValueError(f"a stream of {found.length:,} bytes")
            if found.column == number and found.kind == NANOS:
                packed = inflated(bytes(self.stream.read_at(found.length, at)), self.tail.script, self.where)
                old = footer.columns[number].kind == _OLD
                numbers = unsigned(packed, count, first_version=old)
                zeros, rest = numbers & 7, numbers >> 3
                return np.where(zeros > 0, rest * 10 ** (zeros + 1), rest)
            at += found.length
        if count:
            raise ValueError("no nanoseconds")
        return np.zeros(0, np.int64)


def with_timestamps(array: pa.Array, type: pa.DataType, numbers: Iterator[int], part: StripePart) -> pa.Array:
    """The array with timestamps in place of the seconds of the types `numbers`, which are in order.

    Streams have the values of parents that are there: so have the children of pyarrow's arrays, which are null, or
    nothing, below a parent that is null.
    """
    if array.type == type:
        return array
    if pa.types.is_timestamp(type):
        return part.timestamps(next(numbers), array, type)
    if pa.types.is_struct(type):
        fields = [with_timestamps(array.field(i), f.type, numbers, part) for i, f in enumerate(type)]
        return pa.StructArray.from_arrays(fields, fields=list(type), mask=array.is_null())
    if pa.types.is_map(type):
        keys = with_timestamps(array.keys, type.key_type, numbers, part)
        below = pa.StructArray.from_arrays(
            [keys, with_timestamps(array.items, type.item_type, numbers, part)],
            fields=[type.key_field, type.item_field],
        )
    else:
        below = with_timestamps(array.values, type.value_type, numbers, part)
    return pa.Array.from_buffers(type, len(array), array.buffers()[:2], array.null_count, array.offset, [below])


def _moments(seconds: Ints, zone: str) -> Ints:
    """Seconds since 1970 of the writer's wall clock."""
    written = zones.zone(zone)
    return written.to_local(seconds + written.instant(EPOCH, 1), 1)

"""Timestamps in ORC stripes that pyarrow makes: those before 1970 with fractions of a second are stored again.

ORC has seconds and nanoseconds, which are never negative. Where seconds are negative, and the fraction is a millisecond
or more, readers take one second off, as the first writers rounded toward 1970. pyarrow writes negative nanoseconds,
which it reads itself; readers in Java make other moments of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.errors import ConstraintViolationError
from boathouse.orc.footer import PostScript, Stripe, inflated, stored
from boathouse.orc.runs import direct
from boathouse.orc.stripes import DATA, INDEXES, NANOS, StripeFooter
from boathouse.orc.times import EPOCH, MILLISECOND

Ints = npt.NDArray[np.int64]
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def misread(columns: Mapping[str, pa.Array], uri: str) -> dict[int, tuple[Ints, Ints]]:
    """The seconds and nanoseconds of each type of timestamps, by its number, of which some are stored in another way
    by pyarrow; `columns` are `arrow.normal`. Raises ConstraintViolationError for moments that have no place in ORC."""
    found = {}
    number = 1
    for name, array in columns.items():
        for at, values in _timestamps(array, number):
            seconds, nanos = _parts(values)
            if ((seconds < 0) & (nanos > 0)).any():
                if ((seconds == -1) & (nanos > MILLISECOND)).any():
                    raise ConstraintViolationError(
                        f"column `{name}` has a timestamp in the last second before 1970, which ORC cannot store",
                        where=uri,
                        advice="set the property write.format.default to parquet or avro",
                    )
                found[at] = seconds, nanos
        number += _width(array.type)
    return found


def _below(type: pa.DataType) -> list[pa.DataType]:
    if pa.types.is_map(type):
        return [type.key_type, type.item_type]
    return [type.field(i).type for i in range(type.num_fields)]


def _width(type: pa.DataType) -> int:
    """How many types of ORC it is."""
    return 1 + sum(map(_width, _below(type)))


def _timestamps(array: pa.Array, number: int) -> Iterator[tuple[int, pa.Array]]:
    """The arrays of timestamps at any depth, with the numbers of their types; the array itself has this one."""
    type = array.type
    if pa.types.is_timestamp(type):
        yield number, array
    below: list[pa.Array] = []
    if pa.types.is_struct(type):
        below = [array.field(i) for i in range(type.num_fields)]
    elif pa.types.is_map(type):
        below = [array.keys, array.items]
    elif pa.types.is_list(type):
        below = [array.values]
    number += 1
    for child in below:
        yield from _timestamps(child, number)
        number += _width(child.type)


def _parts(array: pa.Array) -> tuple[Ints, Ints]:
    per = _PER_SECOND[array.type.unit]
    values = array.drop_null().view(pa.int64()).to_numpy(zero_copy_only=False)
    seconds = np.floor_divide(values, per)
    return seconds, (values - seconds * per) * (_PER_SECOND["ns"] // per)


def stored_again(
    data: bytes, stripe: Stripe, moments: Mapping[int, tuple[Ints, Ints]], script: PostScript, uri: str
) -> tuple[bytes, Stripe]:
    """A stripe with other streams of these types, and without the indexes of its row groups, which name places in
    them. `data` are its bytes."""
    cut = stripe.index + stripe.data
    footer = StripeFooter.decode(inflated(data[cut:], script, uri), where=uri)
    at, parts, streams = 0, [], []
    for stream in footer.streams:
        body, at = data[at : at + stream.length], at + stream.length
        if stream.kind in INDEXES:
            continue
        column = stream.column or 0
        if column in moments and stream.kind in (DATA, NANOS):
            seconds, nanos = moments[column]
            made = _seconds(seconds, nanos) if stream.kind == DATA else _fractions(nanos)
            body = stored(direct(made), script)
        parts.append(body)
        streams.append(replace(stream, length=len(body)))
    whole = b"".join(parts)
    end = stored(replace(footer, streams=tuple(streams)).encode(), script)
    return whole + end, replace(stripe, index=0, data=len(whole), footer=len(end))


def _seconds(seconds: Ints, nanos: Ints) -> npt.NDArray[np.uint64]:
    found = seconds + ((seconds < 0) & (nanos > MILLISECOND)) - EPOCH
    return ((found << 1) ^ (found >> 63)).view(np.uint64)


def _fractions(nanos: Ints) -> npt.NDArray[np.uint64]:
    """Nanoseconds without the zeros at their end, if there are two or more; their number is in the last three bits."""
    found = nanos << 3
    for zeros in range(2, 9):
        whole = (nanos % 10**zeros == 0) & (nanos > 0)
        found = np.where(whole, (nanos // 10**zeros) << 3 | (zeros - 1), found)
    return found.view(np.uint64)

"""Bounds from Parquet footers, without conversion to Python's narrower dates and times; and their truncation."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import SchemaMismatchError
from boathouse.parquet.convert import Convert

if TYPE_CHECKING:
    import pyarrow.parquet as pq

Bounds = tuple[pa.Scalar, pa.Scalar]
RawBounds = tuple[Any, Any]
_NO_BOUNDS: RawBounds = (None, None)
_NOT_DECODED = (pa.ArrowInvalid, pa.ArrowNotImplementedError, SchemaMismatchError, OverflowError)
_EXACT = Context(prec=80)


def chunk_bounds(
    statistics: pq.Statistics | None, stored: pa.DataType, convert: Convert | None = None
) -> Bounds | None:
    """The least and greatest value of a column chunk, of the file's Arrow type `stored`, then converted.

    None where the footer has none that can be trusted: NaN, an unknown order (INT96), a string that is not UTF-8.
    Float bounds do not cover NaN, which a writer may have left out. Zeros are -0.0 as a lower and +0.0 as an upper
    bound.
    """
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        found = decoded([raw_bounds(statistics, stored)], statistics.physical_type, stored)
        if found is None:
            return None
        pair = pa.concat_arrays(found)
        if convert is not None:
            pair = convert(pair)
    except _NOT_DECODED:
        return None
    return None if pair.null_count else (pair[0], pair[1])


def raw_bounds(statistics: pq.Statistics, stored: pa.DataType) -> RawBounds:
    """The bounds as stored in the footer, for `decoded`; they must exist."""
    if pa.types.is_unsigned_integer(stored):
        return statistics.min, statistics.max
    return statistics.min_raw, statistics.max_raw


def decoded(raw: Sequence[RawBounds | None], physical: str, stored: pa.DataType) -> tuple[pa.Array, pa.Array] | None:
    """Lower and upper bounds of many chunks of one column: null where there are none, or where one is NaN.

    None if values of this kind are unknown. Raises Arrow's error for one that is not of its type.
    """
    count = len(raw)
    pairs = [p or _NO_BOUNDS for p in raw]
    both = _decode([p[0] for p in pairs] + [p[1] for p in pairs], physical, stored)
    if both is None:
        return None
    lower, upper = both[:count], both[count:]
    return _signed_zeros(lower, upper) if pa.types.is_floating(stored) else (lower, upper)


def decoded_or_none(
    raw: Sequence[RawBounds | None], physical: str, stored: pa.DataType
) -> tuple[pa.Array, pa.Array] | None:
    """As `decoded`, but None where a value is not of its type."""
    try:
        return decoded(raw, physical, stored)
    except _NOT_DECODED:
        return None


def _decode(raw: list[Any], physical: str, stored: pa.DataType) -> pa.Array | None:
    t = pa.types
    if isinstance(stored, pa.BaseExtensionType):
        stored = stored.storage_type
    if t.is_decimal(stored):
        return pa.array([None if v is None else _decimal(v, stored.scale) for v in raw], stored)
    if physical in ("INT32", "INT64"):
        if t.is_unsigned_integer(stored):
            return pa.array(raw, stored)
        numbers = pa.array(raw, pa.int32() if physical == "INT32" else pa.int64())
        if numbers.type == stored:
            return numbers
        return numbers.cast(stored) if t.is_integer(stored) else numbers.view(stored)
    if physical in ("BOOLEAN", "FLOAT", "DOUBLE"):
        return pa.array(raw, stored)
    if t.is_string(stored) or t.is_large_string(stored):
        return pa.array(raw, pa.binary()).cast(stored)
    if t.is_binary(stored) or t.is_fixed_size_binary(stored):
        return pa.array(raw, stored)
    return None


def _decimal(raw: int | bytes, scale: int) -> Decimal:
    whole = raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)
    return Decimal(whole).scaleb(-scale, _EXACT)


def _signed_zeros(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    nan = pc.or_(pc.is_nan(lower), pc.is_nan(upper))
    return tuple(
        pc.if_else(nan, pa.scalar(None, v.type), pc.if_else(pc.equal(v, 0), pa.scalar(zero, v.type), v))
        for v, zero in ((lower, -0.0), (upper, 0.0))
    )


def merged(bounds: Sequence[Bounds]) -> Bounds:
    """The bounds of all of these together; there must be at least one."""
    if len(bounds) == 1:
        return bounds[0]
    lowers, uppers = pa.array([b[0] for b in bounds]), pa.array([b[1] for b in bounds])
    if not pa.types.is_floating(lowers.type):
        return pc.min(lowers), pc.max(uppers)
    # -0.0 and 0.0 compare as equal, so the sign is restored afterwards.
    least, most = pc.min(lowers).as_py(), pc.max(uppers).as_py()
    return pa.scalar(least or -0.0, lowers.type), pa.scalar(most or 0.0, uppers.type)


def truncate_lower(value: Any, length: int) -> Any:
    """The first `length` code points (str) or bytes: never greater than `value`."""
    return value[:length]


def truncate_upper(value: Any, length: int) -> Any:
    """At most `length` code points (str) or bytes, and not less than anything that starts as `value` does.

    The last code point or byte that can be incremented is incremented, skipping surrogates. None if there is none.
    """
    if len(value) <= length:
        return value
    return _raise_text(value[:length]) if isinstance(value, str) else _raise_bytes(value[:length])


def truncate_texts(lower: pa.Array, upper: pa.Array, length: int) -> tuple[pa.Array, pa.Array]:
    """`truncate_lower` and `truncate_upper` of whole columns, as UTF-8."""
    low, cut = (pc.utf8_slice_codeunits(texts, 0, length).cast(pa.binary()) for texts in (lower, upper))
    longer = pc.fill_null(pc.greater(pc.utf8_length(upper), length), False)
    at = np.flatnonzero(longer.to_numpy(zero_copy_only=False))
    if not len(at):
        return low, cut
    nulls, offsets, data = cut.buffers()
    assert cut.offset == 0
    changed = np.frombuffer(data, np.uint8).copy()
    last = np.frombuffer(offsets, np.int32, len(cut) + 1)[1:][at] - 1
    # What ends in such a byte ends in one code point, whose next one has one byte too.
    plain = changed[last] < 0x7F
    changed[last[plain]] += 1
    raised = pa.BinaryArray.from_buffers(cut.type, len(cut), [nulls, offsets, pa.py_buffer(changed)])
    rest = at[~plain]
    if not len(rest):
        return low, raised
    mask = np.zeros(len(cut), np.bool_)
    mask[rest] = True
    texts = [truncate_upper(text, length) for text in upper.take(pa.array(rest)).to_pylist()]
    values = pa.array([None if text is None else text.encode() for text in texts], cut.type)
    return low, pc.replace_with_mask(raised, mask, values)


def _raise_text(text: str) -> str | None:
    for i in range(len(text) - 1, -1, -1):
        code = ord(text[i]) + 1
        if 0xD800 <= code <= 0xDFFF:
            code = 0xE000
        if code <= 0x10FFFF:
            return text[:i] + chr(code)
    return None


def _raise_bytes(data: bytes) -> bytes | None:
    for i in range(len(data) - 1, -1, -1):
        if data[i] < 0xFF:
            return data[:i] + bytes([data[i] + 1])
    return None

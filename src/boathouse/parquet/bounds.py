"""Bounds out of Parquet footers, without passing through Python's narrower dates and times; and their truncation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boathouse.errors import SchemaMismatchError
from boathouse.parquet.convert import Convert

Bounds = tuple[pa.Scalar, pa.Scalar]
_EXACT = Context(prec=80)


def chunk_bounds(
    statistics: pq.Statistics | None, stored: pa.DataType, convert: Convert | None = None
) -> Bounds | None:
    """The least and greatest value of a column chunk, of the file's Arrow type `stored`, then converted.

    None where the footer gives none that can be trusted: NaN, an unknown order (INT96), text that is no UTF-8.
    Float bounds say nothing about NaN: a writer may have left it out. Zeros are -0.0 below and +0.0 above.
    """
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        pair = _decode([statistics.min_raw, statistics.max_raw], statistics, stored)
        if pair is None:
            return None
        if pa.types.is_floating(stored):
            pair = _signed_zeros(pair)
        if pair is not None and convert is not None:
            pair = convert(pair)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, SchemaMismatchError, OverflowError):
        return None
    return None if pair is None or pair.null_count else (pair[0], pair[1])


def _decode(raw: list[Any], statistics: pq.Statistics, stored: pa.DataType) -> pa.Array | None:
    t = pa.types
    if isinstance(stored, pa.BaseExtensionType):
        stored = stored.storage_type
    physical = statistics.physical_type
    if t.is_decimal(stored):
        whole = [v if isinstance(v, int) else int.from_bytes(v, "big", signed=True) for v in raw]
        return pa.array([Decimal(v).scaleb(-stored.scale, _EXACT) for v in whole], stored)
    if physical in ("INT32", "INT64"):
        if t.is_unsigned_integer(stored):
            return pa.array([statistics.min, statistics.max], stored)
        numbers = pa.array(raw, pa.int32() if physical == "INT32" else pa.int64())
        return numbers.cast(stored) if t.is_integer(stored) else numbers.view(stored)
    if physical in ("BOOLEAN", "FLOAT", "DOUBLE"):
        return pa.array(raw, stored)
    if t.is_string(stored) or t.is_large_string(stored):
        return pa.array(raw, pa.binary()).cast(stored)
    if t.is_binary(stored) or t.is_fixed_size_binary(stored):
        return pa.array(raw, stored)
    return None


def _signed_zeros(pair: pa.Array) -> pa.Array | None:
    lower, upper = pair.to_pylist()
    if math.isnan(lower) or math.isnan(upper):
        return None
    return pa.array([lower or -0.0, upper or 0.0], pair.type)


def merged(bounds: Sequence[Bounds]) -> Bounds:
    """The bounds of all of these together; there must be one at least."""
    lowers, uppers = pa.array([b[0] for b in bounds]), pa.array([b[1] for b in bounds])
    if not pa.types.is_floating(lowers.type):
        return pc.min(lowers), pc.max(uppers)
    # -0.0 and 0.0 compare as equal, so the sign is put back after.
    least, most = pc.min(lowers).as_py(), pc.max(uppers).as_py()
    return pa.scalar(least or -0.0, lowers.type), pa.scalar(most or 0.0, uppers.type)


def truncate_lower(value: Any, length: int) -> Any:
    """The first `length` code points (str) or bytes: never above `value`."""
    return value[:length]


def truncate_upper(value: Any, length: int) -> Any:
    """At most `length` code points (str) or bytes, and not below anything that starts as `value` does.

    The last code point or byte that can be raised is raised, surrogates skipped. None if there is none.
    """
    if len(value) <= length:
        return value
    return _raise_text(value[:length]) if isinstance(value, str) else _raise_bytes(value[:length])


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

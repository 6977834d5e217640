"""The leaves of JSON texts as encoded values, each a slice of one buffer.

A string of fewer than 64 bytes needs no copy of its own: its header takes the place of the opening quote.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boathouse.bits.unaligned import Bytes, Ints, Mask
from boathouse.errors import InvalidJsonError
from boathouse.variant.columns.byte_columns import splits_of
from boathouse.variant.columns.json_bits import ragged_range
from boathouse.variant.columns.json_scalars import scalars
from boathouse.variant.columns.json_scan import FRONT, Scan
from boathouse.variant.columns.json_strings import resolve
from boathouse.variant.columns.json_write import LONG_HEADER, SHORT, Leaves
from boathouse.variant.json_in import encode_json
from boathouse.variant.primitives import SHORT_STRING

_RECORD = 24


@dataclass(frozen=True, eq=False)
class _Pieces:
    at: Ints
    sizes: Ints
    more: Bytes  # what is to be appended to the buffer


def leaves_of(found: Scan) -> tuple[Leaves, Ints]:
    """The leaves of a scan in the order of the text, and the texts that have a malformed one. Overwrites parts of the
    text."""
    buffer = found.texts.buffer
    numbers, broken = _scalars(found, len(buffer))
    strings, also = _strings(found, len(buffer) + len(numbers.more))
    at = np.empty(len(strings.at) + len(numbers.at), np.int64)
    at[found.string_slots], at[found.scalar_slots] = strings.at, numbers.at
    sizes = np.empty(len(at), np.int64)
    sizes[found.string_slots], sizes[found.scalar_slots] = strings.sizes, numbers.sizes
    source = np.concatenate([buffer, numbers.more, strings.more])
    bad = found.texts.row_at(np.concatenate([found.opens[also], found.starts[broken]]))
    return Leaves(source, at, sizes, found.string_slots[strings.sizes > SHORT]), bad


def _strings(found: Scan, behind: int) -> tuple[_Pieces, Ints]:
    """The strings, and those whose escapes are wrong."""
    body, opens, closes = found.texts.body, found.opens, found.closes
    content = closes - opens - 1
    at = opens + FRONT
    which, broken, more = np.empty(0, np.int64), np.empty(0, np.bool_), np.empty(0, np.uint8)
    if len(found.escapes):
        which, broken, raw, left = resolve(body, opens, closes, found.escapes)
        starts = splits_of(left + LONG_HEADER)
        more = np.empty(int(starts[-1]), np.uint8)
        more[ragged_range(starts[:-1] + LONG_HEADER, left)] = raw
        more[starts[:-1] + LONG_HEADER - 1] = np.minimum(left, SHORT) << 2 | SHORT_STRING
        at[which] = behind + LONG_HEADER - 1 + starts[:-1]
        content[which] = left
    body[opens] = content << 2 | SHORT_STRING
    extra = np.where(content < SHORT, 0, LONG_HEADER - 1)
    return _Pieces(at - extra, content + extra + 1, more), which[broken]


def _scalars(found: Scan, behind: int) -> tuple[_Pieces, Ints]:
    """The scalars, and those that are not valid."""
    made = scalars(found.texts.buffer, found.starts, found.stops)
    at = np.arange(behind, behind + _RECORD * len(found.starts), _RECORD)
    more = made.records.reshape(-1).view(np.uint8)
    if not len(made.odd):
        return _Pieces(at, made.sizes, more), made.odd
    odd, ok = _one_by_one(found, made.odd)
    sizes = np.array([len(one) for one in odd], np.int64)
    made.sizes[made.odd] = sizes
    at[made.odd] = behind + len(more) + splits_of(sizes)[:-1]
    return _Pieces(at, made.sizes, np.concatenate([more, np.frombuffer(b"".join(odd), np.uint8)])), made.odd[~ok]


def _one_by_one(found: Scan, which: Ints) -> tuple[list[bytes], Mask]:
    """Scalars encoded by the single-value implementation; no bytes for those that are not valid."""
    out: list[bytes] = []
    for start, stop in zip(found.starts[which].tolist(), found.stops[which].tolist()):
        try:
            out.append(encode_json(found.texts.body[start:stop].tobytes())[1])
        except InvalidJsonError:
            out.append(b"")
    return out, np.array([bool(one) for one in out], np.bool_)

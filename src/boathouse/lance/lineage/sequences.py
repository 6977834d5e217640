"""The sequences of a fragment, one number a row, deleted ones included: row ids, and versions in runs.

A sequence of ids is segments one after another, each in one of five forms; the bits of a bitmap count from the lowest
of each byte, whatever the comment in Lance's protobuf says. Of the runs of versions only the lengths count: their spans
may name the offsets that the rows had in other fragments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boathouse.bits.protobuf import Message, nested, repeated, scalar
from boathouse.errors import CorruptTableError

Numbers = npt.NDArray[np.int64]
FIRST_NEW = 1 << 62
"""From here on ids stand for rows that have none yet, in what a write tells of its files."""
_MANY = 64
"""From one ascending stretch in so many ids on, they are stored one by one."""


@dataclass(frozen=True, kw_only=True)
class _Small(Message):
    """Offsets of 2 or of 4 bytes from a base."""

    base: int = scalar(1, "uint64")
    offsets: bytes = scalar(2, "bytes")


@dataclass(frozen=True, kw_only=True)
class _Large(Message):
    values: bytes = scalar(2, "bytes")


@dataclass(frozen=True, kw_only=True)
class _Array(Message):
    """EncodedU64Array."""

    u16: _Small | None = nested(1, _Small, oneof="array")
    u32: _Small | None = nested(2, _Small, oneof="array")
    u64: _Large | None = nested(3, _Large, oneof="array")


@dataclass(frozen=True, kw_only=True)
class _Range(Message):
    """The numbers from `start` on to the one before `end`; without `holes`, and where a bit of `bitmap` is set."""

    start: int = scalar(1, "uint64")
    end: int = scalar(2, "uint64")


@dataclass(frozen=True, kw_only=True)
class _WithHoles(_Range):
    holes: _Array | None = nested(3, _Array)


@dataclass(frozen=True, kw_only=True)
class _WithBitmap(_Range):
    bitmap: bytes = scalar(3, "bytes")


@dataclass(frozen=True, kw_only=True)
class _Segment(Message):
    range: _Range | None = nested(1, _Range, oneof="segment")
    range_with_holes: _WithHoles | None = nested(2, _WithHoles, oneof="segment")
    range_with_bitmap: _WithBitmap | None = nested(3, _WithBitmap, oneof="segment")
    sorted_array: _Array | None = nested(4, _Array, oneof="segment")
    array: _Array | None = nested(5, _Array, oneof="segment")


@dataclass(frozen=True, kw_only=True)
class _Ids(Message):
    """RowIdSequence."""

    segments: tuple[_Segment, ...] = repeated(1, _Segment)


@dataclass(frozen=True, kw_only=True)
class _Run(Message):
    span: _Segment | None = nested(1, _Segment)
    version: int = scalar(2, "uint64")


@dataclass(frozen=True, kw_only=True)
class _Versions(Message):
    """RowDatasetVersionSequence."""

    runs: tuple[_Run, ...] = repeated(1, _Run)


def decode_ids(data: bytes, rows: int, where: str) -> Numbers:
    """The ids of a fragment of `rows` rows. Raises CorruptTableError, also where they are not as many."""
    found: list[Numbers] = []
    left = rows
    for segment in _Ids.decode(data, where=where).segments:
        found.append(_numbers(segment, left, where))
        left -= len(found[-1])
    if left:
        raise CorruptTableError(f"{rows - left} row ids of {rows} rows", where=where)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def decode_versions(data: bytes, rows: int, where: str) -> Numbers:
    """The versions of a fragment's rows. Raises as `decode_ids`."""
    runs = _Versions.decode(data, where=where).runs
    counts, left = [], rows
    for run in runs:
        counts.append(len(_numbers(run.span or _Segment(), left, where)))
        left -= counts[-1]
    if left:
        raise CorruptTableError(f"versions of {rows - left} rows in a fragment of {rows}", where=where)
    return np.repeat(np.array([_signed(r.version, where) for r in runs], np.int64), counts)


def _signed(number: int, where: str) -> int:
    if number >= 1 << 63:
        raise CorruptTableError(f"a row has the number {number}", where=where)
    return number


def _numbers(segment: _Segment, most: int, where: str) -> Numbers:
    """The numbers of a segment, of which there may be at most so many."""
    array = segment.sorted_array or segment.array
    if array is not None:
        found = _decoded(array, where)
    elif segment.range is not None:
        found = _span(segment.range, most, where)
    elif segment.range_with_holes is not None:
        holes = _decoded(segment.range_with_holes.holes or _Array(), where)
        found = np.setdiff1d(_span(segment.range_with_holes, most + len(holes), where), holes, assume_unique=True)
    elif segment.range_with_bitmap is not None:
        bits = np.unpackbits(np.frombuffer(segment.range_with_bitmap.bitmap, np.uint8), bitorder="little")
        span = _span(segment.range_with_bitmap, len(bits), where)
        found = span[bits[: len(span)].astype(np.bool_)]
    else:
        raise CorruptTableError("a segment of row ids in an unknown form", where=where)
    if len(found) > most:
        raise CorruptTableError(f"a segment of {len(found)} row ids where {most} rows are left", where=where)
    return found


def _span(range: _Range, most: int, where: str) -> Numbers:
    start, end = _signed(range.start, where), _signed(range.end, where)
    if not 0 <= end - start <= most:
        raise CorruptTableError(f"row ids from {start} to {end}, where there are at most {most}", where=where)
    return np.arange(start, end, dtype=np.int64)


def _decoded(array: _Array, where: str) -> Numbers:
    small = array.u16 or array.u32
    kind = "<u2" if array.u16 is not None else "<u4"
    base, raw = (small.base, small.offsets) if small is not None else (0, b"")
    if array.u64 is not None:
        kind, raw = "<u8", array.u64.values
    if len(raw) % np.dtype(kind).itemsize:
        raise CorruptTableError(f"an array of row ids of {len(raw)} bytes", where=where)
    numbers = np.frombuffer(raw, kind).astype(np.uint64)
    _signed(base + int(numbers.max(initial=0)), where)
    return (numbers + np.uint64(base)).astype(np.int64)


def encode_ids(ids: Numbers) -> bytes:
    """Segments in the smallest form of each: a stretch of ascending ids becomes one, unless there are too many."""
    steps = np.diff(ids)
    breaks = np.flatnonzero((steps <= 0) | (steps >> 32 > 0)) + 1
    if len(breaks) * _MANY > len(ids):
        return _Ids(segments=(_Segment(array=_encoded(ids)),)).encode()
    parts = np.split(ids, breaks) if len(ids) else []
    return _Ids(segments=tuple(s for part in parts for s in _ascending(part))).encode()


def encode_versions(versions: Numbers) -> bytes:
    """Runs of the same version; spans are the offsets of the rows."""
    ends = [*(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)] if len(versions) else []
    runs = []
    for start, end in zip([0, *ends], ends):
        runs.append(_Run(span=_Segment(range=_Range(start=start, end=end)), version=int(versions[start])))
    return _Versions(runs=tuple(runs)).encode()


def _ascending(ids: Numbers) -> Iterator[_Segment]:
    """Ids that ascend: stretches without gaps are ranges of their own where that is smaller than one segment."""
    cuts = np.flatnonzero(np.diff(ids) > 1) + 1
    starts, ends = ids[[0, *cuts.tolist()]], ids[[*(cuts - 1).tolist(), len(ids) - 1]] + 1
    whole = _joined(ids)
    if len(starts) == 1 or len(starts) * 8 < len(whole.encode()):
        yield from (_Segment(range=_Range(start=int(a), end=int(b))) for a, b in zip(starts, ends))
    else:
        yield whole


def _joined(ids: Numbers) -> _Segment:
    """The smallest of the forms that hold ascending ids with gaps."""
    start, end = int(ids[0]), int(ids[-1]) + 1
    forms = [_Segment(sorted_array=_encoded(ids))]
    if end - start <= 64 * len(ids):
        inside = np.zeros(end - start, np.bool_)
        inside[ids - start] = True
        bitmap = np.packbits(inside, bitorder="little").tobytes()
        forms.append(_Segment(range_with_bitmap=_WithBitmap(start=start, end=end, bitmap=bitmap)))
        holes = _encoded(np.flatnonzero(~inside) + start)
        forms.append(_Segment(range_with_holes=_WithHoles(start=start, end=end, holes=holes)))
    return min(forms, key=lambda s: len(s.encode()))


def _encoded(ids: Numbers) -> _Array:
    base = int(ids.min()) if len(ids) else 0
    span = int(ids.max()) - base if len(ids) else 0
    if span >> 32:
        return _Array(u64=_Large(values=ids.astype("<u8").tobytes()))
    if span >> 16:
        return _Array(u32=_Small(base=base, offsets=(ids - base).astype("<u4").tobytes()))
    return _Array(u16=_Small(base=base, offsets=(ids - base).astype("<u2").tobytes()))


def ranges(bounds: Iterable[tuple[int, int]]) -> bytes:
    """The encoded ids of these ranges, each with its end."""
    return _Ids(segments=tuple(_Segment(range=_Range(start=a, end=b)) for a, b in bounds)).encode()


def one_version(version: int, rows: int) -> bytes:
    """The encoded versions of rows that all have the same one."""
    return _Versions(runs=(_Run(span=_Segment(range=_Range(end=rows)), version=version),)).encode()


def forms_of(data: bytes) -> Sequence[str]:
    """The form of each segment of an encoded sequence."""
    names = ("range", "range_with_holes", "range_with_bitmap", "sorted_array", "array")
    return [next(n for n in names if getattr(s, n) is not None) for s in _Ids.decode(data).segments]

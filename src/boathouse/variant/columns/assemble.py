"""Variant values of whole columns, built bottom-up: leaves, then the objects and arrays that contain them.

All builders return a `Rope` of one value per row; `rope.join()` copies the bytes. Written canonically: fields by the
UTF-8 bytes of their names, values in that order, the smallest counts, ids and offsets of each row.
(VariantEncoding.md, "Value encoding")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from boathouse.bits.unaligned import Ints, Mask, put, scatter
from boathouse.variant.columns.byte_columns import Fixed, Loose, Ragged, Rope, loose, prefixes, splits_of, uniform
from boathouse.variant.primitives import (
    BINARY,
    FALSE,
    MAX_UNSIGNED,
    NULL_VALUE,
    SHORT_STRING_MAX,
    STRING,
    TRUE,
    array_header,
    object_header,
    primitive_header,
    width_of,
)

_PATTERNS = 64  # up to this number of sets of present fields, objects are laid out set by set; beyond, field by field
_NULLABLE = 16  # fields that may be absent, of which all 2^n sets are counted
_CELLS = 1 << 18


def nulls(rows: int) -> Rope:
    """Variant null in each row."""
    return Rope(rows, (Fixed(1, ((0, NULL_VALUE[0]),)),))


def booleans(values: Mask) -> Rope:
    header = np.where(values, np.uint8(primitive_header(TRUE)), np.uint8(primitive_header(FALSE)))
    return Rope(len(values), (Fixed(1, ((0, header),)),))


def primitives(id: int, values: npt.NDArray[Any]) -> Rope:
    """Primitives of one type and width: `values` are little-endian numbers, or `V16` for 16 raw bytes each."""
    return Rope(len(values), (Fixed(1 + values.dtype.itemsize, ((0, primitive_header(id)), (1, values))),))


def decimals(id: int, scale: int, unscaled: npt.NDArray[Any]) -> Rope:
    """Decimals of one scale: `unscaled` has int32, int64 or `V16` (little-endian two's complement) elements."""
    columns = ((0, primitive_header(id)), (1, scale), (2, unscaled))
    return Rope(len(unscaled), (Fixed(2 + unscaled.dtype.itemsize, columns),))


def integers(values: npt.NDArray[np.integer[Any]]) -> Rope:
    """Integers, each in the narrowest type: int8, int16, int32 or int64."""
    rows = len(values)
    if not rows:
        return Rope(0, ())
    values = values.astype(np.int64, copy=False)
    magnitude = values ^ (values >> 63)
    level = np.zeros(rows, np.uint8)  # log2 of the bytes
    for bits in (7, 15, 31):
        level += magnitude >= 1 << bits
    low = int(level[0])
    if (level == low).all():
        return primitives(3 + low, values.astype(f"<i{1 << low}"))
    records = np.empty((rows, 9), np.uint8)
    records[:, 0] = (level + 3) << 2
    np.ndarray((rows,), "<i8", records, 1, (9,))[:] = values
    return loose(prefixes(records, 1 + (np.int64(1) << level)))


def strings(texts: Ragged) -> Rope:
    """Strings, short (below 64 bytes) or long; the bytes of `texts` are UTF-8 and are borrowed."""
    sizes = texts.sizes
    longest = int(sizes.max(initial=0))
    short = Fixed(1, ((0, (sizes << 2 | 1).astype(np.uint8)),))
    if longest <= SHORT_STRING_MAX:
        return Rope(texts.rows, (short, Loose(texts)))
    is_short = sizes <= SHORT_STRING_MAX
    long = _long_header(STRING, sizes, longest)
    if not is_short.any():
        return Rope(texts.rows, (long, Loose(texts)))
    heads = Fixed(1, short.columns, is_short), Fixed(5, long.columns, ~is_short)
    return Rope(texts.rows, (*heads, Loose(texts)))


def binaries(values: Ragged) -> Rope:
    sizes = values.sizes
    return Rope(values.rows, (_long_header(BINARY, sizes, int(sizes.max(initial=0))), Loose(values)))


def _long_header(id: int, sizes: Ints, longest: int) -> Fixed:
    width_of(longest)
    return Fixed(5, ((0, primitive_header(id)), (1, sizes.astype("<u4"))))


def arrays(splits: Ints, elements: Ragged) -> Rope:
    """Arrays of the encoded `elements`: row i has those of [splits[i], splits[i + 1])."""
    heads = _heads(np.diff(splits), elements.sizes[splits[0] : splits[-1]], None)
    return Rope(len(splits) - 1, (Loose(heads), Loose(elements.group(splits))))


def objects(splits: Ints, ids: npt.NDArray[np.integer[Any]], children: Ragged) -> Rope:
    """Objects whose fields differ by row: row i has the fields [splits[i], splits[i + 1]).

    Field j has the id `ids[j]` in the dictionary of its row and the encoded value `children[j]`; within a row the
    fields are in the order of their names, without duplicates.
    """
    inside = slice(int(splits[0]), int(splits[-1]))
    heads = _heads(np.diff(splits), children.sizes[inside], ids[inside].astype(np.int64, copy=False))
    return Rope(len(splits) - 1, (Loose(heads), Loose(children.group(splits))))


def structs(
    rows: int,
    ids: Sequence[int] | Ints,
    fields: Sequence[Rope],
    present: Sequence[Mask | None],
    inside: Mask | None = None,
) -> Rope:
    """Objects with fields of the same names in the rows `inside` (None: in all), without those not `present`.

    The fields are in the order of their names; `ids` has one id per field, ascending (all rows share a sorted
    dictionary), or a matrix (rows, fields). A mask of `present` is None where the field is in every row of `inside`.
    Values outside `present` are ignored.
    """
    masks = [inside if mask is None else mask for mask in present]
    fields = [field.within(mask) for field, mask in zip(fields, masks)]
    patterns = _patterns(rows, present, inside) if not isinstance(ids, np.ndarray) else None
    if patterns is None:
        head: Fixed | Loose = Loose(_sparse_heads(rows, np.asarray(ids), fields, masks), inside)
    else:
        known = [int(id) for id in ids]
        heads = [one for which, kept in patterns for one in _dense_heads(known, fields, kept, which, inside)]
        head = heads[0][1] if len(heads) == 1 and heads[0][0] is None else Loose(_placed(rows, heads))
    return Rope(rows, (head, *(part for field in fields for part in field.parts)))


def _patterns(
    rows: int, present: Sequence[Mask | None], inside: Mask | None
) -> list[tuple[Ints | None, list[int]]] | None:
    """The sets of present fields with the rows that have them (None: all); None if there are too many."""
    masks: dict[int, Mask] = {id(mask): mask for mask in present if mask is not None and mask is not inside}
    if not masks or not rows:
        return [(None, list(range(len(present))))]
    if len(masks) > _NULLABLE:
        return None
    code = np.zeros(rows, np.uint16)
    bit = {}
    for i, (key, mask) in enumerate(masks.items()):
        bit[key] = i
        code |= mask.astype(np.uint16) << np.uint16(i)
    found = np.flatnonzero(np.bincount(code if inside is None else code[inside]))
    if len(found) > _PATTERNS:
        return None
    patterns: list[tuple[Ints | None, list[int]]] = []
    for value in found.tolist():
        kept = [i for i, mask in enumerate(present) if id(mask) not in bit or value >> bit[id(mask)] & 1]
        there = code == value
        which = None if len(found) == 1 else np.flatnonzero(there if inside is None else there & inside)
        patterns.append((which, kept))
    return patterns


def _dense_heads(
    ids: Sequence[int], fields: Sequence[Rope], kept: Sequence[int], which: Ints | None, inside: Mask | None
) -> list[tuple[Ints | None, Fixed]]:
    """The headers of the objects in the rows `which` that have the fields `kept`: one for each width of offsets."""
    offsets: list[int | Ints] = [0]
    for i in kept:
        size = fields[i].size
        offsets.append(offsets[-1] + (size if which is None or isinstance(size, int) else size[which]))
    kept_ids, total = [ids[i] for i in kept], offsets[-1]
    mask = inside if which is None else None
    if isinstance(total, int):
        return [(which, _dense_head(kept_ids, offsets, width_of(total), mask))]
    some = total if mask is None else total[mask]
    low, high = width_of(int(some.min(initial=MAX_UNSIGNED))), width_of(int(some.max(initial=0)))
    if low >= high:
        return [(which, _dense_head(kept_ids, offsets, high, mask))]
    level = widths(total)
    heads: list[tuple[Ints | None, Fixed]] = []
    for width in range(low, high + 1):
        places = np.flatnonzero(level == width if mask is None else (level == width) & mask)
        some_offsets = [offset if isinstance(offset, int) else offset[places] for offset in offsets]
        heads.append((places if which is None else which[places], _dense_head(kept_ids, some_offsets, width, None)))
    return heads


def _placed(rows: int, heads: Sequence[tuple[Ints | None, Fixed]]) -> Ragged:
    """Headers of several shapes, each in its own rows."""
    sizes = np.zeros(rows, np.int64)
    for which, head in heads:
        sizes[which] = head.width
    starts = splits_of(sizes)
    data = np.empty(int(starts[-1]), np.uint8)
    for which, head in heads:
        if which is not None and len(which):
            scatter(data, starts[which], head.materialise(len(which)).data.view((np.void, head.width)))
    return Ragged(starts, data)


def _dense_head(ids: Sequence[int], offsets: Sequence[int | Ints], width: int, mask: Mask | None) -> Fixed:
    large, id_width = len(ids) > 255, width_of(max(ids, default=0))
    fixed = [object_header(large, id_width, width)]
    fixed += len(ids).to_bytes(4 if large else 1, "little")
    for id in ids:
        fixed += id.to_bytes(id_width, "little")
    columns: list[tuple[int, int | npt.NDArray[Any]]] = list(enumerate(fixed))
    at = len(fixed)
    for offset in offsets:
        if isinstance(offset, int):
            columns += enumerate(offset.to_bytes(width, "little"), at)
        elif width == 3:
            columns += [(at, offset.astype("<u2")), (at + 2, (offset >> 16).astype(np.uint8))]
        else:
            columns.append((at, offset.astype(f"<u{width}")))
        at += width
    return Fixed(at, tuple(columns), mask)


def _sparse_heads(rows: int, ids: npt.NDArray[Any], fields: Sequence[Rope], present: Sequence[Mask | None]) -> Ragged:
    """The headers of objects field by field: for many sets of present fields, or ids that differ by row."""
    heads: list[Ragged] = []
    count = len(fields)
    block = max(1, _CELLS // max(1, count))
    for start in range(0, rows, block):
        stop = min(rows, start + block)
        there = np.empty((stop - start, count), np.bool_)
        sizes = np.empty(there.shape, np.int64)
        for i, (field, mask) in enumerate(zip(fields, present, strict=True)):
            there[:, i] = True if mask is None else mask[start:stop]
            sizes[:, i] = field.size if isinstance(field.size, int) else field.size[start:stop]
        id = (ids[start:stop] if ids.ndim == 2 else np.broadcast_to(ids, there.shape))[there]
        heads.append(_heads(there.sum(1, dtype=np.int64), sizes[there], id.astype(np.int64)))
    return _stacked(heads)


def _stacked(heads: list[Ragged]) -> Ragged:
    if len(heads) == 1:
        return heads[0]
    if not heads:
        return Ragged(np.zeros(1, np.int64), np.empty(0, np.uint8))
    offsets = splits_of(np.concatenate([head.sizes for head in heads]))
    return Ragged(offsets, np.concatenate([head.data for head in heads]))


def _heads(counts: Ints, sizes: Ints, ids: Ints | None) -> Ragged:
    """Header, count, ids (of objects) and offsets of containers whose children have `sizes`, row by row."""
    rows = len(counts)
    if not rows:
        return Ragged(np.zeros(1, np.int64), np.empty(0, np.uint8))
    splits, ends = splits_of(counts), splits_of(sizes)
    body = ends[splits]
    total = np.diff(body)
    width: Any = uniform(widths(total))
    large = counts > 255
    id_width: Any = 0 if ids is None else uniform(widths(_row_maxima(splits, ids)))
    # The functions that make a header are arithmetic, so they accept arrays too.
    is_large: Any = large.astype(np.int64)
    header = array_header(is_large, width) if ids is None else object_header(is_large, id_width, width)
    lead = 2 + 3 * large
    starts = splits_of(lead + counts * id_width + (counts + 1) * width)
    data = np.empty(int(starts[-1]), np.uint8)
    first = starts[:-1]
    data[first] = header
    put(data, first + 1, counts, uniform(1 + 3 * large))
    place = first + lead
    if ids is not None:
        put(data, _children(place, splits, counts, id_width), ids, _each(id_width, counts))
        place += counts * id_width
    put(data, _children(place, splits, counts, width), ends[:-1] - np.repeat(body[:-1], counts), _each(width, counts))
    put(data, place + counts * width, total, width)
    return Ragged(starts, data)


def _children(place: Ints, splits: Ints, counts: Ints, width: int | Ints) -> Ints:
    """The position of each child's entry in lists that start at `place`, of `width` bytes per entry."""
    if isinstance(width, int):
        return np.repeat(place - splits[:-1] * width, counts) + np.arange(0, splits[-1] * width, width)
    return np.repeat(place - splits[:-1] * width, counts) + np.arange(splits[-1]) * np.repeat(width, counts)


def _each(width: int | Ints, counts: Ints) -> int | Ints:
    return width if isinstance(width, int) else np.repeat(width, counts)


def _row_maxima(splits: Ints, ids: Ints) -> Ints:
    found = np.zeros(len(splits) - 1, np.int64)
    filled = splits[1:] > splits[:-1]
    if len(ids):
        found[filled] = np.maximum.reduceat(ids, splits[:-1][filled])
    return found


def widths(values: Any) -> Any:
    """The bytes (1 to 4) that each of `values` needs as an unsigned number. Raises InvalidArgumentError."""
    highest = int(values.max(initial=0))
    width_of(highest)
    width = np.ones(values.shape, np.int64)
    for bits in (8, 16, 24):
        if highest >> bits:
            width += values >> bits != 0
    return width

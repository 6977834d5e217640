"""Single values of mini-blocks, without decoding the others of their chunks: codecs in which a value has a place of its
own.

`chunk` is the number of the piece that holds each value, `within` its number there.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from boathouse.bits import fastlanes
from boathouse.lance.file import messages as m
from boathouse.lance.file.decode_values import offset_width, undo_fsst
from boathouse.lance.file.plain import Bits, Bytes, Fixed, Ints, Plain, Var, Vectors
from boathouse.lance.file.segments import Broken, Segments, column


def offered(encoding: m.CompressiveEncoding | None) -> bool:
    """Whether values of this encoding, in one buffer, are found one by one."""
    if encoding is None:
        return False
    if encoding.flat is not None:
        bits = encoding.flat.bits_per_value
        return encoding.flat.data is None and (bits == 1 or bits % 8 == 0)
    if encoding.inline_bitpacking is not None:
        packing = encoding.inline_bitpacking
        return packing.uncompressed_bits_per_value in (8, 16, 32, 64) and packing.values is None
    if encoding.fsst is not None:
        return offered(encoding.fsst.values)
    if encoding.fixed_size_list is not None:
        vectors, items = encoding.fixed_size_list, encoding.fixed_size_list.values
        flat = None if items is None else items.flat
        plain = flat is not None and flat.data is None and flat.bits_per_value % 8 == 0
        return plain and not vectors.has_validity and vectors.items_per_value > 0
    return encoding.variable is not None


def decode_points(encoding: m.CompressiveEncoding, data: Segments, chunk: Ints, within: Ints) -> Plain:
    """The values at these places. Raises Broken."""
    if encoding.flat is not None:
        return _flat(encoding.flat.bits_per_value, data, chunk, within)
    if encoding.inline_bitpacking is not None:
        return _inline(encoding.inline_bitpacking.uncompressed_bits_per_value, data, chunk, within)
    if encoding.fsst is not None:
        assert encoding.fsst.values is not None
        return undo_fsst(encoding.fsst.symbol_table, decode_points(encoding.fsst.values, data, chunk, within))
    if encoding.fixed_size_list is not None:
        items = encoding.fixed_size_list.values
        assert items is not None and items.flat is not None
        size = encoding.fixed_size_list.items_per_value
        whole = _flat(items.flat.bits_per_value * size, data, chunk, within)
        assert isinstance(whole, Fixed)
        return Vectors(size, Fixed(whole.data.reshape(-1, items.flat.bits_per_value // 8)))
    assert encoding.variable is not None
    return _variable(offset_width(encoding.variable), data, chunk, within)


def _rows(data: Segments, chunk: Ints, start: Ints, size: int) -> Bytes:
    """`size` bytes of each chunk from `start` on, shape (n, size). Raises Broken for bytes beyond it."""
    if len(chunk) and int((start + size - data.sizes[chunk]).max()) > 0:
        raise Broken("a buffer of a chunk is too short for its values")
    return Segments(data.data, data.starts[chunk] + start, np.full(len(chunk), size)).rows(size)


def _flat(bits: int, data: Segments, chunk: Ints, within: Ints) -> Plain:
    if bits == 1:
        bytes_ = _rows(data, chunk, within // 8, 1).reshape(-1)
        return Bits((bytes_ >> (within % 8).astype(np.uint8) & 1).view(np.bool_))
    width = bits // 8
    return Fixed(_rows(data, chunk, within * width, width))


def _inline(bits: int, data: Segments, chunk: Ints, within: Ints) -> Fixed:
    """A width, then blocks of 1,024 values; a value is in one word or in two that follow each other in its lane."""
    size, kind = bits // 8, f"<u{bits // 8}"
    if len(within) and int(within.max()) >= fastlanes.BLOCK:
        raise Broken("a bit-packed chunk of more than 1,024 values")
    widths = column(_rows(data, chunk, np.zeros(len(chunk), np.int64), size), kind).astype(np.int64)
    if len(widths) and int(widths.max()) > bits:
        raise Broken(f"values of {bits} bits packed to {int(widths.max())}")
    row, lane = (table[within] for table in _places(bits))
    word, shift = np.divmod(row * widths, bits)
    lanes = fastlanes.BLOCK // bits
    last = np.maximum(widths - 1, 0)
    low, high = (
        column(_rows(data, chunk, _word(np.minimum(w, last), lanes, lane, size, widths), size), kind).astype(np.uint64)
        for w in (word, word + 1)
    )
    up = shift.astype(np.uint64)
    # A shift by all bits of a number is not defined: the upper word counts only where the value goes on in it.
    beyond = shift + widths > bits
    found = low >> up | np.where(beyond, high << np.where(beyond, np.uint64(bits) - up, np.uint64(0)), np.uint64(0))
    mask = np.where(widths == 64, ~np.uint64(0), (np.uint64(1) << (widths % 64).astype(np.uint64)) - np.uint64(1))
    return Fixed((found & mask).astype(kind).view(np.uint8).reshape(-1, size))


def _word(word: Ints, lanes: int, lane: Ints, size: int, widths: Ints) -> Ints:
    """Where a word is, behind the width; at the width itself where values have no bits."""
    return np.where(widths > 0, size + (word * lanes + lane) * size, 0)


@lru_cache(maxsize=4)
def _places(bits: int) -> tuple[Ints, Ints]:
    """The row and the lane of each of the 1,024 values of a block."""
    lanes = fastlanes.BLOCK // bits
    row, lane = np.empty(fastlanes.BLOCK, np.int64), np.empty(fastlanes.BLOCK, np.int64)
    for number in range(bits):
        start = fastlanes.start(number)
        row[start : start + lanes], lane[start : start + lanes] = number, np.arange(lanes)
    return row, lane


def _variable(width: int, data: Segments, chunk: Ints, within: Ints) -> Var:
    ends = _rows(data, chunk, within * width, 2 * width)
    offsets = np.ascontiguousarray(ends).view(f"<u{width}").astype(np.int64).reshape(-1, 2)
    lengths = offsets[:, 1] - offsets[:, 0]
    if len(lengths) and (int(lengths.min()) < 0 or int(offsets.min()) < 0):
        raise Broken("string offsets that decrease")
    sizes = data.sizes[chunk]
    if len(lengths) and int((offsets[:, 1] - sizes).max()) > 0:
        raise Broken("a buffer of a chunk is too short for its values")
    bodies = Segments(data.data, data.starts[chunk] + offsets[:, 0], lengths)
    return Var(np.concatenate(([0], np.cumsum(lengths))), bodies.joined(), width)

"""Block codecs of 2.1 and 2.2: dictionaries, and the levels of chunks and constant pages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.bits import fastlanes
from boathouse.lance.file import messages as m
from boathouse.lance.file.decode_values import (
    budget,
    codec,
    decompress,
    name_of,
    offset_width,
    out_of_line_widths,
    undo_fsst,
    unpack_chunks,
    unpack_out_of_line,
)
from boathouse.lance.file.plain import Bits, Bytes, Fixed, Ints, Plain, Var, Vectors
from boathouse.lance.file.segments import Broken, NotRead, Segments, unsigned
from boathouse.lance.file.shred import Levels


def decode_levels(encoding: m.CompressiveEncoding | None, data: Segments, counts: Ints) -> Levels:
    """The u16 levels of many chunks, in order."""
    if encoding is None:
        raise Broken("levels without an encoding")
    if encoding.flat is not None and encoding.flat.bits_per_value == 16 and encoding.flat.data is None:
        return unsigned(data.part(0, counts * 2).joined(), 2)
    if encoding.out_of_line_bitpacking is not None:
        bits, width = out_of_line_widths(encoding.out_of_line_bitpacking)
        if bits == 16:
            return unpack_chunks(data, counts, bits, width)
    parts = [decode_block(encoding, np.frombuffer(view, np.uint8), n) for view, n in zip(data.views(), counts.tolist())]
    for part in parts:
        if not isinstance(part, Fixed) or part.width != 2:
            raise Broken("levels that are not 16 bits wide")
    return np.concatenate([_words(part) for part in parts]) if parts else np.empty(0, np.uint16)


def _words(plain: Plain) -> Levels:
    assert isinstance(plain, Fixed)
    return np.ascontiguousarray(plain.data).view("<u2").reshape(-1)


def decode_block(encoding: m.CompressiveEncoding | None, data: Bytes, count: int) -> Plain:
    """`count` values of one block. Raises Broken or NotRead."""
    if encoding is None:
        raise Broken("a block without an encoding")
    if encoding.flat is not None:
        return _flat(encoding.flat, data, count)
    if encoding.variable is not None:
        return _variable(encoding.variable, data, count)
    if encoding.general is not None:
        engine, prefix = codec(encoding.general.compression)
        raw = np.frombuffer(decompress(data.data, engine, prefix, budget(len(data))), np.uint8)
        return decode_block(encoding.general.values, raw, count)
    if encoding.inline_bitpacking is not None:
        return _inline(encoding.inline_bitpacking, data, count)
    if encoding.out_of_line_bitpacking is not None:
        bits, width = out_of_line_widths(encoding.out_of_line_bitpacking)
        values = unpack_out_of_line(unsigned(data, bits // 8), count, width)
        return Fixed(values.view(np.uint8).reshape(-1, bits // 8))
    if encoding.rle is not None:
        return _runs(encoding.rle, data, count)
    if encoding.fsst is not None:
        return undo_fsst(encoding.fsst.symbol_table, decode_block(encoding.fsst.values, data, count))
    if encoding.constant is not None and encoding.constant.value:
        value = np.frombuffer(encoding.constant.value, np.uint8)
        return Fixed(np.broadcast_to(value, (count, len(value))))
    if encoding.fixed_size_list is not None and not encoding.fixed_size_list.has_validity:
        size = encoding.fixed_size_list.items_per_value
        return Vectors(size, decode_block(encoding.fixed_size_list.values, data, count * size))
    raise NotRead(f"{name_of(encoding)} as a block")


def _flat(flat: m.Flat, data: Bytes, count: int) -> Plain:
    bits = flat.bits_per_value
    if bits == 1:
        if len(data) * 8 < count:
            raise Broken(f"{len(data)} bytes for {count} bits")
        return Bits(np.unpackbits(data, bitorder="little")[:count].view(np.bool_))
    if bits % 8 or not bits or flat.data is not None:
        raise NotRead(f"flat values of {bits} bits as a block")
    if len(data) < count * bits // 8:
        raise Broken(f"{len(data)} bytes for {count} values of {bits} bits")
    return Fixed(data[: count * bits // 8].reshape(count, bits // 8))


def _variable(variable: m.Variable, data: Bytes, count: int) -> Var:
    """The width of offsets, where the bytes begin, count + 1 offsets from 0, the bytes."""
    width = offset_width(variable)
    head = unsigned(data[: width * 2], width).tolist()
    if head == [width * 8, width * (count + 3)]:
        first = width * 2
    else:  # pylance 0.36: the width in one byte, then count and start
        first = 1 + width * 2
        if data[:1].tolist() != [width * 8] or unsigned(data[1:first], width).tolist() != [
            count,
            width * (count + 3) + 1,
        ]:
            raise Broken(f"a block of {count} strings with the head {head}")
    stop = first + width * (count + 1)
    if stop > len(data):
        raise Broken(f"a block of {count} strings that is truncated")
    offsets = unsigned(data[first:stop], width).astype(np.int64)
    body = data[stop:]
    if offsets[0] != 0 or (np.diff(offsets) < 0).any() or int(offsets[-1]) > len(body):
        raise Broken("string offsets that decrease or exceed their block")
    return Var(offsets, body[: int(offsets[-1])], width)


def _inline(packing: m.InlineBitpacking, data: Bytes, count: int) -> Fixed:
    """Consecutive blocks of 1,024, each preceded by its width."""
    bits = packing.uncompressed_bits_per_value
    if bits not in (8, 16, 32, 64) or packing.values is not None:
        raise NotRead(f"inline bit packing of {bits}-bit values")
    words = unsigned(data, bits // 8)
    out: list[Any] = []
    at = 0
    for _ in range(-(-count // fastlanes.BLOCK)):
        width = int(words[at]) if at < len(words) else bits + 1
        stop = at + 1 + fastlanes.words(width, bits)
        if width > bits or stop > len(words):
            raise Broken("a bit-packed block that is truncated")
        out.append(fastlanes.unpack(words[at + 1 : stop].reshape(1, -1), width).reshape(-1))
        at = stop
    values = np.concatenate(out)[:count] if out else words[:0]
    return Fixed(values.view(np.uint8).reshape(-1, bits // 8))


def _runs(rle: m.Rle, data: Bytes, count: int) -> Fixed:
    """u64 size of the run values, the values, one byte for the length of each run."""
    flat = rle.values.flat if rle.values is not None else None
    if flat is None or flat.bits_per_value % 8 or not flat.bits_per_value:
        raise NotRead("runs of values that are not plain as a block")
    width = flat.bits_per_value // 8
    size = int(unsigned(data[:8], 8)[0]) if len(data) >= 8 else -1
    if size < 0 or size > len(data) - 8 or size % width:
        raise Broken("a block of runs that is truncated")
    values = data[8 : 8 + size].reshape(-1, width)
    lengths = data[8 + size : 8 + size + len(values)].astype(np.int64)
    if len(lengths) != len(values) or int(lengths.sum()) != count:
        raise Broken(f"runs of {int(lengths.sum())} values where {count} are expected")
    return Fixed(np.repeat(values, lengths, axis=0))


def scalar_of(raw: Bytes, kind: pa.DataType) -> Plain:
    """The value of a constant page: u32 count of buffers, their sizes, the Arrow buffers of one value."""
    head = unsigned(raw[:4], 4)
    n = int(head[0]) if len(head) else 99
    if n > 8 or len(raw) < 4 + 4 * n:
        raise Broken(f"a constant of {n} buffers")
    sizes = unsigned(raw[4 : 4 + 4 * n], 4).astype(np.int64)
    starts = 4 + 4 * n + np.cumsum(sizes) - sizes
    parts = [raw[a : a + s] for a, s in zip(starts.tolist(), sizes.tolist())]
    if int(sizes.sum()) + 4 + 4 * n > len(raw):
        raise Broken("a constant that is truncated")
    if n == 2:
        large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        width = 8 if large else 4
        offsets = unsigned(parts[0], width).astype(np.int64)
        if len(offsets) != 2 or offsets[0] != 0 or int(offsets[1]) > len(parts[1]):
            raise Broken("a constant string with invalid offsets")
        return Var(offsets, parts[1][: int(offsets[1])], width)
    if n == 1:
        return Fixed(parts[0].reshape(1, -1))
    raise NotRead(f"a constant of {n} buffers")

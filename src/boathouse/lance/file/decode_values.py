"""Mini-block value codecs of 2.1 and 2.2, decoded for many chunks at once.

Each decoder takes an encoding, the buffers (one piece per chunk in each) and the number of values per chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits import fastlanes
from boathouse.bits.fsst import Table
from boathouse.bits.inflate import Budget
from boathouse.lance.file import messages as m
from boathouse.lance.file.plain import Bits, Bytes, Fixed, Ints, Plain, Var, Vectors
from boathouse.lance.file.segments import Broken, NotRead, Segments, column, unsigned

_FSST_MAGIC = b"TSSF"
_FSST_TABLE_BYTES = 2312
_INFLATED = 1 << 30  # the size to which blocks read together may inflate, however small they are


def decode_chunks(encoding: m.CompressiveEncoding | None, buffers: Sequence[Segments], counts: Ints) -> Plain:
    """The values of all chunks, in order. Raises Broken or NotRead."""
    left = list(buffers)
    values = _decode(encoding, left, counts)
    if left:
        raise Broken(f"{len(left)} value buffers more than the encoding has")
    return values


def _next(buffers: list[Segments]) -> Segments:
    if not buffers:
        raise Broken("fewer value buffers than the encoding has")
    return buffers.pop(0)


def _decode(encoding: m.CompressiveEncoding | None, buffers: list[Segments], counts: Ints) -> Plain:
    if encoding is None:
        raise Broken("a page without a value encoding")
    if encoding.flat is not None:
        return _flat(encoding.flat, _next(buffers), counts)
    if encoding.inline_bitpacking is not None:
        return _inline(encoding.inline_bitpacking, _next(buffers), counts)
    if encoding.variable is not None:
        return _variable(encoding.variable, _next(buffers), counts)
    if encoding.fsst is not None:
        coded = _decode(encoding.fsst.values, buffers, counts)
        return undo_fsst(encoding.fsst.symbol_table, coded)
    if encoding.rle is not None:
        return _runs(encoding.rle, buffers, counts)
    if encoding.general is not None:
        buffers.insert(0, _decompress(encoding.general, _next(buffers)))
        return _decode(encoding.general.values, buffers, counts)
    if encoding.byte_stream_split is not None:
        return _unsplit(encoding.byte_stream_split, _next(buffers), counts)
    if encoding.fixed_size_list is not None:
        return _vectors(encoding.fixed_size_list, buffers, counts)
    if encoding.packed_struct is not None:
        return _decode(encoding.packed_struct.values, buffers, counts)
    if encoding.out_of_line_bitpacking is not None:
        return _out_of_line(encoding.out_of_line_bitpacking, _next(buffers), counts)
    raise NotRead(name_of(encoding))


def name_of(encoding: m.CompressiveEncoding) -> str:
    """The codec's name, or the number of the unknown field."""
    for name, value in encoding.__dict__.items():
        if value is not None and name != "unknown":
            return name
    return f"an unknown codec (field {encoding.unknown[0] >> 3 if encoding.unknown else 0})"


def _flat(flat: m.Flat, data: Segments, counts: Ints) -> Plain:
    if flat.data is not None:
        data = _decompress(m.General(compression=flat.data), data)
    bits = flat.bits_per_value
    if bits == 1:
        return _bits(data, counts)
    if bits % 8:
        raise NotRead(f"flat values of {bits} bits")
    width = bits // 8
    return Fixed(data.part(0, counts * width).joined().reshape(int(counts.sum()), width))


def _bits(data: Segments, counts: Ints) -> Bits:
    raw = data.part(0, (counts + 7) // 8)
    total = int(counts.sum())
    if not (counts[:-1] % 8).any():
        return Bits(np.unpackbits(raw.joined(), bitorder="little")[:total].view(np.bool_))
    parts = [
        np.unpackbits(np.frombuffer(view, np.uint8), bitorder="little")[:n]
        for view, n in zip(raw.views(), counts.tolist())
    ]
    return Bits(np.concatenate(parts).view(np.bool_))


def _inline(packing: m.InlineBitpacking, data: Segments, counts: Ints) -> Fixed:
    bits = packing.uncompressed_bits_per_value
    if bits not in (8, 16, 32, 64) or packing.values is not None:
        raise NotRead(f"inline bit packing of {bits}-bit values")
    size, kind = bits // 8, f"<u{bits // 8}"
    if not len(counts):
        return Fixed(np.empty((0, size), np.uint8))
    if int(counts.max()) > fastlanes.BLOCK:
        raise Broken("a bit-packed chunk of more than 1,024 values")
    widths = column(data.rows(size), kind).astype(np.int64)
    if int(widths.max()) > bits:
        raise Broken(f"values of {bits} bits packed to {int(widths.max())}")
    out = np.empty((len(counts), fastlanes.BLOCK), kind)
    for width in np.unique(widths).tolist():
        at = np.flatnonzero(widths == width)
        length = fastlanes.words(width, bits) * size
        group = Segments(data.data, data.starts[at], data.sizes[at])
        packed = group.part(size, np.full(len(at), length)).rows(length)
        values = fastlanes.unpack(np.ascontiguousarray(packed).view(kind), width)
        if len(at) == len(out):
            out = values
        else:
            out[at] = values
    return Fixed(_heads(out, counts).view(np.uint8).reshape(-1, size))


def _heads(rows: npt.NDArray[Any], counts: Ints) -> npt.NDArray[Any]:
    """The first counts[i] items of row i, concatenated."""
    width = rows.shape[1]
    if (counts[:-1] == width).all():
        return rows.reshape(-1)[: int(counts.sum())]
    return np.ascontiguousarray(rows[np.arange(width) < counts[:, None]])


def unpack_out_of_line(packed: npt.NDArray[Any], count: int, width: int) -> npt.NDArray[Any]:
    """Whole blocks of 1,024, then a tail that is raw if its length matches, else a padded block."""
    bits = packed.dtype.itemsize * 8
    if not 0 <= width <= bits:
        raise Broken(f"values of {bits} bits packed to {width}")
    step = fastlanes.words(width, bits)
    whole, tail = divmod(count, fastlanes.BLOCK)
    end = whole * step
    raw_tail = tail > 0 and len(packed) == end + tail
    if len(packed) < end + (tail if raw_tail else step if tail else 0):
        raise Broken(f"{len(packed)} words for {count} values of {width} bits")
    out = fastlanes.unpack(packed[:end].reshape(whole, step), width).reshape(-1)
    if not tail:
        return out
    last = packed[end : end + tail]
    if not raw_tail:
        last = fastlanes.unpack(packed[end : end + step].reshape(1, step), width).reshape(-1)[:tail]
    return np.concatenate((out, last))


def out_of_line_widths(packing: m.OutOfLineBitpacking) -> tuple[int, int]:
    """(bits of a value, bits that it is packed to)."""
    flat = packing.values.flat if packing.values is not None else None
    bits = packing.uncompressed_bits_per_value
    if flat is None or flat.data is not None or bits not in (8, 16, 32, 64):
        raise NotRead(f"out-of-line bit packing of {bits}-bit values")
    return bits, flat.bits_per_value


def _out_of_line(packing: m.OutOfLineBitpacking, data: Segments, counts: Ints) -> Fixed:
    bits, width = out_of_line_widths(packing)
    values = unpack_chunks(data, counts, bits, width)
    return Fixed(values.view(np.uint8).reshape(-1, bits // 8))


def unpack_chunks(data: Segments, counts: Ints, bits: int, width: int) -> npt.NDArray[Any]:
    """Chunks that are bit-packed out of line; those of one shape are unpacked together."""
    size, kind = bits // 8, f"<u{bits // 8}"
    out: list[Any] = [None] * len(counts)
    shapes: dict[tuple[int, int], list[int]] = {}
    for i, shape in enumerate(zip(counts.tolist(), data.sizes.tolist())):
        shapes.setdefault(shape, []).append(i)
    for (count, length), at in shapes.items():
        if length % size:
            raise Broken(f"{length} bytes of {size}-byte words")
        whole = count // fastlanes.BLOCK
        if count == whole * fastlanes.BLOCK and whole == 1 and len(at) > 1:
            step = fastlanes.words(width, bits) * size
            group = Segments(data.data, data.starts[at], data.sizes[at]).rows(step)
            block = fastlanes.unpack(np.ascontiguousarray(group).view(kind), width)
            if len(at) == len(out):
                return block.reshape(-1)
            for i, row in zip(at, block):
                out[i] = row
            continue
        for i in at:
            start = int(data.starts[i])
            out[i] = unpack_out_of_line(unsigned(data.data[start : start + length], size), count, width)
    return np.concatenate(out) if out else np.empty(0, kind)


def _variable(variable: m.Variable, data: Segments, counts: Ints) -> Var:
    width = offset_width(variable)
    heads = data.part(0, (counts + 1) * width)
    offsets = unsigned(heads.joined(), width).astype(np.int64)
    first = np.cumsum(counts + 1) - (counts + 1)
    starts, stops = offsets[first], offsets[first + counts]
    lengths = np.delete(np.diff(offsets), (first + counts)[:-1]) if len(counts) else offsets[:0]
    if len(lengths) and int(lengths.min()) < 0:
        raise Broken("string offsets that decrease")
    bodies = data.part(starts, stops - starts)
    ends = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    return Var(ends, bodies.joined(), width)


def offset_width(variable: m.Variable) -> int:
    """Bytes of an offset: 4 or 8."""
    flat = variable.offsets.flat if variable.offsets is not None else None
    if flat is None or flat.bits_per_value not in (32, 64) or variable.values is not None:
        raise NotRead("variable values with offsets that are not plain")
    return flat.bits_per_value // 8


@lru_cache(maxsize=64)
def _table(raw: bytes) -> Table | None:
    """None if the values are stored plain."""
    if len(raw) < 8 or raw[4:8] != _FSST_MAGIC:
        raise Broken("an FSST table without its magic number")
    if raw[3] == 0:
        return None
    n = raw[0]
    if len(raw) < 8 + 9 * n or len(raw) > _FSST_TABLE_BYTES:
        raise Broken(f"an FSST table of {n} symbols in {len(raw)} bytes")
    flat = np.frombuffer(raw, np.uint8)
    try:
        return Table(flat[8 : 8 + 8 * n].reshape(n, 8), flat[8 + 8 * n : 8 + 9 * n])
    except ValueError as error:
        raise Broken(f"FSST: {error}") from error


def undo_fsst(raw_table: bytes, coded: Plain) -> Plain:
    """Values decoded from their FSST codes."""
    table = _table(raw_table)
    if table is None:
        return coded
    if not isinstance(coded, Var):
        raise Broken("FSST over values that are not strings")
    try:
        offsets, data = table.decode(coded.data, coded.offsets)
    except ValueError as error:
        raise Broken(f"FSST: {error}") from error
    return Var(offsets, data, coded.offset_bytes)


def _runs(rle: m.Rle, buffers: list[Segments], counts: Ints) -> Plain:
    """Run values, then run lengths of one byte; a chunk has as many runs as lengths.

    pylance 2.0 to 8.0 count the last run of a chunk to the run's end, although the next chunk begins within it.
    """
    values, lengths = _next(buffers), _next(buffers)
    runs = lengths.sizes
    repeats = lengths.joined().astype(np.int64)
    ends = np.cumsum(runs)
    got = np.add.reduceat(repeats, (ends - runs)[runs > 0]) if len(repeats) else repeats
    over = got - counts[runs > 0]
    last = ends[runs > 0] - 1
    if (over < 0).any() or ((over > 0) & (over >= repeats[last])).any() or counts[runs == 0].any():
        raise Broken("runs that do not add up to the values of their chunk")
    repeats[last] -= over
    decoded = _decode(rle.values, [values], runs)
    if not isinstance(decoded, Fixed):
        raise NotRead("runs of values without fixed width")
    return Fixed(np.repeat(decoded.data, repeats, axis=0) if decoded.width > 8 else _repeat(decoded, repeats))


def _repeat(values: Fixed, repeats: Ints) -> Bytes:
    if values.width in (1, 2, 4, 8):
        words = np.ascontiguousarray(values.data).view(f"<u{values.width}").reshape(-1)
        return np.repeat(words, repeats).view(np.uint8).reshape(-1, values.width)
    return np.repeat(values.data, repeats, axis=0)


def codec(compression: m.BufferCompression | None) -> tuple[pa.Codec, int]:
    """The decompressor and the bytes of the length before each block."""
    scheme = compression.scheme if compression is not None else 0
    if scheme == 1:
        return pa.Codec("lz4_raw"), 4
    if scheme == 2:
        return pa.Codec("zstd"), 8
    raise NotRead(f"compression scheme {scheme}")


def budget(packed: int) -> Budget:
    """The size to which blocks of `packed` bytes together may inflate."""
    return Budget(packed, None, _INFLATED)


def decompress(raw: Any, engine: pa.Codec, prefix: int, left: Budget) -> pa.Buffer:
    """One block, preceded by its length."""
    size = int.from_bytes(bytes(raw[:prefix]), "little")
    if len(raw) < prefix:
        raise Broken(f"a compressed block of {len(raw)} bytes")
    left.take(size)
    if size == 0:
        return pa.py_buffer(b"")
    try:
        return engine.decompress(pa.py_buffer(raw[prefix:]), size)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise Broken(f"a compressed block: {error}") from error


def _decompress(general: m.General, data: Segments) -> Segments:
    engine, prefix = codec(general.compression)
    left = budget(len(data.data))
    blocks = [decompress(view, engine, prefix, left) for view in data.views()]
    sizes = np.fromiter((block.size for block in blocks), np.int64, len(blocks))
    joined = np.frombuffer(b"".join(blocks), np.uint8)
    return Segments(joined, np.cumsum(sizes) - sizes, sizes)


def _unsplit(split: m.ByteStreamSplit, data: Segments, counts: Ints) -> Fixed:
    flat = split.values.flat if split.values is not None else None
    if flat is None or flat.bits_per_value not in (16, 32, 64):
        raise NotRead("a byte stream split of values that are not plain")
    width = flat.bits_per_value // 8
    data.part(0, counts * width)
    parts = [
        np.frombuffer(view[: n * width], np.uint8).reshape(width, n).T for view, n in zip(data.views(), counts.tolist())
    ]
    return Fixed(np.concatenate(parts) if parts else np.empty((0, width), np.uint8))


def _vectors(encoding: m.FixedSizeList, buffers: list[Segments], counts: Ints) -> Vectors:
    size = encoding.items_per_value
    if size < 1 or size > 1 << 31:
        raise Broken(f"a fixed-size list of {size} items")
    inner = counts * size
    valid = _bits(_next(buffers), inner).data if encoding.has_validity else None
    return Vectors(size, _decode(encoding.values, buffers, inner), valid)


def each_layer(encoding: m.CompressiveEncoding) -> Iterator[m.CompressiveEncoding]:
    """The encoding and those of its fixed-size lists, from the outermost."""
    yield encoding
    if encoding.fixed_size_list is not None and encoding.fixed_size_list.values is not None:
        yield from each_layer(encoding.fixed_size_list.values)

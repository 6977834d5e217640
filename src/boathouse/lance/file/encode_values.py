"""Encodes values with the codecs that are written: flat, bits, inline bit packing, variable, dictionary.

A codec splits the values into mini-block chunks of a power of two values (the last one: the rest) and returns for each
of its buffers the bytes of each chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from boathouse.bits import fastlanes
from boathouse.lance.file import messages as m
from boathouse.lance.file.plain import Bits, Bytes, Fixed, Nulls, Plain, Var, Vectors

CHUNK_BYTES = 8192
STRING_CHUNK_BYTES = 4096
MAX_LOG_VALUES = 12
Buffers = Sequence[memoryview | bytes]


@dataclass(frozen=True)
class Chunked:
    """`buffers[b][c]` are the bytes of buffer b of chunk c, each chunk of 2**log_values values."""

    log_values: int
    buffers: list[Buffers]
    encoding: m.CompressiveEncoding


def flat_encoding(bits: int) -> m.CompressiveEncoding:
    return m.CompressiveEncoding(flat=m.Flat(bits_per_value=bits))


def variable_encoding(offset_bits: int = 32) -> m.CompressiveEncoding:
    return m.CompressiveEncoding(variable=m.Variable(offsets=flat_encoding(offset_bits)))


def log_values_for(value_bytes: float, chunk_bytes: int) -> int:
    """The greatest k from 1 to 12 such that 2**k values of this mean size fit into a chunk."""
    fitting = int(chunk_bytes / max(value_bytes, 1 / 8))
    return min(max(fitting.bit_length() - 1, 1), MAX_LOG_VALUES)


def pieces(data: npt.NDArray[Any], step: int) -> list[memoryview]:
    """The bytes of an array, split every `step` bytes."""
    flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
    return [flat[i : i + step] for i in range(0, len(flat), step)]


def chunk_values(values: Plain, *, integers: bool, most: int = MAX_LOG_VALUES, chunk: int | None = None) -> Chunked:
    """Splits and encodes, at most 2**most values and about `chunk` bytes per chunk; integers are bit-packed if that
    saves at least 10 %."""
    if isinstance(values, Var):
        return _chunk_var(values, most, chunk or STRING_CHUNK_BYTES)
    if isinstance(values, Bits):
        packed = np.packbits(values.data, bitorder="little")
        log = max(most, 3)
        return Chunked(log, [pieces(packed, 1 << (log - 3))], flat_encoding(1))
    if isinstance(values, Vectors):
        return _chunk_vectors(values, most)
    assert isinstance(values, Fixed)  # Nulls are zipped
    if integers and most >= 10 and values.width in (1, 2, 4, 8):
        packed_chunks = _bitpack(values.data.reshape(-1).view(f"u{values.width}"))
        if packed_chunks is not None:
            return packed_chunks
    log = min(log_values_for(values.width, chunk or CHUNK_BYTES), most)
    return Chunked(log, [pieces(values.data, values.width << log)], flat_encoding(values.width * 8))


def vector_encoding(values: Plain) -> m.CompressiveEncoding:
    """fixed_size_list down to the flat items."""
    if isinstance(values, Vectors):
        inner = vector_encoding(values.items)
        made = m.FixedSizeList(items_per_value=values.dimension, values=inner, has_validity=values.valid is not None)
        return m.CompressiveEncoding(fixed_size_list=made)
    if isinstance(values, Nulls):
        return m.CompressiveEncoding(constant=m.Constant())
    return flat_encoding(values.width * 8 if isinstance(values, Fixed) else 1)


def _chunk_vectors(values: Vectors, most: int) -> Chunked:
    """Contiguous items, preceded by one bitmap buffer for each level that has nulls."""
    flat, per_row, masks = flatten_vectors(values)
    log = min(log_values_for(flat.shape[1] + sum(count / 8 for count, _ in masks), CHUNK_BYTES), most)
    buffers: list[Buffers] = []
    for count, valid in masks:
        step = count << log
        buffers.append([
            np.packbits(valid[i : i + step], bitorder="little").tobytes() for i in range(0, len(valid), step)
        ])  # fmt: skip
    if per_row.dtype == np.bool_:
        step = per_row.shape[1] << log
        bits = per_row.reshape(-1)
        buffers.append([
            np.packbits(bits[i : i + step], bitorder="little").tobytes() for i in range(0, len(bits), step)
        ])  # fmt: skip
    else:
        buffers.append(pieces(flat, flat.shape[1] << log))
    return Chunked(log, buffers, vector_encoding(values))


def flatten_vectors(values: Vectors) -> tuple[Bytes, npt.NDArray[Any], list[tuple[int, npt.NDArray[np.bool_]]]]:
    """(bytes per row, the same as bits if boolean, masks from the outermost with their items per row)."""
    masks = []
    rows, per_row = len(values), 1
    level: Plain = values
    while isinstance(level, Vectors):
        per_row *= level.dimension
        if level.valid is not None:
            masks.append((per_row, level.valid))
        level = level.items
    if isinstance(level, Bits):
        bits = level.data.reshape(rows, per_row)
        return np.empty((rows, max(per_row // 8, 1)), np.uint8), bits, masks
    if isinstance(level, Nulls):
        level = Fixed(np.empty((len(level), 0), np.uint8))
    assert isinstance(level, Fixed)
    data = level.data.reshape(rows, per_row * level.width)
    return data, data, masks


def bitpacked_bytes(values: npt.NDArray[Any]) -> int | None:
    """The bytes that unsigned words take bit-packed; None if that saves nothing."""
    found = _widths(values)
    return None if found is None else _packed_bytes(found[1], values.dtype.itemsize)


def _packed_bytes(widths: npt.NDArray[Any], size: int) -> int:
    return int(widths.sum()) * 128 + len(widths) * size


def _widths(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]] | None:
    """The widths of whole blocks, those of all, and the last one, filled up; None if packing saves nothing."""
    n, size = len(values), values.dtype.itemsize
    if n < 256:
        return None
    head = fastlanes.widths(values[: n - n % fastlanes.BLOCK].reshape(-1, fastlanes.BLOCK))
    tail = values[n - n % fastlanes.BLOCK :]
    widths = head
    last = np.zeros((1, fastlanes.BLOCK), values.dtype)
    if len(tail):
        last[0, : len(tail)] = tail
        widths = np.concatenate((head, fastlanes.widths(last)))
    return None if _packed_bytes(widths, size) > 0.9 * n * size else (head, widths, last)


def _bitpack(values: npt.NDArray[Any]) -> Chunked | None:
    """Blocks of 1,024: a word with the width, then the packed words; None if that saves nothing."""
    found = _widths(values)
    if found is None:
        return None
    head, widths, last = found
    size, blocks = values.dtype.itemsize, len(widths)
    lanes = fastlanes.BLOCK // (size * 8)
    chunks: list[Any] = [None] * blocks
    for width in np.unique(widths).tolist():
        at = np.flatnonzero(widths == width)
        full = at[at < len(head)]
        source = values[: len(head) * fastlanes.BLOCK].reshape(-1, fastlanes.BLOCK)[full]
        if len(full) < len(at):
            source = np.concatenate((source, last))
        block = np.empty((len(at), 1 + width * lanes), values.dtype)
        block[:, 0] = width
        block[:, 1:] = fastlanes.pack(source, width)
        for i, part in zip(at.tolist(), pieces(block, block.shape[1] * size)):
            chunks[i] = part
    encoding = m.CompressiveEncoding(inline_bitpacking=m.InlineBitpacking(uncompressed_bits_per_value=size * 8))
    return Chunked(10, [chunks], encoding)


def _chunk_var(values: Var, most: int, chunk: int) -> Chunked:
    """Offsets from the start of the buffer, then the bytes, padded to the width of an offset."""
    n, width = len(values), values.offset_bytes
    log = min(log_values_for(width + len(values.data) / max(n, 1), chunk), most)
    step = 1 << log
    data = np.ascontiguousarray(values.data).data
    starts = values.offsets[:-1:step] if n else np.zeros(1, np.int64)
    counts = np.minimum(step, n - np.arange(len(starts)) * step)
    # chunk c has counts[c] + 1 offsets: its own values' starts, then its end
    rows = np.repeat(np.arange(len(starts)), counts + 1)
    index = np.arange(len(rows)) - rows
    rebased = (values.offsets[index] - starts[rows] + width * (counts[rows] + 1)).astype(f"<u{width}")
    heads = rebased.view(np.uint8).data
    chunks = []
    head_at = 0
    for first, count in zip(range(0, max(n, 1), step), counts.tolist()):
        size = width * (count + 1)
        body = data[values.offsets[first] : values.offsets[first + count]]
        chunks.append(b"".join((heads[head_at : head_at + size], body, b"\0" * (-len(body) % width))))
        head_at += size
    return Chunked(log, [chunks], variable_encoding(width * 8))


def block_values(values: Plain) -> tuple[bytes, m.CompressiveEncoding]:
    """Values as one block, as dictionaries are stored."""
    if isinstance(values, Var):
        width = values.offset_bytes
        head = np.array([width * 8, width * (2 + len(values.offsets))], f"<u{width}").tobytes()
        offsets = values.offsets.astype(f"<u{width}").tobytes()
        return head + offsets + values.data.tobytes(), variable_encoding(width * 8)
    assert isinstance(values, Fixed)
    return values.data.tobytes(), flat_encoding(values.width * 8)


def chunk_levels(levels: npt.NDArray[np.uint16], bounds: list[int]) -> tuple[Buffers, m.CompressiveEncoding]:
    """Levels split at `bounds`, each piece bit-packed out of line: whole blocks, then the shorter kind of tail."""
    width = int(levels.max(initial=0)).bit_length() or 1
    out: list[bytes] = []
    sizes = [b - a for a, b in pairwise(bounds)]
    uniform = len(sizes) > 1 and len(set(sizes[:-1])) == 1
    for a, b in pairwise(bounds):
        if uniform and a == 0:
            out.extend(_pack_uniform(levels[: bounds[-2]], sizes[0], width))
        if not uniform or b == bounds[-1]:
            out.extend(_pack_uniform(levels[a:b], b - a, width))
    packing = m.OutOfLineBitpacking(uncompressed_bits_per_value=16, values=flat_encoding(width))
    return out, m.CompressiveEncoding(out_of_line_bitpacking=packing)


def _pack_uniform(levels: npt.NDArray[np.uint16], size: int, width: int) -> list[bytes]:
    if not size:
        return [b""]
    rows = levels.reshape(-1, size)
    whole = size - size % fastlanes.BLOCK
    blocks = rows[:, :whole].reshape(-1, fastlanes.BLOCK)
    packed = fastlanes.pack(np.ascontiguousarray(blocks), width).reshape(
        len(rows), whole // fastlanes.BLOCK * fastlanes.words(width, 16)
    )
    tail = rows[:, whole:]
    # A reader treats a tail whose length equals its count of values as raw: pack only what gets shorter.
    if tail.shape[1] > fastlanes.words(width, 16):
        padded = np.zeros((len(rows), fastlanes.BLOCK), np.uint16)
        padded[:, : tail.shape[1]] = tail
        tail = fastlanes.pack(padded, width)
    return [row.tobytes() for row in np.concatenate((packed, tail), axis=1)]

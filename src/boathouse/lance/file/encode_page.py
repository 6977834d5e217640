"""Encodes a leaf as a page of 2.2: constant, mini-block or full-zip layout.

Every number is little-endian. Buffers of a mini-block page: chunk words, chunks, the dictionary if there
is one, the repetition index if there are lists. Of a full-zip page: the zipped rows, then the row starts
if rows differ in size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.file import messages as m
from boathouse.lance.file.encode_values import (
    MAX_LOG_VALUES,
    Chunked,
    block_values,
    chunk_levels,
    chunk_values,
    flat_encoding,
    flatten_vectors,
    variable_encoding,
    vector_encoding,
)
from boathouse.lance.file.plain import Bits, Fixed, Nulls, Plain, Var, Vectors, compact, plain_of
from boathouse.lance.file.shred import Leaf, Levels

FULL_ZIP_BYTES = 256
MAX_INLINE_CONSTANT = 32
_DICTIONARY_SAMPLE = 1024


class TooLarge(Exception):
    """A mini-block chunk would have more levels or bytes than its header can express: the page must be split at a
    row."""


@dataclass(frozen=True)
class EncodedPage:
    """`length` in rows (of a fixed-size list of structs: times its size)."""

    buffers: list[bytes]
    layout: m.PageLayout | m.ArrayEncoding
    length: int


def encode_leaf(leaf: Leaf, version: str = "2.2") -> EncodedPage:
    """The page of 2.1 or 2.2 that holds a leaf. Raises TooLarge if it must be split into fewer rows."""
    length = leaf.entries if leaf.rep is None else leaf.rows
    kind = leaf.values.type
    if pa.types.is_struct(kind):
        return _empty_struct(leaf, length)
    if pa.types.is_null(kind) or leaf.values.null_count == len(leaf.values):
        return absent_page(leaf, length)
    if pa.types.is_dictionary(kind):
        return _mini_block(_dictionary_column(leaf), length, version)
    plain = plain_of(leaf.values)
    valid = None
    if leaf.values.null_count:
        valid = np.asarray(leaf.values.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        if isinstance(plain, Var):
            plain = compact(plain, valid)
    constant = _constant(leaf, plain, valid, length) if version != "2.1" else None
    if constant is not None:
        return constant
    # pylance fails on mini-blocks of lists of nulls, and zips them.
    if _mean_bytes(plain) >= FULL_ZIP_BYTES or isinstance(_bottom(plain), Nulls):
        return full_zip_page(leaf, plain, length)
    parts = _low_cardinality(leaf, plain) or _Parts(leaf, plain, integers=_packs(kind))
    return _mini_block(parts, length, version)


def _packs(kind: pa.DataType) -> bool:
    return not pa.types.is_floating(kind) and not pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind)


def _mean_bytes(plain: Plain) -> float:
    if isinstance(plain, Var):
        return len(plain.data) / max(len(plain), 1)
    if isinstance(plain, Vectors):
        bits = isinstance(_bottom(plain), Bits)
        return 1.0 if bits else float(flatten_vectors(plain)[0].shape[1])
    return plain.width if isinstance(plain, Fixed) else 1 / 8


def _bottom(plain: Plain) -> Plain:
    return _bottom(plain.items) if isinstance(plain, Vectors) else plain


# --- constant --------------------------------------------------------------------------------------


def _empty_struct(leaf: Leaf, length: int) -> EncodedPage:
    """A struct without fields: readers treat a page without buffers as valid."""
    if leaf.values.null_count or leaf.rep is not None:
        raise UnsupportedFeatureError(f"writing nulls or lists of the struct without fields `{leaf.node.name}`")
    return EncodedPage([], m.PageLayout(constant=m.ConstantLayout(layers=(m.NULLABLE_ITEM,))), length)


def absent_page(leaf: Leaf, length: int) -> EncodedPage:
    """No values: only the levels define what is null and what is empty."""
    if leaf.layers == (m.NULLABLE_ITEM,):
        return EncodedPage([], m.PageLayout(constant=m.ConstantLayout(layers=leaf.layers)), length)
    layout = m.ConstantLayout(layers=leaf.layers)
    return EncodedPage([_raw(leaf.rep), _raw(leaf.defs)], m.PageLayout(constant=layout), length)


def _raw(levels: Levels | None) -> bytes:
    return b"" if levels is None else levels.astype("<u2").tobytes()


def _constant(leaf: Leaf, plain: Plain, valid: npt.NDArray[np.bool_] | None, length: int) -> EncodedPage | None:
    if isinstance(plain, Vectors | Bits | Nulls) or len(plain) < 2:
        return None
    data = plain.data
    if isinstance(plain, Var):
        lengths = np.diff(plain.offsets)
        first = int(lengths[0] if valid is None else lengths[valid][0])
        if (lengths != (first if valid is None else np.where(valid, first, 0))).any():
            return None
        data = plain.data.reshape(-1, first) if first else np.empty((1, 0), np.uint8)
    elif valid is not None:
        data = plain.data[valid]
    if len(data) > 1 and ((data[0] != data[-1]).any() or (data != data[0]).any()):
        return None
    value = data[0].tobytes()
    levels = [_raw(leaf.rep), _raw(leaf.defs)] if leaf.rep is not None or leaf.defs is not None else []
    if isinstance(plain, Var):
        large = pa.types.is_large_string(leaf.values.type) or pa.types.is_large_binary(leaf.values.type)
        offsets = np.array([0, len(value)], np.int64 if large else np.int32).tobytes()
        scalar = np.array([2, len(offsets), len(value)], np.uint32).tobytes() + offsets + value
        return EncodedPage([scalar, *levels], m.PageLayout(constant=m.ConstantLayout(layers=leaf.layers)), length)
    if len(value) > MAX_INLINE_CONSTANT:
        return None
    layout = m.ConstantLayout(layers=leaf.layers, inline_value=value)
    return EncodedPage(levels, m.PageLayout(constant=layout), length)


# --- mini-block ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Parts:
    """The parts of a mini-block page: the values (or keys), and the dictionary that they point to."""

    leaf: Leaf
    values: Plain
    integers: bool
    dictionary: Plain | None = None


def _dictionary_column(leaf: Leaf) -> _Parts:
    array = leaf.values
    if array.dictionary.null_count:
        plain_array = pc.cast(array, array.type.value_type).dictionary_encode()
        return _dictionary_column(replace(leaf, values=plain_array.cast(array.type)))
    keys = array.indices
    keys = keys.fill_null(0) if keys.null_count else keys
    return _Parts(leaf, plain_of(keys), integers=True, dictionary=plain_of(array.dictionary))


def _low_cardinality(leaf: Leaf, plain: Plain) -> _Parts | None:
    """Keys and a dictionary, if a sample and then the page have few distinct strings."""
    if not isinstance(plain, Var) or len(plain) < _DICTIONARY_SAMPLE:
        return None
    step = len(plain) // _DICTIONARY_SAMPLE
    sample = leaf.values.take(pa.array(np.arange(_DICTIONARY_SAMPLE) * step))
    if len(sample.unique()) > _DICTIONARY_SAMPLE // 4:
        return None
    coded = leaf.values.dictionary_encode()
    words, keys = coded.dictionary, coded.indices
    if len(words) > len(plain) // 4 or not len(words):
        return None
    keys = keys.fill_null(0) if keys.null_count else keys
    return _Parts(leaf, plain_of(keys), integers=True, dictionary=plain_of(words))


def mini_block_page(leaf: Leaf, values: Plain, length: int, version: str) -> EncodedPage:
    """Values in chunks, as they are."""
    return _mini_block(_Parts(leaf, values, integers=False), length, version)


def _mini_block(parts: _Parts, length: int, version: str) -> EncodedPage:
    """With as many values per chunk as fit, fewer if their levels or bytes are too many for its header."""
    for most in (MAX_LOG_VALUES, 8, 4):
        try:
            return _mini_block_of(parts, length, version, most)
        except TooLarge:
            continue
    return _mini_block_of(parts, length, version, 1)


def _mini_block_of(parts: _Parts, length: int, version: str, most: int) -> EncodedPage:
    leaf = parts.leaf
    chunked = chunk_values(parts.values, integers=parts.integers, most=most)
    count = len(parts.values)
    chunks = max(-(-count >> chunked.log_values), 1)
    bounds = _level_bounds(leaf, chunked.log_values, chunks)
    layout = m.MiniBlockLayout(
        value_compression=chunked.encoding,
        layers=leaf.layers,
        num_buffers=len(chunked.buffers),
        num_items=count,
        has_large_chunk=version != "2.1",
    )
    levels = []
    if leaf.rep is not None:
        pieces, encoding = chunk_levels(leaf.rep, bounds)
        levels.append(pieces)
        layout = replace(layout, rep_compression=encoding, repetition_index_depth=1)
    if leaf.defs is not None:
        pieces, encoding = chunk_levels(leaf.defs, bounds)
        levels.append(pieces)
        layout = replace(layout, def_compression=encoding)
    buffers = _assemble(chunked, levels, bounds, 2 if version == "2.1" else 4)
    if parts.dictionary is not None:
        block, encoding = block_values(parts.dictionary)
        buffers.append(block)
        layout = replace(layout, dictionary=encoding, num_dictionary_items=len(parts.dictionary))
    if leaf.rep is not None:
        buffers.append(_repetition_index(leaf.rep, bounds))
    return EncodedPage(buffers, m.PageLayout(mini_block=layout), length)


def _level_bounds(leaf: Leaf, log_values: int, chunks: int) -> list[int]:
    """The start of each chunk's levels: at its first value, so that absent lists follow the previous value."""
    starts = np.arange(chunks, dtype=np.int64) << log_values
    if leaf.visible is not None:
        at = np.flatnonzero(leaf.visible)
        starts = at[starts] if len(at) else starts
        starts[0] = 0
    bounds = [*starts.tolist(), leaf.entries]
    if (leaf.rep is not None or leaf.defs is not None) and max(b - a for a, b in pairwise(bounds)) > 0xFFFF:
        raise TooLarge
    return bounds


def _assemble(chunked: Chunked, levels: list[Any], bounds: list[int], word: int) -> list[bytes]:
    """[chunk words, chunks]: each chunk a header of sizes, then its parts, each padded to 8 bytes.

    Chunk words and sizes of values have `word` bytes, all other numbers 2.
    """
    chunks = len(bounds) - 1
    head = np.zeros((chunks, 2 + 2 * len(levels) + word * len(chunked.buffers)), np.uint8)
    columns = [np.diff(np.array(bounds)) if levels else np.zeros(chunks, np.int64)]
    columns += [np.fromiter(map(len, part), np.int64, chunks) for part in levels]
    at = 0
    for sizes in columns:
        head[:, at : at + 2] = sizes.astype("<u2").view(np.uint8).reshape(-1, 2)
        at += 2
    for part in chunked.buffers:
        sizes = np.fromiter(map(len, part), np.int64, chunks)
        columns.append(sizes)
        head[:, at : at + word] = sizes.astype(f"<u{word}").view(np.uint8).reshape(-1, word)
        at += word
    head = np.pad(head, ((0, 0), (0, -head.shape[1] % 8)))
    raw = memoryview(head.tobytes())
    width = head.shape[1]
    total = width + sum(((c + 7) // 8 * 8 for c in columns[1:]), np.zeros(chunks, np.int64))
    if int(total.max()) > 8 << (8 * word - 4):
        raise TooLarge
    log = np.full(chunks, chunked.log_values, np.int64)
    log[-1] = 0
    words = ((total // 8 - 1) << 4 | log).astype(f"<u{word}").tobytes()
    out: list[Any] = []
    for i, parts in enumerate(zip(*levels, *chunked.buffers)):
        out.append(raw[i * width : (i + 1) * width])
        for part in parts:
            out.append(part)
            pad = -len(part) % 8
            if pad:
                out.append(b"\0" * pad)
    return [words, b"".join(out)]


def _repetition_index(rep: Levels, bounds: list[int]) -> bytes:
    """u64 pairs, one per chunk: rows that end in it, items after the last of them."""
    top = int(rep.max())
    starts = np.flatnonzero(rep == top)
    stops = np.array(bounds[1:])
    # a row ends where the next one starts; the last one at the end of the page
    ends = np.append(starts[1:], len(rep))
    done = np.searchsorted(ends, stops, side="right")
    rows = np.diff(done, prepend=0)
    last_end = np.where(done > 0, ends[np.maximum(done - 1, 0)], 0)
    left = stops - np.maximum(last_end, np.array(bounds[:-1]))
    return np.stack((rows, left), axis=1).astype("<u8").tobytes()


# --- full zip --------------------------------------------------------------------------------------


def _control_words(leaf: Leaf) -> tuple[npt.NDArray[np.uint8], int, int]:
    """(n, width) bytes of rep << bits_def | def, and the two widths in bits."""
    bits_rep = int(leaf.rep.max()).bit_length() if leaf.rep is not None else 0
    bits_def = int(leaf.defs.max()).bit_length() or 1 if leaf.defs is not None else 0
    total = bits_rep + bits_def
    width = 0 if total == 0 else 1 if total <= 8 else 2 if total <= 16 else 4
    words = np.zeros(leaf.entries, np.uint32)
    if leaf.rep is not None:
        words |= leaf.rep.astype(np.uint32) << np.uint32(bits_def)
    if leaf.defs is not None:
        words |= leaf.defs
    return words.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width], bits_rep, bits_def


def full_zip_page(leaf: Leaf, plain: Plain, length: int) -> EncodedPage:
    """The entries one after the other, each with its control word."""
    control, bits_rep, bits_def = _control_words(leaf)
    visible = np.ones(leaf.entries, np.bool_) if leaf.visible is None else leaf.visible
    layout = m.FullZipLayout(
        bits_rep=bits_rep,
        bits_def=bits_def,
        num_items=leaf.entries,
        num_visible_items=len(plain),
        layers=leaf.layers,
    )
    if isinstance(plain, Var):
        zipped, sizes = _zip_variable(leaf, plain, control, visible)
        bits = plain.offset_bytes * 8
        layout = replace(layout, bits_per_offset=bits, value_compression=variable_encoding(bits))
    else:
        rows, bits = _zip_rows(plain)
        layout = replace(layout, bits_per_value=bits, value_compression=vector_encoding(plain))
        sizes = control.shape[1] + np.where(visible, rows.shape[1], 0)
        if visible.all():
            zipped = np.concatenate((control, rows), axis=1).tobytes()
        else:
            filled = np.zeros((leaf.entries, sizes.max()), np.uint8)
            filled[:, : control.shape[1]] = control
            filled[visible, control.shape[1] :] = rows
            zipped = filled[np.arange(filled.shape[1]) < sizes[:, None]].tobytes()
    buffers = [zipped]
    if isinstance(plain, Var) or leaf.rep is not None:
        starts = np.concatenate(([0], np.cumsum(sizes)))
        if leaf.rep is not None:
            starts = np.append(starts[:-1][leaf.rep == leaf.rep.max()], starts[-1])
        top = int(starts[-1])
        width = 1 if top < 1 << 8 else 2 if top < 1 << 16 else 4 if top < 1 << 32 else 8
        buffers.append(starts.astype(f"<u{width}").tobytes())
    return EncodedPage(buffers, m.PageLayout(full_zip=layout), length)


def _zip_rows(plain: Plain) -> tuple[npt.NDArray[np.uint8], int]:
    """(n, width) bytes per value, bitmaps of nullable items first, and the bits per value."""
    if isinstance(plain, Fixed):
        return plain.data, plain.width * 8
    assert isinstance(plain, Vectors)
    flat, _, masks = flatten_vectors(plain)
    maps = [np.packbits(valid.reshape(len(plain), count), axis=1, bitorder="little") for count, valid in masks]
    rows = np.concatenate((*maps, flat), axis=1) if maps else flat
    return rows, rows.shape[1] * 8


def _zip_variable(
    leaf: Leaf, plain: Var, control: npt.NDArray[np.uint8], visible: npt.NDArray[np.bool_]
) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Control word, then for a present value its length and bytes."""
    width = control.shape[1]
    there = visible if leaf.defs is None else visible & (leaf.defs == 0)
    stored = np.ones(len(plain), np.bool_) if leaf.defs is None else leaf.defs[visible] == 0
    lengths = np.diff(plain.offsets)[stored]
    per_entry = np.zeros(len(visible), np.int64)
    per_entry[there] = lengths
    sizes = width + np.where(there, per_entry + plain.offset_bytes, 0)
    lengths_raw = per_entry.astype(f"<u{plain.offset_bytes}").view(np.uint8).reshape(-1, plain.offset_bytes)
    head = np.concatenate((control, lengths_raw), axis=1)
    raw = memoryview(head.tobytes())
    step = head.shape[1]
    data = np.ascontiguousarray(plain.data).data
    starts = iter(plain.offsets[:-1][stored].tolist())
    out: list[Any] = []
    for i, (has, size) in enumerate(zip(there.tolist(), per_entry.tolist())):
        at = i * step
        out.append(raw[at : at + (step if has else width)])
        if has:
            start = next(starts)
            out.append(data[start : start + size])
    return b"".join(out), sizes


__all__ = [
    "EncodedPage",
    "TooLarge",
    "absent_page",
    "encode_leaf",
    "flat_encoding",
    "full_zip_page",
    "mini_block_page",
]

"""Encodes a leaf as a page of 2.2: constant, mini-block or full-zip layout.

Every number is little-endian. Buffers of a mini-block page: chunk words, chunks, the dictionary if there
is one, the repetition index if there are lists.
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
from boathouse.lance.file.encode_full_zip import full_zip_page
from boathouse.lance.file.encode_general import General, compressed, general_of
from boathouse.lance.file.encode_runs import chunk_runs, count_runs
from boathouse.lance.file.encode_values import (
    MAX_LOG_VALUES,
    Chunked,
    bitpacked_bytes,
    block_values,
    chunk_levels,
    chunk_values,
    flatten_vectors,
)
from boathouse.lance.file.encoded_page import EncodedPage, TooLarge
from boathouse.lance.file.hints import NONE, Hints
from boathouse.lance.file.plain import Bits, Fixed, Nulls, Plain, Var, Vectors, compact, plain_of
from boathouse.lance.file.shred import Leaf, Levels

FULL_ZIP_BYTES = 256
COMPRESSED_FULL_ZIP_BYTES = 4096
"""Texts that become smaller stay in chunks up to this size: many of them together become smaller still, in less time
than each alone. A chunk of 2.1 could not hold a long one."""
MAX_INLINE_CONSTANT = 32
_DICTIONARY_SAMPLE = 1024
_COMPRESSED_CHUNK = 16 << 10
_LEAST_RUNS, _MOST_RUNS = 256, 0.5


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
    hints = Hints.of(leaf.node)
    general = general_of(plain, hints)
    if _zips(plain, hints, general, version):
        return full_zip_page(leaf, plain, length, general)
    parts = _low_cardinality(leaf, plain, hints, version)
    parts = parts or _Parts(leaf, plain, _packs(kind), None, general, hints, pa.types.is_floating(kind))
    return _mini_block(parts, length, version)


def _zips(plain: Plain, hints: Hints, general: General | None, version: str) -> bool:
    bottom = _bottom(plain)
    if isinstance(bottom, Nulls):  # pylance fails on mini-blocks of lists of nulls, and zips them
        return True
    if hints.layout is not None and not isinstance(bottom, Bits):
        return hints.layout == "fullzip"
    together = general is not None and isinstance(plain, Var) and version != "2.1"
    return _mean_bytes(plain) >= (COMPRESSED_FULL_ZIP_BYTES if together else FULL_ZIP_BYTES)


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
    general: General | None = None
    hints: Hints = NONE
    floats: bool = False


def _dictionary_column(leaf: Leaf) -> _Parts:
    array = leaf.values
    if array.dictionary.null_count:
        plain_array = pc.cast(array, array.type.value_type).dictionary_encode()
        return _dictionary_column(replace(leaf, values=plain_array.cast(array.type)))
    keys = array.indices
    keys = keys.fill_null(0) if keys.null_count else keys
    return _Parts(leaf, plain_of(keys), integers=True, dictionary=plain_of(array.dictionary))


def _low_cardinality(leaf: Leaf, plain: Plain, hints: Hints, version: str) -> _Parts | None:
    """Keys and a dictionary, if a sample and then the page have few distinct values: of texts, and of what is neither
    packed nor in lists."""
    if not isinstance(plain, Var | Fixed) or len(plain) < _DICTIONARY_SAMPLE:
        return None
    if isinstance(plain, Fixed) and (plain.width < 4 or _packs(leaf.values.type) or version == "2.1"):
        return None
    step = len(plain) // _DICTIONARY_SAMPLE
    sample = leaf.values.take(pa.array(np.arange(_DICTIONARY_SAMPLE) * step))
    if len(sample.unique()) > _DICTIONARY_SAMPLE // hints.divisor:
        return None
    coded = leaf.values.dictionary_encode()
    words, keys = coded.dictionary, coded.indices
    if len(words) > len(plain) // hints.divisor or not len(words):
        return None
    taken = words.nbytes + len(plain) * len(words).bit_length() / 8
    if taken > hints.ratio * (plain.data.size + (plain.offset_bytes * len(plain) if isinstance(plain, Var) else 0)):
        return None
    keys = keys.fill_null(0) if keys.null_count else keys
    return _Parts(leaf, plain_of(keys), integers=True, dictionary=plain_of(words), hints=hints)


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
    chunked = _chunked(parts, most)
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
        if parts.hints.words != "none":
            words = General(parts.hints.words, parts.hints.words_level)
            block, encoding = words.block(block), words.around(encoding)
        buffers.append(block)
        layout = replace(layout, dictionary=encoding, num_dictionary_items=len(parts.dictionary))
    if leaf.rep is not None:
        buffers.append(_repetition_index(leaf.rep, bounds))
    return EncodedPage(buffers, m.PageLayout(mini_block=layout), length)


def _chunked(parts: _Parts, most: int) -> Chunked:
    """The values in chunks: runs where these are shortest, packed, or as they are, then compressed."""
    values, hints = parts.values, parts.hints
    chunk = hints.chunk or (_COMPRESSED_CHUNK if parts.general is not None else None)
    whole = parts.general is not None and hints.split == "on"  # bytes of plain numbers are split
    chunked = None if whole else _runs(values, parts.integers, hints, most)
    chunked = chunked or chunk_values(values, integers=parts.integers and not whole, most=most, chunk=chunk)
    if parts.general is None:
        return chunked
    return compressed(chunked, values, parts.general, hints, parts.floats)


def _runs(values: Plain, integers: bool, hints: Hints, most: int) -> Chunked | None:
    """None where the values are not mostly runs, or take no more bytes packed; as the metadata says, if it does."""
    if not isinstance(values, Fixed) or values.width not in (1, 2, 4, 8) or most < 10 or len(values) < _LEAST_RUNS:
        return None
    words = np.ascontiguousarray(values.data).reshape(-1).view(f"u{values.width}")
    runs = count_runs(words)
    if hints.runs is not None:
        return chunk_runs(words, most) if runs < hints.runs * len(words) else None
    if runs >= _MOST_RUNS * len(words):
        return None
    other = bitpacked_bytes(words) if integers else None
    return chunk_runs(words, most) if runs * (values.width + 1) < 0.9 * (other or values.data.size) else None


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

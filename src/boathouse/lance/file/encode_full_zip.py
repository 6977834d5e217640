"""The full-zip layout of 2.1 and 2.2: the entries one after the other, each with its control word.

Every number is little-endian. Buffers: the zipped rows, then the row starts if rows differ in size.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from boathouse.lance.file import messages as m
from boathouse.lance.file.encode_general import General
from boathouse.lance.file.encode_values import flatten_vectors, variable_encoding, vector_encoding
from boathouse.lance.file.encoded_page import EncodedPage
from boathouse.lance.file.plain import Fixed, Plain, Var, Vectors
from boathouse.lance.file.shred import Leaf


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


def full_zip_page(leaf: Leaf, plain: Plain, length: int, general: General | None = None) -> EncodedPage:
    """The entries one after the other, each with its control word; texts each compressed alone."""
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
        stored = np.ones(len(plain), np.bool_) if leaf.defs is None else leaf.defs[visible] == 0
        bits = plain.offset_bytes * 8
        encoding = variable_encoding(bits)
        if general is not None:
            plain, encoding = _compressed(plain, stored, general), general.around(encoding)
        zipped, sizes = _zip_variable(leaf, plain, control, visible, stored)
        layout = replace(layout, bits_per_offset=bits, value_compression=encoding)
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


def _compressed(plain: Var, stored: npt.NDArray[np.bool_], general: General) -> Var:
    """Each value that is there as a block of its own."""
    ends = plain.offsets.tolist()
    data = np.ascontiguousarray(plain.data).data
    blocks = [general.block(data[ends[i] : ends[i + 1]]) if s else b"" for i, s in enumerate(stored.tolist())]
    offsets = np.zeros(len(blocks) + 1, np.int64)
    np.cumsum([len(block) for block in blocks], out=offsets[1:])
    return Var(offsets, np.frombuffer(b"".join(blocks), np.uint8), plain.offset_bytes)


def _zip_variable(
    leaf: Leaf,
    plain: Var,
    control: npt.NDArray[np.uint8],
    visible: npt.NDArray[np.bool_],
    stored: npt.NDArray[np.bool_],
) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Control word, then for a present value its length and bytes."""
    width = control.shape[1]
    there = visible if leaf.defs is None else visible & (leaf.defs == 0)
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

"""Full-zip pages of 2.1 and 2.2: consecutive rows of control word and value.

A control word is rep << bits_def | def, in 0, 1, 2 or 4 bytes. A null item of fixed width still has its
bytes; one of variable width has only the control word, and so has an absent list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.lance.file import messages as m
from boathouse.lance.file.assemble import Decoded, Packed
from boathouse.lance.file.container import Source
from boathouse.lance.file.decode_values import budget, codec, decompress, name_of, undo_fsst
from boathouse.lance.file.pages import Wanted, unpack_members
from boathouse.lance.file.plain import Bits, Bytes, Fixed, Ints, Nulls, Plain, Var, Vectors
from boathouse.lance.file.schema import MAX_ITEMS
from boathouse.lance.file.segments import Broken, NotRead, Segments, unsigned
from boathouse.lance.file.shred import Levels

_ITEMS = (m.ALL_VALID_ITEM, m.NULLABLE_ITEM)


class FullZipPage:
    """A page of values of 256 bytes and more."""

    def __init__(self, source: Source, page: m.Page, layout: m.FullZipLayout, kind: pa.DataType, unit: int) -> None:
        if unit > 1:
            raise NotRead("full-zip values below a fixed-size list of structs")
        self._source, self._page, self._layout, self._kind = source, page, layout, kind
        self.rows = page.length
        self._encoding = layout.value_compression or m.CompressiveEncoding()
        self._repeated = layout.bits_rep > 0
        bits = layout.bits_rep + layout.bits_def
        if bits > 32:
            raise Broken(f"control words of {bits} bits")
        self._control = 0 if bits == 0 else 1 if bits <= 8 else 2 if bits <= 16 else 4
        fixed = layout.bits_per_value
        if fixed is not None and fixed % 8:
            raise NotRead(f"full-zip values of {fixed} bits")
        self._value = None if fixed is None else fixed // 8
        self._length = (layout.bits_per_offset or 0) // 8
        if self._value is None and self._length not in (4, 8):
            raise NotRead(f"full-zip lengths of {layout.bits_per_offset} bits")
        self._indexed = self._repeated or self._value is None
        if len(page.buffer_offsets) != 1 + self._indexed or len(page.buffer_sizes) != 1 + self._indexed:
            raise Broken(f"{len(page.buffer_offsets)} buffers in a full-zip page")
        self._index: Ints | None = None
        self._visible_limit = 0
        for layer in layout.layers:
            if layer not in _ITEMS:
                break
            self._visible_limit += layer == m.NULLABLE_ITEM

    def _starts(self) -> Ints:
        """The start of each row, and the end of the last one."""
        if self._index is None:
            size = self._page.buffer_sizes[1]
            width, odd = divmod(size, self.rows + 1)
            if odd or width not in (1, 2, 4, 8):
                raise Broken(f"a row index of {size} bytes for {self.rows} rows")
            raw = unsigned(self._source.read(self._page.buffer_offsets[1], size), width)
            index = raw.astype(np.int64)
            if index[0] < 0 or (np.diff(index) < 0).any() or int(index[-1]) > self._page.buffer_sizes[0]:
                raise Broken("a row index that decreases or exceeds its page")
            self._index = index
        return self._index

    def read(self, wanted: Wanted) -> Decoded:
        rows = np.arange(wanted.start, wanted.stop) if isinstance(wanted, range) else wanted
        if self._indexed:
            index = self._starts()
            starts, sizes = index[rows], index[rows + 1] - index[rows]
        else:
            assert self._value is not None
            step = self._control + self._value
            if step * self.rows > self._page.buffer_sizes[0]:
                raise Broken(f"{self.rows} values of {step} bytes in {self._page.buffer_sizes[0]}")
            starts, sizes = rows * step, np.full(len(rows), step)
        data = self._source.read_many(self._page.buffer_offsets[0] + starts, sizes)
        at = np.cumsum(sizes) - sizes
        items = self._walk(data, at, at + sizes) if self._repeated else self._single(data, at, sizes)
        return self._decode(data, *items)

    def _words(self, data: Bytes, at: Ints) -> tuple[Levels, Levels]:
        """Repetition and definition levels of the control words at these positions."""
        if self._control == 0:
            return np.zeros(len(at), np.uint16), np.zeros(len(at), np.uint16)
        raw = Segments(data, at, np.full(len(at), self._control)).rows(self._control)
        words = np.zeros(len(at), np.uint32)
        for byte in range(self._control):
            words |= raw[:, byte].astype(np.uint32) << np.uint32(8 * byte)
        rep = words >> np.uint32(self._layout.bits_def)
        defs = words & np.uint32((1 << self._layout.bits_def) - 1)
        return rep.astype(np.uint16), defs.astype(np.uint16)

    def _lengths(self, data: Bytes, at: Ints, defs: Levels) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
        """(skip to the value's bytes, their number, whether the item is visible) for items at these positions."""
        visible = defs <= self._visible_limit
        if self._value is not None:
            return np.full(len(at), self._control), np.where(visible, self._value, 0), visible
        there = defs == 0
        lengths = np.zeros(len(at), np.int64)
        heads = Segments(data, at[there] + self._control, np.full(int(there.sum()), self._length)).rows(self._length)
        lengths[there] = np.ascontiguousarray(heads).view(f"<u{self._length}").reshape(-1).astype(np.int64)
        return self._control + np.where(there, self._length, 0), lengths, visible

    def _single(self, data: Bytes, at: Ints, sizes: Ints) -> tuple[Levels, Levels, Ints, Ints]:
        """One item per row."""
        rep, defs = self._words(data, at)
        skip, lengths, _ = self._lengths(data, at, defs)
        if ((skip + lengths) != sizes).any():
            raise Broken("a row whose value has another length")
        return rep, defs, at + skip, lengths

    def _walk(self, data: Bytes, at: Ints, stops: Ints) -> tuple[Levels, Levels, Ints, Ints]:
        """Items of rows of lists: item k of every row, then k + 1, until all rows are done."""
        found: list[tuple[Any, ...]] = []
        row = np.arange(len(at))
        while len(at):
            rep, defs = self._words(data, at)
            skip, lengths, visible = self._lengths(data, at, defs)
            after = at + skip + lengths
            if (after > stops).any() or (after <= at).any():
                raise Broken("a list that extends beyond its row")
            found.append((row, rep, defs, at + skip, np.where(visible, lengths, -1)))
            going = after < stops
            row, at, stops = row[going], after[going], stops[going]
        if not found:
            empty = np.empty(0, np.uint16)
            return empty, empty, np.empty(0, np.int64), np.empty(0, np.int64)
        rows, reps, all_defs, starts, sizes = (np.concatenate(part) for part in zip(*found))
        order = np.argsort(rows, kind="stable")
        if (reps[: len(found[0][0])] == 0).any() or (reps[len(found[0][0]) :] >= max(reps.max(), 1)).any():
            raise Broken("a row that does not begin at its position in the index")
        return reps[order], all_defs[order], starts[order], sizes[order]

    def _decode(self, data: Bytes, rep: Levels, defs: Levels, starts: Ints, sizes: Ints) -> Decoded:
        visible = (sizes >= 0) & (defs <= self._visible_limit)
        if not visible.all():
            starts, sizes = starts[visible], sizes[visible]
        there = defs[visible] == 0
        pieces = Segments(data, starts, sizes)
        values = self._values(pieces, there)
        return Decoded(
            values,
            self._layout.layers,
            rep if self._repeated else None,
            defs if self._layout.bits_def else None,
            entries=len(defs),
        )

    def _values(self, pieces: Segments, there: npt.NDArray[np.bool_]) -> Plain | Packed:
        encoding = self._encoding
        if encoding.variable_packed_struct is not None:
            return _packed_rows(encoding.variable_packed_struct, pieces, there)
        if encoding.packed_struct is not None and self._value is not None:
            return unpack_members(encoding.packed_struct, Fixed(np.ascontiguousarray(pieces.rows(self._value))))
        if self._value is not None:
            rows = np.ascontiguousarray(pieces.rows(self._value))
            if pa.types.is_boolean(self._kind) and self._value == 1:
                return Bits(rows[:, 0] != 0)
            return _fixed(encoding, rows)
        return _variable(encoding, pieces, there, self._length)


def _fixed(encoding: m.CompressiveEncoding, rows: Bytes) -> Plain:
    """Flat values, or fixed-size lists of them."""
    if encoding.flat is not None and encoding.flat.data is None:
        if encoding.flat.bits_per_value != rows.shape[1] * 8:
            raise Broken(f"{encoding.flat.bits_per_value} bits in values of {rows.shape[1]} bytes")
        return Fixed(rows)
    lists = encoding.fixed_size_list
    if lists is None or lists.values is None:
        raise NotRead(f"{name_of(encoding)} in full-zip values")
    dims: list[tuple[int, npt.NDArray[np.bool_] | None]] = []
    per_row, at = 1, 0
    inner: m.CompressiveEncoding = encoding
    while inner.fixed_size_list is not None:
        lists = inner.fixed_size_list
        per_row *= lists.items_per_value
        if lists.values is None or not 1 <= per_row <= (rows.shape[1] * 8 or MAX_ITEMS):
            raise Broken(f"lists of {per_row} items in {rows.shape[1]} bytes")
        valid = None
        if lists.has_validity:
            size = -(-per_row // 8)
            bits = np.unpackbits(rows[:, at : at + size], axis=1, bitorder="little")
            valid = bits[:, :per_row].reshape(-1).view(np.bool_)
            at += size
        dims.append((lists.items_per_value, valid))
        inner = lists.values
    return _nested(inner, rows[:, at:], per_row, dims)


def _nested(
    inner: m.CompressiveEncoding, rows: Bytes, per_row: int, dims: list[tuple[int, npt.NDArray[np.bool_] | None]]
) -> Plain:
    bits = inner.flat.bits_per_value if inner.flat is not None else 0
    values: Plain
    if bits == 1 and rows.shape[1] == -(-per_row // 8):
        unpacked = np.unpackbits(np.ascontiguousarray(rows), axis=1, bitorder="little")[:, :per_row]
        values = Bits(np.ascontiguousarray(unpacked).reshape(-1).view(np.bool_))
    elif inner.flat is not None and not bits and not rows.shape[1]:
        values = Fixed(np.empty((len(rows) * per_row, 0), np.uint8))
    elif inner.constant is not None and not inner.constant.value and not rows.shape[1]:
        values = Nulls(len(rows) * per_row)
    elif bits and bits % 8 == 0 and rows.shape[1] * 8 == bits * per_row:
        values = Fixed(np.ascontiguousarray(rows).reshape(-1, bits // 8))
    else:
        raise NotRead(f"{name_of(inner)} of {bits} bits in full-zip vectors of {rows.shape[1]} bytes")
    for size, valid in reversed(dims):
        values = Vectors(size, values, valid)
    return values


def _variable(encoding: m.CompressiveEncoding, pieces: Segments, there: npt.NDArray[np.bool_], width: int) -> Plain:
    """Strings, each compressed separately if at all."""
    if encoding.general is not None:
        return _variable(
            encoding.general.values or m.CompressiveEncoding(), _inflate(encoding.general, pieces, there), there, width
        )
    if encoding.fsst is not None:
        inner = _variable(encoding.fsst.values or m.CompressiveEncoding(), pieces, there, width)
        return undo_fsst(encoding.fsst.symbol_table, inner)
    if encoding.variable is None:
        raise NotRead(f"{name_of(encoding)} in full-zip strings")
    offsets = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(pieces.sizes, out=offsets[1:])
    return Var(offsets, pieces.joined(), width)


def _inflate(general: m.General, pieces: Segments, there: npt.NDArray[np.bool_]) -> Segments:
    engine, prefix = codec(general.compression)
    left = budget(len(pieces.data))
    blocks = [decompress(v, engine, prefix, left) if t else b"" for v, t in zip(pieces.views(), there.tolist())]
    sizes = np.fromiter(map(len, blocks), np.int64, len(blocks))
    return Segments(np.frombuffer(b"".join(blocks), np.uint8), np.cumsum(sizes) - sizes, sizes)


def _packed_rows(packed: m.VariablePackedStruct, pieces: Segments, there: npt.NDArray[np.bool_]) -> Packed:
    """Fields in order: fixed bytes, or a length and bytes. A null row has none of them."""
    at, stops = pieces.starts.copy(), pieces.starts + pieces.sizes
    members: list[Plain] = []
    for field in packed.fields:
        encoding = field.value or m.CompressiveEncoding()
        if field.bits_per_value is not None:
            size = field.bits_per_value // 8
            if field.bits_per_value % 8 or not size:
                raise NotRead(f"packed fields of {field.bits_per_value} bits")
            sizes = np.where(there, size, 0)
            rows = np.zeros((len(at), size), np.uint8)
            rows[there] = Segments(pieces.data, at[there], sizes[there]).rows(size)
            members.append(_fixed(encoding, rows))
        else:
            width = (field.bits_per_length or 0) // 8
            if width not in (4, 8):
                raise NotRead(f"packed lengths of {field.bits_per_length} bits")
            heads = Segments(pieces.data, at[there], np.full(int(there.sum()), width)).rows(width)
            sizes = np.zeros(len(at), np.int64)
            sizes[there] = np.ascontiguousarray(heads).view(f"<u{width}").reshape(-1).astype(np.int64)
            at = at + np.where(there, width, 0)
            members.append(_variable(encoding, Segments(pieces.data, at, sizes), there, width))
        at = at + sizes
        if (at > stops).any():
            raise Broken("a packed row whose fields extend beyond it")
    if (at != stops).any() or not members:
        raise Broken("a packed row that is longer than its fields")
    return Packed(tuple(members))

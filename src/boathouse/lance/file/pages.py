"""Pages of 2.1 and 2.2: locates the bytes of the requested rows, and decodes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.lance.file import messages as m
from boathouse.lance.file.assemble import Decoded, Packed
from boathouse.lance.file.blocks import decode_block, decode_levels, scalar_of
from boathouse.lance.file.container import Source
from boathouse.lance.file.decode_values import decode_chunks
from boathouse.lance.file.plain import Bits, Bytes, Fixed, Ints, Plain, Var
from boathouse.lance.file.points import decode_points, offered
from boathouse.lance.file.segments import Broken, NotRead, Segments, unsigned
from boathouse.lance.file.shred import Levels

Wanted = range | Ints  # rows of the page, ascending, without repetition
_FEW = 8
"""If fewer than one value in this number of those in the chunks is wanted, the others are not decoded."""


class PageReader(Protocol):
    """`rows` of a page, read by their number in the page."""

    rows: int

    def read(self, wanted: Wanted) -> Decoded: ...


def positions(numbers: Ints, wanted: Wanted) -> slice | Ints | None:
    """The positions of the wanted rows among the decoded ones, whose numbers ascend; -1 marks parts of rows."""
    whole = numbers >= 0
    at = np.arange(len(numbers)) if whole.all() else np.flatnonzero(whole)
    known = numbers[at]
    if isinstance(wanted, range):
        first = int(np.searchsorted(known, wanted.start))
        last = first + len(wanted) - 1
        if last >= len(known) or known[first] != wanted.start or known[last] != wanted[-1]:
            raise Broken(f"rows {wanted.start} to {wanted.stop} are not at their recorded position")
        return slice(int(at[first]), int(at[last]) + 1)
    found = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    if len(wanted) and (not len(known) or (known[found] != wanted).any()):
        raise Broken("rows are not at their recorded position")
    return at[found]


class MiniBlockPage:
    """Chunks of up to 32,768 values, each with the levels and the values of some entries."""

    def __init__(self, source: Source, page: m.Page, layout: m.MiniBlockLayout, kind: pa.DataType, unit: int) -> None:
        self._source, self._page, self._layout, self._kind, self._unit = source, page, layout, kind, unit
        self.rows = page.length // unit
        self._repeated = layout.repetition_index_depth > 0
        expected = 2 + (layout.dictionary is not None) + self._repeated
        if len(page.buffer_offsets) != expected or len(page.buffer_sizes) != expected:
            raise Broken(f"{len(page.buffer_offsets)} buffers where the layout has {expected}")
        if not 1 <= layout.num_buffers <= 64:
            raise Broken(f"chunks of {layout.num_buffers} buffers")
        if layout.repetition_index_depth > 1:
            raise NotRead(f"a repetition index of depth {layout.repetition_index_depth}")
        self._words()
        self._row_index: tuple[Ints, npt.NDArray[np.bool_]] | None = None
        self._dictionary: Plain | None = None

    def _buffer(self, index: int) -> Bytes:
        return self._source.read(self._page.buffer_offsets[index], self._page.buffer_sizes[index])

    def _words(self) -> None:
        """Sizes, values and starts of the chunks, from their words."""
        words = unsigned(self._buffer(0), 4 if self._layout.has_large_chunk else 2).astype(np.int64)
        if not len(words):
            raise Broken("a page without chunks")
        self.sizes = ((words >> 4) + 1) * 8
        self.counts = np.int64(1) << (words & 15)
        rest = self._layout.num_items - int(self.counts[:-1].sum())
        if rest < 0 or (words[:-1] & 15 == 0).any():
            raise Broken("chunks of more values than the page has")
        self.counts[-1] = rest
        self._starts = np.cumsum(self.sizes) - self.sizes
        if int(self.sizes.sum()) > self._page.buffer_sizes[1]:
            raise Broken("chunks that extend beyond their buffer")
        self._ends = np.cumsum(self.counts)
        if not self._repeated and self._layout.num_items != self._page.length:
            raise Broken(f"{self._layout.num_items} values in a page of {self._page.length}")

    def dictionary(self) -> Plain | None:
        if self._layout.dictionary is not None and self._dictionary is None:
            count = self._layout.num_dictionary_items
            raw = self._buffer(2)
            if count > max(len(raw), 8) << 16:
                raise Broken(f"a dictionary of {count} values in {len(raw)} bytes")
            self._dictionary = decode_block(self._layout.dictionary, raw, count)
        return self._dictionary

    # --- which chunks ---

    def _read_row_index(self) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """The number of rows that end by the end of each chunk; whether a row continues after it."""
        raw = unsigned(self._buffer(len(self._page.buffer_offsets) - 1), 8)
        if len(raw) != 2 * len(self.counts) or (len(raw) and int(raw.max()) > 1 << 40):
            raise Broken(f"a repetition index of {len(raw)} numbers for {len(self.counts)} chunks")
        pairs = raw.astype(np.int64).reshape(-1, 2)
        ended, open_row = np.cumsum(pairs[:, 0]), pairs[:, 1] > 0
        if int(ended[-1]) != self.rows or open_row[-1]:
            raise Broken(f"a repetition index of {int(ended[-1])} rows in a page of {self.rows}")
        return ended, open_row

    def _chunks(self, wanted: Wanted) -> tuple[Ints, Ints]:
        """The chunks that hold the wanted rows and, for each, the number of the first row that starts in it."""
        if not self._repeated:
            chosen = _spans(self._ends, self._ends, wanted)
            return chosen, self._ends[chosen] - self.counts[chosen]
        if self._row_index is None:
            self._row_index = self._read_row_index()
        ended, open_row = self._row_index
        first_rows = np.concatenate(([0], ended[:-1] + open_row[:-1]))
        chosen = _spans(ended + open_row, ended, wanted)
        return chosen, first_rows[chosen]

    def read(self, wanted: Wanted) -> Decoded:
        if self._unit > 1:  # an element is an entry: chunk boundaries need not be row boundaries
            decoded, _ = self._decode(np.arange(len(self.counts)), None)
            return replace(decoded, pick=slice(wanted.start, wanted.stop) if isinstance(wanted, range) else wanted)
        chunks, first_rows = self._chunks(wanted)
        if not isinstance(wanted, range) and self._single(wanted, chunks):
            return self._points(chunks, first_rows, wanted)
        decoded, numbers = self._decode(chunks, first_rows)
        if numbers is not None:
            return replace(decoded, pick=positions(numbers, wanted))
        return replace(decoded, pick=self._pick_flat(chunks, first_rows, wanted))

    def _pick_flat(self, chunks: Ints, first_rows: Ints, wanted: Wanted) -> slice | Ints | None:
        if isinstance(wanted, range):
            start = wanted.start - int(first_rows[0])
            whole = start == 0 and len(wanted) == int(self.counts[chunks].sum())
            return None if whole else slice(start, start + len(wanted))
        before = np.cumsum(self.counts[chunks]) - self.counts[chunks]
        at = np.searchsorted(first_rows, wanted, side="right") - 1
        return before[at] + wanted - first_rows[at]

    # --- single values ---

    def _single(self, wanted: Ints, chunks: Ints) -> bool:
        """Whether the values of these rows are found without those beside them."""
        layout = self._layout
        return (
            not self._repeated
            and layout.rep_compression is None
            and layout.num_buffers == 1
            and len(wanted) * _FEW < int(self.counts[chunks].sum())
            and offered(layout.value_compression)
        )

    def _points(self, chunks: Ints, first_rows: Ints, wanted: Ints) -> Decoded:
        layout, sizes, counts = self._layout, self.sizes[chunks], self.counts[chunks]
        assert layout.value_compression is not None
        data, starts = self._source.read_spread(self._page.buffer_offsets[1] + self._starts[chunks], sizes)
        chunk = np.searchsorted(first_rows, wanted, side="right") - 1
        within = wanted - first_rows[chunk]
        levels, (values,), num_levels = self._pieces(data, starts, sizes)
        defs = None
        if levels:
            if (num_levels != counts).any():
                raise Broken("a chunk with more or fewer levels than values")
            defs = decode_levels(layout.def_compression, levels[0], num_levels)
            defs = defs[(np.cumsum(counts) - counts)[chunk] + within]
        return Decoded(
            values=decode_points(layout.value_compression, values, chunk, within),
            layers=layout.layers,
            rep=None,
            defs=defs,
            dictionary=self.dictionary(),
            entries=len(wanted),
        )

    # --- decode ---

    def _load(self, chunks: Ints) -> tuple[Bytes, Ints]:
        sizes = self.sizes[chunks]
        offsets = self._page.buffer_offsets[1] + self._starts[chunks]
        return self._source.read_many(offsets, sizes), np.cumsum(sizes) - sizes

    def _decode(self, chunks: Ints, first_rows: Ints | None) -> tuple[Decoded, Ints | None]:
        """The rows of these chunks and, with lists, the number of each."""
        layout = self._layout
        data, starts = self._load(chunks)
        sizes, counts = self.sizes[chunks], self.counts[chunks]
        if (layout.rep_compression is not None) != self._repeated:
            raise Broken("repetition levels without an index, or an index without repetition levels")
        levels, buffers, num_levels = self._pieces(data, starts, sizes)
        if levels and not self._repeated and (num_levels != counts).any():
            raise Broken("a chunk with more or fewer levels than values")
        decoded_levels = [decode_levels(e, part, num_levels) for e, part in zip(self._levels, levels)]
        values = decode_chunks(layout.value_compression, buffers, counts)
        packed = _members(layout.value_compression, values)
        rep = decoded_levels.pop(0) if self._repeated else None
        numbers = None
        if rep is not None and first_rows is not None:
            rep, numbers = self._number(rep, chunks, first_rows, num_levels)
        decoded = Decoded(
            values=packed,
            layers=layout.layers,
            rep=rep,
            defs=decoded_levels[0] if decoded_levels else None,
            dictionary=self.dictionary(),
            entries=int(num_levels.sum()) if levels else int(counts.sum()),
        )
        return decoded, numbers

    @property
    def _levels(self) -> list[m.CompressiveEncoding]:
        return [e for e in (self._layout.rep_compression, self._layout.def_compression) if e is not None]

    def _pieces(self, data: Bytes, starts: Ints, sizes: Ints) -> tuple[list[Segments], list[Segments], Ints]:
        """The levels and the value buffers of chunks, and how many levels each has."""
        levels = len(self._levels)
        head = 2 + 2 * levels + (4 if self._layout.has_large_chunk else 2) * self._layout.num_buffers
        rows = Segments(data, starts, sizes).rows(head).astype(np.int64)
        parts = self._parts(data, starts, sizes, rows, levels)
        return parts[:levels], parts[levels:], rows[:, 0] | rows[:, 1] << 8

    def _parts(self, data: Bytes, starts: Ints, sizes: Ints, rows: Ints, levels: int) -> list[Segments]:
        """The buffers of the chunks, levels first, from the headers in `rows`."""
        width = 4 if self._layout.has_large_chunk else 2
        at = (starts + rows.shape[1] + 7) // 8 * 8
        parts = []
        for i in range(levels + self._layout.num_buffers):
            first, size = (2 + 2 * i, 2) if i < levels else (2 + 2 * levels + width * (i - levels), width)
            length = sum((rows[:, first + b] << (8 * b) for b in range(size)), np.zeros(len(rows), np.int64))
            if (at + length > starts + sizes).any():
                raise Broken("a buffer of a chunk extends beyond the chunk")
            parts.append(Segments(data, at, length))
            at = (at + length + 7) // 8 * 8
        return parts

    def _number(self, rep: Levels, chunks: Ints, first_rows: Ints, num_levels: Ints) -> tuple[Levels, Ints]:
        """Numbers the decoded rows; the rest of a row at the start of a run of chunks becomes row -1."""
        runs = np.ones(len(chunks), np.bool_)
        runs[1:] = np.diff(chunks) != 1
        entry = (np.cumsum(num_levels) - num_levels)[runs]
        if not len(rep) or (entry >= len(rep)).any():
            raise Broken("a chunk without levels")
        top = sum(layer not in (m.ALL_VALID_ITEM, m.NULLABLE_ITEM) for layer in self._layout.layers)
        cut = entry[rep[entry] != top]
        if len(cut):
            rep = rep.copy()
            rep[cut] = top
        at = np.flatnonzero(rep == top)
        run_of = np.searchsorted(entry, at, side="right") - 1
        begins = np.searchsorted(at, entry)
        tail = np.isin(at[begins], cut).astype(np.int64)
        numbers = first_rows[runs][run_of] + np.arange(len(at)) - (begins + tail)[run_of]
        numbers[begins[tail == 1]] = -1
        return rep, numbers


def _spans(starts: Ints, ends: Ints, wanted: Wanted) -> Ints:
    """The chunks from where wanted rows start to where they end; both are given as running counts of rows."""
    if isinstance(wanted, range):
        first = int(np.searchsorted(starts, wanted.start, side="right"))
        last = int(np.searchsorted(ends, wanted[-1], side="right"))
        return np.arange(first, min(last, len(ends) - 1) + 1)
    first_of = np.searchsorted(starts, wanted, side="right")
    last_of = np.minimum(np.searchsorted(ends, wanted, side="right"), len(ends) - 1)
    if (first_of == last_of).all():
        return np.unique(first_of)
    marks = np.zeros(len(ends) + 1, np.int64)
    np.add.at(marks, first_of, 1)
    np.add.at(marks, last_of + 1, -1)
    return np.flatnonzero(np.cumsum(marks[:-1]) > 0)


def _members(encoding: m.CompressiveEncoding | None, values: Plain) -> Plain | Packed:
    """The fields of a packed struct, each of fixed width; other values unchanged."""
    if encoding is not None and encoding.general is not None:
        return _members(encoding.general.values, values)
    if encoding is None or encoding.packed_struct is None:
        return values
    return unpack_members(encoding.packed_struct, values)


def unpack_members(packed: m.PackedStruct, values: Plain) -> Packed:
    bits = packed.bits_per_value
    if not isinstance(values, Fixed) or any(b % 8 for b in bits) or sum(bits) != values.width * 8 or not bits:
        raise NotRead("a packed struct whose fields are not whole bytes")
    ends = np.cumsum(bits) // 8
    return Packed(tuple(Fixed(values.data[:, end - b // 8 : end]) for end, b in zip(ends.tolist(), bits)))


class ConstantPage:
    """One value for all rows, or none; levels only if the field is nested or nullable."""

    def __init__(self, source: Source, page: m.Page, layout: m.ConstantLayout, kind: pa.DataType, unit: int) -> None:
        self._layout, self._kind, self._page, self._source, self._unit = layout, kind, page, source, unit
        self.rows = page.length // unit

    def _levels(self, raw: Bytes, encoding: m.CompressiveEncoding | None, count: int) -> Levels | None:
        if encoding is not None and count:
            if count > max(len(raw), 8) << 11:
                raise Broken(f"{count} levels in {len(raw)} bytes")
            return decode_levels(
                encoding, Segments(raw, np.zeros(1, np.int64), np.array([len(raw)])), np.array([count])
            )
        return unsigned(raw, 2) if len(raw) else None

    def read(self, wanted: Wanted) -> Decoded:
        layout = self._layout
        buffers = [self._source.read(a, n) for a, n in zip(self._page.buffer_offsets, self._page.buffer_sizes)]
        rep = defs = None
        if len(buffers) >= 2:
            rep = self._levels(buffers[-2], layout.rep_compression, layout.num_rep_values)
            defs = self._levels(buffers[-1], layout.def_compression, layout.num_def_values)
        scalar = self._scalar(buffers)
        nested = any(layer not in (m.ALL_VALID_ITEM, m.NULLABLE_ITEM) for layer in layout.layers)
        if not nested and self._unit == 1:  # an entry is a row: only the requested ones are built
            take: slice | Ints = slice(wanted.start, wanted.stop) if isinstance(wanted, range) else wanted
            if defs is not None and len(defs) != self.rows:
                raise Broken(f"{len(defs)} levels in a page of {self.rows} rows")
            return self._made(scalar, len(wanted), None, None if defs is None else defs[take], None)
        entries = len(rep) if rep is not None else len(defs) if defs is not None else self._page.length
        if nested and rep is None and self.rows:
            raise Broken("lists without repetition levels")
        pick = slice(wanted.start, wanted.stop) if isinstance(wanted, range) else wanted
        if rep is not None and int(np.count_nonzero(rep == rep.max())) != self.rows:
            raise Broken(f"levels of a number of rows other than {self.rows}")
        return self._made(scalar, entries, rep, defs, pick)

    def _scalar(self, buffers: list[Bytes]) -> Plain | None:
        if self._layout.inline_value is not None:
            return Fixed(np.frombuffer(self._layout.inline_value, np.uint8).reshape(1, -1))
        return scalar_of(buffers[0], self._kind) if len(buffers) in (1, 3) else None

    def _made(
        self, scalar: Plain | None, entries: int, rep: Levels | None, defs: Levels | None, pick: slice | Ints | None
    ) -> Decoded:
        layers = self._layout.layers
        if scalar is None:
            if defs is None and layers and layers[0] == m.NULLABLE_ITEM:
                defs = np.ones(entries, np.uint16)
            return Decoded(None, layers, rep, defs, pick, entries=entries)
        visible = entries
        if rep is not None and defs is not None:
            limit = 0
            for layer in layers:
                if layer not in (m.ALL_VALID_ITEM, m.NULLABLE_ITEM):
                    break
                limit += layer == m.NULLABLE_ITEM
            visible = int(np.count_nonzero(defs <= limit))
        return Decoded(_repeated(scalar, visible, self._kind), layers, rep, defs, pick, entries=entries)


class BlobPage:
    """Descriptors (position, size) of 2.1; size 0 with a definition level above bit 16 of the position is null."""

    def __init__(self, inner: PageReader, layers: tuple[int, ...]) -> None:
        if len(layers) != 1:
            raise NotRead("blobs inside structs or lists")
        self._inner, self._layers = inner, layers
        self.rows = inner.rows

    def read(self, wanted: Wanted) -> Decoded:
        decoded = self._inner.read(wanted)
        values = decoded.values
        if not isinstance(values, Packed) or len(values.members) != 2 or decoded.defs is not None:
            raise Broken("blob descriptors that are not pairs")
        position, size = (unsigned(np.ascontiguousarray(_bytes(part)).reshape(-1), 8) for part in values.members)
        defs = np.where(size == 0, position >> np.uint64(16), 0).astype(np.uint16)
        return replace(decoded, layers=self._layers, defs=None if self._layers[0] == m.ALL_VALID_ITEM else defs)


def _bytes(plain: Plain) -> Bytes:
    if not isinstance(plain, Fixed):
        raise Broken("blob descriptors that are not numbers")
    return plain.data


def _repeated(scalar: Plain, count: int, kind: pa.DataType) -> Plain:
    if isinstance(scalar, Var):
        size = len(scalar.data)
        return Var(np.arange(count + 1) * size, np.tile(scalar.data, count), scalar.offset_bytes)
    assert isinstance(scalar, Fixed)
    if pa.types.is_boolean(kind):
        return Bits(np.full(count, bool(scalar.data.any())))
    return Fixed(np.repeat(scalar.data, count, axis=0))


__all__ = ["BlobPage", "ConstantPage", "MiniBlockPage", "PageReader", "Wanted", "positions", "unpack_members"]

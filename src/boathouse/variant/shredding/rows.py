"""The state shared by all parts of one operation on a column: its metadata, and the malformed rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.unaligned import Ints, Mask, copy
from boathouse.errors import MalformedVariant
from boathouse.variant.columns.byte_columns import Ragged, splits_of
from boathouse.variant.columns.faults import Faults, Lenient
from boathouse.variant.columns.layout import Column
from boathouse.variant.columns.names import Dictionaries
from boathouse.variant.columns.nodes import Nodes

Codes = npt.NDArray[np.integer[Any]]


class Rows:
    """The rows of a column: row i has the dictionary `meta.codes[i]`. In lenient reading `bad` collects rows."""

    def __init__(self, meta: Dictionaries, lenient: Lenient | None = None, first_row: int = 0) -> None:
        self.meta = meta
        self.lenient = lenient
        self.first_row = first_row
        self.bad: Mask | None = None

    def piece(self, start: int, stop: int) -> Rows:
        """Rows start to stop (exclusive), with what is known about their dictionaries."""
        meta = self.meta
        out = Rows(meta.slice(start, stop), self.lenient, self.first_row + start)
        if meta.distinct:
            out.__dict__["names"] = self.names
        return out

    @cached_property
    def names(self) -> Names:
        return Names(self.meta)

    def refuse(self, wrong: Mask | None, row: Ints, message: str) -> None:
        """MalformedVariant for the first instance that is `wrong` (`row`: of each instance), or notes their rows."""
        if wrong is None or not wrong.any():
            return
        if self.lenient is None:
            raise MalformedVariant(message, row=self.first_row + int(row[int(np.argmax(wrong))]))
        self._mark(row[wrong])

    def _mark(self, rows: Ints) -> None:
        if self.bad is None:
            self.bad = np.zeros(len(self.meta.codes), np.bool_)
        self.bad[rows] = True

    def nodes(self, data: Ragged, at: Ints, row: Ints) -> Nodes:
        """The values `data[at]` of rows `row` as nodes; node k is row k of their own column (see `located`)."""
        start, end = data.offsets[at], data.offsets[at + 1]
        column = Column(data.data, start, end, self.meta.with_codes(self.meta.codes[row]))
        return Nodes(column, np.arange(len(at)), start, end, _Faults(row + self.first_row, self.lenient))

    @contextmanager
    def located(self, nodes: Nodes, row: Ints) -> Iterator[None]:
        """Makes errors about `nodes` name the rows of this column: `row[k]` for row k of theirs."""
        try:
            yield
        except MalformedVariant as error:
            if error.row is not None:
                error.row = self.first_row + int(row[error.row])
            raise
        if nodes.faults.bad is not None:
            self._mark(row[nodes.faults.bad])


class _Faults(Faults):
    """For nodes with numbers of their own: reports types of a later specification with the rows of this column."""

    def __init__(self, row: Ints, lenient: Lenient | None) -> None:
        super().__init__(len(row), lenient)
        self._row = row

    def unsupported(self, id: int, row: int, path: str = "$") -> None:
        super().unsupported(id, int(self._row[row]) if self.lenient is None else row, path)


def sizes_of(nodes: Nodes) -> Ints:
    """`nodes.sizes()`, and 0 for malformed ones, of which nothing can be copied (in lenient reading)."""
    sizes = nodes.sizes()
    return sizes if nodes.faults.bad is None else np.where(nodes.pos + sizes <= nodes.end, sizes, 0)


class Names:
    """Names in the dictionaries of a column, all read at once: ids of a name, their order by UTF-8 bytes.

    Names are numbered across all dictionaries: `first[code] + id`. `_flat` gives for each such number the name's index
    in `distinct`.
    """

    def __init__(self, meta: Dictionaries) -> None:
        self._meta = meta
        self._sizes = np.where(meta.wrong == 0, meta.sizes, 0)
        self._first = np.cumsum(self._sizes) - self._sizes
        self._ids: dict[str, Codes] = {}
        self._tables: dict[tuple[str, ...], npt.NDArray[np.int32]] = {}

    @cached_property
    def _encoded(self) -> tuple[pa.Array, npt.NDArray[np.int32]]:
        sound = np.flatnonzero(self._sizes)
        *_, start, end, counts = self._meta.spans(sound)
        if not len(start):
            return pa.array([], pa.large_binary()), np.zeros(0, np.int32)
        offsets = splits_of(end - start)
        # The names of one dictionary are adjacent.
        last = np.cumsum(counts)
        first = last - counts
        data = np.empty(int(offsets[-1]), np.uint8)
        copy(data, offsets[first], self._meta.data, start[first], offsets[last] - offsets[first])
        names = Ragged(offsets, data).to_arrow().dictionary_encode()
        return names.dictionary, np.asarray(names.indices)

    @cached_property
    def _owner(self) -> npt.NDArray[np.int32]:
        return np.repeat(np.arange(len(self._sizes), dtype=np.int32), self._sizes)

    @cached_property
    def _number(self) -> dict[bytes, int]:
        return {name: number for number, name in enumerate(self.distinct.to_pylist())}

    @property
    def distinct(self) -> pa.Array:
        """Each name once, as bytes."""
        return self._encoded[0]

    def numbers(self, codes: Codes, ids: Codes) -> npt.NDArray[np.int32]:
        """The positions in `distinct` of the names `ids[k]` of dictionaries `codes[k]`; the ids have been checked."""
        return self._encoded[1][self._first[codes] + ids]

    def ids(self, name: str) -> Codes:
        """The id of a name in each dictionary, -1 where it is absent; the first where a dictionary repeats it."""
        if name not in self._ids:
            found = np.full(len(self._sizes), -1, np.int64)
            number = self._number.get(name.encode())
            if number is not None:
                at = np.flatnonzero(self._encoded[1] == number)[::-1]
                owner = self._owner[at]
                found[owner] = at - self._first[owner]
            self._ids[name] = found
        return self._ids[name]

    def which(self, codes: Codes, ids: Codes, names: Sequence[str]) -> Ints:
        """The position in `names` of the names `ids[k]` of dictionaries `codes[k]`, -1 for others."""
        key = tuple(names)
        if key not in self._tables:
            table = np.full(len(self.distinct) + 1, -1, np.int32)
            for position, name in enumerate(names):
                table[self._number.get(name.encode(), -1)] = position
            table[-1] = -1
            self._tables[key] = table
        return self._tables[key][self.numbers(codes, ids)].astype(np.int64)

    @cached_property
    def _rank(self) -> Ints:
        order = np.asarray(pc.sort_indices(self.distinct))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return rank

    def ranks(self, codes: Codes, ids: Codes) -> Ints:
        """Numbers that order names as their bytes do, equal ones for equal names."""
        return self._rank[self.numbers(codes, ids)]

"""What all parts of one operation on a column share: its metadata, and the rows found malformed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from boathouse.errors import MalformedVariant
from boathouse.variant.columns.faults import Faults, Lenient
from boathouse.variant.columns.layout import Column
from boathouse.variant.columns.names import SEVERAL, Dictionaries
from boathouse.variant.columns.nodes import Nodes
from boathouse.variant.columns.ragged import Ragged
from boathouse.variant.columns.unaligned import copy
from boathouse.variant.shredding.masks import Ints, Mask

Codes = npt.NDArray[np.integer[Any]]


class Rows:
    """The rows of a column: row i has the dictionary `meta.codes[i]`. In lenient reading `bad` collects rows."""

    def __init__(self, meta: Dictionaries, lenient: Lenient | None = None, first_row: int = 0) -> None:
        self.meta = meta
        self.lenient = lenient
        self.first_row = first_row
        self.bad: Mask | None = None
        self.names = Names(meta)

    def piece(self, start: int, stop: int) -> Rows:
        """Rows start to stop (exclusive), with what is known of their dictionaries."""
        out = Rows(self.meta.with_codes(self.meta.codes[start:stop]), self.lenient, self.first_row + start)
        out.names = self.names
        return out

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
        return Nodes(column, np.arange(len(at)), start, end, Faults(len(at), self.lenient))

    @contextmanager
    def located(self, nodes: Nodes, row: Ints) -> Iterator[None]:
        """Errors about `nodes` name the rows of this column: `row[k]` for row k of theirs."""
        try:
            yield
        except MalformedVariant as error:
            if error.row is not None:
                error.row = self.first_row + int(row[error.row])
            raise
        if nodes.faults.bad is not None:
            self._mark(row[nodes.faults.bad])


class Names:
    """Names in the dictionaries of a column: ids of a name, their order by UTF-8 bytes, which are wanted."""

    def __init__(self, meta: Dictionaries) -> None:
        self._meta = meta
        self._ids: dict[str, Codes] = {}
        self._tables: dict[tuple[str, ...], npt.NDArray[np.int32]] = {}
        self._ranks: Ints | None = None

    def ids(self, name: str) -> Codes:
        """The id of a name in each dictionary, -1 where it is absent; the first where a dictionary repeats it."""
        if name not in self._ids:
            found = self._meta.ids(name)
            if (found == SEVERAL).any():
                found = found.copy()
                for code in np.flatnonzero(found == SEVERAL).tolist():
                    found[code] = self._meta.places(code, name)[0]
            self._ids[name] = found
        return self._ids[name]

    @property
    def _first(self) -> Ints:
        sizes = self._meta.sizes
        return np.cumsum(sizes) - sizes

    def which(self, codes: Codes, ids: Codes, names: Sequence[str]) -> Ints:
        """The position in `names` of the names `ids[k]` of dictionaries `codes[k]`, -1 for others."""
        key = tuple(names)
        if key not in self._tables:
            self._tables[key] = self._table(key)
        return self._tables[key][self._first[codes] + ids].astype(np.int64)

    def _table(self, names: tuple[str, ...]) -> npt.NDArray[np.int32]:
        first = self._first
        table = np.full(int(self._meta.sizes.sum()), -1, np.int32)
        for position, name in enumerate(names):
            found = self._meta.ids(name)
            there = np.flatnonzero(found >= 0)
            table[first[there] + found[there]] = position
            for code in np.flatnonzero(found == SEVERAL).tolist():
                table[first[code] + self._meta.places(code, name)] = position
        return table

    def ranks(self, codes: Codes, ids: Codes) -> Ints:
        """Numbers that order the names as their bytes do, equal ones for equal names; comparable within one call."""
        total = int(self._meta.sizes.sum())
        if self._ranks is None and total > 4 * len(ids) + 4096:
            pairs, back = np.unique(self._first[codes] + ids, return_inverse=True)
            return self._ranked(pairs)[back]
        if self._ranks is None:
            self._ranks = self._ranked(np.arange(total))
        return self._ranks[self._first[codes] + ids]

    def _ranked(self, places: Ints) -> Ints:
        """The ranks of names among the `places`, which count through all dictionaries."""
        names = self.text(places).to_arrow().dictionary_encode()
        order = np.asarray(pc.sort_indices(names.dictionary))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return rank[np.asarray(names.indices)] if len(places) else np.zeros(0, np.int64)

    def places(self, codes: Codes, ids: Codes) -> Ints:
        """The numbers of names counted through all dictionaries, for `text`."""
        return self._first[codes] + ids

    def text(self, places: Ints) -> Ragged:
        """The bytes of names."""
        sizes = self._meta.sizes
        if len(places) * 4 < int(sizes.sum()):
            codes = np.searchsorted(np.cumsum(sizes), places, side="right")
            some, back = np.unique(codes, return_inverse=True)
            *_, start, end, counts = self._meta.spans(some)
            at = (np.cumsum(counts) - counts)[back] + places - self._first[codes]
        else:
            *_, start, end, _ = self._meta.spans(np.arange(len(sizes)))
            at = places
        start, length = start[at], end[at] - start[at]
        offsets = np.concatenate([[0], np.cumsum(length)])
        data = np.empty(int(offsets[-1]), np.uint8)
        copy(data, offsets[:-1], self._meta.data, start, length)
        return Ragged(offsets, data)

"""What all parts of one operation on a shredded column share: its metadata, and the rows found malformed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import MalformedVariant
from boathouse.variant.columns.faults import Faults, Lenient
from boathouse.variant.columns.layout import Column
from boathouse.variant.columns.names import SEVERAL, Dictionaries
from boathouse.variant.columns.nodes import Nodes
from boathouse.variant.columns.ragged import Ragged
from boathouse.variant.shredding.masks import Ints, Mask


class Rows:
    """The rows of a column: row i has the dictionary `meta.codes[i]`. In lenient reading `bad` collects rows."""

    def __init__(self, meta: Dictionaries, lenient: Lenient | None = None, first_row: int = 0) -> None:
        self.meta = meta
        self.lenient = lenient
        self.first_row = first_row
        self.bad: Mask | None = None
        self._ids: dict[str, npt.NDArray[np.int32]] = {}
        self._names: Names | None = None

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

    def ids(self, name: str) -> npt.NDArray[np.int32]:
        """The id of a name in each dictionary, -1 where it is absent; the first where a dictionary repeats it."""
        if name not in self._ids:
            found = self.meta.ids(name)
            if (found == SEVERAL).any():
                found = found.copy()
                for code in np.flatnonzero(found == SEVERAL).tolist():
                    found[code] = self.meta.places(code, name)[0]
            self._ids[name] = found
        return self._ids[name]

    def names(self) -> Names:
        """The names of all dictionaries in one order."""
        if self._names is None:
            self._names = Names.of(self.meta)
        return self._names

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
    """All names of a set of dictionaries, each with its rank in the order of UTF-8 bytes."""

    def __init__(self, first: Ints, rank: Ints, distinct: pa.Array) -> None:
        self._first, self._rank, self._distinct = first, rank, distinct

    @staticmethod
    def of(meta: Dictionaries) -> Names:
        sound = np.flatnonzero(meta.wrong == 0)
        *_, start, end, counts = meta.spans(sound)
        length = end - start
        ends = np.concatenate([[0], np.cumsum(length)])
        gathered = np.repeat(start - ends[:-1], length) + np.arange(ends[-1])
        names = Ragged(ends, meta.data[gathered]).to_arrow().dictionary_encode()
        order = np.asarray(pc.sort_indices(names.dictionary))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        first = np.zeros(len(meta), np.int64)
        first[sound] = np.cumsum(counts) - counts
        codes = np.asarray(names.indices)
        return Names(first, rank[codes] if len(codes) else np.zeros(0, np.int64), names.dictionary.take(pa.array(order)))

    def __len__(self) -> int:
        return len(self._distinct)

    def ranks(self, codes: npt.NDArray[np.int32], ids: npt.NDArray[np.integer]) -> Ints:
        """The rank of each name: id `ids[k]` of dictionary `codes[k]`. The ids have been checked."""
        return self._rank[self._first[codes] + ids]

    def known(self, names: list[str]) -> npt.NDArray[np.int32]:
        """By rank: the position of the name in `names`, -1 if it is not among them."""
        wanted = pa.array([name.encode() for name in names], pa.large_binary())
        found = pc.fill_null(pc.index_in(self._distinct, value_set=wanted), -1)
        return np.asarray(found, np.int32)

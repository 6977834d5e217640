"""Equality deletes: rows are deleted by the values of their key columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from boathouse.arrow.keys import KeyIndex
from boathouse.bits.names import Names
from boathouse.table.tasks import ReadColumn

LoadKeys = Callable[[Mapping[str, Any], Sequence[ReadColumn]], pa.Table]
"""`load(delete, keys)`: the key columns of one DELETES row."""


def key_name(id: int | None, taken: Names) -> str:
    """The name under which a key column is read that the table has not, or has not any more."""
    name = f"_key_{id}"
    while taken.at(name):
        name += "_"
    return name


_INDEXED: Final = 8
"""The combinations of deletes whose indexes are kept: units that share one mostly follow each other."""


@dataclass(frozen=True, slots=True)
class EqualityDeletes:
    """The deletes of one set of key columns that apply to a unit: null equals null, NaN equals NaN, and -0.0 is not
    0.0."""

    keys: tuple[ReadColumn, ...]
    index: KeyIndex

    def mask(self, batch: pa.RecordBatch) -> np.ndarray:
        """Whether each row is deleted."""
        found: np.ndarray = self.index.lookup([batch.column(k.name) for k in self.keys]) >= 0
        return found


class EqualityIndex:
    """The equality deletes of one task: a combination that units share is indexed once, unless many others come
    between."""

    def __init__(self, deletes: Sequence[Mapping[str, Any]], columns: Sequence[ReadColumn], load: LoadKeys) -> None:
        self._deletes = {d["delete"]: d for d in deletes}
        self._columns = {c.field_id: c for c in columns if c.field_id is not None}
        self._load = load
        self._tables: dict[int, pa.Table] = {}
        self._known: dict[tuple[int, ...], tuple[EqualityDeletes, ...]] = {}

    def of(self, deletes: Sequence[int]) -> tuple[EqualityDeletes, ...]:
        """The deletes with these numbers; those that are not by equality are left out."""
        numbers = tuple(n for n in deletes if n in self._deletes)
        if numbers not in self._known:
            if len(self._known) >= _INDEXED:
                del self._known[next(iter(self._known))]
            self._known[numbers] = self._indexed(numbers)
        return self._known[numbers]

    def _indexed(self, numbers: Sequence[int]) -> tuple[EqualityDeletes, ...]:
        by_keys: dict[tuple[int, ...], list[int]] = {}
        for number in numbers:
            by_keys.setdefault(tuple(sorted(self._deletes[number]["keys"])), []).append(number)
        found = []
        for ids, group in by_keys.items():
            keys = tuple(self._columns[id] for id in ids)
            rows = pa.concat_tables([self._table(n, keys) for n in group])
            index = KeyIndex.of([rows.column(k.name) for k in keys], null_matches=True, signed_zeros=True)
            found.append(EqualityDeletes(keys, index))
        return tuple(found)

    def _table(self, number: int, keys: Sequence[ReadColumn]) -> pa.Table:
        if number not in self._tables:
            self._tables[number] = self._load(self._deletes[number], keys)
        return self._tables[number]

"""Where the rows of fragments are after they were written again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boathouse.lance.lineage.sequences import decode_ids
from boathouse.lance.manifests.messages import DataFragment
from boathouse.table.features.random_access import Numbers

_GONE = -1


@dataclass(frozen=True)
class Moves:
    """The addresses of rows before, ascending, and after, in the same order; `removed` are the fragments that are gone,
    and `sources` those that the rows of each new one were in."""

    before: Numbers
    after: Numbers
    removed: frozenset[int]
    sources: dict[int, frozenset[int]]

    @classmethod
    def of(cls, new: Sequence[DataFragment], places: Sequence[bytes], removed: frozenset[int]) -> Moves:
        """`places` are the sequences of the addresses at which the rows of the new fragments were. Raises
        CorruptTableError."""
        found = [decode_ids(raw, f.physical_rows, f.files[0].path) for f, raw in zip(new, places, strict=True)]
        before = np.concatenate([np.empty(0, np.int64), *found])
        after = np.concatenate([np.empty(0, np.int64), *((f.id << 32) + np.arange(f.physical_rows) for f in new)])
        order = np.argsort(before, kind="stable")
        sources = {f.id: frozenset(np.unique(part >> 32).tolist()) for f, part in zip(new, found, strict=True)}
        return cls(before[order], after[order], removed, sources)

    def covered(self, fragments: frozenset[int]) -> frozenset[int]:
        """The new fragments all of whose rows were in these."""
        return frozenset(new for new, old in self.sources.items() if old and old <= fragments)

    def within(self, new: frozenset[int]) -> Moves:
        """Of the rows that are in these new fragments; the others are gone."""
        kept = np.isin(self.after >> 32, np.fromiter(new, np.int64, len(new)))
        return Moves(self.before[kept], self.after[kept], self.removed, {id: self.sources[id] for id in new})

    def addresses(self, addresses: Numbers) -> Numbers:
        """Where the rows at these addresses are, -1: nowhere. Rows of other fragments stay where they are."""
        at = np.searchsorted(self.before, addresses)
        known = np.append(self.before, _GONE)[at] == addresses
        found = np.where(known, np.append(self.after, _GONE)[at], _GONE)
        lost = np.isin(addresses >> 32, np.fromiter(self.removed, np.int64, len(self.removed)))
        return np.where(lost, found, addresses)

    def stretch(self, fragment: int, start: int, length: int) -> Numbers:
        """Where the rows of a stretch of a fragment are that are left, in their order."""
        first, stop = np.searchsorted(self.before, ((fragment << 32) + start, (fragment << 32) + start + length))
        return self.after[first:stop]

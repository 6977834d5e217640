"""Where rows are: by their number in a scan, by their stable ids, or by their addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from boathouse.arrow.filesystem import data_files
from boathouse.errors import CorruptTableError
from boathouse.lance.deletions.files import read_deletions
from boathouse.lance.fragments import fragment_batches, fragment_counts, part_of
from boathouse.lance.lineage.stored import Fragment, inlined
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.manifests.messages import DataFragment
from boathouse.lance.options import NATIVE, NO_PARTITION
from boathouse.lance.paths import deletion_root
from boathouse.lance.read_spec import LINEAGE, read_spec, with_native
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table.features.random_access import Numbers, Places
from boathouse.table.metadata_columns import OFFERED, check_offered
from boathouse.table.plan import ScanPlan
from boathouse.table.tally import Tally
from boathouse.table.units import deletes_schema, files_schema, stats_type

_THREADS: Final = 8
_KEPT: Final = "_places"
"""Where a snapshot has them."""
_OFFSET_BITS: Final = 32
"""The lower half of an address is the position in the fragment."""


@dataclass(frozen=True)
class LancePlaces:
    """See `table.features.RandomAccess`. What is learnt of the fragments is kept with the version."""

    snapshot: LanceSnapshot

    @staticmethod
    def of(snapshot: LanceSnapshot) -> LancePlaces:
        """The same ones for the same snapshot."""
        found: LancePlaces = vars(snapshot).setdefault(_KEPT, LancePlaces(snapshot))
        return found

    @property
    def rows(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def by_number(self, numbers: Numbers) -> Places:
        units = np.searchsorted(self._ends, numbers, side="right")
        within = numbers - (self._ends - self._live)[units]
        for unit, mine in _by_unit(units):
            gone = self._gone(unit)
            if len(gone):
                # So many rows are left before each deleted one.
                within[mine] += np.searchsorted(gone - np.arange(len(gone)), within[mine], side="right")
        return Places(units, within, np.arange(len(numbers)))

    def by_id(self, ids: Numbers) -> Places:
        return self._index.find(ids) if has_stable_row_ids(self.snapshot.manifest) else self.by_address(ids)

    def by_place(self, units: Numbers, positions: Numbers) -> Places:
        order = np.argsort(self._ids)
        return Places(order[np.searchsorted(self._ids, units, sorter=order)], positions, np.arange(len(units)))

    def plan(self, units: Numbers, columns: Sequence[str] | None, hidden: Sequence[str]) -> ScanPlan:
        snapshot, where = self.snapshot, self.snapshot.location.uri
        lineage = LINEAGE if has_stable_row_ids(snapshot.manifest) else {}
        check_offered(hidden, OFFERED | lineage.keys(), "Lance", where)
        fragments = tuple(self._fragments[unit] for unit in units.tolist())
        chosen = replace(snapshot.manifest, fragments=fragments)
        files = fragment_batches(chosen, where, (), snapshot.rows_of)
        found = pa.Table.from_batches(files, files_schema(NO_PARTITION, stats_type(()), NATIVE))
        if not lineage.keys().isdisjoint(hidden):
            found = with_native(found, [inlined(f, snapshot.stores, where) for f in fragments])
        read = read_spec(snapshot, columns, None, hidden)
        return ScanPlan.of(read, found, deletes_schema().empty_table(), None, Tally())

    def by_address(self, ids: Numbers) -> Places:
        """The places of rows by their addresses, whatever their ids are; those that are gone have none."""
        order = np.argsort(self._ids)
        fragments, positions = ids >> _OFFSET_BITS, ids & ((1 << _OFFSET_BITS) - 1)
        at = np.searchsorted(self._ids[order], fragments)
        at[at == len(order)] = 0
        units = order[at] if len(order) else at
        there = np.zeros(len(ids), np.bool_)
        if len(order):
            there = (self._ids[units] == fragments) & (positions < self._rows[units]) & (ids >= 0)
        asked = np.flatnonzero(there)
        for unit, mine in _by_unit(units[asked]):
            gone = self._gone(unit)
            if len(gone):
                there[asked[mine]] = ~np.isin(positions[asked[mine]], gone)
        return Places(units[there], positions[there], np.flatnonzero(there))

    @property
    def _fragments(self) -> tuple[DataFragment, ...]:
        return self.snapshot.manifest.fragments

    @cached_property
    def _ids(self) -> Numbers:
        return np.array([f.id for f in self._fragments], np.int64)

    @cached_property
    def _counts(self) -> tuple[Numbers, Numbers]:
        """Of each fragment how many rows it has, and how many of them are deleted."""
        manifest = self.snapshot.manifest
        found = [fragment_counts(manifest, f, self.snapshot.rows_of) for f in self._fragments]
        gone = [len(self._gone(i)) if deleted is None else deleted for i, (_, _, deleted) in enumerate(found)]
        return np.array([rows for _, rows, _ in found], np.int64), np.array(gone, np.int64)

    @property
    def _rows(self) -> Numbers:
        return self._counts[0]

    @cached_property
    def _live(self) -> Numbers:
        return self._counts[0] - self._counts[1]

    @cached_property
    def _ends(self) -> Numbers:
        return np.cumsum(self._live)

    @cached_property
    def _deletions(self) -> dict[int, Numbers]:
        return {}

    def _gone(self, unit: int) -> Numbers:
        """The deleted positions of a fragment, ascending."""
        fragment = self._fragments[unit]
        if fragment.deletion_file is None:
            return np.empty(0, np.int64)
        if unit not in self._deletions:
            root = deletion_root(self.snapshot.manifest, fragment, self.snapshot.location.uri)
            self._deletions[unit] = read_deletions(self.snapshot.stores, root, fragment).positions()
        return self._deletions[unit]

    @cached_property
    def _index(self) -> RowIds:
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="boathouse") as pool:
            [*pool.map(self._gone, range(len(self._fragments)))]
        return RowIds.of((self._ids_of(i), self._gone(i)) for i in range(len(self._fragments)))

    def _ids_of(self, unit: int) -> Numbers:
        snapshot, root = self.snapshot, self.snapshot.location.uri
        fragment = inlined(self._fragments[unit], snapshot.stores, root)
        parts = tuple(part_of(snapshot.manifest, file, root) for file in fragment.files)
        return Fragment(fragment, int(self._rows[unit]), parts, data_files(snapshot.stores), root).row_ids()


def _by_unit(units: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Each unit with where it is."""
    order = np.argsort(units, kind="stable")
    found, begins = np.unique(units[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, begins)[1:])


@dataclass(frozen=True, slots=True)
class RowIds:
    """Ids by stretches that follow each other in one fragment too: as many as there are stretches, not rows."""

    first: Numbers
    count: Numbers
    unit: Numbers
    position: Numbers

    @staticmethod
    def of(units: Iterator[tuple[Numbers, Numbers]]) -> RowIds:
        """From the ids of each unit, and its deleted positions. Raises CorruptTableError for an id of two rows."""
        parts = [np.array(_stretches(ids, gone, unit), np.int64) for unit, (ids, gone) in enumerate(units)]
        table = np.concatenate(parts, axis=1) if parts else np.empty((4, 0), np.int64)
        first, count, unit, position = table[:, np.argsort(table[0], kind="stable")]
        twice = np.flatnonzero(first[1:] < first[:-1] + count[:-1])
        if len(twice):
            raise CorruptTableError(f"two rows have the id {int(first[twice[0] + 1])}")
        return RowIds(first, count, unit, position)

    def find(self, ids: Numbers) -> Places:
        at = np.searchsorted(self.first, ids, side="right") - 1
        there = at >= 0
        there[there] = ids[there] - self.first[at[there]] < self.count[at[there]]
        at, asked = at[there], np.flatnonzero(there)
        return Places(self.unit[at], self.position[at] + ids[asked] - self.first[at], asked)


def _stretches(ids: Numbers, gone: Numbers, unit: int) -> tuple[Numbers, ...]:
    """First id, length, unit and first position of each."""
    positions = np.arange(len(ids))
    if len(gone):
        alive = np.ones(len(ids), np.bool_)
        alive[gone] = False
        positions, ids = positions[alive], ids[alive]
    if not len(ids):
        return (np.empty(0, np.int64),) * 4
    cuts = np.flatnonzero((np.diff(ids) != 1) | (np.diff(positions) != 1)) + 1
    starts = np.concatenate(([0], cuts))
    lengths = np.diff(np.concatenate((starts, [len(ids)])))
    return ids[starts], lengths, np.full(len(starts), unit), positions[starts]

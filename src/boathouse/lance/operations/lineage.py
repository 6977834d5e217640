"""The row ids of new fragments, and since which versions their rows are (table format, "Stable Row IDs").

New rows get the next ids of the head, so again where a commit is built again. Rows that were updated or moved bring the
ids that they had; the fragments in which they were say when they came, and of moved ones when they last changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from boathouse.arrow.filesystem import data_files
from boathouse.errors import InvalidArgumentError
from boathouse.lance.deletions.files import read_deletions
from boathouse.lance.fragments import part_of
from boathouse.lance.lineage.sequences import (
    FIRST_NEW,
    Numbers,
    decode_ids,
    encode_ids,
    encode_versions,
    one_version,
    ranges,
)
from boathouse.lance.lineage.stored import Fragment, inlined
from boathouse.lance.manifests.messages import DataFragment
from boathouse.lance.paths import deletion_root

if TYPE_CHECKING:
    from boathouse.lance.snapshot import LanceSnapshot


@dataclass(frozen=True)
class Sources:
    """The fragments of the head that rows of new ones were in."""

    head: LanceSnapshot | None
    fragments: Sequence[DataFragment]

    @cached_property
    def _found(self) -> tuple[Fragment, ...]:
        return tuple(map(self._opened, self.fragments))

    def _opened(self, fragment: DataFragment) -> Fragment:
        assert self.head is not None
        root, stores = self.head.location.uri, self.head.stores
        parts = tuple(part_of(self.head.manifest, f, root) for f in fragment.files)
        rows = fragment.physical_rows or self.head.rows_of(fragment)
        return Fragment(inlined(fragment, stores, root), rows, parts, data_files(stores), root)

    @cached_property
    def _ids(self) -> tuple[Numbers, Numbers]:
        """The ids in order, and where each is in the fragments one after another. A row that was updated is deleted
        where it was before, under the same id."""
        ids = np.concatenate([f.row_ids() for f in self._found] or [np.empty(0, np.int64)])
        live = np.arange(len(ids))
        if len(np.unique(ids)) < len(ids):
            live = np.flatnonzero(np.concatenate(list(map(self._live, self._found))))
        order = live[np.argsort(ids[live], kind="stable")]
        return ids[order], order

    def _live(self, fragment: Fragment) -> npt.NDArray[np.bool_]:
        assert self.head is not None
        if fragment.message.deletion_file is None:
            return np.ones(fragment.rows, np.bool_)
        root = deletion_root(self.head.manifest, fragment.message, self.head.location.uri)
        return ~read_deletions(self.head.stores, root, fragment.message).mask(0, fragment.rows)

    def versions(self, kind: Literal["updated", "created"], of: Numbers) -> Numbers:
        """The versions of these rows. Raises InvalidArgumentError for a row that is in none of the fragments."""
        ids, order = self._ids
        at = np.searchsorted(ids, of)
        known = np.append(ids, -1)[np.minimum(at, len(ids))] == of
        if not known.all():
            raise InvalidArgumentError(f"a row with the id {of[~known][0]}, which no changed fragment has")
        return np.concatenate([f.versions(kind) for f in self._found])[order[at]] if len(of) else of


def with_lineage(
    files: Sequence[DataFragment], version: int, next_row_id: int, sources: Sources, moved: bool
) -> tuple[tuple[DataFragment, ...], int]:
    """The fragments, of a commit that makes `version`, with ids and versions of their rows; and the next row id then.

    `moved` rows did not change. Raises InvalidArgumentError.
    """
    found = []
    for fragment in files:
        rows = fragment.physical_rows
        if fragment.inline_row_ids is None:
            ids, since = ranges([(next_row_id, next_row_id + rows)]), one_version(version, rows)
            found.append(replace(fragment, inline_row_ids=ids, inline_updated=since, inline_created=since))
            next_row_id += rows
            continue
        numbers = decode_ids(fragment.inline_row_ids, rows, fragment.files[0].path)
        new = numbers >= FIRST_NEW
        count = int(new.sum())
        numbers[new] = np.arange(next_row_id, next_row_id + count)
        next_row_id += count
        created, updated = np.full(rows, version, np.int64), np.full(rows, version, np.int64)
        created[~new] = sources.versions("created", numbers[~new])
        if moved:
            updated[~new] = sources.versions("updated", numbers[~new])
        fragment = replace(
            fragment,
            inline_row_ids=encode_ids(numbers),
            inline_updated=encode_versions(updated),
            inline_created=encode_versions(created),
        )
        found.append(fragment)
    return tuple(found), next_row_id

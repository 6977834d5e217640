"""Delete: fragments get deletion files, or are removed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from boathouse.bits.roaring import EMPTY, Bitmap, deserialize64
from boathouse.errors import InvalidArgumentError
from boathouse.lance.deletions.files import read_deletions, write_deletions
from boathouse.lance.manifests.messages import DataFragment, Delete
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, ids_of, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.lance.paths import deletion_root
from boathouse.table.change import Change
from boathouse.table.edits import RemoveFiles, SetDeletes
from boathouse.table.verdict import Verdict


class DeleteOperation(OurOperation):
    """Deletion files of concurrent deletes are merged when it is built again."""

    name = "delete"

    def touched(self, message: Delete) -> frozenset[int]:
        return ids_of(message.updated_fragments) | frozenset(message.deleted_fragment_ids)

    def brought(self, message: Delete) -> Iterable[DataFragment]:
        return message.updated_fragments

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return bool(kinds) and kinds <= {RemoveFiles, SetDeletes}

    def build(self, build: Build) -> Built:
        lost = LostRows.of(build)
        delete = Delete(
            updated_fragments=tuple(lost.updated.values()),
            deleted_fragment_ids=tuple(lost.removed),
            predicate=build.change.parameters.get("predicate", ""),
        )
        return build.built(build.with_fragments(lost.kept(build)), tuple(lost.side), delete=delete)

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.name == "merge":
            return pair.schema_replan(theirs)  # it may bring other values, or put the rows elsewhere in a fragment
        return pair.after_fragments(theirs, except_in="delete")


@dataclass
class LostRows:
    """What a change that removes rows leaves of the head's fragments: those with a new deletion file, and the ids of
    those that go. `side` are the files written."""

    updated: dict[int, DataFragment] = field(default_factory=dict)
    removed: list[int] = field(default_factory=list)
    side: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, build: Build) -> LostRows:
        present = {f.id: f for f in build.base.fragments}
        lost = cls(removed=[i for i in build.removed() if i in present])
        for id, rows in _deleted(build.change).items():
            fragment = present.get(id)
            if fragment is not None and id not in lost.removed:  # else a concurrent delete removed all of its rows
                lost.delete(build, fragment, rows)
        return lost

    def kept(self, build: Build) -> list[DataFragment]:
        """The head's fragments after the change."""
        return [self.updated.get(f.id, f) for f in build.base.fragments if f.id not in self.removed]

    def delete(self, build: Build, fragment: DataFragment, deleted: Bitmap) -> None:
        assert build.head is not None
        stores, base = build.context.stores, build.base
        before = EMPTY
        if fragment.deletion_file is not None:
            before = read_deletions(stores, deletion_root(base, fragment, build.root), fragment)
        rows = fragment.physical_rows or build.head.rows_of(fragment)
        after = before | deleted
        if len(after) and int(after.positions()[-1]) >= rows:
            raise InvalidArgumentError(f"row {int(after.positions()[-1])} of fragment {fragment.id}, which has {rows}")
        if len(after) == rows:
            self.removed.append(fragment.id)
        elif len(after) > len(before):
            file, uri = write_deletions(stores, build.root, fragment.id, base.version, after)
            self.side.append(uri)
            self.updated[fragment.id] = replace(fragment, deletion_file=file, physical_rows=rows)


def _deleted(change: Change) -> dict[int, Bitmap]:
    """The newly deleted rows by the id of their fragment."""
    found: dict[int, Bitmap] = {}
    for edit in change.all(SetDeletes):
        for id, vector in zip(edit.units.column("unit").to_pylist(), edit.vectors):
            found[id] = found.get(id, EMPTY) | deserialize64(vector)
    return found

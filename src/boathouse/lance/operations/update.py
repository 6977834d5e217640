"""Update: rows are removed from fragments, and others added in new ones."""

from __future__ import annotations

from collections.abc import Iterable

from boathouse.lance.manifests.messages import DataFragment, Update
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, ids_of, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.lance.operations.delete import LostRows
from boathouse.table.change import Change
from boathouse.table.edits import AddColumn, AddFiles, RemoveFiles, SetDeletes, SetType
from boathouse.table.verdict import Verdict

_REMOVES = {RemoveFiles, SetDeletes}
_SCHEMA = ("merge", "project")


class UpdateOperation(OurOperation):
    """The rows that an update, a merge or an overwrite of a part writes were computed from those that it removes."""

    name = "update"

    def touched(self, message: Update) -> frozenset[int]:
        return ids_of(message.updated_fragments) | frozenset(message.removed_fragment_ids)

    def brought(self, message: Update) -> Iterable[DataFragment]:
        return (*message.updated_fragments, *message.new_fragments)

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return bool(kinds & _REMOVES) and kinds <= {*_REMOVES, AddFiles, AddColumn, SetType}

    def build(self, build: Build) -> Built:
        lost, fields = LostRows.of(build), build.fields()
        files = build.new_files(fields)
        new = build.numbered(files, lost=(*lost.updated, *lost.removed))
        manifest = build.with_fragments(lost.kept(build), new)
        if fields != build.base.fields:
            return build.merged(manifest, fields, tuple(lost.side))
        update = Update(
            removed_fragment_ids=tuple(lost.removed),
            updated_fragments=tuple(lost.updated.values()),
            new_fragments=files,
            fields_for_preserving_frag_bitmap=tuple(f.id for f in build.base.fields),
        )
        return build.built(manifest, tuple(lost.side), update=update)

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.name in _SCHEMA:
            return pair.schema_replan(theirs)
        return pair.after_fragments(theirs)

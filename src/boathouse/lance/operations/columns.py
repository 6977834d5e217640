"""Merge: fragments and fields change together; ours are new columns, with rows or without, beside which others may be
renamed or dropped."""

from __future__ import annotations

from dataclasses import replace

from boathouse.lance.manifests.messages import Merge
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, ids_of, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.lance.operations.project import projected_fragments, without_lost_indices
from boathouse.table.change import Change
from boathouse.table.edits import AddColumn, DropColumn, RenameColumn, SetType
from boathouse.table.verdict import Rebase, Verdict

_NEW = {AddColumn, SetType}


class MergeOperation(OurOperation):
    """New columns without data: every row reads as null."""

    name = "merge"

    def touched(self, message: Merge) -> frozenset[int]:
        return ids_of(message.fragments)

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return bool(kinds & _NEW) and kinds <= {*_NEW, RenameColumn, DropColumn}

    def build(self, build: Build) -> Built:
        fields = build.fields()
        built = build.merged(projected_fragments(build.base, fields), fields)
        return replace(built, document=without_lost_indices(built.document, build.root))

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.replaces_table:
            return pair.table_replaced(theirs)
        ours = {e.name.lower() for e in pair.change.all(AddColumn)}
        both = sorted(ours & {f.name.lower() for f in pair.head.fields if f.parent_id < 0})
        if both:
            text = f"a {theirs.operation.name} added the same columns: {', '.join(both)}"
            return pair.stop("schema-changed", theirs, text)
        return Rebase()

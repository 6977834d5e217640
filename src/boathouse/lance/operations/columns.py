"""Merge: fragments and fields change together; ours are new columns, with rows or without."""

from __future__ import annotations

from boathouse.lance.manifests.messages import Merge
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, ids_of, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.table.change import Change
from boathouse.table.edits import AddColumn, SetType
from boathouse.table.verdict import Rebase, Verdict


class MergeOperation(OurOperation):
    """New columns without data: every row reads as null."""

    name = "merge"

    def touched(self, message: Merge) -> frozenset[int]:
        return ids_of(message.fragments)

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return bool(kinds) and kinds <= {AddColumn, SetType}

    def build(self, build: Build) -> Built:
        return build.merged(build.base, build.fields())

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.replaces_table:
            return pair.table_replaced(theirs)
        ours = {e.name.lower() for e in pair.change.all(AddColumn)}
        both = sorted(ours & {f.name.lower() for f in pair.head.fields if f.parent_id < 0})
        if both:
            text = f"a {theirs.operation.name} added the same columns: {', '.join(both)}"
            return pair.stop("schema-changed", theirs, text)
        return Rebase()

"""Append: new fragments."""

from __future__ import annotations

from collections.abc import Iterable

from boathouse.lance.manifests.messages import Append, DataFragment
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.table.change import Change
from boathouse.table.edits import AddColumn, AddFiles, SetType
from boathouse.table.verdict import Verdict


class AppendOperation(OurOperation):
    """Rows in new fragments, or an application transaction alone."""

    name = "append"
    only_adds = True

    def brought(self, message: Append) -> Iterable[DataFragment]:
        return message.fragments

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return bool(change.edits) and (not kinds or AddFiles in kinds) and kinds <= {AddFiles, AddColumn, SetType}

    def build(self, build: Build) -> Built:
        fields = build.fields()
        files = build.new_files(fields)
        manifest = build.with_fragments(build.base.fragments, build.numbered(files))
        if fields != build.base.fields:
            return build.merged(manifest, fields)
        return build.built(manifest, append=Append(fragments=files))

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        return pair.table_replaced(theirs) if theirs.operation.replaces_table else pair.schema(theirs)

"""CreateIndex: indices are made, replaced or dropped; no row changes (table format, "Indices")."""

from __future__ import annotations

from dataclasses import replace

from boathouse.lance.manifests.indices import IndexMetadata, IndexSection
from boathouse.lance.manifests.messages import CreateIndex, DataFragment, Manifest
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.table.change import Change
from boathouse.table.edits import DropIndex, SetIndex
from boathouse.table.verdict import Rebase, Verdict


class CreateIndexOperation(OurOperation):
    name = "create_index"
    keeps_rows = True

    def before_any(self, pair: Pair, theirs: Theirs) -> Verdict | None:
        """Neither rows, nor the schema, nor properties change: it only means something to other indices."""
        return None if self.describes(pair.change) else Rebase()

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return bool(kinds) and kinds <= {SetIndex, DropIndex}

    def build(self, build: Build) -> Built:
        assert build.head is not None
        change, document = build.change, build.head.document
        section = IndexSection() if document.index is None else IndexSection.decode(document.index, where=build.root)
        names = _names(change)
        from boathouse.lance.indices.written import written  # noqa: PLC0415  # it loads what writes and reads rows

        side: list[str] = []
        new: list[IndexMetadata] = []
        for edit in change.all(SetIndex):
            made, uris = written(build, edit)
            new.append(made)
            side += uris
        gone = tuple(i for i in section.indices if i.name in names)
        kept = tuple(i for i in section.indices if i.name not in names)
        index = replace(section, indices=(*kept, *new)).encode()
        operation = {"create_index": CreateIndex(new_indices=tuple(new), removed_indices=gone)}
        return Built(replace(document, index=index), operation, tuple(side))

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.replaces_table:
            return pair.table_replaced(theirs)
        name, message = theirs.operation.name, theirs.message
        if isinstance(message, CreateIndex):
            both = sorted(_names(pair.change) & {i.name for i in (*message.new_indices, *message.removed_indices)})
            text = f"the same indices were made or dropped: {', '.join(both)}"
            return pair.replan("concurrent-index", theirs, text) if both else Rebase()
        fields = {column_field(pair.planned, edit) for edit in pair.change.all(SetIndex)}
        if not fields <= {f.id for f in pair.head.fields}:
            return pair.schema_replan(theirs)
        if fields and (name == "rewrite" or not _same_files(pair.planned, pair.head, fields)):
            return pair.replan("rows-moved", theirs, f"a {name} moved the rows, or put other values in their place")
        return Rebase()


def _same_files(planned: Manifest, head: Manifest, fields: set[int]) -> bool:
    """Whether the columns are in the same data files in every fragment that both versions have."""

    def files(fragment: DataFragment) -> list[str]:
        return [f.path for f in fragment.files if not fields.isdisjoint(f.fields)]

    then = {f.id: files(f) for f in planned.fragments}
    return all(then.get(f.id, mine) == mine for f, mine in ((f, files(f)) for f in head.fragments))


def column_field(planned: Manifest, edit: SetIndex) -> int:
    """The id of the column, which may have another name since."""
    return next(f.id for f in planned.fields if f.parent_id < 0 and f.name == edit.column)


def _names(change: Change) -> frozenset[str]:
    return frozenset((*(e.name for e in change.all(SetIndex)), *(e.name for e in change.all(DropIndex))))

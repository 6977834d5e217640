"""Merge: fragments and fields change together; ours are new columns, with rows, with values of the rows that are there,
or without, beside which others may be renamed or dropped."""

from __future__ import annotations

from dataclasses import replace

from boathouse.lance.manifests.messages import Merge
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, ids_of, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.lance.operations.column_files import with_column_files
from boathouse.lance.operations.data_replacement import without_values
from boathouse.lance.operations.project import projected_fragments, tightens, without_lost_indices
from boathouse.table.change import Change
from boathouse.table.edits import AddColumn, AddColumnFiles, CastColumn, DropColumn, RenameColumn, SetNullable, SetType
from boathouse.table.verdict import Rebase, Verdict

_NEW = {AddColumn, SetType, CastColumn}
_BESIDE = {RenameColumn, DropColumn, SetNullable, AddColumnFiles}


class MergeOperation(OurOperation):
    """Columns without files read as null in every row; files of columns have a row for each that was there."""

    name = "merge"

    def touched(self, message: Merge) -> frozenset[int]:
        return ids_of(message.fragments)

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return bool(kinds & _NEW) and kinds <= _NEW | _BESIDE

    def build(self, build: Build) -> Built:
        fields = build.fields()
        manifest = replace(build.base, fragments=with_column_files(build, fields))
        built = build.merged(projected_fragments(manifest, fields), fields)
        document = without_lost_indices(built.document, build.root)
        if build.change.edit(AddColumnFiles) is not None:
            new = {f.id: f.files[-1] for f in manifest.fragments}
            ids = {id for file in new.values() for id in file.fields}
            document = without_values(document, ids, new, build.root)
        return replace(built, document=document)

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.replaces_table:
            return pair.table_replaced(theirs)
        if pair.change.edit(AddColumnFiles) is not None:
            return pair.replan("columns-computed", theirs, f"a {theirs.operation.name} changed the rows or the columns")
        if tightens(pair.change):
            return pair.replan("nulls-checked", theirs, f"a {theirs.operation.name} came after nulls were looked for")
        ours = {e.name.lower() for e in pair.change.all(AddColumn)}
        both = sorted(ours & {f.name.lower() for f in pair.head.fields if f.parent_id < 0})
        if both:
            text = f"a {theirs.operation.name} added the same columns: {', '.join(both)}"
            return pair.stop("schema-changed", theirs, text)
        return Rebase()

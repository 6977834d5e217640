"""DataReplacement: columns get other values in every row, in files beside those that have the others (table format,
"Transactions")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from boathouse.bits.roaring import Bitmap, deserialize32, serialize32
from boathouse.lance.manifests.file import ManifestFile
from boathouse.lance.manifests.indices import IndexSection
from boathouse.lance.manifests.messages import DataReplacement, DataReplacementGroup
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.lance.operations.column_files import with_column_files
from boathouse.lance.operations.project import projected_fragments
from boathouse.table.change import Change
from boathouse.table.edits import AddColumnFiles
from boathouse.table.verdict import Verdict


class DataReplacementOperation(OurOperation):
    """In the old files the fields are tombstones; files that have nothing else go."""

    name = "data_replacement"

    def touched(self, message: DataReplacement) -> frozenset[int]:
        return frozenset(r.fragment_id for r in message.replacements)

    def describes(self, change: Change) -> bool:
        return kinds_of(change) == {AddColumnFiles}

    def build(self, build: Build) -> Built:
        fragments = with_column_files(build, build.base.fields)
        manifest = projected_fragments(replace(build.base, fragments=fragments), build.base.fields)
        new = {f.id: f.files[-1] for f in fragments}
        groups = tuple(DataReplacementGroup(fragment_id=id, new_file=file) for id, file in new.items())
        ids = {id for file in new.values() for id in file.fields}
        built = build.built(manifest, data_replacement=DataReplacement(replacements=groups))
        return replace(built, document=without_values(built.document, ids, new, build.root))

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.replaces_table:
            return pair.table_replaced(theirs)
        return pair.replan("columns-computed", theirs, f"a {theirs.operation.name} changed the rows or the columns")


def without_values(document: ManifestFile, fields: set[int], fragments: Iterable[int], where: str) -> ManifestFile:
    """The document with indices on any of the fields, or on what is in them, that no longer cover these fragments."""
    if document.index is None or not fields:
        return document
    within = set(fields)
    for f in document.manifest.fields:  # parents come first
        if f.parent_id in within:
            within.add(f.id)
    section = IndexSection.decode(document.index, where=where)
    gone = set(fragments)
    found = []
    for index in section.indices:
        if index.fragment_bitmap is not None and not within.isdisjoint(index.fields):
            covered = set(deserialize32(index.fragment_bitmap, where=where).positions().tolist()) - gone
            index = replace(index, fragment_bitmap=serialize32(Bitmap.of(sorted(covered))))
        found.append(index)
    return replace(document, index=replace(section, indices=tuple(found)).encode())

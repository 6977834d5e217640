"""Project: columns and fields of structs are renamed, dropped, or may be null or not, and no data is written (table
format, "Schema Evolution")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.lance.file.fields import Field
from boathouse.lance.manifests.file import ManifestFile
from boathouse.lance.manifests.indices import IndexSection
from boathouse.lance.manifests.messages import DataFragment, Manifest, Project
from boathouse.lance.manifests.overlays import of_fields
from boathouse.lance.operations.base import OurOperation, Pair, Theirs, kinds_of
from boathouse.lance.operations.build import Build, Built
from boathouse.table.change import Change
from boathouse.table.edits import DropColumn, RenameColumn, SetNullable
from boathouse.table.verdict import Rebase, Verdict


class ProjectOperation(OurOperation):
    """Data files of which no field is left go, and indices on fields that go."""

    name = "project"

    def describes(self, change: Change) -> bool:
        kinds = kinds_of(change)
        return bool(kinds) and kinds <= {RenameColumn, DropColumn, SetNullable}

    def build(self, build: Build) -> Built:
        fields = build.fields()
        manifest = replace(projected_fragments(build.base, fields), fields=fields)
        built = build.built(manifest, project=Project(schema=fields, preserves_nullability=not tightens(build.change)))
        return replace(built, document=without_lost_indices(built.document, build.root))

    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        if theirs.operation.replaces_table:
            return pair.table_replaced(theirs)
        if tightens(pair.change):
            return pair.replan("nulls-checked", theirs, f"a {theirs.operation.name} came after nulls were looked for")
        return Rebase()


def tightens(change: Change) -> bool:
    """Whether a column may no longer be null: other writers must not follow with rows in which it is."""
    return any(not edit.nullable for edit in change.all(SetNullable))


def projected_fragments(manifest: Manifest, fields: Sequence[Field]) -> Manifest:
    """The manifest without data files and overlays that hold none of these fields."""
    return replace(manifest, fragments=tuple(_projected(f, fields) for f in manifest.fragments))


def without_lost_indices(document: ManifestFile, where: str) -> ManifestFile:
    """The document without indices on fields that its manifest does not have."""
    return replace(document, index=_kept_indices(document.index, document.manifest.fields, where))


def _projected(fragment: DataFragment, fields: Sequence[Field]) -> DataFragment:
    """The fragment without data files and overlays that hold none of the fields, nor the ids of rows; one data file
    stays, which knows how many rows there are."""
    ids = {f.id for f in fields}
    kept = tuple(f for f in fragment.files if any(id in ids or id < -2 for id in f.fields))
    kept = kept or fragment.files[:1]
    overlays = of_fields(fragment.overlays, ids)
    if len(kept) == len(fragment.files) and overlays is fragment.overlays:
        return fragment
    return replace(fragment, files=kept, overlays=overlays)


def _kept_indices(section: bytes | None, fields: Sequence[Field], where: str) -> bytes | None:
    if section is None:
        return None
    ids = {f.id for f in fields}
    found = IndexSection.decode(section, where=where)
    kept = tuple(i for i in found.indices if ids.issuperset(i.fields))
    return section if len(kept) == len(found.indices) else replace(found, indices=kept).encode()

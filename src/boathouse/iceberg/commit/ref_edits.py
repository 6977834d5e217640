"""Edits of branches and tags in a commit: what they make of the document, and which concurrent commits they follow."""

from __future__ import annotations

from collections.abc import Iterator

from boathouse.iceberg.commit.written_columns import check_branch
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.updates import RemoveSnapshotRef, SetSnapshotRef
from boathouse.iceberg.refs import ref_json
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.change import Change
from boathouse.table.edits import CherryPick, DropRef, RestoreTo, SetRef
from boathouse.table.verdict import Conflict


def edit_refs(draft: Draft, change: Change, where: str) -> None:
    """Raises InvalidArgumentError for a snapshot that is not there, UnsupportedFeatureError for a branch that would
    have rows without a required column."""
    for edit in change.all(SetRef):
        view = draft.view(where)
        before = view.refs.get(edit.ref.name)
        if edit.ref.type == "branch" and edit.ref.version in view.snapshots:
            check_branch(view, edit.ref.name, edit.ref.version, view.schema, where)
        draft.make(SetSnapshotRef(edit.ref.name, ref_json(edit.ref, before)))
    for gone in change.all(DropRef):
        draft.make(RemoveSnapshotRef(gone.name))


def ref_conflicts(change: Change, planned: IcebergSnapshot, head: IcebergSnapshot) -> Iterator[Conflict]:
    """Refs that are elsewhere by now, and snapshots that expired: whether the edit is right is planned again."""
    before, after = planned.metadata, head.metadata
    for name in (*(e.ref.name for e in change.all(SetRef)), *(e.name for e in change.all(DropRef))):
        if before.refs.get(name) != after.refs.get(name):
            yield Conflict("ref-changed", head.version, f"{name!r} was changed concurrently")
    for edit in change.all(SetRef):
        if edit.ref.version not in after.snapshots:
            yield Conflict("ref-changed", head.version, f"snapshot {edit.ref.version} expired concurrently")
    if change.edit(RestoreTo) is not None or change.edit(CherryPick) is not None:
        yield Conflict("metadata-changed", head.version, "the table was changed concurrently")

"""What expiring versions makes of the metadata document, and what a commit forgets of earlier documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from boathouse.iceberg.metadata.document import TableMetadata, logged_files
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.updates import RemoveSnapshotRef, RemoveSnapshots
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.change import Change
from boathouse.table.edits import ExpireVersions
from boathouse.table.verdict import Conflict

CLEANED: Final = "write.metadata.delete-after-commit.enabled"


def expire_versions(draft: Draft, change: Change) -> None:
    """Snapshots and refs go, and with them their statistics and the log before them."""
    for edit in change.all(ExpireVersions):
        draft.make(*(RemoveSnapshotRef(name) for name in edit.refs))
        if edit.versions:
            draft.make(RemoveSnapshots(edit.versions))


def expiry_conflicts(change: Change, head: IcebergSnapshot) -> Iterator[Conflict]:
    """Any commit may have made a branch or tag of what was to expire, or moved one to it."""
    if change.edit(ExpireVersions) is not None:
        yield Conflict("metadata-changed", head.version, "the table changed since its versions were counted")


def forgotten_documents(before: TableMetadata, after: TableMetadata) -> Sequence[str]:
    """Earlier documents that the later one no longer records, as they are recorded, where the table wants them to be
    removed."""
    if after.properties.get(CLEANED, "false").lower() != "true":
        return ()
    kept = {uri for uri, _ in logged_files(after)}
    return [uri for uri, _ in logged_files(before) if uri not in kept]

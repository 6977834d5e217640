"""The features that versions of Lance tables offer."""

from __future__ import annotations

from typing import cast

from boathouse.lance.refs.files import of_main
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table import features
from boathouse.table.snapshot import Feature

Offered = (
    features.Blobs
    | features.Clonable
    | features.ColumnFiles
    | features.CommitRecords
    | features.Examination
    | features.Expiry
    | features.Indices
    | features.LiveFiles
    | features.MetadataTables
    | features.Orphans
    | features.RandomAccess
    | features.Refs
    | features.Restorable
    | features.VectorIndices
    | features.VersionFiles
)
"""The features of a version of a table."""


# A branch imports what its feature needs: asking for one loads none of the others.


def offered(table: LanceSnapshot, feature: type[Feature]) -> Feature | None:
    """`Target.offers`."""
    found: Offered | None = None
    match feature:
        case features.Blobs:
            from boathouse.lance.blobs.values import LanceBlobs

            found = LanceBlobs(table)
        case features.Clonable:
            from boathouse.lance.cloning import LanceClone

            found = LanceClone(table)
        case features.ColumnFiles:
            from boathouse.lance.columns.column_files import LanceColumnFiles

            found = LanceColumnFiles(table)
        case features.CommitRecords:
            from boathouse.lance.commit.commit_files import LanceCommitRecords

            found = LanceCommitRecords(table)
        case features.Examination:
            from boathouse.lance.examine import LanceExamination

            found = LanceExamination(table)
        case features.Expiry | features.VersionFiles:
            from boathouse.lance.maintain.expiry import LanceExpiry

            found = LanceExpiry(table)
        case features.Indices:
            from boathouse.lance.indices.creation import LanceIndices

            found = LanceIndices(table)
        case features.LiveFiles:
            from boathouse.lance.history import LanceLiveFiles

            found = LanceLiveFiles(of_main(table.context, table.manifest.branch))
        case features.MetadataTables:
            from boathouse.lance.inspect import LanceTables

            found = LanceTables(table)
        case features.Refs:
            from boathouse.lance.refs.named import LanceRefs

            found = LanceRefs(table)
        case features.Orphans:
            from boathouse.lance.maintain.orphans import LanceOrphans

            found = LanceOrphans(table)
        case features.RandomAccess:
            from boathouse.lance.places import LancePlaces

            found = LancePlaces.of(table)
        case features.Restorable:
            from boathouse.lance.operations.restore import LanceRestore

            found = LanceRestore(table)
        case features.VectorIndices:
            from boathouse.lance.indices.neighbours import LanceVectorIndices

            found = LanceVectorIndices(table)
    return cast("Feature | None", found)

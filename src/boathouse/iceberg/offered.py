"""The features that versions of Iceberg tables offer."""

from __future__ import annotations

from typing import cast

from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table import features
from boathouse.table.snapshot import Feature

Offered = (
    features.Adoption
    | features.CherryPicks
    | features.ColumnStatistics
    | features.CommitRecords
    | features.CommitRetries
    | features.Examination
    | features.Expiry
    | features.FileLists
    | features.Identifiers
    | features.KeyDeletes
    | features.LiveFiles
    | features.MetadataTables
    | features.PlanNotes
    | features.RecordedPaths
    | features.Refs
    | features.Relocation
    | features.Restorable
    | features.RewritableDeletes
    | features.Staging
)
"""The features of a version of a table."""


# A branch imports what its feature needs: asking for one loads none of the others.


def offered(table: IcebergSnapshot, feature: type[Feature]) -> Feature | None:
    """`Target.offers`."""
    found: Offered | None = None
    match feature:
        case features.Adoption:
            from boathouse.iceberg.adoption import IcebergAdoption

            found = IcebergAdoption.of(table)
        case features.CherryPicks:
            from boathouse.iceberg.commit.cherry_pick import IcebergCherryPicks

            found = IcebergCherryPicks(table)
        case features.ColumnStatistics:
            from boathouse.iceberg.statistics.files import IcebergStatistics

            found = IcebergStatistics(table)
        case features.CommitRecords:
            from boathouse.iceberg.commit.commit_files import IcebergCommitRecords

            found = IcebergCommitRecords(table)
        case features.CommitRetries:
            from boathouse.iceberg.metadata.commit_retries import asked_retries

            found = asked_retries(table.properties)
        case features.Examination:
            from boathouse.iceberg.examine import IcebergExamination

            found = IcebergExamination(table)
        case features.Expiry | features.Orphans:
            from boathouse.iceberg.maintain.expiry import IcebergExpiry

            found = IcebergExpiry(table)
        case features.FileLists:
            from boathouse.iceberg.maintain.manifests import IcebergFileLists

            found = IcebergFileLists(table)
        case features.Identifiers:
            from boathouse.iceberg.metadata.schema_rules import identifiers

            columns = identifiers(table.schema)
            found = features.Identifiers(columns) if columns else None
        case features.KeyDeletes:
            from boathouse.iceberg.deletes.written_keys import IcebergKeyDeletes

            found = IcebergKeyDeletes(table)
        case features.LiveFiles:
            from boathouse.iceberg.history import IcebergLiveFiles

            found = IcebergLiveFiles(table)
        case features.MetadataTables:
            from boathouse.iceberg.inspect.tables import IcebergTables

            found = IcebergTables(table)
        case features.PlanNotes:
            from boathouse.iceberg.scan import FileNotes

            found = FileNotes()
        case features.RecordedPaths:
            from boathouse.iceberg.commit.delete_files import IcebergRecordedPaths

            found = IcebergRecordedPaths()
        case features.Refs:
            from boathouse.iceberg.refs import IcebergRefs

            found = IcebergRefs(table)
        case features.Relocation:
            from boathouse.iceberg.maintain.relocation import IcebergRelocation

            found = IcebergRelocation(table)
        case features.Restorable:
            from boathouse.iceberg.commit.restore import IcebergRestore

            found = IcebergRestore(table)
        case features.RewritableDeletes:
            from boathouse.iceberg.deletes.rewritable import IcebergRewritableDeletes

            found = IcebergRewritableDeletes(table) if table.metadata.format.deletes else None
        case features.Staging:
            from boathouse.iceberg.commit.staging import STAGED, stages

            found = features.Staging(STAGED) if stages(table.properties) else None
    return cast("Feature | None", found)

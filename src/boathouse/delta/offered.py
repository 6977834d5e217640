"""The features that versions of Delta tables offer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.table import features
from boathouse.table.snapshot import Feature, Snapshot, Target

Offered = (
    features.ChangeFiles
    | features.Clonable
    | features.Clustering
    | features.CommitRecords
    | features.CompactableLog
    | features.Examination
    | features.LiveFiles
    | features.MetadataTables
    | features.Outlined
    | features.PropertySteps
    | features.ProtocolFeatures
    | features.Restorable
    | features.Retention
)
"""The features of a version of a table."""


# A branch imports what its feature needs: asking for one loads none of the others.


def offered(table: DeltaSnapshot, feature: type[Feature]) -> Feature | None:
    """`Target.offers`."""
    found: Offered | None = None
    match feature:
        case features.ChangeFiles:
            from boathouse.delta.features.change_data import DeltaChangeFiles

            found = DeltaChangeFiles(table)
        case features.Clonable:
            from boathouse.delta.commit.clone import DeltaClone
            from boathouse.delta.new_table import NewDelta

            new_table = partial(NewDelta, kind=type(table))
            found = DeltaClone(table, cast("Callable[..., Target]", new_table))
        case features.Clustering:
            from boathouse.delta.features.domains import clustered

            found = clustered(table)
        case features.CommitRecords:
            from boathouse.delta.log.commit_files import DeltaCommitRecords

            found = DeltaCommitRecords(table)
        case features.CompactableLog:
            from boathouse.delta.log.compaction import DeltaLogFiles

            found = DeltaLogFiles(table)
        case features.Examination:
            from boathouse.delta.examine import DeltaExamination

            found = DeltaExamination(table)
        case features.LiveFiles:
            from boathouse.delta.history import DeltaLiveFiles

            found = DeltaLiveFiles(table.context)
        case features.MetadataTables:
            from boathouse.table.inspection import CommonTables

            found = CommonTables(cast("Snapshot", table), metrics=True)
        case features.Outlined:
            from boathouse.delta.outline import DeltaOutline

            found = DeltaOutline(table)
        case features.PropertySteps:
            from boathouse.delta.features.row_tracking import DeltaPropertySteps

            found = DeltaPropertySteps(table)
        case features.ProtocolFeatures:
            from boathouse.delta.features.drop import DeltaProtocolFeatures

            found = DeltaProtocolFeatures(table)
        case features.Restorable:
            from boathouse.delta.commit.restore import DeltaRestore

            found = DeltaRestore(table)
        case features.Retention:
            from boathouse.delta.retention import DeltaRetention

            found = DeltaRetention(table)
    return cast("Feature | None", found)

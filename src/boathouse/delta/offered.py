"""The features of Delta tables; the modules behind one are loaded when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse.table import features

if TYPE_CHECKING:
    from boathouse.delta.adapter import DeltaTable, NewDelta

Offered = (
    features.ChangeFiles
    | features.Clonable
    | features.Clustering
    | features.CommitRecords
    | features.CompactableLog
    | features.Examination
    | features.LiveFiles
    | features.MetadataTables
    | features.ProtocolFeatures
    | features.Restorable
    | features.Retention
)


def offered(snapshot: DeltaTable, feature: type) -> Offered | None:
    """The feature of a version of a table."""
    match feature:
        case features.ChangeFiles:
            from boathouse.delta.change_data import DeltaChangeFiles

            return DeltaChangeFiles(snapshot)
        case features.Clonable:
            from boathouse.delta.adapter import NewDelta
            from boathouse.delta.clone import DeltaClone

            return DeltaClone(snapshot, NewDelta)
        case features.Clustering:
            from boathouse.delta.domains import clustered

            return clustered(snapshot)
        case features.CommitRecords:
            from boathouse.delta.commit_files import DeltaCommitRecords

            return DeltaCommitRecords(snapshot)
        case features.CompactableLog:
            from boathouse.delta.log_compaction import DeltaLogFiles

            return DeltaLogFiles(snapshot)
        case features.Examination:
            from boathouse.delta.examine import DeltaExamination

            return DeltaExamination(snapshot)
        case features.LiveFiles:
            from boathouse.delta.history import DeltaLiveFiles

            return DeltaLiveFiles(snapshot.context)
        case features.MetadataTables:
            from boathouse.table.inspection import CommonTables

            return CommonTables(snapshot, metrics=True)
        case features.ProtocolFeatures:
            from boathouse.delta.feature_drop import DeltaProtocolFeatures

            return DeltaProtocolFeatures(snapshot)
        case features.Restorable:
            from boathouse.delta.restore import DeltaRestore

            return DeltaRestore(snapshot)
        case features.Retention:
            from boathouse.delta.maintain import DeltaRetention

            return DeltaRetention(snapshot)
    return None


def offered_new(table: NewDelta, feature: type) -> features.Adoption | None:
    """The feature of a table that is not created yet."""
    match feature:
        case features.Adoption:
            from boathouse.delta.adopt import DeltaAdoption

            return DeltaAdoption(table)
    return None

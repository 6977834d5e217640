"""The features of Iceberg tables; the modules behind one are loaded when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse.table import features

if TYPE_CHECKING:
    from boathouse.iceberg.adapter import IcebergTable

Offered = features.Identifiers | features.LiveFiles | features.MetadataTables | features.PlanNotes


def offered(snapshot: IcebergTable, feature: type) -> Offered | None:
    """The feature of a version of a table."""
    match feature:
        case features.Identifiers:
            from boathouse.iceberg.schema_rules import identifiers

            columns = identifiers(snapshot.schema)
            return features.Identifiers(columns) if columns else None
        case features.LiveFiles:
            from boathouse.iceberg.history import IcebergLiveFiles

            return IcebergLiveFiles(snapshot)
        case features.MetadataTables:
            from boathouse.iceberg.inspect.tables import IcebergTables

            return IcebergTables(snapshot)
        case features.PlanNotes:
            from boathouse.iceberg.scan import FileNotes

            return FileNotes()
    return None

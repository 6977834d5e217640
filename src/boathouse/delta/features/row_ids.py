"""What a row keeps when it is copied or updated: its id and the version that last changed it (PROTOCOL.md, "Row
Tracking", "Materialized Row IDs").

A row of a file that was written for it takes both from the file's add action. Files with rows that were there before
store both in columns whose names are properties of the table.
"""

from __future__ import annotations

from typing import Final

from boathouse.delta.actions import Metadata, Protocol
from boathouse.delta.features.support import supports
from boathouse.delta.schema import PHYSICAL_NAME
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.table.metadata_columns import ROW_ID, ROW_VERSION
from boathouse.types import INT64, Field

ENABLED: Final = "delta.enableRowTracking"
SUSPENDED: Final = "delta.rowTrackingSuspended"
ID_COLUMN: Final = "delta.rowTracking.materializedRowIdColumnName"
VERSION_COLUMN: Final = "delta.rowTracking.materializedRowCommitVersionColumnName"


def is_tracked(snapshot: DeltaSnapshot) -> bool:
    """Whether every row has an id that readers may rely on."""
    return is_enabled(snapshot.protocol, snapshot.metadata)


def is_enabled(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether rows are tracked under this protocol and metadata."""
    return supports(protocol, "rowTracking") and metadata.flag(ENABLED)


def carried(snapshot: DeltaSnapshot) -> tuple[Field, ...]:
    """The fields of `WriteContext.carried`; none if rows are not tracked, or the table does not name the columns.

    Names that a column of the table has already are left out: its rows cannot be told from their ids.
    """
    if not is_tracked(snapshot):
        return ()
    configuration = snapshot.metadata.configuration
    names = ((ROW_ID, configuration.get(ID_COLUMN)), (ROW_VERSION, configuration.get(VERSION_COLUMN)))
    if any(not stored or snapshot.schema.places.at(hidden) for hidden, stored in names):
        return ()
    return tuple(Field(hidden, INT64, metadata={PHYSICAL_NAME: stored}) for hidden, stored in names)

"""Metadata columns: what is known of a row beside the table's own columns, by reserved names."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final

from boathouse.errors import UnsupportedFeatureError
from boathouse.types import BOOLEAN, INT32, INT64, STRING, TIMESTAMP, DataType, StructType


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """The type of one metadata column."""

    name: str
    type: DataType
    nullable: bool


UNIT: Final = "_unit"
POSITION: Final = "_pos"
FILE: Final = "_file"
SPEC: Final = "_spec_id"
SEQUENCE: Final = "_sequence"
DELETED: Final = "_deleted"
PARTITION: Final = "_partition"
ROW_ID: Final = "_row_id"
ROW_VERSION: Final = "_row_version"
LAST_UPDATED: Final = "_last_updated_sequence_number"
CHANGE_TYPE: Final = "_change_type"
COMMIT_VERSION: Final = "_commit_version"
COMMIT_TIMESTAMP: Final = "_commit_timestamp"

METADATA_COLUMNS: Final = {
    c.name: c
    for c in (
        MetadataColumn(UNIT, INT64, False),  # the unit's id in its snapshot
        MetadataColumn(POSITION, INT64, False),  # the row's position in the physical file
        MetadataColumn(FILE, STRING, False),
        MetadataColumn(SPEC, INT32, False),
        MetadataColumn(SEQUENCE, INT64, True),
        MetadataColumn(DELETED, BOOLEAN, False),  # where it is read, deleted rows are read too
        MetadataColumn(PARTITION, StructType(()), False),  # its fields are those of all specs of the table
        MetadataColumn(ROW_ID, INT64, True),  # stays with a row when it is updated or moved
        MetadataColumn(ROW_VERSION, INT64, True),
        MetadataColumn(LAST_UPDATED, INT64, True),  # Iceberg's name for the version of a row
        MetadataColumn(CHANGE_TYPE, STRING, False),  # insert, delete, update_preimage, update_postimage
        MetadataColumn(COMMIT_VERSION, INT64, False),
        MetadataColumn(COMMIT_TIMESTAMP, TIMESTAMP, False),
    )
}
VERSIONS_OF_ROWS: Final = frozenset({ROW_VERSION, LAST_UPDATED})
"""Those of which a row gets new ones when its values change."""
OF_EVERY_UNIT: Final = frozenset({UNIT, POSITION, FILE, SPEC, SEQUENCE})
"""Those that describe a row's place, in every format."""
CHANGES: Final = (CHANGE_TYPE, COMMIT_VERSION, COMMIT_TIMESTAMP)
"""Those of the rows of `changes`, in their order: whoever plans gives their values (`ReadSpec.constants`)."""
SELECTABLE: Final = frozenset(METADATA_COLUMNS) - frozenset(CHANGES)
"""Those that a scan may ask for by name."""
OFFERED: Final = OF_EVERY_UNIT | frozenset(CHANGES)
"""Those that every format offers."""


def check_offered(names: Sequence[str], offered: Container[str], format: str, where: str) -> None:
    """Raises UnsupportedFeatureError for a metadata column that the format does not have."""
    for name in names:
        if name not in offered:
            raise UnsupportedFeatureError(
                f"{format} tables have no metadata column {name}",
                where=where,
                advice=f"they have {', '.join(n for n in METADATA_COLUMNS if n in offered)}",
            )

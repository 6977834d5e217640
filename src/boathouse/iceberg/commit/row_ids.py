"""Row lineage of a commit (spec, "First Row ID Assignment"): which ids its manifests get, and what its files store of
rows that were there before.

Manifests and data files have none of the ids that a commit assigns, so a commit that lost a race only writes another
list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from boathouse.iceberg.manifests.records import DATA, Row
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.schema_rules import LINEAGE
from boathouse.types import INT64, Field

_CARRIED: Final = tuple(Field(name, INT64, id=id) for name, id in LINEAGE.items())


def numbered(rows: Sequence[Row], next_row_id: int) -> tuple[list[Row], int]:
    """The rows of a manifest list, in which every manifest of data files has a first row id, and the next id after
    them.

    Ids are taken for all live rows of a manifest, as the reference does: more than its files without ids will get,
    if some have theirs already.
    """
    found = []
    for row in rows:
        if row["content"] == DATA and row.get("first_row_id") is None:
            row = {**row, "first_row_id": next_row_id}
            next_row_id += row["added_rows_count"] + row["existing_rows_count"]
        found.append(row)
    return found, next_row_id


def carried(metadata: TableMetadata) -> tuple[Field, ...]:
    """The fields of `WriteContext.carried`: none in format versions without row lineage."""
    return _CARRIED if metadata.format.row_lineage else ()

"""The values of a blob column in some rows: where their bytes are, of which none is read."""

from __future__ import annotations

from collections.abc import Sequence

from boathouse.ops.reads.taken import places_numbered, rows_at
from boathouse.table.engine import Engine
from boathouse.table.features import Blobs, RandomAccess, required
from boathouse.table.features.blobs import Span
from boathouse.table.features.random_access import Numbers
from boathouse.table.snapshot import Snapshot


def blobs_of(
    snapshot: Snapshot, engine: Engine, column: str, numbers: Numbers | None, ids: Numbers | None
) -> Sequence[Span | None]:
    """Of the rows with these numbers, or ids, as far as a row has one. Raises InvalidArgumentError."""
    blobs = required(snapshot, Blobs, "take_blobs")
    blobs.check(column)
    if numbers is not None:
        access, places = places_numbered(snapshot, numbers, "take_blobs")
    else:
        assert ids is not None
        access = required(snapshot, RandomAccess, "take_blobs")
        places = access.by_id(ids)
    stored = rows_at(access, engine, places, [column], ()).column(0)
    return blobs.spans(column, places.unit, stored)

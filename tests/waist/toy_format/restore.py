"""What separates two versions of the toy: units, and the deletes that apply to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.table.edits import RestoreTo
from boathouse.table.location import At
from toy_format.state import Document


@dataclass(frozen=True)
class ToyRestore:
    """See `table.features.Restorable`."""

    head: Any
    opened: Callable[[At], Any]

    def restoration(self, at: At) -> RestoreTo | None:
        return _separation(self.head, self.opened(at))


def _separation(head: Any, target: Any) -> RestoreTo | None:
    before, after = _content(head.document), _content(target.document)
    compared = [(d.schema, d.partitioning, d.properties) for d in (head.document, target.document)]
    added = _units(target, {u for u, rows in after.items() if before.get(u) != rows})
    removed = _units(head, {u for u, rows in before.items() if after.get(u) != rows})
    if not added.num_rows and not removed.num_rows and compared[0] == compared[1]:
        return None
    needed = tuple(part["path"] for parts in added.column("parts").to_pylist() for part in parts)
    size = sum(sum(u.sizes) for u in target.document.units)
    return RestoreTo(target, added, removed, needed, len(target.document.units), size)


def _content(document: Document) -> dict[int, Any]:
    """Of each unit the deletes that apply to it."""
    found = {}
    for u in document.units:
        positions = {p for d in document.deletes for p in d.rows.get(u.id, ())}
        equal = [(d.key, d.values) for d in document.deletes if d.kind == "equality" and d.sequence > u.sequence]
        found[u.id] = (positions, equal)
    return found


def _units(snapshot: Any, ids: set[int]) -> pa.Table:
    units = pa.Table.from_batches(list(snapshot.files()))
    return units.filter(pc.is_in(units.column("unit"), pa.array(sorted(ids), pa.int64())))

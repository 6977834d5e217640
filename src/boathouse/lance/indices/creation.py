"""Indices that are made here, of every row of a version, and what is recorded of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from boathouse.bits.roaring import deserialize32
from boathouse.errors import InvalidArgumentError, UnsupportedTypeError
from boathouse.lance.file.schema import arrow_type, tree
from boathouse.lance.indices import contents
from boathouse.lance.indices.stored import indexable
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.manifests.indices import IndexMetadata, IndexSection, ZoneMapDetails
from boathouse.lance.manifests.overlays import stale
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table.edits import SetIndex
from boathouse.table.features import WantedIndex
from boathouse.table.metadata_columns import POSITION, ROW_ID, UNIT

NAMES: Final = {"BTreeIndexDetails": "btree", "BitmapIndexDetails": "bitmap", "ZoneMapIndexDetails": "zonemap"}
"""The kinds that are made here, by the names of their details."""
_DETAILS = "IndexDetails"
_RECORDED: Final = pa.schema(
    [
        pa.field("name", pa.string(), False),
        pa.field("columns", pa.list_(pa.field("element", pa.string(), False)), False),
        pa.field("kind", pa.string(), False),
        pa.field("units", pa.int64(), False),
        pa.field("uncovered", pa.int64(), False),
    ]
)


@dataclass(frozen=True, slots=True)
class LanceIndices:
    """See `table.features.Indices`."""

    snapshot: LanceSnapshot

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(NAMES.values())

    def recorded(self) -> pa.Table:
        live = frozenset(f.id for f in self.snapshot.manifest.fragments)
        names = {f.id: ".".join(path) for path, f in self.snapshot.schema.walk()}
        parts: dict[str, list[IndexMetadata]] = {}
        for index in self._indices():
            parts.setdefault(index.name, []).append(index)
        rows = []
        for name, found in parts.items():
            covered = live.intersection(id for index in found for id in self._covered(index))
            rows.append(
                {
                    "name": name,
                    "columns": [names.get(id, str(id)) for id in found[0].fields],
                    "kind": NAMES.get(found[0].kind, found[0].kind.removesuffix(_DETAILS).lower()),
                    "units": len(covered),
                    "uncovered": len(live) - len(covered),
                }
            )
        return pa.Table.from_pylist(rows, _RECORDED)

    def covering(self, units: pa.Table) -> Sequence[frozenset[bytes]]:
        covered: dict[int, set[bytes]] = {}
        for index in self._indices():
            if index.id is not None:
                for fragment in self._covered(index):
                    covered.setdefault(fragment, set()).add(index.id.uuid)
        return [frozenset(covered.get(id, ())) for id in units.column("unit").to_pylist()]

    def wanted(self, column: str, kind: str, name: str | None, replace: bool) -> WantedIndex:
        snapshot, where = self.snapshot, self.snapshot.location.uri
        field = snapshot.schema.field(column)
        if kind not in self.kinds:
            raise InvalidArgumentError(f"an index of the kind {kind!r}", advice=f"one of {', '.join(self.kinds)}")
        if field.id not in indexable(snapshot):
            raise UnsupportedTypeError(
                f"column `{field.name}` is {field.type}, which has no {kind} index here",
                where=where,
                advice="index a column of simple values",
            )
        name = name or f"{field.name}_idx"
        before = [i for i in self._indices() if i.name == name]
        if before and not replace:
            raise InvalidArgumentError(
                f"there is an index `{name}`", where=where, advice="give another name=, or replace=True"
            )
        if name.startswith("__"):
            raise InvalidArgumentError(f"the index name `{name}` is one of Lance's own", advice="give another name=")
        stable = kind == "bitmap" and has_stable_row_ids(snapshot.manifest)
        detail = None
        if kind == "zonemap":
            known = next((i.details.value for i in before if i.kind == "ZoneMapIndexDetails" and i.details), b"")
            detail = ZoneMapDetails.decode(known, where=where).rows_per_zone or contents.ZONE_ROWS
        return WantedIndex(name, field.name, kind, (UNIT, POSITION, *((ROW_ID,) if stable else ())), detail)

    def set(self, wanted: WantedIndex, rows: Iterable[pa.RecordBatch]) -> SetIndex:
        snapshot = self.snapshot
        batches = list(rows)
        node = next(n for n in tree(snapshot.manifest.fields) if n.name == wanted.column)
        values = contents.joined([b.column(0) for b in batches], arrow_type(node))
        units, positions, *ids = (
            np.concatenate([np.empty(0, np.int64), *(b.column(i).to_numpy() for b in batches)])
            for i in range(1, len(wanted.hidden) + 1)
        )
        if wanted.kind == "zonemap":
            content = contents.zone_map(values, units, positions, wanted.detail or contents.ZONE_ROWS)
        else:
            make = contents.btree if wanted.kind == "btree" else contents.bitmap
            content = make(values, ids[0] if ids else units << 32 | positions)
        covered = tuple(f.id for f in snapshot.manifest.fragments)
        return SetIndex(wanted.name, wanted.column, wanted.kind, covered, content)

    def _covered(self, index: IndexMetadata) -> frozenset[int]:
        """The fragments of all of whose rows it has the values; of some it had them, before an overlay came."""
        if index.fragment_bitmap is None:
            return frozenset()
        where = self.snapshot.location.uri
        covered = frozenset(deserialize32(index.fragment_bitmap, where=where).positions().tolist())
        return covered - stale(self.snapshot.manifest, index, where).keys()

    def _indices(self) -> tuple[IndexMetadata, ...]:
        section = self.snapshot.document.index
        if section is None:
            return ()
        return IndexSection.decode(section, where=self.snapshot.location.uri).indices

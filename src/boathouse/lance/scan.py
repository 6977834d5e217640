"""Plans a scan: which fragments and columns are read, of which rows, and their deleted rows as inline deletion
vectors."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.errors import CorruptTableError
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as columns_of
from boathouse.lance.deletions.files import read_deletions
from boathouse.lance.indices.pruning import candidates
from boathouse.lance.indices.row_ranges import count, encode
from boathouse.lance.lineage.stored import inlined
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.manifests.messages import DataFragment
from boathouse.lance.options import NATIVE, NO_PARTITION
from boathouse.lance.paths import deletion_root
from boathouse.lance.read_spec import LINEAGE, fragments_of, read_spec, with_column, with_native
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table.classify import classified
from boathouse.table.metadata_columns import OFFERED, check_offered
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import MapFunction
from boathouse.table.tally import Tally
from boathouse.table.units import VECTOR, deletes_schema, files_schema, stats_type

_THREADS = 8


def plan(
    snapshot: LanceSnapshot,
    columns: Sequence[str] | None = None,
    where: Expr | None = None,
    hidden: Sequence[str] = (),
    map: MapFunction | None = None,
    classify: bool = False,
) -> ScanPlan:
    """Every fragment that may have a row for `where`, which only indices say if it is not constant; deletion files are
    read here, so that executors need no store.

    Without statistics only a constant `where` is certain.
    """
    lineage = LINEAGE if has_stable_row_ids(snapshot.manifest) else {}
    check_offered(hidden, OFFERED | lineage.keys(), "Lance", snapshot.location.uri)
    tally = Tally()
    schema = files_schema(NO_PARTITION, stats_type(()), NATIVE)
    certain = None
    if classify and where is not None:
        units, certain = classified(snapshot.files(columns_of(where), where, map, tally), schema, where)
    else:
        units = pa.Table.from_batches(snapshot.files(where=where, map=map, tally=tally), schema)
        if classify:
            certain = pa.chunked_array([pa.repeat(pa.scalar(True), units.num_rows)])
    ranges: Sequence[bytes | None] = [None] * units.num_rows
    if where is not None and snapshot.document.index is not None:
        keep, ranges = _by_indices(snapshot, units, where, tally)
        units = units.filter(keep)
        certain = certain.filter(keep) if certain is not None else None
    fragments = fragments_of(units)
    if not lineage.keys().isdisjoint(hidden):
        fragments = [inlined(f, snapshot.stores, snapshot.location.uri) for f in fragments]
    if any(r is not None for r in ranges) or not lineage.keys().isdisjoint(hidden):
        units = with_native(units, fragments, ranges)
    units, deletes = _with_deletes(snapshot, units, fragments)
    return ScanPlan.of(read_spec(snapshot, columns, where, hidden), units, deletes, where, tally, certain)


def _by_indices(
    snapshot: LanceSnapshot, units: pa.Table, where: Expr, tally: Tally
) -> tuple[pa.Array, list[bytes | None]]:
    """Which units may have a row that satisfies the condition, and which rows of these may (None: any)."""
    ids, counts = (units.column(name).to_pylist() for name in ("unit", "rows"))
    found = candidates(snapshot, where, dict(zip(ids, counts)))
    keep = pa.array([id not in found.rows or len(found.rows[id]) > 0 for id in ids], pa.bool_())
    tally.skip(f"index {', '.join(found.names)} {where}", pc.sum(pc.invert(keep)).as_py() or 0)
    kept = [(found.rows.get(id), rows) for id, rows, stays in zip(ids, counts, keep.to_pylist()) if stays]
    return keep, [None if part is None or count(part) == rows else encode(part) for part, rows in kept]


def _with_deletes(
    snapshot: LanceSnapshot, units: pa.Table, fragments: Sequence[DataFragment]
) -> tuple[pa.Table, pa.Table]:
    """The units with `deletes` and exact `deleted`, and the DELETES rows: one deletion vector for each that has any."""
    holders = [i for i, f in enumerate(fragments) if f.deletion_file is not None]
    rows = units.column("rows").to_pylist()

    def read(i: int) -> Bitmap:
        root = deletion_root(snapshot.manifest, fragments[i], snapshot.location.uri)
        found = read_deletions(snapshot.stores, root, fragments[i])
        if len(found) and int(found.positions()[-1]) >= rows[i]:
            raise CorruptTableError(
                f"fragment {fragments[i].id} of {rows[i]} rows has the deleted row {int(found.positions()[-1])}",
                where=snapshot.location.uri,
            )
        return found

    if len(holders) > 1:
        with ThreadPoolExecutor(min(_THREADS, len(holders))) as pool:
            vectors = [*pool.map(read, holders)]
    else:
        vectors = [read(i) for i in holders]
    deletes: list[list[int]] = [[] for _ in fragments]
    counts = [0] * len(fragments)
    for number, (i, vector) in enumerate(zip(holders, vectors)):
        deletes[i], counts[i] = [number], len(vector)
    units = with_column(units, "deletes", pa.array(deletes, pa.list_(pa.int32())))
    units = with_column(units, "deleted", pa.array(counts, pa.int64()))
    return units, _vectors(vectors)


def _vectors(vectors: Sequence[Bitmap]) -> pa.Table:
    schema = deletes_schema()
    n = len(vectors)
    known = {
        "delete": pa.array(range(n), pa.int32()),
        "kind": pa.array([VECTOR] * n, pa.int8()),
        "inline": pa.array([serialize64(v) for v in vectors], pa.binary()),
        "rows": pa.array([len(v) for v in vectors], pa.int64()),
    }
    return pa.table([known[f.name] if f.name in known else pa.nulls(n, f.type) for f in schema], schema=schema)

"""Plans a scan: which fragments and columns are read, and their deleted rows as inline deletion vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa

from boathouse.arrow.filesystem import data_files
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.errors import CorruptTableError
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as columns_of
from boathouse.lance.deletions import read_deletions
from boathouse.lance.file.fields import SchemaMessage
from boathouse.lance.lineage.stored import FIELD_IDS, inlined
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.manifests.messages import DataFragment
from boathouse.lance.options import NATIVE, NO_PARTITION
from boathouse.lance.paths import deletion_root
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table.classify import classified
from boathouse.table.metadata_columns import OFFERED, ROW_ID, ROW_VERSION, check_offered
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import MapFunction
from boathouse.table.tally import Tally
from boathouse.table.tasks import ReadColumn, ReadSpec, version_words
from boathouse.table.units import VECTOR, deletes_schema, files_schema, stats_type
from boathouse.types import INT64, Schema

LINEAGE: Final = {ROW_ID: FIELD_IDS["row_ids"], ROW_VERSION: FIELD_IDS["updated"]}
"""The metadata columns of tables with stable row ids, and the reserved fields that they are read as."""
_THREADS = 8


def plan(
    snapshot: LanceSnapshot,
    columns: Sequence[str] | None = None,
    where: Expr | None = None,
    hidden: Sequence[str] = (),
    map: MapFunction | None = None,
    classify: bool = False,
) -> ScanPlan:
    """Every fragment unless `where` is constant; deletion files are read here, so that executors need no store.

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
    fragments = [
        DataFragment.decode(raw) for raw in units.column("native").combine_chunks().field("fragment").to_pylist()
    ]
    if not lineage.keys().isdisjoint(hidden):
        fragments = [inlined(f, snapshot.stores, snapshot.location.uri) for f in fragments]
        units = with_native(units, fragments)
    units, deletes = _with_deletes(snapshot, units, fragments)
    return ScanPlan.of(read_spec(snapshot, columns, where, hidden), units, deletes, where, tally, certain)


def with_native(units: pa.Table, fragments: Sequence[DataFragment]) -> pa.Table:
    """The units with these fragments, which are in the same order."""
    return _set(units, "native", pa.array([{"fragment": f.encode()} for f in fragments], NATIVE))


def read_spec(
    snapshot: LanceSnapshot, columns: Sequence[str] | None, where: Expr | None, hidden: Sequence[str]
) -> ReadSpec:
    """Columns by field id, including those of `where`."""
    schema = snapshot.schema
    output = tuple(schema.field(name).name for name in columns) if columns is not None else schema.names
    filtered = [schema.field(path[0]).name for path in columns_of(where)] if where is not None else []
    stored = [name for name in hidden if name in LINEAGE]
    lineage = (ReadColumn(f"\0{name}", INT64, False, None, LINEAGE[name]) for name in stored)
    return ReadSpec(
        format="lance",
        files=data_files(snapshot.stores),
        columns=(*_read_columns(schema, (*output, *filtered)), *lineage),
        stored={name: f"\0{name}" for name in stored},
        output=output,
        hidden=tuple(hidden),
        where=where,
        native=SchemaMessage(fields=snapshot.manifest.fields).encode(),
        version=version_words(snapshot.version, snapshot.location.uri),
    )


def _read_columns(schema: Schema, names: Iterable[str]) -> tuple[ReadColumn, ...]:
    fields = (schema.field(name) for name in dict.fromkeys(names))
    return tuple(ReadColumn(f.name, f.type, f.nullable, (f.name,), f.id) for f in fields)


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
    units = _set(units, "deletes", pa.array(deletes, pa.list_(pa.int32())))
    units = _set(units, "deleted", pa.array(counts, pa.int64()))
    return units, _vectors(vectors)


def _set(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), values)


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

"""Plans a scan: which files are read, and how their columns are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import data_files
from boathouse.delta.features.deletion_vectors import load_all
from boathouse.delta.features.row_ids import carried, is_tracked
from boathouse.delta.files import list_files, schema_of
from boathouse.delta.schema import physical_name
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import InvalidArgumentError
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as columns_of
from boathouse.parquet.matching import Matching
from boathouse.table.classify import classified
from boathouse.table.metadata_columns import OFFERED, POSITION, ROW_ID, ROW_VERSION, check_offered
from boathouse.table.plan import PlannedUnits, ScanPlan
from boathouse.table.tally import Tally
from boathouse.table.tasks import ReadColumn, ReadSpec, version_words
from boathouse.table.units import VECTOR, deletes_schema
from boathouse.types import Field, VariantType

_MATCHING: Final = Matching(physical_name=physical_name)
_LINEAGE: Final = frozenset({ROW_ID, ROW_VERSION})


def plan(
    snapshot: DeltaSnapshot,
    columns: Sequence[str] | None = None,
    where: Expr | None = None,
    hidden: Sequence[str] = (),
    classify: bool = False,
) -> ScanPlan:
    """The result of pruning; deletion vectors are read here and passed inline."""
    tracked = is_tracked(snapshot)
    check_offered(hidden, OFFERED | _LINEAGE if tracked else OFFERED, "Delta", snapshot.location.uri)
    schema = snapshot.schema
    output = schema.names if columns is None else tuple(schema.field(n).name for n in columns)
    if len(set(output)) != len(output):
        raise InvalidArgumentError(f"a column is requested twice: {', '.join(output)}")
    needed = set(output) | {p[0] for p in (columns_of(where) if where is not None else ())}
    by_id = snapshot.metadata.column_mapping == "id"
    partition = {f.name: f.id for f in snapshot.partitioning.current}
    stored = (f for f in carried(snapshot) if f.name in hidden)
    lineage = {f.name: _column(replace(f, name=f"\0{f.name}"), None, False) for f in stored}
    read = ReadSpec(
        "delta",
        data_files(snapshot.stores),
        (*(_column(f, partition.get(f.name), by_id) for f in schema if f.name in needed), *lineage.values()),
        tuple(output),
        tuple(hidden),
        where,
        _MATCHING,
        stored={name: column.name for name, column in lineage.items()},
        version=version_words(snapshot.version, snapshot.location.uri),
        variants=any(isinstance(f.type, VariantType) for _, f in schema.walk()),
    )
    tally = Tally()
    # What loses rows is committed again with its statistics.
    all_stats = classify or POSITION in hidden
    parts = partial(_planned, snapshot, where if classify else None, where, tally, all_stats)
    return ScanPlan(read, parts, where, tally)


def _planned(
    snapshot: DeltaSnapshot, classify: Expr | None, where: Expr | None, tally: Tally, all_stats: bool
) -> Iterator[PlannedUnits]:
    """The units batch by batch, or none as an empty table."""
    schema = schema_of(snapshot, ())
    files = list_files(snapshot, columns_of(classify) if classify is not None else (), where, tally, all_stats)
    found = False
    for batch in files:
        found = True
        units, certain = pa.Table.from_batches([batch]), None
        if classify is not None:
            units, certain = classified([batch], schema, classify)
        yield PlannedUnits(*attach(snapshot, units), certain)
    if not found:
        certain = None if classify is None else pa.chunked_array([], pa.bool_())
        yield PlannedUnits(schema.empty_table(), deletes_schema().empty_table(), certain)


def _column(f: Field, partition: int | None, by_id: bool) -> ReadColumn:
    return ReadColumn(
        f.name,
        f.type,
        f.nullable,
        (physical_name(f),),
        f.id if by_id else None,
        None,
        partition,
        () if partition is None else (0,),
        doc=f.doc,
    )


def attach(snapshot: DeltaSnapshot, units: pa.Table) -> tuple[pa.Table, pa.Table]:
    """FILES with `deletes` filled, and DELETES: one inline deletion vector for each unit that has one."""
    vectors = list(_vectors(units))
    if all(v is None for v in vectors):
        return units, deletes_schema().empty_table()
    found: list[dict[str, Any]] = []
    lists: list[list[int] | None] = [None] * len(vectors)
    inline = load_all(vectors, snapshot.location.uri, snapshot.stores)
    for i, (vector, bitmap) in enumerate(zip(vectors, inline, strict=True)):
        if vector is not None:
            lists[i] = [len(found)]
            found.append({"delete": len(found), "kind": VECTOR, "inline": bitmap, "rows": vector["cardinality"]})
    i = units.schema.get_field_index("deletes")
    units = units.set_column(i, units.schema.field(i), pa.array(lists, pa.list_(pa.int32())))
    return units, pa.Table.from_pylist(found, schema=deletes_schema())


def _vectors(units: pa.Table) -> Iterator[dict[str, Any] | None]:
    vectors = pc.struct_field(units.column("native"), "deletionVector")
    if vectors.null_count == len(vectors):
        return iter([None] * len(vectors))
    return iter([v if v is not None and v["storageType"] is not None else None for v in vectors.to_pylist()])

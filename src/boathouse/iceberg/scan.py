"""Plans a scan: the columns to read, the remaining files, and their row deletes as deletion vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import data_files
from boathouse.bits.names import Names
from boathouse.errors import BoathouseError, UnsupportedFeatureError
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as columns_of
from boathouse.iceberg.data_files.reading import READERS, open_file
from boathouse.iceberg.deletes.equality import key_field
from boathouse.iceberg.deletes.planned import resolve_deletes
from boathouse.iceberg.inspect.columns import partition_fields
from boathouse.iceberg.manifests.live_once import check_once
from boathouse.iceberg.metadata.name_mapping import NAME_MAPPING, NameMapping, names_diverged, names_in_files
from boathouse.iceberg.metadata.schema_rules import LINEAGE
from boathouse.iceberg.metadata.single_values import initial_default
from boathouse.iceberg.residual import residual
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.parquet.fields import has_ids
from boathouse.parquet.matching import Matching
from boathouse.table.classify import classified
from boathouse.table.equality import key_name
from boathouse.table.metadata_columns import DELETED, OFFERED, PARTITION, check_offered
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import MapFunction
from boathouse.table.tally import Tally
from boathouse.table.tasks import PartitionMember, ReadColumn, ReadSpec, version_words
from boathouse.table.units import LANCE
from boathouse.types import INT64, Field, Partitioning, VariantType

_OFFERED: Final = OFFERED | {DELETED, PARTITION} | LINEAGE.keys()
_AS_PARQUET = (
    "rewrite them as Parquet with the engine that wrote them (Spark: set the property write.format.default to "
    "parquet, then call rewrite_data_files with the option rewrite-all)"
)


def plan(
    snapshot: IcebergSnapshot,
    columns: Sequence[str] | None = None,
    where: Expr | None = None,
    hidden: Sequence[str] = (),
    map: MapFunction | None = None,
    classify: bool = False,
) -> ScanPlan:
    """The plan for these columns and this bound predicate, of which tasks evaluate what partition values leave open.

    Raises UnsupportedFeatureError for unsupported files or deletes.
    """
    schema = snapshot.schema
    output = tuple(schema.names if columns is None else (schema.field(c).name for c in columns))
    check_offered(hidden, _OFFERED, "Iceberg", snapshot.location.uri)
    tally = Tally()
    units, certain = _units(snapshot, where, tally, classify, map)
    if snapshot.location.verify:
        check_once(units.column("path"), snapshot.location.uri)
    _check_formats(units)
    found = resolve_deletes(snapshot, units, where, map)
    left = where if where is None or classify else residual(where, found.units, snapshot.partitioning, schema)
    read = read_spec(snapshot, output, left, tuple(hidden), found.keys)
    return ScanPlan.of(read, found.units, found.deletes, where, tally, certain)


@dataclass(frozen=True, slots=True)
class FileNotes:
    """See `table.features.PlanNotes`."""

    def notes(self, plan: ScanPlan) -> tuple[str, ...]:
        """How files without field ids are read, if the oldest file of the plan has none, as those that were added to a
        table are its oldest; nothing if it cannot be opened, since reading will say why."""
        if plan.read.matching.file_ids is not None or not plan.units.num_rows:
            return ()
        sequences = plan.units.column("sequence")
        oldest = pc.index(sequences, pc.min(sequences)).as_py()
        path, format, size = (plan.units.column(name)[oldest].as_py() for name in ("path", "format", "size"))
        try:
            with closing(open_file(format, plan.read.files, path, plan.read.matching, size)) as source:
                found = source.resolver
        except BoathouseError:
            return ()
        if has_ids(found.fields) or not found.fields:
            return ()
        how = (
            "their columns are found by name"
            if found.names_decide
            else "they are refused, as their names do not decide which column is which"
        )
        return (f"some files have no field ids, such as {path}, and the table no {NAME_MAPPING}: {how}",)


def _units(
    snapshot: IcebergSnapshot, where: Expr | None, tally: Tally, classify: bool, map: MapFunction | None
) -> tuple[pa.Table, pa.ChunkedArray | None]:
    """FILES without statistics, and if requested whether all rows of each certainly satisfy the predicate."""
    schema = snapshot.listing.schema_of_files()
    if not classify or where is None:
        units = pa.Table.from_batches(list(snapshot.listing.files(where=where, map=map, tally=tally)), schema)
        return units, pa.chunked_array([pa.repeat(True, units.num_rows)]) if classify else None
    return classified(snapshot.listing.files(columns_of(where), where, tally, map), schema, where)


def _check_formats(units: pa.Table) -> None:
    for format in units.column("format").unique().to_pylist():
        if format not in READERS:
            name = {LANCE: "Lance"}.get(format, str(format))
            path = units.column("path")[units.column("format").index(format).as_py()].as_py()
            raise UnsupportedFeatureError(
                f"{name} data files are not offered in Iceberg tables", where=path, advice=_AS_PARQUET
            )


def read_spec(
    snapshot: IcebergSnapshot,
    output: tuple[str, ...],
    where: Expr | None,
    hidden: tuple[str, ...],
    keys: Mapping[int, str],
) -> ReadSpec:
    """How the snapshot's files are read for these output columns; `keys` are as in `row_deletes.Resolved`."""
    schema = snapshot.schema
    tested = () if where is None else tuple(path[0] for path in columns_of(where))
    needed = list(dict.fromkeys((*output, *tested)))
    constants = _constants(snapshot.partitioning)
    made = [_read_column(schema.field(n), (n,), n, constants) for n in needed]
    made += _key_columns(snapshot, keys, made, constants)
    lineage = _lineage_columns(hidden, Names(c.name for c in made))
    made += lineage.values()
    version = version_words(snapshot.version, snapshot.location.uri)
    diverged = names_diverged(snapshot.metadata.schemas)
    files = data_files(snapshot.stores)
    matching = _matching(snapshot)
    return ReadSpec(
        "iceberg",
        files,
        tuple(made),
        output,
        hidden,
        where,
        matching,
        diverged,
        stored={name: column.name for name, column in lineage.items()},
        partition=_partition_members(snapshot) if PARTITION in hidden else (),
        version=version,
        variants=any(isinstance(f.type, VariantType) for _, f in schema.walk()),
    )


def _lineage_columns(hidden: Sequence[str], taken: Names) -> dict[str, ReadColumn]:
    """The columns of files that store metadata columns of rows, under names that nothing else has."""
    found = {}
    for name, id in LINEAGE.items():
        if name in hidden:
            column = key_name(id, taken)
            found[name] = ReadColumn(column, INT64, True, (column,), id)
    return found


def _partition_members(snapshot: IcebergSnapshot) -> tuple[PartitionMember, ...]:
    specs = snapshot.partitioning.specs
    return tuple(
        PartitionMember(f.name, f.type, id, tuple(s.id for s in specs if any(p.id == id for p in s)))
        for id, f in partition_fields(snapshot.metadata)
    )


def _matching(snapshot: IcebergSnapshot) -> Matching:
    """In files without field ids the name mapping gives them; without one, names decide, as long as none has
    changed."""
    mapping = snapshot.properties.get(NAME_MAPPING)
    if mapping is None:
        return Matching(default=initial_default, names=names_in_files(snapshot.metadata.schemas))
    return Matching(default=initial_default, file_ids=NameMapping.parse(mapping, snapshot.token).id_at)


def _constants(partitioning: Partitioning) -> Mapping[int, Mapping[int, int]]:
    """Field id -> spec id -> partition field, where identity partitioning gives the value of every row."""
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for spec in partitioning.specs:
        for f in spec:
            if f.transform.name == "identity" and f.source_id is not None:
                found[f.source_id][spec.id] = f.id
    return found


def _read_column(
    field: Field, path: tuple[str, ...], name: str, constants: Mapping[int, Mapping[int, int]]
) -> ReadColumn:
    # A field of a struct is not constant: its struct may be read as well.
    of_specs = constants.get(field.id, {}) if field.id is not None and len(path) == 1 else {}
    partition = next(iter(of_specs.values()), None)
    specs = tuple(spec for spec, id in of_specs.items() if id == partition)
    others = tuple((spec, id) for spec, id in of_specs.items() if id != partition)
    default = initial_default(field)
    return ReadColumn(name, field.type, field.nullable, path, field.id, default, partition, specs, others, field.doc)


def _key_columns(
    snapshot: IcebergSnapshot,
    keys: Mapping[int, str],
    read: Sequence[ReadColumn],
    constants: Mapping[int, Mapping[int, int]],
) -> list[ReadColumn]:
    """The key columns of equality deletes that are not read already: of the table, of structs, and dropped ones, which
    get names that no column of the table has."""
    taken = Names(snapshot.schema.names)
    there = {c.field_id for c in read}
    found = []
    for id in sorted(set(keys) - there):
        path, field = key_field(snapshot, id, keys[id])
        if len(path) > 1 and field.metadata.get("initial-default") is not None:
            raise UnsupportedFeatureError(
                f"equality deletes by `{'.'.join(path)}`, a field of a struct with a default, are not offered",
                where=keys[id],
            )
        name = path[0]
        if len(path) > 1 or all(f.id != id for f in snapshot.schema):
            name = key_name(id, taken)
        found.append(_read_column(field, path, name, constants))
    return found

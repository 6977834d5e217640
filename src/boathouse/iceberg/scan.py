"""Plans a scan: the columns to read, the remaining files, and their row deletes as deletion vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from boathouse.arrow.filesystem import data_files
from boathouse.bits.roaring import Bitmap, deserialize64, serialize64
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as columns_of
from boathouse.iceberg import manifests
from boathouse.iceberg.manifests import DELETES, EQUALITY_DELETES, Entry
from boathouse.iceberg.name_mapping import NameMapping, names_diverged
from boathouse.iceberg.position_deletes import FILE_PATH_ID, DeleteFileTask, read_positions
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.tasks import MappedIds
from boathouse.iceberg.values import Physical, initial_default, physical_list
from boathouse.parquet.matching import Matching
from boathouse.table.classify import classified
from boathouse.table.metadata_columns import OFFERED, check_offered
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import MapFunction
from boathouse.table.tally import Tally
from boathouse.table.tasks import ReadColumn, ReadSpec, version_words
from boathouse.table.units import PARQUET, VECTOR, deletes_schema
from boathouse.types import Field, Partitioning, Schema

NAME_MAPPING = "schema.name-mapping.default"
_AS_PARQUET = (
    "rewrite them as Parquet with the engine that wrote them (Spark: set the property write.format.default to "
    "parquet, then call rewrite_data_files with the option rewrite-all)"
)
_DELETE_METRICS = frozenset({"lower_bounds", "upper_bounds"})
Key = Physical | tuple[str]
Tuple = tuple[int, tuple[Key, ...]]
"""A partition spec and its values in order, which position deletes share with the files to which they apply."""


def plan(
    snapshot: IcebergSnapshot,
    columns: Sequence[str] | None = None,
    where: Expr | None = None,
    hidden: Sequence[str] = (),
    map: MapFunction | None = None,
    classify: bool = False,
) -> ScanPlan:
    """The plan for these columns and this bound predicate. Raises UnsupportedFeatureError for unsupported files or
    deletes."""
    schema = snapshot.schema
    output = tuple(schema.names if columns is None else (schema.field(c).name for c in columns))
    check_offered(hidden, OFFERED, "Iceberg", snapshot.location.uri)
    tally = Tally()
    units, certain = _units(snapshot, where, tally, classify, map)
    _check_formats(units)
    units, deletes = resolve_deletes(snapshot, units, map)
    read = read_spec(snapshot, output, where, tuple(hidden))
    return ScanPlan.of(read, units, deletes, where, tally, certain)


def _units(
    snapshot: IcebergSnapshot, where: Expr | None, tally: Tally, classify: bool, map: MapFunction | None
) -> tuple[pa.Table, pa.ChunkedArray | None]:
    """FILES without statistics, and if requested whether all rows of each certainly satisfy the predicate."""
    schema = snapshot.listing.schema_of_files()
    if not classify or where is None:
        units = pa.Table.from_batches(list(snapshot.files(where=where, map=map, tally=tally)), schema)
        return units, pa.chunked_array([pa.repeat(True, units.num_rows)]) if classify else None
    return classified(snapshot.files(columns_of(where), where, map, tally), schema, where)


def _check_formats(units: pa.Table) -> None:
    for format, path in zip(units.column("format").to_pylist(), units.column("path").to_pylist()):
        if format != PARQUET:
            name = {1: "ORC", 2: "Avro"}.get(format, str(format))
            raise UnsupportedFeatureError(
                f"{name} data files are not offered in Iceberg tables", where=path, advice=_AS_PARQUET
            )


def read_spec(
    snapshot: IcebergSnapshot, output: tuple[str, ...], where: Expr | None, hidden: tuple[str, ...]
) -> ReadSpec:
    """How the snapshot's files are read for these output columns."""
    schema = snapshot.schema
    tested = () if where is None else tuple(path[0] for path in columns_of(where))
    needed = list(dict.fromkeys((*output, *tested)))
    constants = _constants(snapshot.partitioning, schema)
    made = tuple(_read_column(schema.field(n), constants.get((n,), {})) for n in needed)
    mapping, ids = snapshot.properties.get(NAME_MAPPING), None
    if mapping is not None:
        ids = MappedIds(NameMapping.parse(mapping, snapshot.token).paths)
    version = version_words(snapshot.version, snapshot.location.uri)
    matching = Matching(default=initial_default, file_ids=ids)
    diverged = names_diverged(snapshot.metadata.schemas)
    files = data_files(snapshot.stores)
    return ReadSpec("iceberg", files, made, output, hidden, where, matching, diverged, version=version)


def _constants(partitioning: Partitioning, schema: Schema) -> Mapping[tuple[str, ...], Mapping[int, int]]:
    """Column path -> spec id -> partition field, where identity partitioning gives the value of every row."""
    names = {f.id: (f.name,) for f in schema}
    found: dict[tuple[str, ...], dict[int, int]] = defaultdict(dict)
    for spec in partitioning.specs:
        for f in spec:
            if f.transform.name == "identity" and f.source_id in names:
                found[names[f.source_id]][spec.id] = f.id
    return found


def _read_column(field: Field, constants: Mapping[int, int]) -> ReadColumn:
    partition = next(iter(constants.values()), None)
    specs = tuple(spec for spec, id in constants.items() if id == partition)
    default = initial_default(field)
    return ReadColumn(
        field.name,
        field.type,
        field.nullable,
        (field.name,),
        field.id,
        default,
        partition,
        specs,
    )


@dataclass(frozen=True, slots=True)
class _DeleteFile:
    index: int
    uri: str
    sequence: int
    partition: Tuple
    only: str | None


def resolve_deletes(snapshot: IcebergSnapshot, units: pa.Table, map: MapFunction | None) -> tuple[pa.Table, pa.Table]:
    """The units with `deletes` and `deleted` filled in, and DELETES with a deletion vector for each unit that has
    any."""
    none = deletes_schema().empty_table()
    listing = snapshot.listing
    if units.num_rows == 0 or not listing.delete_manifests:
        return units, none
    index = _Units.of(units, snapshot.partitioning)
    files = list(_delete_files(snapshot, index))
    tasks = [DeleteFileTask(f.index, data_files(snapshot.stores), f.uri) for f in files]
    bitmaps: dict[int, Bitmap] = {}
    for batch in _run(map, tasks):
        for delete, path, inline in zip(*(batch.column(i).to_pylist() for i in range(3))):
            row = index.target(files[delete], snapshot.paths.uri(path))
            if row is not None:
                found = deserialize64(inline, where=files[delete].uri)
                bitmaps[row] = bitmaps[row] | found if row in bitmaps else found
    return _attached(units, bitmaps)


def _run(map: MapFunction | None, tasks: Sequence[DeleteFileTask]) -> Iterator[pa.RecordBatch]:
    if map is not None and len(tasks) > 1:
        yield from map(read_positions, tasks)
        return
    for task in tasks:
        yield from read_positions(task)


def _attached(units: pa.Table, bitmaps: Mapping[int, Bitmap]) -> tuple[pa.Table, pa.Table]:
    counts = [0] * units.num_rows
    lists: list[list[int] | None] = [None] * units.num_rows
    rows: list[dict[str, Any]] = []
    sizes = units.column("rows").to_pylist()
    for row in sorted(bitmaps):
        # A position beyond the file deletes nothing.
        inside = Bitmap.of(bitmaps[row].within(0, sizes[row]))
        if len(inside):
            lists[row] = [len(rows)]
            counts[row] = len(inside)
            rows.append({"delete": len(rows), "kind": VECTOR, "inline": serialize64(inside), "rows": len(inside)})
    units = units.set_column(units.schema.get_field_index("deleted"), "deleted", pa.array(counts, pa.int64()))
    at = units.schema.get_field_index("deletes")
    units = units.set_column(at, units.schema.field(at), pa.array(lists, pa.list_(pa.int32())))
    return units, pa.Table.from_pylist(rows, schema=deletes_schema())


@dataclass(frozen=True, slots=True)
class _Units:
    """The planned units by path and by partition."""

    rows: Mapping[str, int]
    sequences: Sequence[int]
    partitions: Sequence[Tuple]
    oldest_in: Mapping[Tuple, int]
    oldest: int

    @classmethod
    def of(cls, units: pa.Table, partitioning: Partitioning) -> _Units:
        specs = {s.id: s for s in partitioning.specs}
        struct = units.column("partition").combine_chunks()
        types = {f.id: f.type for s in partitioning.specs for f in s}
        values = {id: physical_list(struct.field(str(id)), type) for id, type in types.items()}
        spec_ids = units.column("spec").to_pylist()
        partitions = [(s, tuple(_same(values[f.id][i]) for f in specs[s])) for i, s in enumerate(spec_ids)]
        sequences = units.column("sequence").to_pylist()
        oldest_in: dict[Tuple, int] = {}
        for partition, sequence in zip(partitions, sequences):
            oldest_in[partition] = min(sequence, oldest_in.get(partition, sequence))
        rows = {path: i for i, path in enumerate(units.column("path").to_pylist())}
        if len(rows) != units.num_rows:
            raise CorruptTableError("a data file is live twice in one snapshot")
        return cls(rows, sequences, partitions, oldest_in, min(sequences))

    def target(self, file: _DeleteFile, path: str) -> int | None:
        """The unit that positions for `path` in this delete file apply to: same partition, not newer than it."""
        row = self.rows.get(path) if file.only in (None, path) else None
        if row is None or self.partitions[row] != file.partition or self.sequences[row] > file.sequence:
            return None
        return row

    def touched(self, partition: Tuple, sequence: int) -> bool:
        oldest = self.oldest_in.get(partition)
        return oldest is not None and oldest <= sequence


def _same(value: Physical) -> Key:
    """A comparable partition value: all NaNs are equal, the two zeros are different."""
    if isinstance(value, float):
        return ("nan",) if value != value else (value.hex(),)
    return value


def _delete_files(snapshot: IcebergSnapshot, units: _Units) -> Iterable[_DeleteFile]:
    """The live delete files that apply to a planned unit. Raises UnsupportedFeatureError naming other kinds."""
    listing = snapshot.listing
    count = 0
    for source in listing.delete_manifests:
        if source.content != DELETES:
            raise CorruptTableError(f"manifest content {source.content} is unknown", where=source.path)
        spec = listing.spec(source)
        unpartitioned = all(f.transform.name == "void" for f in spec)
        for entry in listing.entries(source, metrics=_DELETE_METRICS):
            values = manifests.partition_values(entry["data_file"], spec, source.path)
            partition = (spec.id, tuple(_same(values[f.id]) for f in spec))
            found = _delete_file(count, entry, partition, unpartitioned, units, snapshot)
            if found is not None:
                count += 1
                yield found


def _delete_file(
    index: int, entry: Entry, partition: Tuple, unpartitioned: bool, units: _Units, snapshot: IcebergSnapshot
) -> _DeleteFile | None:
    data = entry["data_file"]
    sequence = entry["sequence_number"]
    uri = snapshot.paths.uri(data["file_path"])
    if data.get("content") == EQUALITY_DELETES:
        # They apply to strictly older files only, and everywhere if their spec is unpartitioned.
        applies = units.oldest < sequence if unpartitioned else units.touched(partition, sequence - 1)
        if applies:
            raise UnsupportedFeatureError(
                "Iceberg equality deletes are not offered", where=uri, advice="compact the table with its own writer"
            )
        return None
    if not units.touched(partition, sequence):
        return None
    only = _referenced(data)
    only_uri = None if only is None else snapshot.paths.uri(only)
    file = _DeleteFile(index, uri, sequence, partition, only_uri)
    if only_uri is not None and units.target(file, only_uri) is None:
        return None
    format = str(data["file_format"]).upper()
    if format == "PUFFIN":
        raise UnsupportedFeatureError("Iceberg v3 deletion vectors are not offered", where=uri)
    if format != "PARQUET":
        raise UnsupportedFeatureError(f"{format} delete files are not offered", where=uri)
    return file


def _referenced(data_file: Mapping[str, Any]) -> str | None:
    """The only data file to which a delete file applies: by name, or by equal lower and upper bounds of its paths."""
    named = data_file.get("referenced_data_file")
    if named:
        return str(named)
    lower = (manifests.map_of(data_file, "lower_bounds") or {}).get(FILE_PATH_ID)
    upper = (manifests.map_of(data_file, "upper_bounds") or {}).get(FILE_PATH_ID)
    return bytes(lower).decode("utf-8", "replace") if lower is not None and lower == upper else None

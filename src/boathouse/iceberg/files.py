"""FILES of a snapshot: manifests pruned by their summaries, entries by partition values, then by bounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.lazy_import import Late
from boathouse.errors import BoathouseError, CorruptTableError, MissingFileError, NotFoundError, UnsupportedFeatureError
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as columns_of
from boathouse.iceberg import manifests, totals
from boathouse.iceberg.manifest_schemas import METRICS
from boathouse.iceberg.manifests import DATA, DELETED, Entry, ManifestFile
from boathouse.iceberg.metadata import TableMetadata
from boathouse.iceberg.paths import Paths
from boathouse.iceberg.values import Physical, arrow_array, decode
from boathouse.storage import Stores
from boathouse.table.plan import Tally
from boathouse.table.units import (
    AVRO,
    LANCE,
    ORC,
    PARQUET,
    PART,
    column_stats_type,
    files_schema,
    partition_type,
    stats_type,
)
from boathouse.types import (
    BinaryType,
    DataType,
    Field,
    FloatType,
    PartitionSpec,
    Schema,
    StringType,
)

if TYPE_CHECKING:
    from boathouse.compute import prune
    from boathouse.iceberg import pruning
    from boathouse.iceberg.pruning import PartitionPruner
else:
    prune = Late("boathouse.compute.prune")
    pruning = Late("boathouse.iceberg.pruning")


NATIVE: Final = pa.struct(
    [
        pa.field("manifest", pa.string(), False),
        pa.field("snapshot_id", pa.int64(), False),
        pa.field("file_sequence", pa.int64(), False),
    ]
)
"""The manifest that lists the file, as recorded; the snapshot that added it; its file sequence number."""
_UNITS_A_MANIFEST: Final = 1 << 32
"""More entries than any manifest has: units are numbered even if the manifest list's counts are wrong."""
FORMATS: Final = {"PARQUET": PARQUET, "ORC": ORC, "AVRO": AVRO, "LANCE": LANCE}
BOUNDS: Final = frozenset({"value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"})


@dataclass(frozen=True)
class Listing:
    """One snapshot's files: its metadata, its JSON (None: an empty table), and the schema to read them with."""

    metadata: TableMetadata
    snapshot: Mapping[str, Any] | None
    schema: Schema
    paths: Paths
    stores: Stores
    verify: bool = True

    @cached_property
    def manifest_files(self) -> tuple[ManifestFile, ...]:
        """Every manifest of the snapshot, including those without live entries."""
        if self.snapshot is None:
            return ()
        recorded = self.snapshot.get("manifest-list")
        if recorded is None:
            raise UnsupportedFeatureError(
                "snapshots that embed their manifests (Iceberg format version 1) are not offered",
                where=self.metadata.uri,
            )
        if self.snapshot.get("key-id"):
            raise UnsupportedFeatureError(manifests.ENCRYPTED, where=self.metadata.uri)
        uri = self.paths.uri(recorded)
        found = tuple(manifests.read_list(self.read(uri), uri))
        named = {self.paths.uri(m.path) for m in found}
        if len(named) < len(found):
            raise CorruptTableError(
                f"the manifest list has {len(found):,} rows, but names only {len(named):,} manifests", where=uri
            )
        if self.verify:
            totals.check_list(self.metadata, self.snapshot, found, uri)
        return found

    @property
    def data_manifests(self) -> list[ManifestFile]:
        return [m for m in self.manifest_files if m.content == DATA]

    @property
    def delete_manifests(self) -> list[ManifestFile]:
        return [m for m in self.manifest_files if m.content != DATA and not m.empty]

    def read(self, uri: str) -> bytes:
        """A metadata file. Raises MissingFileError if it is missing."""
        storage, key = self.stores.resolve(uri)
        try:
            return storage.get(key)
        except NotFoundError:
            raise MissingFileError("a file that the table's metadata names is missing", where=uri) from None

    def entries(self, source: ManifestFile, live_only: bool = True, metrics: frozenset[str] = METRICS) -> list[Entry]:
        """The entries of one manifest, with inherited values."""
        uri = self.paths.uri(source.path)
        found = manifests.read_entries(self.read(uri), source, uri, live_only, metrics)
        if self.verify:
            live = len(found) if live_only else sum(e["status"] != DELETED for e in found)
            totals.check_manifest(source, live, uri)
        return found

    def spec(self, source: ManifestFile) -> PartitionSpec:
        try:
            return self.metadata.partitioning.spec(source.spec_id)
        except StopIteration:
            raise CorruptTableError(
                f"the manifest is of partition spec {source.spec_id}, which the table does not have", where=source.path
            ) from None

    def files(
        self, columns: Sequence[tuple[str, ...]] = (), where: Expr | None = None, tally: Tally | None = None
    ) -> Iterator[pa.RecordBatch]:
        """FILES, one batch per manifest; units are numbered in the order of the manifests, whatever is pruned."""
        builder = _Builder(self, columns, where)
        tally = tally or Tally()
        kept = self._kept_manifests(where, tally)
        live = 0
        for i, source in enumerate(self.data_manifests):
            if i in kept:
                batch = builder.batch(source, i * _UNITS_A_MANIFEST, tally)
                live += batch.num_rows
                if batch.num_rows:
                    yield batch
        if self.verify and where is None and self.snapshot is not None:
            totals.check_plan(self.metadata, self.snapshot, DATA, live, self.metadata.uri)

    def schema_of_files(self, columns: Sequence[tuple[str, ...]] = ()) -> pa.Schema:
        types = [_column_type(self.schema, c) for c in columns]
        return files_schema(partition_type(self.metadata.partitioning), stats_type(types), NATIVE)

    def _kept_manifests(self, where: Expr | None, tally: Tally) -> set[int]:
        sources = self.data_manifests
        live = [i for i, m in enumerate(sources) if not m.empty]
        if where is None:
            return set(live)
        kept: set[int] = set()
        for spec in self.metadata.partitioning.specs:
            of_spec = [i for i in live if sources[i].spec_id == spec.id]
            pruner = pruning.PartitionPruner(where, spec, self.schema)
            if not pruner.useful or not of_spec:
                kept.update(of_spec)
                continue
            answers = pruner.manifests([sources[i].partitions for i in of_spec])
            kept.update(i for i, may in zip(of_spec, answers) if may)
            skipped = [sources[i].live_files or 0 for i, may in zip(of_spec, answers) if not may]
            tally.skip(f"manifest summaries {where}", sum(skipped))
        unknown = [i for i in live if sources[i].spec_id not in {s.id for s in self.metadata.partitioning.specs}]
        for i in unknown:
            self.spec(sources[i])
        return kept


def _column_type(schema: Schema, path: tuple[str, ...]) -> DataType:
    found = pruning.field_type(schema, path)
    if found is None:
        raise BoathouseError(f"no column `{'.'.join(path)}`")
    return found


class _Builder:
    """Makes FILES batches from manifests for one request."""

    def __init__(self, listing: Listing, columns: Sequence[tuple[str, ...]], where: Expr | None) -> None:
        self.listing = listing
        self.columns = tuple(columns)
        self.where = where
        self.schema = listing.schema_of_files(columns)
        self.tested = columns_of(where) if where is not None else ()
        self.fields = dict(listing.schema.walk())
        self.pruners: dict[int, PartitionPruner] = {}
        self.pruner = prune.Pruner(where, self.tested) if where is not None and self.tested else None
        if any(p not in self.fields for p in self.tested):
            self.pruner = None
        # Deletes are resolved by plan(): until then the number of deleted rows is unknown.
        self.deleted = None if listing.delete_manifests else 0

    def batch(self, source: ManifestFile, first: int, tally: Tally) -> pa.RecordBatch:
        spec = self.listing.spec(source)
        wanted = self.pruner is not None or bool(self.columns)
        entries = self.listing.entries(source, metrics=BOUNDS if wanted else frozenset())
        tuples = [manifests.partition_values(e["data_file"], spec, source.path) for e in entries]
        live = list(range(len(entries)))
        if self.where is not None:
            live = self._by_partition(spec, entries, tuples, live, tally)
            live = self._by_bounds(spec, entries, tuples, live, tally)
        return self._files(
            source, spec, [entries[i] for i in live], [tuples[i] for i in live], [first + i for i in live]
        )

    def _by_partition(
        self,
        spec: PartitionSpec,
        entries: list[Entry],
        tuples: list[dict[int, Physical]],
        live: list[int],
        tally: Tally,
    ) -> list[int]:
        pruner = self.pruners.get(spec.id)
        if pruner is None:
            assert self.where is not None
            pruner = self.pruners[spec.id] = pruning.PartitionPruner(self.where, spec, self.listing.schema)
        if not pruner.useful or not live:
            return live
        rows = [entries[i]["data_file"]["record_count"] for i in live]
        keep = pruner.files([tuples[i] for i in live], rows)
        kept = [i for i, k in zip(live, keep) if k]
        tally.skip(f"partition {self.where}", len(live) - len(kept))
        return kept

    def _by_bounds(
        self,
        spec: PartitionSpec,
        entries: list[Entry],
        tuples: list[dict[int, Physical]],
        live: list[int],
        tally: Tally,
    ) -> list[int]:
        if self.pruner is None or not live:
            return live
        chosen = [entries[i] for i in live]
        stats = self.stats(self.tested, spec, chosen, [tuples[i] for i in live])
        rows = pa.array([e["data_file"]["record_count"] for e in chosen], pa.int64())
        keep = self.pruner.may_match(stats, rows).to_pylist()
        kept = [i for i, k in zip(live, keep) if k]
        tally.skip(f"bounds {self.where}", len(live) - len(kept))
        return kept

    def stats(
        self,
        paths: Sequence[tuple[str, ...]],
        spec: PartitionSpec,
        entries: Sequence[Entry],
        tuples: Sequence[Mapping[int, Physical]],
    ) -> pa.StructArray:
        """The waist's `stats` for these columns; an identity partition column has its value as exact bounds."""
        fields = [self.fields[p] for p in paths]
        arrays = [
            _partition_stats(f, identity, entries, tuples) if (identity := _identity(spec, p)) is not None else None
            for p, f in zip(paths, fields)
        ]
        decoded = column_stats(entries, [f for f, a in zip(fields, arrays) if a is None])
        filled = iter(decoded)
        done = [a if a is not None else next(filled) for a in arrays]
        if not done:
            return pa.array([{}] * len(entries), pa.struct([]))
        return pa.StructArray.from_arrays(done, fields=[pa.field(str(i), a.type) for i, a in enumerate(done)])

    def _files(
        self,
        source: ManifestFile,
        spec: PartitionSpec,
        entries: list[Entry],
        tuples: list[dict[int, Physical]],
        units: list[int],
    ) -> pa.RecordBatch:
        files = [e["data_file"] for e in entries]
        n = len(files)
        uri = self.listing.paths.uri
        native = pa.StructArray.from_arrays(
            [
                pa.array([source.path] * n, pa.string()),
                pa.array([e["snapshot_id"] for e in entries], pa.int64()),
                pa.array([e["file_sequence_number"] for e in entries], pa.int64()),
            ],
            fields=list(NATIVE),
        )
        arrays = [
            pa.array(units, pa.int64()),
            pa.array([uri(f["file_path"]) for f in files], pa.string()),
            pa.array([_format(f, source) for f in files], pa.int8()),
            pa.array([f["file_size_in_bytes"] for f in files], pa.int64()),
            pa.array([f["record_count"] for f in files], pa.int64()),
            pa.array([self.deleted] * n, pa.int64()),
            pa.array([spec.id] * n, pa.int32()),
            partition_column(tuples, spec, self.listing.metadata, self.schema.field("partition").type),
            pa.array([e["sequence_number"] for e in entries], pa.int64()),
            pa.array([f.get("first_row_id") for f in files], pa.int64()),
            pa.nulls(n, pa.list_(PART)),
            pa.nulls(n, pa.list_(pa.int32())),
            self.stats(self.columns, spec, entries, tuples),
            native,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _format(data_file: Mapping[str, Any], source: ManifestFile) -> int:
    name = str(data_file["file_format"]).upper()
    if name not in FORMATS:
        raise CorruptTableError(f"{name!r} is not an Iceberg data file format", where=source.path)
    return FORMATS[name]


def _identity(spec: PartitionSpec, path: tuple[str, ...]) -> int | None:
    """The partition field that holds the column's value, if there is one."""
    return next((f.id for f in spec if f.source == path and f.transform.name == "identity"), None)


def partition_column(
    tuples: Sequence[Mapping[int, Physical]], spec: PartitionSpec, metadata: TableMetadata, type: pa.StructType
) -> pa.StructArray:
    """FILES `partition`: the union over all specs; fields that this spec lacks are null."""
    if type.num_fields == 0:
        return pa.array([{}] * len(tuples), type)
    types = {f.id: f.type for s in metadata.partitioning.specs for f in s}
    own = {f.id for f in spec}
    arrays = []
    for field in type:
        id = int(field.name)
        values: list[Physical] = [t.get(id) if id in own else None for t in tuples]
        arrays.append(arrow_array(values, types[id]))
    return pa.StructArray.from_arrays(arrays, fields=list(type))


def _partition_stats(
    field: Field, id: int, entries: Sequence[Entry], tuples: Sequence[Mapping[int, Physical]]
) -> pa.StructArray:
    values = [t[id] for t in tuples]
    rows = [e["data_file"]["record_count"] for e in entries]
    nan = [isinstance(v, float) and v != v for v in values]
    bounds = arrow_array([None if x else v for v, x in zip(values, nan)], field.type)
    known = pa.array([v is not None and not x for v, x in zip(values, nan)], pa.bool_())
    nulls = pa.array([n if v is None else 0 for v, n in zip(values, rows)], pa.int64())
    nans = pa.array([n if x else 0 for x, n in zip(nan, rows)], pa.int64())
    if not isinstance(field.type, FloatType):
        nans = pa.nulls(len(values), pa.int64())
    return _stats(field.type, bounds, bounds, known, known, nulls, nans, pa.array(rows, pa.int64()))


def column_stats(entries: Sequence[Entry], fields: Sequence[Field]) -> list[pa.StructArray]:
    """S of the waist for each field from the metric maps; a missing map or key is unknown, not zero."""
    ids = {f.id: i for i, f in enumerate(fields) if f.id is not None}
    if not ids:
        return [pa.nulls(len(entries), column_stats_type(to_arrow_type(f.type))) for f in fields]
    maps = {name: _collect(entries, name, ids) for name in sorted(BOUNDS)}
    return [_column_stats(f, {name: found[i] for name, found in maps.items()}) for i, f in enumerate(fields)]


def _collect(entries: Sequence[Entry], name: str, ids: Mapping[int, int]) -> list[list[Any]]:
    columns: list[list[Any]] = [[None] * len(entries) for _ in ids]
    for row, entry in enumerate(entries):
        found = manifests.map_of(entry["data_file"], name)
        if found:
            for id, column in ids.items():
                columns[column][row] = found.get(id)
    return columns


def _column_stats(field: Field, maps: Mapping[str, list[Any]]) -> pa.StructArray:
    type = field.type
    lower = arrow_array([decode(b, type) for b in maps["lower_bounds"]], type)
    upper = arrow_array([decode(b, type) for b in maps["upper_bounds"]], type)
    # Strings are truncated by default, and nothing shows which were.
    exact = not isinstance(type, StringType | BinaryType)
    counts = [pa.array(maps[n], pa.int64()) for n in ("null_value_counts", "nan_value_counts", "value_counts")]
    return _stats(type, lower, upper, _flags(lower, exact), _flags(upper, exact), *counts)


def _flags(bound: pa.Array, exact: bool) -> pa.Array:
    return pa.array([exact if v else None for v in bound.is_valid().to_pylist()], pa.bool_())


def _stats(type: DataType, *arrays: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(arrays), fields=list(column_stats_type(to_arrow_type(type))))


def new_files(listing: Listing, sources: Sequence[ManifestFile], snapshots: set[int], where: Expr) -> list[str]:
    """Paths of the files in these manifests that one of the snapshots added and that may contain a matching row."""
    builder = _Builder(listing, (), where)
    found: list[str] = []
    for source in sources:
        batch = builder.batch(source, 0, Tally())
        adders = batch.column("native").field("snapshot_id").to_pylist()
        found += [p for p, s in zip(batch.column("path").to_pylist(), adders) if s in snapshots]
    return found

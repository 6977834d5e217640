"""FILES of one manifest, on executors too: entries pruned by partition values, then by bounds, as Arrow columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.longs import longs
from boathouse.arrow.schema import to_arrow_type
from boathouse.errors import BoathouseError, CorruptTableError
from boathouse.iceberg.manifests.entries import Coded, Entries, LiveFiles
from boathouse.iceberg.manifests.reader import ManifestReader
from boathouse.iceberg.manifests.records import ManifestFile
from boathouse.iceberg.manifests.row_ids import row_ids
from boathouse.iceberg.manifests.values import bounds_array
from boathouse.iceberg.metadata.schemas import field_type
from boathouse.iceberg.paths import Paths
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
from boathouse.types import BinaryType, DataType, Field, FloatType, Partitioning, PartitionSpec, Schema, StringType

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.iceberg.manifests.pruning import Tests

NATIVE: Final = pa.struct(
    [
        pa.field("manifest", pa.string(), False),
        pa.field("snapshot_id", pa.int64(), False),
        pa.field("file_sequence", pa.int64(), False),
        pa.field("recorded", pa.string()),
    ]
)
"""The manifest that lists the file, as recorded; the snapshot that added it; its file sequence number; the file's path
as recorded, where it is not the URI."""
FORMATS: Final = {"PARQUET": PARQUET, "ORC": ORC, "AVRO": AVRO, "LANCE": LANCE}
LIVE: Final = b"live"
SKIPPED: Final = b"skipped"
"""Keys of a batch's metadata: the number of the manifest's live files, and how many of them each test skipped."""
_DECODING: Final = Lock()
"""Decoding takes many short steps, between which threads would mostly wait for each other, and longer than one of them
takes for all; requests and decompression go on beside it."""
_COUNTS: Final = ("null_value_counts", "nan_value_counts", "value_counts")
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FileRequest:
    """What is asked of every manifest: statistics of `columns`, of the files that may contain rows where `where`."""

    schema: Schema
    partitioning: Partitioning
    paths: Paths
    columns: tuple[tuple[str, ...], ...]
    where: Expr | None
    deleted: int | None
    verify: bool

    @cached_property
    def files_schema(self) -> pa.Schema:
        types = [column_type(self.schema, c) for c in self.columns]
        return files_schema(partition_type(self.partitioning), stats_type(types), NATIVE)

    @cached_property
    def fields(self) -> Mapping[tuple[str, ...], Field]:
        return dict(self.schema.walk())

    @cached_property
    def tests(self) -> Tests | None:
        """The tests of `where`. They are loaded with the first predicate, and with them what evaluates expressions."""
        if self.where is None:
            return None
        from boathouse.iceberg.manifests.pruning import Tests  # noqa: PLC0415

        return Tests(self.where, self.schema)


def spec_of(partitioning: Partitioning, source: ManifestFile) -> PartitionSpec:
    """The partition spec of a manifest. Raises CorruptTableError if the table does not have it."""
    for spec in partitioning.specs:
        if spec.id == source.spec_id:
            return spec
    raise CorruptTableError(
        f"the manifest is of partition spec {source.spec_id}, which the table does not have", where=source.path
    )


def column_type(schema: Schema, path: tuple[str, ...]) -> DataType:
    """The type of a column. Raises BoathouseError if there is none."""
    found = field_type(schema, path)
    if found is None:
        raise BoathouseError(f"no column `{'.'.join(path)}`")
    return found


@dataclass(frozen=True, slots=True)
class ManifestTask:
    """Manifests to read, each with the number of its first file."""

    request: FileRequest
    reader: ManifestReader
    sources: tuple[tuple[ManifestFile, int], ...]


def read_files(task: ManifestTask) -> Iterator[pa.RecordBatch]:
    """A FILES batch of each manifest, possibly empty, with the counts `LIVE` and `SKIPPED` in the metadata of its
    schema."""
    request = task.request
    named = ((source, request.paths.uri(source.path)) for source, _ in task.sources)
    sources = iter(task.sources)
    for group in task.reader.opened(named):
        with _DECODING:
            decoded = task.reader.decoded(group, request.verify)
            batches = [_batch(request, entries, *of) for entries, of in zip(decoded, sources)]
        yield from batches


def _batch(request: FileRequest, entries: Entries, source: ManifestFile, first: int) -> pa.RecordBatch:
    builder = _Builder(request, source, entries.live)
    batch = builder.batch(first)
    counts = {LIVE: str(len(entries.live)).encode(), SKIPPED: json.dumps(builder.skipped).encode()}
    return batch.replace_schema_metadata(counts)


class _Builder:
    """Makes the FILES of one manifest."""

    def __init__(self, request: FileRequest, source: ManifestFile, live: LiveFiles) -> None:
        self.request = request
        self.source = source
        self.spec = spec_of(request.partitioning, source)
        self.live = live
        self.partition = live.partition(self.spec)
        # Files inherit the ids of their rows from those before them, whatever a condition leaves of these.
        self.row_ids = row_ids(live.columns, live.rows, source, pa.nulls(len(live), pa.int64()))
        self.skipped: dict[str, int] = {}

    def batch(self, first: int) -> pa.RecordBatch:
        kept: Rows = np.arange(len(self.live))
        tests = self.request.tests
        if tests is not None:
            kept = self._keep(kept, self._by_partition(tests), f"partition {self.request.where}")
            if tests.bounds is not None and len(kept):
                stats = self._stats(tests.used)
                keep = tests.bounds.may_match(stats, pa.array(self.live.rows))
                kept = self._keep(kept, keep.to_numpy(zero_copy_only=False), f"bounds {self.request.where}")
        return self._files(longs(first + kept))

    def _keep(self, kept: Rows, keep: npt.NDArray[np.bool_] | None, test: str) -> Rows:
        """Goes on with some of the files."""
        if keep is None or keep.all():
            return kept
        self.skipped[test] = len(keep) - int(np.count_nonzero(keep))
        self.live = self.live.take(keep)
        self.row_ids = self.row_ids.filter(pa.array(keep))
        self.partition = {id: coded.take(keep) for id, coded in self.partition.items()}
        return kept[keep]

    def _by_partition(self, tests: Tests) -> npt.NDArray[np.bool_] | None:
        """Which files may match by their partition values: each combination of values is tested once."""
        pruner = tests.partition(self.spec)
        if pruner is None or not len(self.live):
            return None
        tested = [self.partition[id] for id in pruner.field_ids]
        first, which = combinations([c.codes for c in tested])
        tuples = [{id: c.values[c.codes[i]] for id, c in zip(pruner.field_ids, tested)} for i in first.tolist()]
        keep = np.array(pruner.files(tuples, [1] * len(tuples)), np.bool_)[which]
        return keep & (self.live.rows > 0) if pruner.layers else keep

    def _stats(self, paths: Sequence[tuple[str, ...]]) -> pa.StructArray:
        """The waist's `stats` for these columns; an identity partition column has its value as exact bounds."""
        fields = [self.request.fields[p] for p in paths]
        identities = [_identity(self.spec, f) for f in fields]
        ids = [f.id for f, i in zip(fields, identities) if i is None and f.id is not None]
        metrics = {name: self.live.metric(name, ids) for name in (*_COUNTS, "lower_bounds", "upper_bounds")}
        done = []
        for field, identity, path in zip(fields, identities, paths):
            if identity is not None:
                done.append(_partition_stats(field, self.partition[identity], self.live.rows))
            elif field.id is None:
                done.append(pa.nulls(len(self.live), column_stats_type(to_arrow_type(field.type))))
            else:
                mine = {name: found[field.id] for name, found in metrics.items()}
                if len(path) > 1:
                    mine["null_value_counts"] = self._nested_nulls(mine)
                done.append(_column_stats(field.type, mine))
        if not done:
            return pa.array([{}] * len(self.live), pa.struct([]))
        return pa.StructArray.from_arrays(done, fields=[pa.field(str(i), a.type) for i, a in enumerate(done)])

    def _nested_nulls(self, metrics: Mapping[str, pa.Array]) -> pa.Array:
        """How many values of a field in structs are null; unknown where Java counts no nulls of the structs around it:
        in ORC, and for floats and doubles in Parquet, whose values are then fewer than the rows."""
        nulls, counted = metrics["null_value_counts"], metrics["value_counts"].cast(pa.int64())
        other = pc.not_equal(_formats(self.live, self.source), ORC)
        return pc.if_else(pc.and_(other, pc.equal(counted, longs(self.live.rows))), nulls, pa.scalar(None, nulls.type))

    def _files(self, units: pa.Array) -> pa.RecordBatch:
        live, n, request = self.live, len(self.live), self.request
        recorded = live.paths()
        uris = request.paths.uris(recorded)
        other = pa.nulls(n, pa.string())
        if uris is not recorded:
            other = pc.if_else(pc.equal(uris, recorded), pa.scalar(None, pa.string()), recorded)
        native = pa.StructArray.from_arrays(
            [pa.repeat(self.source.path, n), longs(live.snapshot_id), longs(live.file_sequence), other],
            fields=list(NATIVE),
        )
        arrays = [
            units,
            uris,
            _formats(live, self.source),
            longs(live.sizes),
            longs(live.rows),
            pa.repeat(pa.scalar(request.deleted, pa.int64()), n),
            pa.repeat(pa.scalar(self.spec.id, pa.int32()), n),
            self._partition_column(),
            longs(live.sequence),
            self.row_ids,
            pa.nulls(n, pa.list_(PART)),
            pa.nulls(n, pa.list_(pa.int32())),
            self._stats(request.columns),
            native,
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=request.files_schema)

    def _partition_column(self) -> pa.StructArray:
        """FILES `partition`: the union over all specs; fields that this spec lacks are null."""
        type, n = self.request.files_schema.field("partition").type, len(self.live)
        if type.num_fields == 0:
            return pa.array([{}] * n, type)
        types = {f.id: f.type for s in self.request.partitioning.specs for f in s}
        nothing = Coded([None], np.zeros(n, np.int64))
        found = [self.partition.get(int(f.name), nothing).array(types[int(f.name)]) for f in type]
        return pa.StructArray.from_arrays(found, fields=list(type))


def combinations(codes: Sequence[Rows]) -> tuple[Rows, Rows]:
    """The first row of each combination of codes, and the number of that of each row."""
    which: Rows = np.zeros(len(codes[0]), np.int64)
    first = which[:1]
    for found in codes:
        _, first, which = np.unique(which * (int(found.max()) + 1) + found, return_index=True, return_inverse=True)
    return first, which


def _formats(live: LiveFiles, source: ManifestFile) -> pa.Array:
    coded = live.formats()
    unknown = next((name for name in coded.values if str(name).upper() not in FORMATS), None)
    if unknown is not None:
        raise CorruptTableError(f"{str(unknown).upper()!r} is not an Iceberg data file format", where=source.path)
    numbers = pa.array([FORMATS[str(name).upper()] for name in coded.values], pa.int8())
    return numbers.take(longs(coded.codes))


def _identity(spec: PartitionSpec, column: Field) -> int | None:
    """The partition field that holds the column's value, if there is one."""
    identities = (f for f in spec if f.transform.name == "identity" and f.source_id is not None)
    return next((f.id for f in identities if f.source_id == column.id), None)


def _partition_stats(field: Field, found: Coded, rows: Rows) -> pa.StructArray:
    nan = [isinstance(v, float) and v != v for v in found.values]
    bounds = Coded([None if x else v for v, x in zip(found.values, nan)], found.codes).array(field.type)
    is_null = np.array([v is None for v in found.values], np.bool_)[found.codes]
    is_nan = np.array(nan, np.bool_)[found.codes]
    known = pa.array(~is_null & ~is_nan)
    nans = pa.array(np.where(is_nan, rows, 0)) if isinstance(field.type, FloatType) else pa.nulls(len(rows), pa.int64())
    return _stats(field.type, bounds, bounds, known, known, pa.array(np.where(is_null, rows, 0)), nans, pa.array(rows))


def _column_stats(type: DataType, metrics: Mapping[str, pa.Array]) -> pa.StructArray:
    """S of the waist from the metric maps; a missing map or key is unknown, not zero."""
    lower, upper = (bounds_array(metrics[name], type) for name in ("lower_bounds", "upper_bounds"))
    # Strings are truncated by default, and nothing shows which were.
    exact = pa.scalar(not isinstance(type, StringType | BinaryType))
    flags = [pc.if_else(b.is_valid(), exact, pa.scalar(None, pa.bool_())) for b in (lower, upper)]
    return _stats(type, lower, upper, *flags, *(metrics[name].cast(pa.int64()) for name in _COUNTS))


def _stats(type: DataType, *arrays: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(arrays), fields=list(column_stats_type(to_arrow_type(type))))

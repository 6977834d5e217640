"""FILES of a snapshot: manifests pruned by their summaries, the others read here, or by `map` if they are many."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.manifests import batches as file_batches
from boathouse.iceberg.manifests import reader as manifest_reader
from boathouse.iceberg.manifests import totals
from boathouse.iceberg.manifests.batches import FileRequest, ManifestTask
from boathouse.iceberg.manifests.columns import all_vectors, only_files
from boathouse.iceberg.manifests.entries import LiveFiles
from boathouse.iceberg.manifests.reader import TOGETHER, ManifestReader
from boathouse.iceberg.manifests.records import DATA, Entry, ManifestFile
from boathouse.iceberg.manifests.schemas import METRICS
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.encryption import ENCRYPTED
from boathouse.iceberg.paths import Paths
from boathouse.storage import Stores
from boathouse.table.sizes import FileCounts
from boathouse.table.snapshot import MapFunction
from boathouse.table.tally import Tally
from boathouse.types import PartitionSpec, Schema

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr

UNITS_A_MANIFEST: Final = 1 << 32
"""More entries than any manifest has: units are numbered even if the manifest list's counts are wrong."""
MANY: Final = 32
_TASKS: Final = 8
"""As many tasks there are at least, however few bytes they have."""
MUCH: Final = 64 << 20
"""More manifests than these, by number or by bytes, are read by `map`."""


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
    def reader(self) -> ManifestReader:
        """Reads each manifest once."""
        return manifest_reader.ManifestReader(self.stores)

    def of(self, metadata: TableMetadata, snapshot: Mapping[str, Any] | None) -> Listing:
        """Another snapshot of the table, which the same reader reads."""
        found = replace(self, metadata=metadata, snapshot=snapshot)
        found.__dict__["reader"] = self.reader
        return found

    @cached_property
    def manifest_files(self) -> tuple[ManifestFile, ...]:
        """Every manifest of the snapshot, including those without live entries."""
        if self.snapshot is None:
            return ()
        recorded = self.snapshot.get("manifest-list")
        if recorded is None:
            return self._embedded(self.snapshot)
        if self.snapshot.get("key-id"):
            raise UnsupportedFeatureError(ENCRYPTED, where=self.metadata.uri)
        uri = self.paths.uri(recorded)
        found = self.reader.listed(uri)
        named = {self.paths.uri(m.path) for m in found}
        if len(named) < len(found):
            raise CorruptTableError(
                f"the manifest list has {len(found):,} rows, but names only {len(named):,} manifests", where=uri
            )
        if self.verify:
            totals.check_list(self.metadata, self.snapshot, found, uri)
        return found

    def _embedded(self, snapshot: Mapping[str, Any]) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot of version 1 that names them itself."""
        named = snapshot.get("manifests")
        if not isinstance(named, list) or not all(isinstance(path, str) for path in named):
            raise CorruptTableError(
                f"snapshot {snapshot['snapshot-id']} has neither a manifest list nor manifests", where=self.metadata.uri
            )
        id = int(snapshot["snapshot-id"])
        return tuple(self.reader.embedded(path, self.paths.uri(path), id) for path in dict.fromkeys(named))

    @property
    def data_manifests(self) -> list[ManifestFile]:
        return [m for m in self.manifest_files if m.content == DATA]

    @property
    def delete_manifests(self) -> list[ManifestFile]:
        return [m for m in self.manifest_files if m.content != DATA and not m.empty]

    def entries(
        self,
        source: ManifestFile,
        live_only: bool = True,
        metrics: frozenset[str] = METRICS,
        kept: npt.NDArray[np.bool_] | None = None,
    ) -> list[Entry]:
        """The entries of one manifest as dictionaries, with inherited values; `kept`: of the live ones these."""
        return self.reader.entries(source, self.paths.uri(source.path), self.verify).records(live_only, metrics, kept)

    def live(self, source: ManifestFile) -> LiveFiles:
        """The live files of one manifest, as columns."""
        return self.reader.entries(source, self.paths.uri(source.path), self.verify).live

    def live_uris(self, source: ManifestFile) -> list[str]:
        """The URIs of the live files of one manifest."""
        found: list[str] = self.paths.uris(self.live(source).paths()).to_pylist()
        return found

    def spec(self, source: ManifestFile) -> PartitionSpec:
        return file_batches.spec_of(self.metadata.partitioning, source)

    def files(
        self,
        columns: Sequence[tuple[str, ...]] = (),
        where: Expr | None = None,
        tally: Tally | None = None,
        map: MapFunction | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """FILES, one batch per manifest; units are numbered in the order of the manifests, whatever is pruned."""
        tally = tally or Tally()
        request = self.request(columns, where)
        kept = self._kept_manifests(request, tally)
        tasks = [
            self.task(request, source, i * UNITS_A_MANIFEST)
            for i, source in enumerate(self.data_manifests)
            if i in kept
        ]
        live = 0
        for batch in self._run(tasks, map):
            counts = batch.schema.metadata
            live += int(counts[file_batches.LIVE])
            for test, skipped in json.loads(counts[file_batches.SKIPPED]).items():
                tally.skip(test, skipped)
            if batch.num_rows:
                yield batch.replace_schema_metadata(None)
        if where is None:
            self._check_live(live)

    def counts(self) -> Iterator[FileCounts]:
        """The counts of all files."""
        counted = self._deleted
        live = 0
        for source in self.data_manifests:
            if source.empty:
                continue
            self.spec(source)
            found = self.live(source)
            live += len(found)
            deleted: Iterable[int | None] = repeat(counted)
            if counted is None and self.vectors is not None:
                deleted = map(self.vectors.get, self.paths.uris(found.paths()).to_pylist(), repeat(0))
            yield from zip(found.sizes.tolist(), found.rows.tolist(), deleted)
        self._check_live(live)

    def _check_live(self, live: int) -> None:
        if self.verify and self.snapshot is not None:
            totals.check_plan(self.metadata, self.snapshot, DATA, live, self.metadata.uri)

    @property
    def _deleted(self) -> int | None:
        """The deleted rows of each file. Deletes are resolved by plan(): until then their number is unknown, unless all
        of them are vectors."""
        return None if self.delete_manifests else 0

    @cached_property
    def vectors(self) -> Mapping[str, int] | None:
        """The data files that have deletion vectors, and how many rows these delete; None if there are row deletes of
        another kind, whose rows are only known when they are read."""
        found: dict[str, int] = {}
        for source in self.delete_manifests:
            live = self.live(source)
            if not all_vectors(live):
                return None
            paths = self.paths.uris(only_files(live).drop_null())
            if len(paths) < len(live):
                return None
            found.update(zip(paths.to_pylist(), live.rows.tolist(), strict=True))
        return found

    def counted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """FILES with the deleted rows, where they are known."""
        if not self.delete_manifests or self.vectors is None:
            return batch
        i = batch.schema.get_field_index("deleted")
        rows = map(self.vectors.get, batch.column("path").to_pylist(), repeat(0))
        return batch.set_column(i, batch.schema.field(i), pa.array(list(rows), pa.int64()))

    def _run(self, tasks: Sequence[ManifestTask], map: MapFunction | None) -> Iterator[pa.RecordBatch]:
        sources = [source for task in tasks for source, _ in task.sources]
        unread = [m for m in sources if not self.reader.holds(self.paths.uri(m.path))]
        size = sum(_length(m) for m in unread)
        if map is not None and (len(unread) > MANY or size > MUCH):
            yield from map(file_batches.read_files, _bundles(tasks, min(TOGETHER, size // _TASKS)))
            return
        for task in tasks:
            yield from file_batches.read_files(task)

    def request(self, columns: Sequence[tuple[str, ...]], where: Expr | None) -> FileRequest:
        return file_batches.FileRequest(
            self.schema, self.metadata.partitioning, self.paths, tuple(columns), where, self._deleted, self.verify
        )

    def task(self, request: FileRequest, source: ManifestFile, first: int) -> ManifestTask:
        return file_batches.ManifestTask(request, self.reader, ((source, first),))

    def schema_of_files(self, columns: Sequence[tuple[str, ...]] = ()) -> pa.Schema:
        return self.request(columns, None).files_schema

    def _kept_manifests(self, request: FileRequest, tally: Tally) -> set[int]:
        sources = self.data_manifests
        live = [i for i, m in enumerate(sources) if not m.empty]
        if request.tests is None:
            return set(live)
        kept: set[int] = set()
        for spec in self.metadata.partitioning.specs:
            of_spec = [i for i in live if sources[i].spec_id == spec.id]
            pruner = request.tests.partition(spec)
            if pruner is None or not of_spec:
                kept.update(of_spec)
                continue
            answers = pruner.manifests([sources[i].partitions for i in of_spec])
            kept.update(i for i, may in zip(of_spec, answers) if may)
            skipped = [sources[i].live_files or 0 for i, may in zip(of_spec, answers) if not may]
            tally.skip(f"manifest summaries {request.where}", sum(skipped))
        unknown = [i for i in live if sources[i].spec_id not in {s.id for s in self.metadata.partitioning.specs}]
        for i in unknown:
            self.spec(sources[i])
        return kept


def _length(source: ManifestFile) -> int:
    return source.row.get("manifest_length") or 0


def _bundles(tasks: Sequence[ManifestTask], size: int) -> list[ManifestTask]:
    """Tasks of adjacent manifests, which are decoded together, up to so many bytes."""
    found: list[ManifestTask] = []
    room = 0
    for task in tasks:
        length = sum(_length(source) for source, _ in task.sources)
        if found and length <= room:
            found[-1] = replace(found[-1], sources=(*found[-1].sources, *task.sources))
            room -= length
        else:
            found.append(task)
            room = size - length
    return found


def new_files(listing: Listing, sources: Sequence[ManifestFile], snapshots: set[int], where: Expr) -> list[str]:
    """Paths of the files in these manifests that one of the snapshots added and that may contain a matching row."""
    request = listing.request((), where)
    found: list[str] = []
    for source in sources:
        for batch in file_batches.read_files(listing.task(request, source, 0)):
            adders = batch.column("native").field("snapshot_id").to_pylist()
            found += [p for p, s in zip(batch.column("path").to_pylist(), adders) if s in snapshots]
    return found

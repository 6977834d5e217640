"""Rewrites manifests that lose files, in threads, or by `map` where they are many: on executors too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.iceberg.manifests import carried, readback, writer
from boathouse.iceberg.manifests.batches import spec_of
from boathouse.iceberg.manifests.columns import (
    are_vectors,
    has_vectors,
    layout,
    marked,
    of_live,
    only_files,
    without_offsets,
)
from boathouse.iceberg.manifests.entries import LiveFiles
from boathouse.iceberg.manifests.reader import ManifestReader
from boathouse.iceberg.manifests.records import ManifestFile, Row
from boathouse.iceberg.metadata.versions import FormatVersion
from boathouse.iceberg.paths import Paths
from boathouse.table.snapshot import MapFunction
from boathouse.types import Partitioning, PartitionSpec, Schema

MUCH: Final = 2 << 20
"""More bytes of manifests than these are rewritten by `map`: in process they take about a second (11 ms for 100 entries
with metrics of 16 columns, 24 KiB), a task of Spark 28 ms, beside the start of its job."""
_BUNDLE: Final = 1 << 20
"""Bytes of manifests that one task rewrites."""
_WAVE: Final = 256 << 20
"""Bytes of manifests that are rewritten by one call of `map`: Spark holds all results of a job."""
_REQUESTS: Final = 8
"""So many manifests are fetched at once."""
_NUMBER, _ID, _BYTES = pa.int64(), pa.int32(), pa.binary()
_SUMMARY: Final = pa.struct(
    {"contains_null": pa.bool_(), "contains_nan": pa.bool_(), "lower_bound": _BYTES, "upper_bound": _BYTES}
)
_ROW: Final = pa.struct(
    {
        "manifest_path": pa.string(), "manifest_length": _NUMBER, "partition_spec_id": _ID, "content": _ID,
        **dict.fromkeys(("sequence_number", "min_sequence_number", "added_snapshot_id"), _NUMBER),
        **{f"{how}_{what}_count": _NUMBER for what in ("files", "rows") for how in ("added", "existing", "deleted")},
        "partitions": pa.list_(_SUMMARY), "key_metadata": _BYTES, "first_row_id": _NUMBER,
    }
)  # fmt: skip
"""A manifest's row of the list."""


@dataclass(frozen=True)
class NewManifests:
    """What all manifests that a snapshot writes have in common."""

    snapshot_id: int
    sequence: int
    version: FormatVersion
    codec: str
    schema: Schema
    schema_id: int

    def encoded(self, uri: str, entries: pa.Table, spec: PartitionSpec, content: int) -> tuple[bytes, Row]:
        """A manifest, and its row of the list, as it reads back. Raises CorruptTableError."""
        data = writer.write(entries, spec, self.schema, self.schema_id, content, self.codec, self.version)
        row = writer.list_row(uri, len(data), spec, entries, content, self.sequence, self.snapshot_id)
        readback.check_manifest(data, row, entries, spec)
        return data, row

    def keeps(self, live: LiveFiles) -> bool:
        """Whether a new manifest can say of these files what theirs says; vectors have no place in version 2."""
        return "vectors" in self.version.deletes or not has_vectors(live)


Mask = npt.NDArray[np.bool_]
Lost = Callable[[LiveFiles, Paths], Mask]
"""Which of the live entries of a manifest go; it is pickled."""


def all_files(live: LiveFiles, paths: Paths) -> Mask:
    """Every entry."""
    return np.ones(len(live), np.bool_)


@dataclass(frozen=True, slots=True)
class Among:
    """The entries of data files with these URIs, or of row deletes that are `only_for` one of them."""

    gone: frozenset[str]
    only_for: bool = False

    def __call__(self, live: LiveFiles, paths: Paths) -> Mask:
        files = only_files(live) if self.only_for else live.paths()
        known = files.drop_null()
        uris = paths.uris(known)
        found = known.filter(pc.is_in(uris, pa.array(self.gone, uris.type)))
        lost: Mask = pc.is_in(files, found).to_numpy(zero_copy_only=False)
        return lost


@dataclass(frozen=True, slots=True)
class Replaced:
    """The row deletes up to a sequence number, but for those of other units than these: vectors, or without `vectors`
    those of one file."""

    units: frozenset[str]
    last: int
    vectors: bool

    def __call__(self, live: LiveFiles, paths: Paths) -> Mask:
        known: Mask = live.file_sequence <= self.last
        alone = are_vectors(live) if self.vectors else only_files(live).is_valid()
        stay = alone.to_numpy(zero_copy_only=False) & ~Among(self.units, only_for=True)(live, paths)
        return known & ~stay


@dataclass(frozen=True, slots=True)
class Losing:
    """A manifest that may lose entries, and the URI of the one in its place."""

    source: ManifestFile
    uri: str
    lost: Lost


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Manifests to rewrite."""

    new: NewManifests
    partitioning: Partitioning
    paths: Paths
    verify: bool
    reader: ManifestReader
    losing: tuple[Losing, ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The manifest that takes another's place, and the entries that it marks as deleted, without their metrics."""

    data: bytes
    row: Row
    removed: pa.Table


def rewritten(task: RewriteTask, map: MapFunction | None) -> Iterator[Rewritten | None]:
    """The manifests in their order, None for one that has none of its files. Nothing is written. Raises
    CorruptTableError, MissingFileError, UnsupportedFeatureError, and what `map` raises."""
    for wave in _cut(task.losing, _WAVE):
        tasks = [replace(task, losing=losing) for losing in _cut(wave, _BUNDLE)]
        much = sum(_length(one) for one in wave) > MUCH
        batches = map(rewrite, tasks) if map is not None and much else (b for t in tasks for b in rewrite(t))
        for batch in batches:
            yield _result(batch)


def _cut(losing: Sequence[Losing], size: int) -> Iterator[tuple[Losing, ...]]:
    """In parts of so many bytes, or of one manifest."""
    part: list[Losing] = []
    held = 0
    for one in losing:
        if part and held + _length(one) > size:
            yield tuple(part)
            part, held = [], 0
        part.append(one)
        held += _length(one)
    if part:
        yield tuple(part)


def _length(losing: Losing) -> int:
    return losing.source.row.get("manifest_length") or 0


def _result(batch: pa.RecordBatch) -> Rewritten | None:
    if not batch.num_rows:
        return None
    data, row, removed = batch.columns
    return Rewritten(data[0].as_py(), row[0].as_py(), pa.Table.from_struct_array(removed.flatten()))


def rewrite(task: RewriteTask) -> Iterator[pa.RecordBatch]:
    """A batch for each manifest, without rows for one that is unchanged: the new manifest, its row, and the list of the
    entries that it marks as deleted."""
    with ThreadPoolExecutor(_REQUESTS, thread_name_prefix="boathouse") as pool:
        read = partial(_live, task)
        many = len(task.losing) > 1
        for one, live in zip(task.losing, pool.map(read, task.losing) if many else map(read, task.losing)):
            yield _rewrite(task, one, live)


def _live(task: RewriteTask, one: Losing) -> LiveFiles:
    return task.reader.entries(one.source, task.paths.uri(one.source.path), task.verify).live


def _rewrite(task: RewriteTask, one: Losing, live: LiveFiles) -> pa.RecordBatch:
    lost = one.lost(live, task.paths)
    keeps = task.new.keeps(live)
    if not lost.any() or not (lost.all() or keeps):
        return pa.RecordBatch.from_arrays([pa.nulls(0), pa.nulls(0), pa.nulls(0)], names=["data", "row", "removed"])
    source = one.source
    spec = spec_of(task.partitioning, source)
    carried.check_spec(spec, source.path)
    schema = task.new.version.manifest(spec) if keeps else None
    entries = marked(of_live(live, spec, source, schema), lost, task.new.snapshot_id)
    if not keeps:
        entries = without_offsets(entries)
    data, row = task.new.encoded(one.uri, entries, spec, source.content)
    plain = [f.name for f in layout(spec) if not pa.types.is_nested(f.type)]
    removed = entries.select(plain).filter(pa.array(lost)).combine_chunks().to_struct_array().combine_chunks()
    listed = pa.ListArray.from_arrays(pa.array([0, len(removed)], pa.int32()), removed)
    arrays = [pa.array([data], pa.large_binary()), pa.array([row], _ROW), listed]
    return pa.RecordBatch.from_arrays(arrays, names=["data", "row", "removed"])

"""The statistics files that a commit adds to the version that was counted (spec, "Table Statistics", "Partition
Statistics")."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from boathouse.bits import system
from boathouse.errors import InvalidArgumentError
from boathouse.iceberg import puffin
from boathouse.iceberg.commit.snapshot_builder import METADATA_PATH
from boathouse.iceberg.metadata import updates
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.updates import SetStatistics
from boathouse.iceberg.paths import METADATA_FOLDER
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.statistics.files import NDV, THETA
from boathouse.storage import PutMode, absolute, join
from boathouse.table.change import Change
from boathouse.table.edits import SetColumnStatistics, SetPartitionStatistics


def write_statistics(draft: Draft, change: Change, head: IcebergSnapshot) -> tuple[str, ...]:
    """Writes the files of the change's counts, and makes the draft name them; their URIs. Older ones of the same
    version are no longer named. Raises InvalidArgumentError if the version has expired."""
    edits = [e for e in change.edits if isinstance(e, SetColumnStatistics | SetPartitionStatistics)]
    planned = change.planned
    if not edits or not isinstance(planned, IcebergSnapshot):
        return ()
    if planned.version not in draft.view(head.token).snapshots:
        raise InvalidArgumentError(f"version {planned.version} has expired meanwhile", where=str(change.location))
    return tuple(
        _columns(draft, edit, planned, head)
        if isinstance(edit, SetColumnStatistics)
        else _partitions(draft, edit, planned.version, head)
        for edit in edits
    )


def _columns(draft: Draft, edit: SetColumnStatistics, planned: IcebergSnapshot, head: IcebergSnapshot) -> str:
    sequence = int((planned.snapshot or {}).get("sequence-number", 0))
    ids = {path: f.id for path, f in planned.schema.walk()}
    blobs = []
    for column in edit.columns:
        id = ids[column.path]
        assert id is not None
        properties = {NDV: str(column.distinct)}
        blobs.append(puffin.Blob(THETA, (id,), planned.version, sequence, column.sketch, properties))
    data, footer = puffin.written(blobs)
    uri = _put(draft, head, f"{planned.version}-{system.current().uuid4()}.stats", data)
    entry = {
        "snapshot-id": planned.version,
        "statistics-path": uri,
        "file-size-in-bytes": len(data),
        "file-footer-size-in-bytes": footer,
        "blob-metadata": [blob.described() for blob in blobs],
    }
    draft.make(SetStatistics(entry))
    return uri


def _partitions(draft: Draft, edit: SetPartitionStatistics, version: int, head: IcebergSnapshot) -> str:
    sink = pa.BufferOutputStream()
    pq.write_table(edit.rows, sink, compression="zstd")
    data = sink.getvalue().to_pybytes()
    uri = _put(draft, head, f"partition-stats-{version}-{system.current().uuid4()}.parquet", data)
    entry = {"snapshot-id": version, "statistics-path": uri, "file-size-in-bytes": len(data)}
    draft.make(updates.SetPartitionStatistics(entry))
    return uri


def _put(draft: Draft, head: IcebergSnapshot, name: str, data: bytes) -> str:
    place = draft.view(head.token).properties.get(METADATA_PATH)
    uri = join(absolute(place) if place else join(head.paths.root, METADATA_FOLDER), name)
    storage, key = head.stores.resolve(uri)
    storage.put(key, data, PutMode.CREATE)
    return uri

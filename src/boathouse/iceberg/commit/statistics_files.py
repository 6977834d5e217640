"""The statistics file that a commit adds to the version that was counted (spec, "Table Statistics")."""

from __future__ import annotations

from boathouse.bits import system
from boathouse.errors import InvalidArgumentError
from boathouse.iceberg import puffin
from boathouse.iceberg.commit.snapshot_builder import METADATA_PATH
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.updates import SetStatistics
from boathouse.iceberg.paths import METADATA_FOLDER
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.statistics import NDV, THETA
from boathouse.storage import PutMode, absolute, join
from boathouse.table.change import Change
from boathouse.table.edits import SetColumnStatistics


def write_statistics(draft: Draft, change: Change, head: IcebergSnapshot) -> tuple[str, ...]:
    """Writes the file of the change's counts, and makes the draft name it; its URI, or nothing. An older one of the
    same version is no longer named. Raises InvalidArgumentError if the version has expired."""
    edit, planned = change.edit(SetColumnStatistics), change.planned
    if edit is None or not isinstance(planned, IcebergSnapshot):
        return ()
    snapshot = draft.view(head.token).snapshots.get(planned.version)
    if snapshot is None:
        raise InvalidArgumentError(f"version {planned.version} has expired meanwhile", where=str(change.location))
    ids = {path: f.id for path, f in planned.schema.walk()}
    sequence = int(snapshot.get("sequence-number", 0))
    blobs = []
    for column in edit.columns:
        id = ids[column.path]
        assert id is not None
        properties = {NDV: str(column.distinct)}
        blobs.append(puffin.Blob(THETA, (id,), planned.version, sequence, column.sketch, properties))
    data, footer = puffin.written(blobs)
    place = draft.view(head.token).properties.get(METADATA_PATH)
    folder = absolute(place) if place else join(head.paths.root, METADATA_FOLDER)
    uri = join(folder, f"{planned.version}-{system.current().uuid4()}.stats")
    storage, key = head.stores.resolve(uri)
    storage.put(key, data, PutMode.CREATE)
    entry = {
        "snapshot-id": planned.version,
        "statistics-path": uri,
        "file-size-in-bytes": len(data),
        "file-footer-size-in-bytes": footer,
        "blob-metadata": [blob.described() for blob in blobs],
    }
    draft.make(SetStatistics(entry))
    return (uri,)

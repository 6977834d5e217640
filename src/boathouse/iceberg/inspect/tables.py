"""The metadata tables of one snapshot by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from boathouse.iceberg.files import Listing
from boathouse.iceberg.inspect import documents
from boathouse.iceberg.inspect.columns import Layout
from boathouse.iceberg.inspect.manifests import all_manifests, manifests
from boathouse.iceberg.inspect.partitions import partitions
from boathouse.iceberg.inspect.position_deletes import position_deletes
from boathouse.iceberg.inspect.rows import Read
from boathouse.iceberg.manifests.records import DATA, ManifestFile
from boathouse.iceberg.snapshot import IcebergSnapshot


@dataclass(frozen=True, slots=True)
class IcebergTables:
    """See `table.features.MetadataTables`: all of the reference's."""

    snapshot: IcebergSnapshot

    def inspect(self, name: str) -> pa.Table:
        """Raises CorruptTableError, MissingFileError, UnsupportedFeatureError."""
        return _TABLES[name](self.snapshot)


def _layout(snapshot: IcebergSnapshot) -> Layout:
    return Layout.of(snapshot.metadata, snapshot.schema)


def _every(source: ManifestFile) -> bool:
    return True


def _data(source: ManifestFile) -> bool:
    return source.content == DATA


def _deletes(source: ManifestFile) -> bool:
    return source.content != DATA


def _files(wanted: Callable[[ManifestFile], bool], all: bool) -> Callable[[IcebergSnapshot], pa.Table]:
    def table(snapshot: IcebergSnapshot) -> pa.Table:
        read = Read(snapshot.listing, _layout(snapshot), live_only=True)
        return read.files([m for m in _manifests(snapshot, all) if wanted(m)])

    return table


def _entries(all: bool) -> Callable[[IcebergSnapshot], pa.Table]:
    def table(snapshot: IcebergSnapshot) -> pa.Table:
        return Read(snapshot.listing, _layout(snapshot), live_only=False).entries(_manifests(snapshot, all))

    return table


def _manifests(snapshot: IcebergSnapshot, all: bool) -> list[ManifestFile]:
    """The manifests of the snapshot, or those of all retained snapshots, each once."""
    if not all:
        return list(snapshot.listing.manifest_files)
    found: dict[str, ManifestFile] = {}
    for listing in _listings(snapshot):
        for source in listing.manifest_files:
            found.setdefault(snapshot.paths.uri(source.path), source)
    return list(found.values())


def _listings(snapshot: IcebergSnapshot) -> Iterator[Listing]:
    """Every retained snapshot, with what is read of any of them."""
    for document in snapshot.metadata.snapshots.values():
        listing = replace(snapshot.listing, snapshot=document)
        listing.reader.adopt(snapshot.listing.reader)
        yield listing


_TABLES: Final[Mapping[str, Callable[[IcebergSnapshot], pa.Table]]] = {
    "entries": _entries(all=False),
    "files": _files(_every, all=False),
    "data_files": _files(_data, all=False),
    "delete_files": _files(_deletes, all=False),
    "history": lambda s: documents.history(s.metadata),
    "metadata_log_entries": lambda s: documents.metadata_log_entries(s.metadata, s.paths),
    "snapshots": lambda s: documents.snapshots(s.metadata),
    "refs": lambda s: documents.refs(s.metadata),
    "manifests": lambda s: manifests(s.listing),
    "partitions": lambda s: partitions(s.listing, _layout(s)),
    "all_data_files": _files(_data, all=True),
    "all_delete_files": _files(_deletes, all=True),
    "all_files": _files(_every, all=True),
    "all_manifests": lambda s: all_manifests(list(_listings(s)), s.metadata.uri),
    "all_entries": _entries(all=True),
    "position_deletes": lambda s: position_deletes(s, _layout(s)),
}

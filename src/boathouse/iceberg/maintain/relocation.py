"""The metadata of a table for another place: documents, lists, manifests and files of deleted positions, which name
files, are written anew with the same content but for the places; data files, equality deletes and statistics stay."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from boathouse.avro import container as avro
from boathouse.bits import system
from boathouse.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg import puffin
from boathouse.iceberg.manifests.columns import PUFFIN
from boathouse.iceberg.manifests.records import DATA, DELETED, POSITION_DELETES
from boathouse.iceberg.manifests.schemas import ENTRY_NAMES, FILE_PATH_ID, LIST_NAMES
from boathouse.iceberg.metadata.document import Json, dump
from boathouse.iceberg.metadata.encryption import ENCRYPTED
from boathouse.iceberg.paths import METADATA_FOLDER, compressed, led_by
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.parquet.errors import damage
from boathouse.storage import PutMode, basename, join
from boathouse.table.features.relocation import RewrittenPaths

Record = dict[str, Any]
_PLACES: Final = (
    "write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path",
)  # fmt: skip
"""Properties that name folders."""
_REFERENCED: Final = "referenced-data-file"
_WRITTEN: Final = frozenset({"null", "deflate", "zstandard"})


@dataclass(frozen=True, slots=True)
class IcebergRelocation:
    """See `table.features.Relocation`."""

    snapshot: IcebergSnapshot

    def rewrite_paths(self, source: str, target: str, staging: str | None) -> RewrittenPaths:
        """Raises InvalidArgumentError, UnsupportedFeatureError, CorruptTableError, StorageError."""
        own = join(self.snapshot.location.uri, METADATA_FOLDER, f"copy-table-staging-{system.current().uuid4()}")
        return _Rewrite(self.snapshot, source.rstrip("/"), target.rstrip("/"), staging or own).run()


@dataclass
class _Rewrite:
    """One rewrite. Paths are as they are recorded; `sizes` are those of files that were written anew."""

    snapshot: IcebergSnapshot
    source: str
    target: str
    staging: str
    copies: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)

    def run(self) -> RewrittenPaths:
        """Everything is read, and what names files below another folder found, before the first file is written but
        those of row deletes."""
        document = self.snapshot.metadata.document
        lists = {path: self._read(path, LIST_NAMES) for path in self._lists(document)}
        manifests = {row["manifest_path"]: row for found in lists.values() for row in found.rows}
        of_deletes = [path for path, row in manifests.items() if row.get("content", DATA) != DATA]
        for path in of_deletes:
            self._write_deletes(self._read(path, ENTRY_NAMES))
        written = len(self.sizes)
        for path in manifests:
            found = self._read(path, ENTRY_NAMES)
            self._copy_files(found)
            self._put(path, found.changed(self._entry))
        for path, found in lists.items():
            self._put(path, found.changed(self._row))
        for entry in (*(document.get("statistics") or ()), *(document.get("partition-statistics") or ())):
            self._copy(entry["statistics-path"])
        token = self.snapshot.token
        body = dump(self._document(document))
        moved = join(self._moved(self.snapshot.metadata.location), METADATA_FOLDER, basename(token))
        self._stage(moved, gzip.compress(body, mtime=0) if compressed(token) else body)
        copies = tuple((source, target) for target, source in self.copies.items() if source != target)
        return RewrittenPaths(basename(token), self._list(copies), len(manifests), written, copies)

    def _lists(self, document: Json) -> list[str]:
        found = []
        for snapshot in document.get("snapshots") or ():
            if snapshot.get("manifest-list") is None:
                raise UnsupportedFeatureError(
                    f"the snapshot {snapshot['snapshot-id']} names its manifests itself",
                    advice="expire it: t.expire_snapshots(...)",
                )
            if snapshot.get("key-id"):
                raise UnsupportedFeatureError(ENCRYPTED)
            found.append(snapshot["manifest-list"])
        return list(dict.fromkeys(found))

    def _read(self, path: str, names: Mapping[int, str]) -> _Container:
        uri = self.snapshot.paths.uri(path)
        storage, key = self.snapshot.stores.resolve(uri)
        return _Container.of(storage.get(key), names, uri)

    def _write_deletes(self, manifest: _Container) -> None:
        """Files of positions, and of vectors, of the live entries of a manifest."""
        for entry in manifest.rows:
            file = entry["data_file"]
            path = file["file_path"]
            if entry["status"] == DELETED or file["content"] != POSITION_DELETES or path in self.sizes:
                continue
            uri, format = self.snapshot.paths.uri(path), str(file["file_format"]).upper()
            storage, key = self.snapshot.stores.resolve(uri)
            if format == PUFFIN:
                data = puffin.relabelled(storage.get(key), self._label, uri)
            elif format == "PARQUET":
                data = _positions(storage.get(key), self._moved, uri)
            else:
                raise UnsupportedFeatureError(
                    f"files of positions in {format} are not written anew", where=uri, advice="call t.rewrite_deletes()"
                )
            self._put(path, data)

    def _label(self, properties: Mapping[str, str]) -> Mapping[str, str]:
        path = properties.get(_REFERENCED)
        return properties if path is None else {**properties, _REFERENCED: self._moved(path)}

    def _copy_files(self, manifest: _Container) -> None:
        for entry in manifest.rows:
            path = entry["data_file"]["file_path"]
            if entry["data_file"].get("key_metadata") is not None:
                raise UnsupportedFeatureError(ENCRYPTED, where=path)
            if entry["status"] != DELETED and path not in self.sizes:
                self._copy(path)

    def _entry(self, entry: Record) -> Record:
        file: Record = entry["data_file"]
        path = file["file_path"]
        changed = {**file, "file_path": self._moved(path)}
        if path in self.sizes:
            changed["file_size_in_bytes"] = self.sizes[path]
            if str(file["file_format"]).upper() != PUFFIN:
                changed["split_offsets"] = None
        if file.get("referenced_data_file") is not None:
            changed["referenced_data_file"] = self._moved(file["referenced_data_file"])
        if file.get("content") == POSITION_DELETES:
            for name in ("lower_bounds", "upper_bounds"):
                if file.get(name):
                    changed[name] = self._bounds(file[name])
        return {**entry, "data_file": changed}

    def _bounds(self, bounds: Mapping[int, bytes]) -> Mapping[int, bytes]:
        """Those of the paths; they are left out where they are no paths, but the beginning of one."""
        found = dict(bounds)
        path = found.pop(FILE_PATH_ID, None)
        if path is not None:
            moved = led_by(path.decode(errors="replace"), ((self.source, self.target),))
            if moved is not None:
                found[FILE_PATH_ID] = moved.encode()
        return found

    def _row(self, row: Record) -> Record:
        path = row["manifest_path"]
        return {**row, "manifest_path": self._moved(path), "manifest_length": self.sizes[path]}

    def _document(self, document: Json) -> Json:
        """Without the log of earlier documents, which stay where they are."""
        found = {**document, "location": self._moved(document["location"]), "metadata-log": []}
        found["snapshots"] = [
            {**s, "manifest-list": self._moved(s["manifest-list"])} for s in document.get("snapshots") or ()
        ]
        for name in ("statistics", "partition-statistics"):
            if document.get(name):
                found[name] = [{**e, "statistics-path": self._moved(e["statistics-path"])} for e in document[name]]
        properties = document.get("properties") or {}
        found["properties"] = {k: self._moved(v) if k in _PLACES and v else v for k, v in properties.items()}
        return found

    def _moved(self, path: str) -> str:
        found = led_by(path, ((self.source, self.target),))
        if found is None:
            raise InvalidArgumentError(
                f"{path} is not below {self.source}", advice="name a folder that has all files of the table"
            )
        return found

    def _put(self, path: str, data: bytes) -> None:
        """A file that is written anew."""
        self.sizes[path] = len(data)
        self._stage(self._moved(path), data)

    def _stage(self, moved: str, data: bytes) -> None:
        uri = join(self.staging, moved[len(self.target) + 1 :])
        storage, key = self.snapshot.stores.resolve(uri)
        storage.put(key, data, PutMode.CREATE)
        self.copies[moved] = uri

    def _copy(self, path: str) -> None:
        self.copies[self._moved(path)] = self.snapshot.paths.uri(path)

    def _list(self, copies: tuple[tuple[str, str], ...]) -> str:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(copies)
        uri = join(self.staging, "file-list")
        storage, key = self.snapshot.stores.resolve(uri)
        storage.put(key, text.getvalue().encode(), PutMode.CREATE)
        return uri


@dataclass(frozen=True, slots=True)
class _Container:
    """An Avro file as it is, records with every field, known or not; `schema` has the specification's names."""

    metadata: Mapping[str, bytes]
    schema: Any
    codec: str
    rows: list[Record]

    @classmethod
    def of(cls, data: bytes, names: Mapping[int, str], uri: str) -> _Container:
        found = avro.parse(data, uri)
        schema = avro.by_ids(found.schema, names, uri)
        rows = [record for some in avro.records(found, schema) for record in some]
        return cls(found.metadata, schema, found.codec, rows)

    def changed(self, change: Callable[[Record], Record]) -> bytes:
        """The file with other values of the same schema."""
        kept = {k: v.decode() for k, v in self.metadata.items() if k != "avro.codec"}
        codec = self.codec if self.codec in _WRITTEN else "deflate"
        return avro.write(self.schema, [change(row) for row in self.rows], kept, codec)


def _positions(data: bytes, moved: Callable[[str], str], uri: str) -> bytes:
    """A Parquet file of positions with other paths. Raises CorruptTableError."""
    with damage("not a readable Parquet file", uri):
        table = pq.read_table(pa.BufferReader(data))
    names = [i for i, f in enumerate(table.schema) if _is_path(f)]
    if len(names) != 1:
        raise CorruptTableError("the file of positions has no column of paths", where=uri)
    at = names[0]
    coded = table.column(at).combine_chunks().dictionary_encode()
    paths = pa.array([moved(p) for p in coded.dictionary.to_pylist()], pa.string())
    table = table.set_column(at, table.schema.field(at).with_type(pa.string()), paths.take(coded.indices))
    out = pa.BufferOutputStream()
    pq.write_table(table, out, compression="zstd")
    return bytes(out.getvalue())


def _is_path(field: pa.Field) -> bool:
    id = (field.metadata or {}).get(b"PARQUET:field_id")
    return id == str(FILE_PATH_ID).encode() or (id is None and field.name == "file_path")

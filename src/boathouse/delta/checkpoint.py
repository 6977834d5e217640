"""Reading checkpoints: only the columns and row groups that are asked for (PROTOCOL.md, "Checkpoint Schema")."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.late import Late
from boathouse.delta import paths
from boathouse.delta.commits import Entry, parse_entry
from boathouse.delta.log import LOG, Checkpoint, Log
from boathouse.errors import CorruptTableError, NotFoundError
from boathouse.parquet.damage import damage
from boathouse.storage import Storage, uris

if TYPE_CHECKING:
    import pyarrow.parquet as pq
else:
    pq = Late("pyarrow.parquet")

BATCH_ROWS: Final = 65_536
_SMALL: Final = {"protocol": "minReaderVersion", "metaData": "id", "txn": "appId", "sidecar": "path"}
"""Actions that are read when a table is opened, each with a leaf that is never null in it."""

Choose = Callable[[pa.Array, Any], Any]
"""Partition values of some rows (a map column) -> a mask of rows to keep."""


class RangeFile(io.RawIOBase):
    """An object as a file that reads ranges."""

    def __init__(self, storage: Storage, key: str, size: int) -> None:
        self._storage, self._key, self._size, self._at = storage, key, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        length = self._size - self._at if size is None or size < 0 else size
        data = self._storage.get_range(self._key, self._at, length) if length > 0 else b""
        self._at += len(data)
        return data


def open_parquet(storage: Storage, key: str, size: int, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """Opens a Parquet file of the log. Raises CorruptTableError, NotFoundError."""
    uri = storage.uri(key)
    with damage("not a readable checkpoint file", uri):
        if uri.startswith("file:///"):
            try:
                return pq.ParquetFile(pa.OSFile(uri[len("file://") :]), metadata=metadata)
            except FileNotFoundError as error:
                raise NotFoundError("the checkpoint file is missing", where=uri) from error
        source = pa.PythonFile(RangeFile(storage, key, size), mode="r")
        return pq.ParquetFile(source, metadata=metadata, pre_buffer=True)


@dataclass(frozen=True, slots=True)
class Part:
    """One Parquet file with actions, known by its footer; `first` is the number of its first row in the checkpoint."""

    storage: Storage
    key: str
    size: int
    metadata: pq.FileMetaData
    first: int

    @property
    def uri(self) -> str:
        return self.storage.uri(self.key)

    @property
    def rows(self) -> int:
        return int(self.metadata.num_rows)

    def open(self) -> pq.ParquetFile:
        """Opened anew for every reader: listings may run at once."""
        return open_parquet(self.storage, self.key, self.size, self.metadata)

    def leaf(self, *path: str) -> int | None:
        """The number of a leaf column."""
        wanted = ".".join(path)
        schema = self.metadata.schema
        return next((i for i in range(len(schema.names)) if schema.column(i).path == wanted), None)

    def groups(self, leaf: int | None) -> Iterator[int]:
        """Row groups in which the leaf is not null throughout, as far as statistics tell."""
        if leaf is None:
            return
        for i in range(self.metadata.num_row_groups):
            group = self.metadata.row_group(i)
            stats = group.column(leaf).statistics
            if stats is not None and stats.has_null_count and stats.null_count >= group.num_rows:
                continue
            yield i


@dataclass(frozen=True, slots=True)
class OpenCheckpoint:
    """A checkpoint whose small actions are read; `parts` hold the actions on files."""

    version: int
    small: dict[str, list[dict[str, Any]]]
    parts: tuple[Part, ...]
    entry: Entry | None = None

    @property
    def rows(self) -> int:
        return sum(p.rows for p in self.parts)


def open_checkpoint(log: Log, checkpoint: Checkpoint) -> OpenCheckpoint:
    """Opens and checks every file of a checkpoint. Raises CorruptTableError, NotFoundError."""
    first = checkpoint.files[0]
    if first.key.endswith(".json"):
        entry = parse_entry(checkpoint.version, log.uri(first.key), log.storage.get(first.key), first.modified_ms)
        small, parts = dict(entry.actions), []
    else:
        entry, parts = None, _open(log, [(f.key, f.size) for f in checkpoint.files])
        small = _small(parts)
    sidecars = small.get("sidecar") or []
    if sidecars:
        parts = _open(log, [(_sidecar_key(log, s["path"]), int(s["sizeInBytes"])) for s in sidecars])
    if not parts and entry is None:
        raise CorruptTableError("the checkpoint has no rows", where=log.uri(first.key))
    return OpenCheckpoint(checkpoint.version, small, tuple(parts), entry)


def _sidecar_key(log: Log, path: str) -> str:
    return uris.split(paths.decode(path, f"{log.root}/{LOG}/_sidecars"))[2]


def _open(log: Log, files: Sequence[tuple[str, int]]) -> list[Part]:
    parts, first = [], 0
    for key, size in files:
        with open_parquet(log.storage, key, size) as file:
            part = Part(log.storage, key, size, file.metadata, first)
        parts.append(part)
        first += part.rows
    return parts


def _small(parts: Sequence[Part]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for part in parts:
        with part.open() as file, damage("broken checkpoint data", part.uri):
            for kind, leaf in _SMALL.items():
                for group in part.groups(part.leaf(kind, leaf)):
                    column = file.read_row_group(group, columns=[kind]).column(kind)
                    for action in column.filter(pc.is_valid(column)).to_pylist(maps_as_pydicts="lossy"):
                        found.setdefault(kind, []).append({k: v for k, v in action.items() if v is not None})
    return found


def read_files(
    checkpoint: OpenCheckpoint, kind: str, schema: pa.Schema, choose: Choose | None = None
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """(row numbers, actions) of `kind` add or remove, with the columns of `schema`; absent ones are null.

    With `choose`, partition values are read first, and the rest only of row groups with a row to keep.
    """
    for part in checkpoint.parts:
        starts = np.cumsum([0] + [part.metadata.row_group(i).num_rows for i in range(part.metadata.num_row_groups)])
        with part.open() as file:
            for group in part.groups(part.leaf(kind, "path")):
                first = part.first + int(starts[group])
                with damage("broken checkpoint data", part.uri):
                    yield from _group(file, group, first, kind, schema, choose)


def _group(
    file: pq.ParquetFile, group: int, first: int, kind: str, schema: pa.Schema, choose: Choose | None
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    keep = None
    if choose is not None:
        keep = _chosen(file, group, kind, choose)
        if not keep.any():
            return
    struct = file.schema_arrow.field(kind).type
    names = [f.name for f in schema if struct.get_field_index(f.name) >= 0]
    columns = [f"{kind}.{n}" for n in names]
    at = 0
    for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns, use_threads=True):
        actions = batch.column(0)
        rows = np.arange(at, at + batch.num_rows)
        mask = keep[at : at + batch.num_rows] if keep is not None else _valid(actions)
        at += batch.num_rows
        if mask.all():
            yield pa.array(first + rows), _conform(actions, schema)
        elif mask.any():
            yield pa.array(first + rows[mask]), _conform(actions.filter(pa.array(mask)), schema)


def _valid(actions: pa.StructArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    path = actions.field("path") if actions.type.get_field_index("path") >= 0 else actions
    found = pc.and_(pc.is_valid(actions), pc.is_valid(path))
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def _chosen(file: pq.ParquetFile, group: int, kind: str, choose: Choose) -> np.ndarray[Any, np.dtype[np.bool_]]:
    masks = []
    for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=[f"{kind}.partitionValues"]):
        actions = batch.column(0)
        valid = np.asarray(pc.is_valid(actions).to_numpy(zero_copy_only=False), bool)
        masks.append(choose(actions.field("partitionValues"), valid))
    return np.concatenate(masks) if masks else np.zeros(0, bool)


def _conform(actions: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
    children = {f.name: c for f, c in zip(actions.type, actions.flatten())}
    columns = []
    for f in schema:
        found = children.get(f.name)
        columns.append(pa.nulls(len(actions), f.type) if found is None else _cast(found, f.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(array: pa.Array, type: pa.DataType) -> pa.Array:
    if array.type == type:
        return array
    if pa.types.is_struct(type) and pa.types.is_struct(array.type):
        children = {f.name: c for f, c in zip(array.type, array.flatten())}
        parts = [_cast(children[f.name], f.type) if f.name in children else pa.nulls(len(array), f.type) for f in type]
        return pa.StructArray.from_arrays(parts, fields=list(type), mask=pc.is_null(array))
    return array.cast(type)

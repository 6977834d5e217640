"""Reading checkpoints: only the columns and row groups that are asked for (PROTOCOL.md, "Checkpoint Schema")."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.utf8 import require_utf8
from boathouse.bits.late import Late
from boathouse.delta import paths
from boathouse.delta.commits import ADD, REMOVE, Entry, check_vector, parse_entry
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

_TEXTS: Final = frozenset((pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()))

Mask = np.ndarray[Any, np.dtype[np.bool_]]
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

    def nulls(self, *path: str) -> int:
        """The nulls of a leaf column; -1 if it is absent or statistics do not tell."""
        leaf, found = self.leaf(*path), 0
        for i in range(self.metadata.num_row_groups if leaf is not None else 0):
            stats = self.metadata.row_group(i).column(leaf).statistics
            if stats is None or not stats.has_null_count:
                return -1
            found += stats.null_count
        return -1 if leaf is None else found


@dataclass(frozen=True, slots=True)
class OpenCheckpoint:
    """A checkpoint whose small actions are read; `parts` hold the actions on files."""

    version: int
    uri: str
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
    uri = log.uri(first.key)
    sidecars = small.get("sidecar") or []
    if sidecars:
        parts = _open(log, [_sidecar(log, s, uri) for s in sidecars])
    if not parts and entry is None:
        raise CorruptTableError("the checkpoint has no rows", where=uri)
    for part in parts:
        check_columns(part)
    return OpenCheckpoint(checkpoint.version, uri, small, tuple(parts), entry)


def _sidecar(log: Log, sidecar: Mapping[str, Any], where: str) -> tuple[str, int]:
    """Key and size of a sidecar. Raises CorruptTableError, also for one that lies outside the table's store."""
    path, size = sidecar.get("path"), sidecar.get("sizeInBytes")
    if not isinstance(path, str) or not path:
        raise CorruptTableError("a sidecar action has no path", where=where)
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise CorruptTableError(f"the sidecar {path} has no sizeInBytes", where=where)
    found = uris.split(paths.decode(path, f"{log.root}/{LOG}/_sidecars"))
    if found[:2] != uris.split(log.root)[:2]:
        raise CorruptTableError(f"the sidecar {path} lies outside the table's store", where=where)
    return found[2], size


def check_columns(part: Part) -> None:
    """Raises CorruptTableError unless the columns of actions on files are what they are called."""
    with part.open() as file, damage("broken checkpoint data", part.uri):
        schema = file.schema_arrow
    for kind, wanted in (("add", ADD), ("remove", REMOVE)):
        at = schema.get_field_index(kind)
        if at < 0 and kind == "remove":
            continue
        if at < 0 or not pa.types.is_struct(schema.field(at).type):
            found = "missing" if at < 0 else str(schema.field(at).type)
            raise CorruptTableError(f"the column `{kind}` of the checkpoint is {found}, not a struct", where=part.uri)
        struct = schema.field(at).type
        for name in ("path", "partitionValues") if kind == "add" else ("path",):
            if struct.get_field_index(name) < 0:
                raise CorruptTableError(f"the column `{kind}` of the checkpoint has no {name}", where=part.uri)
        if part.nulls(kind, "path") > part.nulls(kind, "size") >= 0:
            raise _no_path(kind, part.uri)
        for f in struct:
            if f.name in wanted.names and not _castable(f.type, wanted.field(f.name).type):
                text = f"the column `{kind}.{f.name}` of the checkpoint is {f.type}"
                raise CorruptTableError(f"{text}, not {wanted.field(f.name).type}", where=part.uri)


def _castable(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values keep their meaning: the kinds are the same, widths may differ."""
    if pa.types.is_dictionary(found):
        return _castable(found.value_type, wanted)
    if pa.types.is_null(found):
        return True
    if pa.types.is_struct(wanted):
        return pa.types.is_struct(found) and all(
            _castable(f.type, wanted.field(f.name).type) for f in found if wanted.get_field_index(f.name) >= 0
        )
    if pa.types.is_map(wanted):
        return pa.types.is_map(found) and all(
            _castable(a, b) for a, b in ((found.key_type, wanted.key_type), (found.item_type, wanted.item_type))
        )
    if pa.types.is_string(wanted):
        return found in _TEXTS
    return bool(pa.types.is_integer(found) if pa.types.is_integer(wanted) else found == wanted)


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
                at = part.leaf(kind, leaf)
                if at is None and kind in file.schema_arrow.names:
                    raise CorruptTableError(f"the column `{kind}` of the checkpoint has no {leaf}", where=part.uri)
                for group in part.groups(at):
                    for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=[kind]):
                        column = batch.column(0)
                        column = column.filter(pc.is_valid(column))
                        require_utf8(column, part.uri, f"the column `{kind}`")
                        for action in column.to_pylist(maps_as_pydicts="lossy"):
                            found.setdefault(kind, []).append({k: v for k, v in action.items() if v is not None})
    for kind in ("protocol", "metaData"):
        if len(found.get(kind, ())) > 1:
            raise CorruptTableError(f"the checkpoint has {len(found[kind])} {kind} actions", where=parts[0].uri)
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
                    yield from _group(file, group, first, kind, schema, choose, part.uri)


def _group(
    file: pq.ParquetFile, group: int, first: int, kind: str, schema: pa.Schema, choose: Choose | None, where: str
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    keep = None
    if choose is not None:
        keep = _chosen(file, group, kind, choose, where)
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
        mask = mask & ~_pathless(actions, mask, kind, where)
        if not mask.any():
            continue
        if not mask.all():
            rows, actions = rows[mask], actions.filter(pa.array(mask))
        require_utf8(actions, where, f"the column `{kind}`")
        found = _conform(actions, schema)
        _check_vectors(found.column("deletionVector"), where)
        yield pa.array(first + rows), found


def _valid(array: pa.Array) -> Mask:
    return np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), bool)


def _pathless(actions: pa.StructArray, chosen: Mask, kind: str, where: str) -> Mask:
    """Actions of nothing but nulls, which stand for none. Raises CorruptTableError for others without a path."""
    found = chosen & ~_valid(actions.field("path"))
    if found.any():
        rows = actions.filter(pa.array(found & _valid(actions)))
        if any(rows.field(i).null_count < len(rows) for i in range(rows.type.num_fields)):
            raise _no_path(kind, where)
    return found


def _no_path(kind: str, where: str) -> CorruptTableError:
    return CorruptTableError(f"an {kind} action of the checkpoint has no path", where=where)


def _check_vectors(vectors: pa.StructArray, where: str) -> None:
    if vectors.null_count == len(vectors):
        return
    for vector in vectors.drop_null().to_pylist():
        check_vector({k: v for k, v in vector.items() if v is not None}, where)


def _chosen(file: pq.ParquetFile, group: int, kind: str, choose: Choose, where: str) -> Mask:
    masks = []
    for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=[f"{kind}.partitionValues"]):
        actions = batch.column(0)
        require_utf8(actions, where, f"the column `{kind}`")
        masks.append(choose(actions.field("partitionValues"), _valid(actions)))
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

"""Reads checkpoints: only the requested columns and row groups (PROTOCOL.md, "Checkpoint Schema")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.longs import longs
from boathouse.arrow.masks import booleans
from boathouse.arrow.utf8 import require_utf8
from boathouse.delta import paths
from boathouse.delta.checkpoint.check import Mask, check_vectors, column_findings, pathless, valid_rows
from boathouse.delta.checkpoint.part import Part, open_parquet
from boathouse.delta.log.entry import Entry, parse_entry
from boathouse.delta.log.folder import LOG, SIDECARS, Checkpoint, Log
from boathouse.delta.stats.parsed import PARSED
from boathouse.errors import CorruptTableError
from boathouse.parquet.errors import damage
from boathouse.storage import uris
from boathouse.table.findings import raise_first

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH_ROWS: Final = 65_536
_SMALL: Final = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "sidecar": "path",
}
"""Actions that are read when a table is opened, each with a leaf that is never null."""


Small = dict[str, list[dict[str, Any]]]
"""Actions by their kind."""
Choose = Callable[[pa.Array, Any], Any]
"""Partition values of some rows (a map column) -> a mask of rows to keep."""


@dataclass(frozen=True, slots=True)
class OpenCheckpoint:
    """A checkpoint whose small actions have been read; `parts` hold the actions on files."""

    version: int
    uri: str
    small: Small
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
        entry, small = None, {}
        parts = _open(log, [(f.key, f.size) for f in checkpoint.files], small)
        _check_once(small, parts)
    uri = log.uri(first.key)
    sidecars = small.get("sidecar") or []
    if sidecars:
        if (entry is not None and next(entry.files(), None)) or any(map(_has_files, parts)):
            raise CorruptTableError("the checkpoint has actions on files both in itself and in sidecars", where=uri)
        parts = _open(log, [_sidecar(log, s, uri) for s in sidecars])
    if not parts and entry is None:
        raise CorruptTableError("the checkpoint has no rows", where=uri)
    for part in parts:
        raise_first(column_findings(part))
    return OpenCheckpoint(checkpoint.version, uri, small, tuple(parts), entry)


def _sidecar(log: Log, sidecar: Mapping[str, Any], where: str) -> tuple[str, int]:
    """Key and size of a sidecar. Raises CorruptTableError, also for one outside the table's store."""
    path, size = sidecar.get("path"), sidecar.get("sizeInBytes")
    if not isinstance(path, str) or not path:
        raise CorruptTableError("a sidecar action has no path", where=where)
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise CorruptTableError(f"the sidecar {path} has no sizeInBytes", where=where)
    found = uris.split(paths.decode(path, f"{log.root}/{LOG}/{SIDECARS}"))
    if found[:2] != uris.split(log.root)[:2]:
        raise CorruptTableError(f"the sidecar {path} is outside the table's store", where=where)
    return found[2], size


def _has_files(part: Part) -> bool:
    with part.open() as file, damage("corrupt checkpoint data", part.uri):
        for kind in ("add", "remove"):
            for group in part.groups(part.leaf(kind, "path")):
                actions = file.read_row_group(group, columns=[f"{kind}.path"]).column(0)
                if any(pc.any(pc.is_valid(chunk.flatten()[0])).as_py() for chunk in actions.chunks):
                    return True
    return False


def _open(log: Log, files: Sequence[tuple[str, int]], small: Small | None = None) -> list[Part]:
    """The files; with `small`, their small actions are added to it, so that each is opened once."""
    parts, first = [], 0
    for key, size in files:
        uri = log.storage.uri(key)
        with open_parquet(log.storage, key, size) as file:
            with damage("not a readable checkpoint file", uri):
                part = Part.of(log.storage, key, size, file, first)
            if small is not None:
                with damage("corrupt checkpoint data", uri):
                    _read_small(file, part, small)
        parts.append(part)
        first += part.rows
    return parts


def _read_small(file: pq.ParquetFile, part: Part, small: Small) -> None:
    for kind, leaf in _SMALL.items():
        at = part.leaf(kind, leaf)
        if at is None and kind in part.schema.names:
            raise CorruptTableError(f"the column `{kind}` of the checkpoint has no {leaf}", where=part.uri)
        for group in part.groups(at):
            for column in _chunks(file, part, group, kind):
                column = column.drop_null()
                require_utf8(column, part.uri, f"the column `{kind}`")
                for action in column.to_pylist(maps_as_pydicts="lossy"):
                    small.setdefault(kind, []).append({k: v for k, v in action.items() if v is not None})


def _chunks(file: pq.ParquetFile, part: Part, group: int, kind: str) -> Iterator[pa.Array]:
    """A column of a row group in pieces; at once where that is no more than one of them, which is much faster."""
    if part.metadata.row_group(group).num_rows <= BATCH_ROWS:
        yield from file.read_row_group(group, columns=[kind], use_threads=False).column(0).chunks
        return
    for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=[kind]):
        yield batch.column(0)


def _check_once(small: Small, parts: Sequence[Part]) -> None:
    for metadata in small.get("metaData", ()):
        metadata.setdefault("configuration", None)  # Parquet does not distinguish a null map from an empty one
    for kind in ("protocol", "metaData"):
        if len(small.get(kind, ())) > 1:
            raise CorruptTableError(f"the checkpoint has {len(small[kind])} {kind} actions", where=parts[0].uri)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which actions on files are read, and which of their columns.

    `kind` is add or remove, `schema` the columns; absent ones are null. With `choose`, partition values are read first,
    and the rest only from row groups with a row to keep. `parsed` are columns of `stats_parsed` that are read in
    addition if some file has no other statistics.
    """

    kind: str
    schema: pa.Schema
    choose: Choose | None = None
    parsed: Sequence[str] = ()


def read_files(checkpoint: OpenCheckpoint, wanted: Wanted) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    """(row numbers, actions); `stats_parsed` is the last column of a batch that has it."""
    for part in checkpoint.parts:
        starts = np.cumsum([0] + [part.metadata.row_group(i).num_rows for i in range(part.metadata.num_row_groups)])
        with part.open() as file:
            for group in part.groups(part.leaf(wanted.kind, "path")):
                first = part.first + int(starts[group])
                with damage("corrupt checkpoint data", part.uri):
                    yield from _group(file, group, first, wanted, part)


def _group(
    file: pq.ParquetFile, group: int, first: int, wanted: Wanted, part: Part
) -> Iterator[tuple[pa.Array, pa.RecordBatch]]:
    keep, kind, where = None, wanted.kind, part.uri
    if wanted.choose is not None:
        keep = _chosen(file, group, kind, wanted.choose, where)
        if not keep.any():
            return
    columns = [f"{kind}.{n}" for n in (*wanted.schema.names, *(wanted.parsed if part.needs_parsed else ()))]
    at = 0
    for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns, use_threads=True):
        actions = batch.column(0)
        rows = np.arange(at, at + batch.num_rows)
        mask = keep[at : at + batch.num_rows] if keep is not None else valid_rows(actions)
        at += batch.num_rows
        mask = mask & ~pathless(actions, mask, kind, where)
        if not mask.any():
            continue
        if not mask.all():
            rows, actions = rows[mask], actions.filter(booleans(mask))
        require_utf8(actions, where, f"the column `{kind}`")
        found = _conform(actions, wanted.schema)
        check_vectors(found.column("deletionVector"), where)
        yield longs(first + rows), found


def _chosen(file: pq.ParquetFile, group: int, kind: str, choose: Choose, where: str) -> Mask:
    masks = []
    for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=[f"{kind}.partitionValues"]):
        actions = batch.column(0)
        require_utf8(actions, where, f"the column `{kind}`")
        masks.append(choose(actions.field("partitionValues"), valid_rows(actions)))
    return np.concatenate(masks) if masks else np.zeros(0, bool)


def _conform(actions: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
    children = {f.name: c for f, c in zip(actions.type, actions.flatten())}
    columns = []
    for f in schema:
        found = children.get(f.name)
        columns.append(pa.nulls(len(actions), f.type) if found is None else _cast(found, f.type))
    if (parsed := children.get(PARSED)) is not None and pa.types.is_struct(parsed.type):
        columns.append(parsed)
        schema = schema.append(pa.field(PARSED, parsed.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(array: pa.Array, type: pa.DataType) -> pa.Array:
    if array.type == type:
        return array
    if pa.types.is_struct(type) and pa.types.is_struct(array.type):
        children = {f.name: c for f, c in zip(array.type, array.flatten())}
        parts = [_cast(children[f.name], f.type) if f.name in children else pa.nulls(len(array), f.type) for f in type]
        return pa.StructArray.from_arrays(parts, fields=list(type), mask=pc.is_null(array))
    return array.cast(type)

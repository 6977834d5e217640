"""Checkpoints of version 2: their names, and the files beside them that hold their actions on files, "sidecars"
(PROTOCOL.md, "V2 Spec")."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boathouse.bits import system
from boathouse.delta import paths
from boathouse.delta.checkpoint.part import Part
from boathouse.delta.checkpoint.reader import OpenCheckpoint, Wanted, read_files
from boathouse.delta.features.support import V2_POLICY, supports
from boathouse.delta.log.entry import ADD, TEXT_MAP
from boathouse.delta.log.folder import SIDECARS, Log
from boathouse.delta.log.tail import file_keys
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.parquet.unbounded import without_floats
from boathouse.storage import PutMode

FILE_ACTIONS: Final = ("add", "remove")
SIDECAR_ROWS: Final = 100_000
"""Above so many actions on files a checkpoint has sidecars, each of which holds at most as many."""
SIDECAR: Final = pa.struct(
    [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64()), ("tags", TEXT_MAP)]
)
_COMPATIBLE: Final = 10
"""Every so many checkpoints one has the classic name: readers that know no other name find its protocol."""
_IDENTITY: Final = pa.schema([f for f in ADD if f.name in ("path", "size", "deletionVector")])


def name_of(snapshot: DeltaSnapshot, interval: int) -> str:
    """The name of the checkpoint's file in the log."""
    version = snapshot.version
    if not _by_policy(snapshot) or version // interval % _COMPATIBLE == 0:
        return f"{version:020d}.checkpoint.parquet"
    return f"{version:020d}.checkpoint.{system.current().uuid4()}.parquet"


def is_divided(snapshot: DeltaSnapshot) -> bool:
    """Whether the actions on files are put into sidecars."""
    known = snapshot.checkpoint.rows if snapshot.checkpoint else 0
    return _by_policy(snapshot) and known + snapshot.tail.adds.num_rows + snapshot.tail.removes.num_rows > SIDECAR_ROWS


def _by_policy(snapshot: DeltaSnapshot) -> bool:
    policy = snapshot.metadata.configuration.get(V2_POLICY, "classic").strip().lower()
    return policy == "v2" and supports(snapshot.protocol, "v2Checkpoint")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A file of actions of one kind: its action, how many it holds, and the bytes of the files that it adds."""

    action: Mapping[str, Any]
    rows: int
    adds: int
    added_bytes: int

    @property
    def size(self) -> int:
        return int(self.action["sizeInBytes"])


def write_sidecar(log: Log, kind: str, actions: pa.Table) -> Sidecar:
    """Writes a table whose columns are those of a checkpoint.

    If the checkpoint is not finished, nothing refers to the file, and the cleanup of the log removes it.
    """
    name = f"{system.current().uuid4()}.parquet"
    with log.storage.open_write(f"{log.key}/{SIDECARS}/{name}", PutMode.CREATE) as sink:
        _write(actions.select(FILE_ACTIONS), pa.PythonFile(sink, mode="w"))
        size = sink.tell()
    action = {"path": name, "sizeInBytes": size, "modificationTime": system.current().now_ms(), "tags": []}
    if kind != "add":
        return Sidecar(action, actions.num_rows, 0, 0)
    return Sidecar(action, actions.num_rows, actions.num_rows, added_bytes(actions))


def _write(actions: pa.Table, sink: Any) -> None:
    bounded = without_floats(actions.schema)
    pq.write_table(
        actions, sink, row_group_size=SIDECAR_ROWS, compression="snappy", store_schema=False, write_statistics=bounded
    )


def added_bytes(actions: pa.Table) -> int:
    """The bytes of the files that the actions add; a file without a size, which the protocol forbids, has none."""
    return pc.sum(actions.column("add").combine_chunks().field("size")).as_py() or 0


def kept_sidecars(snapshot: DeltaSnapshot, schema: pa.Schema) -> tuple[list[Sidecar], DeltaSnapshot]:
    """The sidecars of the last checkpoint that are right for the next one too, and the snapshot without their files.

    They hold at least half of what a sidecar may, have the columns that would be written now, no removed file, since
    those expire, and no file that a later entry removes or adds again.
    """
    checkpoint = snapshot.checkpoint
    if checkpoint is None or not (actions := checkpoint.small.get("sidecar")):
        return [], snapshot
    columns, kept, others = _as_read(schema), [], []
    for action, part in zip(actions, checkpoint.parts):
        found = _unchanged(snapshot, checkpoint, part) if _alike(part, columns) else None
        if found is None:
            others.append(part)
        else:
            again = {k: action.get(k) for k in ("path", "sizeInBytes", "modificationTime")}
            kept.append(
                Sidecar({**again, "tags": list((action.get("tags") or {}).items())}, part.rows, part.rows, found)
            )
    return kept, replace(snapshot, checkpoint=replace(checkpoint, parts=tuple(others))) if kept else snapshot


def _as_read(schema: pa.Schema) -> pa.Schema:
    """The columns as a reader of a file of them sees them."""
    file = io.BytesIO()
    _write(schema.empty_table(), file)
    return pq.read_schema(io.BytesIO(file.getvalue()))


def _alike(part: Part, columns: pa.Schema) -> bool:
    return bool(
        2 * part.rows >= SIDECAR_ROWS and part.schema.equals(columns) and part.nulls("remove", "path") == part.rows
    )


def _unchanged(snapshot: DeltaSnapshot, checkpoint: OpenCheckpoint, part: Part) -> int | None:
    """The bytes of the files that the sidecar adds; None if one of them is gone."""
    size = 0
    for adds in _identities(checkpoint, part):
        keys = file_keys(paths.keys_of(adds.column("path"), snapshot.location.uri), adds.column("deletionVector"))
        if pc.any(snapshot.tail.superseded(keys)).as_py():
            return None
        size += pc.sum(adds.column("size")).as_py() or 0
    return size


def _identities(checkpoint: OpenCheckpoint, part: Part) -> Iterator[pa.RecordBatch]:
    for _, adds in read_files(replace(checkpoint, parts=(part,)), Wanted("add", _IDENTITY)):
        yield adds

"""What separates the newest version from an older one, to be undone in one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.delta import paths
from boathouse.delta.actions import Metadata
from boathouse.delta.commit.known_files import vector_of
from boathouse.delta.features.column_mapping import restored
from boathouse.delta.features.deletion_vectors import file_uri
from boathouse.delta.features.identity import kept
from boathouse.delta.features.row_tracking import names_kept
from boathouse.delta.features.support import check_write
from boathouse.delta.files import list_files, schema_of
from boathouse.delta.log.tail import file_keys
from boathouse.delta.snapshot import DeltaSnapshot, load
from boathouse.table.edits import RestoreTo
from boathouse.table.location import At


@dataclass(frozen=True, slots=True)
class DeltaRestore:
    """See `table.features.Restorable`."""

    snapshot: DeltaSnapshot

    def restoration(self, at: At) -> RestoreTo | None:
        """The files that the two versions do not share: a file is its path and its deletion vector.

        Raises VersionNotFoundError, UnsupportedFeatureError if the table could not be written as it was.
        """
        head = self.snapshot
        target = load(head.context, at, type(head))
        where = head.location.uri
        for protocol in (head.protocol, target.protocol):
            check_write(protocol, target.metadata, where)
        before, after = _units(head), _units(target)
        there, back = _keys(before, where), _keys(after, where)
        added = after.filter(pc.invert(pc.is_in(back, there)))
        removed = before.filter(pc.invert(pc.is_in(there, back)))
        if not added.num_rows and not removed.num_rows and restored_metadata(head, target) is None:
            return None
        size = pc.sum(after.column("size")).as_py() or 0
        return RestoreTo(target, added, removed, tuple(_needed(added, where)), after.num_rows, size)


def restored_metadata(head: DeltaSnapshot, target: DeltaSnapshot) -> Mapping[str, Any] | None:
    """The target's metaData, under the table's id; None if it says the same as the head's.

    Raises UnsupportedFeatureError if the table's files would be read in another way than those of the target.
    """
    found = kept(restored({**target.metadata.raw, "id": head.metadata.id}, head.metadata), head.metadata)
    found = names_kept(found, head.metadata)
    return None if _comparable(Metadata.parse(found, head.location.uri)) == _comparable(head.metadata) else found


def _comparable(metadata: Metadata) -> tuple[Any, ...]:
    names = ("schemaString", "name", "description")
    return (*(metadata.raw.get(n) for n in names), metadata.partition_columns, dict(metadata.configuration))


def _units(snapshot: DeltaSnapshot) -> pa.Table:
    """Every file, with its statistics as the log has them."""
    return pa.Table.from_batches(list_files(snapshot, (), None, None, all_stats=True), schema_of(snapshot, ()))


def _keys(units: pa.Table, root: str) -> pa.Array:
    if not units.num_rows:
        return pa.array([], pa.string())
    native = units.column("native").combine_chunks()
    native = native.chunk(0) if isinstance(native, pa.ChunkedArray) else native
    return file_keys(paths.keys_of(native.field("path"), root), native.field("deletionVector"))


def _needed(units: pa.Table, root: str) -> Iterable[str]:
    seen = dict.fromkeys(units.column("path").to_pylist())
    for row in units.column("native").to_pylist():
        vector = vector_of(row)
        if vector is not None and (uri := file_uri(vector, root)) is not None:
            seen[uri] = None
    return seen

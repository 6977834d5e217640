"""Restore: the table becomes what it was at an older version, as a new one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import MissingFileError
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import RestoreTo
from boathouse.table.examined import sizes_of
from boathouse.table.features import Restorable, required
from boathouse.table.location import At
from boathouse.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Restore:
    """Rows, schema, partitioning and properties become those of a version, or of the newest one at a time.

    Nothing is committed if they already are. Raises VersionNotFoundError, and MissingFileError if a file of that
    version is gone.
    """

    at: At
    operation: ClassVar[Operation] = "restore"

    def plan(self, start: Start) -> WritePlan:
        edit = required(start.snapshot, Restorable, "restore").restoration(self.at)
        if edit is None:
            return WritePlan((), lambda _: Planned(None))
        _check_files(start.snapshot, edit)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            change = start.change("restore", (edit,), ReadSet(whole=True), self._parameters())
            size = pc.sum(edit.added.column("size")).as_py() or 0
            return Planned(change, edit.removed.num_rows, files_added=edit.added.num_rows, bytes_added=size)

        return WritePlan((), finish)

    def _parameters(self) -> dict[str, str]:
        if self.at.version is not None:
            return {"version": str(self.at.version)}
        assert self.at.timestamp_ms is not None
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=self.at.timestamp_ms)
        return {"timestamp": moment.isoformat(timespec="milliseconds")}


def _check_files(snapshot: Snapshot, edit: RestoreTo) -> None:
    """Raises MissingFileError for the first file that is gone."""
    for uri, size in sizes_of(snapshot.context.stores, edit.needed):
        if size is None:
            raise MissingFileError(
                f"version {edit.target.version} cannot be restored: a file of it is gone, as after a vacuum",
                where=uri,
                advice="restore a newer version, or the file from a copy",
            )

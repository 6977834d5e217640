"""The files that one entry of the log adds and removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.delta import paths
from boathouse.delta.files import Lister, schema_of
from boathouse.delta.log.entry import ADD, actions_table
from boathouse.delta.log.replay import read_entry
from boathouse.delta.scan import attach
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.table.features import CommitFiles
from boathouse.table.tally import Tally
from boathouse.table.units import deletes_schema
from boathouse.table.version import TableVersion


@dataclass(frozen=True, slots=True)
class DeltaCommitRecords:
    """See `table.features.CommitRecords`."""

    snapshot: DeltaSnapshot

    def commit_files(self, version: int, layout: TableVersion) -> CommitFiles:
        """Files whose actions have `dataChange` false hold the rows of other files, and do not count.

        Raises CorruptTableError, NotFoundError.
        """
        assert isinstance(layout, DeltaSnapshot)
        # A compacted entry has the actions of several versions.
        known = (e for e in self.snapshot.entries if e.version == version and e.first is None)
        entry = next(known, None) or read_entry(self.snapshot.log, version)
        adds: list[dict[str, Any]] = []
        removed = False
        for is_add, action in entry.files():
            if action.get("dataChange", True) is False:
                continue
            if is_add:
                adds.append(action)
            else:
                removed = True
        layout_changed = entry.last("metaData") is not None
        units, deletes = listed(layout, [] if layout_changed and layout.version != version else adds, entry.uri)
        return CommitFiles(units, deletes, removed, layout_changed)


def listed(layout: DeltaSnapshot, adds: list[dict[str, Any]], uri: str) -> tuple[pa.Table, pa.Table]:
    """FILES and DELETES of add actions."""
    if not adds:
        return schema_of(layout, ()).empty_table(), deletes_schema().empty_table()
    batch = actions_table(adds, ADD, uri).combine_chunks().to_batches()[0]
    lister = Lister.of(layout, (), None, Tally())
    keys = paths.keys_of(batch.column("path"), lister.root)
    units = pa.array(np.arange(batch.num_rows))
    live = np.ones(batch.num_rows, bool)
    return attach(layout, pa.Table.from_batches(lister.emit(units, batch, keys, live)))

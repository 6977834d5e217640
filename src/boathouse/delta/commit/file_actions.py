"""The actions on files that the edits of a change make, without the ids of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from boathouse.delta.commit.clone import clone_adds
from boathouse.delta.commit.known_files import added_again, remove_actions
from boathouse.delta.features.row_tracking import with_ids_before
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.table.change import Change
from boathouse.table.edits import AddChangeFiles, AddFiles, CloneTable, RemoveAll, RestoreTo, SetDeletes
from boathouse.table.features import PROVIDER

Action = dict[str, Any]


def removes(change: Change, newest: DeltaSnapshot | None, now: int) -> Iterator[Action]:
    """The remove actions of a change."""
    for edit in change.all(SetDeletes):
        yield from remove_actions(edit.units, now, change.data_change)
    if (units := change.removed) is not None:
        yield from remove_actions(units, now, change.data_change)
    for restored in change.all(RestoreTo):
        yield from remove_actions(restored.removed, now, change.data_change)
    if change.edit(RemoveAll) is not None and newest is not None:
        for batch in newest.files():
            yield from remove_actions(pa.Table.from_batches([batch]), now, change.data_change)


def change_files(edit: AddChangeFiles) -> Iterator[Action]:
    """The cdc actions of an edit."""
    for row in edit.outcomes.select(["size", "native"]).to_pylist():
        values = dict(row["native"]["partitionValues"] or ())
        yield {"path": row["native"]["path"], "partitionValues": values, "size": row["size"], "dataChange": False}


def adds(change: Change, newest: DeltaSnapshot | None) -> Iterator[Action]:
    """The add actions of new files, and of those that another version or table had."""
    for restored in change.all(RestoreTo):
        assert newest is not None
        yield from with_ids_before(newest, added_again(restored.added, change.data_change))
    for cloned in change.all(CloneTable):
        yield from clone_adds(cloned, change.data_change)
    for edit in change.all(AddFiles):
        yield from _new_files(edit, change.data_change)


def _new_files(edit: AddFiles, data_change: bool) -> Iterator[Action]:
    clustered = {"clusteringProvider": PROVIDER} if edit.clustered else {}
    for row in edit.outcomes.select(["size", "native"]).to_pylist():
        native = row["native"]
        yield {
            "path": native["path"],
            "partitionValues": dict(native["partitionValues"] or ()),
            "size": row["size"],
            "modificationTime": native["modificationTime"],
            "dataChange": data_change,
            "stats": native["stats"],
            **clustered,
        }

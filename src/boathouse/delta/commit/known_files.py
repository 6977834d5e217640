"""Actions on files that the log has already: removed, and added again with everything that the log says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

Action = dict[str, Any]
_KEPT: Final = ("tags", "baseRowId", "defaultRowCommitVersion")


def vector_of(native: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The descriptor of a file's deletion vector, or None."""
    vector = native["deletionVector"]
    return vector if vector is not None and vector["storageType"] is not None else None


def remove_actions(units: pa.Table, now: int, data_change: bool) -> Iterator[Action]:
    """The remove actions of planned FILES rows."""
    for row in units.select(["size", "native"]).to_pylist():
        native = row["native"]
        first = {
            "path": native["path"],
            "deletionTimestamp": now,
            "dataChange": data_change,
            "extendedFileMetadata": True,
        }
        yield first | _stated(row)


def added_again(units: pa.Table, data_change: bool) -> Iterator[Action]:
    """The add actions of planned FILES rows, as the log had them."""
    for row in units.select(["size", "native"]).to_pylist():
        native = row["native"]
        first = {
            "path": native["path"],
            "modificationTime": native["modificationTime"],
            "dataChange": data_change,
        }
        stats = {} if native["stats"] is None else {"stats": native["stats"]}
        by = native["clusteringProvider"]
        yield first | stats | _stated(row) | ({} if by is None else {"clusteringProvider": by})


def _stated(row: Mapping[str, Any]) -> Action:
    """The members that adds and removes share."""
    native = row["native"]
    action: Action = {"partitionValues": dict(native["partitionValues"] or ()), "size": row["size"]}
    if (vector := vector_of(native)) is not None:
        action["deletionVector"] = {k: v for k, v in vector.items() if v is not None}
    for key in _KEPT:
        if native[key] is not None:
            action[key] = dict(native[key]) if key == "tags" else native[key]
    return action

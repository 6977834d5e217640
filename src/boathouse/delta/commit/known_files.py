"""Actions on files that the log has already: removed, and added again with everything that the log says of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

import pyarrow as pa

from boathouse.arrow.filesystem import data_files
from boathouse.delta.stats.bounds import document_of, natural
from boathouse.delta.stats.parsed import ROWS
from boathouse.delta.stats.written import dump_stats
from boathouse.parquet.source import open_source
from boathouse.storage import Stores

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
        yield first | _shared(row)


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
        yield first | stats | _shared(row) | ({} if by is None else {"clusteringProvider": by})


def stats_with_rows(text: str | None, file: Mapping[str, Any], stores: Stores) -> dict[str, Any]:
    """Statistics with the number of rows first: that of the footer of the `file`, a FILES row, if they lack it."""
    document = document_of(text, exact=True) or {}
    rows = natural(document.get(ROWS))
    if rows is None:
        with closing(open_source(data_files(stores), file["path"], size=file["size"])) as source:
            rows = source.metadata.num_rows
    return {ROWS: rows, **{k: v for k, v in document.items() if k != ROWS}}


def counting_rows(action: Action, file: Mapping[str, Any], stores: Stores) -> Action:
    """The add action with statistics that have the number of rows."""
    return {**action, "stats": dump_stats(stats_with_rows(action.get("stats"), file, stores))}


def _shared(row: Mapping[str, Any]) -> Action:
    """The members that adds and removes share."""
    native = row["native"]
    action: Action = {"partitionValues": dict(native["partitionValues"] or ()), "size": row["size"]}
    if (vector := vector_of(native)) is not None:
        action["deletionVector"] = {k: v for k, v in vector.items() if v is not None}
    for key in _KEPT:
        if native[key] is not None:
            action[key] = dict(native[key]) if key == "tags" else native[key]
    return action

"""Removes files that nothing needs, by tasks; one that cannot be removed does not stop it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from boathouse.arrow.filesystem import data_files
from boathouse.ops.tasks.remove import RemoveTask, remove_files
from boathouse.storage import Stores
from boathouse.table.engine import Engine

_TASK_FILES: Final = 500


def remove(stores: Stores, engine: Engine, uris: Sequence[str]) -> Mapping[str, str]:
    """The files that could not be removed, by URI, with the reason."""
    files = data_files(stores)
    parts = [tuple(uris[i : i + _TASK_FILES]) for i in range(0, len(uris), _TASK_FILES)]
    results = engine.map(remove_files, [RemoveTask(files, part) for part in parts], [len(part) for part in parts])
    return {row["uri"]: row["error"] for batch in results for row in batch.to_pylist()}

"""The entries after the checkpoint, replayed: what they add, and which of the checkpoint's files they replace.

A file is identified by its decoded path and its deletion vector: the same file removed with the old vector and added
with the new one, in one commit, counts as two (PROTOCOL.md, "Action Reconciliation").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.delta import paths
from boathouse.delta.log.entry import ADD, REMOVE, Entry, actions_table
from boathouse.errors import CorruptTableError


def unique_id(vector: Mapping[str, Any] | None) -> str | None:
    """The part of a file's identity that comes from its deletion vector."""
    if not vector or vector.get("storageType") is None:
        return None
    offset = vector.get("offset")
    return f"{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")


@dataclass(frozen=True, slots=True)
class Tail:
    """`adds` and `removes` are the remaining actions of the entries; `keys` are all files that they mention."""

    adds: pa.Table
    removes: pa.Table
    keys: pa.Array

    def superseded(self, keys: pa.Array) -> pa.Array:
        """Which of a checkpoint's files the entries replace."""
        return pc.is_in(keys, self.keys)


def file_key(action: Mapping[str, Any], root: str) -> str:
    """The identity of one action's file."""
    key = paths.key_of(action["path"], root)
    vector = unique_id(action.get("deletionVector"))
    return key if vector is None else f"{key}\0{vector}"


def file_keys(files: pa.Array, vectors: pa.Array) -> pa.Array:
    """`file_key` for columns: `files` are `paths.keys_of`."""
    if vectors.null_count == len(vectors):
        return files
    found = [
        key if (id := unique_id(vector)) is None else f"{key}\0{id}"
        for key, vector in zip(files.to_pylist(), vectors.to_pylist())
    ]
    return pa.array(found, pa.string())


def _check_partition(action: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    values = action.get("partitionValues")
    for name in names:
        if not isinstance(values, dict) or name not in values:
            raise CorruptTableError(f"the add action of {action['path']} has no value of `{name}`", where=where)


@dataclass(frozen=True, slots=True)
class Replayed:
    """The remaining actions of the entries, as they were parsed, by the identity of their files."""

    adds: Mapping[str, dict[str, Any]]
    removes: Mapping[str, dict[str, Any]]
    where: str

    def tail(self) -> Tail:
        """The same as Arrow columns. Raises CorruptTableError for a value of the wrong type."""
        return Tail(
            actions_table(list(self.adds.values()), ADD, self.where),
            actions_table(list(self.removes.values()), REMOVE, self.where),
            pa.array([*self.adds, *self.removes], pa.string()),
        )


def replay(entries: Sequence[Entry], root: str, partition: Sequence[str] = ()) -> Replayed:
    """The last action on each file wins. Raises CorruptTableError for a file that lacks a value of `partition`."""
    adds: dict[str, dict[str, Any]] = {}
    removes: dict[str, dict[str, Any]] = {}
    added_by: dict[str, str] = {}
    where = root
    for entry in entries:
        where = entry.uri
        seen: set[tuple[bool, str]] = set()
        for is_add, action in entry.files():
            # A compaction has one action on each file and vector, so a path may come back with another vector.
            if (pair := (is_add, action["path"])) in seen and entry.first is None:
                kind = "add" if is_add else "remove"
                raise CorruptTableError(f"the log entry has {kind} actions of {pair[1]} twice", where=where)
            seen.add(pair)
            key = file_key(action, root)
            (removes if is_add else adds).pop(key, None)
            (adds if is_add else removes)[key] = action
            if is_add and partition:
                added_by[key] = where
    if partition:
        for key, action in adds.items():
            _check_partition(action, partition, added_by[key])
    return Replayed(adds, removes, where)

"""What the table's properties say of operations that change rows: how rows are deleted, and what concurrent commits may
do meanwhile (`write.delete.mode`, `write.delete.isolation-level` and their like)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, cast, get_args

from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.data_files.formats import delete_format
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.versions import MODERN, PROPERTY, asked_version
from boathouse.table.change import Change, Isolation
from boathouse.table.edits import CreateTable
from boathouse.table.snapshot import RowDeletes

ROW_OPERATIONS: Final = frozenset({"delete", "update", "merge"})
COPY_ON_WRITE: Final = "copy-on-write"
MERGE_ON_READ: Final = "merge-on-read"
PROFILE: Final = {f"write.{operation}.mode": MERGE_ON_READ for operation in sorted(ROW_OPERATIONS)}
"""The properties of the profile `modern`: row deletes by vectors."""
SERIALIZABLE: Final = "serializable"


def of_profile(create: CreateTable) -> CreateTable:
    """The table with the properties of its profile; those that are given count, and in an older format version rows are
    deleted as ever."""
    asked = create.properties.get(PROPERTY)
    if create.profile is None or (asked is not None and asked_version(asked) != MODERN):
        return create
    return replace(create, properties={**PROFILE, **create.properties})


def row_deletes(metadata: TableMetadata, operation: str) -> RowDeletes:
    """`Snapshot.row_deletes`, from the property of the operation. Raises UnsupportedFeatureError for merge-on-read in a
    format version without row deletes, InvalidArgumentError for a mode, or an isolation level, that does not exist."""
    _level(metadata, operation)
    name = f"write.{operation}.mode"
    mode = metadata.properties.get(name, COPY_ON_WRITE).lower()
    if operation not in ROW_OPERATIONS or mode == COPY_ON_WRITE:
        return "rewrite"
    if mode != MERGE_ON_READ:
        raise InvalidArgumentError(
            f"the table property {name} is {mode!r}", where=metadata.uri, advice="set it to copy-on-write"
        )
    if "vectors" in metadata.format.deletes:
        return "vectors"
    if "positions" in metadata.format.deletes:
        delete_format(metadata.properties, metadata.uri)
        return "positions"
    raise UnsupportedFeatureError(
        f"the table has {name} = {MERGE_ON_READ}, and format version {metadata.format} has no row deletes",
        where=metadata.uri,
        advice=f"upgrade it: table.set_properties({{{PROPERTY!r}: '2'}}); or to rewrite data files instead: "
        f"table.set_properties({{{name!r}: {COPY_ON_WRITE!r}}})",
    )


def isolation(metadata: TableMetadata, change: Change) -> Isolation:
    """That of the call, or of the property of the operation. Raises InvalidArgumentError for a level that does not
    exist."""
    return change.isolation or _level(metadata, change.operation)


def _level(metadata: TableMetadata, operation: str) -> Isolation:
    name = f"write.{operation}.isolation-level"
    level = metadata.properties.get(name, SERIALIZABLE).lower() if operation in ROW_OPERATIONS else SERIALIZABLE
    for known in get_args(Isolation):
        if level == known:
            return cast(Isolation, known)
    raise InvalidArgumentError(
        f"the table property {name} is {level!r}", where=metadata.uri, advice=f"set it to {SERIALIZABLE} or snapshot"
    )


def positions_per(properties: Mapping[str, str]) -> Literal["file", "partition"]:
    """`WriteContext.positions_per`, by file as the reference's Spark does where the table does not say. Raises
    InvalidArgumentError for a granularity that does not exist."""
    name = "write.delete.granularity"
    asked = properties.get(name, "file").lower()
    if asked == "file":
        return "file"
    if asked == "partition":
        return "partition"
    raise InvalidArgumentError(f"the table property {name} is {asked!r}", advice="set it to file or partition")

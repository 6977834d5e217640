"""Required columns, and snapshots whose rows were written without them."""

from __future__ import annotations

from boathouse.errors import UnsupportedFeatureError
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.single_values import INITIAL
from boathouse.types import Schema


def lacking(metadata: TableMetadata, version: int, schema: Schema) -> str | None:
    """The first column or field that must not be null under `schema`, and that the rows of a snapshot lack: when it was
    made they had none, nor a default for it."""
    written = {f.id for _, f in metadata.schema_of(metadata.snapshots[version]).walk()}
    ids = {path: f.id for path, f in schema.walk()}
    for path, f in schema.walk():
        parent = ids.get(path[:-1])
        there = len(path) == 1 or parent in written
        if there and not f.nullable and f.id not in written and f.metadata.get(INITIAL) is None:
            return ".".join(path)
    return None


def check_branch(metadata: TableMetadata, name: str, version: int, schema: Schema, where: str) -> None:
    """Raises UnsupportedFeatureError for a branch whose rows could not be read with the schema of the table."""
    column = lacking(metadata, version, schema)
    if column is not None:
        raise UnsupportedFeatureError(
            f"`{column}` is required, and the branch {name!r} would have rows that were written without it",
            where=where,
            advice="make the column optional, or restore() that version, which brings back its schema",
        )

"""New tables, and the write context of a table's files."""

from __future__ import annotations

from collections.abc import Sequence

from boathouse.arrow.filesystem import data_files
from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.file.fields import Field, SchemaMessage
from boathouse.lance.options import FIELDS, VERSION
from boathouse.lance.paths import DATA, table_version
from boathouse.lance.schema import from_schema, no_partitions
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import join
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.tasks import WriteContext
from boathouse.types import PartitionSpec, Schema

TARGET_ROWS = 1 << 20
PROFILES = (None, "modern")


def created(context: TableContext, create: CreateTable) -> tuple[Field, ...]:
    """The fields of a new table, with their ids. Raises UnsupportedTypeError, UnsupportedFeatureError."""
    where = context.location.uri
    if create.partition_by:
        raise no_partitions(where)
    create.require_no_identities("Lance", where)
    if create.profile not in PROFILES:
        raise UnsupportedFeatureError(f"Lance tables have no profile {create.profile!r}", where=where)
    return from_schema(create.schema)


def table_context(snapshot: LanceSnapshot, write_id: str) -> WriteContext:
    """How data files for a table that exists are written."""
    version = table_version(snapshot.manifest, snapshot.location.uri)
    return write_context(snapshot.context, snapshot.schema, snapshot.manifest.fields, version, write_id)


def write_context(
    context: TableContext, schema: Schema, fields: Sequence[Field], version: str, write_id: str
) -> WriteContext:
    """Data files in `data`, of this version, with the ids of `fields`, which are those of `schema`."""
    return WriteContext(
        format="lance",
        files=data_files(context.stores),
        schema=schema,
        spec=PartitionSpec(0),
        directory=join(context.location.uri, DATA),
        write_id=write_id,
        target_rows=TARGET_ROWS,
        options={FIELDS: SchemaMessage(fields=tuple(fields)).encode(), VERSION: version},
    )

"""New tables, and the write context of a table's files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.arrow.filesystem import data_files
from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.file.fields import Field as LanceField
from boathouse.lance.file.fields import SchemaMessage
from boathouse.lance.file.schema import Node
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.options import FIELDS, VERSION
from boathouse.lance.paths import DATA, table_version
from boathouse.lance.schema import from_schema, no_partitions
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.lance.table_options import options_of
from boathouse.storage import join
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.edits.declared import require_none
from boathouse.table.metadata_columns import POSITION, ROW_ID, UNIT
from boathouse.table.tasks import WriteContext
from boathouse.types import INT64, Field, PartitionSpec, Schema

TARGET_ROWS = 1 << 20
PROFILES = (None, "modern")


def created(context: TableContext, create: CreateTable) -> tuple[LanceField, ...]:
    """The fields of a new table, with their ids. Raises UnsupportedTypeError, UnsupportedFeatureError."""
    where = context.location.uri
    if create.partition_by:
        raise no_partitions(where)
    require_none(create, "Lance", where, "identities", "generated", "defaults", "cluster_by", "comment")
    if create.profile not in PROFILES:
        raise UnsupportedFeatureError(f"Lance tables have no profile {create.profile!r}", where=where)
    options_of(create)
    return from_schema(create.schema)


def table_context(snapshot: LanceSnapshot, write_id: str) -> WriteContext:
    """How data files for a table that exists are written."""
    version = table_version(snapshot.manifest, snapshot.location.uri)
    found = write_context(snapshot.context, snapshot.schema, snapshot.manifest.fields, version, write_id)
    carried = (Field(ROW_ID, INT64),) if has_stable_row_ids(snapshot.manifest) else ()
    placed = tuple(Field(name, INT64) for name in (UNIT, POSITION))
    indexed = snapshot.document.index is not None and not any(snapshot.schema.places.at(f.name) for f in placed)
    return replace(found, carried=carried, placed=placed if indexed else ())


def write_context(
    context: TableContext, schema: Schema, fields: Sequence[LanceField], version: str, write_id: str
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
        takes_codec=False,
        options={FIELDS: SchemaMessage(fields=tuple(fields)).encode(), VERSION: version},
        beside=any(Node(field).is_blob for field in fields),
    )

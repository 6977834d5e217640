"""New tables, and the write context of a table's files."""

from __future__ import annotations

from collections.abc import Mapping

from boathouse.arrow.filesystem import data_files
from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.file.messages import SchemaMessage
from boathouse.lance.options import FIELDS, VERSION
from boathouse.lance.paths import DATA, V2_2, table_version
from boathouse.lance.schema import fields_for, from_schema, no_partitions, to_metadata, to_schema
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import Stores, join
from boathouse.table.change import CreateTable
from boathouse.table.location import Location
from boathouse.table.tasks import WriteContext
from boathouse.types import PartitionSpec, Schema

TARGET_ROWS = 1 << 20
PROFILES = (None, "modern")


def created(location: Location, create: CreateTable) -> tuple[Schema, PartitionSpec]:
    """The schema with the ids of its fields. Raises UnsupportedTypeError, UnsupportedFeatureError."""
    if create.partition_by:
        raise no_partitions(location.uri)
    if create.profile not in PROFILES:
        raise UnsupportedFeatureError(f"Lance tables have no profile {create.profile!r}", where=location.uri)
    fields = from_schema(create.schema)
    return to_schema(fields, to_metadata(create.schema), where=location.uri), PartitionSpec(0)


def write_context(
    location: Location,
    stores: Stores,
    schema: Schema,
    spec: PartitionSpec,
    properties: Mapping[str, str],
    write_id: str,
    snapshot: LanceSnapshot | None = None,
) -> WriteContext:
    """Data files in `data`, of the table's version, with the field ids that the commit will assign."""
    if len(spec):
        raise no_partitions(location.uri)
    present = snapshot.manifest.fields if snapshot is not None else ()
    fields = fields_for(schema, present, where=location.uri)
    version = table_version(snapshot.manifest, location.uri) if snapshot is not None else V2_2
    return WriteContext(
        format="lance",
        files=data_files(stores),
        schema=schema,
        spec=spec,
        directory=join(location.uri, DATA),
        write_id=write_id,
        target_rows=TARGET_ROWS,
        options={FIELDS: SchemaMessage(fields=fields).encode(), VERSION: version},
    )

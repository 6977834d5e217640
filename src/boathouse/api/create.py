"""create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from boathouse import registry
from boathouse.api.arguments import errors_at, strings
from boathouse.api.detection import locate
from boathouse.api.engines import time_zone
from boathouse.api.manifest_store import check_manifest_store
from boathouse.api.new_location import check_free
from boathouse.api.opening import path_text
from boathouse.api.partition_by import partition_fields
from boathouse.api.schemas import as_schema
from boathouse.api.table import Table
from boathouse.errors import InvalidArgumentError
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.schema.stored_types import held
from boathouse.ops.table import create as _create
from boathouse.ops.write import Source
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.engine import Engine
from boathouse.types import Identity


def create(
    uri: str,
    schema: Any,
    format: str = "delta",
    partition_by: str | Sequence[str] | None = (),
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: Any = None,
    profile: str | None = None,
    timezone: str | None = None,
    identity: Mapping[str, Identity] | None = None,
    *,
    message: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Table:
    """Creates an empty table.

    `schema` is a boathouse Schema, an Arrow schema, a Spark StructType or DDL text (`id bigint, day date`). The table
    gets the lowest protocol that supports it. `partition_by` are columns, in Iceberg also transforms of them
    (`day(at)`, `bucket(16, id)`). `identity` names bigint columns whose values the table gives, in Delta: `{"id":
    Identity(start=1, step=1)}`, from `boathouse.types`. `timezone` is the zone of conditions on the table, as in
    `open`.

    Raises AlreadyExistsError, SchemaError for text that is not a schema, ColumnNotFoundError for a partition column
    that is not there, InvalidArgumentError, UnsupportedTypeError, UnsupportedFeatureError, CommitUnknownError,
    UnsafeStorageError, ReadOnlyError, StorageError.

    >>> sales = bh.create("lake/sales", "id bigint not null, day date, amount decimal(10,2)", partition_by="day")
    >>> sales.format, sales.count()
    ('delta', 0)
    """
    with errors_at(path_text(uri)):
        zone = time_zone(timezone)
        logical = as_schema(schema)
        if profile is not None and not isinstance(profile, str):
            raise InvalidArgumentError(f"profile={profile!r} is not a name", advice="leave it out")
        partitions = partition_fields(partition_by, logical)
        identities = _identities(identity)
        table = CreateTable(logical, partitions, strings("properties", properties), profile, identities)
        given = WriteOptions.of(message, metadata)
        return Table(create_table(path_text(uri), format, table, storage_options, given), spark, zone)


def create_table(
    path: str,
    format: str,
    table: CreateTable,
    storage_options: Mapping[str, str] | None = None,
    options: WriteOptions = WriteOptions(),
    source: Source | None = None,
    engine: Engine | None = None,
) -> Handle:
    """The new table, with the rows of `source`, of its schema, if there are any. Raises what `create` raises."""
    location = locate(path)
    table_format = registry.load(format)
    context = TableContext(location, Stores(storage_options, home=location.uri))
    check_manifest_store(format, location, context.stores)
    check_free(context)
    if source is not None:
        table = held(lambda t: table_format.create(context, t), table)
    made, _ = _create.create(table_format, context, table, options, source, engine)
    return Handle(made or _create.opened(table_format, context))


def _identities(given: object) -> Mapping[str, Identity]:
    found = {} if given is None else given
    if not isinstance(found, Mapping) or not all(isinstance(v, Identity) for v in found.values()):
        raise InvalidArgumentError(
            f"identity={given!r} does not name identity columns",
            advice='pass {"id": Identity(start=1, step=1)}, with Identity of boathouse.types',
        )
    return found

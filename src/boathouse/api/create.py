"""create, write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from boathouse import registry
from boathouse.api.arguments import errors_at, flag, texts, time_zone
from boathouse.api.detection import formats_at, locate, not_found, require_free
from boathouse.api.engines import engine_for
from boathouse.api.open import open as open_table
from boathouse.api.opening import path_text
from boathouse.api.partition_by import partition_fields
from boathouse.api.table import Table, write_options
from boathouse.arrow.schema import from_arrow
from boathouse.engines.sources import Batches
from boathouse.errors import AlreadyExistsError, CommitConflictError, InvalidArgumentError
from boathouse.expr.tree import Expr
from boathouse.ops import create as _create
from boathouse.ops.create import already_there
from boathouse.ops.handle import Handle, WriteOptions, check_read_only
from boathouse.ops.held import held
from boathouse.ops.result import WriteResult
from boathouse.storage import Stores
from boathouse.table.change import CreateTable
from boathouse.table.location import Location
from boathouse.types import Field, Schema
from boathouse.types.text import parse_schema

Mode = Literal["error", "errorifexists", "append", "overwrite", "ignore"]


def create(
    uri: str,
    schema: Any,
    format: str = "delta",
    partition_by: str | Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: Any = None,
    profile: str | None = None,
    timezone: str | None = None,
    **options: Any,
) -> Table:
    """Creates an empty table.

    `schema` is a boathouse Schema, an Arrow schema, a Spark StructType or DDL text (`id bigint, day date`).
    The table gets the lowest protocol that supports it. `timezone` is the zone of conditions on it, as in `open`.
    Raises AlreadyExistsError, UnsupportedTypeError, UnsupportedFeatureError.
    """
    with errors_at(path_text(uri)):
        zone = time_zone(timezone)
        location = locate(path_text(uri))
        stores = Stores(storage_options, home=location.uri)
        table_format = registry.load(format)
        logical = as_schema(schema)
        if profile is not None and not isinstance(profile, str):
            raise InvalidArgumentError(f"profile={profile!r} is not a name", advice="leave it out")
        partitions = partition_fields(partition_by, logical)
        table = CreateTable(logical, partitions, texts("properties", properties), profile)
        given = write_options(options)
        if given.dry_run:
            raise InvalidArgumentError("creating an empty table has no dry run", advice="leave dry_run out")
        _check_free(location, stores)
        made, _ = _create.create(table_format, location, stores, table, given)
        snapshot = made or _create.opened(table_format, location, stores)
        return Table(Handle(location, stores, table_format, snapshot), spark, zone)


def _check_free(location: Location, stores: Stores) -> None:
    """Refuses a second table of another format under one root. Raises AlreadyExistsError."""
    check_read_only(str(location))
    if formats_at(location, stores):
        raise already_there(location)
    require_free(location, stores)


def write(
    data: Any,
    uri: str,
    format: str | None = None,
    mode: Mode = "error",
    partition_by: str | Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    where: str | Expr | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    storage_options: Mapping[str, str] | None = None,
    timezone: str | None = None,
    allow_mixed_writers: bool = False,
    **options: Any,
) -> WriteResult:
    """Writes data to a table, creating it if there is none (then in `format`, `delta` by default).

    `mode` is Spark's: error, append, overwrite, ignore. `where` with mode overwrite replaces only the rows
    for which it is true; `timezone` is the zone of `where`, unless the data is a Spark DataFrame (then it is the
    session's). `allow_mixed_writers` is that of `open`. Raises AlreadyExistsError (mode error), and what append and
    overwrite raise.
    """
    with errors_at(path_text(uri)):
        if mode not in ("error", "errorifexists", "append", "overwrite", "ignore"):
            raise InvalidArgumentError(f"mode={mode!r}", advice="it is one of error, append, overwrite, ignore")
        given, replaced = write_options(options), flag("overwrite_schema", overwrite_schema)
        time_zone(timezone)
        location = locate(path_text(uri))
        stores = Stores(storage_options, home=location.uri)
        check_read_only(str(location))
        if not formats_at(location, stores):
            if where is not None:
                raise not_found(location, stores)
            require_free(location, stores)
            rel = engine_for(data).source(data)
            try:
                return _create_with(rel, data, location, stores, format or "delta", partition_by, properties)(given)
            except AlreadyExistsError as error:
                if mode in ("error", "errorifexists"):
                    raise
                if mode != "ignore" and isinstance(rel, Batches) and rel.once:
                    raise CommitConflictError(
                        "a table was created here concurrently, and these rows can be read only once",
                        advice="run the write again with a new reader of the rows",
                    ) from error
        if mode in ("error", "errorifexists"):
            raise already_there(location)
        if mode == "ignore":
            return WriteResult("write", None, skipped="a table already exists")
        table = open_table(
            uri,
            format=format,
            storage_options=storage_options,
            allow_mixed_writers=flag("allow_mixed_writers", allow_mixed_writers),
            timezone=timezone,
        )
        by = partition_by if partition_by and replaced else None
        if mode == "append" or by is None:
            _check_partitioning(table, partition_by)
        if mode == "append":
            return table.append(data, merge_schema=merge_schema, **options)
        return table.overwrite(
            data, where=where, overwrite_schema=replaced, partition_by=by, merge_schema=merge_schema, **options
        )


def _create_with(
    rel: Any,
    data: Any,
    location: Any,
    stores: Stores,
    format: str,
    partition_by: str | Sequence[str],
    properties: Mapping[str, str] | None,
) -> Any:
    """A function that creates the table with the rows of `data`, in one commit."""
    table_format = registry.load(format)
    engine = engine_for(data)
    schema = engine.schema(rel)
    asked = CreateTable(schema, partition_fields(partition_by, schema), texts("properties", properties))
    table = held(table_format, location, asked)

    def make(options: WriteOptions) -> WriteResult:
        if options.dry_run:
            table_format.create(location, table)
            return WriteResult("create", None, dry_run=True)
        return _create.create(table_format, location, stores, table, options, rel, engine)[1]

    return make


def _check_partitioning(table: Table, partition_by: str | Sequence[str]) -> None:
    if not partition_by:
        return
    have = [(f.source, f.transform) for f in table.partitioning.current]
    want = [(f.source, f.transform) for f in partition_fields(partition_by, table.schema)]
    if have != want:
        raise AlreadyExistsError(
            f"the table is partitioned by {[f'{t}({s[0]})' for s, t in have] or 'nothing'}, not by {partition_by}",
            where=table.uri,
            advice="leave out partition_by, or overwrite with overwrite_schema=True",
        )


def as_schema(schema: Any) -> Schema:
    """A Schema from any schema that users pass. Raises InvalidArgumentError."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str):
        return parse_schema(schema)
    if isinstance(schema, pa.Schema):
        return from_arrow(schema)
    if hasattr(schema, "__arrow_c_schema__") and not isinstance(schema, pa.DataType | pa.Field):
        return from_arrow(pa.schema(schema))
    if type(schema).__module__.startswith("pyspark.sql"):
        return parse_schema(_spark_ddl(schema))
    if isinstance(schema, list | tuple) and all(isinstance(f, Field) for f in schema):
        return Schema(tuple(schema))
    raise InvalidArgumentError(
        f"cannot read a schema from a {type(schema).__name__}",
        advice="pass a boathouse Schema, an Arrow schema, a Spark StructType or DDL text",
    )


def _spark_ddl(struct: Any) -> str:
    parts = []
    for f in struct.fields:
        name = "`" + f.name.replace("`", "``") + "`"
        parts.append(f"{name} {f.dataType.simpleString()}{'' if f.nullable else ' not null'}")
    return ", ".join(parts)

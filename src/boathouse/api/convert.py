"""convert."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boathouse import registry
from boathouse.api.arguments import errors_at, strings
from boathouse.api.detection import locate
from boathouse.api.engines import described, engine_for, time_zone, zone_of
from boathouse.api.new_location import check_free
from boathouse.api.opening import path_text
from boathouse.api.schemas import as_schema
from boathouse.bits import zones
from boathouse.errors import InvalidArgumentError
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.table import convert as _convert
from boathouse.ops.table.convert import Convert
from boathouse.storage import Stores, relative
from boathouse.table.context import TableContext
from boathouse.table.location import Location
from boathouse.types import Schema


def convert(
    uri: str,
    format: str = "delta",
    partition_by: Any = None,
    properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: Any = None,
    timezone: str | None = None,
    *,
    to: str | None = None,
    message: str | None = None,
    metadata: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> WriteResult:
    """Makes a Delta or Iceberg table of a folder of Parquet files, in place: one commit, and no file is rewritten.

    `partition_by` are the columns that the names of folders give (`year=2024/month=1`) and their types: DDL text (`year
    int, month int`), or a schema as in `create`. `timezone` is that of timestamps in names of folders; with `spark` the
    footers are read by executors. Files and folders whose names begin with `_` or `.` are not part of the table.
    Columns are those of all files, by name: one that a file lacks is nullable, and of two types the wider one is the
    table's. An Iceberg table finds them by a name mapping, so that files with field ids are refused, and a partition
    column that is in the files, too, must have the folder's value. No other writer may add files meanwhile: they would
    not be part of the table.

    With `to` the table is made at that path, of the files where they are, and none of its maintenance removes any:
    `gc.enabled` is false, as in Iceberg's snapshots of other tables. What is written to it is in its own folder.
    Whoever removes files of the folder damages it. For Iceberg.

    Raises AlreadyExistsError for a table, NotFoundError for an empty folder, CorruptTableError for a file that is not
    Parquet, InvalidArgumentError for folders that do not fit `partition_by`, SchemaMismatchError for files that do not
    fit each other, UnsupportedTypeError, UnsupportedFeatureError, CommitUnknownError; nothing was written then.

    >>> import os, pyarrow.parquet as pq
    >>> os.makedirs("export/year=2024")
    >>> pq.write_table(pa.table({"id": [1, 2]}), "export/year=2024/a.parquet")
    >>> done = bh.convert("export", partition_by="year int")
    >>> bh.open("export").scan(where="year = 2024").count()
    2
    """
    with errors_at(path_text(uri)):
        options = WriteOptions.of(message, metadata, None, dry_run)
        engine = engine_for(None, spark)
        zone = zone_of(engine, time_zone(timezone), spark)
        source = locate(path_text(uri))
        location = source if to is None else _apart(source, locate(path_text(to)))
        context = TableContext(location, Stores(storage_options, home=location.uri))
        table_format = registry.load(format)
        partitions = Schema(()) if partition_by is None else as_schema(partition_by)
        given = None if zone is None else zones.zone(zone)
        asked = Convert(partitions, strings("properties", properties), given, None if to is None else source)
        check_free(context)
        with described(engine, "convert", location.uri):
            return _convert.convert(table_format, context, asked, engine, options)[1]


def _apart(source: Location, target: Location) -> Location:
    """Where the table is made. Raises InvalidArgumentError if it and the files would be inside each other."""
    if relative(target.uri, source.uri) is not None or relative(source.uri, target.uri) is not None:
        raise InvalidArgumentError(
            f"the table would be in the folder of its files, {source.uri}, or they in its own",
            where=target.uri,
            advice="pass another path as to=, or leave it out to make a table of the folder itself",
        )
    return target

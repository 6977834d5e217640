"""The driver's side of a stream that is read: the table, opened once for a query, and followed."""

from __future__ import annotations

from pyspark.sql.types import StructType

from boathouse.api.arguments import errors_at
from boathouse.api.engines import time_zone
from boathouse.api.opening import open_handle, timestamp_ms
from boathouse.ops.stream.commits import StreamTask, Wanted
from boathouse.ops.stream.source import Beginning, ReadLimit, TableStream
from boathouse.table.metadata_columns import CHANGES
from boathouse.table.snapshot import Snapshot
from boathouse.types import Schema
from pyspark_boathouse.change_options import ChangeOptions
from pyspark_boathouse.reader import check_types
from pyspark_boathouse.stream_options import StreamOptions


def open_newest(options: StreamOptions, version: int | None = None, timestamp: str | None = None) -> Snapshot:
    """The newest version, or the one at a number or time. Raises what `boathouse.open` raises."""
    return open_handle(
        options.path,
        options.format,
        version,
        timestamp,
        options.ref,
        zone=time_zone(options.timezone) or "UTC",
        storage_options=options.storage or None,
        allow_foreign_paths=options.foreign_paths,
    ).snapshot


def schema_of(options: StreamOptions) -> Schema:
    """The columns of the table now."""
    return open_newest(options).schema


def follow(options: StreamOptions, asked: StructType, base: Snapshot | None = None) -> TableStream:
    """The stream of these columns of the table, with the schema of `base`, by default the newest version. Raises what
    opening and planning raise, and SchemaMismatchError for a column that is requested with another type."""
    with errors_at(options.path):
        start = options.timestamp
        zone = time_zone(options.timezone) or "UTC"
        beginning = Beginning(options.version, None if start is None else timestamp_ms(start, zone), options.latest)
        base = base or open_newest(options)
        hidden = CHANGES if options.changes else ()
        check_types(asked, base.schema, options.path, hidden)
        columns = tuple(base.schema.field(f.name).name for f in asked.fields if f.name not in hidden)
        wanted = Wanted(columns, options.changes, options.ignore_deletes, options.skip_changes)
        return TableStream.of(base, wanted, beginning)


def changes_between(options: ChangeOptions, asked: StructType) -> list[StreamTask]:
    """The tasks that read the changes from where the options begin to where they end. Raises what opening and planning
    raise, and StreamError for a version whose changes cannot be given."""
    last = open_newest(options.stream, options.version, options.timestamp)
    stream = follow(options.stream, asked, last)
    with errors_at(options.stream.path):
        return list(stream.next(None, ReadLimit(), last).tasks())

"""open, detect."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from boathouse.api.arguments import errors_at
from boathouse.api.catalog import in_catalog
from boathouse.api.detection import formats_at, locate
from boathouse.api.engines import LOCAL, time_zone, zone_of
from boathouse.api.metastore import named_or_path
from boathouse.api.opening import open_handle, path_text
from boathouse.api.table import Table
from boathouse.errors import InvalidArgumentError
from boathouse.storage import Stores


def open(
    uri: str,
    format: str | None = None,
    version: int | None = None,
    timestamp: str | dt.datetime | None = None,
    ref: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    spark: Any = None,
    allow_mixed_writers: bool = False,
    timezone: str | None = None,
    allow_foreign_paths: bool = False,
    verify: bool = True,
    catalog_options: Mapping[str, str] | None = None,
    relocated: Mapping[str, str] | None = None,
) -> Table:
    """Opens a table by path, and detects its format; pinned to a version if `version` or `timestamp` is given.

    `uri` may also be `catalog.namespace.table` of a catalog that PyIceberg's configuration, or `catalog_options`,
    describes (`boathouse.catalog`). With `spark`, it may be a name in Spark's metastore (`sales.orders`). A table at a
    path of that name takes precedence.

    `version` is the format's own number (Iceberg: a snapshot id). `timestamp` is an ISO string or a datetime: the
    newest version not after it. `ref` is a branch or tag. `timezone` is the zone of conditions, and of a `timestamp`
    without an offset: by default the session's with `spark`, else UTC (docs/functions.md). With `spark`, operations
    without data run there. `allow_mixed_writers` lets this handle write although a library that does not put-if-absent
    here was found to write too (docs/writers.md). A file in a store of another kind than the table's (a local file of a
    table in a bucket) is refused with ForeignPathError unless `allow_foreign_paths`. With `verify=False`, a table whose
    recorded totals disagree with its lists of files is read by the lists. An Iceberg table names its files by where
    they were written: a copy is read with `relocated={"s3://old/t": "/copies/t"}`, the folders that its metadata names
    and where they are now; without it a table elsewhere is refused.

    Raises TableNotFoundError (naming what is at the path), VersionNotFoundError, InvalidArgumentError,
    AmbiguousFormatError, CorruptTableError, UnsupportedFeatureError, MissingRequirementError, StorageError.

    >>> bh.open("cities", version=0).count()
    0
    """
    named = in_catalog(uri, catalog_options, storage_options)
    if named is not None:
        found, identifier = named
        if relocated is not None:
            raise InvalidArgumentError(
                "relocated= is for tables that are opened by path", advice="register the table at its new place"
            )
        return found.open(
            identifier, version, timestamp, ref, storage_options, spark, timezone, allow_foreign_paths, verify
        )
    place = uri if spark is None else named_or_path(uri, spark, storage_options)
    named_zone = time_zone(timezone)
    zone = zone_of(LOCAL, named_zone, spark) if timestamp is not None else None
    handle = open_handle(
        place,
        format,
        version,
        timestamp,
        ref,
        storage_options,
        allow_mixed_writers,
        zone or "UTC",
        allow_foreign_paths,
        verify,
        relocated,
        spark,
    )
    return Table(handle, spark, named_zone)


def detect(uri: str, storage_options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The formats that have a table at the path: none, one, or more than one.

    Raises InvalidArgumentError, MissingRequirementError, StorageError.

    >>> bh.detect("cities")
    ('delta',)
    """
    with errors_at(path_text(uri)):
        return formats_at(locate(path_text(uri)), Stores(storage_options))

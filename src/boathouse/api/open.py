"""open, detect."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from boathouse.api.checks import errors_at
from boathouse.api.found import formats_at, locate
from boathouse.api.named import named_or_path
from boathouse.api.opening import open_handle, path_text
from boathouse.api.table import Table
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
) -> Table:
    """Opens a table by path, its format detected; pinned to a version if `version` or `timestamp` is given.

    With `spark`, `uri` may be a name in Spark's metastore (`sales.orders`); a table at a path of that name goes first.
    `version` is the format's own number (Iceberg: a snapshot id). `timestamp` is ISO text or a datetime, and
    means UTC where it has no offset: the newest version not after it. `ref` is a branch or tag. With `spark`,
    operations without data run there. `allow_mixed_writers` lets this handle write although a library that cannot
    put-if-absent here was seen to write too (docs/writers.md). Raises TableNotFoundError (saying what is at the path),
    VersionNotFoundError, AmbiguousFormatError, CorruptTableError, UnsupportedFeatureError.
    """
    place = uri if spark is None else named_or_path(uri, spark, storage_options)
    return Table(open_handle(place, format, version, timestamp, ref, storage_options, allow_mixed_writers), spark)


def detect(uri: str, storage_options: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The formats that have a table at the path: none, one, or more than one."""
    with errors_at(path_text(uri)):
        return formats_at(locate(path_text(uri)), Stores(storage_options))

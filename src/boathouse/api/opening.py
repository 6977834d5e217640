"""The handle behind `boathouse.open`: which table, which version. It imports neither engines nor operations."""

from __future__ import annotations

import datetime as dt
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from boathouse import _LOADED_BY
from boathouse.api.arguments import errors_at, flag, strings
from boathouse.api.detection import choose, locate
from boathouse.api.manifest_store import check_manifest_store
from boathouse.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from boathouse.ops.handle import Handle
from boathouse.storage import Stores, absolute
from boathouse.table.context import TableContext
from boathouse.table.location import At

_DOTTED = re.compile(r"[\w`]+(\.[\w`]+){1,2}")


def open_handle(
    uri: str,
    format: str | None = None,
    version: int | None = None,
    timestamp: str | dt.datetime | None = None,
    ref: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    allow_mixed_writers: bool = False,
    zone: str = "UTC",
    allow_foreign_paths: bool = False,
    verify: bool = True,
    relocated: Mapping[str, str] | None = None,
    spark: Any = None,
) -> Handle:
    """The implementation of `boathouse.open`, which documents the arguments and errors."""
    with errors_at(path_text(uri)):
        at = point(version, timestamp, ref, zone)
        location = replace(locate(path_text(uri)), verify=flag("verify", verify), relocated=folders(relocated))
        foreign = flag("allow_foreign_paths", allow_foreign_paths)
        stores = Stores(storage_options, home=None if foreign else location.uri)
        try:
            chosen = choose(location, stores, format)
        except TableNotFoundError as error:
            if _DOTTED.fullmatch(path_text(uri)):
                error.advice = _advice(path_text(uri))
            raise
        if location.relocated and chosen.name != "iceberg":
            raise InvalidArgumentError(
                f"relocated= is for Iceberg tables, and this is {chosen.name}", advice="leave it out"
            )
        check_manifest_store(chosen.name, location, stores)
        snapshot = chosen.open(TableContext(location, stores, allow_mixed_writers or session_allows(spark)), at)
    return Handle(snapshot, at.pinned or location.metadata is not None)


def active_session() -> Any:
    """The active Spark session of this process; None without one. Never imports pyspark.

    A forked process has its parent's session, but shares the connection with it: it would take the parent's answers.
    """
    module = sys.modules.get("pyspark.sql")
    return None if module is None or os.getpid() != _LOADED_BY else module.SparkSession.getActiveSession()


def session_allows(spark: Any) -> bool:
    """Whether the setting `spark.boathouse.allowMixedWriters` of the session, by default the active one, is true."""
    spark = active_session() if spark is None else spark
    conf = getattr(spark, "conf", None)
    return conf is not None and str(conf.get("spark.boathouse.allowMixedWriters", "false")).strip().lower() == "true"


def _advice(name: str) -> str:
    """What to do with a name that is no path: it may be meant for a catalog or a metastore."""
    words = "pass the path of the table, or spark= to look for this name in Spark's metastore"
    first, *rest = name.split(".")
    if len(rest) < 2:
        return words
    return (
        f"{words}; for a table of an Iceberg catalog, configure the catalog {first!r} for PyIceberg "
        "(~/.pyiceberg.yaml), or pass catalog_options="
    )


def point(version: int | None, timestamp: str | dt.datetime | None, ref: str | None, zone: str) -> At:
    """The point in a table's history that these arguments name. Raises InvalidArgumentError."""
    if version is not None and timestamp is not None:
        raise InvalidArgumentError("version= and timestamp= exclude each other", advice="pass one of them")
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise InvalidArgumentError(
            f"version={version!r} is not a whole number", advice="history() lists the versions of a table"
        )
    if ref is not None and (not isinstance(ref, str) or not ref):
        raise InvalidArgumentError(f"ref={ref!r} is not a name", advice="pass the name of a branch or tag")
    return At(version, None if timestamp is None else timestamp_ms(timestamp, zone), ref)


def folders(relocated: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Pairs of canonical folders. Raises InvalidArgumentError."""
    given = strings("relocated", relocated)
    return tuple((_recorded(path_text(before)), absolute(path_text(now))) for before, now in given.items())


def _recorded(folder: str) -> str:
    """A folder as metadata names it: of a scheme without a store it is text."""
    try:
        return absolute(folder)
    except UnsupportedFeatureError:
        return folder.rstrip("/")


def path_text(uri: object) -> str:
    """A path as a string, with `~` for the user's home; os.PathLike is accepted. Raises InvalidArgumentError."""
    text = uri.__fspath__() if hasattr(uri, "__fspath__") else uri
    if not isinstance(text, str) or not text.strip():
        raise InvalidArgumentError(f"{uri!r} is not a path", advice="pass a path or URI as a string")
    return os.path.expanduser(text)


def timestamp_ms(value: str | dt.datetime, zone: str = "UTC") -> int:
    """Milliseconds since the epoch; a value without an offset is in `zone`."""
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise InvalidArgumentError(
                f"timestamp {value!r} is not a time", advice="write it as 2026-11-20T10:00:00Z"
            ) from error
    if not isinstance(value, dt.datetime):
        raise InvalidArgumentError(f"timestamp {value!r} is not a time", advice="pass an ISO string or a datetime")
    millisecond = dt.timedelta(milliseconds=1)
    if value.tzinfo is None:
        from boathouse.bits import zones  # noqa: PLC0415

        return zones.zone(zone).instant((value - dt.datetime(1970, 1, 1)) // millisecond, 1000)
    return (value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // millisecond

"""Looks up tables by name in Spark's metastore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from boathouse.api.detection import formats_at, locate
from boathouse.api.engines import session
from boathouse.api.opening import path_text
from boathouse.errors import TableNotFoundError, UnsupportedFeatureError
from boathouse.storage import Stores


def named_or_path(uri: Any, spark: Any, storage_options: Mapping[str, str] | None) -> str:
    """The path of the table: `uri` itself if it is not a name or there is a table at it, else its location in Spark's
    metastore.

    Raises TableNotFoundError, and UnsupportedFeatureError for a view.
    """
    text = path_text(uri)
    names = import_module("boathouse.engines.spark.names")
    if not names.is_name(text) or formats_at(locate(text), Stores(storage_options)):
        return text
    found = location_of(text, spark)
    if found is None:
        raise TableNotFoundError(
            f"there is no table at the path {text!r}, and none with this name in Spark's metastore",
            where=locate(text).uri,
            advice="check the name, or pass the path",
        )
    return found


def location_of(name: str, spark: Any) -> str | None:
    """The location of the table with this name in Spark's metastore, None if there is none.

    Raises UnsupportedFeatureError for a view.
    """
    found = import_module("boathouse.engines.spark.names").look_up(session(spark), name)
    if found is None:
        return None
    if found.location is None:
        raise UnsupportedFeatureError(f"{name!r} is a view", advice="read it with spark.table, or open its tables")
    return str(found.location)


def full_name(spark: Any, parts: Sequence[str]) -> str:
    """The name with its catalog and database, as delta-spark shows it."""
    names = list(parts)
    if len(names) == 1:
        names.insert(0, str(spark.catalog.currentDatabase()))
    if len(names) == 2:
        names.insert(0, str(spark.catalog.currentCatalog()))
    return ".".join(names)

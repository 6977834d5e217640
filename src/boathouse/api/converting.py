"""A table of Spark's metastore that is Parquet files becomes one of this library, under its name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from boathouse.api.convert import convert
from boathouse.api.detection import formats_at, locate
from boathouse.api.opening import open_handle
from boathouse.api.schemas import as_schema
from boathouse.bits.names import steps
from boathouse.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from boathouse.expr.identifiers import dotted, quote
from boathouse.ops.result import WriteResult
from boathouse.storage import Stores
from boathouse.types import Schema


def source_folder(identifier: str) -> str | None:
    """The folder of ``parquet.`/path` ``; None for a name. Raises InvalidArgumentError for a path alone, and
    UnsupportedFeatureError for files of another kind."""
    parts = steps(identifier.strip())
    if len(parts) == 1 and "/" in parts[0]:
        raise InvalidArgumentError(f"{identifier!r} names no Parquet files", advice="write parquet.`/path`")
    if len(parts) != 2 or "/" not in parts[1]:
        return None
    if parts[0].lower() != "parquet":
        raise UnsupportedFeatureError(
            f"making a table in place of {identifier} is not offered",
            advice="pass parquet.`/folder`, or copy the rows: bh.write(bh.open(a), b)",
        )
    return parts[1]


def convert_named(spark: Any, name: str, format: str, partition_by: Any = None) -> WriteResult | None:
    """Makes a table of the files of an entry, in place, and the entry one of this library's: managed as it was, with
    the metastore's partition columns. None if such a table is there already.

    The table is made before the entry is changed: where that fails, the name leads to the table nevertheless, and the
    same call changes the entry. Raises TableNotFoundError, UnsupportedFeatureError for an entry of other files,
    InvalidArgumentError for a view and for other partition columns than the entry's, what `convert` raises, and
    Spark's errors.
    """
    name = dotted(steps(name.strip()))
    found = import_module("boathouse.engines.spark.names").look_up(spark, name)
    if found is None:
        raise TableNotFoundError(
            f"there is no table {name} in Spark's metastore", advice="check the name, or pass parquet.`/folder`"
        )
    if found.location is None:
        raise InvalidArgumentError(f"{name} is a view", advice="pass a table of Parquet files, or parquet.`/folder`")
    provider, there = (found.provider or "").lower(), formats_at(locate(found.location), Stores())
    if format not in there and provider != "parquet":
        raise UnsupportedFeatureError(
            f"{name} is a table of {provider or 'no known'} files, and only Parquet files become a table in place",
            where=found.location,
            advice=f"copy its rows: CREATE TABLE n USING {format} AS SELECT * FROM {name}",
        )
    entries = import_module("boathouse.engines.spark.entries")
    entries.check_changeable(spark, name, found)
    done = None
    if format not in there:
        done = convert(found.location, format, _partitions(spark, name, partition_by), spark=spark)
    if provider == "parquet":
        entries.change_provider(spark, name, found, open_handle(found.location, format).snapshot.schema)
    return done


def _partitions(spark: Any, name: str, given: Any) -> str | None:
    """The partition columns of the entry, as DDL. Raises InvalidArgumentError where others are given."""
    columns = [c for c in spark.catalog.listColumns(name) if c.isPartition]
    known = ", ".join(f"{quote(c.name)} {c.dataType}" for c in columns) or None
    if given is not None and _shape(given) != _shape(known):
        raise InvalidArgumentError(
            f"{name} is partitioned by {known or 'nothing'} in the metastore, and other partition columns are given",
            advice="leave them out: they are taken from the metastore",
        )
    return known


def _shape(ddl: Any) -> list[tuple[str, str]]:
    schema = Schema(()) if ddl is None else as_schema(ddl)
    return [(f.name.lower(), str(f.type)) for f in schema]

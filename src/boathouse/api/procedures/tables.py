"""The procedures of Iceberg that make a table, by the names, arguments and results that they have in iceberg-spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from boathouse.api.catalog import catalog
from boathouse.api.convert import convert
from boathouse.api.detection import locate
from boathouse.api.procedures.files import files_of
from boathouse.api.procedures.procedure import Asked, Maker, Row
from boathouse.errors import ExpressionError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.identifiers import quote
from boathouse.expr.sql_tokens import tokenize
from boathouse.ops.table.parquet_folder import found_files
from boathouse.storage import Stores, same
from boathouse.table.context import TableContext
from boathouse.types import Schema


def _snapshot(asked: Asked) -> Iterator[Row]:
    given = asked.given
    target = _path(given["table"])
    if "location" in given and not same(given["location"], target):
        raise UnsupportedFeatureError(f"the table is made at its path, {target}", advice="leave location out")
    folder = _parquet(asked, given["source_table"])
    done = convert(
        folder, "iceberg", _partitions(asked.spark, folder), given.get("properties"), spark=asked.spark, to=target
    )
    yield (done.files_added,)


def _migrate(asked: Asked) -> Iterator[Row]:
    given = asked.given
    if "backup_table_name" in given:
        raise UnsupportedFeatureError("no backup is made: the files stay as they are", advice="leave it out")
    folder = _parquet(asked, given["table"])
    properties = {**given.get("properties", {}), "migrated": "true"}
    done = convert(folder, "iceberg", _partitions(asked.spark, folder), properties, spark=asked.spark)
    yield (done.files_added,)


def _register_table(asked: Asked) -> Iterator[Row]:
    if not asked.catalog:
        raise InvalidArgumentError(
            "register_table needs a catalog",
            advice="name one of PyIceberg's configuration: CALL prod.system.register_table",
        )
    name = asked.given["table"].removeprefix(f"{asked.catalog}.")
    made = catalog(asked.catalog).register(name, asked.given["metadata_file"])
    summary = made._handle.snapshot.detail()["summary"]
    counts = (summary.get(key) for key in ("total-records", "total-data-files"))
    yield (made.version or None, *(None if n is None else int(n) for n in counts))


def _parquet(asked: Asked, source: str) -> str:
    """The folder of Parquet files that an argument names."""
    folder, format = (source, "parquet") if source.startswith("/") or "://" in source else files_of(asked.spark, source)
    if format != "parquet":
        raise UnsupportedFeatureError(
            f"a table of a folder of {format} files is not offered",
            advice="create the table and add the files: CALL system.add_files",
        )
    return folder


def _path(text: str) -> str:
    """The path of a new table."""
    try:
        parts = [t.name for t in tokenize(text)[::2]]
    except ExpressionError:
        parts = []
    if len(parts) == 2 and parts[0] is not None and parts[0].lower() == "iceberg" and parts[1] and "/" in parts[1]:
        return parts[1]
    if "/" not in text:
        raise UnsupportedFeatureError(
            f"no table is made by the name {text!r}", advice="pass the path of the new table: '/lake/copy'"
        )
    return text


def _partitions(spark: Any, folder: str) -> str | None:
    """The partition columns that the folders name, with the types that Spark gives them, as DDL."""
    location = locate(folder)
    found = found_files(TableContext(location, Stores(home=location.uri)), Schema(()))
    names = list(found[0].values) if found else []
    if not names:
        return None
    types = {f.name: f.dataType.simpleString() for f in spark.read.parquet(folder).schema}
    return ", ".join(f"{quote(name)} {types[name]}" for name in names)


MAKERS: Final = (
    Maker(
        "migrate",
        "table string NOT NULL, properties map<string,string>, drop_backup boolean, backup_table_name string, "
        "parallelism int",
        "migrated_files_count bigint",
        _migrate,
    ),
    Maker(
        "register_table",
        "table string NOT NULL, metadata_file string NOT NULL",
        "current_snapshot_id bigint, total_records_count bigint, total_data_files_count bigint",
        _register_table,
    ),
    Maker(
        "snapshot",
        "source_table string NOT NULL, table string NOT NULL, location string, properties map<string,string>, "
        "parallelism int",
        "imported_files_count bigint",
        _snapshot,
    ),
)

"""The procedures of Iceberg that take files in place, by the names, arguments and results that they have in
iceberg-spark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from boathouse.api.adding_files import FORMATS
from boathouse.api.detection import formats_at, locate
from boathouse.api.procedures.procedure import Called, Procedure, Row, total
from boathouse.errors import ExpressionError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.sql_tokens import tokenize
from boathouse.storage import Stores


def _add_files(called: Called) -> Iterator[Row]:
    given, table = called.given, called.table
    place, format = files_of(called.spark, given["source_table"])
    done = table.add_files(
        place,
        given.get("partition_filter"),
        format=format,
        check_duplicate_files=given.get("check_duplicate_files", True),
    )
    yield done.files_added, total(table, done, "changed-partition-count")


def files_of(spark: Any, text: str) -> tuple[str, str]:
    """The folder and the format of the files that a procedure's source names: ``parquet.`/path` ``, or a table of
    Spark's metastore that is files. Raises InvalidArgumentError, UnsupportedFeatureError for other tables."""
    try:
        tokens = tokenize(text)
    except ExpressionError:
        tokens = []
    parts = [t.name for t in tokens[::2]]
    if len(parts) == 2 and parts[0] is not None and parts[0].lower() in FORMATS and parts[1] and "/" in parts[1]:
        return parts[1], parts[0].lower()
    found = import_module("boathouse.engines.spark.names").look_up(spark, text)
    if found is None or found.location is None:
        raise InvalidArgumentError(
            f"{text!r} names no files", advice="pass parquet.`/folder`, or a table of Spark's metastore"
        )
    provider = (found.provider or "").lower()
    if provider not in FORMATS or formats_at(locate(found.location), Stores()):
        raise UnsupportedFeatureError(
            f"the table {text} is not made of Parquet, ORC or Avro files alone", advice="insert its rows instead"
        )
    return found.location, provider


PROCEDURES: Final = (
    Procedure(
        "add_files",
        "source_table string NOT NULL, partition_filter map<string,string>, check_duplicate_files boolean, "
        "parallelism int",
        "added_files_count bigint, changed_partition_count bigint",
        _add_files,
    ),
)

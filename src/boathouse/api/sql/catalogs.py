"""CONVERT TO, and SHOW TABLES and the namespaces of catalogs of PyIceberg's configuration, in sql()."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import translate
from typing import Any

from boathouse import registry
from boathouse.api.catalog import catalog
from boathouse.api.convert import convert
from boathouse.api.converting import convert_named, source_folder
from boathouse.api.delta_frames import counts_frame
from boathouse.api.sql.columns import nothing
from boathouse.api.sql.tables import Tables
from boathouse.errors import AlreadyExistsError, InvalidArgumentError, TableNotFoundError
from boathouse.expr.other_statements import ConvertTo, InCatalog, convert_to, in_catalog
from boathouse.expr.sql_tokens import Token, joined
from boathouse.expr.statements import Parser


def other(tables: Tables, sql: str, tokens: Sequence[Token]) -> Any:
    """The result of the statement; None for one of another kind, and one of Spark's."""
    converted = convert_to(Parser(sql, tokens))
    if converted is not None:
        return _converted(tables, converted)
    found = in_catalog(Parser(sql, tokens), tokens)
    if found is None or not found.parts or tables.is_sparks(found.parts[0]):
        return None
    # `SHOW TABLES IN sales`, `CREATE DATABASE sales` name a database of Spark's.
    if len(found.parts) == 1 and found.action != "namespaces":
        return None
    return _in_catalog(tables, found) if registry.catalogs().configured(found.parts[0]) else None


def _converted(tables: Tables, s: ConvertTo) -> Any:
    """Raises UnsupportedFeatureError for a source that is not Parquet files."""
    if s.format not in registry.FORMATS:
        raise InvalidArgumentError(f"CONVERT TO {s.format.upper()} is no format", advice="it is DELTA or ICEBERG")
    name = joined(s.source.tokens)
    folder = source_folder(name)
    if folder is not None:
        return counts_frame(tables.spark, convert(folder, s.format, s.partition_by, spark=tables.spark))
    result = convert_named(tables.spark, name, s.format, s.partition_by)
    return nothing(tables) if result is None else counts_frame(tables.spark, result)


def _in_catalog(tables: Tables, s: InCatalog) -> Any:
    name, *below = s.parts
    made, namespace = catalog(name), ".".join(below)
    match s.action:
        case "tables":
            found = [t.rpartition(".") for t in made.tables(namespace or None)]
            rows = [(n, t, False) for n, _, t in found if _fits(t, s.pattern)]
            return tables.spark.createDataFrame(rows, "namespace string, tableName string, isTemporary boolean")
        case "namespaces":
            depth = len(below) + 1
            names = [n for n in made.namespaces() if n.split(".")[: len(below)] == below and n.count(".") + 1 == depth]
            return tables.spark.createDataFrame([(n,) for n in names if _fits(n, s.pattern)], "namespace string")
        case "create" | "create-if-absent":
            try:
                made.create_namespace(namespace)
            except AlreadyExistsError:
                if s.action == "create":
                    raise
        case _:
            with suppress(*(() if s.action == "drop" else (TableNotFoundError,))):
                made.drop_namespace(namespace)
    return nothing(tables)


def _fits(name: str, pattern: str | None) -> bool:
    """As Spark's SHOW ... LIKE: `*` is anything, `|` stands between several, case does not count."""
    return pattern is None or any(re.fullmatch(translate(p), name, re.IGNORECASE) for p in pattern.split("|"))

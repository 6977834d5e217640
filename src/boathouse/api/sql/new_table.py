"""What CREATE TABLE says of a new table: columns, rows of a query, or another table that it is like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from boathouse.api.columns import typed
from boathouse.api.engines import spark_engine
from boathouse.api.partition_by import clustering_path, partition_fields, partition_sql
from boathouse.api.session_settings import with_defaults
from boathouse.api.sql.tables import Tables
from boathouse.api.table import Table
from boathouse.errors import InvalidArgumentError, SchemaError, UnsupportedFeatureError
from boathouse.expr.create_statement import DeclaredColumn, NewTable
from boathouse.expr.sql_tokens import joined
from boathouse.ops.write import Source
from boathouse.table.edits import CreateTable
from boathouse.types import Field, Identity, PartitionField, Schema
from boathouse.types.data_types import without_ids

_OWN = (
    "delta.columnMapping.",
    "delta.constraints.",
    "delta.rowTracking",
    "delta.materialized",
    "delta.inCommit",
    "delta.requireCheckpointProtection",
)
"""Beginnings of properties that belong to a table's own files and versions."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The table, its first rows if it has any, and the table that it is a clone of. `format` is where none is said."""

    table: CreateTable
    rows: Any = None
    source: Source | None = None
    clone: Table | None = None
    format: str = "delta"


def wanted(tables: Tables, s: NewTable, format: str) -> Wanted:
    """Raises SchemaError without columns, ColumnNotFoundError, InvalidArgumentError, UnsupportedFeatureError, and
    Spark's errors for a query."""
    if s.clone is not None:
        return _cloned(tables, s)
    if s.like is not None:
        return _like(tables, s, format)
    if s.query is not None:
        rows = tables.frame(s.query)
        engine = spark_engine(tables.spark)
        source = Source.of(engine, engine.source(rows))
        return Wanted(_with_session(tables, _described(s, source.schema), format), rows, source)
    if not s.columns:
        raise SchemaError(
            f"the new table {s.table} has no columns, and there is no table where it would be",
            advice="write them, CREATE TABLE t (id bigint, ...), or AS SELECT",
        )
    return Wanted(_with_session(tables, _declared(s), format))


def _with_session(tables: Tables, asked: CreateTable, format: str) -> CreateTable:
    """The table with the properties that the session gives to every new Delta table."""
    if format not in ("", "delta"):
        return asked
    return replace(asked, properties=with_defaults(tables.spark, asked.properties))


def _declared(s: NewTable) -> CreateTable:
    fields = tuple(Field(c.name, typed(c.type), c.nullable, doc=c.comment) for c in s.columns)
    made = [c for c in s.columns if c.generated is not None]
    for c in made:
        if c.default is not None or c.identity is not None:
            raise InvalidArgumentError(f"`{c.name}` is generated, and has a default too", advice="leave one out")
    found = _described(s, Schema(fields))
    return replace(
        found,
        generated={c.name: c.generated for c in made if c.generated is not None},
        defaults={c.name: c.default for c in s.columns if c.default is not None},
        identities={c.name: _identity(c) for c in s.columns if c.identity is not None},
    )


def _identity(c: DeclaredColumn) -> Identity:
    assert c.identity is not None
    return Identity(c.identity.start, c.identity.step, c.identity.by_default)


def _described(s: NewTable, schema: Schema, by: tuple[PartitionField, ...] = ()) -> CreateTable:
    by = partition_fields(s.partition_by, schema) if s.partition_by else by
    clustered = tuple(clustering_path(schema, text) for text in s.cluster_by)
    return CreateTable(schema, by, dict(s.properties), comment=s.comment, cluster_by=clustered)


def _like(tables: Tables, s: NewTable, format: str) -> Wanted:
    """The columns, and of a table of ours the partitioning; of the same format also its properties."""
    assert s.like is not None
    if s.columns or s.partition_by or s.cluster_by:
        raise InvalidArgumentError("a table LIKE another has its columns and partitioning", advice="leave them out")
    place = tables.find(s.like)
    if place is None:
        rows = tables.spark.table(joined(s.like.tokens))
        return Wanted(_described(s, spark_engine(tables.spark).schema(rows)))
    table = tables.table(s.like)
    schema = _plain(table.schema)
    texts = [partition_sql(f) for f in table.partitioning.current if f.transform.name != "void"]
    found = _described(s, schema, partition_fields(texts, schema) if texts else ())
    if format in ("", table.format):
        constraint = next((k for k in table.properties if k.startswith(_OWN[1])), None)
        if constraint is not None:
            raise UnsupportedFeatureError(
                f"LIKE a table with a constraint ({constraint.removeprefix(_OWN[1])}) is not offered",
                where=table.uri,
                advice="write the columns, and add the constraint: ALTER TABLE t ADD CONSTRAINT",
            )
        kept = {k: v for k, v in table.properties.items() if not k.startswith(_OWN) or k == f"{_OWN[0]}mode"}
        found = replace(found, properties={**kept, **found.properties})
    return Wanted(found, format=table.format)


def _plain(schema: Schema) -> Schema:
    """The columns without what a format keeps of them."""
    return Schema(tuple(replace(f, metadata={}) for f in without_ids(schema.fields)))


def _cloned(tables: Tables, s: NewTable) -> Wanted:
    assert s.clone is not None
    if s.columns or s.partition_by or s.cluster_by or s.comment is not None:
        raise InvalidArgumentError(
            "a clone has the columns, partitioning and comment of its source", advice="leave them out"
        )
    if tables.find(s.clone) is None:
        raise UnsupportedFeatureError(
            f"{s.clone} is no table of Delta, Iceberg or Lance, so that it cannot be cloned", advice="write AS SELECT"
        )
    source = tables.table(s.clone, s.at)
    return Wanted(CreateTable(_plain(source.schema)), clone=source, format=source.format)

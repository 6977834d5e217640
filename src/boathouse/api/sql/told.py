"""SHOW CREATE TABLE, SHOW PARTITIONS, COMMENT ON and REFRESH TABLE in sql()."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from boathouse.api.detail import files_table
from boathouse.api.partition_by import partition_sql
from boathouse.api.sql.columns import nothing
from boathouse.api.sql.tables import Tables
from boathouse.api.table import Table
from boathouse.errors import InvalidArgumentError
from boathouse.expr.identifiers import dotted, quote, text_literal
from boathouse.expr.other_statements import CommentOn, Refresh, ShowCreate, ShowPartitions
from boathouse.table.features import Clustering
from boathouse.types import Field

_COMPUTED = ("delta.columnMapping.maxColumnId", "delta.rowTracking.", "delta.constraints.", "comment")
"""Beginnings of properties that no statement sets."""


def create_statement(tables: Tables, s: ShowCreate) -> Any:
    """The statement that makes such a table; its constraints are statements of their own."""
    table = tables.table(s.table)
    named = tables.named_place(s.table) is None
    entry = import_module("boathouse.engines.spark.names").look_up(tables.spark, str(s.table)) if named else None
    text = "\n".join(_lines(str(s.table), table, entry is not None and not entry.managed))
    return tables.spark.createDataFrame([(text,)], "createtab_stmt string")


def _lines(name: str, table: Table, located: bool) -> Iterator[str]:
    snapshot = table._handle.snapshot
    context = snapshot.write_context("")
    made = {c.name: f"GENERATED ALWAYS AS ({c.sql})" if c.generated else f"DEFAULT {c.sql}" for c in context.computed}
    for i in context.identities:
        kind = "BY DEFAULT" if i.explicit else "ALWAYS"
        made[i.name] = f"GENERATED {kind} AS IDENTITY (START WITH {i.next} INCREMENT BY {i.step})"
    yield f"CREATE TABLE {name} ("
    yield ",\n".join(f"  {_column(f, made.get(f.name))}" for f in snapshot.schema) + ")"
    yield f"USING {table.format}"
    if by := [partition_sql(f) for f in snapshot.partitioning.current if f.transform.name != "void"]:
        yield f"PARTITIONED BY ({', '.join(by)})"
    clustered = snapshot.offers(Clustering)
    if clustered is not None and clustered.columns:
        yield f"CLUSTER BY ({', '.join(dotted(path) for path in clustered.columns)})"
    if located:
        yield f"LOCATION {text_literal(table.uri)}"
    comment = snapshot.detail().get("description") or table.properties.get("comment")
    if comment:
        yield f"COMMENT {text_literal(str(comment))}"
    kept = {k: v for k, v in sorted(table.properties.items()) if not k.startswith(_COMPUTED)}
    if kept:
        yield (
            "TBLPROPERTIES (\n" + ",\n".join(f"  {text_literal(k)} = {text_literal(v)}" for k, v in kept.items()) + ")"
        )


def _column(f: Field, made: str | None) -> str:
    parts = [quote(f.name), str(f.type), None if f.nullable else "NOT NULL", made]
    return " ".join(p for p in (*parts, None if f.doc is None else f"COMMENT {text_literal(f.doc)}") if p is not None)


def partitions(tables: Tables, s: ShowPartitions) -> Any:
    """One row a partition that has files: `a=1/b=2`. Raises InvalidArgumentError for a table without partitions."""
    table = tables.table(s.table)
    if not table.partitioning.current.fields:
        raise InvalidArgumentError("the table is not partitioned", where=table.uri)
    names = [f.name for f in table.partitioning.current]
    rows = {tuple((n, r.get(n)) for n in names) for r in files_table(table._handle).column("partition").to_pylist()}
    texts = sorted("/".join(f"{name}={_shown(value)}" for name, value in row) for row in rows)
    return tables.spark.createDataFrame([(text,) for text in texts], "partition string")


def _shown(value: object) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def commented(tables: Tables, s: CommentOn) -> Any:
    """COMMENT ON TABLE."""
    tables.table(s.table).set_comment(s.comment or None)
    return nothing(tables)


def refreshed(tables: Tables, s: Refresh) -> Any:
    """REFRESH TABLE: whether the table is there; nothing is kept of it."""
    tables.table(s.table)
    return nothing(tables)

"""sql: statements on tables, where Spark alone knows no Delta, Iceberg and Lance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from boathouse.api import delta_commands as commands
from boathouse.api.arguments import errors_at
from boathouse.api.conditions import is_column, sql_text
from boathouse.api.delta_frames import counts_frame, detail_frame
from boathouse.api.engines import session
from boathouse.api.metastore import full_name
from boathouse.api.sql import alter, columns, create, indices, refs, shown, told
from boathouse.api.sql.call import call
from boathouse.api.sql.catalogs import other
from boathouse.api.sql.defaults import value_of
from boathouse.api.sql.insert import insert
from boathouse.api.sql.merge import by_column, merge
from boathouse.api.sql.tables import Tables
from boathouse.errors import ExpressionError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.alter_columns import (
    AddedColumns,
    AlteredColumn,
    AlteredConstraint,
    AlteredProperties,
    ChangedColumn,
    DroppedColumns,
    DroppedFeature,
    RenamedColumn,
)
from boathouse.expr.alter_refs import AlterRef
from boathouse.expr.alter_table import AlterClustering, AlterIdentifiers, AlterPartitionFields, AlterWriteOrder
from boathouse.expr.call_statement import parse_call
from boathouse.expr.other_statements import CommentOn, Refresh, RenameTo, ShowCreate, ShowPartitions
from boathouse.expr.parameters import bound
from boathouse.expr.qualify import requalified
from boathouse.expr.sql_tokens import Token, joined
from boathouse.expr.statement_tree import (
    Delete,
    Describe,
    Detail,
    History,
    Insert,
    Merge,
    Optimize,
    Reorg,
    Restore,
    ShowColumns,
    ShowProperties,
    TableName,
    Tokens,
    Truncate,
    Update,
    Vacuum,
)
from boathouse.expr.statements import parse_statement, single

_QUERY: Final = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")


def sql(spark: Any, text: str, args: Mapping[str, Any] | Sequence[Any] | None = None) -> Any:
    """Runs one statement on a Spark session, and returns a DataFrame.

    `args` are the values of its parameters: a dict of those called `:name`, or a list of those written `?`. They are
    Python values, lists and dicts of them, or Columns of literals; naive datetimes are TIMESTAMP_NTZ.

    Tables are named as in Spark's metastore, or by path: ``delta.`/path` ``, ``iceberg.`/path` ``, ``lance.`/path` ``,
    or ``boathouse.`/path` `` for any of them, or `catalog.namespace.table` of PyIceberg's configuration. In a query
    they may have a version: `VERSION AS OF 3`, `TIMESTAMP AS OF '2026-11-20'`. CREATE TABLE `USING delta`, `iceberg`
    or `lance` (also AS SELECT, LIKE, SHALLOW CLONE), DROP TABLE, MERGE INTO, UPDATE, DELETE FROM, INSERT INTO and
    OVERWRITE, TRUNCATE, OPTIMIZE, REORG, VACUUM, RESTORE, DESCRIBE, SHOW, CONVERT TO, ALTER TABLE, COMMENT ON and
    `table_changes(...)` are this library's operations, and so are Iceberg's procedures, `CALL
    system.rewrite_data_files('db.t')`: docs/sql.md has them all. A statement that names none of its tables is Spark's.

    Raises ExpressionError that names the line and column, also for a parameter without a value, InvalidArgumentError
    without a session, TableNotFoundError,
    Spark's own errors, and those of the operation that the statement runs: see the methods of Table of the same names.
    Those about what the statement says are also PySpark's AnalysisException or ParseException.

    >>> done = bh.sql(spark, "UPDATE delta.`./cities` SET price = price + 1 WHERE id = 1")
    >>> bh.sql(spark, "SELECT city FROM delta.`./cities` WHERE price > :least", {"least": 20}).count()
    2
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"{text!r} is no SQL text", advice="pass the session and a text: sql(spark, text)")
    if spark is None or isinstance(spark, str):
        raise InvalidArgumentError(
            "sql() needs a Spark session: there is no SQL in process",
            advice="pass one, sql(spark, text), or use t.scan(where=...), t.update(), t.delete() and t.merge(); "
            "duckdb and polars query what t.to_arrow() returns",
        )
    found = session(spark)
    with import_module("boathouse.engines.spark.user_errors").spark_errors():
        return _run(found, text if args is None else bound(text, args, _column_text))


def _column_text(value: Any) -> str | None:
    return sql_text(value) if is_column(value) else None


def _run(found: Any, text: str) -> Any:
    tokens = single(text)
    with Tables(found, text) as tables:
        called = parse_call(text, tokens)
        if called is not None and (result := call(tables, called)) is not None:
            return result
        for run in (create.create, other, indices.indices):
            if (made := run(tables, text, tokens)) is not None:
                return made
        statement = parse_statement(text, tokens, lambda table: tables.find(table) is not None)
        if statement is None:
            query = tables.with_views(tokens)
            _check_view(tables, tokens)
            tables.keep = not tokens[0].is_word(*_QUERY) and tokens[0].text != "("
            return found.sql(query)
        with errors_at(str(statement.table)):
            return _READERS[type(statement)](tables, statement)


def _check_view(tables: Tables, tokens: Sequence[Token]) -> None:
    """Raises UnsupportedFeatureError for a view in Spark's metastore, which cannot name views of a session."""
    words = [t.text.upper() for t in tokens[:4]]
    if tables.viewed and words[0] == "CREATE" and "VIEW" in words and not {"TEMPORARY", "TEMP"} & set(words):
        raise UnsupportedFeatureError(
            "a view in Spark's metastore on a table of this library is not offered",
            advice="write CREATE TEMPORARY VIEW: it is the session's; views in Iceberg's catalogs are made by "
            "bh.catalog(name).create_view(...)",
        )


def _own(tables: Tables, sql: Tokens, name: TableName, alias: str | None) -> str:
    """An expression over the table alone, its columns unqualified, with views for the tables of its queries."""
    text = tables.with_views(sql)
    for qualifier in [(alias,)] if alias is not None else [name.parts, name.parts[-1:]]:
        text = requalified(text, qualifier, None)
    return text


@contextmanager
def _correlated(*parts: Tokens | None) -> Iterator[None]:
    """Says what to do where a query inside of the statement names the table that is changed."""
    try:
        yield
    except ExpressionError as error:
        words = [t.text.upper() for part in parts if part is not None for t in part]
        if "SELECT" in words:
            error.advice = (
                "instead of a subquery that names the table's own columns, as EXISTS (SELECT 1 FROM s WHERE s.id = "
                "t.id), write id IN (SELECT id FROM s), or MERGE INTO t USING (SELECT DISTINCT id FROM s) AS s ON t.id "
                "= s.id WHEN MATCHED THEN DELETE, or UPDATE SET"
            )
        raise


def _delete(tables: Tables, s: Delete) -> Any:
    where = None if s.where is None else _own(tables, s.where, s.table, s.alias)
    with _correlated(s.where):
        return counts_frame(tables.spark, tables.table(s.table).delete(where))


def _update(tables: Tables, s: Update) -> Any:
    table = tables.table(s.table)
    where = None if s.where is None else _own(tables, s.where, s.table, s.alias)
    targets = [_own(tables, c, s.table, s.alias) for c, _ in s.values]
    texts = [
        value_of(table, c, v, lambda sql: _own(tables, sql, s.table, s.alias))
        for c, (_, v) in zip(targets, s.values, strict=True)
    ]
    values = by_column(zip(targets, texts, strict=True))
    with _correlated(s.where, *(v for _, v in s.values)):
        return counts_frame(tables.spark, table.update(values, where))


def _optimize(tables: Tables, s: Optimize) -> Any:
    where = None if s.where is None else _own(tables, s.where, s.table, None)
    return commands.optimize(tables.spark, tables.table(s.table), where, s.zorder_by)


def _reorg(tables: Tables, s: Reorg) -> Any:
    where = None if s.where is None else _own(tables, s.where, s.table, None)
    return commands.purge(tables.spark, tables.table(s.table), where)


def _vacuum(tables: Tables, s: Vacuum) -> Any:
    return commands.vacuum(tables.spark, tables.table(s.table), s.hours, s.mode, s.dry_run)


def _restore(tables: Tables, s: Restore) -> Any:
    table = tables.table(s.table)
    result = table.restore(s.at.version, None if s.at.timestamp is None else tables.time(joined(s.at.timestamp)))
    return commands.restored(tables.spark, table, result)


def _detail(tables: Tables, s: Detail) -> Any:
    table = tables.table(s.table)
    name = None if tables.named_place(s.table) is not None else full_name(tables.spark, s.table.parts)
    return detail_frame(tables.spark, table.detail(), name)


_READERS: Final[dict[type, Callable[[Tables, Any], Any]]] = {
    Delete: _delete,
    Update: _update,
    Merge: merge,
    Insert: insert,
    Optimize: _optimize,
    Reorg: _reorg,
    Vacuum: _vacuum,
    History: lambda t, s: commands.history(t.spark, t.table(s.table), s.limit),
    Detail: _detail,
    Restore: _restore,
    AlterPartitionFields: alter.partition,
    AlterWriteOrder: alter.order,
    AlterIdentifiers: alter.identifiers,
    AlterClustering: alter.clustering,
    ShowCreate: told.create_statement,
    ShowPartitions: told.partitions,
    CommentOn: told.commented,
    Refresh: told.refreshed,
    RenameTo: create.renamed,
    AlterRef: refs.alter,
    AddedColumns: columns.added,
    RenamedColumn: columns.renamed,
    DroppedColumns: columns.dropped,
    AlteredColumn: columns.altered,
    ChangedColumn: columns.changed,
    DroppedFeature: columns.dropped_feature,
    AlteredProperties: columns.properties,
    AlteredConstraint: columns.constraint,
    Truncate: lambda t, s: counts_frame(t.spark, t.table(s.table).delete()),
    Describe: shown.described,
    ShowProperties: shown.properties,
    ShowColumns: shown.columns,
}

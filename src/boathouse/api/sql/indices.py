"""CREATE INDEX, DROP INDEX and SHOW INDEXES in sql()."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boathouse.api.arguments import errors_at
from boathouse.api.sql.columns import nothing
from boathouse.api.sql.tables import Tables
from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.index_statements import IndexStatement, index_statement
from boathouse.expr.sql_tokens import Token
from boathouse.expr.statements import Parser


def indices(tables: Tables, sql: str, tokens: Sequence[Token]) -> Any:
    """The result of the statement; None for one of another kind, and one on a table of Spark's."""
    found = index_statement(Parser(sql, tokens))
    if found is None or tables.find(found.table) is None:
        return None
    with errors_at(str(found.table)):
        return _run(tables, found)


def _run(tables: Tables, s: IndexStatement) -> Any:
    table = tables.table(s.table)
    known = table.indices()
    there = s.name in known.column("name").to_pylist()
    match s.action:
        case "show":
            return tables.spark.createDataFrame(known)
        case "drop" | "drop-if-exists":
            if there or s.action == "drop":
                table.drop_index(s.name)
        case _:
            if len(s.columns) > 1:
                raise UnsupportedFeatureError(
                    f"an index on {len(s.columns)} columns is not offered", advice="make one for each column"
                )
            if not there or s.action == "create":
                table.create_index(s.columns[0], s.kind, s.name)
    return nothing(tables)

"""Statements that change rows, parsed: MERGE, UPDATE, DELETE and INSERT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse.expr.sql_tokens import joined
from boathouse.expr.statement_tree import Delete, Insert, Merge, MergeClause, TableName, Tokens, Update

if TYPE_CHECKING:
    from boathouse.expr.statements import Parser

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "FROM")


def delete(p: Parser, table: TableName) -> Delete:
    return Delete(table, p.alias("WHERE"), p.where())


def update(p: Parser, table: TableName) -> Update:
    alias = p.alias("SET")
    p.need("SET")
    return Update(table, alias, p.assignments("WHERE"), p.where())


def merge(p: Parser, table: TableName, evolve: bool = False) -> Merge:
    alias = p.alias("USING")
    p.need("USING")
    source = p.until("a source", "ON")
    p.need("ON")
    on = p.until("a condition", "WHEN MATCHED", "WHEN NOT MATCHED")
    clauses = []
    while p.take("WHEN"):
        clauses.append(_clause(p))
    if not clauses:
        raise p.expected("WHEN MATCHED or WHEN NOT MATCHED")
    return Merge(table, alias, source, on, tuple(clauses), evolve)


def _clause(p: Parser) -> MergeClause:
    kind = "not_matched" if p.take("NOT") else "matched"
    p.need("MATCHED")
    if kind == "not_matched" and p.take("BY"):
        kind += "_by_source" if p.take("SOURCE") else ""
        if kind == "not_matched":
            p.need("TARGET")
    where = p.until("a condition", "THEN") if p.take("AND") else None
    p.need("THEN")
    if kind != "not_matched" and p.take("DELETE"):
        return MergeClause(f"when_{kind}_delete", None, where)
    if kind == "not_matched":
        p.need("INSERT")
        return _insertion(p, where)
    p.need("UPDATE")
    p.need("SET")
    if kind == "matched" and p.take("*"):
        return MergeClause("when_matched_update_all", None, where)
    return MergeClause(f"when_{kind}_update", p.assignments("WHEN MATCHED", "WHEN NOT"), where)


def _insertion(p: Parser, where: Tokens | None) -> MergeClause:
    """What follows INSERT in a merge."""
    if p.take("*"):
        return MergeClause("when_not_matched_insert_all", None, where)
    columns = p.listed("a column")
    p.need("VALUES")
    values = p.listed("a value")
    if len(columns) != len(values):
        p.back()
        raise p.expected(f"{len(columns)} values")
    return MergeClause("when_not_matched_insert", tuple(zip(columns, values, strict=True)), where)


def insert(p: Parser, table: TableName, overwrite: bool = False, evolve: bool = False) -> Insert:
    partition = _partition(p) if p.take("PARTITION") else ()
    if partition and p.sees("IF", "NOT", "EXISTS"):
        raise p.refuse("INSERT OVERWRITE ... IF NOT EXISTS", "leave it out, and filter the query")
    columns = tuple(joined(c) for c in p.listed("a column")) if _column_list(p) else None
    by_name = p.take("BY", "NAME")
    where = None
    if any(p.sees("REPLACE", word) for word in ("USING", "ON")):
        advice = "write MERGE INTO, or REPLACE WHERE condition"
        raise p.refuse("INSERT INTO ... REPLACE USING or ON", advice)
    if not overwrite and not partition and p.take("REPLACE", "WHERE"):
        overwrite, where = True, p.until("a condition", *_QUERIES)
    query = p.rest()
    if not query:
        raise p.expected("a query")
    return Insert(table, partition, columns, by_name, overwrite, where, query, evolve)


def _partition(p: Parser) -> tuple[tuple[str, Tokens | None], ...]:
    """`(a = 1, b)`."""
    p.need("(")
    found: list[tuple[str, Tokens | None]] = []
    while True:
        name = p.identifier("a column")
        found.append((name, p.until("a value", ",") if p.take("=") else None))
        if not p.take(","):
            p.need(")")
            return tuple(found)


def _column_list(p: Parser) -> bool:
    """Whether names in parentheses follow, not a query."""
    return p.sees("(") and not any(p.sees("(", w) for w in (*_QUERIES, "("))

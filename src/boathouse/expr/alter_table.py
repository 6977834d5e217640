"""ALTER TABLE, parsed, as far as Spark's own grammar lacks it: partition fields, the order of writes, identifiers, and
clustering columns. Any other ALTER TABLE is None, and Spark's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boathouse.expr.create_statement import clustering_columns
from boathouse.expr.sql_tokens import joined
from boathouse.expr.statement_tree import TableName

if TYPE_CHECKING:
    from boathouse.expr.statements import Parser


@dataclass(frozen=True, slots=True)
class AlterPartitionFields:
    """`gone` leaves the partitioning, by its name or as a transform; `added`, a transform or column, comes, called
    `name`."""

    table: TableName
    gone: str | None
    added: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class AlterWriteOrder:
    """Rows are written in the order of `by`, none if it is empty. `distributed`: those of a partition meet; `locally`:
    rows do not move for the order."""

    table: TableName
    by: tuple[str, ...]
    distributed: bool
    locally: bool


@dataclass(frozen=True, slots=True)
class AlterIdentifiers:
    """These columns identify a row (`drop`: no longer, beside others that do)."""

    table: TableName
    columns: tuple[str, ...]
    drop: bool


@dataclass(frozen=True, slots=True)
class AlterClustering:
    """Rows are to be clustered by these columns; none: by none."""

    table: TableName
    columns: tuple[str, ...]


AlterTable = AlterPartitionFields | AlterWriteOrder | AlterIdentifiers | AlterClustering


def alter_table(p: Parser, table: TableName) -> AlterTable | None:
    """What follows `ALTER TABLE t`. Raises ExpressionError that names the place."""
    if p.take("ADD", "PARTITION", "FIELD"):
        return AlterPartitionFields(table, None, *_added(p))
    if p.take("DROP", "PARTITION", "FIELD"):
        return AlterPartitionFields(table, joined(p.until("a partition field")), None, None)
    if p.take("REPLACE", "PARTITION", "FIELD"):
        gone = joined(p.until("a partition field", "WITH"))
        p.need("WITH")
        return AlterPartitionFields(table, gone, *_added(p))
    if p.take("WRITE"):
        return _write_order(p, table)
    if p.take("CLUSTER", "BY"):
        return AlterClustering(table, clustering_columns(p))
    for words, drop in ((("SET",), False), (("DROP",), True)):
        if p.take(*words, "IDENTIFIER", "FIELDS"):
            return AlterIdentifiers(table, _listed(p, "a column"), drop)
    return None


def _added(p: Parser) -> tuple[str, str | None]:
    transform = joined(p.until("a partition transform", "AS"))
    return transform, p.identifier("a name") if p.take("AS") else None


def _write_order(p: Parser, table: TableName) -> AlterWriteOrder:
    distributed = p.take("DISTRIBUTED", "BY", "PARTITION")
    if p.take("UNORDERED"):
        return AlterWriteOrder(table, (), distributed, locally=True)
    locally = p.take("LOCALLY")
    if not p.take("ORDERED", "BY"):
        if locally or not distributed:
            raise p.expected("ORDERED BY, UNORDERED or DISTRIBUTED BY PARTITION")
        return AlterWriteOrder(table, (), distributed, locally)
    return AlterWriteOrder(table, _listed(p, "a column or a transform"), distributed, locally)


def _listed(p: Parser, what: str) -> tuple[str, ...]:
    """`a, b`, with parentheses around all of it or without."""
    inside = p.take("(")
    found = [joined(p.until(what, ","))]
    while p.take(","):
        found.append(joined(p.until(what, ",")))
    if inside:
        p.need(")")
    return tuple(found)

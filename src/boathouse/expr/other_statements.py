"""Statements on a table that only tell something of it, or that are not run: SHOW CREATE TABLE, SHOW PARTITIONS,
COMMENT ON, REFRESH, and what is refused by name with what to do instead. And what names no table at its beginning:
CONVERT TO, and SHOW TABLES and namespaces of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from boathouse.expr.sql_tokens import Token, joined
from boathouse.expr.statement_tree import TableName

if TYPE_CHECKING:
    from boathouse.expr.statements import Parser

REFUSED: Final = {
    "ANALYZE": "CALL system.compute_table_stats(...), for Iceberg; in the other formats what is written has statistics",
    "MSCK REPAIR": "the table knows its files: there is nothing to repair",
    "FSCK REPAIR": "t.restore(...) to a version whose files are there",
    "REPAIR": "the table knows its files: there is nothing to repair",
    "CACHE": "cache its rows: bh.open(...).to_spark().cache(), under a view of your own",
    "UNCACHE": "its views are never cached by this library",
    "GENERATE SYMLINK_FORMAT_MANIFEST FOR": "let the reader open the Delta table itself",
    "COPY INTO": "t.append(spark.read.parquet(...)), or t.add_files(...) for Iceberg",
}
"""The words before a table's name, and what to do instead."""


@dataclass(frozen=True, slots=True)
class ShowCreate:
    table: TableName


@dataclass(frozen=True, slots=True)
class ShowPartitions:
    table: TableName


@dataclass(frozen=True, slots=True)
class Refresh:
    """Nothing is kept of a table between statements."""

    table: TableName


@dataclass(frozen=True, slots=True)
class CommentOn:
    """None: no comment any more."""

    table: TableName
    comment: str | None


@dataclass(frozen=True, slots=True)
class RenameTo:
    table: TableName
    new: TableName


@dataclass(frozen=True, slots=True)
class ConvertTo:
    """`source` is ``parquet.`/path` `` or a name; `partition_by` columns with types, as text."""

    format: str
    source: TableName
    partition_by: str | None


@dataclass(frozen=True, slots=True)
class InCatalog:
    """SHOW TABLES, SHOW, CREATE or DROP NAMESPACE of `parts`, the first of which may be a catalog."""

    action: Literal["tables", "namespaces", "create", "create-if-absent", "drop", "drop-if-exists"]
    parts: tuple[str, ...]
    pattern: str | None = None


Told = ShowCreate | ShowPartitions | Refresh | CommentOn | RenameTo


def partitions(p: Parser, table: TableName) -> ShowPartitions:
    if p.sees("PARTITION"):
        raise p.refuse("SHOW PARTITIONS ... PARTITION", "filter t.files() by the column partition")
    return ShowPartitions(table)


def comment(p: Parser, table: TableName) -> CommentOn:
    p.need("IS")
    return CommentOn(table, None if p.take("NULL") else p.text("a comment"))


def refused(words: str) -> Callable[[Parser, TableName], Told]:
    """The reader of a statement that is not run."""

    def read(p: Parser, table: TableName) -> Told:
        p.go(0)
        raise p.refuse(f"{words} on a table of this library", REFUSED[words])

    return read


def convert_to(p: Parser) -> ConvertTo | None:
    """The whole statement; None for another one."""
    if not p.take("CONVERT", "TO"):
        return None
    format = p.identifier("a format").lower()
    source = p.table()
    p.take("NO", "STATISTICS")
    by = None
    if p.take("PARTITIONED", "BY"):
        p.need("(")
        first = p.mark()
        p.until("columns with their types")
        by = joined(p.since(first))
        p.need(")")
    if not p.ended():
        raise p.expected("NO STATISTICS, PARTITIONED BY or the end")
    return ConvertTo(format, source, by)


def in_catalog(p: Parser, tokens: Sequence[Token]) -> InCatalog | None:
    """The whole statement; None for another one, and for one that Spark alone can read."""
    kinds = ("NAMESPACE", "DATABASE", "SCHEMA")
    if p.take("SHOW", "TABLES"):
        return _shown(p, "tables")
    if any(p.take("SHOW", f"{kind}S") for kind in kinds):
        return _shown(p, "namespaces")
    if any(p.take("CREATE", kind) for kind in kinds):
        known = p.take("IF", "NOT", "EXISTS")
        parts = p.table().parts if p.named() else ()
        return InCatalog("create-if-absent" if known else "create", parts) if p.ended() else None
    if any(p.take("DROP", kind) for kind in kinds):
        gone = p.take("IF", "EXISTS")
        parts = p.table().parts if p.named() else ()
        p.take("RESTRICT")
        return InCatalog("drop-if-exists" if gone else "drop", parts) if p.ended() else None
    return None


def _shown(p: Parser, action: Literal["tables", "namespaces"]) -> InCatalog | None:
    parts: tuple[str, ...] = ()
    if (p.take("IN") or p.take("FROM")) and p.named():
        parts = p.table().parts
    pattern = None
    if p.take("LIKE") or not p.ended():
        pattern = p.text("a pattern")
    return InCatalog(action, parts, pattern) if p.ended() else None

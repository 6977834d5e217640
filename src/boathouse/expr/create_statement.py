"""CREATE TABLE, REPLACE TABLE and DROP TABLE, parsed, in the grammar of Spark and of delta-spark. What the table is
made of is text; nothing here knows which formats have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from boathouse.expr.alter_columns import column_path, column_type, listed_by, table_properties
from boathouse.expr.sql_tokens import Token, joined
from boathouse.expr.statement_tree import TableName, TimeTravel, Tokens

if TYPE_CHECKING:
    from boathouse.expr.statements import Parser

Mode = Literal["create", "create-if-absent", "replace", "create-or-replace"]
_CLAUSES: Final = ("USING", "PARTITIONED", "CLUSTER", "CLUSTERED", "LOCATION", "COMMENT", "TBLPROPERTIES", "OPTIONS",
                   "AS", "SELECT", "WITH")  # fmt: skip
_AFTER_VALUE: Final = (",", "COMMENT", "DEFAULT", "NOT NULL", "GENERATED")


@dataclass(frozen=True, slots=True)
class IdentityColumn:
    """`start`, `start + step`, ...; `by_default`: rows may bring values of their own."""

    start: int = 1
    step: int = 1
    by_default: bool = False


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """`default` and `generated` are SQL text."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None
    default: str | None = None
    generated: str | None = None
    identity: IdentityColumn | None = None


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that is to be made: of columns, of the rows of `query`, `like` another table, or as a `clone` of one.
    `using` None: not said. `partition_by` are columns and transforms, `cluster_by` columns, as text."""

    table: TableName
    mode: Mode
    using: str | None = None
    columns: tuple[DeclaredColumn, ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    location: str | None = None
    comment: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    query: Tokens | None = None
    like: TableName | None = None
    clone: TableName | None = None
    at: TimeTravel | None = None


@dataclass(frozen=True, slots=True)
class DropTable:
    table: TableName
    if_exists: bool
    purge: bool


@dataclass(frozen=True, slots=True)
class Head:
    """What a statement says before its clauses are read: enough to tell whose it is. `source` is the table that
    follows LIKE or CLONE, `location` the path."""

    table: TableName
    mode: Mode
    end: int
    using: str | None
    source: TableName | None
    location: str | None


def head(p: Parser, tokens: Sequence[Token]) -> Head | None:
    """None for any other statement, and for a CREATE TABLE that nobody can read."""
    mode = _mode(p)
    if mode is None or p.ended() or not p.named():
        return None
    if p.take("IF", "NOT", "EXISTS"):
        if mode != "create":
            raise p.refuse(f"{mode.upper().replace('-', ' ')} IF NOT EXISTS", "leave one of the two out")
        mode = "create-if-absent"
    table, end = p.table(), p.mark()
    using = source = location = None
    depth = 0
    while not p.ended() and not (depth == 0 and p.sees("AS")):
        depth += p.sees("(") - p.sees(")")
        if depth == 0 and using is None and p.take("USING"):
            using = p.text("a format").lower()
        elif depth == 0 and source is None and (p.take("LIKE") or p.take("CLONE")):
            source = p.table()
        elif depth == 0 and location is None and p.take("LOCATION"):
            location = p.text("a path")
        else:
            p.skip()
    return Head(table, mode, end, using, source, location)


def _mode(p: Parser) -> Mode | None:
    if p.take("CREATE", "OR", "REPLACE", "TABLE"):
        return "create-or-replace"
    if p.take("CREATE", "TABLE"):
        return "create"
    return "replace" if p.take("REPLACE", "TABLE") else None


def new_table(p: Parser, head: Head) -> NewTable:
    """The whole statement, from behind the table's name. Raises ExpressionError that names the place."""
    p.go(head.end)
    found = NewTable(head.table, head.mode)
    if p.take("LIKE"):
        found = replace(found, like=p.table())
    elif p.sees("SHALLOW", "CLONE") or p.sees("CLONE") or p.sees("DEEP", "CLONE"):
        found = _cloned(p, found)
    elif p.sees("("):
        found = replace(found, columns=listed_by(p, _column))
    while not p.ended():
        found = _clause(p, found)
    return found


def _cloned(p: Parser, table: NewTable) -> NewTable:
    if not p.take("SHALLOW", "CLONE"):
        advice = (
            "write SHALLOW CLONE, or copy the rows: bh.write(bh.open(a), b), or CREATE TABLE ... AS SELECT * FROM ..."
        )
        raise p.refuse("a deep clone", advice)
    source = p.table()
    return replace(table, clone=source, at=p.at() if p.sees("VERSION") or p.sees("TIMESTAMP") else None)


def _clause(p: Parser, table: NewTable) -> NewTable:
    if p.take("USING"):
        return replace(table, using=p.text("a format").lower())
    if p.take("PARTITIONED", "BY"):
        return _partitioned(p, table)
    if p.sees("CLUSTERED", "BY"):
        raise p.refuse("CLUSTERED BY ... INTO n BUCKETS", "write PARTITIONED BY (bucket(n, column)), for Iceberg")
    if p.take("CLUSTER", "BY"):
        return replace(table, cluster_by=clustering_columns(p))
    if p.take("LOCATION"):
        return replace(table, location=p.text("a path"))
    if p.take("COMMENT"):
        return replace(table, comment=p.text("a comment"))
    if p.take("TBLPROPERTIES"):
        return replace(table, properties=tuple((k, v or "") for k, v in table_properties(p, values=True)))
    if p.sees("OPTIONS"):
        raise p.refuse("OPTIONS (...)", "write TBLPROPERTIES (...); the path goes after LOCATION")
    if p.take("AS") or p.sees("SELECT") or p.sees("WITH"):
        query = p.rest()
        if not query or table.columns or table.like is not None or table.clone is not None:
            raise p.expected("a query, in a statement without columns")
        return replace(table, query=query)
    raise p.expected("USING, PARTITIONED BY, CLUSTER BY, LOCATION, COMMENT, TBLPROPERTIES, AS or the end")


def clustering_columns(p: Parser) -> tuple[str, ...]:
    """`(a, s.b)`, or NONE."""
    if p.take("NONE"):
        return ()
    if p.sees("AUTO"):
        raise p.refuse("CLUSTER BY AUTO", "name the columns: CLUSTER BY (a, b)")
    if not p.sees("("):
        raise p.expected("( and the columns, or NONE")
    return listed_by(p, column_path)


def _partitioned(p: Parser, table: NewTable) -> NewTable:
    """Columns and transforms, or, as Hive has them, columns with their types, which follow the others."""
    if not p.sees("("):
        raise p.expected("(")
    more: list[DeclaredColumn] = []

    def part(p: Parser) -> str:
        first = p.mark()
        name = column_path(p)
        if p.sees("("):
            p.skip()
            p.until("a column")
            p.need(")")
            return joined(p.since(first))
        if not p.ended() and not p.sees(",") and not p.sees(")"):
            p.go(first)
            more.append(_column(p))
        return name

    by = listed_by(p, part)
    return replace(table, partition_by=by, columns=(*table.columns, *more))


def _column(p: Parser) -> DeclaredColumn:
    name = p.identifier("a column")
    if p.sees("KEY") and name.upper() in ("PRIMARY", "FOREIGN"):
        raise p.refuse(f"{name.upper()} KEY", "leave it out: no format keeps keys")
    p.take(":")
    found = DeclaredColumn(name, column_type(p))
    while not p.ended() and not p.sees(",") and not p.sees(")"):
        if p.take("NOT", "NULL"):
            found = replace(found, nullable=False)
        elif p.take("COMMENT"):
            found = replace(found, comment=p.text("a comment"))
        elif p.take("DEFAULT"):
            found = replace(found, default=joined(p.until("a value", *_AFTER_VALUE)))
        elif p.take("GENERATED"):
            found = _generated(p, found)
        elif any(p.sees(w) for w in ("CHECK", "PRIMARY", "UNIQUE", "CONSTRAINT", "REFERENCES")):
            advice = "add it afterwards: ALTER TABLE t ADD CONSTRAINT name CHECK (condition)"
            raise p.refuse("a constraint of a column", advice)
        else:
            raise p.expected("NOT NULL, DEFAULT, COMMENT, GENERATED or the next column")
    return found


def _generated(p: Parser, column: DeclaredColumn) -> DeclaredColumn:
    by_default = p.take("BY", "DEFAULT")
    if not by_default:
        p.need("ALWAYS")
    p.need("AS")
    if not p.take("IDENTITY"):
        if by_default:
            raise p.expected("IDENTITY")
        p.need("(")
        sql = joined(p.until("an expression"))
        p.need(")")
        return replace(column, generated=sql)
    found = IdentityColumn(by_default=by_default)
    if p.take("("):
        while not p.take(")"):
            if p.take("START", "WITH"):
                found = replace(found, start=_whole(p))
            elif p.take("INCREMENT", "BY"):
                found = replace(found, step=_whole(p))
            else:
                raise p.expected("START WITH, INCREMENT BY or )")
            p.take(",")
    return replace(column, identity=found)


def _whole(p: Parser) -> int:
    return -p.whole("a number") if p.take("-") else p.whole("a number")


def drop_table(p: Parser) -> DropTable | None:
    """The whole statement; None for another one."""
    if not p.take("DROP", "TABLE"):
        return None
    gone = p.take("IF", "EXISTS")
    table = p.table()
    purge = p.take("PURGE")
    if not p.ended():
        raise p.expected("PURGE or the end")
    return DropTable(table, gone, purge)

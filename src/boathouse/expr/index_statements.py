"""Statements on the indices of a table, parsed: CREATE INDEX and DROP INDEX, also below ALTER TABLE as lance-spark has
them, and SHOW INDEXES."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from boathouse.expr.statement_tree import TableName

if TYPE_CHECKING:
    from boathouse.expr.statements import Parser


@dataclass(frozen=True, slots=True)
class IndexStatement:
    """`name` is empty where all are shown; `kind` as `t.create_index` has it."""

    action: Literal["create", "create-if-absent", "drop", "drop-if-exists", "show"]
    table: TableName
    name: str = ""
    columns: tuple[str, ...] = ()
    kind: str = "btree"


def index_statement(p: Parser) -> IndexStatement | None:
    """The whole statement; None for another one. Raises ExpressionError that names the place."""
    if any(p.take("SHOW", word) for word in ("INDEXES", "INDICES", "INDEX")):
        return _shown(p)
    if p.take("CREATE", "INDEX"):
        return _created(p, None)
    if p.take("DROP", "INDEX"):
        return _dropped(p, None)
    if not p.take("ALTER", "TABLE") or not p.named():
        return None
    table = p.table()
    if p.take("CREATE", "INDEX"):
        return _created(p, table)
    return _dropped(p, table) if p.take("DROP", "INDEX") else None


def _shown(p: Parser) -> IndexStatement:
    for word in ("ON", "IN", "FROM"):
        p.take(word)
    p.take("TABLE")
    return _whole(p, IndexStatement("show", p.table()))


def _created(p: Parser, table: TableName | None) -> IndexStatement:
    action: Literal["create", "create-if-absent"] = "create-if-absent" if p.take("IF", "NOT", "EXISTS") else "create"
    name = p.identifier("the name of an index")
    table = table or _of(p)
    kind = _kind(p)
    p.need("(")
    columns = [p.text("a column")]
    while p.take(","):
        columns.append(p.text("a column"))
    p.need(")")
    return _whole(p, IndexStatement(action, table, name, tuple(columns), kind or _kind(p) or "btree"))


def _kind(p: Parser) -> str | None:
    return p.identifier("btree, bitmap or zonemap").lower() if p.take("USING") else None


def _dropped(p: Parser, table: TableName | None) -> IndexStatement:
    action: Literal["drop", "drop-if-exists"] = "drop-if-exists" if p.take("IF", "EXISTS") else "drop"
    name = p.identifier("the name of an index")
    return _whole(p, IndexStatement(action, table or _of(p), name))


def _of(p: Parser) -> TableName:
    p.need("ON")
    p.take("TABLE")
    return p.table()


def _whole(p: Parser, found: IndexStatement) -> IndexStatement:
    if not p.ended():
        raise p.expected("the end")
    return found

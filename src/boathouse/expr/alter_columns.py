"""ALTER TABLE of columns, properties and constraints, parsed, in the grammar of Spark and of delta-spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from boathouse.bits.names import steps
from boathouse.expr.sql_tokens import joined
from boathouse.expr.statement_tree import TableName

if TYPE_CHECKING:
    from boathouse.expr.statements import Parser

T = TypeVar("T")
_ACTIONS: Final = ("TYPE", "COMMENT", "FIRST", "AFTER", "SET", "DROP", "SYNC")
_CLOSING: Final = {")": 1, "]": 1, ">": 1, ">>": 2, ">>>": 3}


@dataclass(frozen=True, slots=True)
class NewColumn:
    """`default` is SQL text; `after` the sibling that it follows, an empty name if it comes first."""

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class AddedColumns:
    table: TableName
    columns: tuple[NewColumn, ...]


@dataclass(frozen=True, slots=True)
class RenamedColumn:
    """`name` is a path as text, `new` a plain name."""

    table: TableName
    name: str
    new: str


@dataclass(frozen=True, slots=True)
class DroppedColumns:
    table: TableName
    names: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class AlteredColumn:
    """`action` is type, comment, after, nullable or default, and `value` what it becomes; a default of None goes."""

    table: TableName
    name: str
    action: str
    value: str | bool | None


@dataclass(frozen=True, slots=True)
class AlteredProperties:
    """Values of None go; unless `if_exists`, they must be there."""

    table: TableName
    properties: tuple[tuple[str, str | None], ...]
    if_exists: bool = True


@dataclass(frozen=True, slots=True)
class AlteredConstraint:
    """`condition` None: the constraint goes."""

    table: TableName
    name: str
    condition: str | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangedColumn:
    """`CHANGE COLUMN a a int COMMENT 'c' AFTER b`: what the column is; what is None stays."""

    table: TableName
    name: str
    type: str
    comment: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class DroppedFeature:
    """A feature of the protocol; `truncate`: with the history that needs it."""

    table: TableName
    name: str
    truncate: bool


AlterColumns = (
    AddedColumns | RenamedColumn | DroppedColumns | AlteredColumn | ChangedColumn | AlteredProperties
    | AlteredConstraint | DroppedFeature
)  # fmt: skip


def alter_columns(p: Parser, table: TableName) -> AlterColumns | None:
    """What follows `ALTER TABLE t`; None for anything else. Raises ExpressionError that names the place."""
    if p.take("ADD", "COLUMN") or p.take("ADD", "COLUMNS"):
        return AddedColumns(table, listed_by(p, _new_column))
    if p.take("RENAME", "COLUMN"):
        name = joined(p.until("a column", "TO"))
        p.need("TO")
        return RenamedColumn(table, name, p.identifier("a name"))
    if p.take("DROP", "COLUMN") or p.take("DROP", "COLUMNS"):
        gone = p.take("IF", "EXISTS")
        return DroppedColumns(table, listed_by(p, column_path), gone)
    if p.sees("ALTER") or p.sees("CHANGE"):
        hive = p.take("CHANGE") or not p.take("ALTER")
        p.take("COLUMN")
        return _altered(p, table, hive)
    if p.sees("REPLACE", "COLUMNS"):
        advice = "add, drop, rename and move columns, or make the table anew: CREATE OR REPLACE TABLE"
        raise p.refuse("REPLACE COLUMNS on a table of this library", advice)
    if p.take("DROP", "FEATURE"):
        return DroppedFeature(table, p.text("a feature"), p.take("TRUNCATE", "HISTORY"))
    if p.take("SET", "TBLPROPERTIES"):
        return AlteredProperties(table, table_properties(p, values=True))
    if p.take("UNSET", "TBLPROPERTIES"):
        gone = p.take("IF", "EXISTS")
        return AlteredProperties(table, table_properties(p, values=False), gone)
    if p.take("ADD", "CONSTRAINT"):
        name = p.identifier("a name")
        p.need("CHECK")
        p.need("(")
        condition = joined(p.until("a condition"))
        p.need(")")
        return AlteredConstraint(table, name, condition)
    if p.take("DROP", "CONSTRAINT"):
        gone = p.take("IF", "EXISTS")
        return AlteredConstraint(table, p.identifier("a name"), None, gone)
    return None


def listed_by(p: Parser, read: Callable[[Parser], T]) -> tuple[T, ...]:
    """`a, b`, with parentheses around all of it or without."""
    inside = p.take("(")
    found = [read(p)]
    while p.take(","):
        found.append(read(p))
    if inside:
        p.need(")")
    return tuple(found)


def _new_column(p: Parser) -> NewColumn:
    name = column_path(p)
    type = column_type(p)
    nullable, default, comment, after = True, None, None, None
    while not p.ended() and not p.sees(",") and not p.sees(")"):
        if p.take("NOT", "NULL"):
            nullable = False
        elif p.take("DEFAULT"):
            default = joined(p.until("a value", ",", "COMMENT", "FIRST", "AFTER", "NOT NULL"))
        elif p.take("COMMENT"):
            comment = p.text("a comment")
        elif p.take("FIRST"):
            after = ""
        elif p.take("AFTER"):
            after = p.identifier("a column")
        else:
            raise p.expected("NOT NULL, DEFAULT, COMMENT, FIRST, AFTER or the next column")
    return NewColumn(name, type, nullable, default, comment, after)


def _altered(p: Parser, table: TableName, hive: bool) -> AlteredColumn | ChangedColumn:
    name = column_path(p)
    if hive and p.named() and not any(p.sees(word) for word in _ACTIONS):
        return _changed(p, table, name)
    if p.sees("SYNC", "IDENTITY"):
        advice = "give rows no values of their own there, or only ones that the column does not come to"
        raise p.refuse("SYNC IDENTITY", advice)
    if p.take("TYPE"):
        return AlteredColumn(table, name, "type", column_type(p))
    if p.take("COMMENT"):
        return AlteredColumn(table, name, "comment", p.text("a comment"))
    if p.take("FIRST"):
        return AlteredColumn(table, name, "after", "")
    if p.take("AFTER"):
        return AlteredColumn(table, name, "after", p.identifier("a column"))
    for words, nullable in (("SET", False), ("DROP", True)):
        if p.take(words, "NOT", "NULL"):
            return AlteredColumn(table, name, "nullable", nullable)
    if p.take("DROP", "DEFAULT"):
        return AlteredColumn(table, name, "default", None)
    if p.take("SET", "DEFAULT"):
        return AlteredColumn(table, name, "default", joined(p.until("a value")))
    raise p.expected("TYPE, COMMENT, FIRST, AFTER, SET or DROP NOT NULL, SET or DROP DEFAULT")


def _changed(p: Parser, table: TableName, name: str) -> ChangedColumn:
    """The form of Hive, which says the name and the type again."""
    if p.identifier("a column").lower() != steps(name)[-1].lower():
        p.back()
        raise p.refuse("CHANGE COLUMN with another name", f"write RENAME COLUMN {name} TO ...")
    type, comment, after = column_type(p), None, None
    if p.take("COMMENT"):
        comment = p.text("a comment")
    if p.take("FIRST"):
        after = ""
    elif p.take("AFTER"):
        after = p.identifier("a column")
    return ChangedColumn(table, name, type, comment, after)


def column_path(p: Parser) -> str:
    """A column, or a field of one, as it is written."""
    first = p.mark()
    p.identifier("a column")
    while p.take("."):
        p.identifier("a field")
    return joined(p.since(first))


def column_type(p: Parser) -> str:
    """A type: commas in angle brackets and parentheses are part of it."""
    first, depth = p.mark(), 0
    p.identifier("a type")
    while not p.ended():
        if p.sees("<") or p.sees("("):
            depth += 1
        elif (closed := next((n for s, n in _CLOSING.items() if p.sees(s)), 0)) > 0:
            if depth == 0:
                break
            depth -= closed
        elif depth <= 0:
            break
        p.skip()
    return joined(p.since(first))


def table_properties(p: Parser, values: bool) -> tuple[tuple[str, str | None], ...]:
    """`('a' = 'b', c.d = 1)`, or keys alone."""
    p.need("(")
    found: list[tuple[str, str | None]] = []
    while True:
        key = p.text("a property")
        if values:
            p.need("=")
        found.append((key, p.text("a value") if values else None))
        if not p.take(","):
            p.need(")")
            return tuple(found)

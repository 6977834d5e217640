"""Values that operations compute: trees with parts in which the engine reads text, and casts to the types of columns.

Text that a user gave stays text until the engine that evaluates it reads it: Spark knows more than this library does.
A value of a column is cast by its type, which need not have a name in Spark's SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boathouse.expr.parse import parse
from boathouse.expr.tree import Case, Column, Expr, Function, Literal, Path, columns, rebuild
from boathouse.types import NULL, STRING, DataType, Field, StructType
from boathouse.types.blobs import DATA

Sql = str
Value = Sql | Expr
"""Spark SQL text, or a tree that may have Unread and Stored parts."""


@dataclass(frozen=True, slots=True)
class Unread(Expr):
    """Spark SQL text that the engine reads."""

    sql: str

    def __str__(self) -> str:
        return f"({self.sql}\n)"  # the text may end in a comment


@dataclass(frozen=True, slots=True)
class Stored(Expr):
    """A value as it is stored in a column, whose name is for messages: itself if it has the column's type, else cast.

    Elements of lists and fields of structs are cast one by one, fields by their names. Fields that structs of the value
    lack are null, but for those of the paths `needs`, within the column: their structs must have them.
    """

    arg: Expr
    to: DataType
    column: str
    needs: tuple[Path, ...] = ()

    def __str__(self) -> str:
        return str(self.arg)

    def children(self) -> tuple[Expr, ...]:
        return (self.arg,)


def read(value: Value) -> Expr:
    """The value with its texts parsed. Raises ExpressionError."""
    if isinstance(value, Unread):
        return parse(value.sql)
    return parse(value) if isinstance(value, str) else value if isinstance(value, Column) else rebuild(value, read)


def texts(value: Expr) -> list[str]:
    """The texts in a value that an engine has to read."""
    return [value.sql] if isinstance(value, Unread) else [t for c in value.children() for t in texts(c)]


def stages(let: Sequence[tuple[str, Value]]) -> list[list[tuple[str, Value]]]:
    """Named values that may name those before them, in runs of which none does; the text in a tree names none."""
    found: list[list[tuple[str, Value]]] = []
    for name, value in let:
        named = {path[0] for path in columns(value)} if isinstance(value, Expr) else None
        if not found or named is None or any(known in named for known, _ in found[-1]):
            found.append([])
        found[-1].append((name, value))
    return found


def nothing(type: DataType = NULL) -> Expr:
    """NULL."""
    return Literal(None, type=type)


def as_blob(value: Expr, to: DataType, absent: Callable[[Field], Expr]) -> Function:
    """Bytes as a blob in the rows of a write, with `absent` in place of what the table stores of one."""
    assert isinstance(to, StructType)
    pairs = ((f.name, value if f.name == DATA else absent(f)) for f in to.fields)
    return Function("named_struct", tuple(e for n, v in pairs for e in (Literal(n, type=STRING), v)))


def is_blob(value: Expr) -> bool:
    """Whether it was made by `as_blob`."""
    return isinstance(value, Function) and any(isinstance(arg, Literal) and arg.value == DATA for arg in value.args)


def chosen(applies: Sequence[Column], values: Sequence[Expr | None]) -> Expr:
    """The value whose column of `applies` is true; None is a value that nobody reads.

    One of the columns is true, and only its value is computed.
    """
    distinct: list[tuple[Expr, list[int]]] = []
    for i, value in enumerate(values):
        if value is None:
            continue
        same = next((places for known, places in distinct if known == value), None)
        if same is None:
            distinct.append((value, [i]))
        else:
            same.append(i)
    if not distinct:
        return nothing()
    if len(distinct[0][1]) == len(values):
        return distinct[0][0]
    return Case(tuple((applies[place], value) for value, places in distinct for place in places))


def rewritten(value: Expr, stored: Callable[[Stored], Expr]) -> Expr:
    """The value with `stored` in place of its Stored parts, whose own values are already rewritten."""
    if isinstance(value, Column | Literal | Unread):
        return value
    out = rebuild(value, lambda child: rewritten(child, stored))
    return stored(out) if isinstance(out, Stored) else out

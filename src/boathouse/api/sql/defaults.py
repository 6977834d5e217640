"""DEFAULT as a value in INSERT, UPDATE and MERGE: the default of its column, or null."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from boathouse.api.table import Table
from boathouse.bits.names import steps
from boathouse.errors import SchemaMismatchError
from boathouse.expr.sql_tokens import Token, is_symbol
from boathouse.expr.statement_tree import Tokens


def is_default(value: Sequence[Token]) -> bool:
    """Whether a value is the word alone."""
    return len(value) == 1 and value[0].is_word("DEFAULT")


def value_of(table: Table, column: str, value: Tokens, text: Callable[[Tokens], str]) -> str:
    """The SQL text of a value that is assigned to a column, of DEFAULT that of its default. A field of a struct has
    none."""
    if not is_default(value):
        return text(value)
    path = steps(column)
    return _defaults(table).get(path[0].lower(), "NULL") if len(path) == 1 else "NULL"


def _defaults(table: Table) -> Mapping[str, str]:
    context = table._handle.snapshot.write_context("")
    return {c.name.lower(): c.sql for c in context.computed if not c.generated}


def with_defaults(query: Tokens, table: Table, columns: Sequence[str]) -> Tokens:
    """The query of an INSERT, in whose VALUES each DEFAULT is that of its column. Raises SchemaMismatchError for one
    that has no column."""
    if not query or not query[0].is_word("VALUES") or not any(t.is_word("DEFAULT") for t in query):
        return query
    defaults, out = _defaults(table), list(query)
    for at, place in _places(query):
        if place >= len(columns):
            raise SchemaMismatchError(
                f"a row of VALUES has more than the {len(columns)} values that are inserted ({', '.join(columns)})"
            )
        token = query[at]
        out[at] = Token("word", f"({defaults.get(columns[place].lower(), 'NULL')})", token.start, token.end)
    return tuple(out)


def _places(query: Tokens) -> Iterator[tuple[int, int]]:
    """Where DEFAULT is a whole value: the place of the token, and of the value in its row."""
    depth = place = 0
    for at, token in enumerate(query):
        if token.text in ("(", "[") and token.kind == "symbol":
            depth += 1
            place = 0 if depth == 1 else place
        elif token.text in (")", "]") and token.kind == "symbol":
            depth -= 1
        elif is_symbol(query, at, ",") and depth == 1:
            place += 1
        begins = is_symbol(query, at - 1, "(") or is_symbol(query, at - 1, ",")
        ends = is_symbol(query, at + 1, ")") or is_symbol(query, at + 1, ",")
        if token.is_word("DEFAULT") and depth == 1 and begins and ends:
            yield at, place

"""`table_changes('t', start [, end])` and `table_changes_by_path` in a query: where they are, and their arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from boathouse.errors import ExpressionError
from boathouse.expr.parse import parse
from boathouse.expr.sql_tokens import Token, is_symbol, place
from boathouse.expr.statement_tree import Tokens

_NAMES: Final = {"table_changes": False, "table_changes_by_path": True}
_ADVICE: Final = "write it as table_changes('db.t', 3), or with the last version, table_changes('db.t', 3, 5)"


@dataclass(frozen=True, slots=True)
class ChangesCall:
    """`first` to `end` are the tokens of the call; `table` is a name, or a path if `by_path`. The arguments are
    versions or times, as tokens; `last` None: to the newest version."""

    first: int
    end: int
    table: str
    by_path: bool
    start: Tokens
    last: Tokens | None


def changes_calls(sql: str, tokens: Sequence[Token]) -> Iterator[ChangesCall]:
    """The calls in a query. Raises ExpressionError that names the place."""
    at = 0
    while at < len(tokens):
        token = tokens[at]
        name = token.text.lower() if token.kind == "word" else ""
        if name in _NAMES and is_symbol(tokens, at + 1, "(") and not is_symbol(tokens, at - 1, "."):
            found = _call(sql, tokens, at, _NAMES[name])
            yield found
            at = found.end
        else:
            at += 1


def _call(sql: str, tokens: Sequence[Token], first: int, by_path: bool) -> ChangesCall:
    arguments: list[list[Token]] = [[]]
    depth, at = 1, first + 2
    while at < len(tokens):
        token = tokens[at]
        if token.kind == "symbol":
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            break
        if depth == 1 and is_symbol(tokens, at, ","):
            arguments.append([])
        else:
            arguments[-1].append(token)
        at += 1
    where = place(sql, tokens[first].start)
    name, *versions = (tuple(a) for a in arguments)
    if depth or not 1 <= len(versions) <= 2 or not all(versions):
        raise ExpressionError(f"{where}: {tokens[first].text} takes a table, and one or two versions", advice=_ADVICE)
    if len(name) != 1 or name[0].kind != "string":
        raise ExpressionError(f"{where}: the table of {tokens[first].text} is named by a text", advice=_ADVICE)
    text = str(getattr(parse(name[0].text), "value", ""))
    return ChangesCall(first, at + 1, text, by_path, versions[0], versions[1] if len(versions) > 1 else None)

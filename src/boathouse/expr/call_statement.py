"""CALL, parsed: the name of a procedure and its arguments, whose values are passed on as tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from boathouse.errors import ExpressionError
from boathouse.expr.sql_tokens import Token, is_symbol, place
from boathouse.expr.statement_tree import Tokens


@dataclass(frozen=True, slots=True)
class Argument:
    """`name` None: by its position."""

    name: str | None
    value: Tokens


@dataclass(frozen=True, slots=True)
class Call:
    """`parts` are those of the procedure's name, `("catalog", "system", "expire_snapshots")`."""

    parts: tuple[str, ...]
    arguments: tuple[Argument, ...]


def parse_call(sql: str, tokens: Sequence[Token]) -> Call | None:
    """The call; None for another statement. Raises ExpressionError that names the place."""
    if not tokens or not tokens[0].is_word("CALL"):
        return None
    parts, at = [_name(sql, tokens, 1)], 2
    while is_symbol(tokens, at, "."):
        parts.append(_name(sql, tokens, at + 1))
        at += 2
    if not is_symbol(tokens, at, "("):
        raise _expected(sql, tokens, at, "( and the arguments")
    if not is_symbol(tokens, len(tokens) - 1, ")"):
        raise _expected(sql, tokens, len(tokens), ") at the end")
    return Call(tuple(parts), tuple(_arguments(sql, tokens, at + 1)))


def _arguments(sql: str, tokens: Sequence[Token], at: int) -> Iterator[Argument]:
    named = False
    last = len(tokens) - 1
    while at < last:
        name = None
        if is_symbol(tokens, at + 1, "=>") and tokens[at].name is not None:
            name, at, named = tokens[at].name, at + 2, True
        elif named:
            raise _expected(sql, tokens, at, "name => value: an argument by position cannot follow a named one")
        end = _end(tokens, at, last)
        if end == at:
            raise _expected(sql, tokens, at, "a value")
        yield Argument(name, tuple(tokens[at:end]))
        at = end + 1
        if end < last and at == last:
            raise _expected(sql, tokens, at, "a value")


def _end(tokens: Sequence[Token], at: int, last: int) -> int:
    """Where a value ends: at a comma outside of parentheses, or at the one that closes the arguments."""
    depth = 0
    while at < last and (depth or tokens[at].text != ","):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(tokens[at].text, 0) if tokens[at].kind == "symbol" else 0
        at += 1
    return at


def _name(sql: str, tokens: Sequence[Token], at: int) -> str:
    found = tokens[at].name if at < len(tokens) else None
    if found is None:
        raise _expected(sql, tokens, at, "the name of a procedure")
    return found


def _expected(sql: str, tokens: Sequence[Token], at: int, what: str) -> ExpressionError:
    found, start = (tokens[at].text, tokens[at].start) if at < len(tokens) else ("the end", len(sql))
    return ExpressionError(
        f"{place(sql, start)}: expected {what}, found {found}",
        advice="write it as CALL system.expire_snapshots(table => 'db.t', retain_last => 10)",
    )

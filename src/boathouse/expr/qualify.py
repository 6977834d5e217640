"""Names in Spark SQL text that get another qualifier, or one at all; the rest of the text stays as it is.

Works on tokens, so that it also serves expressions that only Spark understands. A query in the text is left alone: its
names may be its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from boathouse.expr.identifiers import quote
from boathouse.expr.sql_tokens import Token, is_symbol, joined, tokenize


def requalified(sql: str, qualifier: Sequence[str], to: str | None) -> str:
    """`db.t.id` as `x.id`, or `id` if `to` is None, wherever a name has exactly this qualifier."""
    wanted = [part.lower() for part in qualifier]
    tokens = tokenize(sql)
    inside = _queries(tokens)
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        size = 2 * len(wanted)
        if at not in inside and not is_symbol(tokens, at - 1, ".") and _names(tokens[at : at + size]) == wanted:
            first = tokens[at]
            if to is not None:
                out += [Token("quoted", quote(to), first.start, first.end), Token("symbol", ".", first.end, first.end)]
            # The name follows where its qualifier began.
            if at + size < len(tokens):
                follow = tokens[at + size]
                begin = first.end if to is not None else first.start
                out.append(Token(follow.kind, follow.text, begin, follow.end))
            at += size + 1
            continue
        out.append(tokens[at])
        at += 1
    return joined(out)


def _names(tokens: Sequence[Token]) -> list[str] | None:
    """The names of `a.b.`, None for anything else."""
    if any(not is_symbol(tokens, i, ".") for i in range(1, len(tokens), 2)):
        return None
    return [(t.name or "").lower() for t in tokens[::2]]


def qualified(sql: str, side: str, columns: Collection[str], known: Collection[str]) -> str:
    """The text with `side.` before every unqualified name of `columns` (lower case), unless it is one of `known`,
    the names of sides."""
    tokens = tokenize(sql)
    inside = _queries(tokens)
    bound = _lambda_variables(tokens)
    out: list[Token] = []
    for at, token in enumerate(tokens):
        name = None if token.name is None or at in inside else token.name.lower()
        if name is None or name not in columns or name in bound or name in known or not _is_column(tokens, at):
            out.append(token)
        else:
            out.append(Token(token.kind, f"{quote(side)}.{token.text}", token.start, token.end))
    return joined(out)


def _queries(tokens: Sequence[Token]) -> set[int]:
    """The places of tokens inside of queries in parentheses."""
    found: set[int] = set()
    opened: list[bool] = []
    for at in range(len(tokens)):
        if any(opened):
            found.add(at)
        if is_symbol(tokens, at, "("):
            starts = at + 1 < len(tokens) and tokens[at + 1].is_word("SELECT", "WITH", "FROM", "VALUES", "TABLE")
            opened.append(starts)
        elif is_symbol(tokens, at, ")") and opened:
            opened.pop()
    return found


def _is_column(tokens: Sequence[Token], at: int) -> bool:
    """Whether an identifier can be a column: no function, field, type, unit of time or word before a literal."""
    before = tokens[at - 1] if at else None
    after = tokens[at + 1] if at + 1 < len(tokens) else None
    if is_symbol(tokens, at - 1, ".") or is_symbol(tokens, at + 1, "("):
        return False
    if tokens[at].kind == "quoted":
        return True
    if before is not None and (before.kind in ("number", "string") or before.is_word("AS")):
        return False
    return after is None or not (after.kind == "string" or after.is_word("FROM"))


def _lambda_variables(tokens: Sequence[Token]) -> set[str]:
    """The names before `->`: `x -> x + 1`, `(x, y) -> x + y`."""
    found: set[str] = set()
    for at in (i for i in range(len(tokens)) if is_symbol(tokens, i, "->")):
        back = at - 1
        if is_symbol(tokens, back, ")"):
            while back >= 0 and not is_symbol(tokens, back, "("):
                found.add((tokens[back].name or "").lower())
                back -= 1
        elif back >= 0:
            found.add((tokens[back].name or "").lower())
    return found

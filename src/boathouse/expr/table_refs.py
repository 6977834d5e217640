"""Where a query names tables: after FROM, JOIN and commas between them, in subqueries too. The rest is not parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from boathouse.errors import ExpressionError
from boathouse.expr.identifiers import quote
from boathouse.expr.sql_tokens import Token, is_symbol, joined, place
from boathouse.expr.statement_tree import TableName, TimeTravel

_ENDS_FROM: Final = frozenset(
    "WHERE GROUP HAVING ORDER LIMIT OFFSET WINDOW CLUSTER DISTRIBUTE SORT UNION EXCEPT MINUS INTERSECT".split()  # noqa: SIM905
)
_NO_ALIAS: Final = frozenset(
    """JOIN INNER LEFT RIGHT FULL CROSS NATURAL SEMI ANTI ON USING LATERAL PIVOT UNPIVOT TABLESAMPLE SELECT INSERT
    FOR THEN WHEN SET""".split()  # noqa: SIM905
).union(_ENDS_FROM)
_NO_TABLE: Final = ("LATERAL", "VALUES", "SELECT", "WITH", "TABLE", "FROM")
_BEFORE_QUERY: Final = frozenset(
    """IN EXISTS AS FROM JOIN UNION ALL DISTINCT EXCEPT MINUS INTERSECT ANY SOME ON WHERE AND OR NOT WHEN THEN ELSE
    SELECT LATERAL EXPLAIN USING""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A table in a query; `first` to `end` are its tokens, those of its version included.

    `named`: it has an alias, or none may be added behind it.
    """

    table: TableName
    at: TimeTravel | None
    first: int
    end: int
    named: bool


@dataclass(slots=True)
class _Level:
    """What is known of the query between two parentheses."""

    selects: bool = False
    in_from: bool = False


def references(sql: str, tokens: Sequence[Token], relation: bool = False) -> list[Reference]:
    """The tables that the query names, except its own common table expressions. `relation`: the tokens are what
    follows FROM. Raises ExpressionError for a version that is neither a number nor a text."""
    own = _common_tables(tokens)
    levels = [_Level(relation, relation)]
    found: list[Reference] = []
    at = 0
    due = relation
    while at < len(tokens):
        if due and (reference := _reference(sql, tokens, at)) is not None:
            parts = reference.table.parts
            if len(parts) > 1 or parts[0].lower() not in own:
                found.append(reference)
            at, due = reference.end, False
            continue
        due = _step(tokens, at, levels)
        at += 1
    return found


def _step(tokens: Sequence[Token], at: int, levels: list[_Level]) -> bool:
    """Takes account of one token; whether a table may follow it."""
    token, level = tokens[at], levels[-1]
    if token.kind == "symbol":
        if token.text == "(":
            # `FROM (a JOIN b)`: a table may follow there too.
            inside = level.in_from and _opens_relation(tokens, at)
            levels.append(_Level(inside, inside))
            return inside
        if token.text == ")" and len(levels) > 1:
            levels.pop()
        return token.text == "," and level.in_from
    if token.kind != "word" or is_symbol(tokens, at - 1, "."):
        return False
    word = token.text.upper()
    if word == "SELECT":
        level.selects, level.in_from = True, False
    elif word == "FROM" and _is_clause(tokens, at, level):
        level.in_from = True
        return True
    elif word == "TABLE" and (at == 0 or _starts_query(tokens, at)):
        return True
    elif word == "JOIN":
        return level.in_from
    elif word in _ENDS_FROM or (word == "LATERAL" and at + 1 < len(tokens) and tokens[at + 1].is_word("VIEW")):
        level.in_from = False
    return False


def _is_clause(tokens: Sequence[Token], at: int, level: _Level) -> bool:
    """Whether FROM begins a clause; `EXTRACT(DAY FROM d)` and `IS DISTINCT FROM` have other ones."""
    if at and tokens[at - 1].is_word("DISTINCT") and at > 1 and tokens[at - 2].is_word("IS", "NOT"):
        return False
    return level.selects or at == 0 or _starts_query(tokens, at)


def _starts_query(tokens: Sequence[Token], at: int) -> bool:
    """Whether a query starts at this token: after a word that has one behind it, or the parenthesis of a subquery."""
    before = tokens[at - 1]
    if before.text == "(":
        return at == 1 or tokens[at - 2].kind == "symbol" or tokens[at - 2].text.upper() in _BEFORE_QUERY
    return before.kind == "word" and before.text.upper() in ("UNION", "ALL", "EXCEPT", "MINUS", "INTERSECT", "EXPLAIN")


def _opens_relation(tokens: Sequence[Token], at: int) -> bool:
    """Whether a parenthesis follows FROM, JOIN, a comma or another parenthesis, as tables do."""
    return at == 0 or tokens[at - 1].is_word("FROM", "JOIN") or tokens[at - 1].text in (",", "(")


def _reference(sql: str, tokens: Sequence[Token], first: int) -> Reference | None:
    """The table at this token; None for anything else, as a query or a function."""
    if tokens[first].name is None or tokens[first].is_word(*_NO_TABLE):
        return None
    parts, at = [tokens[first].name or ""], first + 1
    while is_symbol(tokens, at, ".") and at + 1 < len(tokens) and (name := tokens[at + 1].name) is not None:
        parts.append(name)
        at += 2
    if is_symbol(tokens, at, "("):
        return None
    table = TableName(tuple(parts), tuple(tokens[first:at]))
    travel, at = _travel(sql, tokens, at)
    after = tokens[at] if at < len(tokens) else None
    alias = after is not None and after.name is not None and not after.is_word(*_NO_ALIAS)
    none_fits = (after is not None and after.is_word("TABLESAMPLE")) or (
        first > 0 and tokens[first - 1].is_word("TABLE")
    )
    return Reference(table, travel, first, at, alias or none_fits)


def _travel(sql: str, tokens: Sequence[Token], at: int) -> tuple[TimeTravel | None, int]:
    """VERSION AS OF n or a name, TIMESTAMP AS OF expression, also after FOR; and the end of it."""
    words = [t.text.upper() if t.kind == "word" else "" for t in tokens[at : at + 4]]
    if words[:1] == ["FOR"]:
        words, at = words[1:], at + 1
    if words[1:3] != ["AS", "OF"]:
        return None, at - (at > 0 and tokens[at - 1].is_word("FOR"))
    at += 3
    if at >= len(tokens):
        raise ExpressionError(f"{place(sql, len(sql))}: expected a version or a time, found the end")
    if words[0] in ("VERSION", "SYSTEM_VERSION"):
        text = tokens[at].text.strip("'\"")
        if not text.isdigit() and tokens[at].kind == "string":
            return TimeTravel(ref=text), at + 1
        if not text.isdigit():
            raise ExpressionError(f"{place(sql, tokens[at].start)}: expected a version, found {tokens[at].text}")
        return TimeTravel(version=int(text)), at + 1
    end = _term(tokens, at)
    while end < len(tokens) and tokens[end].text in ("+", "-"):
        end = _term(tokens, end + 1)
    return TimeTravel(timestamp=tuple(tokens[at:end])), end


def _term(tokens: Sequence[Token], at: int) -> int:
    """The end of a literal, `INTERVAL 1 DAY`, a call, or an expression in parentheses."""
    if at < len(tokens) and tokens[at].is_word("INTERVAL"):
        return min(at + 3, len(tokens))
    if at + 1 < len(tokens) and tokens[at].is_word("DATE", "TIMESTAMP") and tokens[at + 1].kind == "string":
        return at + 2
    if at < len(tokens) and tokens[at].text != "(":
        at += 1
    if not is_symbol(tokens, at, "("):
        return at
    depth = 0
    while at < len(tokens):
        depth += {"(": 1, ")": -1}.get(tokens[at].text, 0)
        at += 1
        if depth == 0:
            break
    return at


def _common_tables(tokens: Sequence[Token]) -> set[str]:
    """The names of common table expressions: `name AS (`, `name (a, b) AS (`."""
    found: set[str] = set()
    if not any(t.is_word("WITH") for t in tokens):
        return found
    for at, token in enumerate(tokens):
        if not token.is_word("AS") or not is_symbol(tokens, at + 1, "("):
            continue
        back = at - 1
        if is_symbol(tokens, back, ")"):
            while back > 0 and not is_symbol(tokens, back, "("):
                back -= 1
            back -= 1
        if back >= 0 and (name := tokens[back].name) is not None:
            found.add(name.lower())
    return found


def replaced(tokens: Sequence[Token], by: Callable[[Reference], str | None], found: Sequence[Reference]) -> str:
    """The text with these references replaced by views, None: left as they are.

    A table without an alias keeps its name as one, since columns may be qualified by it; a path is no such name.
    """
    out: list[Token] = []
    at = 0
    for reference in found:
        view = by(reference)
        if view is None:
            continue
        out += tokens[at : reference.first]
        name = reference.table.parts[-1]
        text = view if reference.named or "/" in name else f"{view} AS {quote(name)}"
        out.append(Token("word", text, tokens[reference.first].start, tokens[reference.end - 1].end))
        at = reference.end
    return joined([*out, *tokens[at:]])

"""What the WHERE of a query on one table says of it for certain: a column against literals of its own type.

Of such a part no setting of a session (ANSI mode, time zone, double quotes, escapes in strings) changes the meaning, so
that a scan may leave out what it excludes. Every other part is left to the query, which still has all of them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from boathouse.expr.identifiers import quote
from boathouse.expr.sql_tokens import Token, is_symbol, joined
from boathouse.expr.table_refs import Reference
from boathouse.types import BooleanType, DataType, DateType, IntegerType, Schema, StringType

_ENDS: Final = frozenset(
    """GROUP HAVING ORDER LIMIT OFFSET WINDOW CLUSTER DISTRIBUTE SORT UNION EXCEPT MINUS INTERSECT QUALIFY SELECT
    INSERT MAP REDUCE""".split()  # noqa: SIM905
)
_OPERATORS: Final = ("=", "==", "<=>", "<", "<=", ">", ">=", "<>", "!=")
_FUNCTIONS: Final = re.compile(r"current_\w+|session_user|user|localtime\w*|null|true|false|not", re.IGNORECASE)
"""Words that are no columns, or not in every mode."""
_INTEGER: Final = re.compile(r"[0-9]{1,18}")
_STRING: Final = re.compile(r"'[^'\\$\x00-\x1f]*'")
_DATE: Final = re.compile(r"'([0-9]{4}-[0-9]{2}-[0-9]{2})'")

_Literal = Callable[[Sequence[Token]], bool]


def certain_condition(tokens: Sequence[Token], reference: Reference, schema: Schema) -> str | None:
    """The parts of a query's WHERE that are certain, joined by AND, if the query reads the table `reference` alone.

    Rows for which it is not true are in no result of the query. Columns are named without the table.
    """
    found = _where(tokens, reference)
    if found is None:
        return None
    qualifier, condition = found
    kept = [text for part in _conjuncts(condition) if (text := _certain(part, qualifier, schema)) is not None]
    return " AND ".join(kept) or None


def _where(tokens: Sequence[Token], reference: Reference) -> tuple[str | None, Sequence[Token]] | None:
    """What qualifies columns of the table, and the tokens of the condition on it; None where it is joined, or has no
    condition."""
    if reference.first == 0 or not tokens[reference.first - 1].is_word("FROM"):
        return None
    at, last = reference.end, reference.table.parts[-1]
    qualifier = None if "/" in last else last
    if at < len(tokens) and tokens[at].is_word("AS"):
        at += 1
    if at < len(tokens) and not tokens[at].is_word("WHERE") and tokens[at].name is not None:
        qualifier, at = tokens[at].name, at + 1
    if at >= len(tokens) or not tokens[at].is_word("WHERE"):
        return None
    return qualifier, tokens[at + 1 : _end(tokens, at + 1)]


def _end(tokens: Sequence[Token], at: int) -> int:
    """Where the condition that begins here ends."""
    for i, depth in _depths(tokens, at):
        if depth < 0 or (depth == 0 and (tokens[i].is_word(*_ENDS) or tokens[i].text == ";")):
            return i
        if depth == 0 and is_symbol(tokens, i, "|") and is_symbol(tokens, i + 1, ">"):
            return i
    return len(tokens)


def _depths(tokens: Sequence[Token], at: int = 0) -> Iterator[tuple[int, int]]:
    """The place of each token, and in how many parentheses and brackets it is; those are in themselves."""
    depth = 0
    for i in range(at, len(tokens)):
        text = tokens[i].text if tokens[i].kind == "symbol" else ""
        depth += text in ("(", "[")
        yield i, depth - (1 if depth == 0 and text in (")", "]") else 0)
        depth -= text in (")", "]")


def _conjuncts(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The parts between the ANDs that are no other's; none where an OR or a CASE is beside them."""
    parts: list[Sequence[Token]] = []
    first, between = 0, False
    for i, depth in _depths(tokens):
        if depth > 0:
            continue
        if tokens[i].is_word("OR", "CASE", "WHERE"):
            return []
        if tokens[i].is_word("BETWEEN"):
            between = True
        elif tokens[i].is_word("AND"):
            if not between:
                parts.append(tokens[first:i])
                first = i + 1
            between = False
    return [*parts, tokens[first:]]


def _certain(part: Sequence[Token], qualifier: str | None, schema: Schema) -> str | None:
    """The part with its column named alone; None if it is no comparison of a column with literals of its type."""
    while len(part) > 2 and is_symbol(part, 0, "(") and _closes(part) == len(part) - 1:
        part = part[1:-1]
    if (found := _column(part, qualifier, schema)) is not None:
        column, type, at = found
        if _is_test(part[at:], _literal_of(type)):
            return f"{column} {joined(part[at:])}"
    for at in (1, 2):  # a literal first: 5 < id
        if at < len(part) and part[at].text in _OPERATORS and (found := _column(part[at + 1 :], qualifier, schema)):
            column, type, end = found
            if at + 1 + end == len(part) and _literal_of(type)(part[:at]):
                return f"{joined(part[: at + 1])} {column}"
    return None


def _closes(part: Sequence[Token]) -> int:
    """Where the parenthesis that is the first token closes."""
    depth = 0
    for i in range(len(part)):
        depth += is_symbol(part, i, "(") - is_symbol(part, i, ")")
        if depth == 0:
            return i
    return -1


def _column(part: Sequence[Token], qualifier: str | None, schema: Schema) -> tuple[str, DataType, int] | None:
    """The column that the tokens begin with, quoted, its type, and how many they are."""
    at = 0
    if is_symbol(part, 1, "."):
        named = part[0].name
        if named is None or qualifier is None or named.lower() != qualifier.lower() or schema.places.at(named):
            return None
        at = 2
    if at >= len(part) or (name := part[at].name) is None or (part[at].kind == "word" and _FUNCTIONS.fullmatch(name)):
        return None
    places = schema.places.exactly(name)  # another spelling may be another table's column, where case counts
    if len(places) != 1:
        return None
    field = schema.fields[places[0]]
    return quote(field.name), field.type, at + 1


def _literal_of(type: DataType) -> _Literal:
    """Whether tokens are one literal of this very type."""
    match type:
        case IntegerType(_, True):
            return _is_integer
        case StringType():
            return lambda part: len(part) == 1 and part[0].kind == "string" and _matches(_STRING, part[0])
        case DateType():
            return _is_date
        case BooleanType():
            return lambda part: len(part) == 1 and part[0].is_word("TRUE", "FALSE")
    return lambda part: False


def _matches(pattern: re.Pattern[str], token: Token) -> bool:
    return pattern.fullmatch(token.text) is not None


def _is_date(part: Sequence[Token]) -> bool:
    found = _DATE.fullmatch(part[1].text) if len(part) == 2 and part[0].is_word("DATE") else None
    if found is None:
        return False
    try:
        dt.date.fromisoformat(found[1])
    except ValueError:
        return False
    return True


def _is_integer(part: Sequence[Token]) -> bool:
    if len(part) == 2 and is_symbol(part, 0, "-"):
        part = part[1:]
    return len(part) == 1 and part[0].kind == "number" and _matches(_INTEGER, part[0])


def _is_test(part: Sequence[Token], literal: _Literal) -> bool:
    """Whether the tokens are what follows a column in a comparison, IN, BETWEEN, or IS NULL."""
    if not part:
        return False
    if part[0].kind == "symbol":
        return part[0].text in _OPERATORS and literal(part[1:])
    if part[0].is_word("IS"):
        return [t.text.upper() for t in part[1:]] in (["NULL"], ["NOT", "NULL"])
    if part[0].is_word("NOT"):
        return len(part) > 1 and part[1].is_word("BETWEEN", "IN") and _is_test(part[1:], literal)
    if part[0].is_word("BETWEEN"):
        middle = next((i for i, t in enumerate(part) if t.is_word("AND")), len(part))
        return literal(part[1:middle]) and literal(part[middle + 1 :])
    if not part[0].is_word("IN") or not is_symbol(part, 1, "(") or not is_symbol(part, len(part) - 1, ")"):
        return False
    return all(map(literal, _listed(part[2:-1])))


def _listed(part: Sequence[Token]) -> list[Sequence[Token]]:
    """The tokens between commas."""
    items: list[list[Token]] = [[]]
    for i, token in enumerate(part):
        if is_symbol(part, i, ","):
            items.append([])
        else:
            items[-1].append(token)
    return list(items)

"""Parameters of a statement, `:name` and `?`, replaced by the literals of Python values, as `spark.sql(text, args)` has
them. A value never becomes anything but a literal, whatever it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boathouse.errors import ExpressionError, InvalidArgumentError
from boathouse.expr.sql_tokens import Token, place, tokenize
from boathouse.expr.tree import lit


def bound(sql: str, args: Mapping[str, Any] | Sequence[Any], other: Callable[[Any], str | None]) -> str:
    """The text with the values in their places. `other` gives the text of a value that is no Python value, or None.

    Raises ExpressionError for a parameter without a value, and a value that no literal has; InvalidArgumentError for
    anything but a dict or a list, and for a list with more values than there are places.
    """
    named = isinstance(args, Mapping)
    if not named and (isinstance(args, str | bytes) or not isinstance(args, Sequence)):
        raise InvalidArgumentError(f"args={args!r}", advice="pass a dict for :name, or a list for ?")
    out, at, used = [], 0, 0
    for first, last, name in _places(sql, tokenize(sql), named):
        if isinstance(args, Mapping):
            if name not in args:
                raise ExpressionError(
                    f"{place(sql, first)}: the parameter :{name} has no value", advice=f"args has {', '.join(args)}"
                )
            value = args[name]
        else:
            if used == len(args):
                raise ExpressionError(f"{place(sql, first)}: args has {len(args)} values, and here is one ? more")
            value, used = args[used], used + 1
        out += [sql[at:first], _literal(value, other)]
        at = last
    if not named and used < len(args):
        raise InvalidArgumentError(f"args has {len(args)} values for {used} places ?", advice="leave the others out")
    return "".join((*out, sql[at:]))


def _places(sql: str, tokens: Sequence[Token], named: bool) -> list[tuple[int, int, str]]:
    """Where parameters are, and their names. The colon of `struct<a:int>` follows a name, that of a parameter none."""
    if not named:
        return [(t.start, t.end, "") for t in tokens if t.kind == "symbol" and t.text == "?"]
    found = []
    for i, t in enumerate(tokens[:-1]):
        after, before = tokens[i + 1], tokens[i - 1] if i else None
        joins = before is not None and before.end == t.start and before.kind in ("word", "quoted")
        if t.text == ":" and t.kind == "symbol" and after.kind == "word" and after.start == t.end and not joins:
            found.append((t.start, after.end, after.text))
    return found


def _literal(value: Any, other: Callable[[Any], str | None]) -> str:
    if isinstance(value, Mapping):
        return f"map({', '.join(_literal(v, other) for pair in value.items() for v in pair)})"
    if isinstance(value, list | tuple):
        return f"array({', '.join(_literal(v, other) for v in value)})"
    text = other(value)
    if text is None:
        # A number of a version has no suffix; without one Spark gives the same type.
        text = str(value) if isinstance(value, int) and not isinstance(value, bool) else str(lit(value))
    return f"({text})" if text.startswith("-") else text

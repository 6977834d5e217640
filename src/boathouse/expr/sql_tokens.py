"""Spark SQL text as tokens: words, quoted identifiers, strings, numbers, symbols; comments and spaces are left out.

The text itself is never printed again: what is passed on are its own characters between two tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from boathouse.errors import ExpressionError

Kind = Literal["word", "quoted", "string", "number", "symbol"]
_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|--(?:\\\n|[^\n])*|/\*)
    |(?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|''|[^'\\])*'|"(?:\\.|""|[^"\\])*")
    |(?P<quoted>`(?:``|[^`])*`)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|[LSYFDlsyfd])?(?!\w))
    |(?P<word>\w+)
    |(?P<symbol><=>|<>|!=|<=|>=|==|->|=>|\|\||::|<<|>>>?|[^\s\w])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is what is written; `start` and `end` are its place."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def name(self) -> str | None:
        """The name of an identifier, None for another token."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind == "word" else None

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these words (upper case), unquoted."""
        return self.kind == "word" and self.text.upper() in words


def tokenize(sql: str) -> list[Token]:
    """The tokens of the text. Raises ExpressionError for a string, identifier or comment without an end."""
    found: list[Token] = []
    at = 0
    while at < len(sql):
        match = _TOKEN.match(sql, at)
        assert match is not None and match.lastgroup is not None  # any character is a symbol
        text = match[0]
        if text == "/*":
            at = _comment(sql, at)
            continue
        if text in ("'", '"', "`"):
            raise ExpressionError(f"{place(sql, at)}: what begins with {text} has no end", advice="close the quote")
        if match.lastgroup != "space":
            found.append(Token(match.lastgroup, text, at, match.end()))  # type: ignore[arg-type]
        at = match.end()
    return found


def _comment(sql: str, start: int) -> int:
    """The end of a comment; comments nest, as in Spark."""
    depth, at = 0, start
    for mark in re.finditer(r"/\*|\*/", sql[start:]):
        depth += 1 if mark[0] == "/*" else -1
        at = start + mark.end()
        if depth == 0:
            return at
    raise ExpressionError(f"{place(sql, start)}: the comment has no end", advice="close it with */")


def place(sql: str, at: int) -> str:
    """`line 2, column 7`, for messages."""
    before = sql[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - (before.rfind(chr(10)) + 1) + 1}"


def joined(tokens: Iterable[Token]) -> str:
    """The text of these tokens, with a space where there was space or a comment."""
    parts: list[str] = []
    end: int | None = None
    for token in tokens:
        if end is not None and token.start != end:
            parts.append(" ")
        parts.append(token.text)
        end = token.end
    return "".join(parts)


def is_symbol(tokens: Sequence[Token], at: int, text: str) -> bool:
    """Whether there is such a symbol at this place."""
    return 0 <= at < len(tokens) and tokens[at].kind == "symbol" and tokens[at].text == text

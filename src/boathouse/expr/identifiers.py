"""Identifiers and texts in SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable

_RESERVED = frozenset(
    """all and any as between both case cast date distinct div else end escape exists extract false from if ilike in
    interval is left like not null or right rlike select then timestamp timestamp_ltz timestamp_ntz transform true
    try_cast when where current_date current_timestamp current_user regexp using over order by on
    """.split()  # noqa: SIM905
)


def quote(name: str) -> str:
    """`name` as an identifier: bare if it is a plain word, else in backticks."""
    plain = name.isascii() and name.isidentifier() and name.lower() not in _RESERVED
    return name if plain else "`" + name.replace("`", "``") + "`"


def text_literal(value: str) -> str:
    """`value` as a string of Spark's SQL, in single quotes."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\0", "\\0")
    return f"'{escaped}'"


def dotted(path: Iterable[str]) -> str:
    """The names of a path as SQL text, `a.b`."""
    return ".".join(map(quote, path))


def unused(name: str, taken: Collection[str]) -> str:
    """The name, with underscores if one of `taken` (lower case) is the same."""
    while name.lower() in taken:
        name += "_"
    return name

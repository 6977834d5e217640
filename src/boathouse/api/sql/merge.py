"""MERGE INTO, by the builder of merges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from boathouse.api.delta_frames import counts_frame
from boathouse.api.session_settings import evolves
from boathouse.api.sql.defaults import is_default, value_of
from boathouse.api.sql.tables import Tables
from boathouse.api.table import Table
from boathouse.bits.names import steps
from boathouse.errors import InvalidArgumentError
from boathouse.expr.identifiers import dotted, unused
from boathouse.expr.qualify import requalified
from boathouse.expr.sql_tokens import Token, is_symbol
from boathouse.expr.statement_tree import Merge, MergeClause, Tokens


def merge(tables: Tables, s: Merge) -> Any:
    """Runs the merge; one row of counts."""
    table = tables.table(s.table)
    source = tables.frame(s.source, relation=True)
    sides, qualifiers = _sides(s, table, source)

    def text(sql: Tokens) -> str:
        found = tables.with_views(sql)
        for side, names in zip(sides, qualifiers, strict=True):
            for name in names:
                found = requalified(found, name, side)
        return found

    evolve = s.evolve or (table.format == "delta" and evolves(tables.spark))
    builder: Any = table.merge(source, text(s.on), sides, evolve)
    for clause in s.clauses:
        where = None if clause.where is None else text(clause.where)
        values = _values(clause, table, text, sides[0])
        builder = getattr(builder, clause.method)(*([where] if values is None else [values, where]))
    return counts_frame(tables.spark, builder.execute(), "updated", "deleted", "inserted")


def _values(clause: MergeClause, table: Table, text: Any, target: str) -> dict[str, str] | None:
    """The values by column. A row that is inserted has its defaults where it says nothing."""
    if clause.values is None:
        return None
    inserts = clause.method.startswith("when_not_matched_insert")
    given = [(c, v) for c, v in clause.values if not (inserts and is_default(v))]
    columns = [requalified(text(column), (target,), None) for column, _ in given]
    texts = [value_of(table, c, v, text) for c, (_, v) in zip(columns, given, strict=True)]
    return by_column(zip(columns, texts, strict=True))


def by_column(values: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Assignments by the path of what they set. Raises InvalidArgumentError for one that is set twice."""
    found: dict[str, str] = {}
    for column, value in values:
        name = dotted(steps(column))
        if name in found:
            raise InvalidArgumentError(f"`{column}` is set twice", advice="set it once")
        found[name] = value
    return found


def _sides(s: Merge, table: Table, source: Any) -> tuple[tuple[str, str], tuple[Sequence[tuple[str, ...]], ...]]:
    """The names of the two sides, and what else their columns may be qualified by: names of several parts."""
    taken = {c.lower() for c in (*table.schema.names, *source.columns)}
    target = s.alias or (s.table.parts[-1] if "/" not in s.table.parts[-1] else None)
    target = target or unused("target", taken)
    alias, name = source_alias(s.source)
    found = (target, alias or unused("source", {*taken, target.lower()}))
    whole = [] if s.alias is not None or len(s.table.parts) == 1 else [s.table.parts]
    return found, (whole, [name] if len(name) > 1 else [])


def source_alias(tokens: Sequence[Token]) -> tuple[str | None, tuple[str, ...]]:
    """The alias of what follows USING, or the last part of its name; and the parts of the name if it has no alias."""
    end = len(tokens)
    if is_symbol(tokens, end - 1, ")") and not is_symbol(tokens, 0, "("):
        end = _opening(tokens)  # the columns in `name AS s (a, b)`
    elif is_symbol(tokens, end - 1, ")"):
        opening = _opening(tokens)
        if opening == 0:
            return None, ()
        end = opening
    last = tokens[end - 1]
    if end > 1 and last.name is not None and not is_symbol(tokens, end - 2, "."):
        return last.name, ()
    parts = tuple(t.name for t in tokens[:end:2] if t.name is not None)
    named = len(parts) == (end + 1) // 2 and "/" not in parts[-1]
    return (parts[-1], parts) if named else (None, ())


def _opening(tokens: Sequence[Token]) -> int:
    """The place of the parenthesis that the last one closes."""
    depth = 0
    for at in range(len(tokens) - 1, -1, -1):
        depth += is_symbol(tokens, at, ")") - is_symbol(tokens, at, "(")
        if depth == 0:
            return at
    return 0

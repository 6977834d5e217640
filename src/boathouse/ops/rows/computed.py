"""Columns that the table computes: generated ones from the others of the row, and defaults of those that are left out.

What the user gives for a generated column is checked by the table's constraints, among which its expression is.
"""

from __future__ import annotations

from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.tree import Case, Column, Expr, Function, In, Literal
from boathouse.expr.values import Unread, Value, nothing
from boathouse.ops.rows.assign import stored
from boathouse.ops.tasks.sink import ACTION, INSERT, UPDATE
from boathouse.ops.write import Source
from boathouse.table.engine import Engine, Rel
from boathouse.table.tasks import ComputedColumn, WriteContext
from boathouse.types import STRING, Field, Schema


def completed(engine: Engine, source: Source, context: WriteContext) -> Source:
    """The rows with the columns that they lack and the table computes.

    Raises UnsupportedFeatureError if they lack one and another program writes them.
    """
    absent = [c for c in context.computed if not source.schema.places.at(c.name)]
    if not absent:
        return source
    if source.rel is None:
        raise UnsupportedFeatureError(
            f"the data lacks `{absent[0].name}`, which the table computes ({absent[0].sql})",
            where=context.directory,
            advice="write it by bh.write(...) or append(...), or give the column values",
        )
    given: list[tuple[str, Value]] = [(f.name, Column((f.name,))) for f in source.schema]
    computed = {c.name for c in absent}
    later = computed | {c.name for c in context.identities}
    missing = [f for f in context.schema if f.name not in later and not source.schema.places.at(f.name)]
    rel = source.rel
    if missing:
        rel = engine.project(rel, [*given, *((f.name, _null(f)) for f in missing)])
    found = [(c.name, _value(c, context.schema)) for c in absent]
    rel = engine.project(rel, [*given, *((f.name, Column((f.name,))) for f in missing), *found])
    return Source(engine.schema(rel), rel, source.once)


def generated(context: WriteContext) -> frozenset[str]:
    """The columns that follow the others of their row: a clause that does not assign them leaves them null, until
    `recomputed`."""
    return frozenset(c.name for c in context.computed if c.generated)


def defaults(context: WriteContext) -> dict[str, Expr]:
    """The defaults, for rows that are inserted without these columns."""
    return {c.name: _value(c, context.schema) for c in context.computed if not c.generated}


def recomputed(engine: Engine, rel: Rel, schema: Schema, context: WriteContext) -> Rel:
    """A row program with the generated columns that are null in its new rows; `schema` is that of its rows."""
    values = {c.name: _value(c, schema) for c in context.computed if c.generated}
    if not values:
        return rel
    new = In(Column((ACTION,)), tuple(Literal(a, type=STRING) for a in (UPDATE, INSERT)))
    columns: list[tuple[str, Value]] = []
    for name in engine.schema(rel).names:
        kept: Expr = Column((name,))
        if (value := values.get(name)) is not None:
            kept = stored(kept, schema.field(name))
            kept = Case(((new, Function("coalesce", (kept, value))),), kept)
        columns.append((name, kept))
    return engine.project(rel, columns)


def _value(column: ComputedColumn, schema: Schema) -> Expr:
    return stored(Unread(column.sql), schema.field(column.name))


def _null(field: Field) -> Expr:
    return stored(nothing(), field)

"""Which rows of the target can match at all: by the conditions on it alone, and by the bounds of the source's keys."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal

from boathouse.compute.evaluate import can_raise
from boathouse.errors import ExpressionError
from boathouse.expr.resolve import bind, bind_predicate
from boathouse.expr.sides import Sides
from boathouse.expr.tree import FALSE, TRUE, Column, Comparison, Expr, Literal, all_of, columns, conjuncts, rebuild
from boathouse.table.engine import Agg, Engine, Rel
from boathouse.types import DurationType, Field, IntegerType, Schema, StructType, TimestampType

_BOUNDED = (int, str, bytes, Decimal, dt.date, dt.datetime)


def target_predicate(
    engine: Engine, on: str, sides: tuple[str, str], schemas: tuple[Schema, Schema], source: Rel, zone: str | None
) -> Expr:
    """A predicate over the target, bound to its schema, that every matching row satisfies; TRUE if none is known."""
    target = schemas[0]
    both = Schema(tuple(Field(name, StructType(s.fields)) for name, s in zip(sides, schemas, strict=True)))
    try:
        parts = list(conjuncts(Sides(both).condition(on)))
        known = [p for p in parts if {c[0].lower() for c in columns(p)} == {sides[0].lower()}]
        alone = [bind_predicate(_without_side(p), target, zone) for p in known]
        keys = [k for k in _keys(parts, sides, schemas, zone) if len(parts) == 1 or not can_raise(k[1])]
        # What can raise stays behind the other parts, which may shield it.
        alone = [p for p in alone if len(parts) == 1 or not can_raise(p)]
    except ExpressionError:  # the engine knows the condition; nothing is excluded
        return TRUE
    return all_of([*alone, *_bounds(engine, source, keys, target, zone)]) if alone or keys else TRUE


def _keys(
    parts: Sequence[Expr], sides: tuple[str, str], schemas: tuple[Schema, Schema], zone: str | None
) -> Iterator[tuple[Column, Expr]]:
    """The equalities between a column of the target and an expression over the source of the same type."""
    for part in parts:
        if not (isinstance(part, Comparison) and part.op == "="):
            continue
        for left, right in ((part.left, part.right), (part.right, part.left)):
            used = {c[0].lower() for c in columns(right)}
            if isinstance(left, Column) and left.path[0].lower() == sides[0].lower() and used == {sides[1].lower()}:
                ours, theirs = bind(_without_side(left), schemas[0], zone), bind(_without_side(right), schemas[1], zone)
                integers = isinstance(ours.type, IntegerType) and isinstance(theirs.type, IntegerType)
                nanos = isinstance(ours.type, TimestampType | DurationType) and ours.type.unit == "ns"
                # Values of Python have microseconds.
                if isinstance(ours, Column) and (ours.type == theirs.type or integers) and not nanos:
                    yield ours, theirs


def _bounds(
    engine: Engine, rel: Rel, keys: Sequence[tuple[Column, Expr]], target: Schema, zone: str | None
) -> Iterator[Expr]:
    """The range of each key of the source; FALSE if it has no key that is not null."""
    if not keys:
        return
    asked: list[tuple[str, Agg, str]] = []
    for i, (_, expr) in enumerate(keys):
        asked += [(f"min{i}", "min", str(expr)), (f"max{i}", "max", str(expr))]
    row = engine.summary(rel, asked).to_pylist()[0]
    for i, (column, _) in enumerate(keys):
        lower, upper = row[f"min{i}"], row[f"max{i}"]
        if lower is None or upper is None:
            yield FALSE
        elif isinstance(lower, _BOUNDED):
            name = Column(column.path)
            yield bind_predicate(Comparison(">=", name, Literal.of(lower)), target, zone)
            yield bind_predicate(Comparison("<=", name, Literal.of(upper)), target, zone)


def _without_side(e: Expr) -> Expr:
    """`target.id` as `id`."""
    return Column(e.path[1:]) if isinstance(e, Column) else rebuild(e, _without_side)

"""Merge: rows of the table are updated or deleted by the rows of a source that match them, and others are inserted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import pyarrow as pa

from boathouse.errors import InvalidArgumentError
from boathouse.expr.identifiers import quote
from boathouse.expr.qualify import qualified
from boathouse.expr.tree import TRUE, Expr
from boathouse.ops.assign import assigned, cast
from boathouse.ops.computed import defaults, generated, recomputed
from boathouse.ops.evolve import evolution
from boathouse.ops.identity import advanced, check_kept, filled
from boathouse.ops.merge_bounds import target_predicate
from boathouse.ops.merge_columns import target_columns
from boathouse.ops.row_changes import RowChanges, before, marked, target_rows
from boathouse.ops.tasks.sink import ACTION, DELETE, INSERT, UPDATE
from boathouse.ops.write import Planned, Source, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.engine import JoinType, Rel
from boathouse.table.metadata_columns import POSITION, UNIT
from boathouse.table.tasks import WriteContext
from boathouse.types import Field, Schema

When = Literal["matched", "not matched", "not matched by source"]
Action = Literal["update", "delete", "insert"]


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause: what happens to a row, or pair of rows, for which `where` is true (None: to each).

    `values` are Spark SQL text by column; None: those of the source's columns of the same names.
    """

    when: When
    action: Action
    values: Mapping[str, str] | None = None
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """Rows are pairs by the condition `on`, whose names are qualified by `sides` (target, source).

    For each pair, and each row without a partner, the first clause that applies decides; rows for which none does stay
    as they are. With `merge_schema`, columns that only the source has are added. Raises ConstraintViolationError if two
    source rows change one row of the target, and what Update raises.
    """

    source: Source
    on: str
    clauses: tuple[Clause, ...]
    sides: tuple[str, str] = ("target", "source")
    merge_schema: bool = False
    operation: ClassVar[Operation] = "merge"
    _pinned: list[Rel] = field(default_factory=list, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.clauses:
            raise InvalidArgumentError("the merge has no clause", advice="add one, such as when_matched_update_all()")

    def plan(self, start: Start) -> WritePlan:
        snapshot, engine = start.snapshot, start.engine
        edits = evolution(snapshot.schema, self.source.schema) if self.merge_schema else ()
        source = self._source(start)
        bound: Expr = TRUE
        if not self._any("not matched by source"):
            schemas = (snapshot.schema, self.source.schema)
            bound = target_predicate(engine, self.on, self.sides, schemas, source, start.zone)
        context = self._numbered(start.context(edits, changes=True))
        needed = target_columns(snapshot.schema, self.sides[0], self._texts(start, context))
        plan = target_rows(start, bound, "merge", self._marks, needed, context.hidden)
        changes = RowChanges(start, plan, self._program(start, engine.scan(plan), source, context), context, "merge")

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            added = (*edits, *advanced(context, outcomes))
            return changes.planned(outcomes, bound, {"predicate": self.on}, added)

        return WritePlan((changes.rows(), changes.copies), finish)

    def _numbered(self, context: WriteContext) -> WriteContext:
        """The context with the identity columns that an insert leaves out; no update may assign one."""
        for clause in self.clauses:
            if clause.action == "update":
                check_kept(context, self._given(clause, context.schema))
        return filled(context, [self._given(c, context.schema) for c in self.clauses if c.action == "insert"])

    def _given(self, clause: Clause, schema: Schema) -> dict[str, str]:
        """The columns that a clause assigns, and their values."""
        given = dict(clause.values or {})
        if clause.values is None and clause.action != "delete":
            source = quote(self.sides[1])
            given = {f.name: f"{source}.{quote(s.name)}" for f in schema if (s := _same(self.source.schema, f.name))}
        return assigned(given, schema)

    @property
    def _marks(self) -> bool:
        return any(c.action != "insert" for c in self.clauses)

    def _any(self, when: When) -> bool:
        return any(c.when == when for c in self.clauses)

    def _source(self, start: Start) -> Rel:
        """The source, the same rows in every plan."""
        if not self._pinned:
            self._pinned.append(start.engine.pin(self.source.rel))
        return self._pinned[0]

    def _program(self, start: Start, target: Rel, source: Rel, context: WriteContext) -> Rel:
        """The rows of the sink: one for each pair, or row without a partner, to which a clause applies."""
        engine, names, schema = start.engine, tuple(map(quote, self.sides)), context.schema
        if [(c.when, c.action, c.where) for c in self.clauses] == [("matched", "delete", None)]:
            # A row that several source rows match is deleted once.
            rows = engine.join(target, source, self.on, "semi", self.sides)
            nothing = dict.fromkeys(start.snapshot.schema.names, "NULL")
            return engine.project(rows, marked(start.snapshot.schema, DELETE, context, nothing))
        pairs = engine.join(target, source, self.on, self._join, self.sides)
        fires, values = self._clauses(start.snapshot.schema, context)
        columns = [(f.name, _case(fires, [v[f.name] for v in values])) for f in schema]
        actions = [f"'{ {'update': UPDATE, 'delete': DELETE, 'insert': INSERT}[c.action] }'" for c in self.clauses]
        marks = [(ACTION, _case(fires, actions)), (UNIT, f"{names[0]}.{UNIT}"), (POSITION, f"{names[0]}.{POSITION}")]
        marks += [(name, f"{names[0]}.{name}") for name in context.hidden]
        old = before(start.snapshot.schema, context, f"{names[0]}.")
        rows = engine.project(pairs, [*columns, *marks, *old], " OR ".join(f"({f})" for f in fires))
        return recomputed(engine, rows, schema, context)

    def _clauses(self, table: Schema, context: WriteContext) -> tuple[list[str], list[dict[str, str]]]:
        """When each clause applies, and the row that it makes."""
        clauses = [self._one_sided(c, table) for c in self.clauses]
        names = tuple(map(quote, self.sides))
        return [self._fires(c, names) for c in clauses], [self._values(c, table, context) for c in clauses]

    def _texts(self, start: Start, context: WriteContext) -> Iterator[str]:
        """All expressions over the target."""
        table = start.snapshot.schema
        fires, values = self._clauses(table, context)
        old = before(table, context, f"{quote(self.sides[0])}.")
        yield from (self.on, *fires, *(text for row in values for text in row.values()), *(text for _, text in old))

    @property
    def _join(self) -> JoinType:
        inserts, alone = self._any("not matched"), self._any("not matched by source")
        if inserts:
            return "full" if alone else "right"
        return "left" if alone else "inner"

    def _one_sided(self, clause: Clause, table: Schema) -> Clause:
        """The clause; where rows have one side only, a name that both have is that side's."""
        if clause.when == "matched":
            return clause
        both = {name.lower() for name in table.names} & {name.lower() for name in self.source.schema.names}
        side, known = self.sides[clause.when == "not matched"], {s.lower() for s in self.sides}
        values = clause.values and {n: qualified(sql, side, both, known) for n, sql in clause.values.items()}
        where = clause.where and qualified(clause.where, side, both, known)
        return replace(clause, values=values, where=where)

    def _fires(self, clause: Clause, names: Sequence[str]) -> str:
        """The condition under which a clause applies; null counts as false."""
        target, source = f"{names[0]}.{UNIT}", names[1]  # the unit, so that no other column need be read
        found = {
            "matched": f"{target} IS NOT NULL AND {source} IS NOT NULL",
            "not matched": f"{target} IS NULL",
            "not matched by source": f"{source} IS NULL",
        }[clause.when]
        return found if clause.where is None else f"{found} AND ({clause.where})"

    def _values(self, clause: Clause, table: Schema, context: WriteContext) -> dict[str, str]:
        """The value of every column of the new row; those of a deleted row, which are not written, are null."""
        if clause.action == "delete":
            return dict.fromkeys(context.schema.names, "NULL")
        schema, follow, otherwise = context.schema, generated(context), defaults(context)
        target, values = quote(self.sides[0]), self._given(clause, schema)
        for f in schema:
            if f.name not in values:
                kept = clause.action != "insert" and f.name not in follow and _same(table, f.name)
                left_out = otherwise.get(f.name) if clause.action == "insert" else None
                values[f.name] = f"{target}.{quote(f.name)}" if kept else left_out or cast("NULL", f.type)
        return values


def _same(schema: Schema, name: str) -> Field | None:
    places = schema.places.at(name)
    return schema.fields[places[0]] if places else None


def _case(conditions: Sequence[str], values: Sequence[str]) -> str:
    return "CASE " + " ".join(f"WHEN {c} THEN {v}" for c, v in zip(conditions, values, strict=True)) + " END"

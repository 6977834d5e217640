"""Merge: rows of the table are updated or deleted by the rows of a source that match them, and others are inserted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar
from typing import Literal as OneOf

import pyarrow as pa

from boathouse.bits.names import steps
from boathouse.errors import InvalidArgumentError
from boathouse.expr.qualify import qualified
from boathouse.expr.tree import TRUE, And, Column, Expr, IsNull, Literal, Not
from boathouse.expr.values import Unread, chosen, nothing
from boathouse.ops.rows.assign import assigned, check_whole, needing, stored
from boathouse.ops.rows.blob_values import with_blobs
from boathouse.ops.rows.computed import defaults, generated, recomputed
from boathouse.ops.rows.identity import advanced, check_kept, filled
from boathouse.ops.rows.merge_bounds import target_predicate
from boathouse.ops.rows.merge_columns import target_columns
from boathouse.ops.rows.merge_program import ACTIONS, MergeProgram, clause_column
from boathouse.ops.rows.row_changes import RowChanges, before, marked, places, target_rows
from boathouse.ops.schema.evolve import brought, evolution
from boathouse.ops.tasks.sink import ACTION, DELETE
from boathouse.ops.write import Planned, Source, Start, WritePlan, check_given
from boathouse.table.change import Operation
from boathouse.table.engine import JoinType, Rel
from boathouse.table.metadata_columns import UNIT
from boathouse.table.tasks import WriteContext
from boathouse.types import STRING, Field, Schema

When = OneOf["matched", "not matched", "not matched by source"]
Action = OneOf["update", "delete", "insert"]


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
    as they are. With `merge_schema`, columns that only the source has and clauses assign are added. Raises
    ConstraintViolationError if two source rows change one row of the target, and what Update raises.
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
        check_given(self.source.schema)
        edits = evolution(snapshot.schema, self._brought()) if self.merge_schema else ()
        source = self._source(start)
        bound: Expr = TRUE
        if not self._any("not matched by source"):
            schemas = (snapshot.schema, self.source.schema)
            bound = target_predicate(engine, self.on, self.sides, schemas, source, start.zone)
        context = start.context(edits, changes=True)
        future = context.schema
        images = [
            with_blobs(self._image(c, snapshot.schema, future), future, self.source.schema, self.sides)
            for c in self.clauses
        ]
        context = self._numbered(context, images)
        program = self._program(snapshot.schema, context, images)
        needed = target_columns(snapshot.schema, self.sides[0], (self.on, *program.values))
        plan = target_rows(start, bound, "merge", self._marks, needed, context.hidden)
        rel = program.rows(engine, engine.scan(plan), source)
        changes = RowChanges(start, plan, recomputed(engine, rel, context.schema, context), context, "merge")

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            added = (*edits, *advanced(context, outcomes))
            return changes.planned(outcomes, bound, {"predicate": self.on}, added)

        return WritePlan((changes.rows(), changes.copies), finish)

    def _brought(self) -> Schema:
        """The columns and fields of the source that clauses assign to columns of their names."""
        clauses = [c for c in self.clauses if c.action != "delete" and c.when != "not matched by source"]
        if any(c.values is None for c in clauses):
            return self.source.schema
        names = {name for c in clauses for name in c.values or ()}
        return brought(self.source.schema, {*map(steps, names), *((name,) for name in names)})

    def _image(self, clause: Clause, table: Schema, schema: Schema) -> dict[str, Expr]:
        """What a clause sets the columns of the new schema to."""
        if clause.action == "delete":
            return {}
        if clause.values is None:
            fields = ((f, _same(self.source.schema, f.name)) for f in schema)
            return {f.name: stored(Column((self.sides[1], s.name)), f) for f, s in fields if s is not None}
        if clause.action == "insert":
            check_whole(clause.values, schema)
        return assigned(self._one_sided(clause, clause.values, table), schema, (self.sides[0],), table)

    def _numbered(self, context: WriteContext, images: Sequence[Mapping[str, Expr]]) -> WriteContext:
        """The context with the identity columns that an insert leaves out; no update may assign one."""
        for clause, image in zip(self.clauses, images, strict=True):
            if clause.action == "update":
                check_kept(context, image)
        return filled(context, [i for c, i in zip(self.clauses, images, strict=True) if c.action == "insert"])

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

    def _program(self, table: Schema, context: WriteContext, images: Sequence[dict[str, Expr]]) -> MergeProgram:
        """The rows of the sink: one for each pair, or row without a partner, to which a clause applies."""
        if [(c.when, c.action, c.where) for c in self.clauses] == [("matched", "delete", None)]:
            # A row that several source rows match is deleted once.
            nothing_new = dict.fromkeys(table.names, nothing())
            return MergeProgram(self.on, self.sides, "semi", (), marked(table, DELETE, context, nothing_new))
        target = self.sides[0]
        rows = [self._row(c, image, table, context) for c, image in zip(self.clauses, images, strict=True)]
        clauses = [clause_column(i) for i in range(len(rows))]
        columns = [(f.name, chosen(clauses, [row.get(f.name) for row in rows])) for f in context.schema]
        actions = [Literal(ACTIONS[c.action], type=STRING) for c in self.clauses]
        where = places(context.hidden, (target,))
        marks = [(ACTION, chosen(clauses, actions)), *where, *before(table, context, (target,))]
        return MergeProgram(
            self.on, self.sides, self._join, [self._applies(c, table) for c in self.clauses], [*columns, *marks]
        )

    @property
    def _join(self) -> JoinType:
        inserts, alone = self._any("not matched"), self._any("not matched by source")
        if inserts:
            return "full" if alone else "right"
        return "left" if alone else "inner"

    def _one_sided(self, clause: Clause, texts: Mapping[str, str], table: Schema) -> dict[str, str]:
        """The texts; where rows have one side only, a name that both have is that side's."""
        if clause.when == "matched":
            return dict(texts)
        both = {name.lower() for name in table.names} & {name.lower() for name in self.source.schema.names}
        side, known = self.sides[clause.when == "not matched"], {s.lower() for s in self.sides}
        return {name: qualified(sql, side, both, known) for name, sql in texts.items()}

    def _applies(self, clause: Clause, table: Schema) -> Expr:
        """The condition under which a clause applies; null counts as false."""
        # The unit, so that no other column of the target need be read.
        target, source = IsNull(Column((self.sides[0], UNIT))), IsNull(Column((self.sides[1],)))
        found: dict[When, Expr] = {
            "matched": And((Not(target), Not(source))),
            "not matched": target,
            "not matched by source": source,
        }
        if clause.where is None:
            return found[clause.when]
        return And((found[clause.when], Unread(self._one_sided(clause, {"": clause.where}, table)[""])))

    def _row(self, clause: Clause, image: dict[str, Expr], table: Schema, context: WriteContext) -> dict[str, Expr]:
        """The value of every column of the new row; none of a deleted row, which is not written."""
        if clause.action == "delete":
            return {}
        follow, otherwise = generated(context), defaults(context) if clause.action == "insert" else {}
        found = otherwise | needing(image, context)
        for f in context.schema:
            if f.name not in found:
                kept = clause.action == "update" and f.name not in follow and _same(table, f.name)
                found[f.name] = stored(Column((self.sides[0], f.name)) if kept else nothing(), f)
        return found


def _same(schema: Schema, name: str) -> Field | None:
    places = schema.places.at(name)
    return schema.fields[places[0]] if places else None

"""The relation of a merge: pairs of rows, the number of the clause that applies to each, and the rows that it makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from boathouse.expr.tree import Case, Column, Comparison, Expr, IsNull, Literal, Not
from boathouse.expr.values import Value
from boathouse.ops.tasks.sink import DELETE, INSERT, UPDATE
from boathouse.table.engine import Engine, JoinType, Rel
from boathouse.types import INT32

CLAUSE: Final = "boathouse:clause"
"""The number of the clause that applies to a pair."""
ACTIONS: Final = {"update": UPDATE, "delete": DELETE, "insert": INSERT}


def clause_column(number: int) -> Column:
    """Whether this clause applies."""
    return Column((f"{CLAUSE}:{number}",))


@dataclass(frozen=True, slots=True)
class MergeProgram:
    """`applies` are the conditions of the clauses, the first of which that is true decides; none: every row counts."""

    on: str
    sides: tuple[str, str]
    how: JoinType
    applies: Sequence[Expr]
    columns: Sequence[tuple[str, Value]]

    @property
    def values(self) -> Iterator[Value]:
        """All values that the program computes."""
        yield from self.applies
        yield from (value for _, value in self.columns)

    def rows(self, engine: Engine, target: Rel, source: Rel) -> Rel:
        """The rows of the sink."""
        pairs = engine.join(target, source, self.on, self.how, self.sides)
        if not self.applies:
            return engine.project(pairs, self.columns)
        number = Case(tuple((applies, Literal(i, type=INT32)) for i, applies in enumerate(self.applies)))
        chosen = Column((CLAUSE,))
        let: list[tuple[str, Value]] = [(CLAUSE, number)]
        for i in range(len(self.applies)):
            let.append((clause_column(i).path[0], Comparison("=", chosen, Literal(i, type=INT32))))
        return engine.project(pairs, self.columns, Not(IsNull(chosen)), let)

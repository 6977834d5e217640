"""The builder of a merge, as in `delta.tables`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from boathouse.api.delta_frames import counts_frame
from boathouse.api.table import Table
from boathouse.compat.arguments import ColumnMapping, ExpressionOrColumn, assignments, expression, unqualified
from boathouse.engines.spark.columns import alias_of
from boathouse.engines.spark.user_errors import with_spark_errors
from boathouse.expr.identifiers import unused
from boathouse.expr.qualify import requalified


@with_spark_errors
@dataclass(frozen=True)
class DeltaMergeBuilder:
    """A merge that is being described; nothing happens before `execute`. Each method returns a new builder.

    Clauses of one kind are tried in the order in which they are added. A name without a qualifier is that of the side
    that has it; in clauses of rows without a match it is that of their only side.
    """

    _spark: SparkSession
    _table: Table
    _source: DataFrame
    _on: str
    _sides: tuple[str, str]
    _qualifiers: Sequence[Sequence[str]]
    _evolve: bool = False
    _clauses: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    def whenMatchedUpdate(
        self, condition: ExpressionOrColumn | None = None, set: ColumnMapping | None = None
    ) -> DeltaMergeBuilder:
        """Sets columns of table rows that match a source row, if the condition is true."""
        return self._with("when_matched_update", condition, self._values(set, "'set' in whenMatchedUpdate"))

    def whenMatchedUpdateAll(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Sets all columns of matching table rows to those of the source row."""
        return self._with("when_matched_update_all", condition)

    def whenMatchedDelete(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Deletes table rows that match a source row, if the condition is true."""
        return self._with("when_matched_delete", condition)

    def whenNotMatchedInsert(
        self, condition: ExpressionOrColumn | None = None, values: ColumnMapping | None = None
    ) -> DeltaMergeBuilder:
        """Inserts a row for each source row without a match; columns that are not given are null."""
        return self._with(
            "when_not_matched_insert", condition, self._values(values, "'values' in whenNotMatchedInsert")
        )

    def whenNotMatchedInsertAll(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Inserts each source row without a match."""
        return self._with("when_not_matched_insert_all", condition)

    def whenNotMatchedBySourceUpdate(
        self, condition: ExpressionOrColumn | None = None, set: ColumnMapping | None = None
    ) -> DeltaMergeBuilder:
        """Sets columns of table rows that no source row matches, if the condition is true."""
        values = self._values(set, "'set' in whenNotMatchedBySourceUpdate")
        return self._with("when_not_matched_by_source_update", condition, values)

    def whenNotMatchedBySourceDelete(self, condition: ExpressionOrColumn | None = None) -> DeltaMergeBuilder:
        """Deletes table rows that no source row matches, if the condition is true."""
        return self._with("when_not_matched_by_source_delete", condition)

    def withSchemaEvolution(self) -> DeltaMergeBuilder:
        """Adds the columns to the table that only the source has."""
        return replace(self, _evolve=True)

    def execute(self) -> DataFrame:
        """Runs the merge in one commit; one row: the numbers of affected, updated, deleted and inserted rows.

        Raises ConstraintViolationError if two source rows change one row of the table, ExpressionError,
        EvaluationError, SchemaMismatchError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        merge = self._table.merge(self._source, self._sided(self._on), self._sides, self._evolve)
        for method, arguments in self._clauses:
            merge = getattr(merge, method)(*arguments)
        return counts_frame(self._spark, merge.execute(), "updated", "deleted", "inserted")

    def _with(
        self, method: str, condition: ExpressionOrColumn | None, values: dict[str, str] | None = None
    ) -> DeltaMergeBuilder:
        text = expression(condition)
        where = None if text is None else self._sided(text)
        clause = (method, (where,) if values is None else (values, where))
        return replace(self, _clauses=(*self._clauses, clause))

    def _values(self, values: object, name: str) -> dict[str, str]:
        columns = self._table.schema.names
        qualifiers = [*self._qualifiers, (self._sides[0],)]
        found = assignments(values, name)
        return {unqualified(c, columns, qualifiers): self._sided(sql) for c, sql in found.items()}

    def _sided(self, sql: str) -> str:
        """An expression in which the table has its name as a side."""
        for qualifier in self._qualifiers:
            if list(qualifier) != [self._sides[0]]:
                sql = requalified(sql, qualifier, self._sides[0])
        return sql


def sides_of(columns: Sequence[str], name: Sequence[str], source: DataFrame) -> tuple[str, str]:
    """The names of the sides: their aliases, else names that no column has."""
    taken = {c.lower() for c in (*columns, *source.columns)}
    target = name[-1] if name else unused("target", taken)
    return target, alias_of(source) or unused("source", {*taken, target.lower()})

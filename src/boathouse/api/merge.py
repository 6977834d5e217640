"""The builder of a merge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from boathouse.api.arguments import errors_at, names
from boathouse.api.conditions import Condition, condition_text, is_sql, sql_text
from boathouse.errors import InvalidArgumentError
from boathouse.expr.identifiers import dotted
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.rows.assign import column_path
from boathouse.ops.rows.merge import Action, Clause, Merge, When
from boathouse.table.change import Isolation
from boathouse.types import Schema


@dataclass(frozen=True, slots=True)
class MergeBuilder:
    """A merge that is being described; nothing happens before `execute`. Each method returns a new builder. Made by
    `Table.merge`.

    Clauses are tried in the order in which they are added, and the first one that applies to a row decides. Values and
    conditions are Spark SQL text (or expressions, or Columns of PySpark), in which columns are named `target.x` and
    `source.x`. Where a clause has one side only, a name alone is of that side.

    >>> orders = pa.table({"id": [1, 7], "city": ["Kiel", "Turku"], "price": [None, 5.0]})
    >>> merge = t.merge(orders, "target.id = source.id")
    >>> merge = merge.when_matched_delete(where="source.price IS NULL").when_matched_update_all()
    >>> merge.when_not_matched_insert({"id": "source.id", "city": "upper(source.city)"}).execute().rows_deleted
    1
    """

    uri: str
    run: Callable[[Merge, WriteOptions], WriteResult]
    merge: Callable[[tuple[Clause, ...]], Merge]
    clauses: tuple[Clause, ...] = ()

    def when_matched_update(self, set: Mapping[str, Condition], where: Condition | None = None) -> MergeBuilder:
        """Sets columns of target rows that match a source row, if `where` is true. Raises InvalidArgumentError for
        values that are not Spark SQL text, ExpressionError for a condition that is not."""
        return self._with("matched", "update", texts(set), where)

    def when_matched_update_all(self, where: Condition | None = None) -> MergeBuilder:
        """Sets all columns of matching target rows to those of the source row. Raises ExpressionError."""
        return self._with("matched", "update", None, where)

    def when_matched_delete(self, where: Condition | None = None) -> MergeBuilder:
        """Deletes target rows that match a source row, if `where` is true. Raises ExpressionError."""
        return self._with("matched", "delete", None, where)

    def when_not_matched_insert(self, values: Mapping[str, Condition], where: Condition | None = None) -> MergeBuilder:
        """Inserts a row for each source row without a match; columns that are not given are null.

        Raises InvalidArgumentError, ExpressionError.
        """
        return self._with("not matched", "insert", texts(values), where)

    def when_not_matched_insert_all(self, where: Condition | None = None) -> MergeBuilder:
        """Inserts each source row without a match. Raises ExpressionError."""
        return self._with("not matched", "insert", None, where)

    def when_not_matched_by_source_update(
        self, set: Mapping[str, Condition], where: Condition | None = None
    ) -> MergeBuilder:
        """Sets columns of target rows that no source row matches, if `where` is true.

        Raises InvalidArgumentError, ExpressionError.
        """
        return self._with("not matched by source", "update", texts(set), where)

    def when_not_matched_by_source_delete(self, where: Condition | None = None) -> MergeBuilder:
        """Deletes target rows that no source row matches, if `where` is true. Raises ExpressionError."""
        return self._with("not matched by source", "delete", None, where)

    def execute(
        self,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
        target_file_bytes: int | None = None,
        isolation: Isolation | None = None,
    ) -> WriteResult:
        """Runs the merge in one commit.

        Raises ConstraintViolationError if two source rows change one target row, ExpressionError, EvaluationError,
        SchemaMismatchError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        with errors_at(self.uri):
            options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
            return self.run(self.merge(self.clauses), options)

    def _with(
        self, when: When, action: Action, values: Mapping[str, str] | None, where: Condition | None
    ) -> MergeBuilder:
        with errors_at(self.uri):
            text = None if where is None else condition_text(where)
        clause = Clause(when, action, values, text)
        return replace(self, clauses=(*self.clauses, clause))


def texts(values: Mapping[str, Condition]) -> dict[str, str]:
    """Assigned values as Spark SQL text. Raises InvalidArgumentError."""
    if not isinstance(values, Mapping) or not values:
        raise InvalidArgumentError(
            f"{values!r} are not values of columns", advice="pass a dict of columns to Spark SQL text, {'n': 'n + 1'}"
        )
    for name, value in values.items():
        if not isinstance(name, str) or not is_sql(value):
            raise InvalidArgumentError(
                f"{name!r}: {value!r} is not Spark SQL text",
                advice="pass an expression such as 'n + 1'; a string constant has its own quotes: \"'x'\"",
            )
    return {name: sql_text(value) for name, value in values.items()}


def key_columns(
    on: str | Sequence[str] | None, schema: Schema, identifiers: Sequence[tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    """The paths of the columns `on` of an upsert, or of those that identify a row of the table. Raises
    InvalidArgumentError, ColumnNotFoundError."""
    if on is None and not identifiers:
        raise InvalidArgumentError(
            "the table does not say which columns identify a row", advice='name them, for example on="id"'
        )
    if on is None:
        return tuple(identifiers)
    paths = tuple(dict.fromkeys(column_path(c, schema) for c in names("on", [on] if isinstance(on, str) else on)))
    if not paths:
        raise InvalidArgumentError("on=[] names no column", advice="name the columns that identify a row")
    return paths


def same_keys(paths: Sequence[tuple[str, ...]]) -> str:
    """The condition of an upsert: equality of these columns."""
    columns = list(map(dotted, paths))
    return " AND ".join(f"target.{c} = source.{c}" for c in columns)

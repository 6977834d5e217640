"""The methods of a table that add and drop constraints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boathouse.api.arguments import located
from boathouse.api.conditions import condition_text
from boathouse.api.engines import engine_for
from boathouse.api.table_part import Part
from boathouse.errors import InvalidArgumentError
from boathouse.expr.tree import Expr
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.schema.constraints import ConstraintAdded, ConstraintDropped


class Constraints(Part):
    """Constraints of Delta tables (PROTOCOL.md, "CHECK Constraints")."""

    _spark: Any

    @located
    def add_constraint(
        self,
        name: str,
        condition: str | Expr,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Every row must satisfy `condition` from now on: it must be true, not null. The rows of the table are checked
        first.

        Raises ConstraintViolationError if a row of the table does not, InvalidArgumentError for a name that is taken,
        ExpressionError, UnsupportedFeatureError for other formats than Delta, CommitConflictError, CommitUnknownError,
        ReadOnlyError.

        >>> done = t.add_constraint("positive", "price > 0")
        >>> t.append([{"id": 5, "city": "Oslo", "price": -1.0}])
        Traceback (most recent call last):
        boathouse.errors.ConstraintViolationError: a row does not satisfy ...
        """
        write = ConstraintAdded(_named(name), condition_text(condition))
        options = WriteOptions.of(message, metadata, None, dry_run)
        return self._run(engine_for(None, self._spark), write, options, True)

    @located
    def drop_constraint(
        self,
        name: str,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Rows need not satisfy the constraint any more.

        Raises InvalidArgumentError if there is none of this name, UnsupportedFeatureError for other formats than Delta,
        CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        write = ConstraintDropped(_named(name))
        return self._run(engine_for(None, self._spark), write, WriteOptions.of(message, metadata, None, dry_run))


def _named(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"{name!r} is not the name of a constraint", advice="pass the name as a string")
    return name

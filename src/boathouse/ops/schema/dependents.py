"""Whether a constraint or a generated column names a column that is about to change."""

from __future__ import annotations

from collections.abc import Sequence

from boathouse.errors import ExpressionError, InvalidArgumentError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import columns
from boathouse.table.snapshot import Snapshot
from boathouse.table.tasks import RowCondition
from boathouse.types import Schema

Path = tuple[str, ...]


def check_unnamed(snapshot: Snapshot, write_id: str, zone: str | None, path: Path, what: str) -> None:
    """Raises InvalidArgumentError if a condition on rows names the column: it cannot be `what` then."""
    for condition in snapshot.write_context(write_id).conditions:
        own = (condition.column,)
        if any(_meets(found, path) and found != own for found in _named(condition, snapshot.schema, zone)):
            raise InvalidArgumentError(
                f"`{'.'.join(path)}` cannot be {what}: the constraint `{condition.name}` names it ({condition.sql})",
                where=str(snapshot.context),
                advice=f"drop {'the constraint' if condition.column is None else f'`{condition.column}`'} first",
            )


def _named(condition: RowCondition, schema: Schema, zone: str | None) -> Sequence[Path]:
    """The columns of a condition; one that cannot be understood may name any."""
    try:
        return [*columns(bind_predicate(parse(condition.sql), schema, zone))]
    except ExpressionError:
        return [()]


def _meets(one: Path, other: Path) -> bool:
    return all(a == b for a, b in zip(one, other))

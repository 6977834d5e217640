"""Identity columns: which of them a write fills, and how far that moves their marks.

The sink gives the values (`ops.tasks.numbering`); what is decided here is decided before anything is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import ConstraintViolationError, UnsupportedFeatureError
from boathouse.ops.tasks.numbering import exhausted
from boathouse.ops.write import Source
from boathouse.table.edits import AdvanceIdentity
from boathouse.table.tasks import IdentityColumn, WriteContext


def numbered(context: WriteContext, source: Source) -> WriteContext:
    """The context for rows of `source`, all of them new: with the identity columns that they lack.

    Raises ConstraintViolationError for a column that they must lack, EvaluationError if one has no values left, and
    UnsupportedFeatureError if another program writes the rows.
    """
    found = filled(context, [{f.name for f in context.schema if source.schema.places.at(f.name)}])
    if found.identities and source.rel is None:
        raise UnsupportedFeatureError(
            f"the data lacks `{found.identities[0].name}`, an identity column, whose values the table gives",
            where=context.directory,
            advice="write it by bh.write(...) or append(...)",
        )
    return found


def filled(context: WriteContext, inserts: Iterable[Collection[str]]) -> WriteContext:
    """The context for inserts that give these columns, each of them: with the identity columns that one leaves out.

    Raises ConstraintViolationError for a column that may not be given, EvaluationError if one has no values left.
    """
    given, kept = list(inserts), []
    for column in context.identities:
        if not column.explicit and any(column.name in names for names in given):
            raise _refused(column, context, "new rows cannot bring values of their own")
        if any(column.name not in names for names in given):
            if column.value(0) is None:
                raise exhausted(column)
            kept.append(column)
    return replace(context, identities=tuple(kept))


def check_kept(context: WriteContext, assigned: Collection[str]) -> None:
    """Raises ConstraintViolationError if an update assigns an identity column."""
    for column in context.identities:
        if column.name in assigned:
            raise _refused(column, context, "rows keep the value that they were inserted with")


def advanced(context: WriteContext, outcomes: Sequence[pa.Table]) -> tuple[AdvanceIdentity, ...]:
    """The marks behind the values that were given; none if none was."""
    used = max((pc.max(o.column("numbered")).as_py() or 0 for o in outcomes), default=0)
    if not used:
        return ()
    return tuple(AdvanceIdentity(c.name, c.next + c.step * (used - 1)) for c in context.identities)


def _refused(column: IdentityColumn, context: WriteContext, why: str) -> ConstraintViolationError:
    return ConstraintViolationError(
        f"the table gives the values of the identity column `{column.name}`: {why}",
        where=context.directory,
        advice=f"leave `{column.name}` out",
    )

"""Whether a new table may be made somewhere."""

from __future__ import annotations

from boathouse.api.detection import formats_at, require_free
from boathouse.ops.handle import check_read_only
from boathouse.ops.table.create import already_there
from boathouse.table.context import TableContext


def check_free(context: TableContext) -> None:
    """Refuses a second table of another format under one root. Raises AlreadyExistsError."""
    check_read_only(str(context))
    if formats_at(context.location, context.stores):
        raise already_there(context.location)
    require_free(context.location, context.stores)

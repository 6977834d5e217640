"""The first part of a write alone, for a host that writes the rows itself."""

from __future__ import annotations

from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.run import already_applied, new_write_id
from boathouse.ops.write import RowWork, Start, Write
from boathouse.table.engine import Engine


def begin(handle: Handle, engine: Engine, write: Write, options: WriteOptions = WriteOptions()) -> RowWork | None:
    """How the rows of the write are written on the snapshot of the handle; None if its transaction was applied before.

    Their OUTCOMES are passed to `run` as `written`. Raises what planning the write raises.
    """
    handle.check_writable()
    if already_applied(handle.snapshot, options) is not None:
        return None
    plan = write.plan(Start.of(handle.snapshot, engine, options, new_write_id(), handle.zone))
    return next(w for w in plan.work if isinstance(w, RowWork))

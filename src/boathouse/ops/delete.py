"""Delete: removes the rows for which a predicate is true."""

from __future__ import annotations

from dataclasses import replace

from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import TRUE, Expr
from boathouse.ops.changes import base_change, context_of
from boathouse.ops.handle import Handle, WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.rewrite import take_out
from boathouse.ops.run import Planned, new_write_id, run
from boathouse.table.engine import Engine
from boathouse.table.format import Snapshot


def delete(
    handle: Handle, where: str | Expr | None, engine: Engine, options: WriteOptions = WriteOptions()
) -> tuple[Snapshot, WriteResult]:
    """Deletes the rows for which `where` is true (None: all rows); nothing is committed if there are none.

    Raises ExpressionError, and EvaluationError if the predicate fails on a row.
    """
    handle.check_open()
    predicate = TRUE if where is None else parse(where) if isinstance(where, str) else where
    write_id = new_write_id()

    def plan(snapshot: Snapshot, previous: Planned | None) -> Planned:
        if previous is not None:
            previous.discard()
        bound = bind_predicate(predicate, snapshot.schema, handle.zone)
        context = context_of(handle, snapshot, write_id, options)
        taken = take_out(handle, snapshot, engine, bound, context, "delete")
        done = Planned(
            None, taken.outcomes, context, files_removed=taken.removed.num_rows, rows_removed=taken.rows_by_metadata
        )
        edits = taken.edits()
        if not edits:
            return done
        change = base_change(handle, snapshot, "delete", write_id, options, edits)
        return replace(done, change=replace(change, reads=taken.reads, parameters={"predicate": str(predicate)}))

    return run(handle, "delete", options, plan)

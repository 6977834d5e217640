"""The start of every write: its write context, and a change with the parts that all changes have."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from boathouse.ops.handle import Handle, WriteOptions
from boathouse.table.change import Change, Edit
from boathouse.table.engine import Spread
from boathouse.table.format import Snapshot
from boathouse.table.tasks import WriteContext


def context_of(handle: Handle, snapshot: Snapshot, write_id: str, options: WriteOptions) -> WriteContext:
    """How files for this snapshot's table are written."""
    context = handle.format.write_context(
        handle.location,
        handle.stores,
        snapshot.schema,
        snapshot.partitioning.current,
        snapshot.properties,
        write_id,
        snapshot,
    )
    return sized(context, options)


def sized(context: WriteContext, options: WriteOptions) -> WriteContext:
    """The context with the file size that the call requests."""
    if options.target_file_bytes is None:
        return context
    return replace(context, target_bytes=options.target_file_bytes)


def spread_of(context: WriteContext) -> Spread:
    """One partition's rows meet in one worker; without partitions rows are not moved."""
    by: Literal["none", "partition"] = "partition" if context.spec.fields else "none"
    return Spread(by)


def base_change(
    handle: Handle,
    planned: Snapshot | None,
    operation: str,
    write_id: str,
    options: WriteOptions,
    edits: tuple[Edit, ...],
) -> Change:
    """A change with the parts that every write has."""
    return Change(
        format=handle.format.name,
        location=handle.location,
        planned=planned,
        write_id=write_id,
        operation=operation,
        edits=edits,
        ref=None if planned is None else planned.ref,
        message=options.message,
        metadata=dict(options.metadata),
        txn=options.txn,
    )

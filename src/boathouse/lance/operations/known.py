"""All operations: that of a transaction, and that which a change becomes."""

from __future__ import annotations

from typing import Any, Final

from boathouse.errors import InvalidArgumentError
from boathouse.lance.manifests.messages import Transaction
from boathouse.lance.operations.append import AppendOperation
from boathouse.lance.operations.base import Operation, OurOperation, kinds_of
from boathouse.lance.operations.clone import CloneOperation
from boathouse.lance.operations.columns import MergeOperation
from boathouse.lance.operations.config import UpdateConfigOperation
from boathouse.lance.operations.data_replacement import DataReplacementOperation
from boathouse.lance.operations.delete import DeleteOperation
from boathouse.lance.operations.indices import CreateIndexOperation
from boathouse.lance.operations.others import (
    DataOverlayOperation,
    ReserveFragmentsOperation,
    UpdateBasesOperation,
)
from boathouse.lance.operations.overwrite import CreateOperation, OverwriteOperation
from boathouse.lance.operations.project import ProjectOperation
from boathouse.lance.operations.restore import RestoreOperation
from boathouse.lance.operations.rewrite import RewriteOperation
from boathouse.lance.operations.update import UpdateOperation
from boathouse.table.change import Change

CREATE: Final = CreateOperation()
CLONE: Final = CloneOperation()
_OURS: Final[tuple[OurOperation, ...]] = (
    CreateIndexOperation(), RewriteOperation(), OverwriteOperation(), DeleteOperation(), UpdateOperation(),
    AppendOperation(), MergeOperation(), DataReplacementOperation(), ProjectOperation(), RestoreOperation(),
    UpdateConfigOperation(), CLONE,
)  # fmt: skip
"""In this order: a change that keeps the rows is one of indices, or a rewrite, whatever its edits."""
_OTHERS: Final[tuple[Operation, ...]] = (ReserveFragmentsOperation(), UpdateBasesOperation(), DataOverlayOperation())
_BY_NAME: Final = {operation.name: operation for operation in (*_OURS, *_OTHERS)}


def operation_of(transaction: Transaction) -> tuple[Operation, Any] | None:
    """The operation of a transaction and its message; None if it is not known."""
    name = transaction.operation
    return None if name is None else (_BY_NAME[name], getattr(transaction, name))


def ours(change: Change) -> OurOperation:
    """The operation that a change becomes. Raises InvalidArgumentError if none says all of it, UnsupportedFeatureError
    for one that keeps the rows in another way than a compaction."""
    found = next((o for o in (CREATE, *_OURS) if o.describes(change)), None)
    if found is None:
        kinds = ", ".join(sorted(k.__name__ for k in kinds_of(change))) or "nothing"
        raise InvalidArgumentError(
            f"a Lance commit of {kinds}: no operation of Lance's transactions does that at once",
            where=change.location.uri,
            advice="commit properties and rows separately",
        )
    return found

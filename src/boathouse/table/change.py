"""Changes: what a writer intends to commit, and the verdict on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from boathouse.expr.tree import Expr
from boathouse.table.location import Location, Version
from boathouse.types import DataType, PartitionField, Schema

if TYPE_CHECKING:
    from boathouse.table.format import Snapshot

Isolation = Literal["serializable", "snapshot"]


@dataclass(frozen=True, slots=True)
class CreateTable:
    """The first commit of a table. Field ids, if any, are assigned in `prepare`."""

    schema: Schema
    partition_by: tuple[PartitionField, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class AddFiles:
    """New data files: OUTCOMES rows of kind data. `sequence` None is inherited from the commit."""

    outcomes: pa.Table
    sequence: int | None = None


@dataclass(frozen=True, slots=True)
class RemoveUnits:
    """Units are removed from the table: their planned FILES rows, including `native`, so that nothing is read again."""

    units: pa.Table


@dataclass(frozen=True, slots=True)
class RemoveAll:
    """Every unit of the head is removed."""


@dataclass(frozen=True, slots=True)
class SetDeletes:
    """Rows of units are deleted: planned FILES rows, and for each the newly deleted positions.

    `vectors[i]` is a portable 64-bit roaring bitmap for row i of `units`.
    """

    units: pa.Table
    vectors: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ReplaceSchema:
    """An overwrite with a new schema and partitioning."""

    schema: Schema
    partition_by: tuple[PartitionField, ...] | None = None


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A column is added at the end of the table or of the struct at `parent`; its id is assigned in `prepare`."""

    name: str
    type: DataType
    parent: tuple[str, ...] = ()
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class SetType:
    """The column or struct field at `path` gets a wider type, which all existing values fit."""

    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Properties are set; a value of None removes one."""

    properties: Mapping[str, str | None]


Edit = (
    CreateTable | AddFiles | RemoveUnits | RemoveAll | SetDeletes | ReplaceSchema | AddColumn | SetType | SetProperties
)


@dataclass(frozen=True, slots=True)
class ReadSet:
    """What the writer read to plan the change: always recorded, also for metadata-only deletes.

    `predicates` are bound to the planned schema; `units` are paths of units whose rows were read.
    """

    whole: bool = False
    predicates: tuple[Expr, ...] = ()
    units: frozenset[str] = frozenset()

    @property
    def blind(self) -> bool:
        return not (self.whole or self.predicates or self.units)


@dataclass(frozen=True, slots=True)
class Change:
    """A complete change. `planned` is the snapshot that it was computed from; None creates a table."""

    format: str
    location: Location
    planned: Snapshot | None
    write_id: str
    operation: str
    edits: tuple[Edit, ...]
    reads: ReadSet = ReadSet()
    ref: str | None = None
    isolation: Isolation = "serializable"
    parameters: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    txn: tuple[str, int] | None = None
    metrics: Mapping[str, int] = field(default_factory=dict)

    def edit(self, kind: type[Any]) -> Any:
        """The edit of this kind, or None; a Change has at most one of each but AddColumn and SetType."""
        return next((e for e in self.edits if isinstance(e, kind)), None)

    @property
    def evolves(self) -> bool:
        """Whether the rows add columns or types: their files are written under a schema that is not yet committed."""
        return any(isinstance(e, AddColumn | SetType) for e in self.edits) and self.edit(AddFiles) is not None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a concurrent commit conflicts. `kind` is a stable word, such as `concurrent-append` or `metadata-changed`."""

    kind: str
    version: Version
    message: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebase:
    """The change can be prepared on the head unchanged."""


@dataclass(frozen=True, slots=True)
class Replan:
    """Rows must be computed or written again from the head."""

    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """The operation fails; the user has to decide."""

    conflicts: tuple[Conflict, ...]


Verdict = Rebase | Replan | Stop


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is the table's version `version`; `already` if an earlier attempt of ours had been committed.

    `onto` is the snapshot that it followed, `after` the newest one after the commit, where they are known.
    """

    version: Version
    turns: int
    already: bool = False
    onto: Snapshot | None = field(default=None, compare=False, repr=False)
    after: Snapshot | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Nothing was written. `replan` if computing the change again from the head may succeed."""

    conflicts: tuple[Conflict, ...]
    replan: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """The change may or may not have been committed; `find_write(write_id)` tells. Nothing was cleaned up."""

    write_id: str
    key: str


CommitOutcome = Committed | Conflicted | Unknown

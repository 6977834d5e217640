"""Changes: what a writer intends to commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast, get_args

import pyarrow as pa

from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.tree import Expr
from boathouse.table.location import Location, Version
from boathouse.table.version import TableVersion
from boathouse.types import DataType, Identity, PartitionField, Schema

Isolation = Literal["serializable", "snapshot"]
"""`serializable`: a concurrent commit that adds rows which the change would have read is a conflict; `snapshot`: only
one that removes or changes what it read."""
Operation = Literal[
    "create",
    "convert",
    "clone",
    "append",
    "overwrite",
    "delete",
    "update",
    "merge",
    "replace",
    "add-columns",
    "alter-columns",
    "set-properties",
    "add-constraint",
    "drop-constraint",
    "drop-feature",
    "restore",
    "vacuum-start",
    "vacuum-end",
]
"""`convert` creates a table of files that are there, `clone` one of the files of another table. `replace` rewrites
files without changing rows, as compaction does. The last two only record what is about to happen
to files that no version needs, and what did: they have no edits."""


@dataclass(frozen=True, slots=True)
class CreateTable:
    """The first commit of a table. Field ids, if any, are assigned in `prepare`. `identities` declare columns of
    `schema`.

    `adopts`: its files are there already, and have the columns' own names. `generated` is the expression of each
    generated column; it and `comment` are Delta's.
    """

    schema: Schema
    partition_by: tuple[PartitionField, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None
    identities: Mapping[str, Identity] = field(default_factory=dict)
    adopts: bool = False
    comment: str | None = None
    generated: Mapping[str, str] = field(default_factory=dict)

    def require_no_identities(self, format: str, where: str) -> None:
        """Raises UnsupportedFeatureError if identity columns are declared."""
        for name in self.identities:
            raise UnsupportedFeatureError(
                f"{format} tables have no identity columns: `{name}` would have to be filled by whoever writes",
                where=where,
                advice="leave identity out, or create a Delta table",
            )


@dataclass(frozen=True, slots=True)
class CloneTable:
    """The first commit of a table that has the rows, schema and properties of a version of another one. Made by
    `Snapshot.cloning`: `units` are the FILES rows of the source, whose files are not copied."""

    source: TableVersion
    units: pa.Table


@dataclass(frozen=True, slots=True)
class AddFiles:
    """New data files: OUTCOMES rows of kind data.

    `sequence` None is inherited from the commit. A compaction keeps the one that it read at: deletes that were
    committed since must apply to its files. `clustered`: by the columns that the table names.
    """

    outcomes: pa.Table
    sequence: int | None = None
    clustered: bool = False


@dataclass(frozen=True, slots=True)
class RemoveFiles:
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
class AddDeletes:
    """New delete files: OUTCOMES rows of kind delete. `keys` are the ids of the columns of equality deletes; without
    them the files hold positions."""

    outcomes: pa.Table
    keys: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AddChangeFiles:
    """New files of changed rows, for readers of the table's changes: OUTCOMES rows of kind change."""

    outcomes: pa.Table


@dataclass(frozen=True, slots=True)
class SetPart:
    """Some columns of units are stored in new files: planned FILES rows, and OUTCOMES rows in the same order."""

    units: pa.Table
    outcomes: pa.Table


@dataclass(frozen=True, slots=True)
class SetRef:
    """A branch or tag `name` is set to a version; None removes it."""

    name: str
    version: Version | None
    tag: bool = False


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """The application `app` has written its version `version`."""

    app: str
    version: int


@dataclass(frozen=True, slots=True)
class ReplaceSchema:
    """An overwrite with a new schema and partitioning (None: the current one). `generated` as in CreateTable."""

    schema: Schema
    partition_by: tuple[PartitionField, ...] | None = None
    generated: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A column is added to the table or to the struct at `parent`; its id is assigned in `prepare`.

    It comes after the sibling `after`; None: at the end.
    """

    name: str
    type: DataType
    parent: tuple[str, ...] = ()
    nullable: bool = True
    after: str | None = None
    default: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """The column or struct field at `path` gets another name."""

    path: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """The column or struct field at `path` is dropped."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """The column or struct field at `path` moves behind its sibling `after`; None: to the front."""

    path: tuple[str, ...]
    after: str | None = None


@dataclass(frozen=True, slots=True)
class SetType:
    """The column or struct field at `path` gets a wider type, which all existing values fit."""

    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class SetNullability:
    """The column or struct field at `path` accepts nulls, or none any more."""

    path: tuple[str, ...]
    nullable: bool


@dataclass(frozen=True, slots=True)
class SetDefault:
    """The value, as SQL text, of the column at `path` in rows that are written without it; None removes it."""

    path: tuple[str, ...]
    default: str | None


@dataclass(frozen=True, slots=True)
class SetComment:
    """The comment of the column or struct field at `path`, or of the table if it is empty; None removes it."""

    path: tuple[str, ...]
    comment: str | None


@dataclass(frozen=True, slots=True)
class SetName:
    """The name that the table has of its own, beside its location; None removes it."""

    name: str | None


@dataclass(frozen=True, slots=True)
class SetPartitioning:
    """New files are partitioned by these fields; existing ones are unchanged."""

    partition_by: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Properties are set; a value of None removes one."""

    properties: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class AdvanceIdentity:
    """The identity column `name` has given values up to `mark`, beginning with the planned snapshot's next one."""

    name: str
    mark: int


@dataclass(frozen=True, slots=True)
class SetConstraint:
    """Every row must satisfy the condition, Spark SQL text; None drops the constraint."""

    name: str
    condition: str | None


@dataclass(frozen=True, slots=True)
class RestoreTo:
    """Rows, schema, partitioning, properties and constraints become those of the version `target`; what writers need to
    know beyond a version stays: application transactions, features, counters.

    Made by `Snapshot.restoration` for the planned snapshot alone, so that any concurrent commit makes it again. `added`
    are FILES rows of the target that the snapshot lacks, `removed` those of the snapshot that the target lacks; a unit
    of which other rows are deleted is in both. `needed` are the URIs of every file that `added` refers to; `files` and
    `size` are those of the whole table afterwards.
    """

    target: TableVersion
    added: pa.Table
    removed: pa.Table
    needed: tuple[str, ...]
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class SetFeature:
    """A feature of the format is enabled, or dropped."""

    name: str
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class ClearFeature:
    """What the schema says for a feature of the format goes; the same change writes every file again without it."""

    name: str


SchemaEdit = (
    ReplaceSchema
    | AddColumn
    | RenameColumn
    | DropColumn
    | MoveColumn
    | SetType
    | SetNullability
    | SetDefault
    | SetComment
    | SetPartitioning
    | ClearFeature
)
"""Edits of the schema and of the partitioning: files may be written under them before they are committed."""
FileEdit = AddFiles | RemoveFiles | RemoveAll | SetDeletes | AddDeletes | AddChangeFiles | SetPart
Edit = (
    CreateTable
    | CloneTable
    | FileEdit
    | SchemaEdit
    | SetRef
    | SetTransaction
    | SetName
    | SetProperties
    | AdvanceIdentity
    | SetConstraint
    | SetFeature
    | RestoreTo
)
SCHEMA_EDITS: tuple[type, ...] = get_args(SchemaEdit)

E = TypeVar("E")


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
    """A complete change: any number of edits of each kind, rows and schema in one commit.

    `planned` is the snapshot that it was computed from; None creates a table. `data_change` is false if the rows of the
    table stay the same, as in a compaction.
    """

    format: str
    location: Location
    planned: TableVersion | None
    write_id: str
    operation: Operation
    edits: tuple[Edit, ...]
    reads: ReadSet = ReadSet()
    ref: str | None = None
    isolation: Isolation = "serializable"
    data_change: bool = True
    parameters: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)

    def all(self, kind: type[E]) -> Iterator[E]:
        """The edits of this kind, in order."""
        return (e for e in self.edits if isinstance(e, kind))

    def edit(self, kind: type[E]) -> E | None:
        """The first edit of this kind, or None."""
        return next(self.all(kind), None)

    @property
    def txn(self) -> tuple[str, int] | None:
        """The first application transaction."""
        found = self.edit(SetTransaction)
        return None if found is None else (found.app, found.version)

    @property
    def schema_edits(self) -> tuple[SchemaEdit, ...]:
        """The edits of the schema and of the partitioning, in order."""
        return tuple(cast(SchemaEdit, e) for e in self.edits if isinstance(e, SCHEMA_EDITS))

    @property
    def added(self) -> pa.Table | None:
        """The OUTCOMES rows of all new data files; None if the change adds none."""
        found = [e.outcomes for e in self.all(AddFiles)]
        return pa.concat_tables(found) if found else None

    @property
    def removed(self) -> pa.Table | None:
        """The FILES rows of all removed units; None if the change names none."""
        found = [e.units for e in self.all(RemoveFiles)]
        return pa.concat_tables(found) if found else None

    @property
    def evolves(self) -> bool:
        """Whether the rows change the schema: their files are written under one that is not yet committed."""
        return bool(self.schema_edits) and self.edit(AddFiles) is not None

    def require(self, *supported: type) -> None:
        """Raises UnsupportedFeatureError, naming the edit, unless every edit is of one of these kinds."""
        for edit in self.edits:
            if not isinstance(edit, supported):
                raise UnsupportedFeatureError(
                    f"{words_of(type(edit))} is not offered for {self.format} tables",
                    where=str(self.location),
                    advice="leave it out, or use the format's own library for it",
                )


def words_of(kind: type) -> str:
    """The name of a kind of edit in messages: `AddChangeFiles` as `add change files`."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in kind.__name__).strip()

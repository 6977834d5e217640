"""Changes: what a writer intends to commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast

import pyarrow as pa

from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.tree import Expr
from boathouse.table.edits import (
    SCHEMA_EDITS,
    AddDeletes,
    AddFiles,
    Edit,
    RemoveFiles,
    ReplaceDeletes,
    SchemaEdit,
    SetDeletes,
    SetTransaction,
)
from boathouse.table.location import Location
from boathouse.table.snapshot import MapFunction
from boathouse.table.version import TableVersion

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
    "statistics",
    "create-index",
    "drop-index",
    "backfill",
    "add-constraint",
    "drop-constraint",
    "drop-feature",
    "restore",
    "set-ref",
    "drop-ref",
    "fast-forward",
    "rollback",
    "cherry-pick",
    "expire",
    "vacuum-start",
    "vacuum-end",
]
"""`convert` creates a table of files that are there, `clone` one of the files of another table. `backfill` completes
what the table says of its files. `replace` rewrites files without changing rows, as compaction does. `set-ref` creates
a branch or tag or moves it; `rollback` makes a version that is there the head of a branch. The last two only record
what is about to happen to files that no version needs, and what did: they have no edits."""


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

    `planned` is the snapshot that it was computed from; None creates a table. `isolation` None is what the table asks
    for, else serializable. `data_change` is false if the rows of the table stay the same, as in a compaction. `map` is
    where a format does large work of the commit itself, None in process. `replans` is how often its write was planned
    before, and `began` when the first of those plans was committed, by the monotonic clock.
    """

    format: str
    location: Location
    planned: TableVersion | None
    write_id: str
    operation: Operation
    edits: tuple[Edit, ...]
    reads: ReadSet = ReadSet()
    ref: str | None = None
    isolation: Isolation | None = None
    data_change: bool = True
    parameters: Mapping[str, str] = field(default_factory=dict)
    message: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    map: MapFunction | None = field(default=None, compare=False, repr=False)
    replans: int = 0
    began: float | None = None

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
    def touched(self) -> pa.Table | None:
        """The FILES rows of all units that go or lose rows, each once; None if the change names none."""
        found = [e.units for e in self.edits if isinstance(e, RemoveFiles | SetDeletes | AddDeletes | ReplaceDeletes)]
        if len(found) < 2:
            return found[0] if found else None
        units = pa.concat_tables(found)
        places = {path: i for i, path in enumerate(units.column("path").to_pylist())}
        return units.take(pa.array(list(places.values()), pa.int64()))

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

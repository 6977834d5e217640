"""The interface of a table to everything above it: one version of it, or a table that is not created yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

import pyarrow as pa

from boathouse.table.sizes import SMALL_FILE, Sizes
from boathouse.table.version import TableVersion

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.table.attempt import Attempt
    from boathouse.table.commits import Commits, SnapshotCommits
    from boathouse.table.context import TableContext
    from boathouse.table.edits import SchemaEdit
    from boathouse.table.history import History
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tally import Tally
    from boathouse.table.tasks import WriteContext
    from boathouse.types import Partitioning, Schema

Feature = TypeVar("Feature")
"""The Protocol of a feature of `table.features`, or the class of its value."""
MapFunction = Callable[[Callable[[Any], Iterable[pa.RecordBatch]], Sequence[Any]], Iterator[pa.RecordBatch]]
"""`map(fn, tasks)`: runs a picklable function over tasks, in process or on executors, results in order of tasks."""


RowDeletes = Literal["rewrite", "vectors", "positions"]
"""How some rows of a unit are deleted: it is written again without them, they get a deletion vector, or a file of
their positions."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this table supports. With `lasting_ids` a field id is the same column in every version, whatever it is
    called."""

    partitions: bool
    transforms: bool = False
    lasting_ids: bool = False


class Target(Protocol):
    """What a change is prepared on: a snapshot, or a table that is not created yet, with the schema that it will
    have."""

    @property
    def format(self) -> str: ...
    @property
    def context(self) -> TableContext: ...
    @property
    def schema(self) -> Schema: ...
    @property
    def partitioning(self) -> Partitioning: ...
    @property
    def properties(self) -> Mapping[str, str]: ...
    @property
    def capabilities(self) -> Capabilities: ...

    def write_context(self, write_id: str) -> WriteContext:
        """How files for this table are written."""

    @property
    def commits(self) -> Commits:
        """How changes of it are committed."""

    def newest(self, put: Attempt | None = None) -> Snapshot:
        """The newest snapshot of this one's ref, continued from it if that is safe. `put` is an attempt that was
        prepared on it and put, which need not be read.

        Raises TableNotFoundError if there is none, and what `TableFormat.open` raises.
        """

    def offers(self, feature: type[Feature]) -> Feature | None:
        """A feature of `table.features`, by its class; None if such a table does not have it."""


class Snapshot(Target, TableVersion, Protocol):
    """One version of a table, pinned: immutable, and readable as long as its metadata files exist."""

    @property
    def commits(self) -> SnapshotCommits: ...
    @property
    def history(self) -> History: ...

    def files(
        self,
        columns: Sequence[tuple[str, ...]] = (),
        where: Expr | None = None,
        map: MapFunction | None = None,
        tally: Tally | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """FILES, in batches of at most 64 MiB; `where` is bound to the schema and pushed down.

        `stats` has a field for each of `columns`, in their order, and no other.
        """

    def sizes(self, small: int = SMALL_FILE) -> Sizes:
        """The sums over `files()`; files below `small` bytes are small.

        Where the format's metadata is at hand as plain numbers, no Arrow array is made of it: the first array of Python
        values imports pandas, which takes longer than reading the metadata of a small table. What is not counted is
        not checked.
        """

    def plan(
        self,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
        classify: bool = False,
    ) -> ScanPlan:
        """The plan for reading these columns (None: all) with this bound predicate.

        With `classify`, `ScanPlan.certain` says of each unit whether all of its rows satisfy the predicate for certain.
        """

    def check_writable(self) -> None:
        """Raises if this version of the library may not write this table: features, storage, mixed writers."""

    def row_deletes(self, operation: str) -> RowDeletes:
        """How `operation` (delete, update, merge, overwrite) deletes some rows of a unit. Asked only where it does.

        Raises UnsupportedFeatureError if the table's settings demand a way that is not offered.
        """

    def evolve(self, edits: Sequence[SchemaEdit]) -> Self:
        """The snapshot under the schema after these edits, with the ids that a commit on it would assign.

        For writing files before the commit; a concurrent commit that changed the schema makes the change `Replan`.
        Raises UnsupportedFeatureError, UnsupportedTypeError and InvalidArgumentError if the format does not support it.
        """

    def detail(self) -> Mapping[str, Any]:
        """The content of `info`: protocol, features, engine of the last commit, in the format's own terms."""

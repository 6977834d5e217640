"""The interface of a table to everything above it: one version of it, or a table that is not created yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

import pyarrow as pa

from boathouse.table.sizes import SMALL_FILE, Sizes
from boathouse.table.version import TableVersion

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.table.attempt import Attempt, Committer, Published, Winner
    from boathouse.table.change import Change
    from boathouse.table.context import TableContext
    from boathouse.table.edits import SchemaEdit
    from boathouse.table.location import Version
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tally import Tally
    from boathouse.table.tasks import WriteContext
    from boathouse.table.verdict import Verdict
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


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit, newest first in a history.

    `version` is that of the rows after the commit, which `open(version=...)` opens. With `metadata_only` the commit did
    not make it: an Iceberg commit of metadata alone leaves the version that was current, 0 before the first. `commit`
    is its `CommitId.token`, None where the table no longer records it (Iceberg keeps the names of the last metadata
    files only). `parent` is the version that it followed, whether that is retained or not; None for the table's first.
    `data_change` is false if the commit is known to leave every row as it was. `native` is what the format records of
    the commit under its own names.
    """

    version: Version
    commit: str | None
    timestamp_ms: int
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    write_id: str | None = None
    message: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parent: Version | None = None
    data_change: bool = True
    native: Mapping[str, Any] = field(default_factory=dict, repr=False)
    metadata_only: bool = False


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

    def newest(self) -> Snapshot:
        """The newest snapshot of this one's ref, continued from it if that is safe.

        Raises TableNotFoundError if there is none, and what `TableFormat.open` raises.
        """

    def find_write(self, write_id: str) -> Version | None:
        """The version of the table once it had the commit with this write id, or None; searches everything that is
        retained. Raises CommitUnknownError if that does not tell whether the version is part of the table."""

    def committer(self) -> Committer:
        """`table.commit.FileCommitter(stores)` for a table in a file system."""

    def prepare(self, change: Change) -> Attempt:
        """Writes the files that the commit refers to and returns the commit itself, with new bytes at every call.

        It follows this snapshot, which is the newest one.
        """

    def look_back(self, attempt: Attempt, change: Change) -> tuple[Published | None, Snapshot | None]:
        """Whether an attempt that was put is part of the table as every reader sees it, and the newest snapshot.

        Put-if-absent also succeeds below a history that was cleaned. `lost` is definite; `unknown` means undecidable;
        None: the listings do not show the attempt yet. May raise anything that reading a table raises.

        It is asked of what the attempt was prepared on. Where one listing shows that snapshot's own document unchanged
        and the attempt after it as the newest, the attempt's bytes are the new snapshot, and nothing is read.
        """

    def published(self, attempt: Attempt, change: Change) -> None:
        """After a commit: checkpoints, hints, checksums."""

    def offers(self, feature: type[Feature]) -> Feature | None:
        """A feature of `table.features`, by its class; None if such a table does not have it."""


class Snapshot(Target, TableVersion, Protocol):
    """One version of a table, pinned: immutable, and readable as long as its metadata files exist."""

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

    def winners(self, since: TableVersion) -> Sequence[Winner] | None:
        """The commits after `since` up to this one, oldest first; None if some are gone."""

    def check(self, change: Change, winners: Sequence[Winner]) -> Verdict:
        """The verdict on the change after these concurrent commits, the last of which is this snapshot."""

    def history(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        """Commits up to this snapshot, newest first, as far as they are retained."""

    def app_version(self, app: str) -> int | None:
        """The newest version that this application recorded with a write (`Change.txn`), or None."""

    def detail(self) -> Mapping[str, Any]:
        """The content of `info`: protocol, features, engine of the last commit, in the format's own terms."""

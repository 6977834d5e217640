"""The interface of a format to everything above it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

import pyarrow as pa

from boathouse.expr.tree import Expr
from boathouse.storage import Stores
from boathouse.table.location import NEWEST, At, Location, Version
from boathouse.table.plan import ScanPlan, Tally
from boathouse.table.tasks import WriteContext
from boathouse.types import Partitioning, PartitionSpec, Schema

if TYPE_CHECKING:
    from boathouse.table.change import AddColumn, Change, CreateTable, SetType, Verdict

T = TypeVar("T")
MapFunction = Callable[[Callable[[Any], Iterable[pa.RecordBatch]], Sequence[Any]], Iterator[pa.RecordBatch]]
"""`map(fn, tasks)`: runs a picklable function over tasks, in process or on executors, results in order of tasks."""


@runtime_checkable
class Snapshot(Protocol):
    """One version of a table, pinned: immutable, and readable as long as its metadata files exist."""

    @property
    def format(self) -> str: ...
    @property
    def location(self) -> Location: ...
    @property
    def version(self) -> Version: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def ref(self) -> str | None: ...
    @property
    def identity(self) -> str:
        """The table's own id: another table created at the same path has another one."""

    @property
    def token(self) -> str:
        """The version token that publish must find unchanged: the key or number of the head."""

    @property
    def schema(self) -> Schema: ...
    @property
    def partitioning(self) -> Partitioning: ...
    @property
    def properties(self) -> Mapping[str, str]: ...

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

    def detail(self) -> Mapping[str, Any]:
        """The content of `info`: protocol, features, engine of the last commit, in the format's own terms."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit, newest first in a history."""

    version: Version
    timestamp_ms: int
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    write_id: str | None = None
    message: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`deletes` is how some rows of a unit are deleted."""

    deletes: Literal["vectors", "copy-on-write"]
    partitions: bool
    transforms: bool = False


@dataclass(frozen=True, slots=True)
class Winner:
    """A commit after the planned snapshot. `document` is the format's own."""

    version: Version
    write_id: str | None
    document: Any


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a commit: `body` is put at `uri` if absent, and then `version` exists.

    `side` are auxiliary files, already written, that only this attempt refers to; they are removed if it is certainly
    lost. `replaces` is the head's token, which a catalog swaps for the new one.
    """

    uri: str
    body: bytes
    version: Version
    side: tuple[str, ...] = ()
    replaces: str | None = None


Published = Literal["won", "lost", "unknown"]


class Committer(Protocol):
    """How a version is published: put-if-absent on a file system, or a catalog's swap."""

    def publish(self, attempt: Attempt) -> Published:
        """Makes the attempt the next version on exactly the head it was prepared on; `lost` is definite.

        Raises StorageError only if nothing can have been committed.
        """


class TableFormat(Protocol):
    """One format. Every method but `plan` and `load` may be called with the newest snapshot only."""

    name: str
    capabilities: Capabilities

    def detect(self, location: Location, stores: Stores) -> bool:
        """Whether there is a table of this format at the location; cheap: at most two listings."""

    def load(self, location: Location, stores: Stores, at: At = NEWEST) -> Snapshot:
        """Opens. Raises TableNotFoundError, VersionNotFoundError, CorruptTableError, UnsupportedFeatureError."""

    def newest(self, snapshot: Snapshot, stores: Stores) -> Snapshot:
        """The newest snapshot of this one's ref, continued from it if that is safe. Raises as `load`."""

    def plan(
        self,
        snapshot: Snapshot,
        stores: Stores,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
    ) -> ScanPlan:
        """The plan for reading these columns (None: all) with this bound predicate; row deletes are resolved."""

    def writable(self, snapshot: Snapshot, stores: Stores, allow_mixed_writers: bool = False) -> None:
        """Raises if this version of the library may not write this table: features, storage, mixed writers.

        MixedWritersError, where a library without our guarantees writes too, unless `allow_mixed_writers`.
        """

    def rewritable(self, snapshot: Snapshot, operation: str) -> None:
        """Raises if the table's settings forbid `operation` (delete, update, merge) to rewrite units without some of
        their rows."""

    def create(
        self, location: Location, create: CreateTable, snapshot: Snapshot | None = None
    ) -> tuple[Schema, PartitionSpec]:
        """The schema and spec that the table will have once committed; raises where the format cannot hold it.

        With `snapshot`, the table exists and an overwrite replaces its schema (`ReplaceSchema` takes the result): ids
        continue from it, and a concurrent commit that also assigned ids makes the change `Replan`.
        """

    def evolve(self, snapshot: Snapshot, edits: Sequence[AddColumn | SetType]) -> Snapshot:
        """The snapshot under the schema after these edits, with the ids that a commit on it would assign.

        For writing files before the commit; a concurrent commit that changed the schema makes the change `Replan`.
        Raises UnsupportedFeatureError, UnsupportedTypeError and InvalidArgumentError if the format does not support it.
        """

    def write_context(
        self,
        location: Location,
        stores: Stores,
        schema: Schema,
        spec: PartitionSpec,
        properties: Mapping[str, str],
        write_id: str,
        snapshot: Snapshot | None = None,
    ) -> WriteContext:
        """How files for this table are written; `snapshot` is None for a table not yet committed."""

    def committer(self, location: Location, stores: Stores) -> Committer:
        """`table.commit.FileCommitter(stores)` for a table in a file system."""

    def head(self, change: Change, stores: Stores) -> Snapshot | None:
        """The newest snapshot of the change's ref, found from the planned one; None if there is no table."""

    def winners(self, change: Change, head: Snapshot, stores: Stores) -> Sequence[Winner] | None:
        """The commits after the planned snapshot up to the head, oldest first; None if some are gone."""

    def check(self, change: Change, winners: Sequence[Winner], head: Snapshot, stores: Stores) -> Verdict:
        """The verdict on the change after these concurrent commits."""

    def prepare(self, change: Change, head: Snapshot | None, stores: Stores) -> Attempt:
        """Writes the files that the commit refers to and returns the commit itself, with new bytes at every call."""

    def look_back(self, attempt: Attempt, change: Change, stores: Stores) -> tuple[Published | None, Snapshot | None]:
        """Whether an attempt that was put is part of the table as every reader sees it, and the newest snapshot.

        Put-if-absent also succeeds below a history that was cleaned. `lost` is definite; `unknown` means undecidable;
        None: the listings do not show the attempt yet. May raise anything that reading a table raises.
        """

    def published(self, attempt: Attempt, change: Change, stores: Stores) -> None:
        """After a commit: checkpoints, hints, checksums. Never raises."""

    def history(self, snapshot: Snapshot, stores: Stores, limit: int | None = None) -> Iterator[HistoryEntry]:
        """Commits up to the snapshot, newest first, as far as they are retained."""

    def find_write(self, location: Location, stores: Stores, write_id: str) -> Version | None:
        """The version that the commit with this write id created, or None; searches everything that is retained."""

    def app_version(self, snapshot: Snapshot, stores: Stores, app: str) -> int | None:
        """The newest version that this application recorded with a write (`Change.txn`), or None."""

    def referenced(self, location: Location, stores: Stores) -> Iterator[str]:
        """URIs of every file that a retained version, ref, tag, index or log needs."""

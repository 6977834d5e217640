"""The interface of a table to everything above it: one version of it, or a table that is not created yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self

import pyarrow as pa

from boathouse.table.sizes import SMALL_FILE, Sizes
from boathouse.table.version import TableVersion

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.table.attempt import Attempt, Committer, Published, Winner
    from boathouse.table.change import Change, CloneTable, RestoreTo, SchemaEdit
    from boathouse.table.commit_files import CommitFiles
    from boathouse.table.context import TableContext
    from boathouse.table.location import At, Version
    from boathouse.table.maintenance import Retention
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tally import Tally
    from boathouse.table.tasks import WriteContext
    from boathouse.table.verdict import Verdict
    from boathouse.types import Partitioning, Schema

MapFunction = Callable[[Callable[[Any], Iterable[pa.RecordBatch]], Sequence[Any]], Iterator[pa.RecordBatch]]
"""`map(fn, tasks)`: runs a picklable function over tasks, in process or on executors, results in order of tasks."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What this table supports. `deletes` is how some rows of a unit are deleted. With `lasting_ids` a field id is the
    same column in every version, whatever it is called."""

    deletes: Literal["vectors", "copy-on-write"]
    partitions: bool
    transforms: bool = False
    lasting_ids: bool = False


PROVIDER: Final = "boathouse"
"""Our name as what clusters files."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """`columns`, paths through structs, are those by which a table wants its rows clustered. `provider` gives for FILES
    rows the name of the implementation that clustered each file; null: none did."""

    columns: tuple[tuple[str, ...], ...]
    provider: Callable[[pa.Table], pa.ChunkedArray]


@dataclass(frozen=True, slots=True)
class FeatureDrop:
    """What must be undone before a feature of the format can be dropped: `properties` that turn it off; if `purge`,
    files of which rows are marked as deleted; if `clear`, what the schema says for it, and with that every file
    (`ClearFeature`). `separate`: in a commit before."""

    properties: Mapping[str, str | None]
    purge: bool
    clear: bool
    separate: bool


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit, newest first in a history.

    `version` is None for a commit that made no new version of the rows: an Iceberg commit of metadata alone. `commit`
    is its `CommitId.token`, None where the table no longer records it (Iceberg keeps the names of the last metadata
    files only). `parent` is the version that it followed, whether that is retained or not; None for the table's first.
    `data_change` is false if the commit is known to leave every row as it was. `native` is what the format records of
    the commit under its own names.
    """

    version: Version | None
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
        retained."""

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

    def notes(self, plan: ScanPlan) -> Sequence[str]:
        """What a plan of this snapshot does not show, for `explain()`: how files are read that are not as they should
        be. At most one data file is opened, and none read."""

    def check_writable(self) -> None:
        """Raises if this version of the library may not write this table: features, storage, mixed writers."""

    def check_rewritable(self, operation: str) -> None:
        """Raises if the table's settings forbid `operation` (delete, update, merge) to rewrite units without some of
        their rows."""

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

    def change_files(self, version: Version) -> pa.Table | None:
        """FILES of the rows that the commit of a version recorded as changed, `_change_type` in the files, under this
        schema; None if that commit recorded none."""

    def commit_files(self, version: Version, layout: TableVersion) -> CommitFiles | None:
        """The units that the commit of a version added and removed, from its own record, under the schema and the
        partitioning of `layout`; None if the format's commits do not list files: then versions are compared."""

    def app_version(self, app: str) -> int | None:
        """The newest version that this application recorded with a write (`Change.txn`), or None."""

    def referenced(self) -> Iterator[str]:
        """URIs of every file that a retained version, ref, tag, index or log needs."""

    def restoration(self, at: At) -> RestoreTo | None:
        """The edit that makes the table what it was at an older version or time; None if it already is.

        Raises UnsupportedFeatureError if it is not offered for this format, VersionNotFoundError.
        """

    def compact_log(self, first: Version | None, last: Version | None) -> str:
        """Writes one metadata file that readers may take instead of those of some versions; returns its URI.

        Raises UnsupportedFeatureError if the format has none, InvalidArgumentError, VersionNotFoundError.
        """

    def identifiers(self) -> tuple[tuple[str, ...], ...]:
        """The paths of the columns that identify a row, which an upsert goes by; () if the table names none."""

    def clustering(self) -> Clustering | None:
        """How the table wants its rows to be clustered; None if it does not."""

    def cloning(self, context: TableContext) -> tuple[Target, CloneTable]:
        """A table at `context` that is not created yet, and the edit that makes it a shallow clone of this version.

        Raises UnsupportedFeatureError if that is not offered for this format, or for this table.
        """

    def feature_drop(self, name: str) -> FeatureDrop:
        """What must be undone before the feature can be dropped by `SetFeature`.

        Raises InvalidArgumentError if the table lacks it, UnsupportedFeatureError if it is used, never goes, or if that
        is not offered for this format.
        """

    def retention(self) -> Retention:
        """The rules of vacuum. Raises UnsupportedFeatureError if it is not offered for this format."""

    def inspect(self, name: str) -> pa.Table:
        """A metadata table, one of `table.inspection.NAMES`, with Iceberg's names and types of columns.

        Raises UnsupportedFeatureError naming it if it has no meaning for this format.
        """

    def detail(self) -> Mapping[str, Any]:
        """The content of `info`: protocol, features, engine of the last commit, in the format's own terms."""

"""Lance as a TableFormat: its tables, and those that are not created yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from boathouse.lance import snapshot
from boathouse.lance.file.fields import Field
from boathouse.lance.paths import V2_2, table_version
from boathouse.lance.schema import to_metadata, to_schema
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At, Version
from boathouse.table.snapshot import Capabilities, Feature, HistoryEntry, MapFunction, RowDeletes
from boathouse.table.version import TableVersion
from boathouse.types import Partitioning, Schema
from boathouse.types.partitioning import UNPARTITIONED

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.table import features
    from boathouse.table.attempt import Attempt, Committer, Published, Winner
    from boathouse.table.change import Change
    from boathouse.table.edits import CreateTable, SchemaEdit
    from boathouse.table.format import TableFormat
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tasks import WriteContext
    from boathouse.table.verdict import Verdict

    Offered = features.CommitRecords | features.Examination | features.LiveFiles | features.MetadataTables
    """The features of a version of a table."""


# What only reading rows, history or commits need is imported by the methods that need it: without those modules a table
# is opened in half the time.

_CAPABILITIES = Capabilities(partitions=False)


class LanceTable(LanceSnapshot):
    """One version of a Lance table."""

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def plan(
        self,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
        classify: bool = False,
    ) -> ScanPlan:
        from boathouse.lance import scan

        return scan.plan(self, columns, where, hidden, map, classify)

    def check_writable(self) -> None:
        from boathouse.lance.commit import transaction

        transaction.writable(self)

    def row_deletes(self, operation: str) -> RowDeletes:
        return "vectors"

    def evolve(self, edits: Sequence[SchemaEdit]) -> LanceTable:
        from boathouse.lance.commit import evolve

        return evolve.evolve(self, edits)

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.lance import write

        version = table_version(self.manifest, self.location.uri)
        return write.write_context(self.context, self.schema, self.manifest.fields, version, write_id)

    def newest(self) -> LanceTable:
        return snapshot.refreshed(self)

    def find_write(self, write_id: str) -> Version | None:
        from boathouse.lance import history

        return history.find_write(self.context, write_id)

    def committer(self) -> Committer:
        from boathouse.lance.commit.landed import LanceCommitter

        return LanceCommitter(self.context)

    def winners(self, since: TableVersion) -> Sequence[Winner] | None:
        from boathouse.lance.commit import conflict

        return conflict.winners(since, self)

    def check(self, change: Change, winners: Sequence[Winner]) -> Verdict:
        from boathouse.lance.commit import conflict

        return conflict.check(change, winners, self)

    def prepare(self, change: Change) -> Attempt:
        from boathouse.lance.commit import transaction

        return transaction.prepare(change, self.context, self)

    def look_back(self, attempt: Attempt, change: Change) -> tuple[Published | None, LanceTable]:
        from boathouse.lance.commit import landed

        return landed.look_back(attempt, change, snapshot.refreshed(self, attempt))

    def published(self, attempt: Attempt, change: Change) -> None:
        """Nothing to do: the newest manifest is found by listing, never by the hint."""

    def history(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        from boathouse.lance import history

        return history.history(self, limit)

    def app_version(self, app: str) -> int | None:
        from boathouse.lance import history

        return history.app_version(self, app)

    def offers(self, feature: type[Feature]) -> Feature | None:
        from boathouse.table import features

        found: Offered | None = None
        match feature:
            case features.CommitRecords:
                from boathouse.lance.commit.commit_files import LanceCommitRecords

                found = LanceCommitRecords(self)
            case features.Examination:
                from boathouse.lance.examine import LanceExamination

                found = LanceExamination(self)
            case features.LiveFiles:
                from boathouse.lance.history import LanceLiveFiles

                found = LanceLiveFiles(self.context)
            case features.MetadataTables:
                from boathouse.lance.inspect import LanceTables

                found = LanceTables(self)
        return cast("Feature | None", found)


@dataclass(frozen=True)
class LanceDraft:
    """A Lance table that is not created yet; `fields` are those that its first commit assigns."""

    context: TableContext
    create: CreateTable
    fields: tuple[Field, ...]
    schema: Schema

    format = "lance"

    @property
    def partitioning(self) -> Partitioning:
        return UNPARTITIONED

    @property
    def properties(self) -> Mapping[str, str]:
        return self.create.properties

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.lance import write

        return write.write_context(self.context, self.schema, self.fields, V2_2, write_id)

    def newest(self) -> LanceTable:
        return snapshot.load(self.context, NEWEST, LanceTable)

    def find_write(self, write_id: str) -> Version | None:
        from boathouse.lance import history

        return history.find_write(self.context, write_id)

    def committer(self) -> Committer:
        from boathouse.lance.commit.landed import LanceCommitter

        return LanceCommitter(self.context)

    def prepare(self, change: Change) -> Attempt:
        from boathouse.lance.commit import transaction

        return transaction.prepare(change, self.context)

    def look_back(self, attempt: Attempt, change: Change) -> tuple[Published | None, LanceTable]:
        from boathouse.lance.commit import landed

        return landed.look_back(attempt, change, self.newest())

    def published(self, attempt: Attempt, change: Change) -> None:
        """Nothing to do, as for a table."""

    def offers(self, feature: type[Feature]) -> None:
        """None so far."""


class LanceFormat:
    """Lance tables in a folder or a bucket."""

    name = "lance"
    capabilities = _CAPABILITIES

    def detect(self, context: TableContext) -> bool:
        return snapshot.detect(context)

    def open(self, context: TableContext, at: At = NEWEST) -> LanceTable:
        return snapshot.load(context, at, LanceTable)

    def create(self, context: TableContext, create: CreateTable) -> LanceDraft:
        from boathouse.lance import write

        fields = write.created(context, create)
        schema = to_schema(fields, to_metadata(create.schema), where=context.location.uri)
        return LanceDraft(context, create, fields, schema)


FORMAT: TableFormat = LanceFormat()

"""Iceberg's tables as snapshots, and the format that opens and creates them: each method delegates to another
module."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self, cast

from boathouse.errors import BoathouseError, MixedWritersError, UnsafeStorageError, UnsupportedFeatureError
from boathouse.iceberg import snapshot
from boathouse.iceberg.metadata.partitions import unknown_transforms
from boathouse.iceberg.paths import HINT, METADATA_FOLDER, list_metadata, version_of
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.storage import join
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At, Version
from boathouse.table.snapshot import Capabilities, Feature, HistoryEntry, MapFunction, RowDeletes
from boathouse.table.version import TableVersion
from boathouse.types import Partitioning, Schema

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.iceberg.metadata.versions import FormatVersion
    from boathouse.table import features
    from boathouse.table.attempt import Attempt, Committer, Published, Winner
    from boathouse.table.change import Change
    from boathouse.table.edits import CreateTable, SchemaEdit
    from boathouse.table.format import TableFormat
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tasks import WriteContext
    from boathouse.table.verdict import Verdict

    Offered = (
        features.CommitRecords
        | features.Examination
        | features.Identifiers
        | features.LiveFiles
        | features.MetadataTables
        | features.PlanNotes
    )
    """The features of a version of a table."""


# What only reading rows, history or commits need is imported by the methods that need it: without those modules a table
# is opened in half the time.

log = logging.getLogger("boathouse")

CAPABILITIES: Final = Capabilities(partitions=True, transforms=True, lasting_ids=True)


class IcebergTable(IcebergSnapshot):
    """One version of an Iceberg table."""

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def plan(
        self,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
        classify: bool = False,
    ) -> ScanPlan:
        from boathouse.iceberg import scan

        return scan.plan(self, columns, where, hidden, map, classify)

    def check_writable(self) -> None:
        check_writable(self)

    def row_deletes(self, operation: str) -> RowDeletes:
        from boathouse.iceberg import write

        return write.row_deletes(self.metadata, operation)

    def evolve(self, edits: Sequence[SchemaEdit]) -> Self:
        from boathouse.iceberg.commit import evolve

        return evolve.evolve(self, edits)

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.iceberg import write
        from boathouse.iceberg.commit import defaults, row_ids

        context = write.write_context(self, self.paths.root, write_id)
        computed = defaults.computed(self.schema, self.token)
        return replace(context, carried=row_ids.carried(self.metadata), computed=computed)

    def newest(self) -> IcebergTable:
        return snapshot.newest(self)

    def winners(self, since: TableVersion) -> Sequence[Winner] | None:
        from boathouse.iceberg.commit import conflict

        return conflict.winners(since, self)

    def check(self, change: Change, winners: Sequence[Winner]) -> Verdict:
        from boathouse.iceberg.commit import conflict

        return conflict.check(change, winners, self)

    def prepare(self, change: Change) -> Attempt:
        from boathouse.iceberg.commit import transaction

        return transaction.prepare(change, self)

    def committer(self) -> Committer:
        from boathouse.table.commit import FileCommitter

        return self.context.catalog or FileCommitter(self.stores)

    def look_back(self, attempt: Attempt, change: Change) -> tuple[Published | None, IcebergTable | None]:
        newest = snapshot.newest(self, attempt)
        # A catalog's answer is final.
        return ("won", newest) if self.context.catalog is not None else look_back(attempt, newest)

    def published(self, attempt: Attempt, change: Change) -> None:
        if self.context.catalog is None:
            write_hint(attempt, self.context)

    def history(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        from boathouse.iceberg import history

        return history.history(self, limit)

    def find_write(self, write_id: str) -> Version | None:
        from boathouse.iceberg import history

        return history.find_write(self.context, write_id)

    def app_version(self, app: str) -> int | None:
        from boathouse.iceberg import history

        return history.app_version(self, app)

    def offers(self, feature: type[Feature]) -> Feature | None:
        from boathouse.table import features

        found: Offered | None = None
        match feature:
            case features.CommitRecords:
                from boathouse.iceberg.commit.commit_files import IcebergCommitRecords

                found = IcebergCommitRecords(self)
            case features.Examination:
                from boathouse.iceberg.examine import IcebergExamination

                found = IcebergExamination(self)
            case features.Identifiers:
                from boathouse.iceberg.metadata.schema_rules import identifiers

                columns = identifiers(self.schema)
                found = features.Identifiers(columns) if columns else None
            case features.LiveFiles:
                from boathouse.iceberg.history import IcebergLiveFiles

                found = IcebergLiveFiles(self)
            case features.MetadataTables:
                from boathouse.iceberg.inspect.tables import IcebergTables

                found = IcebergTables(self)
            case features.PlanNotes:
                from boathouse.iceberg.scan import FileNotes

                found = FileNotes()
        return cast("Feature | None", found)


@dataclass(frozen=True, eq=False)
class IcebergDraft:
    """An Iceberg table that is not created yet; `schema` and `partitioning` have the ids that it will have."""

    context: TableContext
    created: CreateTable
    schema: Schema
    partitioning: Partitioning
    version: FormatVersion
    format: str = "iceberg"

    @property
    def properties(self) -> Mapping[str, str]:
        return self.created.properties

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.iceberg import write

        return write.write_context(self, self.context.location.uri, write_id)

    def newest(self) -> IcebergTable:
        return snapshot.load(self.context, NEWEST, IcebergTable)

    def find_write(self, write_id: str) -> Version | None:
        from boathouse.iceberg import history

        return history.find_write(self.context, write_id)

    def committer(self) -> Committer:
        from boathouse.table.commit import FileCommitter

        return FileCommitter(self.context.stores)

    def prepare(self, change: Change) -> Attempt:
        from boathouse.iceberg.commit import transaction

        spec = self.partitioning.current
        return transaction.create(change, self.context, self.created, self.schema, spec, self.version)

    def look_back(self, attempt: Attempt, change: Change) -> tuple[Published | None, IcebergTable | None]:
        return look_back(attempt, self.newest())

    def published(self, attempt: Attempt, change: Change) -> None:
        write_hint(attempt, self.context)

    def offers(self, feature: type[Feature]) -> None:
        """None so far."""


class IcebergFormat:
    """Finds, opens and creates Iceberg tables."""

    name = "iceberg"
    capabilities = CAPABILITIES

    def detect(self, context: TableContext) -> bool:
        named = context.location.metadata
        if named is not None:
            return ".metadata.json" in named
        found = list_metadata(context)
        return bool(found.file_system or found.catalog)

    def open(self, context: TableContext, at: At = NEWEST) -> IcebergTable:
        return snapshot.load(context, at, IcebergTable)

    def create(self, context: TableContext, create: CreateTable) -> IcebergDraft:
        from boathouse.iceberg import write

        schema, spec, version = write.create(context, create)
        return IcebergDraft(context, create, schema, Partitioning((spec,), spec.id), version)


def look_back(attempt: Attempt, head: IcebergTable) -> tuple[Published | None, IcebergTable | None]:
    """Whether the table with this head includes the attempt, and the head."""
    from boathouse.iceberg.commit import landed

    return landed.includes(attempt, head), head


def write_hint(attempt: Attempt, context: TableContext) -> None:
    """Writes version-hint.text, where other readers start their search; a failure is harmless."""
    number = version_of(attempt.uri)
    try:
        storage, key = context.stores.resolve(join(context.location.uri, METADATA_FOLDER, HINT))
        storage.put(key, str(number).encode())
    except BoathouseError as error:
        log.debug("could not write %s: %s", HINT, error)


def check_writable(found: IcebergSnapshot) -> None:
    """Raises if this library may not write the table, because of its location, other writers, or its features."""
    from boathouse.iceberg.metadata import rules
    from boathouse.iceberg.metadata.schema_rules import check_lineage_names

    metadata = found.metadata
    where = metadata.uri
    if found.location.metadata is not None:
        raise UnsupportedFeatureError(
            "a table opened by its metadata file is read only", where=where, advice="open the table's folder to write"
        )
    managed = found.context.catalog is not None
    if not managed and version_of(where) is None:
        raise MixedWritersError(
            "the table belongs to a catalog, and only the catalog may make a new version current",
            where=where,
            advice='open it by its name in the catalog: bh.open("catalog.namespace.table")',
        )
    if found.paths.moved:
        raise UnsupportedFeatureError(
            f"the table was relocated from {metadata.location}, which its metadata still names",
            where=where,
            advice="copy its rows into a new table",
        )
    unknown = unknown_transforms(metadata.partitioning.current)
    if unknown:
        raise UnsupportedFeatureError(f"writing with partition transform {unknown[0]} is not offered", where=where)
    if metadata.document.get("encryption-keys") or metadata.properties.get("encryption.key-id"):
        raise UnsupportedFeatureError("Iceberg table encryption is not offered", where=where)
    rules.check(metadata.document, where)
    if metadata.format.row_lineage:
        check_lineage_names(found.schema, where)
    storage, _ = found.stores.resolve(found.location.uri)
    if not managed and not storage.atomic_create:
        raise UnsafeStorageError("this store does not support put-if-absent", where=found.location.uri)


FORMAT: Final[TableFormat] = IcebergFormat()

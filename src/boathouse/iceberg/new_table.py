"""An Iceberg table that is not created yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic, cast

from boathouse.iceberg import write
from boathouse.iceberg.adoption import IcebergAdoption
from boathouse.iceberg.commit.commits import IcebergFirstCommit
from boathouse.iceberg.metadata.versions import FormatVersion
from boathouse.iceberg.row_modes import of_profile
from boathouse.iceberg.snapshot import CAPABILITIES, S, load
from boathouse.table.attempt import Attempt
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.features import Adoption
from boathouse.table.location import NEWEST
from boathouse.table.snapshot import Capabilities, Feature
from boathouse.table.tasks import WriteContext
from boathouse.types import Partitioning, Schema


@dataclass(frozen=True, eq=False)
class NewIceberg(Generic[S]):
    """See `table.snapshot.Target`. `schema` and `partitioning` have the ids that the table will have; once it is
    created, it is opened as a snapshot of class `kind`."""

    context: TableContext
    create: CreateTable
    schema: Schema
    partitioning: Partitioning
    version: FormatVersion
    kind: type[S]
    format: str = "iceberg"
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    @classmethod
    def of(cls, context: TableContext, create: CreateTable, kind: type[S]) -> NewIceberg[S]:
        """Raises what `TableFormat.create` raises."""
        schema, spec, version = write.create(context, create)
        return cls(context, of_profile(create), schema, Partitioning((spec,), spec.id), version, kind)

    @property
    def properties(self) -> Mapping[str, str]:
        return self.create.properties

    @property
    def commits(self) -> IcebergFirstCommit[S]:
        spec = self.partitioning.current
        return IcebergFirstCommit(self.context, self.newest, self.create, self.schema, spec, self.version)

    def write_context(self, write_id: str) -> WriteContext:
        spec, root = self.partitioning.current, self.context.location.uri
        return write.write_context(self.context, self.schema, spec, self.properties, root, write_id)

    def newest(self, put: Attempt | None = None) -> S:
        return load(self.context, NEWEST, self.kind)

    def offers(self, feature: type[Feature]) -> Feature | None:
        """Adoption alone."""
        if feature is not Adoption:
            return None
        return cast("Feature", IcebergAdoption.of_new(self.write_context(""), self.properties, self.version))

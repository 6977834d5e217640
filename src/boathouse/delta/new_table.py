"""A Delta table that is not created yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, cast

from boathouse.delta import write
from boathouse.delta.actions import text_of
from boathouse.delta.commit.adopt import DeltaAdoption
from boathouse.delta.commit.commits import DeltaCommits
from boathouse.delta.features.support import ICEBERG_COMPAT
from boathouse.delta.snapshot import CAPABILITIES, S, load
from boathouse.table.attempt import Attempt
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.features import Adoption
from boathouse.table.location import NEWEST
from boathouse.table.snapshot import Capabilities, Feature, Target
from boathouse.table.tasks import WriteContext
from boathouse.types import Partitioning, PartitionSpec, Schema


@dataclass(frozen=True)
class NewDelta(Generic[S]):
    """See `table.snapshot.Target`. Once it is created, it is opened as a snapshot of class `kind`."""

    context: TableContext
    schema: Schema
    spec: PartitionSpec
    create: CreateTable
    kind: type[S]
    format: str = "delta"
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    @classmethod
    def of(cls, context: TableContext, create: CreateTable, kind: type[S]) -> NewDelta[S]:
        """Raises what `TableFormat.create` raises."""
        create = write.profiled(create, context.location.uri)
        return cls(context, *write.create(context.location.uri, create), create, kind)

    @property
    def partitioning(self) -> Partitioning:
        return Partitioning((self.spec,))

    @property
    def properties(self) -> Mapping[str, str]:
        return {k: text_of(v) for k, v in self.create.properties.items()}

    @property
    def commits(self) -> DeltaCommits[S]:
        return DeltaCommits(self.context, self.newest)

    def write_context(self, write_id: str) -> WriteContext:
        context = write.write_context(self.context, self.schema, self.spec, self.create.properties, write_id)
        asked = any(self.properties.get(key, "").lower() == "true" for key in ICEBERG_COMPAT)
        clustered = {**context.options, "clustered": self.create.cluster_by}
        return replace(context, materialized=asked, options=clustered)

    def newest(self, put: Attempt | None = None) -> S:
        return load(self.context, NEWEST, self.kind)

    def offers(self, feature: type[Feature]) -> Feature | None:
        return cast("Feature | None", DeltaAdoption(cast("Target", self)) if feature is Adoption else None)

"""A Lance table that is not created yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Generic

from boathouse.lance import write
from boathouse.lance.commit.commits import LanceCommits
from boathouse.lance.file.fields import Field
from boathouse.lance.manifests.names import store_name
from boathouse.lance.manifests.versions import recent
from boathouse.lance.paths import V2_2
from boathouse.lance.schema import to_metadata, to_schema
from boathouse.lance.snapshot import CAPABILITIES, S, load
from boathouse.lance.table_options import options_of
from boathouse.table.attempt import Attempt
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.location import NEWEST
from boathouse.table.snapshot import Capabilities, Feature
from boathouse.table.tasks import WriteContext
from boathouse.types import Partitioning, Schema
from boathouse.types.partitioning import UNPARTITIONED


@dataclass(frozen=True)
class NewLance(Generic[S]):
    """See `table.snapshot.Target`. `fields` are those that the first commit assigns; once the table is created, it is
    opened as a snapshot of class `kind`."""

    context: TableContext
    create: CreateTable
    fields: tuple[Field, ...]
    schema: Schema
    kind: type[S]
    format: str = "lance"
    partitioning: ClassVar[Partitioning] = UNPARTITIONED
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    @classmethod
    def of(cls, context: TableContext, create: CreateTable, kind: type[S]) -> NewLance[S]:
        """Raises what `TableFormat.create` raises."""
        fields = write.created(context, create)
        if store_name(context) is not None:
            recent(context)  # a store that knows a table here is an error before anything is written
        schema = to_schema(fields, to_metadata(create.schema), where=context.location.uri)
        return cls(context, create, fields, schema, kind)

    @property
    def properties(self) -> Mapping[str, str]:
        return options_of(self.create)[0]

    @property
    def commits(self) -> LanceCommits[S]:
        return LanceCommits(self.context, self.newest)

    def write_context(self, write_id: str) -> WriteContext:
        return write.write_context(self.context, self.schema, self.fields, V2_2, write_id)

    def newest(self, put: Attempt | None = None) -> S:
        return load(self.context, NEWEST, self.kind)

    def offers(self, feature: type[Feature]) -> None:
        """None so far."""

"""How columns are written into data files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boathouse.lance.file.schema import tree
from boathouse.lance.file.storable import check_storable
from boathouse.lance.paths import table_version
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.lance.write import write_context
from boathouse.table.tasks import WriteContext
from boathouse.types import Schema


@dataclass(frozen=True, slots=True)
class LanceColumnFiles:
    """See `table.features.ColumnFiles`."""

    snapshot: LanceSnapshot

    def column_context(self, write_id: str, columns: Sequence[str]) -> WriteContext:
        head = self.snapshot
        where = head.location.uri
        version = table_version(head.manifest, where)
        nodes = [node for node in tree(head.manifest.fields) if node.name in columns]
        check_storable(nodes, version, where)
        schema = Schema(tuple(f for f in head.schema if f.name in columns))
        fields = [below.field for node in nodes for below in node.walk()]
        return write_context(head.context, schema, fields, version, write_id)

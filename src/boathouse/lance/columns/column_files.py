"""How columns are written into data files of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.file.schema import Node, tree
from boathouse.lance.file.storable import check_storable
from boathouse.lance.paths import table_version
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.lance.write import write_context
from boathouse.table.tasks import WriteContext
from boathouse.types import Schema
from boathouse.types.data_types import field_of_path


def _of_path(node: Node, path: tuple[str, ...]) -> Node:
    """The node with nothing below it but the field at the path; all of it without one."""
    if not path:
        return node
    return replace(node, children=tuple(_of_path(c, path[1:]) for c in node.children if c.name == path[0]))


@dataclass(frozen=True, slots=True)
class LanceColumnFiles:
    """See `table.features.ColumnFiles`."""

    snapshot: LanceSnapshot

    def column_context(self, write_id: str, columns: Sequence[tuple[str, ...]]) -> WriteContext:
        head = self.snapshot
        where = head.location.uri
        version = table_version(head.manifest, where)
        if version == "2.0" and any(len(path) > 1 for path in columns):
            raise UnsupportedFeatureError(
                "a field of a struct in a file of its own, in a table of version 2.0, which pylance does not read",
                where=where,
                advice="cast the whole column, or write the rows into a new table",
            )
        paths = {path[0]: path[1:] for path in columns}
        nodes = [_of_path(node, paths[node.name]) for node in tree(head.manifest.fields) if node.name in paths]
        check_storable(nodes, version, where)
        schema = Schema(tuple(field_of_path(f, paths[f.name]) for f in head.schema if f.name in paths))
        fields = [below.field for node in nodes for below in node.walk()]
        return write_context(head.context, schema, fields, version, write_id)

"""Shallow clones as a feature: a new table of the files of another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from boathouse.errors import ForeignPathError, InvalidArgumentError
from boathouse.lance.fragments import units_of
from boathouse.lance.manifests import features
from boathouse.lance.new_table import NewLance
from boathouse.lance.paths import base_root
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import uris
from boathouse.table.context import TableContext
from boathouse.table.edits import CloneTable, CreateTable
from boathouse.table.snapshot import Target


@dataclass(frozen=True, slots=True)
class LanceClone:
    """See `table.features.Clonable`."""

    snapshot: LanceSnapshot
    alters: ClassVar[bool] = False

    def cloning(self, context: TableContext) -> tuple[Target, CloneTable]:
        """Raises InvalidArgumentError if one table were inside the other, ForeignPathError for files in a store of
        another kind, UnsupportedFeatureError for what is not written here."""
        source = self.snapshot
        root, target = source.location.uri, context.location.uri
        features.check_writable(source.manifest, root)
        if uris.relative(target, root) is not None or uris.relative(root, target) is not None:
            raise InvalidArgumentError(
                f"one table would be inside the other: {root}", where=target, advice="pass another path"
            )
        for place in (root, *(base_root(p) for p in source.manifest.base_paths)):
            if uris.foreign(place, target):
                raise ForeignPathError(
                    "the clone would name files in a store of another kind",
                    where=place,
                    advice="clone into a store of the same kind, or write the rows into a new table",
                )
        table = CreateTable(source.schema, (), source.properties)
        new = NewLance(context, table, source.manifest.fields, source.schema, type(source))
        return cast("Target", new), CloneTable(source, units_of(source.manifest, root, source.rows_of))

"""Rewriting manifests: the lists of a table's files are sorted by partition; no file is written but these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.features import FileLists, required


@dataclass(frozen=True, slots=True)
class ManifestsRewritten:
    """In one commit; nothing is committed if there is one list already. Whatever is committed meanwhile, the lists of
    the version that it follows are written anew.

    Raises UnsupportedFeatureError for a format without such lists, InvalidArgumentError for a spec or a field that is
    not there.
    """

    spec: int | None = None
    fields: tuple[str, ...] | None = None
    operation: ClassVar[Operation] = "replace"

    def plan(self, start: Start) -> WritePlan:
        edit = required(start.snapshot, FileLists, "rewrite_manifests").rewriting(self.spec, self.fields)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            if edit is None:
                return Planned(None)
            return Planned(start.change("replace", (edit,), parameters={"rewrite": "manifests"}, data_change=False))

        return WritePlan((), finish, dry=Planned(None))

"""A change of ours beside a concurrent commit: what several operations ask, and how they answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from boathouse.lance.manifests.messages import Manifest
from boathouse.lance.operations.base import Theirs
from boathouse.table.change import Change
from boathouse.table.edits import RemoveFiles, SetDeletes, SetProperties
from boathouse.table.verdict import Conflict, Rebase, Replan, Stop, Verdict


@dataclass(frozen=True)
class Pair:
    """Our change, and the manifests on which it was planned and would be committed."""

    change: Change
    planned: Manifest
    head: Manifest

    @cached_property
    def touched(self) -> frozenset[int]:
        """The fragments that ours removes, or rows of them."""
        units = [e.units for e in self.change.all(RemoveFiles)] + [e.units for e in self.change.all(SetDeletes)]
        return frozenset(i for table in units for i in table.column("unit").to_pylist())

    @cached_property
    def properties(self) -> frozenset[str]:
        """The properties that ours sets or removes."""
        return frozenset(key for edit in self.change.all(SetProperties) for key in edit.properties)

    def after_fragments(self, theirs: Theirs, except_in: str = "") -> Verdict:
        """Ours removes rows of fragments: theirs must not have changed them, but by an operation `except_in`."""
        if theirs.operation.begins_anew:
            return self.began_anew(theirs)
        hit = sorted(self.touched & theirs.touched)
        name = theirs.operation.name
        if not hit or name in ("merge", "project", except_in):
            return Rebase()
        kind = "delete-delete" if name == "delete" else "concurrent-delete"
        return self.replan(kind, theirs, f"a {name} changed the same fragments: {', '.join(map(str, hit))}", hit)

    def same_properties(self, theirs: Theirs, keys: frozenset[str]) -> Stop | None:
        """The conflict if theirs, which set the properties `keys`, set one of ours."""
        both = sorted(self.properties & keys)
        text = f"the same properties were set: {', '.join(both)}"
        return self.stop("metadata-changed", theirs, text) if both else None

    def schema(self, theirs: Theirs) -> Verdict:
        """Files written for the planned schema fit the head's: its fields still exist, new ones may be null."""
        before = {f.id: f for f in self.planned.fields}
        names = {(f.parent_id, f.name) for f in self.planned.fields}
        for now in self.head.fields:
            then = before.get(now.id)
            if then is None:
                fits = now.nullable and (now.parent_id, now.name) not in names
            else:
                fits = then.logical_type == now.logical_type and (now.nullable or not then.nullable)
            if not fits:
                return self.replan("schema-changed", theirs, f"column `{now.name}` was changed")
        return Rebase()

    def schema_replan(self, theirs: Theirs) -> Replan:
        return self.replan("schema-changed", theirs, f"a {theirs.operation.name} changed the schema")

    def began_anew(self, theirs: Theirs) -> Stop:
        text = f"version {theirs.version} is a {theirs.operation.name} of the whole table"
        return self.stop("table-overwritten", theirs, text)

    def stop(self, kind: str, theirs: Theirs, message: str) -> Stop:
        return Stop((Conflict(kind, theirs.version, message),))

    def replan(self, kind: str, theirs: Theirs, message: str, fragments: Sequence[int] = ()) -> Replan:
        paths = {f.id: f.files[0].path for f in self.planned.fragments if f.files}
        return Replan((Conflict(kind, theirs.version, message, tuple(paths[i] for i in fragments if i in paths)),))

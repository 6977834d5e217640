"""What every operation of a transaction is asked, and a change of ours beside a concurrent commit: what several
operations ask of it, and how they answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from boathouse.lance.manifests.messages import DataFragment, Manifest
from boathouse.table.change import Change
from boathouse.table.edits import RemoveFiles, SetDeletes, SetProperties, SetTransaction
from boathouse.table.verdict import Conflict, Rebase, Replan, Stop, Verdict

if TYPE_CHECKING:
    from boathouse.lance.operations.build import Build, Built


class Operation:
    """An operation as the transaction of a commit has it, by whomever. `name` is its field in Transaction."""

    name: ClassVar[str]
    replaces_table: ClassVar[bool] = False
    """Whether the table after it is another one, whatever was in it before."""
    keeps_rows: ClassVar[bool] = False
    """Whether the table has the same rows after it."""
    only_adds: ClassVar[bool] = False
    """Whether the rows of the fragments that it brings are all that it changes."""

    def touched(self, message: Any) -> frozenset[int]:
        """The fragments that it changed or removed, without new ones."""
        return frozenset()

    def brought(self, message: Any) -> Iterable[DataFragment]:
        """The fragments that it made, or gave other deletions; new ones have the id 0."""
        return ()

    def replaced(self, message: Any) -> Iterable[DataFragment]:
        """The fragments in place of which it made others, as they were before it, as far as it names them."""
        return ()

    def before_any(self, pair: Pair, theirs: Theirs) -> Verdict | None:
        """What it means to every change of ours that would follow it; None if that depends on ours."""
        return None


@dataclass(frozen=True, slots=True)
class Theirs:
    """A concurrent commit of an operation that is known."""

    version: int
    operation: Operation
    message: Any

    @property
    def touched(self) -> frozenset[int]:
        return self.operation.touched(self.message)


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
        if theirs.operation.replaces_table:
            return self.table_replaced(theirs)
        hit = sorted(self.touched & theirs.touched)
        name = theirs.operation.name
        if not hit or name == except_in:
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

    def table_replaced(self, theirs: Theirs) -> Stop:
        text = f"version {theirs.version} is a {theirs.operation.name} of the whole table"
        return self.stop("table-overwritten", theirs, text)

    def stop(self, kind: str, theirs: Theirs, message: str) -> Stop:
        return Stop((Conflict(kind, theirs.version, message),))

    def replan(self, kind: str, theirs: Theirs, message: str, fragments: Sequence[int] = ()) -> Replan:
        paths = {f.id: f.files[0].path for f in self.planned.fragments if f.files}
        return Replan((Conflict(kind, theirs.version, message, tuple(paths[i] for i in fragments if i in paths)),))


class OurOperation(Operation, ABC):
    """One that changes of ours become."""

    @abstractmethod
    def describes(self, change: Change) -> bool:
        """Whether it can say all that the change does."""

    @abstractmethod
    def build(self, build: Build) -> Built:
        """The manifest after the change, and the transaction's operation: a merge where rows come with new columns."""

    @abstractmethod
    def after(self, pair: Pair, theirs: Theirs) -> Verdict:
        """Whether it may follow theirs as it is."""


def kinds_of(change: Change) -> set[type]:
    """The kinds of a change's edits; application transactions go with every operation."""
    return {type(e) for e in change.edits} - {SetTransaction}


def ids_of(fragments: Iterable[DataFragment]) -> frozenset[int]:
    return frozenset(f.id for f in fragments)

"""Branches and tags: created, moved, dropped. No row of a version changes, and no file is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import pyarrow as pa

from boathouse.errors import AlreadyExistsError, InvalidArgumentError, UnsupportedFeatureError, VersionNotFoundError
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table import features
from boathouse.table.change import Operation
from boathouse.table.edits import DropRef, RefEdit, SetRef
from boathouse.table.features import required
from boathouse.table.location import Version
from boathouse.table.refs import MAIN, Ref, RefType, Retention

Presence = Literal["absent", "present", "either", "absent-or-kept"]
"""What must be there before: nothing of that name; the branch or tag; either; or nothing, and else it stays as it
is."""


def known(start: Start, operation: str) -> features.Refs:
    """The refs of the planned version. Raises UnsupportedFeatureError if the table's format has none."""
    return required(start.snapshot, features.Refs, operation)


MOVE: Final = (
    "drop the branch and create it again, or restore() an older version of it; rows of another branch are written by "
    "append() or merge()"
)
RETAIN: Final = "leave these settings out: what a branch or tag names is retained until it is dropped"


def shared(start: Start, operation: str, advice: str = MOVE) -> features.Refs:
    """The refs of the planned version. Raises UnsupportedFeatureError if each branch has versions of its own: then none
    can be moved to those of another one, or retained by rules of its own."""
    found = known(start, operation)
    if not found.shared:
        raise UnsupportedFeatureError(
            f"{operation} is not offered for {start.snapshot.format} tables, whose branches have versions of their own",
            where=str(start.snapshot.context),
            advice=advice,
        )
    return found


def named(start: Start, name: str, type: RefType | None, operation: str) -> Ref:
    """The ref of this name. Raises VersionNotFoundError, and InvalidArgumentError if it is of the other type."""
    found = known(start, operation).named()
    if name not in found:
        there = ", ".join(sorted(found)) or "none"
        raise VersionNotFoundError(f"no {type or 'branch or tag'} {name!r}", advice=f"there are {there}")
    if type not in (None, found[name].type):
        raise InvalidArgumentError(f"{name!r} is a {found[name].type}, not a {type}", advice="name another one")
    return found[name]


def ref_change(start: Start, operation: Operation, edit: RefEdit | None, **parameters: object) -> WritePlan:
    """The plan of one edit; of none, nothing is committed."""

    def finish(outcomes: Sequence[pa.Table]) -> Planned:
        if edit is None:
            return Planned(None)
        words = {name: str(value) for name, value in parameters.items() if value is not None}
        return Planned(start.change(operation, (edit,), parameters=words, data_change=False))

    return WritePlan((), finish)


@dataclass(frozen=True, slots=True)
class RefSet:
    """A branch or tag is created at a version (None: the planned one), or moved to it. Settings that are not given stay
    as they are. Raises AlreadyExistsError, VersionNotFoundError, InvalidArgumentError."""

    name: str
    type: RefType
    version: Version | None
    retention: Retention
    before: Presence = "absent"
    operation: ClassVar[Operation] = "set-ref"

    def plan(self, start: Start) -> WritePlan:
        refs = known(start, f"a {self.type}")
        self.retention.check(self.name, self.type)
        there = refs.named().get(self.name)
        if there is not None and self.before == "absent-or-kept" and there.type == self.type:
            return ref_change(start, "set-ref", None)
        if there is not None and self.before in ("absent", "absent-or-kept"):
            raise AlreadyExistsError(f"there is a {there.type} {self.name!r}", advice="drop it, or replace it")
        if there is not None or self.before == "present":
            there = named(start, self.name, self.type, f"a {self.type}")
        if self.retention != Retention():
            shared(start, f"retention of a {self.type}", RETAIN)
        if there is not None and self.type == "branch":
            shared(start, "replacing a branch")
        version = start.snapshot.version if self.version is None else self.version
        made = refs.at(self.name, self.type, version)
        made = made.retaining(self.retention if there is None else self.retention.over(there.retention))
        edit = None if made == there else SetRef(made, there)
        return ref_change(start, "set-ref", edit, name=self.name, type=self.type, version=version)


@dataclass(frozen=True, slots=True)
class RefRetained:
    """What is retained of a branch or tag; settings that are not given stay as they are."""

    name: str
    retention: Retention
    operation: ClassVar[Operation] = "set-ref"

    def plan(self, start: Start) -> WritePlan:
        operation = "retention of a branch or tag"
        shared(start, operation, RETAIN)
        there = named(start, self.name, None, operation)
        self.retention.check(self.name, there.type)
        made = there.retaining(self.retention.over(there.retention))
        edit = None if made == there else SetRef(made, there)
        return ref_change(start, "set-ref", edit, name=self.name, type=there.type, version=there.version)


@dataclass(frozen=True, slots=True)
class RefDropped:
    """A branch or tag goes. Raises VersionNotFoundError if it is not there, unless `if_exists`, and
    InvalidArgumentError for main and for the branch that the table is open at."""

    name: str
    type: RefType
    if_exists: bool = False
    operation: ClassVar[Operation] = "drop-ref"

    def plan(self, start: Start) -> WritePlan:
        refs = known(start, f"a {self.type}")
        if self.if_exists and self.name not in refs.named():
            return ref_change(start, "drop-ref", None)
        there = named(start, self.name, self.type, f"a {self.type}")
        if self.name == MAIN:
            raise InvalidArgumentError("the branch main cannot be dropped", advice="roll it back instead")
        if self.name == start.snapshot.ref:
            raise InvalidArgumentError(f"the table is open at {self.name!r}", advice="open it without ref= to drop it")
        refs.check_drop(there)
        return ref_change(start, "drop-ref", DropRef(there), name=self.name, type=self.type)


@dataclass(frozen=True, slots=True)
class FastForwarded:
    """A branch moves on to the version of another ref, which comes from it: no version is lost.

    Raises VersionNotFoundError for a name that is not there, InvalidArgumentError if the branch has versions that the
    other ref does not come from.
    """

    branch: str
    to: str
    operation: ClassVar[Operation] = "fast-forward"

    def plan(self, start: Start) -> WritePlan:
        shared(start, "fast_forward")
        branch = named(start, self.branch, "branch", "fast_forward")
        target = named(start, self.to, None, "fast_forward")
        if branch.version == target.version:
            return ref_change(start, "fast-forward", None)
        line = known(start, "fast_forward").ancestors(target.version)
        if all(a.version != branch.version for a in line):
            raise InvalidArgumentError(
                f"{self.to!r} does not come from version {branch.version}, where the branch {self.branch!r} is",
                advice="cherry-pick what is missing, or replace the branch",
            )
        edit = SetRef(branch.at(target.version), branch)
        return ref_change(start, "fast-forward", edit, branch=self.branch, to=self.to, version=target.version)

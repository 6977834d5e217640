"""Roll back: a version that is retained becomes the head of a branch again; no file is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boathouse.errors import InvalidArgumentError, VersionNotFoundError
from boathouse.ops.table.refs import known, named, ref_change, shared
from boathouse.ops.write import Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import SetRef
from boathouse.table.location import Version
from boathouse.table.refs import MAIN, Ancestor


@dataclass(frozen=True, slots=True)
class RolledBack:
    """The branch that the table is open at goes back to one of its ancestors: a version, or the newest one before a
    time. Raises VersionNotFoundError, InvalidArgumentError for a version that is none."""

    version: Version | None = None
    before_ms: int | None = None
    operation: ClassVar[Operation] = "rollback"

    def plan(self, start: Start) -> WritePlan:
        shared(start, "rollback")
        branch = named(start, start.snapshot.ref or MAIN, "branch", "rollback")
        line = known(start, "rollback").ancestors(branch.version)
        version = self._ancestor(line, branch.name, start)
        edit = None if version == branch.version else SetRef(branch.at(version), branch)
        return ref_change(start, "rollback", edit, branch=branch.name, version=version)

    def _ancestor(self, line: Sequence[Ancestor], branch: str, start: Start) -> Version:
        if self.version is None:
            assert self.before_ms is not None
            older = [a for a in line if a.timestamp_ms < self.before_ms]
            if not older:
                raise VersionNotFoundError(
                    f"no retained version of {branch} is older than {self.before_ms}",
                    advice="history() lists the retained ones",
                )
            return max(older, key=lambda a: a.timestamp_ms).version
        known(start, "rollback").ancestors(self.version)
        if all(a.version != self.version for a in line):
            raise InvalidArgumentError(
                f"version {self.version} is no ancestor of version {line[0].version}, where {branch} is",
                advice="refs.set_current() makes any retained version the current one",
            )
        return self.version


@dataclass(frozen=True, slots=True)
class CurrentSet:
    """Any retained version, or that of a ref, becomes the head of the branch that the table is open at."""

    version: Version | None = None
    ref: str | None = None
    operation: ClassVar[Operation] = "rollback"

    def plan(self, start: Start) -> WritePlan:
        branch = start.snapshot.ref or MAIN
        there = shared(start, "set_current").named().get(branch)
        if there is None:
            raise VersionNotFoundError(f"the branch {branch!r} has no version yet", advice="append rows first")
        version = self.version
        if version is None:
            assert self.ref is not None
            version = named(start, self.ref, None, "set_current").version
        known(start, "set_current").ancestors(version)
        edit = None if version == there.version else SetRef(there.at(version), there)
        return ref_change(start, "rollback", edit, branch=branch, version=version)

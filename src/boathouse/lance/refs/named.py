"""The tags and branches of a table as a feature: each branch is a table of its own, with its own version numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from boathouse.errors import InvalidArgumentError
from boathouse.lance.manifests.versions import list_versions, missing_version, recent
from boathouse.lance.refs.files import check_name, list_tags, of_branch, of_main, read_branches
from boathouse.lance.snapshot import LanceSnapshot, open_version
from boathouse.table.context import TableContext
from boathouse.table.location import Version
from boathouse.table.refs import MAIN, Ancestor, Ref, RefType


@dataclass(frozen=True, slots=True)
class LanceRefs:
    """See `table.features.Refs`. The files are read when they are asked for: no version says them."""

    snapshot: LanceSnapshot
    shared: ClassVar[bool] = False

    @property
    def root(self) -> TableContext:
        """Where the table is, of whichever branch the snapshot is."""
        return of_main(self.snapshot.context, self.snapshot.manifest.branch)

    def named(self) -> Mapping[str, Ref]:
        root = self.root
        listed = recent(root)
        found = {MAIN: Ref(MAIN, "branch", listed[0].version)} if listed else {}
        for name, branch in sorted(read_branches(root).items()):
            own = recent(of_branch(root, name))  # none if its creation was interrupted
            found[name] = Ref(name, "branch", own[0].version if own else branch.parent_version, branch=name)
        tags = sorted(list_tags(root).items())
        return {**found, **{name: Ref(name, "tag", tag.version, branch=tag.branch) for name, tag in tags}}

    def ancestors(self, version: Version) -> tuple[Ancestor, ...]:
        """The retained versions of the branch, and before those the ones of the branch that it comes from: it begins
        with a copy of one of them, under the same number."""
        self._check_retained(version)
        root, branches = self.root, read_branches(self.root)
        found: list[Ancestor] = []
        name, below = self.snapshot.manifest.branch, version
        line = self.snapshot.context
        while True:
            kept = [v for v in list_versions(line) if v.version <= below]
            for file in kept:
                made = open_version(line, file, LanceSnapshot)
                found.append(Ancestor(file.version, made.timestamp_ms))
            if name is None or name not in branches:
                return tuple(found)
            below = min(branches[name].parent_version, kept[-1].version - 1 if kept else below)
            name = branches[name].parent
            line = root if name is None else of_branch(root, name)

    def at(self, name: str, type: RefType, version: Version) -> Ref:
        check_name(name, type)
        self._check_retained(version)
        return Ref(name, type, version, branch=name if type == "branch" else self.snapshot.manifest.branch)

    def check_drop(self, ref: Ref) -> None:
        """Tags and branches name versions of a branch, which go with it."""
        if ref.type == "tag":
            return
        branches = read_branches(self.root)
        gone = branches.get(ref.name)
        needed = [f"the tag {name!r}" for name, tag in list_tags(self.root).items() if tag.branch == ref.name]
        if gone is not None:
            needed += [f"the branch {b.name!r}" for b in branches.values() if b.comes_from(gone)]
        if needed:
            raise InvalidArgumentError(
                f"the branch {ref.name!r} has versions that others name: {', '.join(sorted(needed))}",
                where=self.root.location.uri,
                advice="drop these first",
            )

    def _check_retained(self, version: Version) -> None:
        """Raises VersionNotFoundError."""
        snapshot = self.snapshot
        if version == snapshot.version:
            return
        kept = list_versions(snapshot.context)
        if all(v.version != version for v in kept):
            raise missing_version(snapshot.location, version, kept)

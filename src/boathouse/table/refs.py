"""Branches and tags: names of versions, and how long they last when older versions expire."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from boathouse.errors import InvalidArgumentError
from boathouse.table.location import Version

MAIN: Final = "main"
"""The branch that every table has; it never expires."""
RefType = Literal["branch", "tag"]


@dataclass(frozen=True, slots=True)
class Retention:
    """What of a branch or tag is retained when versions expire; None: what the table says of all.

    Of a branch, at least `min_snapshots_to_keep` of its versions, and those of the last `max_snapshot_age_ms`
    milliseconds; the branch or tag itself goes once its version is older than `max_ref_age_ms`.
    """

    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def over(self, before: Retention) -> Retention:
        """These settings, and those of `before` where there is none."""
        return Retention(
            before.min_snapshots_to_keep if self.min_snapshots_to_keep is None else self.min_snapshots_to_keep,
            before.max_snapshot_age_ms if self.max_snapshot_age_ms is None else self.max_snapshot_age_ms,
            before.max_ref_age_ms if self.max_ref_age_ms is None else self.max_ref_age_ms,
        )

    def check(self, name: str, type: RefType) -> None:
        """Raises InvalidArgumentError for settings that such a ref does not have, or that are not positive."""
        of_branches = {
            "min_snapshots_to_keep": self.min_snapshots_to_keep,
            "max_snapshot_age_ms": self.max_snapshot_age_ms,
        }
        for setting, value in {**of_branches, "max_ref_age_ms": self.max_ref_age_ms}.items():
            if value is None:
                continue
            top = (1 << 31) - 1 if setting == "min_snapshots_to_keep" else (1 << 63) - 1
            if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= top:
                raise InvalidArgumentError(f"{setting}={value!r} is not a positive number", advice="pass one, or None")
            if type == "tag" and setting in of_branches:
                raise InvalidArgumentError(
                    f"{setting} is for branches, and {name!r} is a tag, which names one version",
                    advice="pass max_ref_age_ms alone",
                )
        if name == MAIN and self.max_ref_age_ms is not None:
            raise InvalidArgumentError("the branch main never expires", advice="leave max_ref_age_ms out")


@dataclass(frozen=True, slots=True)
class Ref:
    """A branch, whose commits move it on, or a tag, which stays at its version.

    Where each branch has version numbers of its own (Lance), `branch` is the one that `version` is of; None: main.
    """

    name: str
    type: RefType
    version: Version
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None
    branch: str | None = None

    @property
    def retention(self) -> Retention:
        """What is retained of it; see `Retention`."""
        return Retention(self.min_snapshots_to_keep, self.max_snapshot_age_ms, self.max_ref_age_ms)

    def at(self, version: Version) -> Ref:
        """The same ref at another version."""
        return replace(self, version=version)

    def retaining(self, retention: Retention) -> Ref:
        """The same ref with these settings."""
        return replace(
            self,
            min_snapshots_to_keep=retention.min_snapshots_to_keep,
            max_snapshot_age_ms=retention.max_snapshot_age_ms,
            max_ref_age_ms=retention.max_ref_age_ms,
        )


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A version from which a branch comes, and its time in milliseconds since 1970."""

    version: Version
    timestamp_ms: int

"""The verdict on a change after concurrent commits."""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.table.location import Version


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a concurrent commit conflicts. `kind` is a stable word, such as `concurrent-append` or `metadata-changed`."""

    kind: str
    version: Version | None
    message: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebase:
    """The change can be prepared on the head unchanged."""


@dataclass(frozen=True, slots=True)
class Replan:
    """Rows must be computed or written again from the head."""

    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class Stop:
    """The operation fails; the user has to decide."""

    conflicts: tuple[Conflict, ...]


Verdict = Rebase | Replan | Stop

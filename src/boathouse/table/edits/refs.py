"""Edits of branches and tags."""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.table.refs import Ref


@dataclass(frozen=True, slots=True)
class SetRef:
    """The branch or tag is there, at its version and with its retention. `replaces` is what was there before."""

    ref: Ref
    replaces: Ref | None = None


@dataclass(frozen=True, slots=True)
class DropRef:
    """A branch or tag goes; its versions stay until they expire, where branches share them."""

    replaces: Ref

    @property
    def name(self) -> str:
        return self.replaces.name


RefEdit = SetRef | DropRef

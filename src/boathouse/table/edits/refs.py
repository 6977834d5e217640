"""Edits of branches and tags."""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.table.refs import Ref


@dataclass(frozen=True, slots=True)
class SetRef:
    """The branch or tag is there, at its version and with its retention."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class DropRef:
    """The branch or tag of this name goes; its versions stay until they expire."""

    name: str


RefEdit = SetRef | DropRef

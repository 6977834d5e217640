"""How far a stream has read a table: small JSON documents that survive in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from boathouse.errors import InvalidArgumentError
from boathouse.table.location import Version

WHOLE: Final = -1
"""Every unit of a version: how a position after it is written, so that equal positions are equal documents."""
INITIAL: Final = {"begin": "initial"}
"""The offset before anything is read: where that is, is decided with the first offset after it."""


@dataclass(frozen=True, slots=True)
class Position:
    """After the first `units` units of what a version gives, in the order of their paths: the units that its commit
    added, or, with `snapshot`, all units of the table at that version."""

    version: Version
    units: int = WHOLE
    snapshot: bool = False

    @property
    def open(self) -> bool:
        """Whether the version has been read in part."""
        return self.units != WHOLE

    def document(self) -> dict[str, Any]:
        return {"version": self.version, "index": self.units, "snapshot": self.snapshot}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        return cls(int(document["version"]), int(document["index"]), bool(document["snapshot"]))


@dataclass(frozen=True, slots=True)
class Offset:
    """A position in a table, which `format` and its identity `table` name, and `begin`, where the stream began.

    A first batch that failed is read again from `begin`: "the newest version" is another one by then. `changes`: the
    stream gives the changes of commits, so that units of a position are counted in another way.
    """

    format: str
    table: str
    changes: bool
    begin: Position
    at: Position

    def moved(self, at: Position) -> Offset:
        return replace(self, at=at)

    def document(self) -> dict[str, Any]:
        """As JSON with strings, integers and booleans; its order is fixed, since Spark compares texts."""
        found = {"format": self.format, "table": self.table, "changes": self.changes, **self.at.document()}
        return {**found, "begin": self.begin.document()}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self | None:
        """None for INITIAL. Raises InvalidArgumentError."""
        if document == INITIAL:
            return None
        try:
            begin, at = Position.of(document["begin"]), Position.of(document)
            return cls(str(document["format"]), str(document["table"]), bool(document["changes"]), begin, at)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{document} is not an offset of a stream of this library",
                advice="start the query with a checkpoint of its own",
            ) from error

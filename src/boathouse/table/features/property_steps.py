"""What must be committed before a property can be set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse.table.change import Operation
    from boathouse.table.edits import Edit


@dataclass(frozen=True, slots=True)
class Step:
    """A commit of one edit, which changes no row."""

    operation: Operation
    edit: Edit


class PropertySteps(Protocol):
    """Of a snapshot."""

    def before(self, properties: Mapping[str, str | None]) -> Step | None:
        """The next commit that must come before these properties are set; None if they can be. Raises
        InvalidArgumentError for properties that exclude each other."""

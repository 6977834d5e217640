"""How the metadata lists a table's files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse.table.edits import RewriteManifests


class FileLists(Protocol):
    """Of a snapshot whose files are listed in several documents, which readers skip by partition."""

    def rewriting(self, spec: int | None, fields: Sequence[str] | None) -> RewriteManifests | None:
        """The edit that sorts the lists of files of a partition spec (None: the current one) by these of its fields
        (None: all); None if there is nothing to gain. Raises InvalidArgumentError for a spec or a field that is not
        there."""

"""The method of a table that lists what is wrong with it, or could be better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args

from boathouse.api.arguments import located
from boathouse.api.detail import detail
from boathouse.errors import InvalidArgumentError
from boathouse.ops.handle import Handle
from boathouse.table.features import Depth, Examination
from boathouse.table.findings import Finding

SMALL_FILES: Final = 20
"""So many files below 16 MiB, in a table of which they are most, are worth a compaction."""
DELETED: Final = 0.1
"""The share of deleted rows among those in files, from which reading pays for them noticeably."""


class Examining:
    """The part of Table that examines it."""

    _handle: Handle

    @located
    def examine(self, depth: Depth = "files") -> list[Finding]:
        """What is wrong with this version, or could be better: `damage` that readers or a part of them stop at,
        `hazard` for what others or the next writer may refuse or misread, `hint` for what makes it slow or large, each
        with its `code`, `message`, the file in question (`where`), `advice` and, where a method mends it, `repair`.
        With the depth `metadata` no data file is looked up.

        Raises InvalidArgumentError for another depth, StorageError.

        >>> [finding.code for finding in t.examine()]
        []
        """
        if depth not in get_args(Depth):
            raise InvalidArgumentError(f"depth={depth!r}", advice="pass 'metadata' or 'files'")
        examination = self._handle.snapshot.offers(Examination)
        found = [] if examination is None else list(examination.examine(depth))
        return found if any(f.severity == "damage" for f in found) else [*found, *hints(detail(self._handle))]


def hints(about: Mapping[str, Any]) -> Iterator[Finding]:
    """What the numbers of `detail` say about a table's speed."""
    files, small = about["files"], about["small_files"]
    if small >= SMALL_FILES and small > files / 2:
        message = f"{small:,} of {files:,} files are smaller than 16 MiB: each costs requests, and an entry to plan"
        yield Finding("table.small-files", "hint", message, advice="Rewrite them as larger ones.", repair="optimize")
    rows, deleted = about["rows"], about["deleted_rows"]
    if rows is not None and deleted and deleted >= DELETED * (rows + deleted):
        message = f"{deleted:,} deleted rows are still in files, beside {rows:,}: they are read, and left out"
        yield Finding("table.deleted-rows", "hint", message, advice="Rewrite their files without them.", repair="purge")

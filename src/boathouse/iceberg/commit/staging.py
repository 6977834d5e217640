"""Write, audit, publish: snapshots that are staged under a name and are of no branch, until they are published.

The names of the summary's entries, and the rules, are those of the reference (`WapUtil`, `CherryPickOperation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from boathouse.errors import InvalidArgumentError, VersionNotFoundError
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.table.change import Change

ENABLED: Final = "write.wap.enabled"
STAGED: Final = "wap.id"
PUBLISHED: Final = "published-wap-id"
SOURCE: Final = "source-snapshot-id"


def is_staged(change: Change, properties: Mapping[str, str], makes_snapshot: bool) -> bool:
    """Whether the snapshot of this change stays beside the branches: its metadata names it. Raises InvalidArgumentError
    where that cannot be."""
    if STAGED not in change.metadata:
        return False
    if not stages(properties):
        raise InvalidArgumentError(
            f"{STAGED} stages a snapshot, and the table does not",
            advice=f'set_properties({{"{ENABLED}": "true"}}) first',
        )
    if not makes_snapshot:
        raise InvalidArgumentError(
            f"{change.operation} makes no snapshot that could be staged", advice=f"leave {STAGED} out"
        )
    return True


def stages(properties: Mapping[str, str]) -> bool:
    """Whether the table has writes staged that ask for it."""
    return properties.get(ENABLED, "false").strip().lower() == "true"


def staged_version(metadata: TableMetadata, name: str) -> int:
    """The snapshot that is staged under a name. Raises VersionNotFoundError, InvalidArgumentError for several."""
    found = [id for id, s in metadata.snapshots.items() if summary_of(s).get(STAGED) == name]
    if not found:
        raise VersionNotFoundError(f"no snapshot is staged as {name!r}", where=metadata.uri)
    if len(found) > 1:
        raise InvalidArgumentError(
            f"{len(found)} snapshots are staged as {name!r}", where=metadata.uri, advice="cherry-pick one by its id"
        )
    return found[0]


def summary_of(snapshot: Mapping[str, Any]) -> Mapping[str, str]:
    return snapshot.get("summary") or {}

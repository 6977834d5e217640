"""Apache Iceberg: tables in file systems and of catalogs (apache/iceberg, format/spec.md)."""

import re
from collections.abc import Sequence

MARK = "metadata"
"""A folder that every table has: where it is missing, the format is not loaded."""
TITLE = "an Iceberg table"
_COMMIT_MS = 3_600_000
"""The longest assumed time between the first and the last file of a commit."""
_OURS = re.compile(r".*(\.metadata\.json.*|\.puffin|\.stats|\.crc)|version-hint.*")
"""Other software uses the name of the folder too."""
_BEGUN = re.compile(r"[0-9a-f]{32}-m\d+\.avro|snap-\d+-0-[0-9a-f-]+\.avro")
"""Manifests and the list of our first commit of a table, before the version that is the last thing it writes."""


def is_remains(name: str, age_ms: int) -> bool:
    """Whether a file below the mark shows that a table existed, rather than that a commit was started.

    Manifests are written before the first version: another writer may be creating the table. One of ours that was
    killed is followed by the same writer, started again.
    """
    if _BEGUN.fullmatch(name):
        return False
    if name.endswith(".avro"):
        return age_ms > _COMMIT_MS
    return not name.endswith(".tmp") and _OURS.fullmatch(name) is not None


def is_begun(names: Sequence[str]) -> bool:
    """Whether a writer of ours began to create a table."""
    return any(_BEGUN.fullmatch(name.removeprefix(f"{MARK}/")) for name in names)

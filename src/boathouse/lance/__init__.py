"""Lance tables: manifests, transactions, deletion files; the codec of the data files is in `file`."""

from collections.abc import Sequence

MARK = "_versions"
"""A folder that every table has: where it is missing, the format is not loaded."""
TITLE = "a Lance table"


def is_remains(name: str, age_ms: int) -> bool:
    """Whether a file below the mark shows that a table existed, rather than that a commit was started."""
    return not name.endswith(".tmp") and ".manifest-" not in name


def is_begun(names: Sequence[str]) -> bool:
    """Whether a writer began to create a table: its transaction is written before the first version."""
    return "_transactions/" in names

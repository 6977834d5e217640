"""Delta Lake tables (delta-io/delta, PROTOCOL.md)."""

MARK = "_delta_log"
"""A folder that every table has: where it is missing, the format is not loaded."""
TITLE = "a Delta table"


def is_remains(name: str, age_ms: int) -> bool:
    """Whether a file below the mark shows that a table existed, rather than that a commit was started."""
    return not name.endswith(".tmp") and not name.startswith(".tmp/")

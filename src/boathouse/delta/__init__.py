"""Delta Lake tables (delta-io/delta, PROTOCOL.md)."""

import re
from collections.abc import Sequence

MARK = "_delta_log"
"""A folder that every table has: where it is missing, the format is not loaded."""
TITLE = "a Delta table"
_PART = re.compile(r"part-\d{5}-[0-9a-f-]{36,}\.c000\.(?:\w+\.)?parquet")


def is_remains(name: str, age_ms: int) -> bool:
    """Whether a file below the mark shows that a table existed, rather than that a commit was started."""
    return not name.endswith(".tmp") and not name.startswith(".tmp/")


def is_begun(names: Sequence[str]) -> bool:
    """Whether a writer of Delta began to create a table: plain Parquet files of Spark are named `-c000`."""
    return any(_PART.fullmatch(name) for name in names)

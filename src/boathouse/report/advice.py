"""What makes a table slow, beside the findings of its examination: judged by what its statistics say of its files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from boathouse.report.facts import Facts
from boathouse.table.findings import Finding

FILES: Final = 20
"""With fewer files it hardly matters which of them a condition reads."""
WIDE: Final = 0.5
"""A condition on a column that reads more than this share of the files is not helped by their bounds."""
SKEW: Final = 10


def advice(facts: Facts) -> Iterator[Finding]:
    """Hints, none of which is of a table with a few files."""
    files = len(facts.files.sizes)
    if files < FILES:
        return
    if facts.columns and not any(c.covered for c in facts.columns):
        yield Finding(
            "table.no-statistics",
            "hint",
            "no file records the bounds of a column: whatever a condition says, every file of a partition is read",
            advice="Rewrite the table with statistics on, or partition it by what queries ask for.",
        )
        return
    narrow = [c for c in facts.columns if c.read is not None and c.read <= WIDE]
    if not narrow and not facts.partitions:
        text = f"no column's bounds tell the {files:,} files apart: a condition on any column reads most of them"
        yield Finding(
            "table.unordered", "hint", text,
            advice="Rewrite it in the order of the columns that queries filter by: boathouse optimize --zorder-by a,b",
        )  # fmt: skip
    sizes = [p.bytes for p in facts.partitions]
    if len(sizes) >= FILES and sizes[0] > SKEW * (sum(sizes) / len(sizes)):
        name, share = facts.partitions[0].name, sizes[0] / max(sum(sizes), 1)
        text = f"the partition {name} has {share:.0%} of the bytes of {len(sizes):,} partitions"
        yield Finding("table.skewed", "hint", text, advice="Partition by more columns, or by buckets, if tasks wait.")

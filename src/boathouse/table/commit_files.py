"""What one commit did to the files of a table, as its own record tells."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """`units` are FILES rows, without statistics, of the units in which rows are new, `deletes` the DELETES rows that
    they refer to. Units that the commit only wrote again, as a compaction does, do not count.

    `removed`: units with rows that are gone, or that `units` has again with other deletes. `relaid`: the commit may
    have changed the schema or the partitioning; then there are units only under the layout of its own version.
    """

    units: pa.Table
    deletes: pa.Table
    removed: bool
    relaid: bool

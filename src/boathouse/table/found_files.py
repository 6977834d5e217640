"""Parquet files that no table wrote, to become units of one as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from boathouse.parquet.written_stats import LeafColumn


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Columns of equal length: one element per file.

    `paths` are raw, relative to the table's root. `partitions` are the values of each partition field, typed. `leaves`
    are the statistics of every leaf of the columns that are no partition columns, in the table's types; what the
    footers do not say for certain is unknown.
    """

    paths: Sequence[str]
    sizes: Sequence[int]
    modified_ms: Sequence[int]
    rows: Sequence[int]
    partitions: Sequence[pa.Array]
    leaves: Sequence[LeafColumn]

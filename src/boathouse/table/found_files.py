"""Data files that no table wrote, to become units of one as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from boathouse.parquet.stats import schema_leaves
from boathouse.types import Schema

if TYPE_CHECKING:
    from boathouse.parquet.written_stats import LeafColumn

Path = tuple[str, ...]
Places = Mapping[Path, Path | None]
"""Where leaves of a table are in files, by their paths: None is null in every row, of what is left out nothing is
known."""


@dataclass(frozen=True)
class FooterGroup:
    """The footers of files whose columns are the same, with the same field ids, one element per file: `files` are their
    numbers, ascending; `stats` is `struct<"0": struct<lower, upper, nulls, size>, ...>` over the leaves outside lists
    and maps, `offsets` are where row groups or stripes start."""

    schema: Schema
    uris: Sequence[str]
    files: pa.Array
    formats: pa.Array
    rows: pa.Array
    offsets: pa.Array
    stats: pa.StructArray

    @property
    def first(self) -> int:
        return int(self.files[0].as_py())

    @cached_property
    def leaves(self) -> dict[Path, pa.StructArray]:
        """The statistics of each leaf outside lists and maps, by its path in the files."""
        paths = [leaf.path for leaf in schema_leaves(self.schema) if not leaf.repeated]
        return {path: self.stats.field(str(i)) for i, path in enumerate(paths)}


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Columns of equal length: one element per file.

    `paths` are raw, relative to the folder in which the files were found; `uris` say where they are. `partitions` are
    the values of each partition field, typed. `leaves` are the statistics of every leaf of the table, in its types;
    what the footers do not say for certain is unknown. `formats` are those of `table.units`, `offsets` are where row
    groups or stripes start.
    """

    paths: Sequence[str]
    uris: Sequence[str]
    sizes: Sequence[int]
    modified_ms: Sequence[int]
    rows: Sequence[int]
    partitions: Sequence[pa.Array]
    leaves: Sequence[LeafColumn]
    formats: pa.Array
    offsets: pa.Array

"""Columns of which a row holds where a value is, and not the value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from boathouse.table.features.random_access import Numbers
from boathouse.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Span:
    """The bytes of a value: `size` from `offset` on in a file, or all of it (None)."""

    uri: str
    offset: int
    size: int | None


class Blobs(Protocol):
    """Of one version."""

    def for_rows(self) -> Snapshot:
        """The version as rows are written from it: blobs in its rows are those of `types.blobs`. The version itself, if
        it has no such column."""

    def check(self, column: str) -> None:
        """Raises InvalidArgumentError for a column that holds its values itself."""

    def spans(self, column: str, units: Numbers, stored: pa.ChunkedArray) -> Sequence[Span | None]:
        """Where the values are that rows of these units (their numbers, as in `Places`) name in what is `stored`, None
        for null. Raises CorruptTableError, ForeignPathError, UnsupportedFeatureError."""

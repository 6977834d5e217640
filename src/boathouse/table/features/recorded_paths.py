"""How the metadata of a table names its data files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa


class RecordedPaths(Protocol):
    """Of a snapshot whose metadata may spell a file's path in another way than its URI."""

    def names(self, units: pa.Table) -> Sequence[str]:
        """The paths of planned FILES rows as the metadata has them, by which files of row deletes must name them."""

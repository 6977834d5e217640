"""The columns by which a table wants its rows clustered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

PROVIDER: Final = "boathouse"
"""Our name as what clusters files."""


@dataclass(frozen=True, slots=True)
class Clustering:
    """`columns`, paths through structs, are those by which a table wants its rows clustered. `provider` gives for FILES
    rows the name of the implementation that clustered each file; null: none did."""

    columns: tuple[tuple[str, ...], ...]
    provider: Callable[[pa.Table], pa.ChunkedArray]

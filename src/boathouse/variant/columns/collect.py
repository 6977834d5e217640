"""A string column that grows batch by batch in one buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits.unaligned import Bytes, Ints

_OFFSET_LIMIT = 2**31 - 1


class TextColumn:
    """`rows` strings; rows that are never added are null."""

    def __init__(self, rows: int) -> None:
        self.sizes = np.zeros(rows + 1, np.int64)
        self.valid = np.zeros(rows, np.bool_)
        self.size = 0
        self._open(0)

    def _open(self, capacity: int) -> None:
        # Not the default pool: it asks for huge pages, whose first touch can cost more than everything else.
        self.buffer = pa.allocate_buffer(capacity, pa.system_memory_pool(), resizable=True)
        self.view: Bytes = np.frombuffer(self.buffer, np.uint8)

    def add(self, rows: Ints, data: Bytes, offsets: npt.NDArray[Any]) -> None:
        """Adds the strings of `rows`, which follow all rows added before: `data`, and the rows' offsets in it."""
        need = self.size + len(data)
        if need > len(self.view):
            # The size if all remaining rows are like these, and a little more.
            share = len(data) / max(len(rows), 1) * (len(self.valid) - len(rows))
            self._grow(max(need + int(share * 1.05), len(self.view) + len(self.view) // 2))
        self.view[self.size : need] = data
        self.size = need
        self.sizes[rows + 1] = np.diff(offsets)
        self.valid[rows] = True

    def _grow(self, capacity: int) -> None:
        past = self.view[: self.size]
        kept = self.buffer
        self._open(capacity)
        self.view[: self.size] = past
        del kept

    def finish(self) -> pa.Array:
        """A string array; large_string beyond 2 GiB. The bytes are not checked to be UTF-8."""
        wide = self.size > _OFFSET_LIMIT
        offsets = np.cumsum(self.sizes, dtype=np.int64 if wide else np.int32)
        self.buffer.resize(self.size, shrink_to_fit=False)
        valid = None if self.valid.all() else pa.py_buffer(np.packbits(self.valid, bitorder="little"))
        type = pa.large_string() if wide else pa.string()
        return pa.Array.from_buffers(type, len(self.valid), [valid, pa.py_buffer(offsets), self.buffer])

"""Pieces of one byte array, one per chunk, and the error for bytes that violate the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from boathouse.lance.file.plain import Bytes, Ints


class Broken(Exception):
    """Bytes that violate the format; the reader adds file, column and page."""


class NotRead(Exception):
    """A legal encoding that is not supported; the reader adds file, column and page."""


@dataclass(frozen=True)
class Segments:
    """Piece i is data[starts[i]:starts[i] + sizes[i]]; the constructor checks that it is within `data`."""

    data: Bytes
    starts: Ints
    sizes: Ints

    def __post_init__(self) -> None:
        if len(self.starts) and (
            int(self.starts.min()) < 0
            or int(self.sizes.min()) < 0
            or int((self.starts + self.sizes).max()) > len(self.data)
        ):
            raise Broken("a buffer of a chunk extends beyond the chunk")

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, skip: int | Ints, sizes: Ints) -> Segments:
        """The same pieces from `skip` bytes on, `sizes` long. Raises Broken if they are shorter."""
        if len(self) and int((skip + sizes - self.sizes).max()) > 0:
            raise Broken("a buffer of a chunk is too short for its values")
        return Segments(self.data, self.starts + skip, sizes)

    def rows(self, size: int) -> Bytes:
        """The first `size` bytes of every piece, shape (n, size)."""
        n = len(self)
        if n and int(self.sizes.min()) < size:
            raise Broken("a buffer of a chunk is too short for its values")
        if n == 0 or size == 0:
            return np.empty((n, size), np.uint8)
        stride = int(self.starts[1] - self.starts[0]) if n > 1 else size
        if stride > 0 and (n < 3 or (np.diff(self.starts) == stride).all()):
            return np.lib.stride_tricks.as_strided(self.data[int(self.starts[0]) :], (n, size), (stride, 1))
        if size <= 64:
            return self.data[self.starts[:, None] + np.arange(size)]
        return np.stack([self.data[start : start + size] for start in self.starts.tolist()])

    def joined(self) -> Bytes:
        """All pieces, concatenated."""
        n = len(self)
        if n > 1 and (self.sizes[:-1] == self.sizes[0]).all():
            size, last = int(self.sizes[0]), int(self.sizes[-1])
            out = np.empty(size * (n - 1) + last, np.uint8)
            head = Segments(self.data, self.starts[:-1], self.sizes[:-1])
            out[: size * (n - 1)].reshape(n - 1, size)[...] = head.rows(size)
            out[size * (n - 1) :] = self.data[int(self.starts[-1]) : int(self.starts[-1]) + last]
            return out
        return np.frombuffer(b"".join(self.views()), np.uint8)

    def views(self) -> list[Any]:
        data = self.data.data
        return [data[a : a + size] for a, size in zip(self.starts.tolist(), self.sizes.tolist())]


def column(rows: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """Rows of bytes as one number each."""
    return np.ascontiguousarray(rows).view(dtype).reshape(-1)


def unsigned(data: Bytes, width: int) -> npt.NDArray[Any]:
    """Bytes as little-endian numbers of 1, 2, 4 or 8 bytes. Raises Broken if the length is not a multiple."""
    if width not in (1, 2, 4, 8) or len(data) % width:
        raise Broken(f"{len(data)} bytes of {width}-byte numbers")
    return np.frombuffer(data.data, f"<u{width}") if len(data) else np.empty(0, f"<u{width}")

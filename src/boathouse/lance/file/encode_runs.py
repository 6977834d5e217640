"""Runs of equal values: their values, and their lengths of one byte (file format, "Run Length Encoding")."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from boathouse.lance.file import messages as m
from boathouse.lance.file.encode_values import Chunked, flat_encoding

_LOG: Final = 11
"""2,048 values a chunk, as readers expect at most."""
_LONGEST: Final = 255


def count_runs(values: npt.NDArray[Any]) -> int:
    """How many runs there are, of whatever length."""
    return int(np.count_nonzero(values[1:] != values[:-1])) + 1 if len(values) else 0


def chunk_runs(values: npt.NDArray[Any], most: int) -> Chunked:
    """The runs of each chunk of values: unsigned words of the size of the values. No run crosses the end of a chunk."""
    log = min(_LOG, most)
    first = np.empty(len(values), np.bool_)
    first[0] = True
    np.not_equal(values[1:], values[:-1], out=first[1:])
    first[:: 1 << log] = True
    starts = np.flatnonzero(first)
    lengths = np.diff(starts, append=len(values))
    pieces = -(-lengths // _LONGEST)
    if int(pieces.max()) > 1:
        starts = np.repeat(starts, pieces) + _LONGEST * (np.arange(int(pieces.sum())) - np.repeat(
            np.cumsum(pieces) - pieces, pieces
        ))  # fmt: skip
        lengths = np.diff(starts, append=len(values))
    words = values[starts]
    edges = np.searchsorted(starts, np.arange(0, len(values), 1 << log))
    ends = np.append(edges[1:], len(starts)).tolist()
    raw, short = words.view(np.uint8).data, lengths.astype(np.uint8).data
    size = values.dtype.itemsize
    runs = [(a, b) for a, b in zip(edges.tolist(), ends, strict=True)]
    encoding = m.Rle(values=flat_encoding(size * 8), run_lengths=flat_encoding(8))
    return Chunked(
        log,
        [[raw[a * size : b * size] for a, b in runs], [short[a:b] for a, b in runs]],
        m.CompressiveEncoding(rle=encoding),
    )

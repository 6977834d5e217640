"""FSST decompression, vectorised: bytes that stand for symbols of up to 8 bytes, 255 before a literal byte."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
ESCAPE = 255
_SLAB = 1 << 16  # codes at a time, so that their positions stay in the cache
_NOTHING = 512  # the code of an escape byte itself: it expands to nothing


class Table:
    """Symbols by code: `symbols` is (n, 8) bytes, `lengths` n numbers from 1 to 8. Raises ValueError."""

    def __init__(self, symbols: Bytes, lengths: Bytes) -> None:
        n = len(lengths)
        if n > ESCAPE or symbols.shape != (n, 8) or (n and not 1 <= int(lengths.min()) <= int(lengths.max()) <= 8):
            raise ValueError(f"a table of {n} symbols")
        self.size = n
        self._lengths = np.zeros(_NOTHING + 1, np.uint8)
        self._lengths[:n] = lengths
        self._lengths[256:_NOTHING] = 1
        words = np.zeros((_NOTHING + 1, 8), np.uint8)
        words[:n] = symbols
        words[256:_NOTHING, 0] = np.arange(256)
        self._words = words.view("<u8").reshape(-1)

    def decode(self, codes: Bytes, offsets: Ints) -> tuple[Ints, Bytes]:
        """The values codes[offsets[i]:offsets[i + 1]] as (offsets, bytes). Raises ValueError on unknown codes."""
        indices: npt.NDArray[np.uint8] | npt.NDArray[np.uint16] = codes
        lengths = self._lengths
        counts = np.bincount(codes, minlength=256) if len(codes) else np.zeros(256, np.int64)
        if counts[ESCAPE]:
            indices = self._literals(codes)
            counts = np.bincount(indices, minlength=_NOTHING + 1)
        unknown = counts[self.size : 256]
        if unknown.any():
            raise ValueError(f"code {self.size + int(np.flatnonzero(unknown)[0])} has no symbol")
        total = int((counts * lengths[: len(counts)]).sum())
        out = np.empty(total + 8, np.uint8)
        ends = np.empty(len(offsets), np.int64)
        done = seen = 0
        for first in range(0, len(indices), _SLAB):
            part = indices[first : first + _SLAB]
            sizes = lengths.take(part)
            at = np.cumsum(sizes, dtype=np.int64)
            size = int(at[-1])
            at -= sizes
            # Each symbol is stored as 8 bytes, from the first to the last: the excess of each is overwritten by the
            # next.
            view = np.lib.stride_tricks.as_strided(out[done : done + 8].view("<u8"), (size + 1,), (1,))
            view[at] = self._words.take(part)
            until = int(np.searchsorted(offsets, first + len(part)))
            ends[seen:until] = done + at[offsets[seen:until] - first]
            seen = until
            done += size
        ends[seen:] = done
        return ends, out[:total]

    def _literals(self, codes: Bytes) -> npt.NDArray[np.uint16]:
        """16-bit codes: escapes are removed, the bytes after them become 256 + byte.

        In a run of 255s every other one, from the first, is an escape; values never end in an escape, so a run may
        continue from one value to the next.
        """
        at = np.flatnonzero(codes == ESCAPE)
        opens = np.ones(len(at), np.bool_)
        opens[1:] = np.diff(at) != 1
        run_start = at[np.maximum.accumulate(np.where(opens, np.arange(len(at)), 0))]
        escapes = at[(at - run_start) % 2 == 0]
        if escapes[-1] + 1 >= len(codes):
            raise ValueError("an escape without a byte after it")
        out = codes.astype(np.uint16)
        out[escapes + 1] += 256
        out[escapes] = _NOTHING
        return out

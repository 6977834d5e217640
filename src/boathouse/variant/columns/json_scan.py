"""Splits the JSON texts of many rows into strings and scalars, all rows at once.

The rows are in one buffer, a zero byte after each. Unescaped quotes alternately open and close strings, so that "inside
a string" is the parity of the preceding quotes; what is outside and neither punctuation nor white space is a number or
a literal. Rows that break the rules of this level (an odd number of quotes, control characters, malformed UTF-8) are
set aside: they would corrupt the parity of the rows after them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.unaligned import Bytes, Ints, Mask
from boathouse.variant.columns.byte_columns import Ragged
from boathouse.variant.columns.byte_slices import is_utf8
from boathouse.variant.columns.json_bits import LANE, between, edges, padded

FRONT = LANE  # bytes before the text, so that words that end in its first bytes can be read
_QUOTE, _BACKSLASH, _SPACE, _COLON = 0x22, 0x5C, 0x20, 0x3A


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts `rows` of a column: text i ends at `ends[i]` of `body`, at a zero byte.

    `buffer` has FRONT bytes before `body`, which is whole lanes, and one lane after it.
    """

    buffer: Bytes
    ends: Ints
    rows: Ints

    @property
    def body(self) -> Bytes:
        return self.buffer[FRONT:-LANE]

    @property
    def size(self) -> int:
        return int(self.ends[-1]) + 1 if len(self.ends) else 0

    @staticmethod
    def of(array: pa.LargeBinaryArray) -> Texts:
        """The texts of an array without nulls."""
        if not len(array):
            return Texts(padded(np.empty(0, np.uint8), 0, FRONT), np.empty(0, np.int64), np.empty(0, np.int64))
        empty = pa.scalar(b"", pa.large_binary())
        joined = Ragged.from_arrow(pc.binary_join_element_wise(array, empty, pa.scalar(b"\0", pa.large_binary())))
        first = int(joined.offsets[0])
        size = int(joined.offsets[-1]) - first
        ends = joined.offsets[1:] - first - 1
        return Texts(padded(joined.data[first : first + size], size, FRONT), ends, np.arange(len(array)))

    def row_at(self, places: Ints) -> Ints:
        """The text that each position of `body` belongs to."""
        return np.searchsorted(self.ends, places)

    def without(self, bad: Mask) -> Texts:
        """The texts that are not `bad`."""
        sizes = np.diff(self.ends, prepend=-1)
        kept = self.body[: self.size][np.repeat(~bad, sizes)]
        return Texts(padded(kept, len(kept), FRONT), np.cumsum(sizes[~bad]) - 1, self.rows[~bad])


@dataclass(frozen=True, eq=False)
class Scan:
    """The leaves of texts: string i has its quotes at `opens[i]` and `closes[i]`, scalar i is from `starts[i]` to
    `stops[i]`.

    Field names are not leaves. `string_slots` and `scalar_slots` are the numbers of the leaves among all in the
    order of the text; `escapes` the backslashes that escape a character, in names too.
    """

    texts: Texts
    opens: Ints
    closes: Ints
    starts: Ints
    stops: Ints
    string_slots: Ints
    scalar_slots: Ints
    escapes: Ints


def scan(texts: Texts) -> Scan:
    """The leaves of the texts that are well-formed at this level, white space outside strings removed."""
    tight = False
    while True:
        body = texts.body
        quotes, escapes = real_quotes(body)
        inside = between(quotes)
        low = body < _SPACE
        clean = np.count_nonzero(low) == len(texts.ends) + len(body) - texts.size
        stray = escapes[~inside[escapes]]
        bad = _unreadable(texts, quotes, inside, stray, None if clean else low)
        if bad is not None:
            texts = texts.without(bad)
            continue
        scalar = _scalars(body, quotes, inside)
        if not tight:
            blank = _blank(body, inside, clean)
            tight = True
            if blank is not None:
                texts = _squeeze(texts, blank, scalar)
                continue
        return _leaves(texts, quotes, scalar, escapes)


def _leaves(texts: Texts, quotes: Mask, scalar: Mask, escapes: Ints) -> Scan:
    places = np.flatnonzero(quotes)
    opens, closes = places[0::2], places[1::2]
    values = np.flatnonzero(texts.body.take(closes + 1) != _COLON)
    opens, closes = opens.take(values), closes.take(values)
    starts, stops = edges(scalar)
    both = np.concatenate([opens << 1, starts << 1 | 1])
    both.sort()
    both &= 1
    return Scan(texts, opens, closes, starts, stops, np.flatnonzero(both == 0), np.flatnonzero(both), escapes)


def real_quotes(body: Bytes) -> tuple[Mask, Ints]:
    """The unescaped quotes, and the backslashes that escape something."""
    quotes = body == _QUOTE
    slash = body == _BACKSLASH
    if not slash.any():
        return quotes, np.empty(0, np.int64)
    places = np.flatnonzero(slash)
    run_starts = np.diff(places, prepend=-2) != 1
    index = np.arange(len(places))
    in_run = index - np.maximum.accumulate(np.where(run_starts, index, 0))
    escapes = places[in_run & 1 == 0]
    quotes[np.minimum(escapes + 1, len(body) - 1)] = False
    return quotes, escapes


def _unreadable(texts: Texts, quotes: Mask, inside: Mask, stray: Ints, low: Mask | None) -> Mask | None:
    """Texts with an odd number of quotes, a control character other than white space outside of strings, or malformed
    UTF-8; None if there are none. `stray` are backslashes outside of strings, which might hide a quote; `low` marks
    control characters, if there are any beside the ends of texts."""
    body, rows = texts.body, len(texts.ends)
    bad = np.zeros(rows, np.bool_)
    if inside[texts.ends].any():
        counts = np.searchsorted(np.flatnonzero(quotes), texts.ends)
        bad |= np.diff(counts, prepend=0) & 1 == 1
        return bad
    bad[texts.row_at(stray)] = True
    if low is not None:
        wrong = low & (inside | ((body != 0x0A) & (body != 0x0D) & (body != 0x09)))
        wrong[texts.ends] = False
        places = np.flatnonzero(wrong[: texts.size])
        bad[texts.row_at(places)] = True
    if np.bitwise_or.reduce(body) >= 0x80:
        bad[_not_utf8(texts)] = True
    return bad if bad.any() else None


def _not_utf8(texts: Texts) -> list[int]:
    offsets = np.empty(len(texts.ends) + 1, np.int64)
    offsets[0] = 0
    offsets[1:] = texts.ends + 1
    array = Ragged(offsets, texts.body).to_arrow()
    try:
        array.cast(pa.large_string())
    except pa.ArrowInvalid:
        return [i for i, raw in enumerate(array) if not is_utf8(raw.as_py())]
    return []


def _scalars(body: Bytes, quotes: Mask, inside: Mask) -> Mask:
    """Bytes outside of strings that may belong to numbers and literals; other bytes left out beside punctuation and
    white space are refused by the grammar, as are `y`, `_` and others that look like brackets here."""
    scalar = body >= ord("-")
    scalar |= body == ord("+")
    scalar &= body & 0xD9 != 0x59  # [ ] { }
    scalar &= body != _COLON
    scalar &= ~(inside | quotes)
    return scalar


def _blank(body: Bytes, inside: Mask, clean: bool) -> Mask | None:
    """White space outside of strings; None if there is none. `clean` texts have spaces only."""
    blank = body == _SPACE
    if not clean:
        for other in (0x0A, 0x0D, 0x09):
            blank |= body == other
    blank &= ~inside
    return blank if blank.any() else None


def _squeeze(texts: Texts, blank: Mask, scalar: Mask) -> Texts:
    """Without white space, and without the texts where it separates two scalars, which would run together."""
    keep = ~blank[: texts.size]
    scalar = scalar[: texts.size]
    kept = texts.body[: texts.size][keep]
    squeezed = Texts(padded(kept, len(kept), FRONT), np.flatnonzero(kept == 0), texts.rows)
    before, after = edges(scalar)[0], edges(scalar[keep])[0]
    if len(before) == len(after):
        return squeezed
    counts = np.diff(np.searchsorted(before, texts.ends), prepend=0)
    left = np.diff(np.searchsorted(after, squeezed.ends), prepend=0)
    return squeezed.without(counts != left)

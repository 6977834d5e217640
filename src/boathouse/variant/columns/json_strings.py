"""The strings among the leaves of JSON texts: raw bytes in place, those with escapes resolved after the text."""

from __future__ import annotations

import numpy as np

from boathouse.bits.unaligned import Bytes, Ints, Mask
from boathouse.variant.columns.byte_columns import splits_of
from boathouse.variant.columns.json_bits import ragged_range

_SIMPLE = np.zeros(256, np.uint8)
_SIMPLE[[*b'"\\/bfnrt']] = [*b'"\\/\b\f\n\r\t']
_HEX = np.full(256, 1 << 16, np.int64)
_HEX[[*b"0123456789"]] = range(10)
_HEX[[*b"abcdef"]] = _HEX[[*b"ABCDEF"]] = range(10, 16)
_LETTER_U = ord("u")


def resolve(body: Bytes, opens: Ints, closes: Ints, escapes: Ints) -> tuple[Ints, Mask, Bytes, Ints]:
    """Strings with escapes among those between quotes at `opens` and `closes`, which ascend alternately.

    Returns which they are, which of them are malformed, their bytes with the escapes resolved, and the size of each.
    `body` is written to, inside those strings only. `escapes` are the backslashes that escape something, in strings or
    not.
    """
    owner = np.searchsorted(opens, escapes, "right") - 1
    mine = (owner >= 0) & (escapes < closes[np.maximum(owner, 0)]) if len(opens) else np.zeros(len(escapes), np.bool_)
    at, owner = escapes[mine], owner[mine]
    which, string = np.unique(owner, return_inverse=True)
    broken = np.zeros(len(which), np.bool_)
    drop = np.zeros(len(body), np.bool_)
    letter = body[at + 1]
    plain = letter != _LETTER_U
    broken[string[plain & (_SIMPLE[letter] == 0)]] = True
    body[at[plain]] = _SIMPLE[letter[plain]]
    drop[at[plain] + 1] = True
    coded = np.flatnonzero(~plain)
    if len(coded):
        good = _write_coded(body, drop, at[coded], closes[owner[coded]])
        broken[string[coded[~good]]] = True
    opened, sizes = opens[which] + 1, (closes - opens)[which] - 1
    places = ragged_range(opened, sizes)
    keep = ~drop[places]
    totals = splits_of(keep.view(np.int8))
    left = np.diff(totals[splits_of(sizes)])
    return which, broken, body[places[keep]], left


def _write_coded(body: Bytes, drop: Mask, at: Ints, close: Ints) -> Mask:
    """Resolves escapes of the form u0000 whose backslashes are `at`, in strings that end at `close`; returns which are
    valid: four hexadecimal digits, surrogates in pairs."""
    ok = at + 6 <= close
    at_safe = np.where(ok, at, 0)
    code = np.zeros(len(at), np.int64)
    for i in range(2, 6):
        code = code << 4 | _HEX[body[at_safe + i]]
    ok &= code < 1 << 16
    code &= 0xFFFF
    high, low = ok & (code >> 10 == 0xD800 >> 10), ok & (code >> 10 == 0xDC00 >> 10)
    paired = np.zeros(len(at), np.bool_)  # high ones that a low one follows
    paired[:-1] = high[:-1] & low[1:] & (at[1:] == at[:-1] + 6)
    follows = np.zeros(len(at), np.bool_)
    follows[1:] = paired[:-1]
    ok &= ~(high & ~paired) & ~(low & ~follows)
    pair = np.flatnonzero(paired)
    code[pair] = 0x10000 + ((code[pair] - 0xD800) << 10) + (code[pair + 1] - 0xDC00)
    _write_utf8(body, drop, at[ok & ~follows], code[ok & ~follows])
    dropped = at[ok & follows]
    for i in range(6):
        drop[dropped + i] = True
    return ok


def _write_utf8(body: Bytes, drop: Mask, at: Ints, code: Ints) -> None:
    """UTF-8 of code points over escapes of six bytes, of which the rest is to be dropped."""
    size = 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
    for i in range(6):
        drop[at + i] = i >= size
    for length, lead in ((1, 0), (2, 0xC0), (3, 0xE0), (4, 0xF0)):
        these = np.flatnonzero(size == length)
        places, points = at[these], code[these]
        for i in range(length - 1, 0, -1):
            body[places + i] = 0x80 | points & 0x3F
            points = points >> 6
        body[places] = lead | points

"""Follows paths through many values at once: from nodes to the children at a name or a position.

The ids of narrow objects are compared eight at a time inside 64-bit words; wide ones as a matrix for each shape that
occurs often, and concatenated for the rest. Neither the order of fields nor the sorted flag is relied on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from boathouse.arrow.vector import classes, ragged
from boathouse.bits.unaligned import Ints, Mask, integers, prefix, unsigned
from boathouse.variant.columns.names import SEVERAL
from boathouse.variant.columns.nodes import Containers, Nodes

Words = npt.NDArray[np.uint64]

# Objects whose header, count and ids fit 64 bytes, so that a bitmap of hits fits one word.
_NARROW = 61
# The bytes of each object that are read at once.
_WINDOW = 16
_LOW = np.uint64(0x0101010101010101)
_SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
_HIGH = np.uint64(0x8080808080808080)
_PACK = np.uint64(0x0102040810204080)
_BLOCK = 1 << 20


def locate(nodes: Nodes, path: Sequence[str | int]) -> tuple[Nodes, Ints]:
    """The values at `path` below `nodes`, in order, and the node of each; a node without such a
    value is left out. MalformedVariant."""
    index = np.arange(len(nodes))
    for step in path:
        if not len(nodes):
            break
        nodes, kept = field(nodes, step) if isinstance(step, str) else element(nodes, step)
        index = kept if len(index) == len(kept) and len(kept) and kept[-1] == len(kept) - 1 else index[kept]
    return nodes, index


def element(nodes: Nodes, number: int) -> tuple[Nodes, Ints]:
    """The elements at index `number` of those nodes that are arrays long enough, and which nodes those are."""
    basic = nodes.headers().astype(np.int64) & 3
    index = np.flatnonzero(basic == 3)
    _check_others(nodes, basic, 3)
    nodes = nodes.take(index)
    parts = nodes.containers()
    long = parts.count > number
    if not long.all():
        nodes, parts, index = nodes.take(long), parts.take(long), index[long]
    return _children(nodes, parts, np.full(len(nodes), number), index)


def field(nodes: Nodes, name: str) -> tuple[Nodes, Ints]:
    """The fields called `name` of those nodes that are objects and have it, and which nodes those are."""
    index = np.arange(len(nodes))
    inside = nodes.check(nodes.pos < nodes.end, "a value is missing: its bytes end here")
    if inside is not None:
        nodes, index = nodes.take(inside), index[inside]
    if not len(nodes):
        return nodes, index
    wanted = _wanted(nodes, name)
    block = prefix(nodes.data, nodes.pos, _WINDOW).view("<u8")
    head = block[:, 0].view(np.int64)
    # Ids and a count of one byte: bits 4 to 6 of the header are 0.
    narrow = ((head & 0x73) == 2) & ((head & 0xFF00) <= _NARROW << 8)
    if (several := wanted == SEVERAL).any():
        narrow &= ~several
    if narrow.all():
        return _narrow(nodes, wanted, block, index)
    _check_others(nodes, head & 3, 2)
    found: list[tuple[Nodes, Ints]] = []
    which = np.flatnonzero(narrow)
    if len(which):
        found.append(_narrow(nodes.take(which), wanted[which], block[which], index[which]))
    which = np.flatnonzero(((head & 3) == 2) & ~narrow)
    if len(which):
        found.append(_wide(nodes.take(which), wanted[which], name, index[which]))
    if len(found) == 1:
        return found[0]
    return _merged(found) if found else (nodes.take(slice(0, 0)), index[:0])


def _check_others(nodes: Nodes, basic: Ints, kind: int) -> None:
    """Values that a step does not enter (not of basic type `kind`) must end within their bounds all the same.

    Except a scalar that is a whole row: its end is not known yet.
    """
    which = np.flatnonzero((basic != kind) & (basic > 1))
    if len(which):
        nodes.take(which).containers()
    which = np.flatnonzero((basic <= 1) & (nodes.pos != nodes.column.start[nodes.row]))
    if len(which):
        nodes.take(which).sizes(known=False)


def _wanted(nodes: Nodes, name: str) -> Ints:
    """The id that `name` has in the dictionary of each node."""
    meta = nodes.column.meta
    ids = meta.ids(name)
    if len(ids) == 1:
        return np.full(len(nodes), int(ids[0]), np.int64)
    # numpy is fastest with indexes of 64 bits.
    codes = meta.codes[nodes.row].astype(np.int64) if meta.distinct else nodes.row
    return ids[codes].astype(np.int64)


def _merged(found: list[tuple[Nodes, Ints]]) -> tuple[Nodes, Ints]:
    index = np.concatenate([i for _, i in found])
    order = np.argsort(index)
    row, pos, end = (np.concatenate([getattr(n, name) for n, _ in found])[order] for name in ("row", "pos", "end"))
    first = found[0][0]
    return Nodes(first.column, row, pos, end, first.faults), index[order]


def _children(nodes: Nodes, parts: Containers, slot: Ints, index: Ints) -> tuple[Nodes, Ints]:
    """The child of each node in its `slot`."""
    width = parts.offset_width
    at = unsigned(nodes.data, parts.offsets + slot * width, width)
    at += parts.values
    found = Nodes(nodes.column, nodes.row, at, parts.values_end, nodes.faults)
    kept = found.check(at < parts.values_end, "a child starts at or beyond the end of its container")
    return (found, index) if kept is None else (found.take(kept), index[kept])


def _narrow(nodes: Nodes, wanted: Ints, block: Words, index: Ints) -> tuple[Nodes, Ints]:
    """Objects of at most 61 fields with ids and counts of one byte; `block` is the first bytes of each."""
    head = block[:, 0].view(np.int64)
    count = (head >> 8) & 0xFF
    width = ((head >> 2) & 3) + 1
    last = nodes.pos + 2 + count
    last += count * width
    values = last + width
    kept = nodes.check(values <= nodes.end, "a container counts more elements than it has bytes for")
    if kept is not None:
        return _narrow(nodes.take(kept), wanted[kept], block[kept], index[kept])
    values_end = unsigned(nodes.data, last, width)
    values_end += values
    kept = nodes.check(values_end <= nodes.end, "the values of a container end beyond it")
    if kept is not None:
        return _narrow(nodes.take(kept), wanted[kept], block[kept], index[kept])
    hits = _hits(nodes, wanted, count, block)
    found = hits != 0
    kept = nodes.check((hits & (hits - np.uint64(1))) == 0, "an object has a field twice")
    if kept is not None:
        found &= kept
    parts = Containers(count, nodes.pos + 2, width, last - count * width, width, values, values_end)
    if not found.all():
        which = np.flatnonzero(found)
        nodes, hits, parts, index = nodes.take(which), hits[which], parts.take(which), index[which]
    # One bit is set, of value 2**(slot + 2): a double holds it exactly, and its exponent is the position.
    return _children(nodes, parts, (hits.astype(np.float64).view(np.int64) >> 52) - 1025, index)


def _hits(nodes: Nodes, wanted: Ints, count: Ints, block: Words) -> Words:
    """A bitmap for each narrow object: bit 2 + slot is set where the id in `slot` is the wanted one."""
    words = -(-(2 + int(count.max())) // 8) if len(count) else 0
    if words * 8 > _WINDOW:
        block = prefix(nodes.data, nodes.pos, 8 * words).view("<u8")
    needle = (wanted & 0xFF).astype(np.uint64) * _LOW
    hits = np.zeros(len(nodes), np.uint64)
    for j in range(words):
        # Per byte: bit 7 of `same` is set where the byte of `x` is 0, without carries between bytes.
        x = block[:, j] ^ needle
        same = x & _SEVEN
        same += _SEVEN
        same |= x
        np.invert(same, out=same)
        same &= _HIGH
        # The eight bits 7 of the bytes become one byte.
        same >>= np.uint64(7)
        same *= _PACK
        same >>= np.uint64(56)
        if j:
            same <<= np.uint64(8 * j)
        hits |= same
    # The first two bytes are header and count; offsets follow the ids.
    hits &= (np.uint64(4) << count.view(np.uint64)) - np.uint64(4)
    unfit = wanted.view(np.uint64) > 0xFF
    if unfit.any():
        hits[unfit] = 0
    return hits


def _wide(nodes: Nodes, wanted: Ints, name: str, index: Ints) -> tuple[Nodes, Ints]:
    """Objects of any shape."""
    parts = nodes.containers()
    slot = np.full(len(nodes), -1, np.int64)
    twice = np.zeros(len(nodes), np.bool_)
    for k in np.flatnonzero(wanted == SEVERAL):
        _search_repeated(nodes, parts, name, int(k), slot, twice)
    live = np.flatnonzero((wanted >= 0) & (parts.count > 0))
    keys = parts.count[live] * 8 + parts.id_width[live]
    for key, rows in classes(keys):
        which = live[rows]
        if key is None:
            _search_ragged(nodes, parts, wanted, which, slot, twice)
        else:
            _search_matrix(nodes, parts, wanted, which, key >> 3, key & 7, slot, twice)
    kept = nodes.check(~twice, "an object has a field twice")
    found = slot >= 0 if kept is None else (slot >= 0) & kept
    if not found.all():
        nodes, parts, slot, index = nodes.take(found), parts.take(found), slot[found], index[found]
    return _children(nodes, parts, slot, index)


def _search_matrix(
    nodes: Nodes, parts: Containers, wanted: Ints, which: Ints, count: int, width: int, slot: Ints, twice: Mask
) -> None:
    """Objects of one count and one width of ids, as many at a time as fit into the cache."""
    step = max(1, _BLOCK // (count * width))
    for at in range(0, len(which), step):
        some = which[at : at + step]
        ids = integers(prefix(nodes.data, parts.ids[some], count * width), width)
        want = wanted[some]
        same = ids == np.minimum(want, np.iinfo(ids.dtype).max).astype(ids.dtype)[:, None]
        hit = np.flatnonzero(same)
        owner = hit // count
        if want.max() > np.iinfo(ids.dtype).max:
            fits = want[owner] <= np.iinfo(ids.dtype).max
            hit, owner = hit[fits], owner[fits]
        _note(some[owner], hit - owner * count, slot, twice)


def _search_ragged(nodes: Nodes, parts: Containers, wanted: Ints, which: Ints, slot: Ints, twice: Mask) -> None:
    """Objects of rare shapes: their ids concatenated, a block at a time."""
    edges = np.cumsum(parts.count[which])
    at = 0
    while at < len(which):
        base = int(edges[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(edges, base + _BLOCK // 8, side="right")))
        some = which[at:stop]
        at = stop
        if len(some) == 1:
            one = int(some[0])
            _search_matrix(nodes, parts, wanted, some, int(parts.count[one]), int(parts.id_width[one]), slot, twice)
            continue
        owner, number = ragged(parts.count[some])
        width = parts.id_width[some][owner]
        ids = unsigned(nodes.data, parts.ids[some][owner] + number * width, width)
        hit = np.flatnonzero(ids == wanted[some][owner])
        _note(some[owner[hit]], number[hit], slot, twice)


def _note(owner: Ints, number: Ints, slot: Ints, twice: Mask) -> None:
    slot[owner] = number
    twice[owner[1:][owner[1:] == owner[:-1]]] = True


def _search_repeated(nodes: Nodes, parts: Containers, name: str, k: int, slot: Ints, twice: Mask) -> None:
    """One object whose dictionary has the name under several ids."""
    meta = nodes.column.meta
    code = int(meta.codes[nodes.row[k]])
    wanted = np.zeros(int(meta.sizes[code]), np.bool_)
    wanted[meta.places(code, name)] = True
    start, width = int(parts.ids[k]), int(parts.id_width[k])
    ids = integers(nodes.data[start : start + int(parts.count[k]) * width].reshape(1, -1), width)[0]
    hit = np.flatnonzero(ids < len(wanted))
    hit = hit[wanted[ids[hit]]]
    if len(hit):
        slot[k], twice[k] = hit[0], len(hit) > 1

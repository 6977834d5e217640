"""The names of fields in JSON texts: escapes resolved, and ranked by their UTF-8 bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.unaligned import Bytes, Ints, Mask
from boathouse.variant.columns.byte_columns import Ragged


@dataclass(frozen=True, eq=False)
class Names:
    """`rank[i]` is the position of key i in `names`, which are sorted and unique; a `broken` key has a name of its
    own."""

    rank: Ints
    broken: Mask
    names: Ragged


def names_of(body: Bytes, opens: Ints, closes: Ints) -> Names:
    """The keys between quotes at `opens` and `closes`, which ascend alternately."""
    if not len(opens):
        return Names(np.empty(0, np.int64), np.empty(0, np.bool_), Ragged.of([]))
    bounds = np.empty(2 * len(opens), np.int64)
    bounds[0::2], bounds[1::2] = opens + 1, closes
    keys = Ragged(bounds, body).take(np.arange(0, len(bounds), 2)).to_arrow().dictionary_encode()
    which = keys.indices.to_numpy().astype(np.int64)
    names, rank, broken = _resolved_all(keys.dictionary) if (body == ord("\\")).any() else _ranked(keys.dictionary)
    return Names(rank[which], broken[which], Ragged.from_arrow(names))


def _ranked(names: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Ints, Mask]:
    """The distinct names in order, the position of each key among them, and that none is malformed."""
    order = pc.array_sort_indices(names)
    rank = np.empty(len(names), np.int64)
    rank[order.to_numpy()] = np.arange(len(names))
    return names.take(order), rank, np.zeros(len(names), np.bool_)


def _resolved_all(keys: pa.LargeBinaryArray) -> tuple[pa.LargeBinaryArray, Ints, Mask]:
    """As `_ranked`, for keys that may have escapes: two spellings may be one name."""
    raw: list[bytes] = keys.to_pylist()
    resolved = [_resolved(one) if b"\\" in one else one for one in raw]
    broken = np.array([name is None for name in resolved], np.bool_)
    known = pa.array([one if name is None else name for one, name in zip(raw, resolved)], pa.large_binary())
    coded = known.dictionary_encode()
    names, rank, _ = _ranked(coded.dictionary)
    return names, rank[coded.indices.to_numpy()], broken


def _resolved(raw: bytes) -> bytes | None:
    """The name without escapes; None if an escape is wrong or leaves an unpaired surrogate."""
    try:
        name: str = json.loads(b'"' + raw + b'"')
        return name.encode()
    except ValueError:
        return None

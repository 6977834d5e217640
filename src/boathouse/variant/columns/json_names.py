"""The names of fields in JSON texts: escapes resolved, and ranked by their UTF-8 bytes."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from boathouse.variant.columns.ragged import Bytes, Ints, Mask, Ragged


@dataclass(frozen=True, eq=False)
class Names:
    """`rank[i]` is the place of key i among `names`, which are sorted and unique; a `broken` key stands for itself."""

    rank: Ints
    broken: Mask
    names: Ragged


def names_of(body: Bytes, opens: Ints, closes: Ints) -> Names:
    """The keys between quotes at `opens` and `closes`, which rise in turn."""
    if not len(opens):
        return Names(np.empty(0, np.int64), np.empty(0, np.bool_), Ragged.of([]))
    bounds = np.empty(2 * len(opens), np.int64)
    bounds[0::2], bounds[1::2] = opens + 1, closes
    keys = Ragged(bounds, body).take(np.arange(0, len(bounds), 2)).to_arrow().dictionary_encode()
    which = keys.indices.to_numpy().astype(np.int64)
    raw: list[bytes] = keys.dictionary.to_pylist()
    resolved = [_resolved(one) if b"\\" in one else one for one in raw]
    broken = np.array([name is None for name in resolved], np.bool_)
    known = [one if name is None else name for one, name in zip(raw, resolved)]
    names = sorted(set(known))
    places = {name: i for i, name in enumerate(names)}
    rank = np.array([places[name] for name in known], np.int64)
    return Names(rank[which], broken[which], Ragged.of(names))


def _resolved(raw: bytes) -> bytes | None:
    """The name without escapes; None if an escape is wrong or leaves an unpaired surrogate."""
    try:
        name: str = json.loads(b'"' + raw + b'"')
        return name.encode()
    except ValueError:
        return None

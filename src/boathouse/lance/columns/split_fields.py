"""Nested columns whose fields are in several data files of a fragment, as after a change of a field's type."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from boathouse.errors import CorruptTableError
from boathouse.lance.file.schema import PACKED, Node, arrow_type

Part = tuple[Node, pa.Array]
"""A node with some of a column's leaves, and its values."""


def pruned(node: Node, ids: Collection[int]) -> Node | None:
    """The node with those of its leaves that are in `ids`; None if there is none.

    pylance 0.36 stores each field of some packed structs in a column of its own.
    """
    if node.is_leaf:
        if node.id in ids or not node.is_packed:
            return node if node.id in ids else None
        metadata = {k: v for k, v in node.field.metadata.items() if k not in PACKED}
        node = replace(node, field=replace(node.field, metadata=metadata))
    children = tuple(kept for child in node.children if (kept := pruned(child, ids)) is not None)
    return replace(node, children=children) if children else None


def joined(node: Node, parts: Sequence[Part], where: str) -> pa.Array:
    """The whole column; fields that no part has are null. Raises CorruptTableError if the parts do not fit."""
    first = parts[0][1]
    if any(len(array) != len(first) for _, array in parts):
        raise CorruptTableError(f"fields of `{node.name}` with different numbers of values", where=where)
    if len(parts) == 1 and parts[0][0] == node:
        return first
    kind = arrow_type(node)
    mask = pa.array(np.asarray(first.is_null())) if first.null_count else None
    if pa.types.is_struct(kind):
        return pa.StructArray.from_arrays(_members(node, parts, where), fields=list(kind), mask=mask)
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        inner = [(part.children[0], a.values.slice(a.offset * size, len(a) * size)) for part, a in parts]
        values = joined(node.children[0], inner, where)
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=mask)
    starts = [np.asarray(a.offsets, np.int64) for _, a in parts]
    if any(len(at) and not np.array_equal(at - at[0], starts[0] - starts[0][0]) for at in starts):
        raise CorruptTableError(f"fields of `{node.name}` with lists of different lengths", where=where)
    inner = [(p.children[0], a.values.slice(at[0], at[-1] - at[0])) for (p, a), at in zip(parts, starts)]
    ends = (starts[0] - starts[0][0]).astype(np.int64 if pa.types.is_large_list(kind) else np.int32)
    valid = None if mask is None else pa.py_buffer(np.packbits(~np.asarray(first.is_null()), bitorder="little"))
    buffers, nulls = [valid, pa.py_buffer(ends)], first.null_count
    return pa.Array.from_buffers(kind, len(first), buffers, nulls, 0, [joined(node.children[0], inner, where)])


def _members(node: Node, parts: Sequence[Part], where: str) -> list[pa.Array]:
    out = []
    for child in node.children:
        found = []
        for part, array in parts:
            for i, member in enumerate(part.children):
                if member.id == child.id:
                    found.append((member, array.field(i)))
        out.append(joined(child, found, where) if found else pa.nulls(len(parts[0][1]), arrow_type(child)))
    return out

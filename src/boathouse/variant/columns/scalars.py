"""The content of many scalars of one kind at once, checked as `decode.read_scalar` does."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits.unaligned import Ints, window
from boathouse.variant.columns.byte_slices import as_text, is_utf8, join
from boathouse.variant.columns.expand import Tree
from boathouse.variant.primitives import DAY_MICROS, MAX_SCALE, Family, Kind


def numbers(tree: Tree, which: Ints, kind: Kind) -> npt.NDArray[Any]:
    """The numbers of scalars, decimals aside. Raises Faulty for a time of day outside of a day."""
    found = window(tree.data, kind.number)[tree.pos[which] + 1]
    if kind.family is Family.TIME:
        tree.require((found >= 0) & (found < DAY_MICROS), which)
    return found


def strings(tree: Tree, which: Ints) -> pa.Array:
    """The contents of strings, as string or large_string. Raises Faulty where it is not UTF-8."""
    raw = join(tree.data, *tree.bodies(which))
    array = as_text(raw)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        tree.require(np.array([is_utf8(text) for text in raw.to_pylist()]), which)
        raise
    return array


def binaries(tree: Tree, which: Ints) -> pa.Array:
    """The bytes of binaries, as binary or large_binary."""
    return join(tree.data, *tree.bodies(which))


def decimals(tree: Tree, which: Ints, kind: Kind) -> tuple[list[int] | npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Unscaled values (Python's integers for decimal16) and scales. Raises Faulty for what the width does not allow."""
    pos = tree.pos[which] + 1
    scale = tree.data[pos]
    tree.require(scale <= MAX_SCALE, which)
    limit = kind.limit
    found = window(tree.data, kind.number)[pos + 1]
    if found.dtype.kind == "i":
        tree.require((found >= -limit) & (found <= limit), which)
        return found, scale
    wide = [int.from_bytes(one, "little", signed=True) for one in found.tolist()]
    tree.require(np.array([-limit <= one <= limit for one in wide], np.bool_), which)
    return wide, scale


def uuids(tree: Tree, which: Ints, kind: Kind) -> list[UUID]:
    """The UUIDs."""
    return [UUID(bytes=raw) for raw in numbers(tree, which, kind).tolist()]

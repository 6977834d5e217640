"""The content of many scalars of one kind at once, checked as `decode.read_scalar` does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.variant.columns.byte_slices import as_text, is_utf8, join
from boathouse.variant.columns.expand import Tree
from boathouse.variant.columns.gather import Ints
from boathouse.variant.columns.unaligned import window
from boathouse.variant.primitives import (
    DATE,
    DAY_MICROS,
    DECIMAL4,
    DECIMAL8,
    DECIMAL_LIMITS,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    MAX_SCALE,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NTZ,
    TIMESTAMP_NTZ_NANOS,
)

# By primitive id: what follows the header.
NUMBERS = {
    INT8: "<i1", INT16: "<i2", INT32: "<i4", INT64: "<i8", DOUBLE: "<f8", FLOAT: "<f4", DATE: "<i4", TIME: "<i8",
    TIMESTAMP: "<i8", TIMESTAMP_NTZ: "<i8", TIMESTAMP_NANOS: "<i8", TIMESTAMP_NTZ_NANOS: "<i8",
}  # fmt: skip


def numbers(tree: Tree, which: Ints, kind: int) -> npt.NDArray[Any]:
    """The numbers of scalars of one of the kinds in NUMBERS. Raises Faulty for a time of day outside of a day."""
    found = window(tree.data, NUMBERS[kind])[tree.pos[which] + 1]
    if kind == TIME:
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


def decimals(tree: Tree, which: Ints, kind: int) -> tuple[list[int] | npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """Unscaled values (Python's integers for decimal16) and scales. Raises Faulty for what the width does not allow."""
    pos = tree.pos[which] + 1
    scale = tree.data[pos]
    tree.require(scale <= MAX_SCALE, which)
    limit = DECIMAL_LIMITS[kind]
    if kind in (DECIMAL4, DECIMAL8):
        found = window(tree.data, "<i4" if kind == DECIMAL4 else "<i8")[pos + 1]
        tree.require((found >= -limit) & (found <= limit), which)
        return found, scale
    raw = window(tree.data, "V16")[pos + 1]
    wide = [int.from_bytes(one, "little", signed=True) for one in raw.tolist()]
    tree.require(np.array([-limit <= one <= limit for one in wide], np.bool_), which)
    return wide, scale


def fixed(tree: Tree, which: Ints, width: int) -> list[bytes]:
    """The `width` bytes after the header of each."""
    found: list[bytes] = window(tree.data, f"V{width}")[tree.pos[which] + 1].tolist()
    return found

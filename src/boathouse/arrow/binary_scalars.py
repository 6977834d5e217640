"""Scalars of bytes for Arrow's functions."""

from __future__ import annotations

import struct

import pyarrow as pa


def binary_scalar(value: bytes) -> pa.Scalar:
    """The scalar of these bytes. `pa.scalar` looks for pandas, whose import takes longer than most commands."""
    ends = pa.py_buffer(struct.pack("<ii", 0, len(value)))
    return pa.Array.from_buffers(pa.binary(), 1, [None, ends, pa.py_buffer(value)])[0]

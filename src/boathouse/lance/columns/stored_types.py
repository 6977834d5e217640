"""Columns of extension types of Lance, which are of plain types here: JSON as text, brain floats as 32-bit floats."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from boathouse.lance.columns.jsonb import from_text
from boathouse.lance.file.schema import JSON, Node
from boathouse.lance.options import BFLOAT16

CONVERTED: Final = (JSON, BFLOAT16)


def stored(node: Node, column: pa.Array) -> pa.Array:
    """A column as its files store it. Raises SchemaMismatchError for a text that is not JSON."""
    if node.extension == JSON:
        return pa.array(
            [None if v is None else from_text(v, column=node.name) for v in column.to_pylist()], pa.large_binary()
        )
    return brain_floats(column)


def brain_floats(column: pa.Array) -> pa.Array:
    """32-bit floats as their upper halves, rounded to the nearest even ones; NaN stays NaN."""
    values = column.fill_null(0) if column.null_count else column
    bits = values.cast(pa.float32()).to_numpy(zero_copy_only=False).view(np.uint32)
    halves = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    quiet = ((bits >> 16) | 0x40).astype("<u2")
    found = np.where((bits & 0x7FFFFFFF) > 0x7F800000, quiet, halves)
    mask = None
    if column.null_count:
        mask = pa.py_buffer(np.packbits(column.is_valid().to_numpy(zero_copy_only=False), bitorder="little").tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(2), len(column), [mask, pa.py_buffer(found.tobytes())])

"""Nulls made where a condition is not true."""

from __future__ import annotations

import pyarrow as pa
import pytest

from boathouse.arrow.vector import only_where


@pytest.mark.parametrize("type", [pa.string(), pa.large_binary(), pa.int32(), pa.struct([("a", pa.string())])], ids=str)
@pytest.mark.parametrize("start", [0, 1, 2])
def test_slices_keep_their_values(type, start):
    """Arrow 23 makes an invalid array of a slice of strings and a null scalar."""
    strings = [None if i % 3 == 0 else str(i) for i in range(9)]
    made = {"int32": lambda t: int(t), "struct<a: string>": lambda t: {"a": t}}.get(str(type), lambda t: t)
    values = [None if t is None else made(t) for t in strings]
    if pa.types.is_large_binary(type):
        values = [None if t is None else t.encode() for t in strings]
    keep = [True, None, False, True, True, False]
    found = only_where(pa.array(keep), pa.array(values, type).slice(start, len(keep)))
    found.validate(full=True)
    assert found.to_pylist() == [v if k else None for k, v in zip(keep, values[start:], strict=False)]

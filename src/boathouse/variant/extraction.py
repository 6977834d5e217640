"""`extract`: paths of variant columns, shredded or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from boathouse.types import DataType
from boathouse.variant.columns import extract as columns
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.path import Step
from boathouse.variant.shredding.get import get


def is_shredded(data: Any) -> bool:
    """Whether variants have the layout of a shredded file: a path into them does not need whole values."""
    kind = getattr(data, "type", None)
    return isinstance(kind, pa.StructType) and kind.get_field_index("typed_value") >= 0


def extract(
    data: Any,
    path: str | Sequence[Step],
    type: DataType | pa.DataType | str = "variant",
    *,
    safe: bool = False,
    lenient: Lenient | None = None,
) -> pa.Array | pa.ChunkedArray:
    """The values at `path` as `type`, by the rules of Spark's variant_get; null where there is none.

    `data`: a column of variants in any layout; the result is chunked if `data` is, or if it has more than 2 GiB.
    `path`: a string (`$.a[0]`) or steps. `type`: Spark's SQL text, a DataType, or an Arrow type. `safe` is
    try_variant_get: null where a cast fails, else EvaluationError. Malformed rows: MalformedVariant with row and byte;
    null and counted in `lenient` if one is passed. Of a shredded column (with `typed_value`) only what the path needs
    is read.

    Raises ExpressionError for an invalid path, UnsupportedTypeError for a type that variants are not cast to,
    SchemaMismatchError for what is not a column of variants.

    >>> column = bh.variant.from_json(pa.array(['{"a": [1, 2]}', '{"a": "x"}']))
    >>> bh.variant.extract(column, "$.a[1]", "bigint").to_pylist()
    [2, None]
    """
    read = get if is_shredded(data) else columns.extract
    return read(data, path, type, safe=safe, lenient=lenient)

"""The children of a variant as rows, as Spark's `variant_explode` and `variant_explode_outer` give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from boathouse.variant.value import Variant

Row: TypeAlias = "tuple[int | None, str | None, Variant | None]"


def explode(v: Variant | None, outer: bool = False) -> Iterator[Row]:
    """(pos, key, value) of each field in stored order, or of each element, whose key is None.

    No rows for other values and for empty containers, or with `outer` one row of nulls. None is SQL's NULL.
    Raises MalformedVariant.
    """
    kind = None if v is None else v.type
    rows: list[Row] = []
    if v is not None and kind == "object":
        rows = [(pos, key, value) for pos, (key, value) in enumerate(v.items())]
    elif v is not None and kind == "array":
        rows = [(pos, None, value) for pos, value in enumerate(v.values())]
    return iter(rows or ([(None, None, None)] if outer else []))

"""The children of a variant as rows, as Spark's `variant_explode` and `variant_explode_outer` give them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from boathouse.variant.view import VariantView

V = TypeVar("V", bound=VariantView)


def explode(v: V | None, outer: bool = False) -> Iterator[tuple[int | None, str | None, V | None]]:
    """(pos, key, value) of each field in stored order, or of each element, whose key is None.

    No rows for other values and for empty containers, or with `outer` one row of nulls. None is SQL's NULL.
    Raises MalformedVariant.
    """
    kind = None if v is None else v.type
    rows: list[tuple[int | None, str | None, V | None]] = []
    if v is not None and kind == "object":
        rows = [(pos, key, value) for pos, (key, value) in enumerate(v.items())]
    elif v is not None and kind == "array":
        rows = [(pos, None, value) for pos, value in enumerate(v.values())]
    return iter(rows or ([(None, None, None)] if outer else []))

"""Name mapping: field ids for files that carry none (spec, "Column Projection", `schema.name-mapping.default`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from boathouse.errors import CorruptTableError


@dataclass(frozen=True, slots=True)
class NameMapping:
    """Physical path -> field id; lists have `element` below them, maps `key` and `value`."""

    paths: Mapping[tuple[str, ...], int]

    @classmethod
    def parse(cls, text: str, where: str | None = None) -> NameMapping:
        """The table property's JSON. Raises CorruptTableError."""
        found: dict[tuple[str, ...], int] = {}
        try:
            _collect(orjson.loads(text), (), found)
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise CorruptTableError(f"the name mapping cannot be read: {error}", where=where) from None
        return cls(found)


def _collect(fields: Sequence[Mapping[str, Any]], above: tuple[str, ...], found: dict[tuple[str, ...], int]) -> None:
    for f in fields:
        id = f.get("field-id", f.get("field_id"))
        for name in f["names"]:
            if id is not None:
                found[(*above, name)] = int(id)
            _collect(f.get("fields") or (), (*above, name), found)

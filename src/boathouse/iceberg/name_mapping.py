"""Name mapping: field ids for files without any (spec, "Column Projection", `schema.name-mapping.default`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from boathouse.errors import CorruptTableError
from boathouse.types import Schema


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
        except RecursionError:
            raise CorruptTableError("the name mapping is nested too deeply", where=where) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptTableError(f"the name mapping cannot be read: {error}", where=where) from None
        return cls(found)


def _collect(fields: Sequence[Mapping[str, Any]], above: tuple[str, ...], found: dict[tuple[str, ...], int]) -> None:
    for f in fields:
        id = f.get("field-id", f.get("field_id"))
        if id is not None and (type(id) is not int or not -(1 << 31) <= id < 1 << 31):
            raise ValueError(f"{id!r:.80} is not a field id")
        for name in f["names"]:
            if not isinstance(name, str):
                raise ValueError(f"{name!r:.80} is not a name")
            if id is not None:
                found[(*above, name)] = id
            _collect(f.get("fields") or (), (*above, name), found)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.A)


def names_diverged(schemas: Mapping[int, Schema]) -> bool:
    """Whether files may contain a field under another name than the table's current one.

    That is so if two schemas give one id two paths, or one path two ids (ignoring case, as engines resolve names); for
    names that are not identifiers, which Java escapes (`a b` as `a_x20b`); and if a schema has been removed from the
    metadata, since its names are unknown while its files may exist.
    """
    if set(schemas) != set(range(len(schemas))):
        return True
    paths: dict[int, tuple[str, ...]] = {}
    ids: dict[tuple[str, ...], int] = {}
    for schema in schemas.values():
        for path, f in schema.walk():
            if f.id is None or not all(_PLAIN.fullmatch(name) for name in path):
                return True
            folded = tuple(name.lower() for name in path)
            if paths.setdefault(f.id, path) != path or ids.setdefault(folded, f.id) != f.id:
                return True
    return False

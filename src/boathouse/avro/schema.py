"""Avro schemas of other writers: fields are named by field id, references are resolved, and the size is limited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from boathouse.errors import CorruptTableError

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_DEEPEST: Final = 64
_MOST_TYPES: Final = 100_000
_MOST_EMPTY: Final = 1_000
_LEAST: Final = {"null": 0, "float": 4, "double": 8}
Schema = Any


def by_ids(schema: Schema, names: Mapping[int, str], where: str) -> Schema:
    """The schema with fields named by id: `names` of the ids, `f<id>` for others, without logical types.

    Fields without an id keep their name. Named types get unique names, references are resolved.
    """
    return _resolved(schema, names, where)


def by_names(schema: Schema, where: str) -> Schema:
    """The same, with every field under its own name."""
    return _resolved(schema, None, where)


def _resolved(schema: Schema, names: Mapping[int, str] | None, where: str) -> Schema:
    try:
        found = _Renamer(names, where).type(schema, 0)
        _check_empty(found, where)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, CorruptTableError):
            raise
        raise CorruptTableError(f"the Avro schema cannot be read: {error!r:.200}", where=where) from None
    return found


def least(schema: Schema) -> int:
    """The minimum number of bytes of a value."""
    if isinstance(schema, str):
        return _LEAST.get(schema, 1)
    if isinstance(schema, list):
        return 1 + min(map(least, schema), default=0)
    match schema["type"]:
        case "record":
            return sum(least(f["type"]) for f in schema["fields"])
        case "fixed":
            return int(schema["size"])
    return 1


def _check_empty(schema: Schema, where: str) -> None:
    """Types without bytes may not be repeated: an array of them, or a record of very many, could take unbounded
    time."""
    empty = 0
    waiting = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, list):
            waiting += found
        elif not isinstance(found, str):
            items = found.get("items") if found["type"] == "array" else None
            if items is not None and least(items) == 0:
                raise CorruptTableError("the Avro schema has an array whose items take no bytes", where=where)
            below = [f["type"] for f in found.get("fields", ())]
            empty += sum(1 for type in below if least(type) == 0)
            waiting += [t for t in (*below, items, found.get("values")) if t is not None]
    if empty > _MOST_EMPTY:
        raise CorruptTableError(f"the Avro schema has {empty:,} fields that take no bytes", where=where)


class _Renamer:
    def __init__(self, names: Mapping[int, str] | None, where: str) -> None:
        self.names = names
        self.where = where
        self.defined: dict[str, Schema] = {}
        self.count = 0

    def type(self, schema: Schema, depth: int) -> Schema:
        self.count += 1
        if depth > _DEEPEST or self.count > _MOST_TYPES:
            what = (
                f"is nested more than {_DEEPEST} deep" if depth > _DEEPEST else f"has more than {_MOST_TYPES:,} types"
            )
            raise CorruptTableError(f"the Avro schema {what}", where=self.where)
        if isinstance(schema, str):
            if schema in PRIMITIVES:
                return schema
            if schema not in self.defined:
                raise CorruptTableError(
                    f"the Avro schema names {schema!r:.80}, which it does not define", where=self.where
                )
            return self.type(self.defined[schema], depth + 1)
        if isinstance(schema, list):
            return [self.type(s, depth + 1) for s in schema]
        return self._complex(schema, depth + 1)

    def _complex(self, schema: Mapping[str, Any], depth: int) -> Schema:
        kind = schema["type"]
        match kind:
            case "record":
                self._define(schema)
                return {"type": "record", "name": self._name(), "fields": self._fields(schema, depth)}
            case "array":
                return {"type": "array", "items": self.type(schema["items"], depth)}
            case "map":
                return {"type": "map", "values": self.type(schema["values"], depth)}
            case "fixed":
                self._define(schema)
                size = schema["size"]
                if type(size) is not int or size < 0:
                    raise CorruptTableError(f"the Avro schema has a fixed of size {size!r:.80}", where=self.where)
                return {"type": "fixed", "name": self._name(), "size": size}
            case "enum":
                self._define(schema)
                return {"type": "enum", "name": self._name(), "symbols": [str(s) for s in schema["symbols"]]}
        return self.type(kind, depth)

    def _fields(self, schema: Mapping[str, Any], depth: int) -> list[dict[str, Any]]:
        fields = [self._field(f, depth) for f in schema["fields"]]
        names = [f["name"] for f in fields]
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise CorruptTableError(f"the Avro schema has the field {twice!r:.80} twice in a record", where=self.where)
        return fields

    def _field(self, field: Mapping[str, Any], depth: int) -> dict[str, Any]:
        id = field.get("field-id")
        name = field["name"] if id is None or self.names is None else self.names.get(int(id), f"f{id}")
        if not isinstance(name, str):
            raise CorruptTableError(f"the Avro schema has a field named {name!r:.80}", where=self.where)
        return {"name": name, "type": self.type(field["type"], depth)}

    def _define(self, schema: Mapping[str, Any]) -> None:
        self.defined[schema["name"]] = schema
        if schema.get("namespace"):
            self.defined[f"{schema['namespace']}.{schema['name']}"] = schema

    def _name(self) -> str:
        self.count += 1
        return f"n{self.count}"

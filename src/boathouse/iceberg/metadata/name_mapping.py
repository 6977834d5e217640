"""Name mapping: field ids for files without any (spec, "Column Projection", `schema.name-mapping.default`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from boathouse.bits.text import json_value
from boathouse.errors import CorruptTableError
from boathouse.types import Field, Schema
from boathouse.types.data_types import children

NAME_MAPPING: Final = "schema.name-mapping.default"
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class MappedField:
    """The names that one field has in files; without an id such a field of a file is ignored."""

    names: tuple[str, ...]
    id: int | None
    fields: MappedFields

    def json(self) -> dict[str, Any]:
        id = {} if self.id is None else {"field-id": self.id}
        below = {"fields": self.fields.json()} if self.fields.all else {}
        return {**id, "names": list(self.names), **below}


@dataclass(frozen=True, slots=True)
class MappedFields:
    """The fields of one struct, the `element` of a list, or the `key` and `value` of a map."""

    all: tuple[MappedField, ...] = ()
    by_name: Mapping[str, MappedField] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, MappedField] = {}
        for f in self.all:
            for name in f.names:
                if found.setdefault(name, f) is not f:
                    raise ValueError(f"the name {name!r:.80} occurs twice")
        object.__setattr__(self, "by_name", found)

    def json(self) -> list[dict[str, Any]]:
        return [f.json() for f in self.all]


@dataclass(frozen=True, slots=True)
class NameMapping:
    """A mapping; picklable, for executors."""

    fields: MappedFields

    @classmethod
    def parse(cls, text: str, where: str | None = None) -> NameMapping:
        """The table property's JSON. Raises CorruptTableError."""
        try:
            return cls(_parsed(json_value(text, where, "the name mapping")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptTableError(f"the name mapping cannot be read: {error}", where=where) from None

    def id_at(self, path: tuple[str, ...]) -> int | None:
        """The id of a field of a file, at a path of names; lists have `element` below them, maps `key` and `value`."""
        found: MappedField | None = None
        for name in path:
            found = (self.fields if found is None else found.fields).by_name.get(name)
            if found is None:
                return None
        return None if found is None else found.id

    def knows(self, path: tuple[str, ...]) -> bool:
        """Whether a field of a file is named at all; one without an id is ignored."""
        fields = self.fields
        for name in path[:-1]:
            found = fields.by_name.get(name)
            if found is None:
                return False
            fields = found.fields
        return path[-1] in fields.by_name

    def json(self) -> list[dict[str, Any]]:
        """The form in which it is stored."""
        return self.fields.json()

    def text(self) -> str:
        """The table property."""
        return json.dumps(self.json())

    def evolved(self, before: Schema, after: Schema) -> NameMapping:
        """The mapping after a change of the schema: new fields are added under their names, renamed ones get another
        name and keep the old one, and a name that is given to another field is taken from its former one."""
        names = {f.id: f.name for _, f in before.walk()}
        return NameMapping(_evolved(self.fields, names, after.fields))


def mapping_of(schema: Schema) -> NameMapping:
    """The mapping of a table whose files have the columns' own names."""
    return NameMapping(MappedFields(tuple(map(_new, schema))))


def _parsed(fields: Sequence[Mapping[str, Any]], depth: int = 0) -> MappedFields:
    if depth > _DEEPEST:
        raise ValueError(f"nested more than {_DEEPEST} deep")
    return MappedFields(tuple(_parsed_field(f, depth) for f in fields))


def _parsed_field(f: Mapping[str, Any], depth: int) -> MappedField:
    id = f.get("field-id", f.get("field_id"))
    if id is not None and (type(id) is not int or not -(1 << 31) <= id < 1 << 31):
        raise ValueError(f"{id!r:.80} is not a field id")
    names = f["names"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{names!r:.80} are not names")
    return MappedField(tuple(dict.fromkeys(names)), id, _parsed(f.get("fields") or (), depth + 1))


def _evolved(mapped: MappedFields, before: Mapping[int | None, str], after: Sequence[Field]) -> MappedFields:
    given = {f.name: f.id for f in after if before.get(f.id) != f.name}
    fields = {f.id: f for f in after}
    found = [_changed(m, fields.get(m.id), given, before) for m in mapped.all]
    known = {m.id for m in mapped.all}
    found += [_new(f) for f in after if f.name in given and f.id not in known]
    return MappedFields(tuple(m for m in found if m.names or m.id is not None))


def _changed(
    m: MappedField, now: Field | None, given: Mapping[str, int | None], before: Mapping[int | None, str]
) -> MappedField:
    names = [name for name in m.names if given.get(name, m.id) == m.id]
    if now is None or m.id is None:
        return replace(m, names=tuple(names))
    if now.name in given and now.name not in names:
        names.append(now.name)
    return MappedField(tuple(names), m.id, _evolved(m.fields, before, children(now.type)))


def _new(f: Field) -> MappedField:
    return MappedField((f.name,), f.id, MappedFields(tuple(map(_new, children(f.type)))))


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.A)


def names_diverged(schemas: Mapping[int, Schema]) -> bool:
    """Whether files may contain a field under another name than the table's current one.

    That is so where names have changed (ignoring case, as engines resolve them), and for names that are not
    identifiers, which Java escapes (`a b` as `a_x20b`).
    """
    plain = all(_PLAIN.fullmatch(f.name) for schema in schemas.values() for _, f in schema.walk())
    return not plain or _changed_names(schemas, str.lower)


def names_in_files(schemas: Mapping[int, Schema]) -> frozenset[str]:
    """The names in lower case that decide which column is which in files without field ids; none where names have
    changed."""
    if _changed_names(schemas, str):
        return frozenset()
    return frozenset(name.lower() for schema in schemas.values() for name in schema.names)


def _changed_names(schemas: Mapping[int, Schema], folded: Callable[[str], str]) -> bool:
    """Whether two schemas give one id two paths, or one path two ids; also if a schema has been removed from the
    metadata, since its names are unknown while its files may exist."""
    if set(schemas) != set(range(len(schemas))):
        return True
    paths: dict[int | None, tuple[str, ...]] = {None: ()}
    ids: dict[tuple[str, ...], int | None] = {}
    return any(
        paths.setdefault(f.id, path) != path or ids.setdefault(tuple(map(folded, path)), f.id) != f.id
        for schema in schemas.values()
        for path, f in schema.walk()
    )

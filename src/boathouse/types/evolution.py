"""Schemas with one edit applied, at any depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from boathouse.errors import InvalidArgumentError
from boathouse.types.data_types import DataType, Field, ListType, MapType, StructType

Fields = tuple[Field, ...]


def with_field(fields: Fields, parent: tuple[str, ...], added: Field) -> Fields:
    """`fields` with one field added at the end of the struct at `parent`. Raises InvalidArgumentError."""

    def append(found: Fields) -> Fields:
        if any(f.name == added.name for f in found):
            raise InvalidArgumentError(f"the column `{'.'.join((*parent, added.name))}` already exists")
        return (*found, added)

    return _at(fields, parent, append)


def with_type(fields: Fields, path: tuple[str, ...], type: DataType) -> Fields:
    """`fields` with another type of the field at `path`, which may lead through lists and maps (`element`, `key`,
    `value`). Raises InvalidArgumentError."""
    return with_edited(fields, path, lambda f: replace(f, type=type))


def with_edited(fields: Fields, path: tuple[str, ...], change: Callable[[Field], Field]) -> Fields:
    """`fields` with another field at `path`, which may lead through lists and maps. Raises InvalidArgumentError."""
    *parent, name = path

    def edit(found: Fields) -> Fields:
        if all(f.name != name for f in found):
            raise InvalidArgumentError(f"there is no column `{'.'.join(path)}`")
        return tuple(change(f) if f.name == name else f for f in found)

    return _at(fields, tuple(parent), edit)


def with_order(fields: Fields, path: tuple[str, ...], after: str) -> Fields:
    """`fields` with the field at `path` right after its sibling `after`; an empty name: first. Raises
    InvalidArgumentError."""
    *parent, name = path

    def edit(found: Fields) -> Fields:
        moved = [f for f in found if f.name == name]
        rest = [f for f in found if f.name != name]
        places = [i for i, f in enumerate(rest) if f.name == after]
        if not moved or (after and not places):
            raise InvalidArgumentError(
                f"there is no column `{'.'.join((*parent, after if moved else name))}` beside which to place one"
            )
        at = places[0] + 1 if after else 0
        return (*rest[:at], *moved, *rest[at:])

    return _at(fields, tuple(parent), edit)


def with_name(fields: Fields, path: tuple[str, ...], name: str) -> Fields:
    """`fields` with another name of the field at `path`. Raises InvalidArgumentError."""
    *parent, old = path

    def change(found: Fields) -> Fields:
        if all(f.name != old for f in found):
            raise InvalidArgumentError(f"there is no column `{'.'.join(path)}`")
        if name != old and any(f.name == name for f in found):
            raise InvalidArgumentError(f"the column `{'.'.join((*parent, name))}` already exists")
        return tuple(replace(f, name=name) if f.name == old else f for f in found)

    return _at(fields, tuple(parent), change)


def without_field(fields: Fields, path: tuple[str, ...]) -> Fields:
    """`fields` without the field at `path`, which is not the last one of its struct. Raises InvalidArgumentError."""
    *parent, name = path

    def change(found: Fields) -> Fields:
        left = tuple(f for f in found if f.name != name)
        if len(left) == len(found):
            raise InvalidArgumentError(f"there is no column `{'.'.join(path)}`")
        if not left:
            raise InvalidArgumentError(f"`{'.'.join(path)}` is the last column{' of its struct' if parent else ''}")
        return left

    return _at(fields, tuple(parent), change)


def _at(fields: Fields, path: tuple[str, ...], edit: Callable[[Fields], Fields]) -> Fields:
    if not path:
        return edit(fields)
    if all(f.name != path[0] for f in fields):
        raise InvalidArgumentError(f"there is no struct `{path[0]}`")
    return tuple(_inside(f, path[1:], edit) if f.name == path[0] else f for f in fields)


def _inside(field: Field, path: tuple[str, ...], edit: Callable[[Fields], Fields]) -> Field:
    match field.type:
        case ListType(element):
            return replace(field, type=ListType(*_at((element,), path, edit)))
        case MapType(key, value):
            return replace(field, type=MapType(*_at((key, value), path, edit)))
    if not isinstance(field.type, StructType):
        raise InvalidArgumentError(f"`{field.name}` is {field.type}, not a struct")
    return replace(field, type=StructType(_at(field.type.fields, path, edit)))

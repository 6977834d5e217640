"""The fields of a table of which one is renamed or dropped: ids stay, so that data files are read as before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.errors import ColumnNotFoundError, InvalidArgumentError
from boathouse.lance.file.fields import Field
from boathouse.table.edits import DropColumn, RenameColumn

_NONE = -1
"""The parent of top-level fields."""


def projected(fields: Sequence[Field], edit: RenameColumn | DropColumn, where: str) -> tuple[Field, ...]:
    """The fields after the edit. Raises ColumnNotFoundError, InvalidArgumentError for a name that is taken or not
    possible, and if nothing would be left."""
    found = field_at(fields, edit.path, where)
    beside = [f for f in fields if f.parent_id == found.parent_id and f.id != found.id]
    if isinstance(edit, DropColumn):
        if not beside:
            raise InvalidArgumentError(
                f"`{'.'.join(edit.path)}` is the only one that is left", where=where, advice="add another one first"
            )
        gone = {found.id}
        for f in fields:  # parents come first
            if f.parent_id in gone:
                gone.add(f.id)
        return tuple(f for f in fields if f.id not in gone)
    top = found.parent_id == _NONE
    if not edit.name or (top and "." in edit.name):
        raise InvalidArgumentError(
            f"`{edit.name}` as the name of a column", where=where, advice="Lance allows neither empty names nor dots"
        )
    if any(f.name == edit.name or (top and f.name.lower() == edit.name.lower()) for f in beside):
        raise InvalidArgumentError(f"there is a column `{edit.name}` already", where=where)
    return tuple(replace(f, name=edit.name) if f.id == found.id else f for f in fields)


def field_at(fields: Sequence[Field], path: Sequence[str], where: str) -> Field:
    """The field at a path, in which an element of a list has its own name, and maps have `key` and `value`. Raises
    ColumnNotFoundError."""
    parent, kind = _NONE, "struct"
    found = None
    for step in path:
        found = _member(fields, parent, kind, step)
        if found is None:
            raise ColumnNotFoundError(f"there is no column `{'.'.join(path)}`", where=where)
        parent, kind = found.id, found.logical_type
    assert found is not None
    return found


def _member(fields: Sequence[Field], parent: int, kind: str, step: str) -> Field | None:
    below = [f for f in fields if f.parent_id == parent]
    if kind == "map":  # entries, and in them key and value
        below = [f for f in fields if below and f.parent_id == below[0].id]
        return below[("key", "value").index(step)] if len(below) == 2 and step in ("key", "value") else None
    return next((f for f in below if f.name == step), None)

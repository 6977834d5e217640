"""The fields of a table of which one gets another type or comment, or may be null or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.errors import UnsupportedFeatureError
from boathouse.lance import schema as schemas
from boathouse.lance.commit.projection import field_at
from boathouse.lance.file.fields import Field
from boathouse.table.edits import CastColumn, SetComment, SetNullable
from boathouse.types import Field as PlainField
from boathouse.types import Schema

_OF_TYPE = ("ARROW:extension:", "lance-encoding:", schemas.SPELLING)
"""Keys of metadata that say how values of the type are stored."""


def cast(fields: Sequence[Field], edit: CastColumn, first_id: int, where: str) -> tuple[Field, ...]:
    """The fields with a new one, under ids from `first_id` on, in the place of the column. Raises ColumnNotFoundError,
    UnsupportedTypeError, UnsupportedFeatureError for what is in a list or map."""
    old = field_at(fields, edit.path, where)
    for depth in range(1, len(edit.path)):
        if field_at(fields, edit.path[:depth], where).logical_type != "struct":
            raise UnsupportedFeatureError(
                f"`{'.'.join(edit.path)}` is in a list or map, where no type is changed",
                where=where,
                advice="cast the whole column",
            )
    kept = {k: v.decode("utf-8", "surrogateescape") for k, v in old.metadata.items() if not k.startswith(_OF_TYPE)}
    plain = PlainField(old.name, edit.type, old.nullable, metadata=kept)
    new = numbered(schemas.from_schema(Schema((plain,))), first_id)
    new = (
        replace(
            new[0],
            parent_id=old.parent_id,
            unenforced_primary_key=old.unenforced_primary_key,
            unenforced_primary_key_position=old.unenforced_primary_key_position,
        ),
        *new[1:],
    )
    gone = {old.id}
    found: list[Field] = []
    for f in fields:  # parents come first
        if f.id == old.id:
            found += new
        elif f.parent_id in gone:
            gone.add(f.id)
        else:
            found.append(f)
    return tuple(found)


def numbered(fields: Sequence[Field], first_id: int) -> tuple[Field, ...]:
    """Fields whose ids begin at 0 with those from `first_id` on."""
    return tuple(
        replace(f, id=f.id + first_id, parent_id=f.parent_id + first_id if f.parent_id >= 0 else -1) for f in fields
    )


def set_nullable(fields: Sequence[Field], edit: SetNullable, where: str) -> tuple[Field, ...]:
    """The fields with one that may be null, or no longer: rows are not looked at here. Raises ColumnNotFoundError,
    UnsupportedFeatureError for a field of a struct that could not be null."""
    found = field_at(fields, edit.path, where)
    if found.nullable != edit.nullable and found.parent_id >= 0 and not edit.nullable:
        raise UnsupportedFeatureError(
            f"`{'.'.join(edit.path)}` is a field of a struct, which is null where the struct is", where=where
        )
    return tuple(replace(f, nullable=edit.nullable) if f.id == found.id else f for f in fields)


def set_comment(fields: Sequence[Field], edit: SetComment, where: str) -> tuple[Field, ...]:
    """The fields with another comment of one, in its metadata. Raises ColumnNotFoundError, UnsupportedFeatureError for
    that of the table."""
    if not edit.path:
        raise UnsupportedFeatureError(
            "a Lance table has no comment of its own", where=where, advice="set a property, or comment on its columns"
        )
    found = field_at(fields, edit.path, where)
    metadata = {k: v for k, v in found.metadata.items() if k != schemas.COMMENT_KEY}
    if edit.comment is not None:
        metadata[schemas.COMMENT_KEY] = edit.comment.encode("utf-8", "surrogateescape")
    return tuple(replace(f, metadata=metadata) if f.id == found.id else f for f in fields)

"""The protobuf messages that manifests and data files share: the fields of a schema."""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.bits.protobuf import Message, mapping, nested, repeated, scalar

ROW_ID, CREATED, UPDATED = -3, -4, -5
TOMBSTONE = -2
"""In the place of a field whose values in a data file are no longer those of the table."""
HIDDEN = frozenset((ROW_ID, CREATED, UPDATED))
"""The ids of columns of data files that are none of the table's: the ids of rows, and the versions in which they came
and were last changed."""


@dataclass(frozen=True, kw_only=True)
class Dictionary(Message):
    """The location of the values of a dictionary column in a 0.1 file: offset in bytes, length in values."""

    offset: int = scalar(1, "int64")
    length: int = scalar(2, "int64")


@dataclass(frozen=True, kw_only=True)
class Field(Message):
    """lance.file.Field: one field of the flat, depth-first list; top-level fields have parent_id -1."""

    type: int = scalar(1, "enum")
    name: str = scalar(2, "string")
    id: int = scalar(3, "int32")
    parent_id: int = scalar(4, "int32")
    logical_type: str = scalar(5, "string")
    nullable: bool = scalar(6, "bool")
    encoding: int = scalar(7, "enum")
    dictionary: Dictionary | None = nested(8, Dictionary)
    extension_name: str = scalar(9, "string")
    metadata: dict[str, bytes] = mapping(10, "string", "bytes")
    unenforced_primary_key: bool = scalar(12, "bool")
    unenforced_primary_key_position: int = scalar(13, "uint32")


@dataclass(frozen=True, kw_only=True)
class SchemaMessage(Message):
    fields: tuple[Field, ...] = repeated(1, Field)
    metadata: dict[str, bytes] = mapping(5, "string", "bytes")

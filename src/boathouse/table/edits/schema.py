"""Edits of the schema and of the partitioning: files may be written under them before they are committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import get_args

from boathouse.types import DataType, PartitionField, Schema, SortField


@dataclass(frozen=True, slots=True)
class ReplaceSchema:
    """An overwrite with a new schema and partitioning (None: the current one). `generated` and `defaults` as in
    CreateTable."""

    schema: Schema
    partition_by: tuple[PartitionField, ...] | None = None
    generated: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A column is added to the table or to the struct at `parent`; its id is assigned in `prepare`.

    It comes after the sibling `after`; None: at the end, an empty name: first. `default` is Spark SQL text of a
    constant, which existing rows have too.
    """

    name: str
    type: DataType
    parent: tuple[str, ...] = ()
    nullable: bool = True
    after: str | None = None
    default: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """The column or struct field at `path` gets another name."""

    path: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """The column or struct field at `path` is dropped."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetType:
    """The column or struct field at `path` gets a wider type, which all existing values fit."""

    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class CastColumn:
    """The column at `path` gets any other type: the same change adds files of it, with the values cast."""

    path: tuple[str, ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class SetComment:
    """The comment of the column or struct field at `path`, or of the table if it is empty; None removes it."""

    path: tuple[str, ...]
    comment: str | None


@dataclass(frozen=True, slots=True)
class SetNullable:
    """The column or struct field at `path` may be null, or no longer. With `unchecked` the user vouches for the rows
    that are there."""

    path: tuple[str, ...]
    nullable: bool
    unchecked: bool = False


@dataclass(frozen=True, slots=True)
class SetDefault:
    """What the column or struct field at `path` has in later rows that lack it: Spark SQL text of a constant; None
    removes it."""

    path: tuple[str, ...]
    default: str | None


@dataclass(frozen=True, slots=True)
class SetIdentifiers:
    """The columns and struct fields that identify a row; none: nothing does."""

    columns: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class MoveColumn:
    """The column or struct field at `path` comes right after its sibling `after`; an empty name: first."""

    path: tuple[str, ...]
    after: str


@dataclass(frozen=True, slots=True)
class SetPartitioning:
    """New files are partitioned by these fields; those that are there stay as they are."""

    fields: tuple[PartitionField, ...]


@dataclass(frozen=True, slots=True)
class SetSortOrder:
    """The order of rows that new files should have; none: no order."""

    fields: tuple[SortField, ...]


@dataclass(frozen=True, slots=True)
class ClearFeature:
    """What the schema says for a feature of the format goes; the same change writes every file again without it."""

    name: str


SchemaEdit = (
    ReplaceSchema
    | AddColumn
    | RenameColumn
    | DropColumn
    | SetType
    | CastColumn
    | SetComment
    | SetNullable
    | SetDefault
    | SetIdentifiers
    | MoveColumn
    | SetPartitioning
    | SetSortOrder
    | ClearFeature
)
SCHEMA_EDITS: tuple[type, ...] = get_args(SchemaEdit)

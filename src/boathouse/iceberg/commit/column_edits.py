"""Edits of single columns: added, moved, widened, their nullability, defaults, comments, and which of them identify a
row (spec, "Schema Evolution", "Default values", "Identifier Field IDs")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

import pyarrow as pa

from boathouse.arrow.cast import cast as cast_array
from boathouse.compute.evaluate import evaluate
from boathouse.errors import EvaluationError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind
from boathouse.iceberg.commit.defaults import writable
from boathouse.iceberg.commit.schema_draft import set_schema
from boathouse.iceberg.metadata.draft import COMMENT, Draft
from boathouse.iceberg.metadata.rules import highest_column_id
from boathouse.iceberg.metadata.schema_rules import IDENTIFIERS, promotes
from boathouse.iceberg.metadata.schemas import Ids, fresh_ids, storable
from boathouse.iceberg.metadata.single_values import INITIAL, WRITE, to_json
from boathouse.iceberg.metadata.updates import RemoveProperties, SetProperties
from boathouse.iceberg.metadata.versions import FormatVersion
from boathouse.table.edits import AddColumn, MoveColumn, SetComment, SetDefault, SetIdentifiers, SetNullable, SetType
from boathouse.types import (
    DataType,
    DateType,
    Field,
    FloatType,
    ListType,
    MapType,
    NullType,
    Schema,
    StructType,
    TimestampType,
)
from boathouse.types.evolution import with_edited, with_field, with_order

_ONE_ROW: Final = pa.table({"": pa.nulls(1)})


def add_column(draft: Draft, edit: AddColumn, where: str) -> None:
    """A new column of the table or of a struct, with the next ids. A default is that of existing rows and of later
    ones; a required column needs one."""
    metadata = draft.view(where)
    schema, version = metadata.schema, metadata.format
    path = (*edit.parent, edit.name)
    name = ".".join(path)
    added = fresh_ids(Field(edit.name, storable(edit.type, name, version)), Ids(highest_column_id(draft.document)))
    value = None if edit.default is None else _default(edit.default, added.type, name, version, where)
    if value is None and not edit.nullable:
        raise InvalidArgumentError(
            f"column `{name}` is required, but existing rows have no value",
            where=where,
            advice="give it a default (format version 3), or let it be null",
        )
    if value is not None:
        added = replace(added, metadata={INITIAL: value, WRITE: value})
    added = replace(added, nullable=edit.nullable, doc=edit.comment)
    fields = with_field(schema.fields, edit.parent, added)
    if edit.after is not None:
        fields = with_order(fields, path, edit.after)
    set_schema(draft, Schema(fields, schema.metadata))


def set_default(draft: Draft, edit: SetDefault, where: str) -> None:
    """The write default alone: what existing rows have never changes."""
    metadata = draft.view(where)
    name = ".".join(edit.path)

    def change(field: Field) -> Field:
        value = None
        if edit.default is not None:
            value = _default(edit.default, field.type, name, metadata.format, where)
        kept = {k: v for k, v in field.metadata.items() if k != WRITE}
        return replace(field, metadata=kept if value is None else {**kept, WRITE: value})

    _edit(draft, edit.path, change, where)


def with_defaults(schema: Schema, defaults: Mapping[str, str], version: FormatVersion, where: str) -> Schema:
    """The schema of a new table with the write defaults of its columns."""

    def one(f: Field) -> Field:
        value = _default(defaults[f.name], f.type, f.name, version, where) if f.name in defaults else None
        return f if value is None else replace(f, metadata={**f.metadata, WRITE: value})

    return Schema(tuple(map(one, schema.fields)), schema.metadata)


def set_defaults(draft: Draft, defaults: Mapping[str, str], where: str) -> None:
    """The write defaults of the columns of a new schema, by their names."""
    for name, sql in defaults.items():
        set_default(draft, SetDefault((name,), sql), where)


def _default(sql: str, type: DataType, name: str, version: FormatVersion, where: str) -> Any:
    """The JSON form of a default; None for null."""
    if version.number < 3:
        raise UnsupportedFeatureError(
            f"column `{name}` cannot have a default in a table of format version {version}",
            where=where,
            advice='upgrade the table: t.set_properties({"format-version": "3"})',
        )
    if not writable(type):
        raise UnsupportedFeatureError(
            f"a default of a {type} is not offered: column `{name}`",
            where=where,
            advice="leave it out",
        )
    try:
        bound = bind(parse(sql), Schema(()))
        assert bound.type is not None
        array = cast_array(evaluate(bound, _ONE_ROW), bound.type, type)
        return to_json(array[0].as_py(), type)
    except (ValueError, EvaluationError, pa.ArrowException) as error:
        raise InvalidArgumentError(
            f"the default {sql} of column `{name}` is no value of {type}: {error}", where=where
        ) from None


def set_nullable(draft: Draft, edit: SetNullable, where: str) -> None:
    """A column may be null from now on, or no longer: rows that are there are not looked at."""
    schema = draft.view(where).schema
    name = ".".join(edit.path)
    field = next(f for p, f in schema.walk() if p == edit.path)
    if field.nullable == edit.nullable:
        return
    if not edit.nullable and not edit.unchecked:
        raise UnsupportedFeatureError(
            f"column `{name}` may be null in existing rows, which other readers then fail on",
            where=where,
            advice="where you know that it is not, pass unchecked=True",
        )
    if not edit.nullable and isinstance(field.type, NullType):
        raise InvalidArgumentError(f"column `{name}` has no type yet, and no values: it cannot be required")
    if edit.nullable and any(name == other or other.startswith(f"{name}.") for other in _identifying(schema)):
        raise InvalidArgumentError(
            f"column `{name}` identifies rows, so it cannot be null", where=where, advice="set other identifiers first"
        )
    _edit(draft, edit.path, lambda f: replace(f, nullable=edit.nullable), where)


def _identifying(schema: Schema) -> Iterator[str]:
    ids = schema.metadata.get(IDENTIFIERS) or ()
    return (".".join(path) for path, f in schema.walk() if f.id in cast(list[int], ids))


def set_identifiers(draft: Draft, edit: SetIdentifiers, where: str) -> None:
    """Columns that are never null, of types whose values are equal or not."""
    schema = draft.view(where).schema
    fields = dict(schema.walk())
    for path in edit.columns:
        name, above = ".".join(path), [fields[path[:n]] for n in range(1, len(path))]
        field = fields[path]
        why = None
        if isinstance(field.type, FloatType | StructType | ListType | MapType | NullType):
            why = f"it is {field.type}"
        elif any(not isinstance(f.type, StructType) for f in above):
            why = "it is part of a list or map"
        elif field.nullable or any(f.nullable for f in above):
            why = "it may be null"
        if why is not None:
            raise InvalidArgumentError(
                f"column `{name}` cannot identify a row: {why}",
                where=where,
                advice="name required columns of integers, texts, dates, times or decimals; t.set_nullable(name, "
                "False, unchecked=True) makes one required",
            )
    ids = [fields[path].id for path in edit.columns]
    rest = {k: v for k, v in schema.metadata.items() if k != IDENTIFIERS}
    set_schema(draft, Schema(schema.fields, {**rest, IDENTIFIERS: ids} if ids else rest))


def move_column(draft: Draft, edit: MoveColumn, where: str) -> None:
    """Another order of the columns: no file changes, as they are found by id."""
    schema = draft.view(where).schema
    set_schema(draft, Schema(with_order(schema.fields, edit.path, edit.after), schema.metadata))


def set_comment(draft: Draft, edit: SetComment, where: str) -> None:
    """The doc of a column, or the table's property."""
    if edit.path:
        _edit(draft, edit.path, lambda f: replace(f, doc=edit.comment), where)
    elif edit.comment is not None:
        draft.make(SetProperties({COMMENT: edit.comment}))
    elif COMMENT in (draft.document.get("properties") or {}):
        draft.make(RemoveProperties((COMMENT,)))


def _edit(draft: Draft, path: tuple[str, ...], change: Callable[[Field], Field], where: str) -> None:
    schema = draft.view(where).schema
    set_schema(draft, Schema(with_edited(schema.fields, path, change), schema.metadata))


def set_type(draft: Draft, edit: SetType, where: str) -> None:
    """A promotion that the specification allows, of a column that is not a partition source."""
    metadata = draft.view(where)
    path, schema = ".".join(edit.path), metadata.schema
    field = next(f for p, f in schema.walk() if p == edit.path)
    wanted = storable(edit.type, path, metadata.format)
    if not promotes(field.type, wanted, metadata.format):
        later = promotes(field.type, wanted)
        raise UnsupportedFeatureError(
            f"column `{path}` is {field.type}, which Iceberg does not promote to {edit.type}"
            + (f" in format version {metadata.format}" if later else ""),
            where=where,
            advice='upgrade the table: t.set_properties({"format-version": "3"})'
            if later
            else "cast the data to the table's type",
        )
    if any(f.source_id == field.id for spec in metadata.partitioning.specs for f in spec):
        raise UnsupportedFeatureError(
            f"column `{path}` partitions the table, so its type cannot be changed",
            where=where,
            advice="cast the data to the table's type",
        )
    ids = Ids(highest_column_id(draft.document))
    fresh = fresh_ids(Field(field.name, wanted), ids).type if isinstance(field.type, NullType) else wanted
    _edit(draft, edit.path, lambda f: replace(f, type=fresh, metadata=_with_type(f, fresh)), where)


def _with_type(field: Field, type: DataType) -> dict[str, Any]:
    """The field's metadata, with defaults in the form of another type."""
    found = dict(field.metadata)
    if isinstance(field.type, DateType) and isinstance(type, TimestampType):
        for which in (INITIAL, WRITE):
            if found.get(which) is not None:
                found[which] = f"{found[which]}T00:00:00"
    return found

"""Values of a merge for columns of blobs: a clause may choose between the bytes of a source row and what the table
has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from boathouse.errors import ExpressionError
from boathouse.expr.parse import parse
from boathouse.expr.tree import Column, Expr
from boathouse.expr.values import Stored, Unread, as_blob, nothing
from boathouse.ops.rows.assign import stored
from boathouse.types import BinaryType, Field, Schema
from boathouse.types.blobs import is_written


def with_blobs(values: Mapping[str, Expr], schema: Schema, source: Schema, sides: tuple[str, str]) -> dict[str, Expr]:
    """The values of columns, of which those that are columns of bytes of the source are made blobs. An engine does so
    with other expressions, which give bytes."""
    return {name: _blob(value, schema.field(name), source, sides) for name, value in values.items()}


def _blob(value: Expr, field: Field, source: Schema, sides: tuple[str, str]) -> Expr:
    if not is_written(field.type) or not isinstance(value, Stored):
        return value
    named = _column(value.arg)
    if named is None or len(named.path) > 2 or (len(named.path) == 2 and named.path[0].lower() != sides[1].lower()):
        return value
    found = source.places.at(named.path[-1])
    if not found or not isinstance(source.fields[found[0]].type, BinaryType):
        return value
    return replace(value, arg=as_blob(value.arg, field.type, lambda m: stored(nothing(), m)))


def _column(value: Expr) -> Column | None:
    if isinstance(value, Unread):
        try:
            value = parse(value.sql)
        except ExpressionError:  # the engine may know more
            return None
    return value if isinstance(value, Column) else None

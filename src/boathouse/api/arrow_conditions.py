"""Conditions that are expressions of Arrow (`pyarrow.compute.field`), which DuckDB and polars make as well."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import pyarrow as pa

from boathouse.arrow.schema import to_arrow
from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.substrait import from_substrait
from boathouse.expr.tree import Expr
from boathouse.types import Field, Schema

if TYPE_CHECKING:
    import pyarrow.compute as pc


def from_arrow_expression(given: pc.Expression, schema: Schema) -> Expr:
    """The same as an expression of ours: it means what it says in Spark, so NaN is equal to NaN and the greatest.

    Raises UnsupportedFeatureError for what has no counterpart.
    """
    import_module("pyarrow.substrait")  # which to_substrait needs, and does not import
    fields = list(schema.fields)
    try:
        message = given.to_substrait(to_arrow(schema))
    except (pa.ArrowException, NotImplementedError):
        fields = [field for field in fields if _known(field)]
        message = _message(given, fields)
    return from_substrait(bytes(message), fields)


def _known(field: Field) -> bool:
    """Whether Substrait has the type of a field: one that it lacks would refuse conditions on all others."""
    compute = import_module("pyarrow.compute")
    try:
        compute.field(field.name).is_valid().to_substrait(to_arrow(Schema((field,))))
    except (pa.ArrowException, NotImplementedError):
        return False
    return True


def _message(given: pc.Expression, fields: list[Field]) -> pa.Buffer:
    try:
        return given.to_substrait(to_arrow(Schema(tuple(fields))))
    except (pa.ArrowException, NotImplementedError) as error:
        raise UnsupportedFeatureError(
            f"this Arrow expression cannot be a condition here: {given}: {error}",
            advice="say it as Spark SQL text, for example where=\"city LIKE 'B%'\"",
        ) from error

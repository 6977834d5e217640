"""Values that an update or a merge assigns to columns, as Spark SQL text."""

from __future__ import annotations

from collections.abc import Mapping

from boathouse.errors import ColumnNotFoundError, InvalidArgumentError
from boathouse.types import DataType, ListType, MapType, Schema, StructType, VariantType

NESTED = (StructType, ListType, MapType, VariantType)


def assigned(values: Mapping[str, str], schema: Schema) -> dict[str, str]:
    """The values by the table's names of the columns, cast to their types; struct fields are set with their struct.

    Raises ColumnNotFoundError, InvalidArgumentError for a column that is set twice.
    """
    found: dict[str, str] = {}
    for name, sql in values.items():
        try:
            field = schema.field(name)
        except ColumnNotFoundError as error:
            error.advice = "set a column of the table; a field of a struct is set with its whole struct"
            raise
        if field.name in found:
            raise InvalidArgumentError(f"column `{field.name}` is set twice", advice="set it once")
        found[field.name] = cast(sql, field.type)
    return found


def cast(sql: str, type: DataType) -> str:
    """The value in the type of a column; a nested one must have it already."""
    return f"({sql})" if isinstance(type, NESTED) else f"CAST(({sql}) AS {type})"

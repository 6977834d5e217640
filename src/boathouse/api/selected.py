"""What a scan returns of each row: columns as they are, or named values that are computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from boathouse.api.arguments import names
from boathouse.api.conditions import Condition, condition
from boathouse.errors import ExpressionError, InvalidArgumentError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind, resolve_path
from boathouse.expr.tree import Column, Expr, columns
from boathouse.table.metadata_columns import METADATA_COLUMNS, PARTITION, POSITION, SELECTABLE
from boathouse.types import Field, Schema

Columns: TypeAlias = "Sequence[str] | Mapping[str, Condition]"
"""Names of columns, or of fields of structs (`s.a`); or the values of named columns, in Spark SQL text."""
Named = tuple[str, Expr]


@dataclass(frozen=True, slots=True)
class Selected:
    """`columns` (None: all) and metadata columns (`hidden`) are read. Returned are the columns `output` of them, in
    their order (None: as they are read), or, where there are any, `values`."""

    columns: list[str] | None = None
    hidden: tuple[str, ...] = ()
    output: list[str] | None = None
    values: tuple[Named, ...] = ()

    @property
    def names(self) -> list[str] | None:
        """The columns of the result; None if they are all columns of the table."""
        return [name for name, _ in self.values] if self.values else self.output


def selected(schema: Schema, given: Columns | None, zone: str | None) -> Selected:
    """Raises ColumnNotFoundError, ExpressionError, InvalidArgumentError."""
    if given is None:
        return Selected()
    if isinstance(given, Mapping):
        wanted = names("columns", list(given))
        return _computed(schema, [(name, _value(name, given[name], schema)) for name in wanted], zone)
    paths = {name: _field(schema, name) for name in names("columns", given)}
    if all(path is None for path in paths.values()):
        output = chosen(schema, given)
        return Selected(*parted(schema, output), output)
    values = [_whole(schema, name) if path is None else (path.path[-1], path) for name, path in paths.items()]
    names("columns", [name for name, _ in values])
    return _computed(schema, values, zone)


def chosen(schema: Schema, given: Sequence[str]) -> list[str]:
    """The names of columns as the table spells them, and of metadata columns that no column hides."""
    found = [c if _is_metadata(schema, c) else schema.field(c).name for c in names("columns", given)]
    return names("columns", found)


def parted(schema: Schema, output: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Those of the chosen names that are columns, and the metadata columns."""
    there = schema.places
    return [n for n in output if there.exactly(n)], tuple(n for n in output if not there.exactly(n))


def _value(name: str, given: Condition, schema: Schema) -> Expr:
    try:
        return condition(given, schema)
    except ExpressionError:
        if isinstance(given, str):
            raise
    raise InvalidArgumentError(
        f"columns: {name!r}: {given!r} is not a value",
        advice="pass Spark SQL text such as 'price * 2', or bh.col('price')",
    )


def _is_metadata(schema: Schema, name: str) -> bool:
    return name in SELECTABLE and not schema.places.at(name)


def _field(schema: Schema, name: str) -> Column | None:
    """The field of a struct that a name stands for, where no column has this name."""
    if "." not in name or schema.places.at(name):
        return None
    try:
        found = parse(name)
    except ExpressionError:
        return None
    return found if isinstance(found, Column) and len(found.path) > 1 else None


def _whole(schema: Schema, name: str) -> Named:
    found = chosen(schema, [name])[0]
    return found, Column((found,))


def _computed(schema: Schema, values: Sequence[Named], zone: str | None) -> Selected:
    if not values:
        raise InvalidArgumentError("a scan of no columns", advice="name at least one, or use count()")
    named = dict.fromkeys(path[0] for _, e in values for path in columns(e))
    hidden = [Field(n, METADATA_COLUMNS[n].type) for n in named if _is_metadata(schema, n)]
    every = Schema((*schema.fields, *hidden))
    for _, e in values:
        if all(path[0] != PARTITION for path in columns(e)):  # only planning knows its fields
            bind(e, every, zone)
    read = list(dict.fromkeys(resolve_path((name,), every)[0][0] for name in named))
    stored, found = parted(schema, read)
    return Selected(stored, found if read else (POSITION,), None, tuple(values))

"""Values that an update or a merge assigns to columns, and to fields of structs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from boathouse.bits.names import steps
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError
from boathouse.expr.resolve import resolve_path
from boathouse.expr.tree import Column, Expr, Function, Literal, Path
from boathouse.expr.values import Sql, Stored, Unread, nothing
from boathouse.table.tasks import WriteContext
from boathouse.types import STRING, Field, Schema, StructType
from boathouse.types.data_types import unlabelled

Given = tuple[Path, Expr]
"""What a column, or a field by its path, is set to; of its fields, by what is left of their paths."""


def assigned(values: Mapping[str, Sql], schema: Schema, row: Path = (), table: Schema | None = None) -> dict[str, Expr]:
    """The values by the table's names of the columns, as they are stored there.

    A struct of which fields are set keeps the others; one that is null becomes a struct. `row` leads to the row as it
    was, with the columns of `table`. Raises ColumnNotFoundError, InvalidArgumentError for a column that is set twice,
    also within its struct.
    """
    by_column: dict[str, list[Given]] = {}
    for name, sql in values.items():
        head, *rest = column_path(name, schema)
        by_column.setdefault(head, []).append((tuple(rest), Unread(sql)))
    there = table or schema

    def before(name: str) -> Field | None:
        return there.field(name) if there.places.exactly(name) else None

    return {n: _value(schema.field(n), (*row, n), given, before(n)) for n, given in by_column.items()}


def column_path(name: str, schema: Schema) -> Path:
    """The path of `s.x` or `` `a.b` ``, as spelled in the schema; a name with dots may be without its backticks where
    it is no path. Raises ColumnNotFoundError."""
    try:
        return resolve_path(steps(name), schema)[0]
    except ColumnNotFoundError:
        if len(schema.places.at(name)) == 1:
            return (schema.field(name).name,)
        raise


def check_whole(names: Iterable[str], schema: Schema) -> None:
    """Raises InvalidArgumentError for a field of a struct, of which there is none yet."""
    for path in (column_path(name, schema) for name in names):
        if len(path) > 1:
            raise InvalidArgumentError(
                f"an insert sets whole columns, and `{'.'.join(path)}` is a field",
                advice=f"set `{path[0]}`, for example to named_struct('{path[1]}', 1)",
            )


def _value(field: Field, at: Path, given: Sequence[Given], was: Field | None) -> Expr:
    name = ".".join(at)
    if any(not rest for rest, _ in given):
        if len(given) > 1:
            within = next((f" and so is its field `{'.'.join(rest)}`" for rest, _ in given if rest), " twice")
            raise InvalidArgumentError(f"column `{name}` is set{within}", advice="set it once")
        return stored(given[0][1], field)
    assert isinstance(field.type, StructType)
    below: dict[str, list[Given]] = {}
    for rest, value in given:
        below.setdefault(rest[0], []).append((rest[1:], value))
    there = was.type.fields if was is not None and isinstance(was.type, StructType) else ()

    def member(f: Field) -> Expr:
        before = _named(there, f.name)
        if f.name in below:
            return _value(f, (*at, f.name), below[f.name], before)
        return nothing() if before is None else Column((*at, f.name))

    members = map(member, field.type.fields)
    return stored(struct((f.name for f in field.type.fields), members), field)


def _named(fields: Sequence[Field], name: str) -> Field | None:
    return next((f for f in fields if f.name == name), None)


def struct(names: Iterable[str], values: Iterable[Expr]) -> Expr:
    """A struct of these fields."""
    pairs = zip(names, values, strict=True)
    return Function("named_struct", tuple(e for n, v in pairs for e in (Literal(n, type=STRING), v)))


def stored(value: Expr, field: Field) -> Expr:
    """The value in the type of a column."""
    return Stored(value, unlabelled(field.type), field.name)


def needing(values: Mapping[str, Expr], context: WriteContext) -> dict[str, Expr]:
    """The values of columns, whose structs must have the fields that are not null where they are absent."""
    if not context.absent:
        return dict(values)
    needs: dict[str, list[Path]] = {}
    for (name, *rest), f in context.schema.walk():
        if rest and f.id in context.absent:
            needs.setdefault(name, []).append(tuple(rest))
    return {n: replace(v, needs=tuple(needs.get(n, ()))) if isinstance(v, Stored) else v for n, v in values.items()}

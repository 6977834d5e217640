"""ALTER TABLE of columns, properties and constraints in sql(), on the three formats."""

from __future__ import annotations

from typing import Any

from boathouse.api.columns import typed
from boathouse.api.engines import LOCAL
from boathouse.api.sql.tables import Tables
from boathouse.api.table import Table
from boathouse.bits.names import steps
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.alter_columns import (
    AddedColumns,
    AlteredColumn,
    AlteredConstraint,
    AlteredProperties,
    ChangedColumn,
    DroppedColumns,
    DroppedFeature,
    NewColumn,
    RenamedColumn,
)
from boathouse.expr.resolve import resolve_path
from boathouse.ops.options import WriteOptions
from boathouse.ops.schema.add_columns import AddColumns
from boathouse.ops.schema.alter_columns import column_path
from boathouse.table.features import ColumnFiles
from boathouse.types.data_types import unlabelled


def added(tables: Tables, s: AddedColumns) -> Any:
    """ADD COLUMNS, in one commit."""
    table = tables.table(s.table)
    first, *others = s.columns
    alike = all(_rules(c) == _rules(first) for c in others) and (first.after is None or not others)
    if alike:
        columns = tuple((c.name, typed(c.type)) for c in s.columns)
        write = AddColumns(columns, first.nullable, first.default, first.comment, first.after)
        table._run(LOCAL, write, WriteOptions())
        return nothing(tables)
    change = table.evolve()
    for c in s.columns:
        rules: dict[str, Any] = {"default": c.default, "nullable": c.nullable, "comment": c.comment}
        change = change.add_column(c.name, c.type, after=c.after or None, first=c.after == "", **rules)
    change.execute()
    return nothing(tables)


def _rules(c: NewColumn) -> tuple[Any, ...]:
    return c.nullable, c.default, c.comment, c.after


def renamed(tables: Tables, s: RenamedColumn) -> Any:
    """RENAME COLUMN."""
    tables.table(s.table).rename_column(s.name, s.new)
    return nothing(tables)


def dropped(tables: Tables, s: DroppedColumns) -> Any:
    """DROP COLUMNS, in one commit where the format has several changes in one."""
    table = tables.table(s.table)
    names = [name for name in s.names if not s.if_exists or _there(table, name)]
    if len(names) == 1:
        table.drop_column(names[0])
    elif names:
        change = table.evolve()
        for name in names:
            change = change.drop_column(name)
        change.execute()
    return nothing(tables)


def _there(table: Table, name: str) -> bool:
    try:
        resolve_path(steps(name), table.schema)
    except ColumnNotFoundError:
        return False
    return True


def altered(tables: Tables, s: AlteredColumn) -> Any:
    """ALTER COLUMN."""
    table = tables.table(s.table)
    value: Any = s.value
    match s.action:
        case "type" if table._handle.snapshot.offers(ColumnFiles) is not None:
            table.cast_column(s.name, value)
        case "type":
            table.widen_column(s.name, value)
        case "comment":
            table.set_comment(value or None, s.name)
        case "after":
            table.move_column(s.name, after=value or None)
        case "nullable":
            table.set_nullable(s.name, value)
        case _:
            table.set_default(s.name, value)
    return nothing(tables)


def changed(tables: Tables, s: ChangedColumn) -> Any:
    """CHANGE COLUMN, as Hive says it: what differs from what the column is, in one commit."""
    table = tables.table(s.table)
    path = column_path(s.name, table.schema)
    known = next(f.type for p, f in table.schema.walk() if p == path)
    change, steps = table.evolve(), 0
    if typed(s.type) != unlabelled(known):
        change, steps = change.widen_column(s.name, s.type), steps + 1
    if s.comment is not None:
        change, steps = change.set_comment(s.comment or None, s.name), steps + 1
    if s.after is not None:
        change, steps = change.move_column(s.name, after=s.after or None), steps + 1
    if steps:
        change.execute()
    return nothing(tables)


def dropped_feature(tables: Tables, s: DroppedFeature) -> Any:
    """DROP FEATURE."""
    if s.truncate:
        raise UnsupportedFeatureError("DROP FEATURE ... TRUNCATE HISTORY is not offered", advice="leave it out")
    tables.table(s.table).drop_feature(s.name)
    return nothing(tables)


def properties(tables: Tables, s: AlteredProperties) -> Any:
    """SET and UNSET TBLPROPERTIES."""
    table = tables.table(s.table)
    if not s.if_exists:
        for key, _ in s.properties:
            if key not in table.properties:
                raise InvalidArgumentError(f"the table has no property {key!r}", advice="use UNSET ... IF EXISTS")
    table.set_properties(dict(s.properties))
    return nothing(tables)


def constraint(tables: Tables, s: AlteredConstraint) -> Any:
    """ADD and DROP CONSTRAINT."""
    table = tables.table(s.table)
    if s.condition is not None:
        table.add_constraint(s.name, s.condition)
        return nothing(tables)
    known = {key.lower() for key in table.properties}
    if not s.if_exists or f"delta.constraints.{s.name.lower()}" in known:
        table.drop_constraint(s.name)
    return nothing(tables)


def nothing(tables: Tables) -> Any:
    """The result of a statement that gives no rows."""
    return tables.spark.range(0).drop("id")

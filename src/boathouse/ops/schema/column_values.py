"""Columns with values for the rows that are there: new ones, or one in another type. Their files come beside those that
are there, and none is written again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import ClassVar, Protocol

import pyarrow as pa

from boathouse import registry
from boathouse.arrow.conform import conform
from boathouse.arrow.schema import from_arrow, to_arrow
from boathouse.bits.names import Names
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind
from boathouse.expr.tree import Case, Column, Expr, IsNull, Not, columns
from boathouse.expr.values import Stored
from boathouse.ops.outcomes import data_files
from boathouse.ops.rows.assign import stored, struct
from boathouse.ops.schema.add_columns import AddColumns
from boathouse.ops.schema.alter_columns import column_path
from boathouse.ops.schema.dependents import check_unnamed
from boathouse.ops.tasks.column_files import ColumnTask, Compute, write_columns
from boathouse.ops.tasks.column_values import Applied, Expressions, Function, Joined
from boathouse.ops.write import Planned, Start, TaskWork, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import AddColumnFiles, CastColumn, SchemaEdit
from boathouse.table.features import ColumnFiles, required
from boathouse.table.metadata_columns import POSITION
from boathouse.table.plan import ScanPlan, compact, deletes_of
from boathouse.table.tasks import ScanTask
from boathouse.types import DataType, Field, NullType, Schema
from boathouse.types.data_types import field_of_path


@dataclass(frozen=True, slots=True)
class Values:
    """The new columns, those that they are computed from, and how. `serial`: in process one unit after another."""

    columns: Schema
    reads: tuple[str, ...]
    compute: Compute
    serial: bool = False


class Given(Protocol):
    """Where values come from."""

    def values(self, start: Start) -> Values:
        """For the newest snapshot."""


@dataclass(frozen=True, slots=True)
class ByExpressions:
    """Spark SQL text in the columns of the row. Raises ExpressionError, ColumnNotFoundError."""

    texts: Mapping[str, str]

    def values(self, start: Start) -> Values:
        schema = start.snapshot.schema
        bound = {}
        for name, text in self.texts.items():
            value = parse(text)
            known = schema.field(name) if schema.places.exactly(name) else None
            bound[name] = bind(value if known is None else stored(value, known), schema, start.zone)
        fields = [Field(name, _known(e.type, name, "cast it: cast(null as int)")) for name, e in bound.items()]
        read = {path[0] for e in bound.values() for path in columns(e)}
        return Values(Schema(tuple(fields)), tuple(n for n in schema.names if n in read), Expressions(bound))


@dataclass(frozen=True, slots=True)
class ByFunction:
    """A function over Arrow batches of these columns (None: all); without a `schema` it says by its result for the
    first rows what the columns are. Raises what it raises, and InvalidArgumentError."""

    function: Function
    reads: tuple[str, ...] | None = None
    schema: Schema | None = None

    def values(self, start: Start) -> Values:
        names = start.snapshot.schema.names if self.reads is None else self.reads
        reads = tuple(column_path(name, start.snapshot.schema)[0] for name in names)
        found = self.schema or self._found(start, reads)
        fields = [Field(f.name, _known(f.type, f.name, "pass schema=")) for f in found]
        columns = Schema(tuple(fields))
        return Values(columns, reads, Applied(self.function, to_arrow(columns)), serial=True)

    def _found(self, start: Start, reads: tuple[str, ...]) -> Schema:
        plan = start.snapshot.plan(reads, None, (), start.engine.map)
        read = registry.tasks(plan.read.format).read
        batches = (batch for task in plan.tasks() for batch in read(task) if batch.num_rows)
        empty = pa.RecordBatch.from_pylist([], plan.read.schema)
        return from_arrow(Applied(self.function)(next(islice(batches, 1), empty)).schema)


@dataclass(frozen=True, slots=True)
class ByKeys:
    """The columns of `data` beside the keys `on`, from the row with equal keys; null where there is none.

    Raises ColumnNotFoundError, SchemaMismatchError for keys of other types, ConstraintViolationError if the data has a
    key twice.
    """

    data: pa.Table
    on: tuple[str, ...]

    def values(self, start: Start) -> Values:
        schema = start.snapshot.schema
        keys = [schema.field(column_path(name, schema)[0]) for name in self.on]
        own = [_own(name, self.data.schema.names) for name in self.on]
        others = [name for name in self.data.schema.names if name not in own]
        if not others:
            raise InvalidArgumentError("the data has no columns but its keys", advice="pass the columns to add")
        on = self.data.select(own).rename_columns([k.name for k in keys])
        wanted = Schema(tuple(Field(k.name, k.type) for k in keys))
        source = self.data.select(others)
        fields = [Field(f.name, _known(f.type, f.name, "cast it")) for f in from_arrow(source.schema)]
        found = Schema(tuple(fields))
        joined = Joined([k.name for k in keys], _table(on, wanted), _table(source, found))
        return Values(found, tuple(k.name for k in keys), joined)


def _table(data: pa.Table, schema: Schema) -> pa.Table:
    found = conform(data, schema)
    assert isinstance(found, pa.Table)
    return found.combine_chunks()


def _own(name: str, names: Sequence[str]) -> str:
    hits = Names(names).at(name)
    if len(hits) != 1:
        raise ColumnNotFoundError(f"the data has no column `{name}`", advice=f"it has {', '.join(names)}")
    return names[hits[0]]


def _known(type: DataType | None, name: str, advice: str) -> DataType:
    if type is None or isinstance(type, NullType):
        raise InvalidArgumentError(f"column `{name}` has no type: all of its values are null", advice=advice)
    return type


@dataclass(frozen=True, slots=True)
class ColumnsComputed:
    """Adds columns whose values existing rows get at once; with `replace` columns that are there get others in place of
    theirs. Raises what `given` raises, UnsupportedFeatureError, EvaluationError, SchemaMismatchError, and
    InvalidArgumentError for a name that already exists."""

    given: Given
    replace: bool = False
    operation: ClassVar[Operation] = "add-columns"

    def plan(self, start: Start) -> WritePlan:
        required(start.snapshot, ColumnFiles, "adding columns with values")
        values = self.given.values(start)
        if not len(values.columns):
            raise InvalidArgumentError("there is no column to add", advice="give at least one")
        there = start.snapshot.schema.places
        new = tuple((f.name, f.type) for f in values.columns if not (self.replace and there.exactly(f.name)))
        change = AddColumns(new).plan(start).finish(()).change
        assert change is not None
        parameters = dict(change.parameters)
        if replaced := [name for name in values.columns.names if name not in dict(new)]:
            parameters |= {"replaced": ", ".join(replaced)}
        return _plan(start, change.schema_edits, values, "add-columns", parameters)


@dataclass(frozen=True, slots=True)
class ColumnCast:
    """Gives a column another type: every value is cast as Spark casts it with ANSI on.

    Raises ColumnNotFoundError, UnsupportedFeatureError, ExpressionError if no value can be cast, EvaluationError if one
    cannot.
    """

    column: str
    type: DataType
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        snapshot = start.snapshot
        required(snapshot, ColumnFiles, "another type of a column")
        edit = CastColumn(column_path(self.column, snapshot.schema, parts=True), self.type)
        found = next(f for path, f in snapshot.schema.walk() if path == edit.path)
        if found.type == self.type:
            return WritePlan((), lambda _: Planned(None))
        future = start.evolved((edit,)).schema
        check_unnamed(snapshot, start.write_id, start.zone, edit.path, f"a {self.type}")
        name, *within = edit.path
        _known(self.type, name, "name another type")
        made = field_of_path(future.field(name), within)
        value = bind(_cast_at(edit.path, 1, self.type, found.name), snapshot.schema, start.zone)
        values = Values(Schema((replace(made, id=None),)), (name,), Expressions({name: value}))
        parameters = {"column": ".".join(edit.path), "type": str(self.type)}
        return _plan(start, (edit,), values, "alter-columns", parameters, (edit.path,))


def _cast_at(path: tuple[str, ...], depth: int, type: DataType, name: str) -> Expr:
    """The column with nothing in it but the field at the path, cast; structs stay null where they are."""
    at = Column(path[:depth])
    if depth == len(path):
        return Stored(at, type, name)
    inner = struct((path[depth],), (_cast_at(path, depth + 1, type, name),))
    return Case(((Not(IsNull(at)), inner),), None)


def _plan(
    start: Start,
    edits: Sequence[SchemaEdit],
    values: Values,
    operation: Operation,
    parameters: Mapping[str, str],
    paths: Sequence[tuple[str, ...]] = (),
) -> WritePlan:
    """Writes a file of the columns for each unit, in tasks, and adds all of them in one commit. With `paths` they have
    nothing but the fields there."""
    future = start.evolved(edits)
    written = paths or tuple((name,) for name in values.columns.names)
    context = required(future, ColumnFiles, operation).column_context(start.write_id, written)
    plan = start.snapshot.plan(values.reads, None, (POSITION,), start.engine.map)
    scans = [ScanTask(plan.read, units, deletes_of(units, plan.deletes)) for units in _each(plan)]
    groups = [tuple(scans)] if values.serial and start.engine.name == "local" else [(scan,) for scan in scans]
    tasks = [ColumnTask(group, context) for group in groups if group]
    work = TaskWork(
        partial(write_columns, values.compute),
        tasks,
        [sum(scan.cost for scan in task.scans) for task in tasks],
        context,
    )

    def finish(outcomes: Sequence[pa.Table]) -> Planned:
        added = (AddColumnFiles(data_files(outcomes[0])),) if tasks else ()
        return Planned(start.change(operation, (*edits, *added), ReadSet(whole=True), parameters))

    return WritePlan((work,), finish)


def _each(plan: ScanPlan) -> list[pa.Table]:
    return [compact(plan.units.slice(i, 1)) for i in range(plan.units.num_rows)]

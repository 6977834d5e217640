"""Rows of files that Spark's planner asks for: constants of files are partition columns of Spark, and conditions that
come later choose files when each query is planned. Classic sessions only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from py4j.clientserver import ClientServer
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as S

from boathouse.engines.spark.catalyst import Catalyst
from boathouse.engines.spark.file_index import FileIndex
from boathouse.engines.spark.file_lists import FileList, Held, Listing, Searched
from boathouse.engines.spark.groups import Group, Rows
from boathouse.engines.spark.read_schema import Shape
from boathouse.engines.spark.reader import OPTIONS, SKIPS_NOTHING
from boathouse.engines.spark.schema import spark_type
from boathouse.engines.spark.selection import Stored
from boathouse.engines.spark.tuples import Constants, Tuples
from boathouse.expr.tree import Column as Name
from boathouse.expr.tree import Expr
from boathouse.table.metadata_columns import UNIT
from boathouse.table.plan import PlannedUnits, ScanPlan
from boathouse.table.tasks import ReadColumn
from boathouse.types import INT64

Unreadable = Callable[[pa.Table], str | None]
Spelled = Callable[[pa.Table], pa.Table]

_UNIT: Final = "__unit"
_PREFIX: Final = "__p"
_FOUND: WeakKeyDictionary[SparkSession, str | None] = WeakKeyDictionary()


def asking_obstacle(spark: SparkSession, units: pa.Table) -> str | None:
    """Why Spark does not ask for these files in this session; None if it does. Tried once per session."""
    if units.column("size").null_count:
        return "the sizes of some are unknown"
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return "a Connect session has no way for its planner to ask"
    if spark not in _FOUND:
        _FOUND[spark] = _fault(spark)
    return _FOUND[spark]


def _unpinned(spark: SparkSession) -> bool:
    """Whether what we ask of the JVM while it asks us runs in another of its threads, which has other settings."""
    return not isinstance(spark.sparkContext._gateway, ClientServer)


def searches(spark: SparkSession, plan: ScanPlan) -> bool:
    """Whether each query looks for the plan's files, so that making a frame looks at a part of them only."""
    later = plan.later
    if later is None or later.outline is None or plan.first is None or UNIT in plan.read.hidden:
        return False
    return asking_obstacle(spark, plan.first.units) is None and not plan.within(later.held)


def looked_at(spark: SparkSession, plan: ScanPlan) -> PlannedUnits:
    """The units of a plan that are looked at when a frame is made: all, or the first where queries search."""
    return plan.first if plan.first is not None and searches(spark, plan) else plan.whole


def _fault(spark: SparkSession) -> str | None:
    """Asks for the files of a relation that has none, with a filter on each kind of column."""
    if _unpinned(spark):
        return "its planner would ask with another thread's settings (PYSPARK_PIN_THREAD is false)"
    try:
        catalyst = Catalyst.of(spark)
        partition = S.StructType([S.StructField("p", S.LongType())])
        probe = _Probe(catalyst.rows(spark.createDataFrame(pa.table({"p": [1]}))))
        known = {"x": Name(("x",), type=INT64), "p": Name(("p",), type=INT64)}
        index = FileIndex(catalyst, probe, catalyst.schema(partition), known, "a probe")
        frame = catalyst.frame(spark, index, partition, S.StructType([S.StructField("x", S.LongType())]), OPTIONS)
        found = frame.where("x = 5 AND p = 1").collect()
    except (Py4JError, PySparkException, AttributeError, TypeError) as error:
        return f"Spark {spark.version} does not ask for files: {str(error).strip().splitlines()[0][:200]}"
    if found or not probe.asked:
        return f"Spark {spark.version} does not ask for files"
    return None


class _Probe:
    """No files, and whether a query asked for them in the way that it should."""

    identity, words, bytes = "none", "no files", 0

    def __init__(self, rows: object) -> None:
        self._rows = rows
        self.asked = False

    def all(self) -> pa.Array:
        return pa.array([], pa.string())

    def matching(self, where: Expr | None, accepted: Callable[[object], object] | None) -> Listing:
        judged = None if accepted is None else list(accepted(self._rows))  # type: ignore[call-overload]
        self.asked = where is not None and judged == [True]
        none = np.zeros(0, np.int64)
        return Listing(self.all(), none, none, self._rows)


class Asked:
    """A source of rows for `native_frame`: relations whose files Spark asks for.

    Of files that each query looks for, `obstacle` says why Spark cannot read some, and `spelled` how it knows them.
    """

    def __init__(self, spark: SparkSession, plan: ScanPlan, obstacle: Unreadable, spelled: Spelled) -> None:
        self._spark = spark
        self._catalyst = Catalyst.of(spark)
        self._read = plan.read
        self._later = plan.later
        self._searches = searches(spark, plan)
        self._obstacle, self._spelled = obstacle, spelled

    def rows(self, group: Group, stored: Sequence[ReadColumn], shape: Shape, skips: bool) -> Rows:
        """The rows of one group; `stored` are its columns that its files have."""
        with_unit = group.deleted or UNIT in self._read.hidden
        constants = self._constants(group, with_unit, {f.name.lower() for f in shape.fields})
        files, constants = self._files(group, constants)
        partition = list(constants.fields)
        named = {f.name: Name((c.name,), type=c.type) for f, c in zip(partition, constants.columns, strict=False)}
        named |= {shape.names[c.name]: Name((c.name,), type=c.type) for c in stored if c.name not in shape.casts}
        named = {name: column for name, column in named.items() if name not in self._catalyst.file_fields}
        struct = S.StructType(partition)
        index = FileIndex(self._catalyst, files, self._catalyst.schema(struct), named, self._read.version)
        data = S.StructType([_required(c, shape, f) for c, f in zip(stored, shape.fields, strict=True)])
        frame = self._catalyst.frame(self._spark, index, struct, data, OPTIONS if skips else OPTIONS | SKIPS_NOTHING)
        kept = tuple((f"{_PREFIX}{i}", Stored(f.name)) for i, f in enumerate(partition))
        values = {c.name: Stored(f"{_PREFIX}{i}") for i, c in enumerate(constants.columns)}
        unit = Stored(f"{_PREFIX}{len(constants.columns)}") if with_unit else None
        key = None if unit is None else unit.column()
        return Rows(frame, kept, values, unit, key, group.units.column("unit").combine_chunks())

    def _constants(self, group: Group, with_unit: bool, taken: set[str]) -> Constants:
        """The columns of the group that are constant in its files; `taken` are names in the files, in small letters."""
        columns = tuple(c for c in self._read.columns if c.name in group.constants)
        fields = [S.StructField((c.physical or (c.name,))[0], spark_type(c.type, c.name), c.nullable) for c in columns]
        if with_unit:
            name = _UNIT
            while name in taken | {f.name.lower() for f in fields}:
                name += "_"
            fields.append(S.StructField(name, S.LongType(), False))
        return Constants(columns, tuple(group.constants[c.name] for c in columns), tuple(fields))

    def _files(self, group: Group, constants: Constants) -> tuple[FileList, Constants]:
        """The group's files; fields of constants are nullable also where one of its files has a null."""
        if self._searches and self._later is not None:
            schema = group.units.schema
            return Searched(
                self._spark, self._catalyst, self._later, constants, schema, self._obstacle, self._spelled
            ), constants
        tuples = constants.of(group.units)
        constants = replace(constants, fields=tuple(_nullable(constants, tuples)))
        held = Held(
            group.paths.combine_chunks(),
            group.units.column("path").combine_chunks(),
            group.units.column("size").to_numpy(),
            tuples,
            self._catalyst.rows(constants.restored(self._spark, tuples)),
            self._later,
        )
        return held, constants


def _nullable(constants: Constants, tuples: Tuples) -> list[S.StructField]:
    found = []
    for i, f in enumerate(constants.fields):
        nullable = f.nullable or tuples.values.column(i).null_count > 0
        found.append(S.StructField(f.name, f.dataType, nullable))
    return found


def _required(c: ReadColumn, shape: Shape, f: S.StructField) -> S.StructField:
    """The field, not nullable where the table says so and no file can lack the column; a cast allows nulls."""
    if c.nullable or c.default is not None or c.name in shape.casts:
        return f
    return S.StructField(f.name, f.dataType, False, f.metadata)

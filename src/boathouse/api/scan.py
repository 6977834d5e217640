"""A scan: columns and a predicate over one version, run when rows are requested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from boathouse.api.arguments import errors_at, located, names
from boathouse.api.conditions import Condition, condition
from boathouse.api.engines import LOCAL, session, spark_engine, zone_of
from boathouse.api.explain import Explanation
from boathouse.engines.local import read_table
from boathouse.errors import MissingRequirementError
from boathouse.expr.identifiers import quote
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import Expr, all_of
from boathouse.ops.handle import Handle
from boathouse.table.engine import Engine
from boathouse.table.features import Outlined
from boathouse.table.metadata_columns import DELETED, SELECTABLE
from boathouse.table.plan import HELD_FILES, Later, ScanPlan
from boathouse.types import Schema


class Scan:
    """The rows of one version of a table; nothing is read before a method is called.

    It exports itself as an Arrow stream: `pa.table(scan)`, `polars.DataFrame(scan)` and DuckDB read it.

    >>> scan = t.scan(columns=["id", "city"], where="price > 20")
    >>> pa.table(scan).column("id").to_pylist()
    [2, 3]
    """

    def __init__(
        self,
        handle: Handle,
        columns: Sequence[str] | None,
        where: Condition | None,
        spark: Any,
        timezone: str | None = None,
    ) -> None:
        schema = handle.snapshot.schema
        self._handle = handle
        self._spark = spark
        self._timezone = timezone
        with errors_at(self.uri):
            self._output = None if columns is None else chosen(schema, columns)
            self._columns, self._hidden = parted(schema, self._output)
            self._parsed = None if where is None else condition(where)
            self._where = self._bound(LOCAL)

    def _bound(self, engine: Engine) -> Expr | None:
        """The predicate, bound to its time zone on this engine."""
        if self._parsed is None:
            return None
        zone = zone_of(engine, self._timezone, self._spark)
        return bind_predicate(self._parsed, self._handle.snapshot.schema, zone)

    @property
    def uri(self) -> str:
        """The root folder of the table, as a URI."""
        return self._handle.location.uri

    @located
    def plan(self, engine: Engine = LOCAL) -> ScanPlan:
        """Which units (data files, with what is deleted in them) are read for this scan, and which are skipped;
        `engine` is for engines of this library. `explain` says it in words.

        Raises CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        h = self._handle
        where = self._where if engine is LOCAL else self._bound(engine)
        return h.snapshot.plan(self._columns, where, self._hidden, engine.map)

    @located
    def to_arrow(self) -> pa.Table:
        """All rows, in process.

        Raises EvaluationError if the condition fails on a row, MissingFileError, CorruptTableError,
        UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        found = read_table(LOCAL, self.plan())
        return found.select(self._output) if self._hidden else found

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows batch by batch, in bounded memory.

        Raises EvaluationError if the condition fails on a row, MissingFileError, CorruptTableError,
        UnsupportedFeatureError, ForeignPathError, StorageError, also between batches.

        >>> sum(batch.num_rows for batch in t.scan(where="price > 20").to_batches())
        2
        """
        return self._batches(self.plan())

    def _batches(self, plan: ScanPlan) -> Iterator[pa.RecordBatch]:
        with errors_at(self.uri):
            for batch in LOCAL.batches(plan):
                yield batch.select(self._output) if self._hidden else batch

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream, in bounded memory.

        Raises CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError. What goes wrong while the
        stream is read (EvaluationError, MissingFileError) raises Arrow's own errors with our message: use `to_batches`
        for typed ones.
        """
        plan = self.plan()
        schema = plan.read.schema
        if self._hidden:
            schema = pa.schema([schema.field(n) for n in self._output or ()])
        return pa.RecordBatchReader.from_batches(schema, self._batches(plan))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame.

        Raises MissingRequirementError if pandas is not installed, EvaluationError if the condition fails on a row,
        MissingFileError, CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        if find_spec("pandas") is None:
            raise MissingRequirementError("pandas is not installed", advice="run pip install pandas, or use to_arrow()")
        return self.to_arrow().to_pandas()

    @located
    def to_spark(self, spark: Any = None) -> Any:
        """A Spark DataFrame, with native reads where that is safe; `explain()` names the scan strategy and the reason.

        Raises InvalidArgumentError without a session, CorruptTableError, UnsupportedFeatureError, ForeignPathError,
        StorageError; reading the rows raises Spark's own errors.
        """
        engine = spark_engine(session(self._spark if spark is None else spark))
        plan = self.plan(engine)
        plan.later = self._later(plan.where)
        frame = engine.scan(plan)
        return frame.select(*map(quote, self._output or ())) if self._hidden else frame

    def _later(self, given: Expr | None) -> Later:
        """How conditions are answered that come after planning with one that is bound."""
        snapshot = self._handle.snapshot

        def units(where: Expr | None) -> Iterator[pa.RecordBatch]:
            both = [given, None if where is None else bind_predicate(where, snapshot.schema)]
            known = [c for c in both if c is not None]
            return snapshot.files(where=all_of(known) if known else None)

        outlined = snapshot.offers(Outlined)
        outline = None if outlined is None else outlined.outline(HELD_FILES)
        return Later(units, f"{snapshot.identity} {given!r}", outline, HELD_FILES)

    @located
    def count(self) -> int:
        """The number of rows; from metadata alone if every file records it, and there is no predicate, or one that
        partition values decide.

        Raises EvaluationError if the condition fails on a row, MissingFileError, CorruptTableError,
        UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        h = self._handle
        if DELETED in self._hidden:
            return sum(batch.num_rows for batch in self.to_batches())
        if self._where is None:
            rows = h.snapshot.plan([], None, ("_pos",), LOCAL.map).rows
            if rows is not None:
                return rows
        plan = h.snapshot.plan([], self._where, ("_pos",), LOCAL.map)
        if plan.read.where is None and plan.rows is not None:
            return plan.rows
        return sum(batch.num_rows for batch in LOCAL.batches(plan))

    def files(self) -> list[str]:
        """Paths of the data files that the scan would read.

        Raises CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        return list(self.plan().units.column("path").to_pylist())

    def __repr__(self) -> str:
        h = self._handle
        columns = "all columns" if self._output is None else f"columns {', '.join(self._output)}"
        where = "" if self._where is None else f" where {self._where}"
        return f"scan of {h.snapshot.format} table {h.location}, version {h.snapshot.version}: {columns}{where}"

    def explain(self) -> Explanation:
        """Which units are read, and which are skipped by which filter; on Spark also the scan strategy.

        Raises CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.

        >>> plan = t.scan(where="id = 99").explain()
        >>> plan.units, sum(plan.skipped.values())
        (0, 1)
        """
        spark = self._spark
        return Explanation.of(self._handle.snapshot, self.plan(), None if spark is None else spark_engine(spark))


def chosen(schema: Schema, columns: Sequence[str]) -> list[str]:
    """The names of columns as the table spells them, and of metadata columns that no column hides."""
    given = names("columns", columns)
    found = [c if c in SELECTABLE and not schema.places.at(c) else schema.field(c).name for c in given]
    return names("columns", found)


def parted(schema: Schema, output: Sequence[str] | None) -> tuple[list[str] | None, tuple[str, ...]]:
    """Those of the chosen names that are columns (None: all), and the metadata columns."""
    there = schema.places
    columns = None if output is None else [n for n in output if there.exactly(n)]
    return columns, tuple(n for n in output or () if not there.exactly(n))

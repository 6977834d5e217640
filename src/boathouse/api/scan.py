"""A scan: columns and a predicate over one version, run when rows are requested."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from boathouse.api.arguments import errors_at, located, number
from boathouse.api.conditions import Condition, condition
from boathouse.api.engines import LOCAL, session, spark_engine, zone_of
from boathouse.api.explain import Explanation
from boathouse.api.selected import Columns, selected
from boathouse.engines.local import read_table
from boathouse.engines.sources import Batches
from boathouse.errors import MissingRequirementError
from boathouse.expr.identifiers import quote
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import And, Expr, all_of
from boathouse.ops.handle import Handle
from boathouse.table.engine import Engine
from boathouse.table.features import Outlined
from boathouse.table.metadata_columns import DELETED
from boathouse.table.plan import HELD_FILES, Later, ScanPlan

if TYPE_CHECKING:
    import pyarrow.dataset as pa_dataset


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
        columns: Columns | None = None,
        where: Condition | None = None,
        spark: Any = None,
        timezone: str | None = None,
        limit: int | None = None,
    ) -> None:
        self._handle = handle
        self._spark = spark
        self._timezone = timezone
        with errors_at(self.uri):
            self._limit = None if limit is None else number("limit", limit)
            self._selected = selected(handle.snapshot.schema, columns, zone_of(LOCAL, timezone, spark))
            self._parsed = None if where is None else condition(where, handle.snapshot.schema)
            self._where = self._bound(LOCAL)

    def _bound(self, engine: Engine) -> Expr | None:
        """The predicate, bound to its time zone on this engine."""
        if self._parsed is None:
            return None
        zone = zone_of(engine, self._timezone, self._spark)
        return bind_predicate(self._parsed, self._handle.snapshot.schema, zone)

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the result, in order."""
        named = self._selected.names
        return list(self._handle.snapshot.schema.names) if named is None else named

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
        return h.snapshot.plan(self._selected.columns, where, self._selected.hidden, engine.map)

    @property
    def takes_conditions(self) -> bool:
        """Whether a condition on the result is one on the columns of the table: not on computed values, metadata
        columns, or after a limit."""
        return not self._selected.values and not self._selected.hidden and self._limit is None

    def narrowed(self, columns: Sequence[str] | None, where: Expr | None = None) -> Scan:
        """A scan of some columns of the result, and, where it takes conditions, of the rows that satisfy one more; for
        engines that pass on what they need. Raises ColumnNotFoundError, ExpressionError."""
        scan = copy(self)
        if columns is not None:
            values = dict(self._selected.values)
            of: Columns = {name: values[name] for name in columns} if values else columns
            zone = zone_of(LOCAL, self._timezone, self._spark)
            scan._selected = selected(self._handle.snapshot.schema, of, zone)
        if where is not None:
            assert self.takes_conditions
            scan._parsed = where if self._parsed is None else And((self._parsed, where))
            scan._where = scan._bound(LOCAL)
        return scan

    @located
    def to_dataset(self) -> pa_dataset.Dataset:
        """An Arrow dataset, for what reads those: DuckDB, polars and others ask it for the columns and rows they need.

        Raises CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.

        >>> t.scan(where="price > 20").to_dataset().to_table(columns=["id"]).to_pydict()
        {'id': [2, 3]}
        """
        return import_module("boathouse.api.dataset").ScanDataset(self)

    def to_duckdb(self, connection: Any = None) -> Any:
        """A relation of DuckDB, lazy; of its default connection if none is given. The columns that a query needs, and
        its conditions, are passed on to this scan, so that only files that can match are read.

        Raises MissingRequirementError if DuckDB is not installed, CorruptTableError, UnsupportedFeatureError,
        ForeignPathError, StorageError.
        """
        if find_spec("duckdb") is None:
            raise MissingRequirementError("duckdb is not installed", advice="run pip install duckdb")
        given = import_module("duckdb").default_connection() if connection is None else connection
        return given.from_arrow(self.to_dataset())

    @located
    def to_polars(self) -> Any:
        """A LazyFrame of polars; the columns that a query needs, its conditions and limits are passed on to this scan.

        Raises MissingRequirementError if polars is not installed, CorruptTableError, UnsupportedFeatureError,
        ForeignPathError, StorageError.
        """
        if find_spec("polars") is None:
            raise MissingRequirementError("polars is not installed", advice="run pip install polars")
        return import_module("boathouse.api.polars_frames").lazy_frame(self)

    def limit(self, n: int) -> Scan:
        """The same scan of at most `n` rows: which ones is not said. No more files are read than they need.

        Raises InvalidArgumentError.

        >>> t.scan(["id"], "price > 20").limit(1).count()
        1
        """
        with errors_at(self.uri):
            most = number("limit", n)
        limited = copy(self)
        limited._limit = most if self._limit is None else min(most, self._limit)
        return limited

    def head(self, n: int = 5) -> pa.Table:
        """At most `n` rows, in process.

        Raises InvalidArgumentError, EvaluationError if the condition fails on a row, MissingFileError,
        CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        return self.limit(n).to_arrow()

    @located
    def to_arrow(self) -> pa.Table:
        """All rows, in process.

        Raises EvaluationError if the condition fails on a row, MissingFileError, CorruptTableError,
        UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        if self._selected.values or self._limit is not None:
            return self._rows(self.plan()).table()
        found = read_table(LOCAL, self.plan())
        return found.select(self._selected.output) if self._selected.hidden else found

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows batch by batch, in bounded memory.

        Raises EvaluationError if the condition fails on a row, MissingFileError, CorruptTableError,
        UnsupportedFeatureError, ForeignPathError, StorageError, also between batches.

        >>> sum(batch.num_rows for batch in t.scan(where="price > 20").to_batches())
        2
        """
        return self._located(self._rows(self.plan()))

    def _located(self, rows: Batches) -> Iterator[pa.RecordBatch]:
        with errors_at(self.uri):
            yield from rows.open()

    def _rows(self, plan: ScanPlan) -> Batches:
        """What is returned of the rows of a plan, lazily."""
        chosen = self._selected
        most = sys.maxsize if self._limit is None else self._limit
        zone = zone_of(LOCAL, self._timezone, self._spark)
        read = Batches(plan.read.schema, lambda: first_rows(plan, most), zone=zone or "UTC")
        if chosen.values:
            return LOCAL.project(read, chosen.values)
        if not chosen.hidden or chosen.output is None:
            return read
        output = chosen.output
        schema = pa.schema([plan.read.schema.field(n) for n in output])
        return Batches(schema, lambda: (b.select(output) for b in read.open()))

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream, in bounded memory.

        Raises CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError. What goes wrong while the
        stream is read (EvaluationError, MissingFileError) raises Arrow's own errors with our message: use `to_batches`
        for typed ones.
        """
        rows = self._rows(self.plan())
        return pa.RecordBatchReader.from_batches(rows.schema, self._located(rows))

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
        chosen = self._selected
        if chosen.values:
            frame = engine.project(frame, [(name, str(value)) for name, value in chosen.values])
        elif chosen.hidden:
            frame = frame.select(*map(quote, chosen.output or ()))
        return frame if self._limit is None else frame.limit(self._limit)

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
        if DELETED in self._selected.hidden:
            return sum(batch.num_rows for batch in self.to_batches())
        h = self._handle
        most = sys.maxsize if self._limit is None else self._limit
        if self._where is None:
            rows = h.snapshot.plan([], None, ("_pos",), LOCAL.map).rows
            if rows is not None:
                return min(rows, most)
        plan = h.snapshot.plan([], self._where, ("_pos",), LOCAL.map)
        if plan.read.where is None and plan.rows is not None:
            return min(plan.rows, most)
        return sum(batch.num_rows for batch in first_rows(plan, most))

    def files(self) -> list[str]:
        """Paths of the data files that the scan would read.

        Raises CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        return list(self.plan().units.column("path").to_pylist())

    def __repr__(self) -> str:
        h = self._handle
        named = self._selected.names
        columns = "all columns" if named is None else f"columns {', '.join(named)}"
        where = "" if self._where is None else f" where {self._where}"
        limit = "" if self._limit is None else f" limit {self._limit}"
        return f"scan of {h.snapshot.format} table {h.location}, version {h.snapshot.version}: {columns}{where}{limit}"

    def explain(self) -> Explanation:
        """Which units are read, and which are skipped by which filter; on Spark also the scan strategy.

        Raises CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.

        >>> plan = t.scan(where="id = 99").explain()
        >>> plan.units, sum(plan.skipped.values())
        (0, 1)
        """
        spark = self._spark
        return Explanation.of(self._handle.snapshot, self.plan(), None if spark is None else spark_engine(spark))


def first_rows(plan: ScanPlan, most: int) -> Iterator[pa.RecordBatch]:
    """At most so many rows of a plan. For few rows little is read ahead."""
    if most == sys.maxsize:
        yield from LOCAL.batches(plan)
        return
    left = most
    for batch in LOCAL.batches(plan, task_bytes=1, bytes_ahead=1) if left else ():
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return

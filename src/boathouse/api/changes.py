"""The changes of a table between versions, computed when rows are requested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from boathouse.api.arguments import errors_at, located, names
from boathouse.api.conditions import Condition, condition
from boathouse.api.engines import LOCAL, session, spark_engine, zone_of
from boathouse.errors import MissingRequirementError
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import Expr
from boathouse.ops.stream.changes import ChangesPlan, plan_changes
from boathouse.table.engine import Engine
from boathouse.table.location import Version
from boathouse.table.snapshot import Snapshot


class Changes:
    """The rows that commits changed; nothing is read before a method is called. Made by `Table.changes`.

    The table's columns are followed by `_change_type`, `_commit_version` and `_commit_timestamp`. A change is an
    `insert` or a `delete`, and where the commit recorded its changes (Delta with `delta.enableChangeDataFeed`) also an
    `update_preimage` or `update_postimage`.
    """

    def __init__(
        self,
        end: Snapshot,
        start: Version,
        columns: Sequence[str] | None,
        where: Condition | None,
        spark: Any = None,
        timezone: str | None = None,
        appends_only: bool = False,
    ) -> None:
        self._end, self._start, self._appends_only = end, start, appends_only
        self._spark, self._timezone = spark, timezone
        with errors_at(self.uri):
            wanted = None if columns is None else [end.schema.field(c).name for c in names("columns", columns)]
            self._columns = None if wanted is None else names("columns", wanted)
            self._where = None if where is None else condition(where, end.schema)
            self._bound(LOCAL)

    @property
    def uri(self) -> str:
        """The root folder of the table, as a URI."""
        return self._end.context.location.uri

    def _bound(self, engine: Engine) -> Expr | None:
        if self._where is None:
            return None
        return bind_predicate(self._where, self._end.schema, zone_of(engine, self._timezone, self._spark))

    def _plan(self, engine: Engine) -> ChangesPlan:
        where = self._bound(engine)
        return plan_changes(self._end, self._start, self._columns, where, engine.map, self._appends_only)

    @located
    def to_arrow(self) -> pa.Table:
        """All rows, in process.

        Raises VersionNotFoundError if a version is gone, UnsupportedFeatureError if a schema was replaced in between,
        EvaluationError, MissingFileError, CorruptTableError, StorageError.
        """
        return self._plan(LOCAL).rows(LOCAL).table()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows batch by batch. Of a commit that replaced files, the rows of one side are held in memory.

        Raises VersionNotFoundError if a version is gone, UnsupportedFeatureError if a schema was replaced in between,
        EvaluationError, MissingFileError, CorruptTableError, StorageError, also between batches.
        """
        with errors_at(self.uri):
            yield from self._plan(LOCAL).rows(LOCAL).open()

    @located
    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream.

        Raises VersionNotFoundError if a version is gone, UnsupportedFeatureError if a schema was replaced in between,
        CorruptTableError, StorageError; while the stream is read, Arrow's own errors.
        """
        rows = self._plan(LOCAL).rows(LOCAL)
        return pa.RecordBatchReader.from_batches(rows.schema, rows.open())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """All rows as a pandas DataFrame.

        Raises MissingRequirementError if pandas is not installed, VersionNotFoundError if a version is gone,
        UnsupportedFeatureError if a schema was replaced in between, EvaluationError, MissingFileError,
        CorruptTableError, StorageError.
        """
        if find_spec("pandas") is None:
            raise MissingRequirementError("pandas is not installed", advice="run pip install pandas, or use to_arrow()")
        return self.to_arrow().to_pandas()

    @located
    def to_spark(self, spark: Any = None) -> Any:
        """A Spark DataFrame, of the session `spark`, or of the one that the table was opened with. Its rows have no
        order; all commits are read by one relation, or two where commits rewrote files, which are compared.

        Raises InvalidArgumentError without a session, VersionNotFoundError if a version is gone,
        UnsupportedFeatureError if a schema was replaced in between, CorruptTableError, StorageError; reading the rows
        raises Spark's own errors.
        """
        engine = spark_engine(session(self._spark if spark is None else spark))
        return self._plan(engine).together(engine)

    def __repr__(self) -> str:
        columns = "all columns" if self._columns is None else f"columns {', '.join(self._columns)}"
        where = "" if self._where is None else f" where {self._where}"
        end, what = self._end, "appends" if self._appends_only else "changes"
        return f"{what} of {end.format} table {end.context.location}, versions {self._start} to {end.version}: " + (
            f"{columns}{where}"
        )

"""`delta.tables` of delta-spark over this library: the same names, arguments and results, without a JAR.

    from boathouse.compat.delta_tables import DeltaTable  # instead of: from delta.tables import DeltaTable

`spark.read.format("delta")` and its like are this library's in the session that there is when this is imported, and in
those that its methods are called with, unless they have delta-spark's JAR. What the library does not offer is refused
by name with UnsupportedFeatureError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from boathouse.api import delta_commands as commands
from boathouse.api.convert import convert
from boathouse.api.converting import convert_named, source_folder
from boathouse.api.delta_frames import detail_frame
from boathouse.api.detection import formats_at, locate
from boathouse.api.engines import is_dataframe, session
from boathouse.api.metastore import full_name, location_of
from boathouse.api.named_tables import entry_of, under_name
from boathouse.api.opening import open_handle, path_text
from boathouse.api.session_settings import evolves
from boathouse.api.table import Table
from boathouse.bits.names import steps
from boathouse.compat.arguments import (
    ColumnMapping,
    ExpressionOrColumn,
    assignments,
    expression,
    not_offered,
    of_type,
    storage_options,
    unqualified,
)
from boathouse.compat.delta_builder import DeltaTableBuilder, IdentityGenerator, path_of
from boathouse.compat.delta_format import offer_format, offer_to_active
from boathouse.compat.delta_merge import DeltaMergeBuilder, sides_of
from boathouse.compat.delta_optimize import DeltaOptimizeBuilder
from boathouse.engines.spark.names import is_name
from boathouse.engines.spark.user_errors import with_spark_errors
from boathouse.errors import ArgumentTypeError, InvalidArgumentError, TableNotFoundError
from boathouse.expr.qualify import requalified
from boathouse.storage import Stores

__all__ = ["DeltaMergeBuilder", "DeltaOptimizeBuilder", "DeltaTable", "DeltaTableBuilder", "IdentityGenerator"]


@with_spark_errors
class DeltaTable:
    """A Delta table on Spark, with the methods of `delta.tables.DeltaTable`. Made by `forPath`, `forName`, and the
    builders of `create` and its sisters.

    Conditions and values are Spark SQL text or Columns of PySpark. Writes raise CommitConflictError,
    CommitUnknownError, ConstraintViolationError, ExpressionError, ReadOnlyError; a wrong type of argument
    ArgumentTypeError; what is not offered UnsupportedFeatureError.

    >>> from boathouse.compat.delta_tables import DeltaTable
    >>> table = DeltaTable.forPath(spark, "cities")
    >>> table.update("id = 1", {"price": "price + 1"})
    >>> table.toDF().where("price > 20").count()
    2
    """

    def __init__(
        self, spark: SparkSession, table: Table, name: Sequence[str] = (), known: Sequence[str] | None = None
    ) -> None:
        """`name`: the parts of the name or alias by which conditions qualify the table's columns; `known` those of its
        name in the metastore, by default the same."""
        self._spark = spark
        self._table = table
        self._name = tuple(name)
        self._known = self._name if known is None else tuple(known)

    @classmethod
    def forPath(cls, sparkSession: SparkSession, path: str, hadoopConf: dict[str, str] | None = None) -> DeltaTable:
        """The table at a path; `hadoopConf` are options of its store, as Spark names them: those that begin with `fs.`
        or `dfs.` and say nothing to this library's stores are passed over.

        Raises TableNotFoundError, naming what is there.
        """
        return cls(sparkSession, _opened(sparkSession, path, storage_options(hadoopConf)))

    @classmethod
    def forName(cls, sparkSession: SparkSession, tableOrViewName: str) -> DeltaTable:
        """The table with this name in Spark's metastore, or at the path of ``delta.`/path` ``.

        Raises TableNotFoundError, UnsupportedFeatureError for a view.
        """
        path = path_of(tableOrViewName)
        if path is not None:
            return cls(sparkSession, _opened(sparkSession, path))
        location = location_of(tableOrViewName, sparkSession)
        if location is None:
            raise TableNotFoundError(f"there is no table {tableOrViewName!r} in Spark's metastore")
        return cls(sparkSession, _opened(sparkSession, location), steps(tableOrViewName))

    @classmethod
    def isDeltaTable(cls, sparkSession: SparkSession, identifier: str) -> bool:
        """Whether this path is the root of a Delta table. Raises InvalidArgumentError, StorageError."""
        offer_format(sparkSession)
        return "delta" in formats_at(locate(path_text(identifier)), Stores())

    @classmethod
    def create(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Describes a new table; it must not exist: `execute` of the builder raises AlreadyExistsError.

        >>> made = DeltaTable.create(spark).location("lake/new").addColumn("id", "bigint").execute()
        >>> made.toDF().count()
        0
        """
        return cls._builder(sparkSession, "create")

    @classmethod
    def createIfNotExists(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Describes a new table; an existing one stays as it is."""
        return cls._builder(sparkSession, "createIfNotExists")

    @classmethod
    def replace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Describes what an existing table becomes, without rows; `execute` of the builder raises TableNotFoundError
        without one."""
        return cls._builder(sparkSession, "replace")

    @classmethod
    def createOrReplace(cls, sparkSession: SparkSession | None = None) -> DeltaTableBuilder[DeltaTable]:
        """Describes a new table, or what an existing one becomes, without rows."""
        return cls._builder(sparkSession, "createOrReplace")

    @classmethod
    def _builder(cls, spark: SparkSession | None, mode: str) -> DeltaTableBuilder[DeltaTable]:
        found = session(spark)
        offer_format(found)
        return DeltaTableBuilder(found, mode, lambda handle, name: cls(found, Table(handle, found), name))

    @classmethod
    def convertToDelta(
        cls,
        sparkSession: SparkSession,
        identifier: str,
        partitionSchema: str | StructType | None = None,
        collectStatistics: bool = True,
    ) -> DeltaTable:
        """Makes a Delta table of Parquet files in place, and returns it: of a folder, ``parquet.`/path` ``, where
        `partitionSchema` is of the columns that the names of folders give; or of a table of the metastore by its name,
        which has its partition columns, and is then the name of the Delta table.

        Raises InvalidArgumentError for what does not fit `partitionSchema`, TableNotFoundError, AlreadyExistsError,
        NotFoundError for an empty folder, SchemaMismatchError for files that do not fit each other,
        UnsupportedTypeError, UnsupportedFeatureError for other files.
        """
        folder = source_folder(of_type(identifier, str, "identifier"))
        if folder is not None:
            convert(folder, partition_by=partitionSchema, spark=sparkSession)
            return cls.forPath(sparkSession, folder)
        convert_named(sparkSession, identifier, "delta", partitionSchema)
        return cls.forName(sparkSession, identifier)

    def toDF(self) -> DataFrame:
        """The rows of the newest version. Raises TableNotFoundError, CorruptTableError, UnsupportedFeatureError."""
        rows = self._table.refresh().to_spark(self._spark)
        return rows.alias(self._name[-1]) if self._name else rows

    def alias(self, aliasName: str) -> DeltaTable:
        """The same table, whose columns conditions qualify by this name."""
        return DeltaTable(self._spark, self._table, (of_type(aliasName, str, "aliasName"),), self._known)

    def delete(self, condition: ExpressionOrColumn | None = None) -> None:
        """Deletes the rows for which the condition is true; without one all.

        Raises ExpressionError, EvaluationError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        self._table.delete(self._own(expression(condition)))

    def update(self, condition: ExpressionOrColumn | None = None, set: ColumnMapping | None = None) -> None:
        """Sets columns to values in the rows for which the condition is true; without one in all.

        Raises ColumnNotFoundError, ExpressionError, EvaluationError, ConstraintViolationError, SchemaMismatchError,
        ArgumentTypeError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        values = assignments(set, "'set'")
        where = self._own(expression(condition))
        qualifiers = self._qualifiers()
        columns = self._table.schema.names
        own = {unqualified(c, columns, qualifiers): self._own(v) or v for c, v in values.items()}
        self._table.update(own, where)

    def merge(self, source: DataFrame, condition: ExpressionOrColumn) -> DeltaMergeBuilder:
        """Starts a merge of a DataFrame into the table; columns are qualified by the aliases of the two.

        Raises InvalidArgumentError without a source or condition, ArgumentTypeError, ExpressionError.

        >>> columns = "id bigint, city string, price double"
        >>> rows = spark.createDataFrame([(1, "Kiel", 9.0), (8, "Turku", 4.0)], columns)
        >>> merge = DeltaTable.forPath(spark, "cities").alias("t").merge(rows.alias("s"), "t.id = s.id")
        >>> merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute().count()
        1
        """
        if source is None:
            raise InvalidArgumentError("'source' in merge cannot be None")
        if not is_dataframe(source):
            raise ArgumentTypeError(f"Type of 'source' in merge must be DataFrame, found {source!r}")
        on = expression(condition)
        if on is None:
            raise InvalidArgumentError("'condition' in merge cannot be None")
        sides = sides_of(self._table.refresh().schema.names, self._name, source)
        return DeltaMergeBuilder(self._spark, self._table, source, on, sides, self._qualifiers(), evolves(self._spark))

    def history(self, limit: int | None = None) -> DataFrame:
        """The latest commits, newest first, at most `limit`, with the columns of DESCRIBE HISTORY.

        Raises CorruptTableError, StorageError.
        """
        return commands.history(self._spark, self._table, limit)

    def detail(self) -> DataFrame:
        """One row: format, id, location, times, partitioning, files, size, properties, protocol."""
        name = full_name(self._spark, self._known) if self._known else None
        return detail_frame(self._spark, self._table.refresh().detail(), name)

    def vacuum(self, retentionHours: float | None = None) -> DataFrame:
        """Removes files that no version of the last hours needs; an empty DataFrame.

        A shorter retention than the table's needs the setting
        `spark.databricks.delta.retentionDurationCheck.enabled=false`, as in delta-spark. Raises InvalidArgumentError
        for too short a one, UnsupportedFeatureError, ReadOnlyError, StorageError.
        """
        commands.vacuum(self._spark, self._table, retentionHours)
        return self._spark.createDataFrame([], StructType([]))

    def optimize(self) -> DeltaOptimizeBuilder:
        """Starts a compaction; nothing happens before `executeCompaction` or `executeZOrderBy` of what it returns."""
        return DeltaOptimizeBuilder(self._spark, self._table)

    def restoreToVersion(self, version: int) -> DataFrame:
        """Makes the table what it was at a version, as a new one; one row of figures.

        Raises VersionNotFoundError, MissingFileError, ConstraintViolationError for an append-only table,
        ArgumentTypeError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        return self._restored(version=of_type(version, int, "version"))

    def restoreToTimestamp(self, timestamp: str) -> DataFrame:
        """Makes the table what it was in the newest version not after a time (`2026-11-20`, `2026-11-20 10:00:00`), as
        a new one; one row of figures.

        Raises VersionNotFoundError, MissingFileError, ConstraintViolationError for an append-only table,
        ArgumentTypeError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        return self._restored(timestamp=of_type(timestamp, str, "timestamp"))

    def _restored(self, **at: Any) -> DataFrame:
        return commands.restored(self._spark, self._table, self._table.restore(**at))

    def upgradeTableProtocol(self, readerVersion: int, writerVersion: int) -> None:
        """Adds the features that these versions of the protocol imply; nothing if the table has the versions, or later
        ones. Versions 3 and 7 imply none: there each feature is added by name.

        Raises InvalidArgumentError for what is not a version, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        wanted = (of_type(readerVersion, int, "readerVersion"), of_type(writerVersion, int, "writerVersion"))
        detail = self._table.refresh().detail()
        if wanted[0] > detail["minReaderVersion"] or wanted[1] > detail["minWriterVersion"]:
            reader, writer = map(str, wanted)
            self._table.set_properties({"delta.minReaderVersion": reader, "delta.minWriterVersion": writer})

    def addFeatureSupport(self, featureName: str) -> None:
        """Adds a feature to the table's protocol, by the property `delta.feature.NAME`; nothing if it is there.

        Raises UnsupportedFeatureError for a feature that is not known, ArgumentTypeError, CommitConflictError.
        """
        name = of_type(featureName, str, "featureName")
        if name not in self._table.refresh().detail()["features"]:
            self._table.set_properties({f"delta.feature.{name}": "supported"})

    def dropFeatureSupport(self, featureName: str, truncateHistory: bool | None = None) -> None:
        """Takes a feature out of the table's protocol, see `Table.drop_feature`. History is never truncated.

        Raises UnsupportedFeatureError if it is used or never goes, and for `truncateHistory=True`, InvalidArgumentError
        if the table has no such feature, CommitConflictError.
        """
        if truncateHistory is not None and of_type(truncateHistory, bool, "truncateHistory"):
            raise not_offered("dropFeatureSupport with truncateHistory", "leave it out")
        self._table.drop_feature(of_type(featureName, str, "featureName"))

    def clone(
        self, target: str, isShallow: bool = False, replace: bool = False, properties: dict[str, str] | None = None
    ) -> DeltaTable:
        """Makes a shallow clone at a path, or by a name of the metastore, and returns it: a table that names this one's
        files, with `properties` beside its own. With `replace` a table that is there becomes the clone.

        Raises UnsupportedFeatureError for a deep clone, AlreadyExistsError, ArgumentTypeError, CommitConflictError,
        CommitUnknownError.
        """
        return self._cloned(self._table.refresh(), target, isShallow, replace, properties)

    def cloneAtVersion(
        self,
        version: int,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Makes a shallow clone of a version at a path, and returns it.

        Raises VersionNotFoundError, UnsupportedFeatureError for a deep clone, AlreadyExistsError, ArgumentTypeError,
        CommitConflictError, CommitUnknownError.
        """
        at = open_handle(self._table.uri, "delta", version=of_type(version, int, "version"))
        return self._cloned(Table(at, self._spark), target, isShallow, replace, properties)

    def cloneAtTimestamp(
        self,
        timestamp: str,
        target: str,
        isShallow: bool = False,
        replace: bool = False,
        properties: dict[str, str] | None = None,
    ) -> DeltaTable:
        """Makes a shallow clone, of the newest version not after a time, at a path, and returns it.

        Raises VersionNotFoundError, UnsupportedFeatureError for a deep clone, AlreadyExistsError, ArgumentTypeError,
        CommitConflictError, CommitUnknownError.
        """
        zone = str(self._spark.conf.get("spark.sql.session.timeZone"))
        at = open_handle(self._table.uri, "delta", timestamp=of_type(timestamp, str, "timestamp"), zone=zone)
        return self._cloned(Table(at, self._spark), target, isShallow, replace, properties)

    def _cloned(
        self, table: Table, target: str, shallow: bool, replace: bool, properties: dict[str, str] | None
    ) -> DeltaTable:
        for name, value in (("isShallow", shallow), ("replace", replace)):
            of_type(value, bool, name)
        if not shallow:
            raise not_offered("a deep clone", "pass isShallow=True, or copy the rows: bh.write(bh.open(a), b)")
        path = path_of(of_type(target, str, "target"))
        if path is None and is_name(target):
            return self._cloned_as(table, target, replace, properties)
        table.clone(path or target, replace=replace, properties=properties)
        return DeltaTable.forPath(self._spark, path or target)

    def _cloned_as(self, table: Table, name: str, replace: bool, properties: dict[str, str] | None) -> DeltaTable:
        entry = entry_of(self._spark, name)

        def made(path: str) -> None:
            table.clone(path, replace=replace, properties=properties)

        under_name(self._spark, entry, None, table.schema, None, made)
        return DeltaTable.forName(self._spark, name)

    def generate(self, mode: str) -> None:
        """Refused with UnsupportedFeatureError: manifests for readers without Delta are not written."""
        raise not_offered(f"generate({mode!r})", "let the reader open the Delta table itself")

    def _qualifiers(self) -> tuple[tuple[str, ...], ...]:
        """What may stand before a column's name: the whole name of the table, or its last part."""
        return tuple({self._name, self._name[-1:]}) if self._name else ()

    def _own(self, sql: str | None) -> str | None:
        """An expression over the table alone, with its columns unqualified."""
        for qualifier in self._qualifiers() if sql is not None else ():
            sql = requalified(sql or "", qualifier, None)
        return sql


def _opened(spark: SparkSession, path: str, options: dict[str, str] | None = None) -> Table:
    offer_format(spark)
    return Table(open_handle(path, "delta", storage_options=options, spark=spark), spark)


offer_to_active()

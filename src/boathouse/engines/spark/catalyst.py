"""Spark's planner in the JVM, by py4j: the one module that knows its private classes. Classic sessions only.

A call takes 0.05 to 0.1 ms, and a dotted name one for each of its parts: classes are looked up once, and what would
need a call for each of many files or partitions is done by one, with method handles that the JVM runs over arrays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

Numbers = np.ndarray[Any, np.dtype[np.int64]]

FILE_INDEX: Final = "org.apache.spark.sql.execution.datasources.FileIndex"
_ROW_INDEX: Final = "_tmp_metadata_row_index"
_CONVERTERS: Final = "org.apache.spark.sql.execution.arrow.ArrowConverters$"
_LOCAL, _SINGLE, _FEW_LEAVES = "LocalRelation", "OneRowRelation", 8
_KNOWN: WeakKeyDictionary[SparkSession, Catalyst] = WeakKeyDictionary()


class Catalyst:
    """The planner of one session; `of` makes it once. Raises py4j's errors where a class is not as expected."""

    @staticmethod
    def of(spark: SparkSession) -> Catalyst:
        known = _KNOWN.get(spark)
        if known is None:
            known = _KNOWN[spark] = Catalyst(spark)
        return known

    def __init__(self, spark: Any) -> None:
        self._session = spark._jsparkSession
        self._gateway = gateway = spark.sparkContext._gateway
        self.jvm = jvm = spark._jvm
        ensure_callback_server_started(gateway)
        sources = jvm.org.apache.spark.sql.execution.datasources
        expressions = jvm.org.apache.spark.sql.catalyst.expressions
        self._relation, self._parquet = sources.HadoopFsRelation, sources.parquet.ParquetFileFormat
        self._predicate, self._and = expressions.Predicate, expressions.And
        self._schema_of, self._option = jvm.org.apache.spark.sql.types.DataType, jvm.scala.Option
        self._attributes = jvm.org.apache.spark.sql.catalyst.types.DataTypeUtils
        self._path, self._arrays, self._system = (
            jvm.org.apache.hadoop.fs.Path,
            jvm.java.util.Arrays,
            jvm.java.lang.System,
        )
        self._status, self._statuses = jvm.org.apache.hadoop.fs.FileStatus, jvm.org.apache.hadoop.io.ArrayWritable
        self._data, self._bytes = jvm.java.io.DataInputStream, jvm.java.io.ByteArrayInputStream
        self._buffer, self._strings = jvm.java.nio.ByteBuffer, jvm.org.apache.commons.lang3.StringUtils
        self._seq, self._lazy = jvm.scala.collection.immutable.ArraySeq, jvm.scala.collection.immutable.LazyList
        self._int, self._object, self._class = jvm.int, jvm.java.lang.Object, jvm.java.lang.Class
        self._handles = _Handles(self)
        self._illegal = jvm.java.lang.IllegalArgumentException
        self._row = jvm.org.apache.spark.sql.catalyst.InternalRow
        fields = self._parquet().metadataSchemaFields()
        self.file_fields = frozenset(fields.apply(i).name() for i in range(fields.size())) | {_ROW_INDEX}
        """What filters call the fields of `_metadata`: nothing tells them from columns of these names."""

    def named(self, name: str) -> Any:
        """A class of the JVM."""
        return self._class.forName(name)

    def array(self, of: Any, items: Sequence[Any]) -> Any:
        """An array of a few items, each of which is a call."""
        found = self._gateway.new_array(of, len(items))
        for i, item in enumerate(items):
            found[i] = item
        return found

    def frame(
        self,
        spark: SparkSession,
        index: object,
        partition: S.StructType,
        data: S.StructType,
        options: Mapping[str, str],
    ) -> DataFrame:
        """The rows of the Parquet files that `index`, an object with the methods of FILE_INDEX, gives when asked."""
        relation = self._relation(
            index,
            self.schema(partition),
            self.schema(data),
            self._option.empty(),
            self._parquet(),
            self.jvm.PythonUtils.toScalaMap(dict(options)),
            self._session,
        )
        return DataFrame(self._session.baseRelationToDataFrame(relation), spark)

    def schema(self, struct: S.StructType) -> Any:
        """A schema as the JVM has it."""
        return self._schema_of.fromJson(struct.json())

    def rows(self, frame: DataFrame | None) -> Any:
        """The rows of a small frame as an InternalRow[], in their order; of no frame one row without columns."""
        if frame is None:
            return self.array(self._row, [self._row.empty()])
        return frame._jdf.queryExecution().executedPlan().executeCollect()

    def trees(self, filters: Any) -> list[tuple[Any, list[dict[str, Any]]]]:
        """Expressions of a Scala Seq, each with its nodes in order, parents first. Those that Spark cannot describe are
        left out, and those with a query in them: its nodes are numbered too, and it runs later."""
        found = [(e, self._nodes(e)) for e in (filters.apply(i) for i in range(filters.size()))]
        return [(e, nodes) for e, nodes in found if nodes and not any("plan" in n for n in nodes)]

    def _nodes(self, expression: Any) -> list[dict[str, Any]]:
        try:
            nodes: list[dict[str, Any]] = json.loads(expression.toJSON())
        except (Py4JError, ValueError, RecursionError):
            return []
        return nodes

    def accepted(self, filters: Any, partition: Any, rows: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each row of an InternalRow[] with this schema whether Spark finds that it satisfies all filters."""
        both = filters.apply(0)
        for i in range(1, filters.size()):
            both = self._and(both, filters.apply(i))
        used = both.references().toSeq()
        by_name = {used.apply(i).name(): used.apply(i) for i in range(used.size())}
        columns = self._attributes.toAttributes(partition)
        inputs = [(a := columns.apply(i), by_name.get(a.name(), a))[1] for i in range(columns.size())]
        test = self._handles.test(self._predicate.create(both, self.jvm.PythonUtils.toSeq(inputs)), rows)
        found = self._gateway.new_array(self._object, len(rows))
        self._arrays.setAll(found, test)
        letters = np.frombuffer(self._arrays.toString(found).encode(), np.uint8)  # [true, false, ...]
        marks: np.ndarray[Any, np.dtype[np.bool_]] = letters[np.isin(letters, list(b"tf"))] == ord("t")
        return marks

    def statuses(self, chunks: Sequence[tuple[int, bytes]]) -> Any:
        """A FileStatus[] of the statuses in `chunks`, as `statuses.chunks` makes them: each its number and bytes."""
        found, at = self._gateway.new_array(self._status, sum(n for n, _ in chunks)), 0
        for count, data in chunks:
            array = self._statuses(self._handles.status)
            array.readFields(self._data(self._bytes(data)))
            self._system.arraycopy(array.get(), 0, found, at, count)
            at += count
        return found

    def directories(self, rows: Any, row: Numbers, ends: Numbers, statuses: Any) -> Any:
        """A Scala Seq of PartitionDirectory: the i-th has the values `rows[row[i]]`, and the statuses up to the
        `ends[i]`-th that no earlier one has."""
        found = self._gateway.new_array(self._object, len(row))
        begins = np.concatenate(([0], ends[:-1]))
        if len(row):
            make = self._handles.make(rows, self._ints(row), self._ints(begins), self._ints(ends), statuses)
            self._arrays.setAll(found, make)
        return self._seq.unsafeWrapArray(found)

    def _ints(self, values: Numbers) -> Any:
        found = self._gateway.new_array(self._int, len(values))
        self._buffer.wrap(values.astype(">i4").tobytes()).asIntBuffer().get(found)
        return found

    def failing(self, message: str, error: Exception | None = None) -> Any:
        """A Scala Seq, whose use fails the query with what the JVM threw to cause `error`, else with this message.

        What a Python callback raises, Spark wraps with the tracebacks of both sides.
        """
        thrown = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
        return self._lazy.continually(self._handles.throwing(thrown or self._illegal(message)))

    def paths(self, paths: Sequence[str]) -> Any:
        """A Scala Seq of Hadoop's paths."""
        return self.jvm.PythonUtils.toSeq([self._path(t) for t in paths])

    def strings(self, values: Sequence[str]) -> Any:
        """A String[] of strings without line breaks."""
        return self._strings.splitPreserveAllTokens("\n".join(values), "\n")

    def nothing(self) -> Any:
        """Scala's None."""
        return self._option.empty()


def held_plan(frame: DataFrame, most_rows: int, most_bytes: int, computed: bool = True) -> Any:
    """The plan of a frame, if that is no more than so many rows which the driver holds; else None.

    `computed`: also what the optimizer computes of such rows, if it always gives the same, without functions of users.
    """
    execution = frame._jdf.queryExecution()
    given = execution.analyzed()
    leaves = given.collectLeaves()
    if not 0 < leaves.size() <= _FEW_LEAVES:
        return None
    if not all(_is_small(leaves.apply(i), most_rows) for i in range(leaves.size())):
        return None
    if _kind(given) != _LOCAL:
        patterns = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern
        if not computed or not given.deterministic() or given.containsPattern(patterns.SCALA_UDF()):
            return None
    plan = execution.optimizedPlan()  # rows that are cached are another plan
    if _kind(plan) == "Project" and _kind(plan.child()) == _SINGLE:
        return plan
    small = _kind(plan) == _LOCAL and _is_small(plan, most_rows) and int(plan.stats().sizeInBytes()) <= most_bytes
    return plan if small else None


def held_batches(frame: DataFrame, plan: Any, zone: str) -> pa.Table | None:
    """The rows of a held plan, as tasks would get them, without a job; None where they are still to be computed."""
    if _kind(plan) != _LOCAL:
        return None
    arrow = getattr(getattr(frame.sparkSession._jvm, _CONVERTERS), "MODULE$")
    rows, most = plan.data(), 1 << 30
    streams = arrow.toBatchWithSchemaIterator(rows.iterator(), plan.schema(), rows.size() + 1, most, zone, True, False)
    batches: list[pa.RecordBatch] = []
    while streams.hasNext():  # the last call frees its memory
        batches += pa.ipc.open_stream(bytes(streams.next()))
    return pa.Table.from_batches(batches) if batches else None


def _is_small(plan: Any, most_rows: int) -> bool:
    if _kind(plan) == _SINGLE:
        return most_rows > 0
    return _kind(plan) == _LOCAL and not plan.isStreaming() and plan.data().size() <= most_rows


def _kind(plan: Any) -> str:
    return str(plan.nodeName())


class _Handles:
    """Functions over indices of arrays, which the JVM calls by itself."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._c = catalyst
        invoke, named = catalyst.jvm.java.lang.invoke, catalyst.named
        self._handles, self._proxies, self._type = invoke.MethodHandles, invoke.MethodHandleProxies, invoke.MethodType
        self._handle = invoke.MethodHandle
        self._object = named("java.lang.Object")
        self._row, self.status = (
            named("org.apache.spark.sql.catalyst.InternalRow"),
            named("org.apache.hadoop.fs.FileStatus"),
        )
        self._files, self._ints = named("[Lorg.apache.hadoop.fs.FileStatus;"), named("[I")
        self._directory = named("org.apache.spark.sql.execution.datasources.PartitionDirectory")
        self._int, boolean = catalyst.jvm.java.lang.Integer.TYPE, catalyst.jvm.java.lang.Boolean.TYPE
        self._function, self._function0 = named("java.util.function.IntFunction"), named("scala.Function0")
        lookup, objects = self._handles.publicLookup(), named("[Ljava.lang.Object;")
        predicate = named("org.apache.spark.sql.catalyst.expressions.BasePredicate")
        self._apply = lookup.findStatic(self._directory, "apply", self._of(self._directory, self._row, self._files))
        copy = self._of(objects, objects, self._int, self._int)
        self._copy = lookup.findStatic(named("java.util.Arrays"), "copyOfRange", copy)
        self._eval = lookup.findVirtual(predicate, "eval", self._of(boolean, self._row))

    def _of(self, result: Any, *arguments: Any) -> Any:
        return self._type.methodType(result, self._c.array(self._c.jvm.java.lang.Class, arguments))

    def _at(self, handle: Any, position: int, *given: Any) -> Any:
        return self._handles.filterArguments(handle, position, self._c.array(self._handle, given))

    def _item(self, array: Any) -> Any:
        return self._handles.arrayElementGetter(array.getClass()).bindTo(array)

    def _row_of(self, rows: Any) -> Any:
        return self._item(rows).asType(self._of(self._row, self._int))

    def test(self, predicate: Any, rows: Any) -> Any:
        """i -> whether the predicate holds for rows[i]."""
        return self._as_function(self._at(self._eval.bindTo(predicate), 0, self._row_of(rows)))

    def make(self, rows: Any, row: Any, begins: Any, ends: Any, statuses: Any) -> Any:
        """i -> PartitionDirectory(rows[row[i]], statuses[begins[i]:ends[i]])."""
        bound = self._handles.insertArguments(self._copy, 0, self._c.array(self._c.jvm.java.lang.Object, [statuses]))
        files = self._at(bound, 0, self._item(begins), self._item(ends)).asType(
            self._of(self._files, self._int, self._int)
        )
        values = self._at(self._row_of(rows), 0, self._item(row))
        made = self._at(self._handles.collectArguments(self._apply, 1, files), 0, values)
        same = self._c.array(self._c.jvm.int, [0, 0, 0])
        return self._as_function(self._handles.permuteArguments(made, self._of(self._directory, self._int), same))

    def _as_function(self, handle: Any) -> Any:
        return self._proxies.asInterfaceInstance(self._function, handle)

    def throwing(self, exception: Any) -> Any:
        """A function without arguments that throws this exception of the JVM."""
        thrown = self._handles.throwException(self._object, exception.getClass())
        return self._proxies.asInterfaceInstance(self._function0, thrown.bindTo(exception))

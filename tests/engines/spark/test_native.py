import datetime as dt
import decimal
import math
import re

import pyarrow as pa
import pytest

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.engines.spark.native import native_frame
from boathouse.engines.spark.session import facts
from boathouse.engines.spark.task_frames import scan_frame
from boathouse.errors import BoathouseError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.table.tasks import ReadColumn

pytestmark = pytest.mark.spark

TYPES = {
    "b": T.BOOLEAN, "i8": T.INT8, "i16": T.INT16, "i": T.INT32, "l": T.INT64, "f": T.FLOAT, "d": T.DOUBLE,
    "dec": T.DecimalType(38, 9), "s": T.STRING, "bin": T.BINARY, "date": T.DATE, "ts": T.TIMESTAMP,
    "ntz": T.TIMESTAMP_NTZ,
}  # fmt: skip
FIELDS = dict(enumerate(TYPES.values(), 1000))
VALUES = [
    {"b": True, "i8": -128, "i16": -(2**15), "i": -(2**31), "l": 2**63 - 1, "f": 0.5, "d": math.nan,
     "dec": decimal.Decimal("-12345678901234567890123456789.123456789"), "s": "a'\"\\ü\0{}[]%41/ ",
     "bin": b"\x00\xff", "date": dt.date(1, 1, 1), "ts": dt.datetime(1900, 1, 1, 12, 0, 0, 1, tzinfo=dt.UTC),
     "ntz": dt.datetime(2021, 3, 14, 2, 30, 0, 123456)},
    {"b": False, "i8": 5, "i16": 5, "i": 5, "l": 5, "f": math.inf, "d": -0.0, "dec": decimal.Decimal("0E-9"),
     "s": "", "bin": b"", "date": dt.date(9999, 12, 31),
     "ts": dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC), "ntz": dt.datetime(1, 1, 1)},
    dict.fromkeys(TYPES),
]  # fmt: skip
NAMES = ["p=a b:1/f %23#.parquet", "ü[x{/g+=&;,@.parquet", "_h/.i/j?*`'\"\\.parquet"]


def same(frame, plan) -> list[str]:
    """The rows of a frame, after comparing them with those of the tasks in process."""
    from boathouse.engines.local import LocalEngine, read_table

    local = normal(read_table(LocalEngine(), plan))
    assert normal(frame.toArrow()) == local
    return local


def normal(table: pa.Table) -> list[str]:
    """Rows as text, in order: NaN equals itself there, and instants are in UTC."""
    columns = []
    for column, field in zip(table.columns, table.schema, strict=True):
        if pa.types.is_timestamp(field.type) and field.type.tz:
            column = column.cast(pa.timestamp("us", "UTC"))
        columns.append([repr(v) for v in column.to_pylist()])
    return sorted(map(str, zip(*columns, strict=True)))


@pytest.fixture
def partitioned(make_plan):
    """Three files under awkward paths with awkward partition values; the second one has deleted rows."""
    maker = make_plan(FIELDS)
    for i, (name, values) in enumerate(zip(NAMES, VALUES, strict=True)):
        table = pa.table({"x": range(i * 100, i * 100 + 100), "col-1": [f"v{j}" for j in range(100)]})
        partition = {1000 + k: values[c] for k, c in enumerate(TYPES)}
        maker.add(name, table, partition, deleted=[0, 1, 63, 64, 99] if i == 1 else [])
    columns = [ReadColumn(n, t, partition=1000 + i, constant_in=(0,)) for i, (n, t) in enumerate(TYPES.items())]
    columns += [
        ReadColumn("x", T.INT64, physical=("x",)),
        ReadColumn("name", T.STRING, physical=("col-1",)),
        ReadColumn("lacking", T.STRING, physical=("nope",)),
    ]
    return maker, columns


@pytest.mark.route("native scan")
def test_partition_values_of_every_type_under_awkward_paths(engine, partitioned, other_zone):
    maker, columns = partitioned
    plan = maker.plan(columns, ("_unit", "_pos"))
    route = engine.route(plan)
    assert route.via == "native", route
    frame = engine.scan(plan)
    assert frame.columns == plan.read.schema.names
    native = same(frame, plan)
    assert len(native) == 295
    assert normal(scan_frame(engine.spark, [plan]).toArrow()) == native


def test_filters_that_come_later_prune_files(engine, partitioned, other_zone):
    maker, columns = partitioned
    frame = engine.scan(maker.plan(columns))
    frame.createOrReplaceTempView("partitioned")
    tests = {
        "date = DATE'0001-01-01'": 100, "i8 = 5": 95, "ts < TIMESTAMP'1950-01-01T00:00:00Z'": 100,
        "ntz = TIMESTAMP_NTZ'2021-03-14 02:30:00.123456'": 100, "bin = X'00FF'": 100, "dec = 0": 95, "s = ''": 95,
        "b": 100, "i is null": 100, "d = double('NaN')": 100, "f > 2": 95, "l = 5": 95,
    }  # fmt: skip
    for where, count in tests.items():
        assert engine.spark.sql(f"SELECT x FROM partitioned WHERE {where}").count() == count, where
    for where in ("date = DATE'0001-01-01'", "ts < TIMESTAMP'1950-01-01T00:00:00Z'", "dec < 0", "b and i8 < 0"):
        assert scanned_files(engine.spark, f"SELECT sum(x) FROM partitioned WHERE {where}") == 1, where
    assert scanned_files(engine.spark, "SELECT sum(x) FROM partitioned") == 3


def scanned_files(spark, query: str) -> int:
    """Files that Spark's scans of this query read, as its own plan graph tells (`numFiles` of each scan)."""
    frame = spark.sql(query)
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan().toString()
    found = 0
    node = frame._jdf.queryExecution().executedPlan().finalPhysicalPlan()
    stack = [node]
    while stack:
        n = stack.pop()
        if n.nodeName().startswith("Scan parquet"):
            metric = n.metrics().get("numFiles")
            found += metric.get().value() if metric.isDefined() else 0
        if n.nodeName().endswith("QueryStage"):
            stack.append(n.plan())
        children = n.children()
        stack += [children.apply(i) for i in range(children.size())]
    assert "FileScan parquet" in plan or found == 0
    return found


@pytest.fixture
def listed(monkeypatch):
    """Spark lists the files, as on Connect."""
    for module in ("native", "route"):
        monkeypatch.setattr(f"boathouse.engines.spark.{module}.asking_obstacle", lambda spark, units: "of a test")


def test_partition_values_of_files_that_spark_lists(engine, partitioned, other_zone, listed):
    maker, columns = partitioned
    plan = maker.plan(columns, ("_unit", "_pos"))
    route = engine.route(plan)
    assert route.via == "native" and "since of a test" in route.reason
    assert len(same(engine.scan(plan), plan)) == 295


def test_filters_that_come_later_prune_files_that_spark_lists(engine, partitioned, other_zone, listed):
    test_filters_that_come_later_prune_files(engine, partitioned, other_zone)


def test_a_file_that_the_map_does_not_know_fails(engine, partitioned, monkeypatch, listed):
    maker, columns = partitioned
    monkeypatch.setattr("boathouse.engines.spark.listed.hadoop_uri", lambda uri: uri)
    frame = native_frame(engine.spark, maker.plan(columns))
    with pytest.raises(Exception, match="not in the plan, or spells its path differently"):
        frame.select("i").collect()


def test_a_vector_that_is_not_found_fails(engine, make_plan, monkeypatch, listed):
    maker = make_plan()
    maker.add("a.parquet", pa.table({"x": [1, 2, 3]}), deleted=[1])
    monkeypatch.setattr("boathouse.engines.spark.listed.hadoop_uri", lambda uri: uri)
    frame = native_frame(engine.spark, maker.plan([ReadColumn("x", T.INT64, physical=("x",))]))
    with pytest.raises(Exception, match="no deletion vector for"):
        frame.collect()


def test_vectors_of_files_whose_paths_share_a_checksum(engine, make_plan, monkeypatch, listed):
    maker = make_plan()
    for i, name in enumerate(("a.parquet", "b.parquet")):
        maker.add(name, pa.table({"x": range(10 * i, 10 * i + 5)}), deleted=[i, 4])
    plan = maker.plan([ReadColumn("x", T.INT64, physical=("x",))])
    same(native_frame(engine.spark, plan), plan)
    monkeypatch.setattr("boathouse.engines.spark.listed.crc32", lambda path: 7)
    frame = native_frame(engine.spark, plan)
    assert sorted(row.x for row in frame.collect()) == [1, 2, 3, 10, 12, 13]


@pytest.mark.route("native scan with deletion vectors")
def test_deleted_rows_in_many_words_and_row_groups(engine, make_plan):
    maker = make_plan()
    gone = [0, 1, 62, 63, 64, 65, 127, 128, 4095, 4096, 9998, 9999]
    maker.add("a.parquet", pa.table({"x": range(10_000)}), deleted=gone, row_group_size=700)
    maker.add("b.parquet", pa.table({"x": range(10_000, 10_100)}))
    maker.add("c.parquet", pa.table({"x": range(20_000, 20_100)}), deleted=[5])
    plan = maker.plan([ReadColumn("x", T.INT64, physical=("x",))], ("_pos", "_unit"))
    frame = engine.scan(plan)
    assert engine.route(plan).via == "native"
    same(frame, plan)
    # Row groups that a filter skips do not move the positions of others.
    kept = [r["_pos"] for r in frame.where("_unit = 100 and x > 9000").select("_pos").collect()]
    assert sorted(kept) == [p for p in range(9001, 10_000) if p not in gone]


def test_missing_files_fail_whatever_the_session_says(engine, make_plan):
    maker = make_plan()
    maker.add("a.parquet", pa.table({"x": [1]}))
    path = maker.add("b.parquet", pa.table({"x": [2]})).removeprefix("file://")
    plan = maker.plan([ReadColumn("x", T.INT64, physical=("x",))])
    engine.spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    engine.spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        frame = engine.scan(plan)
        with open(path, "wb") as out:
            out.write(b"PAR1 broken PAR1")
        with pytest.raises(Exception, match=re.escape(path.rsplit("/", 1)[1])):
            frame.collect()
    finally:
        engine.spark.conf.unset("spark.sql.files.ignoreMissingFiles")
        engine.spark.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_a_predicate_drops_rows_on_both_paths(engine, partitioned, other_zone):
    maker, columns = partitioned
    schema = T.Schema(tuple(T.Field(c.name, c.type) for c in columns))
    for text in ("x % 2 = 0 AND i8 = 5", "ts >= TIMESTAMP'1900-01-01T12:00:00.000001Z'", "name = 'v7'",
                 "d > 5", "ntz < TIMESTAMP_NTZ'2021-03-14 03:00:00'", "s = 'a\\'\"\\\\ü\\0{}[]%41/ '",
                 "date IS NULL"):  # fmt: skip
        plan = maker.plan(columns, ("_pos",), bind_predicate(parse(text), schema), output=["x", "name"])
        native = engine.scan(plan)
        assert native.columns == ["x", "name", "_pos"]
        assert len(same(native, plan)) > 0, text
        assert normal(scan_frame(engine.spark, [plan]).toArrow()) == normal(native.toArrow())


def test_names_of_spark_and_of_the_engine_are_names(engine, make_plan):
    maker = make_plan({1: T.STRING})
    names = ["_metadata", "__c0", "__path", "__file", "file", "a.b", "a`b", "x y", "1,2;(){}=\t", "_tmp"]
    maker.add("f.parquet", pa.table({n: [i] for i, n in enumerate(names)}), {1: "v"}, deleted=[5])
    columns = [ReadColumn(n, T.INT64, physical=(n,)) for n in names]
    columns.append(ReadColumn("__row", T.STRING, partition=1, constant_in=(0,)))
    plan = maker.plan(columns, ("_unit", "_pos"))
    assert engine.route(plan).via == "native"
    same(engine.scan(plan), plan)


def test_defaults_of_absent_columns(engine, make_plan):
    maker = make_plan()
    defaults = {
        "i": (T.INT32, -7), "l": (T.INT64, 2**40), "s": (T.STRING, "it's \\ ü"), "b": (T.BOOLEAN, False),
        "d": (T.DOUBLE, 1.5), "dec": (T.DecimalType(10, 2), decimal.Decimal("-1.25")),
        "date": (T.DATE, dt.date(1960, 2, 29)),
        "ts": (T.TIMESTAMP, dt.datetime(2020, 6, 1, 1, 2, 3, 4, tzinfo=dt.UTC)),
        "ntz": (T.TIMESTAMP_NTZ, dt.datetime(2020, 6, 1, 1, 2, 3, 4)),
    }  # fmt: skip
    maker.add("old.parquet", pa.table({"x": [1, 2]}))
    new = {n: pa.array([v, None], to_arrow_type(t)) for n, (t, v) in defaults.items()}
    maker.add("new.parquet", pa.table({"x": [3, 4], **new}))
    columns = [ReadColumn("x", T.INT64, physical=("x",))]
    columns += [ReadColumn(n, t, physical=(n,), default=v) for n, (t, v) in defaults.items()]
    plan = maker.plan(columns)
    assert engine.route(plan).via == "native"
    frame = engine.scan(plan)
    same(frame, plan)
    assert frame.where("i = -7").count() == 3


@pytest.mark.parametrize("legacy", [False, True])
def test_structs_of_which_a_file_has_no_field(engine, make_plan, legacy):
    """Null only where they were: Spark's reader has a setting that makes all of them null, as Spark 4.0 does."""
    there = pa.struct([("x", pa.int32())])
    rows = pa.table({
        "id": [1, 2], "s": pa.array([{"x": 1}, None], there), "l": pa.array([[{"x": 1}, None], None], pa.list_(there)),
        "d": pa.array([{"t": {"x": 1}}, {"t": None}], pa.struct([("t", there)]))})  # fmt: skip
    wanted = T.StructType((T.Field("y", T.INT32),))
    columns = [ReadColumn("id", T.INT64), ReadColumn("s", wanted),
               ReadColumn("l", T.ListType(T.Field("element", wanted))),
               ReadColumn("d", T.StructType((T.Field("t", wanted),)))]  # fmt: skip
    maker = make_plan()
    maker.add("f.parquet", rows)
    plan = maker.plan(columns)
    setting = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
    try:
        engine.spark.conf.set(setting, legacy)
        route = engine.route(plan)
        by_tasks = legacy or facts(engine.spark).version < (4, 1)
        assert (route.via == "tasks", "struct for null" in route.reason) == (by_tasks, by_tasks)
        found = same(engine.scan(plan), plan)
    finally:
        engine.spark.conf.unset(setting)
    first, second = "{'y': None}", "{'t': None}"
    assert found == [str(("1", first, f"[{first}, None]", f"{{'t': {first}}}")), str(("2", "None", "None", second))]


def test_specs_that_differ_are_read_each_in_its_way(engine, make_plan):
    maker = make_plan({1: T.STRING})
    maker.add("a.parquet", pa.table({"x": [1], "p": ["wrong"]}), {1: "right"}, spec=0)
    maker.add("b.parquet", pa.table({"x": [2], "p": ["in the file"]}), spec=1)
    columns = [
        ReadColumn("x", T.INT64, physical=("x",)),
        ReadColumn("p", T.STRING, physical=("p",), partition=1, constant_in=(0,)),
    ]
    got = engine.scan(maker.plan(columns)).orderBy("x").collect()
    assert [r["p"] for r in got] == ["right", "in the file"]


def ids(table: pa.Table, **by_name: int) -> pa.Table:
    fields = [f.with_metadata({b"PARQUET:field_id": str(by_name[f.name]).encode()}) for f in table.schema]
    return table.cast(pa.schema(fields))


def test_swapped_names_under_a_filter(engine, make_plan):
    """a becomes b and b becomes a: Spark's own read by field id loses these rows when the filter is pushed."""
    maker = make_plan()
    table = pa.table({"a": range(1000), "b": range(100, 1100)})
    maker.add("old.parquet", ids(table, a=1, b=2), row_group_size=100)
    columns = [
        ReadColumn("b", T.INT64, physical=("b",), field_id=1),
        ReadColumn("a", T.INT64, physical=("a",), field_id=2),
    ]
    schema = T.Schema(tuple(T.Field(c.name, c.type) for c in columns))
    plan = maker.plan(columns, format="iceberg", diverged=True)
    assert engine.route(plan).via == "tasks"
    frame = engine.scan(plan)
    assert sorted(r["b"] for r in frame.where("b < 2").collect()) == [0, 1]
    assert frame.where("a < 102").count() == 2
    assert frame.where("a is null").count() == 0
    assert frame.agg({"a": "sum"}).collect()[0][0] == sum(range(100, 1100))
    filtered = maker.plan(columns, where=bind_predicate(parse("b < 2"), schema), format="iceberg", diverged=True)
    assert engine.route(filtered).via == "tasks"
    assert engine.scan(filtered).count() == 2


def test_ids_do_not_hang_on_a_setting_of_the_session(engine, make_plan):
    maker = make_plan()
    maker.add("f.parquet", ids(pa.table({"a": [1], "old": [2]}), a=1, old=2))
    columns = [ReadColumn("a", T.INT64, field_id=1), ReadColumn("new", T.INT64, field_id=2)]
    before = engine.spark.conf.get("spark.sql.parquet.fieldId.read.enabled", None)
    frame = engine.scan(maker.plan(columns, format="iceberg"))
    assert engine.spark.conf.get("spark.sql.parquet.fieldId.read.enabled", None) == before
    for value in ("true", "false"):
        engine.spark.conf.set("spark.sql.parquet.fieldId.read.enabled", value)
        try:
            assert [tuple(r) for r in frame.select("new").collect()] == [(2,)]
        finally:
            engine.spark.conf.unset("spark.sql.parquet.fieldId.read.enabled")


@pytest.mark.route("native scan by field ids")
def test_nested_fields_by_id(engine, make_plan):
    maker = make_plan()
    inner = pa.field("x", pa.int64(), metadata={b"PARQUET:field_id": b"3"})
    other = pa.field("y", pa.int64(), metadata={b"PARQUET:field_id": b"4"})
    struct = pa.field("st", pa.struct([inner, other]), metadata={b"PARQUET:field_id": b"1"})
    listed = pa.field("li", pa.list_(pa.field("element", pa.struct([inner]))), metadata={b"PARQUET:field_id": b"2"})
    table = pa.Table.from_pylist(
        [{"st": {"x": 1, "y": 2}, "li": [{"x": 5}]}, {"st": None, "li": None}], pa.schema([struct, listed])
    )
    maker.add("f.parquet", table)
    swapped = T.StructType((T.Field("y", T.INT64, id=3), T.Field("x", T.INT64, id=4), T.Field("new", T.STRING, id=9)))
    of_list = T.ListType(T.Field("element", T.StructType((T.Field("z", T.INT64, id=3),)), id=7))
    columns = [ReadColumn("s", swapped, field_id=1), ReadColumn("l", of_list, field_id=2)]
    got = engine.scan(maker.plan(columns, format="iceberg")).toArrow().to_pylist()
    assert got == [{"s": {"y": 1, "x": 2, "new": None}, "l": [{"z": 5}]}, {"s": None, "l": None}]


def test_why_tasks(engine, make_plan):
    column = [ReadColumn("x", T.INT64, physical=("x",))]

    def reason(maker, columns=column, **options) -> str:
        route = engine.route(maker.plan(columns, **options))
        assert route.via == "tasks"
        return route.reason

    maker = make_plan()
    assert "no file" in reason(maker)
    maker.add("a:b.parquet", pa.table({"x": [1]}))
    assert "cannot read a file called 'a:b.parquet'" in reason(maker)
    assert engine.scan(maker.plan(column)).count() == 1
    maker = make_plan()
    maker.add("a:b/[x].parquet", pa.table({"x": [1]}))
    assert "a colon beside" in reason(maker)
    assert engine.scan(maker.plan(column)).count() == 1
    maker = make_plan()
    maker.add("a.parquet", pa.table({"x": [1]}))
    assert "a default of type binary" in reason(maker, [ReadColumn("b", T.BINARY, physical=("b",), default=b"x")])
    assert "uuid" in reason(maker, [ReadColumn("x", T.UUID, physical=("x",))])
    assert "differ only in case" in reason(maker, [*column, ReadColumn("X", T.INT64, physical=("X",))])
    maker.units[0]["format"] = 3
    assert "not Parquet" in reason(maker)
    maker.units[0] |= {"format": 0, "path": "memory://m/a.parquet"}
    assert "memory" in reason(maker)
    maker.units[0]["path"] = "s3://bucket/a.parquet"
    assert "cannot reach s3://bucket" in reason(maker)


def test_nothing_to_read_keeps_the_schema(engine, make_plan):
    plan = make_plan({1: T.DATE}).plan([ReadColumn("x", T.INT64), ReadColumn("d", T.DATE)], ("_unit",))
    frame = engine.scan(plan)
    assert frame.dtypes == [("x", "bigint"), ("d", "date"), ("_unit", "bigint")]
    assert frame.count() == 0


def test_more_files_than_spark_lists_in_the_driver(engine, make_plan):
    maker = make_plan({1: T.INT32})
    for i in range(40):
        maker.add(f"p={i}/f.parquet", pa.table({"x": [i]}), {1: i})
    columns = [ReadColumn("x", T.INT64, physical=("x",)), ReadColumn("p", T.INT32, partition=1, constant_in=(0,))]
    before = engine.spark.conf.get("spark.sql.sources.parallelPartitionDiscovery.parallelism")
    frame = engine.scan(maker.plan(columns))
    assert frame.where("x = p").count() == 40
    assert engine.spark.conf.get("spark.sql.sources.parallelPartitionDiscovery.parallelism") == before


@pytest.mark.route("scan by tasks")
def test_other_types_go_by_tasks(engine, make_plan):
    maker = make_plan()
    values = {
        "u": pa.array([2**64 - 1], pa.uint64()),
        "h": pa.array([1.5], pa.float16()),
        "id": pa.array([b"\1" * 16], pa.binary(16)),
    }
    maker.add("f.parquet", pa.table(values))
    columns = [
        ReadColumn("u", T.IntegerType(64, False), physical=("u",)),
        ReadColumn("h", T.HALF_FLOAT, physical=("h",)),
        ReadColumn("id", T.UUID, physical=("id",)),
    ]
    got = engine.scan(maker.plan(columns)).toArrow().to_pylist()
    assert got == [{"u": decimal.Decimal(2**64 - 1), "h": 1.5, "id": "01010101-0101-0101-0101-010101010101"}]


def test_rows_are_counted_where_no_column_is_read(engine, make_plan):
    maker = make_plan()
    maker.add("a:b.parquet", pa.table({"x": [1, 2, 3]}))
    assert engine.scan(maker.plan([], output=[])).count() == 3


def test_refused_types_name_the_column(engine, make_plan):
    maker = make_plan()
    maker.add("f.parquet", pa.table({"d": pa.array([1], pa.decimal256(50, 2))}))
    with pytest.raises(BoathouseError, match="`d` has the type decimal\\(50,2\\)"):
        engine.scan(maker.plan([ReadColumn("d", T.DecimalType(50, 2), physical=("d",))]))

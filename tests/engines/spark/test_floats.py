"""NaN and -0.0 on Spark, in files of every writer: early and late conditions give what they give in process.

Bounds leave NaN out, dictionaries and bloom filters do not find -0.0 as 0.0: Spark would skip row groups by them.
"""

from __future__ import annotations

import math
from functools import reduce
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

import boathouse as bh
from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.engines.spark.floats import MAX_NESTED
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.table.tasks import ReadColumn
from boathouse.types import Field, Schema

sql = pytest.importorskip("pyspark.sql")
F, DataFrame = sql.functions, sql.DataFrame
pytestmark = pytest.mark.spark

NAN = math.nan
NOT_A_NUMBER = "CAST('NaN' AS DOUBLE)"
INNER = pa.struct([("f", pa.float32()), ("n", pa.int64())])
POINT = pa.struct([("d", pa.float64()), ("n", pa.int64()), ("t", INNER)])
VALUES = [[1.0, NAN, 2.0, None], [-0.0] * 4, [0.0] * 4, [50.0, -math.inf, 60.0, math.inf], [NAN] * 4]
"""One file each."""


def rows(i):
    """The rows of one file: its values in floats of every place."""
    points = [None if v is None else {"d": v, "n": 1, "t": {"f": v, "n": 1}} for v in VALUES[i]]
    return pa.table(
        {
            "id": pa.array(range(4 * i, 4 * i + 4), pa.int64()),
            "d": pa.array(VALUES[i], pa.float64()),
            "f": pa.array(VALUES[i], pa.float32()),
            "s": pa.array(points, POINT),
            "l": pa.array([[v] for v in VALUES[i]], pa.list_(pa.float64())),
        }
    )


def folder_of(write):
    """A maker of Delta tables in place, of files that a program has written."""

    def make(path, spark):
        path.mkdir()
        for i in range(len(VALUES)):
            write(rows(i), path / f"part-{i}.parquet", spark)
        bh.convert(str(path), format="delta")

    return make


def by_duckdb(found, path, spark):
    duckdb.sql(f"COPY found TO '{path}' (FORMAT parquet)")


def by_spark(table, path, spark):
    frame = spark.createDataFrame(table).coalesce(1)
    frame.write.option("parquet.bloom.filter.enabled", "true").parquet(str(path.parent.parent / path.stem))
    (written,) = (path.parent.parent / path.stem).glob("*.parquet")
    written.rename(path)


def by_deltalake(path, spark):
    for i in range(len(VALUES)):
        deltalake.write_deltalake(str(path), rows(i), mode="append")


def by_pyiceberg(path, spark):
    catalogs = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = catalogs.SqlCatalog("c", uri="sqlite://", warehouse=f"file://{path.parent}")
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.t", schema=rows(0).schema, location=f"file://{path}")
    for i in range(len(VALUES)):
        table.append(rows(i))
    return table.metadata_location.removeprefix("file://")


def by_us(format):
    def make(path, spark):
        for i in range(len(VALUES)):
            bh.write(rows(i) if i % 2 else spark.createDataFrame(rows(i)).coalesce(1), str(path), format=format,
                     mode="append")  # fmt: skip

    return make


WRITERS = {
    "pyarrow": folder_of(lambda table, path, _: pq.write_table(table, path, write_page_index=True)),
    "duckdb": folder_of(by_duckdb),
    "spark": folder_of(by_spark),
    "deltalake": by_deltalake,
    "pyiceberg": by_pyiceberg,
    "delta": by_us("delta"),
    "iceberg": by_us("iceberg"),
}
BY_TASKS = tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 1)
"""Before 4.1 tables with structs are not read by Spark's own reader."""
needs_structs = pytest.mark.skipif(BY_TASKS, reason="this Spark's own reader is not given structs")
CONDITIONS = (
    "{} > 27", "27 <= {}", "NOT ({} <= 27)", "{} = CAST('NaN' AS DOUBLE)", "{} <=> CAST('NaN' AS DOUBLE)",
    "{} BETWEEN 27 AND CAST('NaN' AS DOUBLE)", "{} IN (27, 28) OR {} > 55", "{} <> 1 AND {} <> 2", "{} = 0", "{} >= 0",
    "{} <= -0.0D", "{} IN (0, 1)", "{} NOT IN (0, 1)", "{} < 2 AND id > 1", "{} = 60", "{} BETWEEN 1 AND 55",
)  # fmt: skip
PLACES = ("d", "f", "s.d", "s.t.f")


def answers(frames):
    """The ids of many frames by their names, in one job."""
    named = [frame.select(F.lit(name).alias("name"), "id") for name, frame in frames.items()]
    found = reduce(DataFrame.unionAll, named).toArrow().to_pylist()
    return {name: sorted(r["id"] for r in found if r["name"] == name) for name in frames}


@pytest.mark.parametrize("writer", WRITERS)
def test_conditions_early_and_late(spark, tmp_path, writer):
    """A condition of each kind on a float of each place beside what is found in process."""
    opened = WRITERS[writer](tmp_path / "t", spark) or str(tmp_path / "t")
    local, table = bh.open(opened), bh.open(opened, spark=spark)
    late = table.to_spark()
    assert BY_TASKS or any("FileScan parquet" in line for line in planned(late))
    expected, frames = {}, {}
    for i, text in enumerate(CONDITIONS):
        for place in PLACES if i == 0 else PLACES[i % 4 : i % 4 + 1]:
            where = text.replace("{}", place)
            found = local.scan(["id"], where).to_arrow()["id"].to_pylist()
            assert found
            expected |= dict.fromkeys((f"late {where}", f"early {where}"), sorted(found))
            frames |= {f"late {where}": late.where(where), f"early {where}": table.scan(["id"], where).to_spark()}
    assert answers(frames) == expected


def planned(frame):
    return frame._jdf.queryExecution().executedPlan().toString().splitlines()


def pushed(frame):
    """The conditions that Spark's reader skips by."""
    return [line.split("PushedFilters: ")[1].split(", ReadSchema")[0] for line in planned(frame) if "Pushed" in line]


@needs_structs
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_what_still_skips(spark, tmp_path, format):
    """Conditions on other columns and fields, and those on floats that are certain, when they are given to the scan."""
    by_us(format)(tmp_path / "t", spark)
    table = bh.open(str(tmp_path / "t"), spark=spark)
    for where, expected in {
        "id > 3": "GreaterThan(id,3)",
        "s.n = 1": "EqualTo(s.n,1)",
        "d > 5 AND id = 4 AND s.t.n > 0": "EqualTo(id,4)",
    }.items():
        for frame in (table.to_spark().where(where), table.scan(where=where).to_spark()):
            assert all(expected in text and "(d" not in text for text in pushed(frame)), where
    for where, expected in {
        "d < 60": "LessThan(d,60.0)",
        "50 >= d": "LessThanOrEqual(d,50.0)",
        "d <= -0.0D": "LessThanOrEqual(d,0.0)",
        "d = 50": "EqualTo(d,50.0)",
        "f BETWEEN 1 AND 60": "LessThanOrEqual(f,60.0)",
    }.items():
        assert all(expected in text for text in pushed(table.scan(where=where).to_spark())), where
    for where in ("d = 0", "d <> 5", "d <=> 5", f"d = {NOT_A_NUMBER}", f"d < {NOT_A_NUMBER}", "NOT (d < 5)", "s.d < 5"):
        assert "Than" not in str(found := pushed(table.scan(where=where).to_spark())) and "Equal" not in str(found), (
            where
        )
    assert "struct<s:struct<n:bigint>>" in str(planned(table.to_spark().select("s.n")))
    assert "struct<s:struct<t:struct<n:bigint>>>" in str(planned(table.to_spark().select("s.t.n")))


def by_pyiceberg_without_a_catalog(path, spark):
    found = Path(by_pyiceberg(path, spark))
    (found.parent / "v1.metadata.json").write_bytes(found.read_bytes())
    for old in found.parent.glob("0*.metadata.json"):
        old.unlink()


BY_OTHERS = {"delta": by_deltalake, "iceberg": by_pyiceberg_without_a_catalog}
"""Writers of tables that we then write."""


@pytest.mark.parametrize("format", BY_OTHERS)
@pytest.mark.parametrize("writer", ["others", "us"])
def test_writes_reach_nan(spark, tmp_path, format, writer):
    """What is read for an overwrite, an update, a delete and a merge."""
    path = str(tmp_path / "t")
    if writer == "us":
        by_us(format)(tmp_path / "t", spark)
    else:
        BY_OTHERS[format](tmp_path / "t", spark)
    table = bh.open(path, spark=spark)
    above = bh.open(path).scan(["id"], "d > 55").count()
    table.overwrite(table.to_spark().where("d > 55"), where="d > 55")
    assert bh.open(path).scan(["id"], "d > 55").count() == above == 7
    assert table.update({"f": "7"}, where="d > 55").rows_updated == above
    assert bh.open(path).scan(["id"], "f = 7").count() == above
    source = spark.createDataFrame([(1, NAN)], "k int, d double")
    merged = table.merge(source, "target.d = source.d").when_matched_update({"f": "8"}).execute()
    assert merged.rows_updated == 5
    assert table.delete("d > 55").rows_deleted == above
    assert bh.open(path).scan(["id"], "d > 55").count() == 0


def nested(names):
    """A struct of doubles in a struct, and its rows: NaN in every field of the second."""
    inner = T.StructType(tuple(Field(n, T.DOUBLE) for n in names))
    return inner, [dict.fromkeys(names, 1.0), dict.fromkeys(names, NAN), None]


@needs_structs
@pytest.mark.parametrize("names", [["d", "D"], [f"d{i}" for i in range(MAX_NESTED + 1)]], ids=["case", "many"])
def test_structs_that_cannot_be_opaque_skip_nothing(engine, make_plan, names):
    inner, values = nested(names)
    maker = make_plan()
    table = pa.table({"id": [0, 1, 2], "s": pa.array(values, to_arrow_type(inner)), "z": [-0.0] * 3})
    maker.add("a.parquet", table, write_page_index=True)
    spark, sensitive = engine.spark, "spark.sql.caseSensitive"
    columns = [ReadColumn(n, t, physical=(n,)) for n, t in (("id", T.INT64), ("s", inner), ("z", T.DOUBLE))]
    spark.conf.set(sensitive, "true")
    try:
        plan = maker.plan(columns)
        assert engine.route(plan).via == "native"
        frame = engine.scan(plan)
        assert answers({w: frame.where(w) for w in (f"s.{names[0]} > 27", "z = 0", "id > 1")}) == {
            f"s.{names[0]} > 27": [1], "z = 0": [0, 1, 2], "id > 1": [2]}  # fmt: skip
    finally:
        spark.conf.unset(sensitive)


def test_conditions_bound_to_a_schema(engine, make_plan):
    """A float whose name in the file is another one, and which some files lack."""
    maker = make_plan()
    maker.add("a.parquet", pa.table({"id": [0, 1, 2], "p": [1.0, NAN, 70.0]}))
    maker.add("b.parquet", pa.table({"id": [3]}))
    columns = [ReadColumn("id", T.INT64, physical=("id",)), ReadColumn("x.y", T.DOUBLE, physical=("p",), default=NAN)]
    schema = Schema((Field("id", T.INT64), Field("x.y", T.DOUBLE)))
    for where, expected in {"`x.y` > 27": [1, 2, 3], "`x.y` < 27": [0], "`x.y` = 70": [2]}.items():
        plan = maker.plan(columns, where=bind_predicate(parse(where), schema, None))
        assert engine.route(plan).via == "native"
        assert answers({where: engine.scan(plan)})[where] == expected

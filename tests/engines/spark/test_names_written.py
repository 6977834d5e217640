"""Columns of any name that the format holds: written, changed and read on Spark as in process."""

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError
from boathouse.expr.tree import And, Column, Comparison, Literal
from makers.traits import REAL, TRAITS

pytestmark = pytest.mark.spark

NAMES = [
    "a.b", "a", "b", ".", "a.", "tick`", "`", "a`.`b", "``x``", "quo\"ted", "it's", "größe🚣", "with space", "%20",
    "a/b=c", "1st", "-", "x;{}()", "__column0", "__key0", "select", "*", "a[0]", "\\", "line\nfeed",
]  # fmt: skip


def held(format: str, folder, partitioned: bool = False) -> list[str]:
    """Of the names those that the format takes in process."""
    out = []
    for i, name in enumerate(NAMES):
        schema = pa.schema([("id", pa.int64()), (name, pa.string())])
        try:
            bh.create(str(folder / f"{format}-{i}"), schema, format, [quoted(name)] if partitioned else ())
            out.append(name)
        except BoathouseError:
            pass
    return out


def rows_of(names: list[str], start: int = 0) -> pa.Table:
    ids = list(range(start, start + 6))
    return pa.table({"id": pa.array(ids, pa.int64()), **{n: [f"{n}:{i % 2}" for i in ids] for n in names}})


def rows(table: pa.Table) -> list[dict]:
    return table.sort_by("id").to_pylist()


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@pytest.mark.parametrize("format", REAL)
def test_every_name_that_the_format_holds(spark, tmp_path, format):
    names = held(format, tmp_path)
    assert len(names) > 10
    assert ("a.b" in names) == TRAITS[format].dotted_names
    uri = str(tmp_path / "t")
    bh.write(spark.createDataFrame(rows_of(names)), uri, format=format)
    table = bh.open(uri, spark=spark)
    assert rows(table.to_arrow()) == rows(rows_of(names))
    assert rows(table.to_spark().toArrow()) == rows(rows_of(names))
    table.append(spark.createDataFrame(rows_of(names, 10).select([*reversed(names), "id"])))
    want = rows(rows_of(names)) + rows(rows_of(names, 10))
    assert rows(bh.open(uri).to_arrow()) == want
    condition = And(tuple(Comparison("=", Column((name,)), Literal(f"{name}:1")) for name in names))
    scan = bh.open(uri).scan(where=condition)
    assert scan.count() == scan.to_spark(spark).count() == 6
    table.delete(f"{quoted(names[0])} = '{names[0]}:1' AND id < 10")
    want = [row for row in want if row["id"] >= 10 or row["id"] % 2 == 0]
    assert rows(bh.open(uri).to_arrow()) == want


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_partitioned_by_names_of_any_kind(spark, tmp_path, format):
    names = held(format, tmp_path, partitioned=True)
    assert {"a.b", "tick`", "a`.`b"} < set(names)
    uri = str(tmp_path / "t")
    data = rows_of([*names, "plain"])
    bh.write(spark.createDataFrame(data), uri, format=format, partition_by=[quoted(n) for n in names])
    table = bh.open(uri, spark=spark)
    assert rows(table.to_arrow()) == rows(data)
    assert table.detail()["files"] == 2
    table.delete(" AND ".join(f"{quoted(n)} LIKE '%:0'" for n in names))
    assert bh.open(uri).count() == 3


@pytest.mark.parametrize("format", REAL)
def test_the_frame_of_another_order_and_case(spark, tmp_path, format):
    uri = str(tmp_path / "t")
    bh.write(pa.table({"id": [1], "Größe": ["a"]}), uri, format=format)
    bh.open(uri).append(spark.createDataFrame([("b", 2)], "`größe` string, ID bigint"))
    assert rows(bh.open(uri).to_arrow()) == [{"id": 1, "Größe": "a"}, {"id": 2, "Größe": "b"}]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_through_the_data_source(spark, tmp_path, format):
    names = [n for n in held(format, tmp_path) if n not in ("line\nfeed",)]
    uri = str(tmp_path / "t")
    data = rows_of(names)
    frame = spark.createDataFrame(data)
    frame.write.format("boathouse").option("tableFormat", format).mode("append").save(uri)
    assert rows(bh.open(uri).to_arrow()) == rows(data)
    assert rows(spark.read.format("boathouse").load(uri).toArrow()) == rows(data)

"""The local engine's relations: joins, aggregates and projections as Spark means them; sources; reading ahead."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import boathouse as bh
from boathouse.engines.local import LocalEngine
from boathouse.errors import (
    BoathouseError,
    EvaluationError,
    InvalidArgumentError,
    SchemaMismatchError,
)
from makers.traits import REAL

ENGINE = LocalEngine()
NAN = math.nan
HOW = ["inner", "left", "full", "semi", "anti"]


def rel(table: pa.Table):
    return ENGINE.source(table)


def bag(table: pa.Table) -> Counter:
    """Rows by position, since names may repeat; NaN is itself and the zeros differ."""
    columns = [c.to_pylist() for c in table.columns]
    return Counter(tuple(repr(v) for v in row) for row in zip(*columns))


LEFT = pa.table(
    {
        "id": pa.array([1, 2, 2, None, 5, 6, 7], pa.int32()),
        "f": [0.0, -0.0, NAN, None, 1.5, NAN, math.inf],
        "s": ["a", "b", None, "ü", "", "x", "7"],
        "nest": [{"a": [1]}, None, {"a": []}, {"a": None}, {"a": [2]}, None, None],
    }
)

NUMBERS = pa.table(
    {
        "i": pa.array([3, None, -7], pa.int32()),
        "f": [-0.0, NAN, None],
        "n": pa.array([Decimal("1.10"), None, Decimal("-9.99")], pa.decimal128(38, 2)),
        "s": ["ü", None, "A"],
        "none": pa.array([None, None, None], pa.float64()),
        "nan": [NAN, NAN, None],
        "b": [True, None, False],
    }
)
ALL = [(f"{a}_{c}", a, c) for c in NUMBERS.column_names for a in ("count", "count_all", "min", "max")]
ALL += [(f"sum_{c}", "sum", c) for c in ("i", "f", "n", "none", "nan")]


@pytest.mark.spark
@pytest.mark.parametrize("rows", [3, 1, 0])
def test_summaries_agree_with_spark(spark, rows):
    data = NUMBERS.slice(0, rows)
    ours = ENGINE.summary(rel(data), ALL).to_pylist()[0]
    names = {"count_all": "count(*)", "count": "count({0})", "min": "min({0})", "max": "max({0})", "sum": "sum({0})"}
    spark.createDataFrame(data).createOrReplaceTempView("numbers")
    columns = ", ".join(f"{names[a].format('`' + c + '`')} as {name}" for name, a, c in ALL)
    theirs = spark.sql(f"select {columns} from numbers").toArrow().to_pylist()[0]
    assert {k: repr(v) for k, v in ours.items()} == {k: repr(v) for k, v in theirs.items()}


def test_sums_are_exact_or_an_error():
    whole = pa.table({"i": pa.array([2**62, 2**62 - 1, -(2**62)], pa.int64())})
    assert ENGINE.summary(rel(whole), [("s", "sum", "i")])["s"].to_pylist() == [2**62 - 1]
    for bad in ([2**62, 2**62], [-(2**63), -1]):
        with pytest.raises(EvaluationError, match="overflows"):
            ENGINE.summary(rel(pa.table({"i": pa.array(bad, pa.int64())})), [("s", "sum", "i")])
    chunks = pa.chunked_array([[Decimal("1" * 36)], [Decimal("0.01")]], pa.decimal128(38, 2))
    assert ENGINE.summary(rel(pa.table({"n": chunks})), [("s", "sum", "n")])["s"][0].as_py() == Decimal(
        "1" * 36 + ".01"
    )


def test_projections_keep_rows_and_filter_like_spark():
    found = ENGINE.project(rel(LEFT), [("x", "f"), ("x", "id * 2")], "f > 1").table()
    assert found.column_names == ["x", "x"]
    assert [repr(v) for v in found.column(0).to_pylist()] == ["nan", "1.5", "nan", "inf"]
    assert ENGINE.project(rel(LEFT.slice(0, 0)), [("x", "id + 1")]).table().num_rows == 0


# Sources


def ids(data) -> list:
    return ENGINE.source(data).table()["id"].to_pylist()


def test_what_speaks_arrow_is_read():
    table = pa.table({"id": [1, 2, 3], "s": ["a", None, "ü"]})
    frame = table.to_pandas()
    sources = [
        table,
        table.to_batches()[0],
        table.to_reader(),
        frame,
        frame.set_index(pd.Index([7, 8, 9], name="i")),
        pl.from_arrow(table),
        duckdb.sql("select * from frame"),
        ds.dataset(table),
        ds.dataset(table).scanner(),
        table.to_pylist(),
    ]
    for data in sources:
        assert ids(data) == [1, 2, 3], type(data)


@pytest.mark.parametrize("format", REAL)
def test_layouts_of_others_are_written_as_plain_ones(tmp_path, format):
    frame = pl.DataFrame(
        {"e": pl.Series(["a", None], dtype=pl.Enum(["a"])), "c": pl.Series(["x", "y"]), "l": [[1], None]}
    )
    bh.write(frame, str(tmp_path / "p"), format=format)
    assert bh.open(str(tmp_path / "p")).to_arrow().to_pylist() == frame.to_dicts()
    pandas = pd.DataFrame({"k": pd.Categorical(["u", None]), "i": pd.array([1, None], dtype="Int64")})
    bh.write(pandas, str(tmp_path / "q"), format=format)
    assert bh.open(str(tmp_path / "q")).to_arrow().to_pylist() == [{"k": "u", "i": 1}, {"k": None, "i": None}]


def test_a_dataset_is_read_as_often_as_asked():
    source = ENGINE.source(ds.dataset(pa.table({"id": [1]})))
    assert not source.once and source.table() == source.table()


def test_every_key_of_every_dict_is_a_column():
    found = ENGINE.source([{"id": 1}, {"id": 2, "late": "x"}, {}]).table()
    assert found.to_pylist() == [{"id": 1, "late": None}, {"id": 2, "late": "x"}, {"id": None, "late": None}]


@pytest.mark.parametrize(
    "data",
    [
        [],
        [1, 2],
        [{"id": 1}, None],
        [{1: 2}],
        [{"id": 1}, {"id": "x"}],
        [{"id": 2**70}],
        {"id": [1]},
        "rows",
        pd.DataFrame([[1, 2]], columns=["id", "id"]),
        pd.DataFrame({"id": [1, "x"]}),
        pd.DataFrame(index=[1, 2]),
        pd.Series([1], name="id"),
        pa.table([[1], [2]], names=["id", "id"]),
        pa.table({}),
        pa.array([1]),
        7,
    ],
    ids=lambda d: type(d).__name__,
)
def test_what_is_no_table_is_refused(data, tmp_path):
    with pytest.raises(BoathouseError) as caught:
        ENGINE.source(data)
    assert isinstance(caught.value, InvalidArgumentError) and caught.value.advice
    t = bh.create(str(tmp_path / "t"), "id bigint")
    with pytest.raises((InvalidArgumentError, SchemaMismatchError)):
        t.append(data)
    assert t.refresh().version == 0


class OurOwnError(Exception):
    def __init__(self, code: int, text: str):
        super().__init__(f"{code} {text}")


@pytest.mark.parametrize("format", REAL)
@pytest.mark.parametrize("write", ["append", "overwrite", "create"])
def test_a_reader_that_fails_leaves_nothing_and_keeps_its_error(tmp_path, format, write):
    def batches():
        for i in range(3):
            yield pa.record_batch({"id": [i]})
        raise OurOwnError(7, "in the middle")

    uri = tmp_path / "t"
    if write != "create":
        bh.create(str(uri), "id bigint", format=format)
    before = sorted(map(str, tmp_path.rglob("*")))
    reader = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())
    with pytest.raises(OurOwnError, match="in the middle"):
        if write == "create":
            bh.write(reader, str(uri), format=format)
        else:
            getattr(bh.open(str(uri)), write)(reader, target_file_bytes=1)
    kept = [p for p in map(str, tmp_path.rglob("*")) if p not in before]
    assert [p for p in kept if p.endswith((".parquet", ".lance"))] == []
    assert [p for p in kept if p.endswith((".json", ".manifest", ".avro", ".txn"))] == []

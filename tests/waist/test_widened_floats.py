"""Floats that became doubles: what conditions find in files of before, of after, and of another writer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boathouse as bh

ODD = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 3.4028234663852886e38, 1.401298464324817e-45, 1.5, None]
CONDITIONS = [
    f"{column} {operator} {value}"
    for column in ("f", "s.f")
    for operator in ("=", "<=>", "!=", "<", ">=")
    for value in ("0", "-0.0D", "1.5", "double('NaN')", "3.5e38", "double('-Infinity')")
] + ["f BETWEEN 1 AND double('NaN')", "f IN (0, double('NaN'))", "NOT (s.f <= 1.5)", "isnan(f)", "f IS NULL"]


def rows(ids: range, values: list[float | None], type: pa.DataType) -> pa.Table:
    array = pa.array([values[i % len(values)] for i in ids], type)
    return pa.table({"id": pa.array(ids, pa.int64()), "f": array, "s": pa.StructArray.from_arrays([array], ["f"])})


def widened(path: str, traits: Any, values: list[float | None]) -> Any:
    """Ten rows as floats, five of them in a file of their own, and ten as doubles."""
    table = bh.write(rows(range(5), values, pa.float32()), path, format=traits.format, properties=traits.widening)
    table = bh.open(path, format=traits.format)
    table.append(rows(range(5, 10), values, pa.float32()))
    table.widen_column("f", "double")
    table.widen_column("s.f", "double")
    table.append(rows(range(10, 20), values, pa.float64()))
    return table


def expected(values: list[float | None], condition: str) -> list[int]:
    """What DuckDB says: NaN is the greatest value and equals itself there too, and zeros are equal."""
    import duckdb

    found = rows(range(20), [None if v is None else float(np.float32(v)) for v in values], pa.float64())  # noqa: F841
    text = condition.replace("<=>", "IS NOT DISTINCT FROM").replace("double('", "CAST('").replace("')", "' AS DOUBLE)")
    text = text.replace("0.0D", "0.0::DOUBLE")
    return sorted(i for (i,) in duckdb.sql(f"SELECT id FROM found WHERE {text}").fetchall())


@pytest.fixture
def wide(traits) -> Any:
    if traits.widening is None:
        pytest.skip("its columns cannot be widened")
    return traits


@settings(max_examples=40)
@given(values=st.lists(st.sampled_from(ODD), min_size=1, max_size=9), condition=st.sampled_from(CONDITIONS))
def check(traits: Any, folder: Any, values: list[float | None], condition: str) -> None:
    path = str(folder / f"t{len(list(folder.iterdir()))}")
    table = widened(path, traits, values)
    assert sorted(table.scan(where=condition).to_arrow()["id"].to_pylist()) == expected(values, condition)


@pytest.mark.few(1)
def test_conditions_on_floats_that_became_doubles(wide, tmp_path):
    check(wide, tmp_path)


@pytest.mark.spark
def test_they_find_the_same_rows_on_spark_early_and_late(wide, tmp_path, spark):
    table = widened(str(tmp_path / "t"), wide, ODD)
    frame = bh.open(table.uri, format=wide.format, spark=spark).to_spark()
    for condition in CONDITIONS:
        wanted = expected(ODD, condition)
        early = table.scan(where=condition).to_spark(spark)
        assert sorted(r.id for r in early.select("id").collect()) == wanted, condition
        assert sorted(r.id for r in frame.where(condition).select("id").collect()) == wanted, condition

"""How the columns of a frame are selected: names that mean something to the library or to Spark, and few calls to the
JVM."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

import boathouse as bh

pytest.importorskip("pyspark.sql")
pytestmark = pytest.mark.spark
REGEX = "spark.sql.parser.quotedRegexColumnNames"
STRUCT = pa.struct([("y", pa.float64()), ("a.b", pa.int32())])
ROWS = pa.table({
    "__c1": [1, 2], "__c0": [1.5, math.nan], "__row": ["x", "y"], "__p0": [3, 4], "id.x": [0.5, 2.5],
    "`q` AS r": [7, 8], "__file": [True, None], "_metadata": [9, 10],
    "select": pa.array([{"y": math.nan, "a.b": 1}, None], STRUCT),
    "a+": pa.array([math.inf, -0.0], pa.float32()), "p.q": ["k", "l"],
})  # fmt: skip


@pytest.mark.parametrize("regex", [False, True])
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_names_that_collide_and_names_that_are_patterns(spark: Any, tmp_path: Any, format: str, regex: bool) -> None:
    properties = {"delta": {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}}.get(format, {})
    bh.write(ROWS, str(tmp_path / "t"), format=format, partition_by=["`p.q`"], properties=properties)
    table = bh.open(str(tmp_path / "t"), spark=spark)
    spark.conf.set(REGEX, str(regex).lower())
    try:
        for columns in (None, ["_pos", "p.q", "__c0", "select"]):
            theirs = bh.open(str(tmp_path / "t")).scan(columns).to_arrow().to_pylist()
            assert sorted(map(repr, table.scan(columns).to_spark().toArrow().to_pylist())) == sorted(map(repr, theirs))
    finally:
        spark.conf.unset(REGEX)
    late = table.to_spark()
    assert [r["id.x"] for r in late.where("`__c0` > 2").collect()] == [2.5]
    assert late.where("`select`.y > 1 AND `a+` > 0 AND `p.q` = 'k'").count() == 1
    table.delete("`__c1` = 1")
    assert [r["__p0"] for r in table.to_spark().collect()] == [4]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_column_costs_few_calls(spark: Any, tmp_path: Any, format: str, monkeypatch: Any) -> None:
    from py4j.java_gateway import GatewayClient

    calls = [0]
    send = GatewayClient.send_command

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return send(*args, **kwargs)

    path = str(tmp_path / "t")
    bh.write(pa.table({f"c{i}": [float(i)] if i % 2 else [i] for i in range(100)}), path, format=format)
    table = bh.open(path, spark=spark)
    table.to_spark()
    monkeypatch.setattr(GatewayClient, "send_command", counted)
    frame = table.to_spark()
    assert calls[0] < 5 * 100  # 73 a column by Columns
    assert len(frame.columns) == 100

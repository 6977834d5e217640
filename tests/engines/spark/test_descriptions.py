"""The names of our jobs where Spark shows them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import BoathouseError

pytestmark = pytest.mark.spark


def descriptions(spark) -> set[str]:
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # the list is made of events
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    return {found.apply(i).description() for i in range(found.size())}


def test_jobs_are_called_as_the_operation_and_the_table(spark, tmp_path):
    uri = str(tmp_path / "t")
    rows = spark.range(0, 20_000, 1, 2).selectExpr("id", "id % 7 AS k")
    bh.write(rows, uri, format="delta")
    t = bh.open(uri, spark=spark)
    t.append(rows)
    t.delete("pmod(hash(id), 2) = 0")  # a condition of Spark's alone
    wanted = {f"boathouse {name} {t.uri}" for name in ("create", "append", "delete")}
    assert wanted <= descriptions(spark)
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


def test_a_name_that_the_user_gave_stays(spark, tmp_path):
    uri = str(tmp_path / "t")
    spark.sparkContext.setJobDescription("nightly load")
    try:
        bh.write(spark.range(0, 20_000, 1, 2), uri, format="delta")
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "nightly load"
        with pytest.raises(BoathouseError):
            bh.open(uri, spark=spark).append(pa.table({"other": ["x"]}))
    finally:
        spark.sparkContext.setJobDescription(None)
    assert f"boathouse create {bh.open(uri).uri}" not in descriptions(spark)

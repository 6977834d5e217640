"""Processes that were forked from one with a Spark session: its connection to the driver is not theirs."""

from __future__ import annotations

import multiprocessing

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.api.opening import active_session

pytestmark = pytest.mark.spark


def _write(uri: str, number: int) -> None:
    assert active_session() is None
    bh.write(pa.table({"id": pa.array([number], pa.int64())}), uri, mode="append")


def test_they_write_without_the_session(spark, tmp_path):
    uri = str(tmp_path / "t")
    bh.create(uri, "id bigint")
    assert active_session() is not None
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_write, args=(uri, number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert sorted(row.id for row in bh.open(uri).to_spark().collect()) == [0, 1, 2]

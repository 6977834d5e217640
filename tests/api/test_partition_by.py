"""`partition_by=None` is no partitioning."""

import pyarrow as pa
import pytest

import boathouse as bh
from makers.traits import REAL

ROWS = pa.table({"id": [1, 2]})


@pytest.mark.parametrize("format", REAL)
def test_none(tmp_path, format):
    path = str(tmp_path / "t")
    bh.create(str(tmp_path / "c"), ROWS.schema, format=format, partition_by=None)
    bh.write(ROWS, path, format=format, partition_by=None)
    bh.write(ROWS, path, mode="append", partition_by=None)
    bh.write(ROWS, path, mode="overwrite", partition_by=None)
    assert bh.open(path).count() == 2 and not bh.open(path).detail()["partition_by"]

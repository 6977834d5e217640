"""What tells the relations of a FileIndex apart; no session is needed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql")

from boathouse.engines.spark.file_index import Files


def test_slices_of_the_same_paths_are_other_files():
    paths = pa.array([f"file:///t/{i}.parquet" for i in range(4)])
    sizes, tuples = np.full(2, 10), np.zeros(2, np.int64)
    first, second, copied = (
        Files(p, p, sizes, tuples) for p in (paths[:2], paths[2:], pa.array(paths[2:].to_pylist()))
    )
    assert first.digest != second.digest == copied.digest

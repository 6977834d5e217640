"""What a plan says that it skipped."""

from __future__ import annotations

import pyarrow as pa

import boathouse as bh


def test_files_of_a_checkpoint_are_counted_once(tmp_path):
    """A checkpoint also holds rows that are no files: protocol, metadata, tombstones."""
    uri = str(tmp_path / "t")
    for month in range(12):
        data = pa.table({"month": [month], "v": [1]})
        bh.write(data, uri, format="delta", mode="append", partition_by="month" if month == 0 else ())
    assert (tmp_path / "t/_delta_log/00000000000000000010.checkpoint.parquet").exists()
    explanation = bh.open(uri).scan(where="month = 5").explain()
    assert (explanation.units, sum(explanation.skipped.values())) == (1, 11)

"""Floats in checkpoints: NaN is in no bound, neither of the files that they list nor of the checkpoint's own chunks."""

import math
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import boathouse as bh
from boathouse.delta.checkpoint import sidecars as checkpoint_sidecars
from boathouse.delta.checkpoint.writer import write_checkpoint

NAN, INF = math.nan, math.inf
FILES = [[1.0, NAN, 5.0], [NAN, NAN], [2.0, 3.0], [INF, -INF], [-0.0, 0.0], [None, 4.0]]
FORMS = {
    "text": {"delta.checkpoint.writeStatsAsStruct": "false"},
    "both": {"delta.checkpoint.writeStatsAsStruct": "true"},
    "struct": {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"},
    "sidecars": {"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpointPolicy": "v2"},
}


def rows(values, p):
    points = [{"h": v} for v in values]
    return pa.table(
        {
            "p": pa.array([p] * len(values), pa.float64()), "n": pa.array(range(len(values)), pa.int64()),
            "f": pa.array(values, pa.float64()), "g": pa.array(values, pa.float32()),
            "s": pa.array(points, pa.struct([("h", pa.float64())])),
        }
    )  # fmt: skip


@pytest.fixture(params=FORMS)
def table(request, tmp_path, monkeypatch):
    """A table that a checkpoint alone describes: a file for each list, in partitions NaN and 1.5 by turns."""
    monkeypatch.setattr(checkpoint_sidecars, "SIDECAR_ROWS", 4)
    path = str(tmp_path / "t")
    bh.create(path, rows([], 0.0).schema, format="delta", partition_by=["p"], properties=FORMS[request.param])
    table = bh.open(path)
    for i, values in enumerate(FILES):
        table.append(rows(values, NAN if i % 2 else 1.5))
    write_checkpoint(table.refresh()._handle.snapshot)
    for entry in Path(path, "_delta_log").glob("*.json"):
        if entry.stem.isdigit() and int(entry.stem) < table.version:
            entry.unlink()
    return bh.open(path)


def written(table):
    log = Path(table.uri.removeprefix("file://"), "_delta_log")
    return [*log.glob("*.checkpoint*.parquet"), *log.glob("_sidecars/*.parquet")]


def test_bounds_of_files_know_no_nan(table):
    found = {}
    for file in written(table):
        for add in pq.ParquetFile(file).read().column("add").to_pylist():
            if add and add.get("stats_parsed"):
                parsed = add["stats_parsed"]
                found[add["path"]] = [parsed[k]["f"] for k in ("minValues", "maxValues")]
                assert found[add["path"]] == [parsed[k]["s"]["h"] for k in ("minValues", "maxValues")]
                assert [parsed[k]["g"] for k in ("minValues", "maxValues")] == found[add["path"]]
    if found:
        assert sorted(found.values(), key=str) == sorted(
            [[None, None], [None, None], [2.0, 3.0], [None, None], [0.0, 0.0], [4.0, 4.0]], key=str
        )


def test_no_chunk_of_floats_has_bounds(table):
    recorded = set()
    for file in written(table):
        metadata = pq.ParquetFile(file).metadata
        for group in (metadata.row_group(i) for i in range(metadata.num_row_groups)):
            for column in map(group.column, range(metadata.num_columns)):
                bounded = column.statistics is not None and column.statistics.has_min_max
                assert not (bounded and column.physical_type in ("FLOAT", "DOUBLE")), column.path_in_schema
                recorded |= {column.path_in_schema} if bounded else set()
    assert {"add.path", "add.size"} <= recorded, "the others have"


def test_every_row_is_found(table, tmp_path):
    everything = [(v, NAN if i % 2 else 1.5) for i, values in enumerate(FILES) for v in values]
    nan = "CAST('NaN' AS DOUBLE)"
    for where, test in (
        ("f > 4", lambda v, p: v is not None and (v > 4 or v != v)),
        (f"f = {nan}", lambda v, p: v is not None and v != v),
        (f"p = {nan}", lambda v, p: p != p),
        ("p > 2", lambda v, p: p != p),
        ("s.h <= 0 AND p < 2", lambda v, p: v is not None and v <= 0 and p == 1.5),
        ("g = 0", lambda v, p: v == 0),
    ):
        assert table.scan(where=where).count() == sum(bool(test(*row)) for row in everything), where
    if "v2" not in str(table.properties):
        assert DeltaTable(table.uri).to_pyarrow_table().num_rows == len(everything)
    shutil.rmtree(tmp_path)

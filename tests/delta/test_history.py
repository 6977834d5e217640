"""What a table still needs, and small things of snapshots."""

import os

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.delta.adapter import FORMAT
from boathouse.delta.files import _distinct, map_columns
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.features import LiveFiles
from boathouse.table.location import Location


def test_referenced_names_every_file_of_every_kept_version(tmp_path):
    path = tmp_path / "a b"
    bh.write(pa.table({"p": ["x/y", "é"], "x": [0, 1]}), str(path), format="delta", partition_by=["p"])
    table = bh.open(str(path))
    for i in range(10):
        table.append(pa.table({"p": [str(i)], "x": [i]}))
    table.delete("x = 3")
    table.overwrite(pa.table({"p": ["z"], "x": [1]}))
    (path / "orphan.parquet").write_bytes(b"x")
    found = set(FORMAT.open(TableContext(Location(f"file://{path}"), Stores())).offers(LiveFiles).uris())
    there = {f"file://{os.path.join(d, n)}" for d, _, names in os.walk(path) for n in names}
    assert there - found == {f"file://{path}/orphan.parquet"}
    for version in range(10):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    found = set(FORMAT.open(TableContext(Location(f"file://{path}"), Stores())).offers(LiveFiles).uris())
    for version in (10, 11, 12):
        files = bh.open(str(path), version=version).files().column("path").to_pylist()
        assert files and set(files) <= found


def test_vector_files_are_referenced(delta, corpora):
    source = corpora / "delta" / "java-kernel" / "basic-dv-with-checkpoint"
    found = set(FORMAT.open(TableContext(Location(f"file://{source}"), Stores())).offers(LiveFiles).uris())
    there = {f"file://{p}" for p in source.rglob("*.bin")}
    assert there and there <= found


def test_history_is_newest_first_and_may_be_cut(tmp_path):
    path = str(tmp_path / "t")
    bh.create(path, pa.schema([("x", pa.int64())]))
    for i in range(3):
        bh.open(path).append(pa.table({"x": [i]}))
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))
    assert [h.version for h in snapshot.history.entries()] == [3, 2, 1, 0]
    assert [h.version for h in snapshot.history.entries(2)] == [3, 2]
    times = [h.timestamp_ms for h in snapshot.history.entries()]
    assert times == sorted(times, reverse=True) and len(set(times)) == 4
    assert snapshot.timestamp_ms == times[0]


def test_units_keep_their_numbers_in_every_listing(tmp_path):
    path = str(tmp_path / "t")
    bh.write(pa.table({"p": [0], "x": [0]}), path, format="delta", partition_by=["p"])
    table = bh.open(path)
    for i in range(1, 14):
        table.append(pa.table({"p": [i % 3], "x": [i]}))
    table.delete("x = 4")
    whole = {f["path"]: f["unit"] for b in table._handle.snapshot.files() for f in b.to_pylist()}
    assert len(set(whole.values())) == len(whole) == 13
    for where in ("p = 1", "x > 7", "p = 2 and x < 9"):
        plan = table._handle.snapshot.plan(None, table.scan(where=where)._where, ["_unit"])
        assert plan.units.num_rows < 13
        for row in plan.units.to_pylist():
            assert whole[row["path"]] == row["unit"]


def test_tally_names_the_tests(tmp_path):
    path = str(tmp_path / "t")
    bh.write(pa.table({"p": [1, 2, 3], "x": [10, 20, 30]}), path, format="delta", partition_by=["p"])
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))
    where = bh.open(path).scan(where="p > 1 and x < 25")._where
    plan = snapshot.plan(None, where)
    assert plan.units.num_rows == 1
    assert sorted(plan.tally.skipped.values()) == [1, 1]
    assert any(k.startswith("partition p > 1") for k in plan.tally.skipped)
    assert any(k.startswith("bounds x < 25") for k in plan.tally.skipped)


def test_partition_maps_in_any_shape():
    type = pa.map_(pa.string(), pa.string())
    rows = [[("a", "1"), ("b", "2")], [("a", "3"), ("b", None)]]
    odd = [*rows, [("b", "4"), ("a", "5")], [("a", "6")], [], None]
    for data in (rows, odd):
        maps = pa.array(data, type)
        for part in (maps, maps.slice(1)):
            got = [c.to_pylist() for c in map_columns(part, ["b", "a"])]
            want = [[dict(m or ()).get(n) for m in part.to_pylist()] for n in ("b", "a")]
            assert got == want
    assert map_columns(pa.array(rows, type), []) == []


@pytest.mark.parametrize("top", [3, 10_000_000])
def test_distinct_codes(top):
    codes = np.random.default_rng(0).integers(0, top, 200)
    firsts, numbers = _distinct(codes)
    assert (codes[firsts][numbers] == codes).all() and len(firsts) == len(set(codes.tolist()))
    assert len(_distinct(np.zeros(0, np.int64))[0]) == 0


def test_a_mapping_left_behind_means_nothing(raw, delta):
    table = raw()
    table.file("f.parquet", pa.table({"x": [1], "q": [2]}))
    fields = [delta.field("x", "long", True, **{"delta.columnMapping.physicalName": "q", "delta.columnMapping.id": 1})]
    table.commit(0, delta.PROTOCOL, delta.metadata(fields), table.add("f.parquet"))
    assert bh.open(str(table)).to_arrow().to_pylist() == [{"x": 1}]


@pytest.mark.spec("D-281")
@pytest.mark.spark
def test_the_zone_of_spark_shifts_nothing(tmp_path, spark):
    path = str(tmp_path / "t")
    value = pa.array([1_577_836_800_123_456], pa.timestamp("us", "UTC"))
    bh.write(pa.table({"p": value, "x": value}), path, format="delta", partition_by=["p"])
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        for zone in ("UTC", "America/Los_Angeles"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            frame = bh.open(path, spark=spark).to_spark()
            row = frame.selectExpr("unix_micros(p) as p", "unix_micros(x) as x").collect()[0]
            assert (row.p, row.x) == (1_577_836_800_123_456,) * 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_a_table_in_memory():
    """Every byte through `Storage`, checkpoints too."""
    path = "memory://delta-history/t"
    bh.create(path, pa.schema([("p", pa.string()), ("x", pa.int64())]), partition_by=["p"])
    table = bh.open(path)
    for i in range(12):
        table.append(pa.table({"p": ["a b"], "x": [i]}))
    table.delete("x < 3")
    found = bh.open(path)
    assert found._handle.snapshot.checkpoint.version == 10
    assert sorted(found.to_arrow().column("x").to_pylist()) == list(range(3, 12))

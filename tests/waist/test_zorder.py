"""Z-order on every format and both engines: the same rows, and files with narrow ranges of every column."""

from __future__ import annotations

import datetime as dt
import json
import threading
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from peers import by_peer

import boathouse as bh
from boathouse import errors
from boathouse.arrow.schema import to_arrow_type
from boathouse.engines import ordered
from boathouse.ops.tasks import order
from boathouse.types import BINARY, BOOLEAN, DATE, DOUBLE, INT64, STRING, TIMESTAMP, DecimalType

COUNT = 4_000


@pytest.fixture(scope="module")
def points() -> pa.Table:
    """Rows in no order, of which x and the text are independent of each other; nulls, and a column to partition by."""
    random = np.random.default_rng(7)
    x = random.permutation(COUNT)
    names = [None if i % 50 == 0 else f"näme {i:05d}" for i in random.permutation(COUNT).tolist()]
    return pa.table(
        {
            "x": pa.array(x, pa.int64()),
            "name": pa.array(names, pa.string()),
            "place": pa.array([{"at": float(i), "tag": "t"} for i in random.permutation(COUNT)]),
            "city": pa.array([("Oslo", "São Paulo")[i % 2] for i in range(COUNT)], pa.string()),
        }
    )


@pytest.fixture
def table(format_name, properties, tmp_path, session, points):
    """The rows in ten appends; without partitions."""
    return made(format_name, properties, tmp_path, session, points)


def made(format_name, properties, tmp_path, session, rows, by=()):
    uri = str(tmp_path / "täble")
    bh.create(uri, rows.schema, format=format_name, partition_by=by, properties=properties)
    t = bh.open(uri, format=format_name)
    for i in range(0, rows.num_rows, rows.num_rows // 10):
        t.append(rows.slice(i, rows.num_rows // 10))
    return bh.open(uri, format=format_name, spark=session)


@pytest.fixture
def local_only(engine_name):
    if engine_name != "local":
        pytest.skip("nothing here depends on the engine")


def check(t, wanted: pa.Table) -> None:
    for found in (bh.open(t.uri, format=t.format).to_arrow(), by_peer(t.uri, t.format)):
        key = lambda r: r["x"]  # noqa: E731
        assert sorted(found.to_pylist(), key=key) == sorted(wanted.to_pylist(), key=key)


def read_for(t, where: str) -> int:
    """How many files a condition leaves to be read."""
    scan = bh.open(t.uri, format=t.format).scan(where=where)
    return scan.plan().units.num_rows


def target(t, files: int) -> int:
    return pc.sum(t.files()["size"]).as_py() // files


@pytest.mark.few(4)
@pytest.mark.feature("Z-order")
@pytest.mark.route("Z-order")
def test_files_get_narrow_ranges_of_every_column(table, traits, points):
    before = table.files().num_rows
    dry = table.optimize(zorder_by=["x", "name"], dry_run=True)
    assert (dry.files_removed, dry.version, table.files().num_rows) == (before, None, before)
    result = table.optimize(zorder_by=["x", "name", "place.at"], target_file_bytes=target(table, 16))
    assert (result.operation, result.files_removed, result.rows_copied) == ("replace", before, COUNT)
    assert (result.rows_added, result.rows_deleted, len(result.versions)) == (0, 0, 1)
    files = table.files().num_rows
    assert result.files_added == files and 10 <= files <= 24
    assert max(table.files()["rows"].to_pylist()) < 3 * COUNT / files
    check(table, points)
    for where in ("x between 100 and 200", "name between 'näme 03000' and 'näme 03050'", "place.at > 3950"):
        assert bh.open(table.uri, format=table.format).scan(where=where).to_arrow().num_rows > 40
        if traits.bounds == "fields" or (traits.bounds == "columns" and "place" not in where):
            assert read_for(table, where) <= 0.7 * files
    assert not table.history()[0].data_change


@pytest.mark.few(3)
def test_each_partition_by_itself(format_name, traits, properties, tmp_path, session, points):
    if not traits.partitions:
        pytest.skip("no partitions")
    t = made(format_name, properties, tmp_path, session, points, "city")
    files = t.files().num_rows
    kept = {p for p in t.files()["path"].to_pylist() if "Oslo" not in p}
    result = t.optimize("city = 'Oslo'", zorder_by=["x", "name"], target_file_bytes=target(t, 8))
    assert result.files_removed == files // 2 and 2 <= result.files_added <= 8
    if traits.partition_folders and "columnMapping" not in str(properties):
        assert kept <= set(t.files()["path"].to_pylist())
    whole = t.optimize(zorder_by=["x"], target_file_bytes=target(t, 8))
    assert whole.rows_copied == COUNT
    check(t, points)
    assert read_for(t, "city = 'Oslo' and x < 100") == 1
    with pytest.raises(errors.InvalidArgumentError, match="`city` is a partition column"):
        t.optimize(zorder_by=["city"])


@pytest.mark.parametrize("name", ["delta-vectors", "delta-mapped"])
def test_deleted_rows_are_purged(name, properties_of, tmp_path, session, points):
    t = made("delta", properties_of(name), tmp_path, session, points, "city")
    text = "name"
    if "delta.columnMapping.mode" in t.properties:
        t.rename_column(text, "title")
        text = "title"
    t.delete("x < 500")
    assert pc.sum(t.files()["deleted"]).as_py() == 500
    t.optimize(zorder_by=["x", text])
    assert pc.sum(t.files()["deleted"]).as_py() == 0
    names = t.schema.names
    check(t, points.rename_columns(names).filter(pc.greater_equal(points["x"], 500)))
    entry = t.history()[0]
    assert entry.operation == "OPTIMIZE" and json.loads(entry.parameters["zOrderBy"]) == ["x", names[1]]


@pytest.mark.spec("D-307")
@pytest.mark.feature("clustering", format="delta")
def test_a_clustered_table_is_optimized_by_its_columns(tmp_path, session, points):
    t = made("delta", {}, tmp_path, session, points)
    log = Path(t.uri.removeprefix("file://")) / "_delta_log"
    clustering = {"clusteringColumns": [["x"], ["place", "at"]], "domainName": "delta.clustering"}
    features = ["domainMetadata", "clustering", "appendOnly", "invariants"]
    actions = [
        {"commitInfo": {"timestamp": 1, "operation": "CLUSTER BY"}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}},
        {"domainMetadata": {"domain": "delta.clustering", "configuration": json.dumps(clustering), "removed": False}},
    ]
    (log / f"{t.version + 1:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))
    t = bh.open(t.uri, spark=session)
    with pytest.raises(errors.InvalidArgumentError, match="clustered by columns of its own"):
        t.optimize(zorder_by=["name"])
    size = target(t, 8)
    assert t.optimize(target_file_bytes=size).rows_copied == COUNT
    check(t, points)
    assert json.loads(t.history()[0].parameters["clusterBy"]) == ["x", "place.at"]
    adds = [json.loads(line) for line in (log / f"{t.version:020d}.json").read_text().splitlines()]
    assert {a["add"]["clusteringProvider"] for a in adds if "add" in a} == {"boathouse"}
    assert read_for(t, "x < 300") <= 5 and read_for(t, "place.at < 300") <= 5
    assert t.optimize(target_file_bytes=size).version is None
    t.append(points.slice(0, 1).set_column(0, "x", pa.array([COUNT + 1])))
    assert t.optimize(target_file_bytes=size).rows_copied == COUNT + 1


def test_what_is_refused(format_name, properties, tmp_path, local_only, points):
    t = made(format_name, properties, tmp_path, None, points.slice(0, 100))
    for columns, kind, said in (
        (["place"], errors.InvalidArgumentError, "`place` is struct.*has no order"),
        (["nothing"], errors.ColumnNotFoundError, "nothing"),
        (["place.none"], errors.ColumnNotFoundError, "no column `place.none`"),
        ([], errors.InvalidArgumentError, "needs a column"),
        (["x", "X"], errors.InvalidArgumentError, "names `x` twice"),
    ):
        with pytest.raises(kind, match=said):
            t.optimize(zorder_by=columns)
    with pytest.raises(errors.InvalidArgumentError, match="is not a partition column"):
        t.optimize("x > 3", zorder_by=["name"])


@pytest.mark.few(2)
def test_more_rows_than_memory_are_sorted_in_runs(
    format_name, traits, properties, tmp_path, local_only, points, monkeypatch
):
    monkeypatch.setattr(ordered, "RUN_BYTES", 20_000)
    seen, real = [], ordered._spilled
    monkeypatch.setattr(ordered, "_spilled", lambda run, path: seen.append(path) or real(run, path))
    t = made(format_name, properties, tmp_path, None, points)
    t.optimize(zorder_by=["x", "name"], target_file_bytes=target(t, 6))
    assert len(seen) > 5 and not any(Path(p).exists() for p in seen)
    check(t, points)
    files = t.files().num_rows
    assert 3 <= files <= 9
    if traits.bounds != "none":
        assert read_for(t, "x < 50") <= 0.7 * files


@pytest.mark.few(3)
def test_a_concurrent_delete_is_not_undone(format_name, properties, tmp_path, local_only, points, monkeypatch):
    """The order is planned again, as a compaction is, or fails: no deleted row returns."""
    t = made(format_name, properties, tmp_path, None, points)
    real, once = ordered.write_ordered, threading.Event()

    def slow(*arguments):
        done = real(*arguments)
        if not once.is_set():
            once.set()
            bh.open(t.uri, format=format_name).delete("x < 10")
        return done

    monkeypatch.setattr("boathouse.engines.local.write_ordered", slow)
    try:
        t.optimize(zorder_by=["x"])
    except errors.CommitConflictError:
        t = bh.open(t.uri, format=format_name)
    assert once.is_set()
    check(t, points.filter(pc.greater_equal(points["x"], 10)))


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (INT64, [None, -(2**62), -1, 0, 7, 2**62]),
        (DOUBLE, [None, float("-inf"), -1.5, 0.0, 1e300, float("inf"), float("nan")]),
        (DecimalType(38, 2), [None, Decimal("-9e30"), Decimal("0.01"), Decimal("9e30")]),
        (STRING, [None, "", "a", "aa", "b", "é", "😀"]),
        (BINARY, [None, b"", b"\x00\x01", b"a", b"a\xff", b"\xff"]),
        (BOOLEAN, [None, False, True]),
        (DATE, [None, dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 1, 1)]),
        (TIMESTAMP, [None, dt.datetime(1900, 1, 1), dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 1)]),
    ],
    ids=str,
)
def test_places_keep_the_order_of_every_type(type, values):
    array = pa.array(values, to_arrow_type(type))
    found, nulls = order.sortable(array, type)
    ranks = order.Ranks.of(found, nulls, 8)
    places = ranks.place(found, nulls).tolist()
    assert places == sorted(places) and len(set(places)) == len(values) and places[0] == 0


def test_bits_are_interleaved():
    x, y = np.array([0b101, 0b111]), np.array([0b010, 0b000])
    assert order.interleaved([x, y], 3).tolist() == [0b100110, 0b101010]

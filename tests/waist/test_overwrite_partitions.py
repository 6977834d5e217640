"""Dynamic partition overwrite: exactly the partitions that the new rows are in are replaced, in one commit."""

from __future__ import annotations

import datetime as dt
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from peers import by_peer, newest_metadata
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform

import boathouse as bh
from boathouse import errors
from boathouse.ops import run as run_op
from makers.traits import TRAITS

PARTITIONED = ["delta", "iceberg"]


def keyed(rows: list[dict]) -> list[tuple[Any, ...]]:
    """Rows in an order, with NaN, the zeros and null told apart."""
    return sorted(tuple(repr(v) for v in r.values()) for r in rows)


@pytest.mark.feature("overwrite of the partitions that the rows are in")
@pytest.mark.parametrize("format_name", ["toy", "delta", "delta-vectors", "iceberg"])
def test_only_the_partitions_of_the_rows_are_replaced(
    format_name, engine_name, session, to_data, read, properties_of, make_people, tmp_path
):
    uri, format = str(tmp_path / "t ü"), format_name.partition("-")[0]
    bh.create(uri, make_people(0, 1).schema, format, partition_by="city", properties=properties_of(format_name))
    t = bh.open(uri, format=format, spark=session)
    for start in (0, 20):
        t.append(to_data(make_people(start, start + 15)))
    t.delete("id IN (0, 21) OR id = 1")  # two of Oslo, one of São Paulo
    before = t.to_arrow().to_pylist()
    new = make_people(100, 110).filter(pa.compute.field("city") != "São Paulo")
    kept = [r for r in before if r["city"] == "São Paulo"]
    commits = len(t.history())
    done = t.overwrite(to_data(new), partitions="dynamic")
    assert len(t.history()) == commits + 1
    assert keyed(read(t.scan())) == keyed([*kept, *new.to_pylist()])
    assert (done.rows_added, done.rows_deleted) == (new.num_rows, len(before) - len(kept))
    assert done.files_removed >= 3 and keyed(by_peer(uri, format).to_pylist()) == keyed(t.to_arrow().to_pylist())
    assert t.overwrite(to_data(make_people(0, 3)), partitions="static").rows_deleted == new.num_rows + len(kept)


ANCIENT = dt.datetime(1, 1, 1, 0, 0, 0, 1)
VALUES: dict[str, tuple[str, list[Any]]] = {
    "string": ("string", ["a", "A", "a b/ü=%", "null", "__HIVE_DEFAULT_PARTITION__", "x" * 50, None]),
    "int": ("int", [0, -1, 2**31 - 1, -(2**31), None]),
    "bigint": ("bigint", [0, -(2**63), 2**63 - 1, None]),
    "double": ("double", [0.0, -0.0, float("nan"), float("inf"), float("-inf"), 0.1, None]),
    "float": ("float", [0.0, -0.0, float("nan"), 0.5, None]),
    "decimal": ("decimal(20,2)", [Decimal("0.00"), Decimal("-1.10"), Decimal("123456789012345678.99"), None]),
    "boolean": ("boolean", [True, False, None]),
    "date": ("date", [dt.date(1970, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "timestamp": ("timestamp_ntz", [dt.datetime(1970, 1, 1), ANCIENT, dt.datetime(9999, 12, 31, 23, 59, 59), None]),
    "binary": ("binary", [b"a", b"A b", b"ab", None]),
}


@pytest.mark.few(7)
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("format", PARTITIONED)
def test_partitions_of_every_type(tmp_path, format, kind):
    type, values = VALUES[kind]
    t = bh.create(str(tmp_path / "t"), f"n int, p {type}", format=format, partition_by="p")
    arrow = t.to_arrow().schema
    rows = lambda n, of: pa.table({"n": [n] * len(of), "p": of}, arrow)  # noqa: E731
    t.append(rows(0, values))
    wanted = dict.fromkeys(range(len(values)), 0)
    for n, i in enumerate((*range(len(values)), 0), 1):
        done = t.overwrite(rows(n, [values[i]]), partitions="dynamic")
        assert (done.files_removed, done.rows_deleted) == (1, 1), values[i]
        wanted[i] = n
        assert keyed(t.to_arrow().to_pylist()) == keyed([{"n": v, "p": values[k]} for k, v in wanted.items()])
    if kind != "timestamp":  # deltalake reads no timestamps of the year 1
        assert sorted(by_peer(t.uri, format).column("n").to_pylist()) == sorted(wanted.values())


def test_the_empty_string_is_the_null_partition_of_delta(tmp_path):
    t = bh.create(str(tmp_path / "t"), "n bigint, p string", partition_by="p")
    t.append(pa.table({"n": [1, 2, 3], "p": ["", None, "a"]}))
    assert t.overwrite(pa.table({"n": [4], "p": [""]}), partitions="dynamic").rows_deleted == 2
    assert keyed(t.to_arrow().to_pylist()) == keyed([{"n": 3, "p": "a"}, {"n": 4, "p": None}])
    assert by_peer(t.uri, "delta").num_rows == 2


TRANSFORMS = {
    "bucket": ("bucket(4, v)", pa.int64(), [1, 2, 3, 4, 5, 6, 7, -8, None]),
    "truncate": ("truncate(10, v)", pa.int64(), [-11, -10, -1, 0, 9, 10, 19, None]),
    "truncate text": ("truncate(1, v)", pa.string(), ["a", "ab", "b", "", None]),
    "years": ("years(v)", pa.date32(), [-366, -365, -1, 0, 364, 365, 20000, None]),
    "months": ("months(v)", pa.date32(), [-32, -31, -1, 0, 30, 31, 20000, None]),
    "days": ("days(v)", pa.timestamp("us"), [-86_400_000_001, -86_400_000_000, -1, 0, 86_399_999_999, 10**15, None]),
    "days of dates": ("days(v)", pa.date32(), [-1, 0, 1, None]),
    "hours": ("hours(v)", pa.timestamp("us", "UTC"), [-3_600_000_001, -1, 0, 3_599_999_999, 3_600_000_000, None]),
}  # fmt: skip


@pytest.mark.few(4)
@pytest.mark.parametrize("kind", TRANSFORMS)
def test_partitions_of_every_transform(tmp_path, kind):
    by, type, values = TRANSFORMS[kind]
    plain = pa.int32() if pa.types.is_date32(type) else pa.int64() if pa.types.is_timestamp(type) else type
    column = pa.array(values, plain).view(type)
    t = bh.create(str(tmp_path / "t"), pa.schema({"n": pa.int32(), "v": type}), "iceberg", partition_by=by)
    t.append(pa.table({"n": pa.array(range(len(values)), pa.int32()), "v": column}))
    of = {r["n"]: r["_partition"] for r in t.scan(["n", "_partition"]).to_arrow().to_pylist()}
    for i in range(len(values)):
        row = pa.table({"n": pa.array([i], pa.int32()), "v": column.slice(i, 1)})
        done = bh.open(t.uri).overwrite(row, partitions="dynamic", dry_run=True)
        assert done.dry_run
        whole = bh.open(t.uri)
        there = {r["n"] for r in whole.to_arrow().to_pylist()}
        gone = {n for n in there if of[n] == of[i]}
        assert whole.overwrite(row, partitions="dynamic").rows_deleted == len(gone)
        assert {r["n"] for r in whole.to_arrow().to_pylist()} == there - gone | {i}
    assert sorted(by_peer(t.uri, "iceberg").column("n").to_pylist()) == sorted(there - gone | {i})


def test_a_unit_of_another_spec_stays(tmp_path):
    """As Iceberg's ReplacePartitions has it: partitions are those of the spec with which the rows are written."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    theirs = catalog.create_table("db.t", schema=pa.schema({"n": pa.int32(), "p": pa.string(), "q": pa.string()}))
    rows = lambda *ns: pa.table({"n": pa.array(ns, pa.int32()), "p": ["a"] * len(ns), "q": ["x"] * len(ns)})  # noqa: E731
    theirs.append(rows(1))
    with theirs.update_spec() as update:
        update.add_field("p", IdentityTransform(), "p")
    theirs.append(rows(2))
    with theirs.update_spec() as update:
        update.add_field("q", IdentityTransform(), "q")
    theirs.append(rows(3))
    ours = bh.open("c.db.t", catalog_options={"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db"})
    assert ours.overwrite(rows(4), partitions="dynamic").rows_deleted == 1
    assert sorted(ours.to_arrow().column("n").to_pylist()) == [1, 2, 4]
    assert sorted(catalog.load_table("db.t").scan().to_arrow().column("n").to_pylist()) == [1, 2, 4]


@pytest.mark.parametrize("format", PARTITIONED)
def test_without_rows_nothing_is_replaced(tmp_path, format, make_people):
    t = bh.create(str(tmp_path / "t"), make_people(0, 1).schema, format=format, partition_by="city")
    t.append(make_people(0, 9))
    version = t.version
    assert t.overwrite(make_people(0, 0), partitions="dynamic").version is None and t.version == version
    assert t.overwrite(make_people(0, 0), partitions="dynamic", txn=("job", 1)).version is not None
    assert t.overwrite(make_people(0, 9), partitions="dynamic", txn=("job", 1)).skipped
    assert t.count() == 9 == by_peer(t.uri, format).num_rows


@pytest.mark.parametrize("format", PARTITIONED)
def test_a_table_without_partitions_is_replaced(tmp_path, format, make_people):
    bh.write(make_people(0, 9), str(tmp_path / "t"), format)
    bh.write(make_people(20, 22), str(tmp_path / "t"), mode="overwrite", partitions="dynamic")
    assert by_peer(str(tmp_path / "t"), format).column("id").to_pylist() == [20, 21]


def test_lance_has_no_partitions(tmp_path, make_people):
    uri = str(tmp_path / "t")
    with pytest.raises(errors.UnsupportedFeatureError, match="lance tables have no partitions"):
        bh.write(make_people(0, 9), uri, "lance", mode="overwrite", partitions="dynamic")
    bh.write(make_people(0, 9), uri, "lance")
    with pytest.raises(errors.UnsupportedFeatureError, match="lance tables have no partitions"):
        bh.open(uri).overwrite(make_people(0, 1), partitions="dynamic")
    assert bh.open(uri).count() == 9


def test_what_excludes_it(tmp_path, make_people):
    uri, rows = str(tmp_path / "t"), make_people(0, 3)
    t = bh.create(uri, rows.schema, partition_by="city")
    with pytest.raises(errors.InvalidArgumentError, match="both say which rows"):
        t.overwrite(rows, where="city = 'Oslo'", partitions="dynamic")
    with pytest.raises(errors.SchemaError, match="replaces the whole table"):
        t.overwrite(rows, overwrite_schema=True, partitions="dynamic")
    with pytest.raises(errors.InvalidArgumentError, match="partitions='some'"):
        t.overwrite(rows, partitions="some")
    with pytest.raises(errors.InvalidArgumentError, match="needs mode='overwrite'"):
        bh.write(rows, uri, mode="append", partitions="dynamic")
    assert t.version == 0


@pytest.mark.parametrize("format", PARTITIONED)
def test_new_columns_and_a_wider_partition_column(tmp_path, format):
    traits = TRAITS[format]
    t = bh.create(str(tmp_path / "t"), "p int, n int", format=format, partition_by="p", properties=traits.widening)
    t.append(pa.table({"p": pa.array([1, 2], pa.int32()), "n": pa.array([1, 2], pa.int32())}))
    wide, type = (2**40, pa.int64()) if traits.widens_partitions else (7, pa.int32())
    more = pa.table({"p": pa.array([1, wide], type), "n": pa.array([3, 4], pa.int32()), "s": ["x", "y"]})
    assert t.overwrite(more, merge_schema=True, partitions="dynamic").rows_deleted == 1
    rows = [{"p": 2, "n": 2, "s": None}, {"p": 1, "n": 3, "s": "x"}, {"p": wide, "n": 4, "s": "y"}]
    assert keyed(t.to_arrow().to_pylist()) == keyed(rows)
    if not traits.widens_partitions:  # deltalake knows no type widening
        assert keyed(by_peer(t.uri, format).select(["p", "n", "s"]).to_pylist()) == keyed(rows)


def test_what_the_commit_says(tmp_path, make_people):
    for format in PARTITIONED:
        t = bh.create(str(tmp_path / format), make_people(0, 1).schema, format=format, partition_by="city")
        t.append(make_people(0, 6))
        t.overwrite(make_people(0, 1), partitions="dynamic")
    log = (tmp_path / "delta" / "_delta_log" / f"{2:020}.json").read_text().splitlines()
    info = next(a["commitInfo"] for a in map(json.loads, log) if "commitInfo" in a)
    assert info["operationParameters"]["isDynamicPartitionOverwrite"] == "true"
    assert info["operationParameters"]["mode"] == "Overwrite"
    snapshots = json.loads(Path(newest_metadata(str(tmp_path / "iceberg"))).read_text())["snapshots"]
    assert snapshots[-1]["summary"]["replace-partitions"] == "true"
    assert snapshots[-1]["summary"]["operation"] == "overwrite" and "replace-partitions" not in snapshots[0]["summary"]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_the_change_feed_of_delta_has_the_replaced_rows(tmp_path, make_people, vectors):
    properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": vectors}
    t = bh.create(str(tmp_path / "t"), make_people(0, 1).schema, partition_by="city", properties=properties)
    t.append(make_people(0, 9))
    t.delete("id = 0")
    version = t.overwrite(make_people(30, 31), partitions="dynamic").version
    assert not any(name.startswith("cdc-") for name in os.listdir(tmp_path / "t")) and version == 3
    ours = t.changes(version).to_arrow().to_pylist()
    wanted = [("delete", 3), ("delete", 6), ("insert", 30)]
    assert sorted((r["_change_type"], r["id"]) for r in ours) == wanted
    theirs = pa.table(deltalake.DeltaTable(t.uri.removeprefix("file://")).load_cdf(version).read_all()).to_pylist()
    if vectors == "false":  # deltalake's feed passes over deletion vectors
        assert sorted((r["_change_type"], r["id"]) for r in theirs) == wanted


def meanwhile(monkeypatch, act) -> list[int]:
    """`act` happens right before the next commit; the list counts how often a write is planned."""
    commit, plan, plans, acted = run_op.commit, run_op._plan, [], []

    def first(*arguments):
        if not acted:
            acted.append(1)
            act()
            plans.clear()
            plans.append(1)
        return commit(*arguments)

    def counted(*arguments):
        plans.append(1)
        return plan(*arguments)

    monkeypatch.setattr(run_op, "commit", first)
    monkeypatch.setattr(run_op, "_plan", counted)
    return plans


@pytest.mark.parametrize("format", PARTITIONED)
@pytest.mark.parametrize(
    ("isolation", "theirs", "plans", "left"),
    [
        ("serializable", "Oslo", 2, {"new"}),  # their rows come first, and are replaced
        ("serializable", "Rome", 1, {"new", "old", "theirs"}),
        ("snapshot", "Oslo", 1, {"new", "theirs"}),
    ],
)
def test_a_concurrent_append_to_a_replaced_partition(tmp_path, monkeypatch, format, isolation, theirs, plans, left):
    t = bh.create(str(tmp_path / "t"), "city string, who string", format=format, partition_by="city")
    row = lambda city, who: pa.table({"city": [city], "who": [who]})  # noqa: E731
    t.append(row(theirs if theirs != "Oslo" else "Oslo", "old"))
    other = bh.open(t.uri)
    counted = meanwhile(monkeypatch, lambda: other.append(row(theirs, "theirs")))
    done = t.overwrite(row("Oslo", "new"), partitions="dynamic", isolation=isolation)
    assert len(counted) == plans and done.retries == 1
    assert set(t.to_arrow().column("who").to_pylist()) == left == set(by_peer(t.uri, format).column("who").to_pylist())


@pytest.mark.parametrize("theirs", [0, 1])
def test_a_concurrent_append_to_another_day(tmp_path, monkeypatch, theirs):
    t = bh.create(str(tmp_path / "t"), "at timestamp_ntz, who string", "iceberg", partition_by="days(at)")
    row = lambda day, who: pa.table({"at": [dt.datetime(2026, 1, 1 + day, 7)], "who": [who]})  # noqa: E731
    other = bh.open(t.uri)
    counted = meanwhile(monkeypatch, lambda: other.append(row(theirs, "theirs")))
    t.overwrite(row(0, "new"), partitions="dynamic")
    assert len(counted) == (1 if theirs else 2)
    assert set(t.to_arrow().column("who").to_pylist()) == ({"new", "theirs"} if theirs else {"new"})


@pytest.mark.parametrize("format", PARTITIONED)
def test_a_concurrent_delete_in_a_replaced_partition(tmp_path, monkeypatch, format, make_people):
    t = bh.create(str(tmp_path / "t"), make_people(0, 1).schema, format=format, partition_by="city")
    t.append(make_people(0, 9))
    other = bh.open(t.uri)
    counted = meanwhile(monkeypatch, lambda: other.delete("id = 3"))
    done = t.overwrite(make_people(30, 31), partitions="dynamic")
    assert len(counted) == 2 and done.rows_deleted == 2
    assert sorted(by_peer(t.uri, format).column("id").to_pylist()) == [1, 2, 4, 5, 7, 8, 30]

"""Every operation on the files that each operation of other libraries leaves: in the Arrow schemas of some, strings are
views."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
duckdb = pytest.importorskip("duckdb")
polars = pytest.importorskip("polars")

from pyiceberg.catalog.sql import SqlCatalog  # noqa: E402
from pyiceberg.table import StaticTable  # noqa: E402

S = pa.string_view()
SCHEMA = pa.schema(
    [
        ("id", pa.int64()), ("name", pa.string()), ("raw", pa.binary()), ("tags", pa.list_(pa.string())),
        ("s", pa.struct([("x", pa.string()), ("y", pa.list_(pa.struct([("z", pa.string())])))])), ("day", pa.date32()),
    ]
)  # fmt: skip
VIEWS = pa.schema(
    [
        ("id", pa.int64()), ("name", S), ("raw", pa.binary_view()), ("tags", pa.list_view(S)),
        ("s", pa.struct([("x", S), ("y", pa.large_list_view(pa.struct([("z", S)])))])), ("day", pa.date32()),
    ]
)  # fmt: skip


TEXT_VIEWS = pa.schema(
    [
        ("id", pa.int64()), ("name", S), ("raw", pa.binary_view()), ("tags", pa.list_(S)),
        ("s", pa.struct([("x", S), ("y", pa.list_(pa.struct([("z", S)])))])), ("day", pa.date32()),
    ]
)  # fmt: skip
"""pyiceberg knows no views of lists."""


def row(i):
    name = None if i % 4 == 3 else f"a name of some length {i}"
    below = [{"z": f"z{i}"}] * (i % 3)  # not null: pyiceberg writes a null list in a struct as an empty one
    return {"id": i, "name": name, "raw": f"r{i}".encode(), "tags": [f"t{i}", None] * (i % 3),
            "s": {"x": name, "y": below}, "day": dt.date(2020, 1, 1 + i % 3)}  # fmt: skip


def rows(start, stop, schema=SCHEMA):
    return pa.Table.from_pylist([row(i) for i in range(start, stop)], schema)


def _merged(uri):
    deltalake.write_deltalake(uri, rows(0, 8))
    merge = deltalake.DeltaTable(uri).merge(rows(6, 12), "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _two_files(uri):
    deltalake.write_deltalake(uri, rows(0, 6))
    deltalake.write_deltalake(uri, rows(6, 12), mode="append")
    return deltalake.DeltaTable(uri)


def _partitioned(uri):
    deltalake.write_deltalake(uri, rows(0, 12), partition_by=["day"])
    deltalake.DeltaTable(uri).update(updates={"name": "name"}, predicate="id > 3")


def _overwritten(uri):
    deltalake.write_deltalake(uri, rows(0, 4))
    deltalake.write_deltalake(uri, rows(0, 12), mode="overwrite", predicate="id < 100")


def _polars_merged(uri):
    polars.from_arrow(rows(0, 8)).write_delta(uri)
    options = {"predicate": "t.id = s.id", "source_alias": "s", "target_alias": "t"}
    merge = polars.from_arrow(rows(6, 12)).write_delta(uri, mode="merge", delta_merge_options=options)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _folder(write):
    """A Delta table of a folder of Parquet files."""

    def made(uri):
        Path(uri).mkdir()
        write(f"{uri}/a.parquet", rows(0, 6), rows(0, 6, VIEWS))
        write(f"{uri}/b.parquet", rows(6, 12), rows(6, 12, VIEWS))
        bh.convert(uri)

    return made


def _by_duckdb(path, table, views):
    duckdb.from_arrow(table).write_parquet(path)


def _by_pyarrow(path, views):
    """Arrow cannot write slices of views in structs."""
    with pq.ParquetWriter(path, views.schema) as out:
        for row in views.to_pylist():
            out.write_table(pa.Table.from_pylist([row], views.schema))


DELTA = {
    "deltalake write": lambda uri: deltalake.write_deltalake(uri, rows(0, 12)),
    "deltalake write views": lambda uri: deltalake.write_deltalake(uri, rows(0, 12, VIEWS)),
    "deltalake overwrite": _overwritten,
    "deltalake merge": _merged,
    "deltalake update": lambda uri: _two_files(uri).update(updates={"raw": "raw"}, predicate="id > 3"),
    "deltalake update of partitions": _partitioned,
    "deltalake delete": lambda uri: (deltalake.write_deltalake(uri, rows(0, 15)), _table(uri).delete("id > 11")),
    "deltalake optimize": lambda uri: _two_files(uri).optimize.compact(),
    "deltalake zorder": lambda uri: _two_files(uri).optimize.z_order(["id"]),
    "polars write": lambda uri: polars.from_arrow(rows(0, 12)).write_delta(uri),
    "polars merge": _polars_merged,
    "polars files": _folder(lambda path, table, views: polars.from_arrow(table).write_parquet(path)),
    "polars streamed files": _folder(lambda path, table, views: polars.from_arrow(table).lazy().sink_parquet(path)),
    "duckdb files": _folder(_by_duckdb),
    "pyarrow files": _folder(lambda path, table, views: _by_pyarrow(path, views)),
}


def _table(uri):
    return deltalake.DeltaTable(uri)


def _iceberg(tmp_path, write):
    """The catalog of a table `d.t`."""
    options = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    catalog = SqlCatalog("c", **options)
    catalog.create_namespace("d")
    write(catalog.create_table("d.t", SCHEMA))
    return bh.catalog("c", type="sql", **options)


def _upserted(table):
    table.append(rows(0, 8))
    table.upsert(rows(6, 12), join_cols=["id"])


def _deleted(table):
    table.append(rows(0, 15))
    table.delete("id > 11")


def _replaced(table):
    table.append(rows(0, 4))
    table.overwrite(rows(0, 12))


def _added(table):
    """Files without field ids."""
    path = f"{table.location().removeprefix('file://')}/data"
    Path(path).mkdir(parents=True)
    _by_pyarrow(f"{path}/pyarrow.parquet", rows(0, 6, TEXT_VIEWS))
    polars.from_arrow(rows(6, 9)).write_parquet(f"{path}/polars.parquet")
    _by_duckdb(f"{path}/duckdb.parquet", rows(9, 12), None)
    table.add_files([f"{path}/{name}.parquet" for name in ("pyarrow", "polars", "duckdb")])


ICEBERG = {
    "pyiceberg append": lambda table: table.append(rows(0, 12)),
    "pyiceberg overwrite": _replaced,
    "pyiceberg delete": _deleted,
    "pyiceberg upsert": _upserted,
    "pyiceberg add_files": _added,
    "polars write": lambda table: polars.from_arrow(rows(0, 12)).write_iceberg(table, mode="append"),
}


WRITERS = {**{f"delta, {name}": make for name, make in DELTA.items()},
           **{f"iceberg, {name}": make for name, make in ICEBERG.items()}}  # fmt: skip
IN_CATALOGS = {f"iceberg, {name}" for name in ICEBERG}


@pytest.fixture
def opened(tmp_path):
    """A function that opens the table that a writer has made; twelve rows."""

    def make(writer):
        uri = str(tmp_path / "t")
        if writer in IN_CATALOGS:
            catalog = _iceberg(tmp_path, WRITERS[writer])
            return lambda: catalog.open("d.t")
        WRITERS[writer](uri)
        return lambda: bh.open(uri)

    return make


class Expected:
    """What the table should hold: Python rows by their id."""

    def __init__(self):
        self.rows = {i: row(i) for i in range(12)}

    def drop(self, where):
        self.rows = {i: r for i, r in self.rows.items() if not where(r)}

    def set(self, column, value, where):
        for r in filter(where, self.rows.values()):
            r[column] = value(r)

    def put(self, start, stop):
        self.rows |= {i: row(i) for i in range(start, stop)}


def marked(r):
    return r["name"] is not None and "1" in r["name"]


def operations(table, data, expected):
    """Each operation of ours, one after another; yields after each."""
    table().delete("s.x = 'a name of some length 5'")
    expected.drop(lambda r: r["s"]["x"] == "a name of some length 5")
    yield "delete"
    table().delete("size(tags) = 2 AND day > DATE '2020-01-02'")
    expected.drop(lambda r: len(r["tags"]) == 2 and r["day"].day > 2)
    yield "delete by a list"
    table().update({"name": "concat(name, '!')"}, where="name LIKE '%1%'")
    expected.set("name", lambda r: r["name"] + "!", marked)
    yield "update"
    table().upsert(data(10, 14), on="id")
    expected.put(10, 14)
    yield "upsert"
    merge = table().merge(data(8, 16), "target.raw = source.raw").when_matched_delete("target.id = 9")
    merge.when_matched_update({"tags": "source.tags"}).when_not_matched_insert_all().execute()
    expected.drop(lambda r: r["id"] == 9)
    for i in range(8, 16):
        if i != 9:
            expected.rows.setdefault(i, row(i))
    yield "merge"
    table().append(data(20, 22))
    expected.put(20, 22)
    yield "append"
    table().optimize()
    yield "optimize"
    table().optimize(zorder_by=["name", "id"])
    yield "zorder"
    table().overwrite(data(14, 16), where="id >= 14")
    expected.drop(lambda r: r["id"] >= 14)
    expected.put(14, 16)
    yield "overwrite where"
    table().add_column("more", "string")
    table().update({"more": "name"}, where="id = 2")
    expected.set("more", lambda r: r["name"] if r["id"] == 2 else None, lambda r: True)
    yield "add column"


def in_order(table):
    return sorted(table.to_pylist(), key=lambda r: r["id"])


WITH_VIEWS = ("delta, deltalake merge", "delta, pyarrow files", "iceberg, pyiceberg add_files")


@pytest.mark.parametrize("writer", [w if w in WITH_VIEWS else pytest.param(w, marks=pytest.mark.slow) for w in WRITERS])
def test_every_operation(opened, writer):
    table, expected = opened(writer), Expected()
    assert in_order(table().to_arrow()) == [*expected.rows.values()]
    first = table().version
    for step in operations(table, lambda start, stop: rows(start, stop, VIEWS), expected):
        found = table()
        want = sorted(expected.rows.values(), key=lambda r: r["id"])
        assert in_order(found.to_arrow()) == want, step
        named = in_order(found.scan(where="s.x LIKE '%1%' AND size(tags) > 0", columns=["id", "name"]).to_arrow())
        hits = [r for r in want if r["s"]["x"] and "1" in r["s"]["x"] and r["tags"]]
        assert named == [{"id": r["id"], "name": r["name"]} for r in hits], step
    changes = table().changes(first).to_arrow().group_by("_change_type").aggregate([([], "count_all")])
    assert {"insert", "delete"} <= {*changes.column("_change_type").to_pylist()}
    theirs = _read_by_others(table(), writer)
    assert in_order(theirs.select(table().schema.names)) == in_order(table().to_arrow())


def _read_by_others(table, writer):
    if writer in IN_CATALOGS:
        return StaticTable.from_metadata(table.inspect.metadata_log_entries()["file"][-1].as_py()).scan().to_arrow()
    return pa.table(deltalake.DeltaTable(table.uri).to_pyarrow_table())


@pytest.mark.spark
@pytest.mark.parametrize(
    "writer", [pytest.param(w, marks=[pytest.mark.slow] * (w != WITH_VIEWS[0])) for w in WITH_VIEWS]
)
def test_on_spark(opened, spark, writer):
    """Where Spark's own reader reads the files, and where tasks do."""
    table, expected = opened(writer), Expected()

    def data(start, stop):
        return spark.createDataFrame(rows(start, stop))

    for step in operations(table, data, expected):
        if step in ("update", "merge", "add column"):
            want = sorted(expected.rows.values(), key=lambda r: r["id"])
            assert in_order(table().to_spark(spark).toArrow()) == want, step
            hits = table().scan(where="s.x LIKE '%1%'", columns=["id"]).to_spark(spark).toArrow()
            assert [r["id"] for r in in_order(hits)] == [r["id"] for r in want if r["s"]["x"] and "1" in r["s"]["x"]]
        if step == "merge":
            break

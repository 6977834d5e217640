"""Lance tables by pylance and by us, each read, changed and raced by the other."""

from __future__ import annotations

import datetime as dt
import re
from contextlib import contextmanager
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import CommitConflictError
from boathouse.ops import run

lance = pytest.importorskip("lance")
VERSIONS = ["2.0", "2.1", "2.2"]


@pytest.fixture
def uri(tmp_path) -> str:
    return str(tmp_path / "tablé one")


def shapes(rows: int = 400, *, nested_nulls: bool = True) -> pa.Table:
    """Columns of many types, with nulls, unicode and awkward values."""
    r = range(rows)
    maybe = [None if i % 7 == 0 else i for i in r]
    structs = [{"x": i, "y": None if i % 5 == 0 else f"y{i}"} for i in r]
    if nested_nulls:
        structs = [None if i % 11 == 0 else s for i, s in enumerate(structs)]
    return pa.table(
        {
            "id": pa.array(r, pa.int64()),
            "i8": pa.array([None if i % 3 == 0 else i % 100 for i in r], pa.int8()),
            "u64": pa.array([2**63 + i for i in r], pa.uint64()),
            "f": pa.array([i / 3 if i % 4 else float("nan") for i in r], pa.float64()),
            "h": pa.array([np.float16(i % 50) for i in r], pa.float16()),
            "b": pa.array([i % 2 == 0 if i % 9 else None for i in r], pa.bool_()),
            "s": pa.array([None if i % 6 == 0 else f"größe {i} 🚣" * (i % 4) for i in r]),
            "low": pa.array([["a", "b", None][i % 3] for i in r]),
            "bin": pa.array([bytes([i % 256]) * (i % 5) for i in r], pa.binary()),
            "d": pa.array([dt.date(1969, 12, 1) + dt.timedelta(days=i) for i in r]),
            "ts": pa.array([None if v is None else dt.datetime(2020, 1, 1) + dt.timedelta(hours=v) for v in maybe]),
            "tz": pa.array([v if v is None else v * 10**6 for v in maybe], pa.timestamp("us", "UTC")),
            "t": pa.array([i * 1000 for i in r], pa.time64("us")),
            "dur": pa.array(maybe, pa.duration("us")),
            "dec": pa.array([None if v is None else Decimal(v) / 4 for v in maybe], pa.decimal128(12, 2)),
            "fsb": pa.array([bytes([i % 256, 1, 2]) for i in r], pa.binary(3)),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(rows * 4, dtype=np.float32)), 4),
            "l": pa.array([None if i % 8 == 0 else list(range(i % 4)) for i in r], pa.list_(pa.int32())),
            "ls": pa.array([[f"e{j}" if j % 2 else None for j in range(i % 3)] for i in r]),
            "sl": pa.array(
                [None if i % 9 == 0 else [{"a": [i], "b": None}, {"a": None, "b": "x"}][: i % 3] for i in r],
                pa.list_(pa.struct([("a", pa.list_(pa.int64())), ("b", pa.string())])),
            ),
            "st": pa.array(structs, pa.struct([("x", pa.int64()), ("y", pa.string())])),
        }
    )


def same(ours: pa.Table, theirs: pa.Table) -> None:
    """The same rows in the same order; NaN equals NaN."""
    assert ours.column_names == theirs.column_names and ours.num_rows == theirs.num_rows
    for name in ours.column_names:
        a, b = ours.column(name), theirs.column(name).cast(ours.schema.field(name).type)
        assert repr(a.to_pylist()) == repr(b.to_pylist()), name


def agree(uri: str) -> pa.Table:
    """We and pylance read the same; the rows."""
    ours = bh.open(uri).to_arrow()
    same(ours, lance.dataset(uri).to_table())
    return ours


@contextmanager
def overtaken_by(action):
    """`action` commits between the planning of our next write and its commit."""
    waiting, commit = [action], run.commit

    def late(target, change, fresh=False):
        if waiting:
            waiting.pop()()
            fresh = False
        return commit(target, change, fresh)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "commit", late)
        yield
    assert not waiting


@pytest.mark.few(1)
@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_writes_we_read(uri, version):
    data = shapes(nested_nulls=version != "2.0")
    lance.write_dataset(data, uri, data_storage_version=version, max_rows_per_file=150)
    assert bh.detect(uri) == ("lance",)
    same(agree(uri), data)
    lance.write_dataset(data.slice(0, 50), uri, mode="append")
    lance.dataset(uri).delete("id % 10 = 3")
    lance.dataset(uri).update({"s": "'changed'"}, where="id % 10 = 4")
    assert agree(uri).num_rows == 450 - 45
    lance.dataset(uri).add_columns({"twice": "id * 2"})
    lance.dataset(uri).drop_columns(["fsb"])
    lance.dataset(uri).alter_columns({"path": "low", "name": "renamed"})
    assert {"twice", "renamed"} <= set(agree(uri).column_names)
    lance.dataset(uri).optimize.compact_files()
    assert agree(uri).num_rows == 405
    lance.dataset(uri).alter_columns({"path": "i8", "data_type": pa.int32()})
    agree(uri)
    lance.dataset(uri).tags.create("v1", 1)
    same(bh.open(uri, ref="v1").to_arrow(), data)
    for older in range(1, 9):
        same(bh.open(uri, version=older).to_arrow(), lance.dataset(uri, version=older).to_table())


@pytest.mark.few(8)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "where",
    ["id < 5", "id % 100 = 7", "s IS NULL", "st.x = 17", "f > 100 AND low = 'a'", "b", "id >= 0", "id < 0"],
)
def test_filters_and_columns(uri, version, where):
    lance.write_dataset(shapes(nested_nulls=version != "2.0"), uri, data_storage_version=version, max_rows_per_file=150)
    lance.dataset(uri).delete("id % 10 = 7 AND id > 200")
    ours = bh.open(uri).scan(["s", "id", "l"], where).to_arrow()
    theirs = lance.dataset(uri).to_table(
        columns=["s", "id", "l"], filter=re.sub(r"f > ", "NOT isnan(f) AND f > ", where)
    )
    if where.startswith("f >"):  # for Spark, and so for us, NaN is the greatest
        assert set(theirs.column("id").to_pylist()) <= set(ours.column("id").to_pylist())
    else:
        same(ours, theirs)
    assert bh.open(uri).scan([], where).count() == ours.num_rows


@pytest.mark.spec("L-026")
def test_a_column_that_a_fragment_lacks_is_null(uri):
    lance.write_dataset(pa.table({"a": [1, 2], "b": ["x", "y"]}), uri)
    lance.dataset(uri).add_columns(pa.schema([pa.field("n", pa.struct([("p", pa.int32())]))]))
    lance.write_dataset(
        pa.table({"a": [3], "b": ["z"], "n": [{"p": 5}]}, schema=lance.dataset(uri).schema), uri, mode="append"
    )
    assert agree(uri).column("n").to_pylist() == [None, None, {"p": 5}]
    assert bh.open(uri).scan(["n"], "a = 2").to_arrow().to_pylist() == [{"n": None}]
    assert bh.open(uri).scan(["a"], "n.p = 5").to_arrow().to_pylist() == [{"a": 3}]


def test_rewritten_columns_of_the_same_fragment(uri):
    """Merged and replaced columns lie in files of their own; obsolete ones are tombstones."""
    lance.write_dataset(pa.table({"a": list(range(9)), "b": [f"b{i}" for i in range(9)]}), uri, max_rows_per_file=4)
    lance.dataset(uri).merge(pa.table({"a": list(range(9)), "c": [i * 1.5 for i in range(9)]}), "a")
    lance.dataset(uri).delete("a = 5")
    assert agree(uri).column_names == ["a", "b", "c"]
    same(bh.open(uri).scan(["c", "b"], "c > 3").to_arrow(), lance.dataset(uri).to_table(["c", "b"], filter="c > 3"))
    lance.dataset(uri).drop_columns(["b"])
    lance.dataset(uri).add_columns({"b": "a * 100"})
    assert agree(uri).column("b").to_pylist()[:2] == [0, 100]


@pytest.mark.spec("L-111")
def test_we_write_pylance_reads_and_changes(uri):
    data = shapes()
    bh.write(data, uri, format="lance")
    same(lance.dataset(uri).to_table(), data)
    table = bh.open(uri)
    table.append(data.slice(0, 20))
    dataset = lance.dataset(uri)
    dataset.validate()
    assert dataset.count_rows() == 420 and dataset.count_rows(filter="id < 10") == 20
    same(dataset.take([3, 400, 77]), pa.concat_tables([data.slice(3, 1), data.slice(0, 1), data.slice(77, 1)]))
    same(dataset.to_table(filter="id = 5"), pa.concat_tables([data.slice(5, 1)] * 2))
    lance.write_dataset(data.slice(0, 30), uri, mode="append")
    dataset = lance.dataset(uri)
    dataset.delete("id = 1")
    assert agree(uri).num_rows == 447
    dataset = lance.dataset(uri)
    dataset.optimize.compact_files()
    assert len(lance.dataset(uri).get_fragments()) == 1
    assert agree(uri).num_rows == 447
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    assert lance.dataset(uri).to_table(filter="id = 2").num_rows == 3
    table.refresh().append(data.slice(0, 5))
    table.delete("id = 2 OR id = 300")
    assert lance.dataset(uri).to_table(filter="id = 2").num_rows == 0
    assert lance.dataset(uri).to_table(filter="id = 3").num_rows == 4
    assert lance.dataset(uri).describe_indices()
    assert agree(uri).num_rows == 447 + 5 - 5
    lance.dataset(uri).optimize.optimize_indices()
    lance.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        data.slice(398, 2)
    )
    agree(uri)


@pytest.mark.spec("L-104")
def test_nulls_at_every_depth(uri):
    """Null structs in lists, with lists below them; null and empty lists."""
    inner = pa.struct([("a", pa.list_(pa.int64())), ("b", pa.int32())])
    rows = [[None, []], [[None, {"a": [1, None], "b": None}, {"a": None, "b": 1}, {"a": [], "b": 2}]], None, [], [None]]
    data = pa.table({"f": pa.array(rows, pa.list_(pa.list_(inner)))})
    bh.write(data, uri, format="lance")
    assert lance.dataset(uri).to_table() == data
    lance.write_dataset(data, uri, mode="append")
    assert agree(uri).num_rows == 10


@pytest.mark.spec("L-003")
def test_indices_are_carried_and_dropped_by_an_overwrite(uri):
    data = pa.table({"id": list(range(100)), "s": [f"s{i % 5}" for i in range(100)]})
    lance.write_dataset(data, uri)
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    lance.dataset(uri).create_scalar_index("s", "BITMAP")
    table = bh.open(uri)
    table.append(data)
    table.delete("id < 10")
    table.set_properties({"x": "1"})
    assert len(lance.dataset(uri).describe_indices()) == 2
    assert lance.dataset(uri).to_table(filter="s = 's1'").num_rows == 36
    assert lance.dataset(uri).to_table(filter="id = 12").num_rows == 2
    table.overwrite(data)
    assert lance.dataset(uri).describe_indices() == []
    assert lance.dataset(uri).to_table(filter="id = 12").num_rows == 1


def test_overwrites_by_each_other(uri):
    bh.write(shapes(50), uri, format="lance")
    lance.write_dataset(pa.table({"x": [1, 2]}), uri, mode="overwrite")
    assert agree(uri).to_pylist() == [{"x": 1}, {"x": 2}]
    table = bh.open(uri)
    table.overwrite(pa.table({"y": ["q"], "z": [{"a": 1}]}), overwrite_schema=True)
    assert agree(uri).to_pylist() == [{"y": "q", "z": {"a": 1}}]
    assert lance.dataset(uri, version=1).count_rows() == 50
    table.overwrite(pa.table({"y": ["r", "s"], "z": [{"a": 1}, None]}))
    lance.dataset(uri).delete("y = 'r'")
    table.refresh().overwrite(pa.table({"y": ["s"], "z": [{"a": 7}]}), where="y = 's'")
    assert agree(uri).to_pylist() == [{"y": "s", "z": {"a": 7}}]
    lance.dataset(uri, version=1).restore()
    assert agree(uri).num_rows == 50


@pytest.mark.spec("L-071", "L-069")
def test_pylance_deletes_follow_ours_and_ours_follow_theirs(uri):
    bh.write(pa.table({"a": list(range(100))}), uri, format="lance")
    table = bh.open(uri)
    table.append(pa.table({"a": list(range(100, 200))}))
    stale = lance.dataset(uri)
    table.delete("a = 5 OR a = 105")
    stale.delete("a = 6 OR a = 105")  # the same fragments, one row of them the same
    assert set(range(200)) - set(agree(uri).column("a").to_pylist()) == {5, 6, 105}
    with overtaken_by(lambda: lance.dataset(uri).delete("a = 7 OR a = 107")):
        assert table.delete("a = 8 OR a = 107").retries == 0
    assert set(range(200)) - set(agree(uri).column("a").to_pylist()) == {5, 6, 7, 8, 105, 107}
    with overtaken_by(lambda: lance.dataset(uri).delete("a >= 100")):  # the whole fragment goes
        table.delete("a = 150 OR a = 9")
    assert agree(uri).num_rows == 95
    with overtaken_by(lambda: lance.dataset(uri).optimize.compact_files()):
        table.delete("a = 10")
    assert agree(uri).num_rows == 94
    with overtaken_by(lambda: lance.dataset(uri).update({"a": "1000"}, where="a = 11")):
        table.delete("a = 1000 OR a = 12")
    assert {11, 12, 1000}.isdisjoint(agree(uri).column("a").to_pylist())


STALE = {
    "append": lambda ds: lance.write_dataset(pa.table({"a": [77]}), ds, mode="append"),
    "delete": lambda ds: ds.delete("a = 1"),
    "update": lambda ds: ds.update({"a": "a + 1000"}, where="a = 2"),
    "merge_insert": lambda ds: ds.merge_insert("a").when_not_matched_insert_all().execute(pa.table({"a": [88]})),
    "config": lambda ds: ds.update_config({"theirs": "1"}),
    "index": lambda ds: ds.create_scalar_index("a", "BTREE"),
    "compact": lambda ds: ds.optimize.compact_files(),
    "add_columns": lambda ds: ds.add_columns({"b": "a + 1"}),
}
OURS = {
    "append": lambda t: t.append(pa.table({"a": [500]})),
    "delete": lambda t: t.delete("a = 40"),
    "overwrite": lambda t: t.overwrite(pa.table({"a": [3]})),
    "update": lambda t: t.overwrite(pa.table({"a": [41]}), where="a = 41"),
    "config": lambda t: t.set_properties({"ours": "1"}),
    "add_column": lambda t: t.add_column("n", "int"),
}


@pytest.mark.few(16)
@pytest.mark.spec("L-071")
@pytest.mark.parametrize("theirs", STALE)
@pytest.mark.parametrize("ours", OURS)
def test_a_stale_pylance_handle_after_our_commit(uri, ours, theirs):
    bh.write(pa.table({"a": list(range(50))}), uri, format="lance")
    table = bh.open(uri)
    table.append(pa.table({"a": list(range(50, 60))}))
    stale = lance.dataset(uri)
    OURS[ours](table)
    try:
        STALE[theirs](stale)
    except (OSError, RuntimeError, ValueError) as error:
        assert "conflict" in str(error).lower() or "incompatible" in str(error).lower(), error
        assert "internal" not in str(error).lower() and "transaction file" not in str(error)
    agree(uri)
    lance.dataset(uri).validate()


@pytest.mark.few(16)
@pytest.mark.spec("L-071")
@pytest.mark.parametrize("theirs", STALE)
@pytest.mark.parametrize("ours", OURS)
def test_our_commit_after_a_commit_of_pylance(uri, ours, theirs):
    lance.write_dataset(pa.table({"a": list(range(50))}), uri)
    lance.write_dataset(pa.table({"a": list(range(50, 60))}), uri, mode="append")
    before = lance.dataset(uri).count_rows()
    with overtaken_by(lambda: STALE[theirs](lance.dataset(uri))):
        OURS[ours](bh.open(uri))
    rows = agree(uri)
    lost = {"delete": 1}.get(theirs, 0) + {"delete": 1}.get(ours, 0)
    won = {"append": 1, "merge_insert": 1}.get(theirs, 0) + {"append": 1}.get(ours, 0)
    assert rows.num_rows == (1 if ours == "overwrite" else before - lost + won)
    lance.dataset(uri).validate()


def test_overwrite_and_restore_of_pylance_stop_our_rows(uri):
    for theirs in ("overwrite", "restore"):
        lance.write_dataset(pa.table({"a": list(range(50))}), uri, mode="overwrite")
        lance.write_dataset(pa.table({"a": [1]}), uri, mode="append")

        def action(theirs=theirs):
            if theirs == "overwrite":
                lance.write_dataset(pa.table({"a": [9]}), uri, mode="overwrite")
            else:
                lance.dataset(uri, version=1).restore()

        with pytest.raises(CommitConflictError, match=theirs):
            with overtaken_by(action):
                bh.open(uri).append(pa.table({"a": [2]}))


@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_tables_with_older_files(uri, version):
    lance.write_dataset(shapes(100, nested_nulls=False), uri, data_storage_version=version)
    table = bh.open(uri)
    table.delete("id < 10")
    table.set_properties({"x": "1"})
    assert agree(uri).num_rows == 90
    table.append(shapes(3, nested_nulls=False))
    table.update({"id": "id + 1000"}, where="id < 20")
    assert agree(uri).num_rows == 93


def test_types_that_lance_spells_otherwise_are_kept(uri):
    data = pa.table(
        {
            "ls": pa.array(["a", None, "c"], pa.large_string()),
            "lb": pa.array([b"a", None, b"c"], pa.large_binary()),
            "d": pa.array(["x", "y", "x"]).dictionary_encode(),
            "ny": pa.array([1, 2, None], pa.timestamp("us", "America/New_York")),
            "ll": pa.array([[1], None, []], pa.large_list(pa.int64())),
        }
    )
    lance.write_dataset(data, uri)
    ours = agree(uri)
    assert [str(f.type) for f in ours.schema] == [
        "string",
        "binary",
        "string",
        "timestamp[us, tz=UTC]",
        "list<item: int64>",
    ]
    table = bh.open(uri)
    table.append(ours.slice(0, 2))
    assert lance.dataset(uri).schema.field("ny").type == pa.timestamp("us", "America/New_York")
    assert pa.types.is_large_string(lance.dataset(uri).schema.field("ls").type)
    assert agree(uri).num_rows == 5
    table.overwrite(ours)
    assert lance.dataset(uri).schema == data.schema
    assert agree(uri).num_rows == 3


@pytest.mark.spec("L-033", "L-034")
def test_wrong_sizes_and_row_counts_are_refused(uri, tmp_path):
    from dataclasses import replace
    from pathlib import Path

    from boathouse.lance.manifests.file import parse, serialise

    lance.write_dataset(pa.table({"a": list(range(10))}), uri)
    (path,) = Path(uri, "_versions").glob("*.manifest")
    document = parse(path.read_bytes(), where="m")

    def edit(rows, size):
        (fragment,) = document.manifest.fragments
        fragment = replace(fragment, physical_rows=rows, files=(replace(fragment.files[0], file_size_bytes=size),))
        path.write_bytes(serialise(replace(document, manifest=replace(document.manifest, fragments=(fragment,)))))
        return bh.open(uri)

    true = document.manifest.fragments[0].files[0].file_size_bytes
    assert edit(0, 0).to_arrow().num_rows == 10
    assert edit(0, true).count() == 10
    for rows, size in ((10, true - 8), (10, true + 8), (7, true), (11, true)):
        with pytest.raises(ValueError, match=r"data|magic|rows|bytes"):
            edit(rows, size).to_arrow()


@pytest.mark.spec("L-035")
def test_row_addresses(uri):
    bh.write(pa.table({"a": list(range(10))}), uri, format="lance")
    table = bh.open(uri)
    table.append(pa.table({"a": list(range(10, 15))}))
    table.delete("a = 3")
    theirs = lance.dataset(uri).to_table(with_row_address=True)
    from boathouse.lance.adapter import FORMAT
    from boathouse.lance.tasks import read
    from boathouse.storage import Stores
    from boathouse.table.context import TableContext
    from boathouse.table.location import Location

    plan = FORMAT.open(TableContext(Location(f"file://{uri}"), Stores())).plan(["a"], None, ("_unit", "_pos"))
    ours = pa.Table.from_batches([b for task in plan.tasks() for b in read(task)])
    addresses = [(u << 32) | p for u, p in zip(ours.column("_unit").to_pylist(), ours.column("_pos").to_pylist())]
    assert addresses == theirs.column("_rowaddr").to_pylist()
    assert ours.column("a").to_pylist() == theirs.column("a").to_pylist()


@pytest.mark.spark
@pytest.mark.route("Lance")
def test_spark_writes_reads_and_deletes(spark, uri):
    frame = spark.range(200).selectExpr(
        "id",
        "concat('n', id) AS s",
        "array(id, id + 1) AS l",
        "named_struct('x', id) AS st",
        "timestamp_seconds(id) AS ts",
    )
    bh.write(frame, uri, format="lance")
    assert sorted(lance.dataset(uri).to_table().column("id").to_pylist()) == list(range(200))
    table = bh.open(uri, spark=spark)
    table.delete("id % 10 = 3")
    lance.dataset(uri).delete("id = 4")
    assert table.refresh().to_spark(spark).count() == lance.dataset(uri).count_rows() == 179
    rows = table.scan(["s", "l"], "id > 190").to_spark(spark).collect()
    assert sorted((r.s, r.l) for r in rows) == [(f"n{i}", [i, i + 1]) for i in range(191, 200) if i != 193]

"""Tables with data overlay files are written: every operation of ours and of pylance keeps the values of the overlays,
which are named as long as they count, and not longer."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.bits.roaring import deserialize32
from boathouse.errors import MissingFileError
from boathouse.lance.manifests.indices import IndexSection

from .cleaned import LATER
from .overlaid import overlaid

lance = pytest.importorskip("lance")
LanceOperation = lance.LanceOperation
if not hasattr(LanceOperation, "DataOverlay"):
    pytest.skip("this pylance has no overlays", allow_module_level=True)


@pytest.fixture(autouse=True)
def allowed(monkeypatch):
    monkeypatch.setenv("LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES", "1")


ROWS = pa.table(
    {
        "a": pa.array(range(10), pa.int64()),
        "s": [f"v{i}" for i in range(10)],
        "b": pa.array(range(100, 110), pa.int64()),
    }
)


@pytest.fixture(params=[False, True], ids=["", "stable"])
def table(kit, request):
    """Two fragments of five rows, with overlays of `a` in the first, of `a` and of other rows of `s` in the second."""
    kit.pylance(ROWS, max_rows_per_file=5, enable_stable_row_ids=request.param)
    overlaid(kit, 0, pa.table({"a": pa.array([101, 103], pa.int64())}), [1, 3], [0])
    overlaid(kit, 1, pa.table({"a": pa.array([106], pa.int64()), "s": ["z"]}), [[1], [2]], [0, 1])
    return kit


EXPECTED = [
    {**row, "a": row["a"] + 100 if row["a"] in (1, 3, 6) else row["a"], "s": "z" if row["a"] == 7 else row["s"]}
    for row in ROWS.to_pylist()
]


def both(uri: str) -> list[dict[str, object]]:
    """The rows, by `b`, that pylance and we read, which are the same; nothing is damaged."""
    dataset = lance.dataset(uri)
    dataset.validate()
    theirs = sorted(dataset.to_table().to_pylist(), key=lambda r: r["b"])
    assert sorted(bh.open(uri, format="lance").to_arrow().to_pylist(), key=lambda r: r["b"]) == theirs
    return theirs


def fields_of_overlays(kit) -> list[list[tuple[int, ...]]]:
    """Of each fragment. The flag is set as long as there are any."""
    manifest = kit.load().manifest
    found = [[o.data_file.fields for o in f.overlays] for f in manifest.fragments]
    assert [bool(word & 64) for word in (manifest.reader_feature_flags, manifest.writer_feature_flags)] == [
        any(found)
    ] * 2
    return found


def covered(kit) -> dict[str, list[int]]:
    """The fragments that each index covers."""
    section = IndexSection.decode(kit.load().document.index, where="")
    return {i.name: deserialize32(i.fragment_bitmap).positions().tolist() for i in section.indices}


KEPT = [[(0,)], [(0, 1)]]


def test_rows_are_appended_and_deleted(table):
    table.open().append(pa.table({"a": [1], "s": ["new"], "b": [200]}))
    assert both(table.uri) == [*EXPECTED, {"a": 1, "s": "new", "b": 200}]
    assert fields_of_overlays(table) == [*KEPT, []]
    table.open().delete("a = 101 OR s = 'z' OR a = 1")
    assert both(table.uri) == [r for r in EXPECTED if r["b"] not in (101, 107)]
    assert fields_of_overlays(table) == KEPT
    table.open().delete("b >= 105")
    assert both(table.uri) == [r for r in EXPECTED if r["b"] < 105 and r["b"] != 101]
    assert fields_of_overlays(table) == KEPT[:1]


def test_rows_are_updated_and_merged(table):
    """New rows have the values of the overlays."""
    table.open().update({"b": "a + b"}, where="a = 101 OR s = 'z'")
    expected = [{**r, "b": r["b"] + r["a"] if r["b"] in (101, 107) else r["b"]} for r in EXPECTED]
    expected.sort(key=lambda r: r["b"])
    assert both(table.uri) == expected
    assert fields_of_overlays(table) == [*KEPT, []]
    source = pa.table({"a": pa.array([103, 106, 55], pa.int64()), "s": ["m", "n", "o"]})
    merge = table.open().merge(source, on="source.a = target.a").when_matched_update({"s": "source.s"})
    merge.when_not_matched_insert({"a": "source.a", "s": "source.s", "b": "999"}).execute()
    new = {103: "m", 106: "n"}
    expected = [{**r, "s": new.get(r["a"], r["s"])} for r in expected] + [{"a": 55, "s": "o", "b": 999}]
    assert both(table.uri) == expected


def test_a_compaction_folds_them(table):
    table.open().optimize()
    assert both(table.uri) == EXPECTED
    assert fields_of_overlays(table) == [[]]


@pytest.mark.parametrize("sort", [{"zorder_by": ["a"]}, {"sort_by": ["a desc"]}])
def test_rows_in_another_order(table, sort):
    table.open().optimize(**sort)
    assert both(table.uri) == EXPECTED
    assert fields_of_overlays(table) == [[]]


def test_columns_change(table):
    """Of a column that goes, or gets other values, the overlays no longer count, and those of others do."""
    t = table.open()
    t.add_columns({"c": "a + 1"})
    t.add_column("d", "string")
    expected = [{**r, "c": r["a"] + 1, "d": None} for r in EXPECTED]
    assert both(table.uri) == expected and fields_of_overlays(table) == KEPT
    t.rename_column("s", "text")
    expected = [{("text" if k == "s" else k): v for k, v in r.items()} for r in expected]
    assert both(table.uri) == expected and fields_of_overlays(table) == KEPT
    t.add_columns({"a": "a * 2"}, replace=True)
    expected = [{**r, "a": r["a"] * 2} for r in expected]
    assert both(table.uri) == expected and fields_of_overlays(table) == [[], [(-2, 1)]]
    t.add_columns({"text": "concat(text, '!')", "e": "b"}, replace=True)
    expected = [{**r, "text": r["text"] + "!", "e": r["b"]} for r in expected]
    assert both(table.uri) == expected and fields_of_overlays(table) == [[], []]
    assert table.open(version=3).to_arrow().to_pylist() == EXPECTED


def test_columns_are_cast_and_dropped(table):
    t = table.open()
    t.cast_column("a", "string")
    expected = [{**r, "a": str(r["a"])} for r in EXPECTED]
    assert both(table.uri) == expected and fields_of_overlays(table) == [[], [(0, 1)]]
    t.drop_column("s")
    expected = [{k: v for k, v in r.items() if k != "s"} for r in expected]
    assert both(table.uri) == expected and fields_of_overlays(table) == [[], []]


def test_the_id_of_a_column_that_only_an_overlay_has_is_not_given_again(kit):
    """The data file of a dropped column goes; an overlay that has another one, too, stays."""
    kit.pylance(ROWS.select(["a", "b"]))
    kit.dataset().add_columns({"c": "a + 1"})
    overlaid(kit, 0, pa.table({"a": pa.array([77], pa.int64()), "c": pa.array([88], pa.int64())}), [2], [0, 2])
    kit.open().drop_column("c")
    kit.open().add_columns({"d": "a * 2"})
    assert both(kit.uri)[1:3] == [{"a": 1, "b": 101, "d": 2}, {"a": 77, "b": 102, "d": 154}]
    assert fields_of_overlays(kit) == [[(0, 2)]] and kit.load().manifest.fields[-1].id == 3


def test_overwrites_and_restores(table):
    t = table.open()
    t.overwrite(pa.table({"a": [1], "s": ["x"], "b": [1]}))
    assert both(table.uri) == [{"a": 1, "s": "x", "b": 1}] and fields_of_overlays(table) == [[]]
    t.restore(3)
    assert both(table.uri) == EXPECTED and fields_of_overlays(table) == KEPT
    t.restore(1)
    assert both(table.uri) == ROWS.to_pylist() and fields_of_overlays(table) == [[], []]
    t.overwrite(pa.table({"a": [7], "s": ["x"], "b": [105]}), where="b >= 105")
    assert len(both(table.uri)) == 6


def test_a_restore_needs_their_files(table):
    (overlay,) = table.load().manifest.fragments[0].overlays
    table.open().optimize()
    os.remove(os.path.join(table.uri, "data", overlay.data_file.path))
    with pytest.raises(MissingFileError, match=overlay.data_file.path):
        table.open().restore(3)


@pytest.mark.parametrize("by_us", [True, False])
def test_clones_and_branches(table, tmp_path, by_us):
    """The files are in the folder of the source, the table's own below the clone."""
    target = str(tmp_path / "clone")
    if by_us:
        table.open().clone(target)
        table.open().refs.create_branch("dev")
    else:
        table.dataset().shallow_clone(target, 3)
        table.dataset().create_branch("dev")
    assert both(target) == EXPECTED
    theirs, dev = table.dataset().checkout_version(("dev", None)), table.open(ref="dev")
    assert dev.to_arrow().to_pylist() == theirs.to_table().to_pylist() == EXPECTED
    for kit in (type(table)(tmp_path / "clone"), type(table)(tmp_path / "t" / "tree" / "dev")):
        assert [o.data_file.base_id for f in kit.load().manifest.fragments for o in f.overlays] == [0, 0]
        overlaid(kit, 0, pa.table({"s": ["here"]}), [1], [1])
        kit.open().delete("a = 103")
        expected = [{**r, "s": "here" if r["b"] == 101 else r["s"]} for r in EXPECTED if r["a"] != 103]
        assert both(kit.uri) == expected
        kit.open().optimize()
        assert both(kit.uri) == expected and fields_of_overlays(kit) == [[]]
    assert both(table.uri) == EXPECTED


def test_old_versions_expire(table):
    """Files of overlays are kept as long as a version names them, and go then; orphans are none of them."""
    t = table.open()
    named = {f"data/{o.data_file.path}" for f in table.load().manifest.fragments for o in f.overlays}
    t.delete("b = 109")
    for path in table.root.rglob("*"):
        os.utime(path, (1, 1))
    assert t.remove_orphan_files().files_removed == 0
    t.expire_snapshots(LATER)
    assert named < table.files() and both(table.uri) == EXPECTED[:-1]
    t.optimize()
    t.expire_snapshots(LATER)
    assert named.isdisjoint(table.files()) and both(table.uri) == EXPECTED[:-1]


@pytest.mark.spark
def test_on_spark(table, spark):
    """Executors read them."""
    t = bh.open(table.uri, spark=spark)
    t.update({"b": "a + b"}, where="a = 101 OR s = 'z'")
    expected = [{**r, "b": r["b"] + r["a"] if r["b"] in (101, 107) else r["b"]} for r in EXPECTED]
    expected.sort(key=lambda r: r["b"])
    assert both(table.uri) == expected
    assert sorted((r.asDict() for r in t.to_spark(spark).collect()), key=lambda r: r["b"]) == expected
    t.add_columns({"a": "a * 2"}, replace=True)
    expected = [{**r, "a": r["a"] * 2} for r in expected]
    assert both(table.uri) == expected and fields_of_overlays(table)[:2] == [[], [(-2, 1)]]
    t.optimize()
    assert both(table.uri) == expected and not any(fields_of_overlays(table))


# -- indices -----------------------------------------------------------------------------------------------------------


KINDS = ["btree", "bitmap", "zonemap"]


@pytest.fixture
def indexed(kit, request):
    """Four fragments of ten rows."""
    stable, kind, by_us = request.param
    rows = pa.table({"a": pa.array(range(40), pa.int64()), "b": pa.array(range(40), pa.int64())})
    kit.pylance(rows, max_rows_per_file=10, enable_stable_row_ids=stable)
    if by_us:
        kit.open().create_index("a", kind)
    else:
        kit.dataset().create_scalar_index("a", kind.upper())
    return kit


def found(kit, value: int) -> list[int]:
    """The rows, by `b`, whose `a` has a value: pylance and we find the same ones."""
    theirs = sorted(kit.dataset().to_table(filter=f"a = {value}").column("b").to_pylist())
    assert sorted(kit.open().scan(where=f"a = {value}").to_arrow().column("b").to_pylist()) == theirs
    return theirs


@pytest.mark.parametrize(
    "indexed", [(s, k, o) for s in (False, True) for k in KINDS for o in (True, False)], indirect=True
)
def test_an_index_that_is_older(indexed):
    """Rows of newer values are looked at for themselves, others are found by the index; so after a compaction, which
    takes the index along for fragments in which it is right."""
    overlaid(indexed, 0, pa.table({"a": pa.array([77, None], pa.int64())}), [2, 4], [0])
    assert [found(indexed, v) for v in (2, 4, 77, 3, 15)] == [[], [], [2], [3], [15]]
    explained = indexed.open().scan(where="a = 15").explain()
    assert "a_idx" in str(explained)
    assert indexed.open().scan(where="a = 15").to_arrow().num_rows == 1
    indexed.open().delete("b = 5 OR b = 15 OR b = 16")
    ((_, units, uncovered),) = [(i["name"], i["units"], i["uncovered"]) for i in indexed.open().indices().to_pylist()]
    assert (units, uncovered) == (3, 1)
    indexed.open().optimize()
    assert [found(indexed, v) for v in (2, 4, 77, 3, 15, 14, 35)] == [[], [], [2], [3], [], [14], [35]]
    ((covers),) = covered(indexed).values()
    ids = [f.id for f in indexed.load().manifest.fragments]
    assert ids == [4, 5] and 0 not in covers and 4 not in covers and 5 in covers
    indexed.open().optimize_indices()
    assert covered(indexed)["a_idx"] == ids
    assert [found(indexed, v) for v in (2, 4, 77, 3, 15, 14, 35)] == [[], [], [2], [3], [], [14], [35]]


@pytest.mark.parametrize("indexed", [(s, k, True) for s in (False, True) for k in KINDS], indirect=True)
def test_an_index_that_is_newer(indexed):
    """It has the values of the overlays that were there, and not those of later ones, also where these came between its
    plan and its commit."""
    overlaid(indexed, 0, pa.table({"a": pa.array([77], pa.int64())}), [2], [0])
    with indexed.overtaken_by(lambda: overlaid(indexed, 0, pa.table({"a": pa.array([88], pa.int64())}), [3], [0])):
        made = indexed.open().create_index("a", "btree", name="newer", replace=True)
    assert made.retries == 0
    assert [found(indexed, v) for v in (2, 77, 3, 88, 1)] == [[], [2], [], [3], [1]]
    overlaid(indexed, 3, pa.table({"b": pa.array([5], pa.int64())}), [0], [1])
    indexed.open().drop_index("a_idx")
    assert [found(indexed, v) for v in (2, 77, 3, 88, 1, 30)] == [[], [2], [], [3], [1], [5]]
    by_name = {i["name"]: i["uncovered"] for i in indexed.open().indices().to_pylist()}
    assert by_name == {"newer": 1}


@pytest.mark.parametrize("stable", [False, True])
def test_an_index_of_vectors(kit, stable):
    """pylance finds the newest vectors, also after a compaction of ours."""
    size = pa.list_(pa.float32(), 4)
    rows = pa.table({"a": range(600), "v": pa.array([[float(i)] * 4 for i in range(600)], size)})
    kit.pylance(rows, max_rows_per_file=150, enable_stable_row_ids=stable)
    kit.dataset().create_index("v", "IVF_FLAT", num_partitions=4)
    overlaid(kit, 0, pa.table({"v": pa.array([[5000.0] * 4], size)}), [2], [1])

    def near(value: float) -> list[int]:
        query = np.full(4, value, np.float32)
        asked = {"column": "v", "q": query, "k": 3, "nprobes": 4}
        theirs = kit.dataset().to_table(columns=["a"], nearest=asked).column("a").to_pylist()
        assert kit.open().nearest("v", query, 3, columns=["a"]).column("a").to_pylist() == theirs
        return theirs

    expected = [[1, 3, 0], [2, 599, 598], [50, 49, 51], [130, 129, 131]]
    assert [near(v) for v in (1.9, 5000, 49.9, 129.9)] == expected
    kit.open().delete("a IN (60, 61, 62, 63, 64, 65, 66, 67, 160, 161, 162, 163, 164, 165, 166, 167)")
    kit.open().optimize()
    assert fields_of_overlays(kit) == [[], []]
    assert [near(v) for v in (1.9, 5000, 49.9, 129.9)] == expected

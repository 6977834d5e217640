"""Indices that are made here: pylance has the same files for them, and finds the same rows by them as by its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import (
    ColumnNotFoundError,
    InvalidArgumentError,
    ReadOnlyError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.lance.indices.ordering import changes_in, order_of
from boathouse.lance.indices.row_sets import decode_rows
from boathouse.lance.manifests.indices import IndexMetadata, IndexSection

from .test_index_pruning import columns, looked_at

lance = pytest.importorskip("lance")
IndexConfig = pytest.importorskip("lance.indices").IndexConfig
LanceFileReader = pytest.importorskip("lance.file").LanceFileReader

KINDS = ("btree", "bitmap", "zonemap")
FILTERS = {
    "i": ["i = 5", "i < 20", "i IS NULL"],
    "i8": ["i8 = -5", "i8 IN (3, 7)"],
    "u64": ["u64 > 7000"],
    "f64": ["f64 = 1.25", "f64 IS NULL", "f64 > 200", "f64 BETWEEN -900 AND 100", "f64 = 0.0"],
    "s": ["s = 'k000105ä'", "s IS NULL", "s > 'k0030'"],
    "ls": ["ls IS NULL"],
    "few": ["few IN ('w1', 'w3')", "few = 'zz'"],
    "d": ["d > 10", "d IS NULL"],
    "day": ["day < date '1962-01-01'"],
    "ts": ["ts < timestamp '1970-01-01 00:01:00'"],
    "b": ["b", "b IS NULL"],
    "bin": ["bin = X'FFFFFF07'"],
    "dict": ["dict = 'd1'"],
}


def indices_of(kit) -> dict[str, IndexMetadata]:
    section = kit.open()._handle.snapshot.document.index
    return {} if section is None else {i.name: i for i in IndexSection.decode(section).indices}


def files_of(kit, index: IndexMetadata) -> dict[str, pa.Table]:
    """The files of an index as pylance reads them, with their metadata."""
    folder = Path(kit.uri, "_indices", index.id.folder)
    found = {p.name: p for p in folder.iterdir()}
    assert {f.path: f.size_bytes for f in index.files} == {n: p.stat().st_size for n, p in found.items()}
    return {name: LanceFileReader(str(path)).read_all().to_table() for name, path in sorted(found.items())}


def plain(table: pa.Table) -> pa.Table:
    """Rows of equal values by their addresses, sets of rows as such, dictionaries as their values."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
        if field.name == "bitmaps":
            sets = [str([(u, p.tolist()) for u, p in decode_rows(b, "")]) for b in table.column(i).to_pylist()]
            table = table.set_column(i, field.name, pa.array(sets))
    if "ids" in table.column_names:
        groups = np.cumsum(np.isin(np.arange(len(table)), changes_in(table.column("values").combine_chunks())))
        order = np.lexsort((table.column("ids").to_numpy(), groups))
        table = table.take(pa.array(order))
    return table


@pytest.mark.feature("indices", format="lance", engine="local")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("stable", "names"),
    [(True, ("i", "f64", "few")), *(pytest.param(x, None, marks=pytest.mark.slow) for x in (False, True))],
)
def test_the_same_as_those_of_pylance(kit, kind, stable, names):
    """Its metadata, its files, and what pylance finds by it, of every type; deleted rows are in none."""
    table = columns(1500)
    table = table.select(names) if names is not None else table
    kit.pylance(table, max_rows_per_file=600, enable_stable_row_ids=stable)
    kit.open().delete("i % 11 = 3")
    for name in table.column_names:
        kit.open().create_index(name, kind, f"{name} ours")
    without = {w: kit.dataset().scanner(["i"], filter=w, use_scalar_index=False).to_table() for w in filters(table)}
    for where, expected in without.items():
        scanner = kit.dataset().scanner(["i"], filter=where)
        assert "ScalarIndexQuery" in scanner.explain_plan(), where
        assert scanner.to_table().column("i").to_pylist() == expected.column("i").to_pylist(), where
        if "f64" not in where:  # NaN and -0.0 are compared in another way
            assert sorted(kit.read(columns=["i"], where=where)["i"].to_pylist()) == sorted(expected["i"].to_pylist())
    for name in table.column_names:
        kit.dataset().create_scalar_index(name, IndexConfig(kind, {}), name=f"{name} theirs")
    found = indices_of(kit)
    for name in table.column_names:
        mine, theirs = found[f"{name} ours"], found[f"{name} theirs"]
        same = ("fields", "fragment_bitmap", "details", "index_version", "base_id", "unknown")
        assert [getattr(mine, n) for n in same] == [getattr(theirs, n) for n in same], name
        a, b = files_of(kit, mine), files_of(kit, theirs)
        assert a.keys() == b.keys()
        for file in a:
            assert a[file].schema.equals(b[file].schema, check_metadata=True), (name, file)
            left, right = plain(a[file]), plain(b[file])
            assert repr(left.to_pydict()) == repr(right.to_pydict()), (name, file)
    kit.dataset().validate()


def filters(table: pa.Table) -> list[str]:
    skipped = ("ls IS NULL", "b") if "ls" not in table.column_names else ()
    return [w for name in table.column_names for w in FILTERS.get(name, ()) if w not in skipped]


def test_listed_replaced_and_dropped(kit):
    """Also those of pylance; the files stay until no version needs them."""
    kit.pylance(pa.table({"a": np.arange(30), "s": ["x"] * 30}), max_rows_per_file=10)
    kit.dataset().create_scalar_index("s", "INVERTED", name="words")
    t = kit.open()
    assert t.create_index("a").operation == "create-index"
    t.create_index("s", "bitmap", "sets", message="why")
    assert t.history()[0].message == "why"
    expected = [("words", ["s"], "inverted", 3, 0), ("a_idx", ["a"], "btree", 3, 0), ("sets", ["s"], "bitmap", 3, 0)]
    assert [tuple(r.values()) for r in t.indices().to_pylist()] == expected
    assert {d.name: d.num_rows_indexed for d in kit.dataset().describe_indices()}["a_idx"] == 30
    with pytest.raises(InvalidArgumentError, match="there is an index `a_idx`"):
        t.create_index("a", "zonemap")
    before = indices_of(kit)["a_idx"].id
    t.create_index("a", "zonemap", replace=True)
    assert t.indices().to_pylist()[-1]["kind"] == "zonemap"
    assert Path(kit.uri, "_indices", before.folder).exists()
    transaction = t._handle.snapshot.document.transaction
    assert [i.id for i in transaction.create_index.removed_indices] == [before]
    assert t.drop_index("words").operation == "drop-index"
    assert [d.name for d in kit.dataset().describe_indices()] == ["a_idx", "sets"]
    with pytest.raises(InvalidArgumentError, match="there is no index `words`") as error:
        t.drop_index("words")
    assert "sets, a_idx" in str(error.value)
    version = t.version
    assert t.create_index("a", "btree", "other", dry_run=True).version in (None, version)
    assert t.drop_index("sets", dry_run=True).dry_run
    assert t.refresh().version == version
    kit.dataset().validate()
    assert kit.read().num_rows == 30


def test_renewed(kit):
    """Those that do not cover every row, in one commit; those of other kinds, and of structs, stay as they are."""
    rows = pa.table({"a": np.arange(300), "b": np.arange(300)[::-1].copy(), "s": ["x"] * 300})
    rows = rows.append_column("st", pa.array([{"x": i} for i in range(300)]))
    kit.pylance(rows, max_rows_per_file=100)
    t = kit.open()
    t.create_index("a")
    t.create_index("b", "zonemap")
    kit.dataset().create_scalar_index("b", IndexConfig("zonemap", {"rows_per_zone": 7}), name="sevens")
    kit.dataset().create_scalar_index("s", "INVERTED", name="words")
    kit.dataset().create_scalar_index("st.x", "BTREE", name="inner")
    t = kit.open()
    t.append(rows.slice(0, 5))
    t.delete("a = 200")
    t.optimize()
    state = {r["name"]: (r["units"], r["uncovered"]) for r in t.indices().to_pylist()}
    made = {"a_idx": (1, 1), "b_idx": (1, 1), "sevens": (1, 1), "inner": (1, 1)}
    assert {n: s for n, s in state.items() if n in made} == made, (
        "a compaction keeps new files apart, until they are in"
    )
    assert {s for n, s in state.items() if n not in made} == {(0, 2)}, "others leave the new files to be searched"
    version = t.version
    assert t.optimize_indices().version == version + 1
    state = {r["name"]: (r["units"], r["uncovered"]) for r in t.indices().to_pylist()}
    assert {n for n, s in state.items() if s == (2, 0)} == {"a_idx", "b_idx", "sevens"}
    assert indices_of(kit)["sevens"].details.value.startswith(b"\x08\x07"), "rows of a zone"
    assert t.optimize_indices().version in (None, version + 1), "nothing is left to do"
    assert t.refresh().version == version + 1
    for where, rows in (("a = 3", 2), ("b = 3", 1), ("a = 200", 0)):
        assert kit.dataset().count_rows(filter=where) == kit.read(where=where).num_rows == rows
    assert "a_idx" in kit.dataset().scanner(filter="a = 3").explain_plan()


MOVED = ("btree", "bitmap", "zonemap", "bloomfilter")
OTHERS = ("inverted", "label_list", "ngram", "vector")


def of_every_kind(kit, stable: bool) -> None:
    """An index of each kind, of the first 600 rows of 800, each of 100 in a file; rows are deleted since."""
    rng = np.random.default_rng(7)
    n = 800
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(n * 4), pa.float32()), 4)
    rows = pa.table(
        {
            "btree": np.arange(n),
            "bitmap": [i % 5 if i % 11 else None for i in range(n)],
            "zonemap": [float(i) if i % 13 else None for i in range(n)],
            "bloomfilter": [f"s{i}" if i % 7 else None for i in range(n)],
            "inverted": [f"word{i % 7} text" for i in range(n)],
            "label_list": [[f"l{i % 3}"] for i in range(n)],
            "ngram": [f"ng{i}" for i in range(n)],
            "vector": vectors,
        }
    )
    dataset = kit.pylance(rows.slice(0, 600), max_rows_per_file=100, enable_stable_row_ids=stable)
    for name in (*MOVED, *OTHERS[:3]):
        options = {"zonemap": {"rows_per_zone": 30}, "bloomfilter": {"number_of_items": 30}}.get(name, {})
        if options:
            dataset.create_scalar_index(name, IndexConfig(name, options), name=name)
        else:
            dataset.create_scalar_index(name, name.upper(), name=name)
    dataset.create_index("vector", "IVF_FLAT", name="vector", num_partitions=2)
    for start in (600, 700):
        kit.pylance(rows.slice(start, 100), mode="append")
    kit.dataset().delete("btree % 10 = 3 AND btree < 250 OR btree = 130 OR btree > 160 AND btree < 185")


SEARCHES = (
    "btree = 5", "btree = 13", "btree = 455", "btree > 580 AND btree < 620", "bitmap = 3", "bitmap IS NULL",
    "zonemap = 455", "zonemap IS NULL", "zonemap > 500", "bloomfilter = 's78'", "bloomfilter IS NULL",
    "bloomfilter = 's799'", "inverted = 'word3 text'", "array_has_any(label_list, ['l1'])", "contains(ngram, 'ng12')",
)  # fmt: skip


def check_searches(kit) -> None:
    """Those of pylance by its indices are those without, and so are ours, of filters that we know."""
    dataset, t = kit.dataset(), kit.open()
    dataset.validate()
    for where in SEARCHES:
        rows = dataset.scanner(["btree"], filter=where, use_scalar_index=False).to_table()["btree"].to_pylist()
        assert sorted(dataset.to_table(["btree"], filter=where)["btree"].to_pylist()) == sorted(rows), where
        if not where.startswith(("array", "contains")):
            assert sorted(t.scan(["btree"], where=where).to_arrow()["btree"].to_pylist()) == sorted(rows), where
    query = np.full(4, 0.5, np.float32)
    near = {"column": "vector", "q": query, "k": 20, "nprobes": 100}
    by_index = dataset.to_table(["btree", "_distance"], nearest=near)["btree"].to_pylist()
    assert by_index == t.nearest("vector", query, 20, columns=["btree"])["btree"].to_pylist()
    words = dataset.to_table(["btree", "_score"], full_text_query="word3").num_rows
    assert words == dataset.count_rows(filter="inverted = 'word3 text'")


@pytest.mark.spec("L-125")
@pytest.mark.parametrize("stable", [False, True], ids=["", "stable"])
def test_a_compaction_takes_them_along(kit, stable):
    """Indices cover the new files: their addresses are those of now, and ids stay. Of vectors and texts without stable
    ids the new files are searched."""
    of_every_kind(kit, stable)
    check_searches(kit)
    before = indices_of(kit)
    t = kit.open()
    t.optimize()
    assert len(t.files()) == 2, "rows that no index covers are not put with others"
    after = indices_of(kit)
    state = {r["name"]: (r["units"], r["uncovered"]) for r in t.indices().to_pylist()}
    taken = {*MOVED, *(OTHERS if stable else ())}
    assert state == {name: (1, 1) if name in taken else (0, 2) for name in (*MOVED, *OTHERS)}
    same = {name for name in before if before[name].id == after[name].id}
    assert same == {*OTHERS, *(["bitmap"] if stable else [])}, "those of addresses are written again"
    check_searches(kit)
    for where in ("btree = 455", "zonemap = 455", "bloomfilter = 's455'", "bitmap = 3 AND btree = 18"):
        assert looked_at(t, bind_predicate(parse(where), t.schema)) < 300, where
    kit.dataset().optimize.optimize_indices()
    t.optimize()
    check_searches(kit)
    assert len(t.files()) == 1 and set(state) == set(indices_of(kit))
    state = {r["name"]: (r["units"], r["uncovered"]) for r in t.indices().to_pylist()}
    assert all(state[name] == (1, 0) for name in taken), state
    kit.dataset().delete("btree % 2 = 1")
    t.optimize()
    check_searches(kit)
    assert len(t.files()) == 1


def test_sorted_files_are_searched(kit):
    """Where every row has another place, new files count as not covered."""
    of_every_kind(kit, False)
    t = kit.open()
    t.optimize(sort_by=["bloomfilter"])
    check_searches(kit)
    assert {r["units"] for r in t.indices().to_pylist()} == {0}


@pytest.mark.parametrize("kind", MOVED)
def test_a_damaged_one_is_not_taken_along(kit, kind):
    of_every_kind(kit, False)
    folder = Path(kit.uri, "_indices", indices_of(kit)[kind].id.folder)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-30])
    t = kit.open()
    t.optimize()
    state = {r["name"]: r["units"] for r in t.indices().to_pylist()}
    assert {name for name in MOVED if state[name]} == set(MOVED) - {kind}
    assert t.scan(where="btree = 455 AND bitmap = 0 AND zonemap = 455 AND bloomfilter = 's455'").count() == 0
    assert t.scan(where="btree = 456").count() == t.scan(where="zonemap = 456").count() == 1


def test_a_clone_takes_its_own(kit, tmp_path):
    """An index of the source is read there, and written here."""
    of_every_kind(kit, False)
    kit.dataset().shallow_clone(str(tmp_path / "clone"), kit.dataset().version)
    there = type(kit)(tmp_path / "clone")
    there.open().optimize()
    made = indices_of(there)
    assert all(made[name].base_id is None for name in MOVED) and made["vector"].base_id is not None
    check_searches(there)
    check_searches(kit)


def test_zones_that_lost_nans_are_not_known(kit):
    """What is left of a zone may have them, or not."""
    values = [float("nan") if i in (5, 250) else float(i) for i in range(300)]
    dataset = kit.pylance(pa.table({"i": range(300), "a": values}), max_rows_per_file=100)
    dataset.create_scalar_index("a", "ZONEMAP")
    kit.dataset().delete("i = 5")
    t = kit.open()
    t.optimize()
    assert t.indices().to_pylist()[0]["units"] == 0
    for where, rows in (("isnan(a)", 1), ("a = 6", 1), ("a >= 298", 3)):
        assert t.scan(where=where).count() == rows


def test_what_is_refused(kit, tmp_path):
    nested = pa.table({"a": [1], "l": [[1]], "st": [{"x": 1}], "v": pa.array([[1.0]], pa.list_(pa.float32(), 1))})
    kit.pylance(nested)
    t = kit.open()
    for column in ("l", "st", "v"):
        with pytest.raises(UnsupportedTypeError, match=f"column `{column}`"):
            t.create_index(column)
    with pytest.raises(ColumnNotFoundError):
        t.create_index("b")
    with pytest.raises(InvalidArgumentError, match="kind 'hash'") as error:
        t.create_index("a", "hash")
    assert "btree, bitmap, zonemap" in str(error.value)
    with pytest.raises(InvalidArgumentError, match="__mine"):
        t.create_index("a", name="__mine")
    t.refs.create_tag("v1")
    with pytest.raises(ReadOnlyError):
        kit.open(ref="v1").create_index("a")
    assert not Path(kit.uri, "_indices").exists(), "nothing was written"
    delta = bh.create(str(tmp_path / "delta"), "a bigint", format="delta")
    for call in (lambda: delta.create_index("a"), delta.indices, delta.optimize_indices, lambda: delta.drop_index("a")):
        with pytest.raises(UnsupportedFeatureError, match="an index is not offered for delta tables"):
            call()


@pytest.mark.parametrize("kind", KINDS)
def test_of_an_empty_table(kit, kind):
    kit.create(pa.table({"a": pa.array([], pa.int64()), "f": pa.array([], pa.float64())}))
    t = kit.open()
    t.create_index("a", kind)
    t.create_index("f", kind)
    t.append(pa.table({"a": [1, 2], "f": [1.0, 2.0]}))
    assert t.scan(where="a = 2 AND f > 1").count() == 1
    assert kit.dataset().count_rows(filter="a = 2") == kit.dataset().count_rows(filter="f = 2") == 1
    t.optimize_indices()
    assert kit.dataset().count_rows(filter="a = 2") == kit.dataset().count_rows(filter="f = 2") == 1
    assert looked_at(t, equal(t, "a", 7)) == 0


def equal(t, name, value):
    return bind_predicate(bh.col(name).eq(value), t.schema)


def test_renamed_while_it_is_made(kit):
    """Columns are known by their ids; one that is gone is missed when the index is planned again."""
    kit.pylance(pa.table({"a": np.arange(10), "b": np.arange(10)}))
    with kit.overtaken_by(lambda: kit.open().rename_column("a", "c")):
        kit.open().create_index("a", name="by_a")
    assert kit.open().indices().to_pylist()[0]["columns"] == ["c"]
    assert kit.dataset().count_rows(filter="c = 3") == kit.read(where="c = 3").num_rows == 1
    with kit.overtaken_by(lambda: kit.open().drop_column("b")), pytest.raises(ColumnNotFoundError):
        kit.open().create_index("b")


def test_the_same_name_at_once(kit):
    """The later one is planned again, and finds that there is one; two of other names are both there."""
    kit.pylance(pa.table({"a": np.arange(10), "b": np.arange(10)}))
    with kit.overtaken_by(lambda: kit.open().create_index("a", name="x")):
        with pytest.raises(InvalidArgumentError, match="there is an index `x`"):
            kit.open().create_index("b", name="x")
    with kit.overtaken_by(lambda: kit.open().create_index("b", name="y")):
        kit.open().create_index("b", "bitmap", name="z")
    assert kit.open().indices().column("name").to_pylist() == ["x", "y", "z"]
    with kit.overtaken_by(lambda: kit.open().drop_index("y")), pytest.raises(InvalidArgumentError):
        kit.open().drop_index("y")
    folders = {p.name for p in Path(kit.uri, "_indices").iterdir() if any(p.iterdir())}
    assert {i.id.folder for i in indices_of(kit).values()} < folders, "what was written in vain is removed"
    assert len(folders) == 3


def test_on_branches_and_clones(kit, tmp_path):
    """The files of an index are in the folder of the line that made it."""
    kit.pylance(pa.table({"a": np.arange(10)}))
    kit.open().create_index("a")
    kit.open().refs.create_branch("dev")
    dev = kit.open(ref="dev")
    dev.create_index("a", "bitmap", "sets")
    assert dev.scan(where="a = 3").count() == 1
    assert looked_at(dev, equal(dev, "a", 3)) == 1
    assert [d.name for d in kit.dataset().checkout_version(("dev", None)).describe_indices()] == ["a_idx", "sets"]
    assert kit.open().indices().num_rows == 1
    clone = kit.open().clone(str(tmp_path / "clone"))
    copy = bh.open(str(tmp_path / "clone"))
    assert looked_at(copy, equal(copy, "a", 3)) == 1, clone
    assert lance.dataset(str(tmp_path / "clone")).count_rows(filter="a = 3") == 1


@pytest.mark.spark
@pytest.mark.feature("indices", format="lance", engine="spark")
def test_made_on_spark(kit, spark):
    """Values are read in the executors."""
    kit.pylance(pa.table({"a": np.arange(3000)[::-1].copy()}), max_rows_per_file=1000)
    bh.open(kit.uri, spark=spark).create_index("a")
    t = kit.open()
    assert looked_at(t, equal(t, "a", 7)) == 1
    assert kit.dataset().to_table(filter="a = 7").num_rows == 1


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_the_order_of_floats(kind):
    """Every bit pattern has a place, as Rust's total_cmp has it; nulls come first, and equal values stay in order."""
    numbers = [np.nan, -np.inf, 1.5, None, -0.0, 0.0, np.inf, -1.5, None, 1.5, 0.0]
    array = pa.array([None if n is None else np.dtype(kind.to_pandas_dtype()).type(n) for n in numbers], kind)
    ordered = array.take(pa.array(order_of(array)))
    assert str(ordered.to_pylist()) == str([None, None, -np.inf, -1.5, -0.0, 0.0, 0.0, 1.5, 1.5, np.inf, np.nan])
    assert changes_in(ordered).tolist() == [0, 2, 3, 4, 5, 7, 9, 10]
    assert order_of(array).tolist()[:2] == [3, 8]
    assert order_of(array)[-3:].tolist() == [9, 6, 0]


def test_others_in_order():
    for values in ([True, None, False], ["b", None, "aä"], [b"\xff", None, b"\x00"]):
        array = pa.array(values)
        assert order_of(array).tolist() == [1, 2, 0]
        assert changes_in(array.take(pa.array(order_of(array)))).tolist() == [0, 1, 2]
    assert order_of(pa.array([], pa.string())).tolist() == changes_in(pa.array([], pa.string())).tolist() == []


@pytest.mark.spark
def test_a_compaction_on_spark_takes_them_along(kit, spark):
    of_every_kind(kit, False)
    bh.open(kit.uri, spark=spark).optimize()
    state = {r["name"]: (r["units"], r["uncovered"]) for r in kit.open().indices().to_pylist()}
    assert {state[name] for name in MOVED} == {(1, 1)}
    check_searches(kit)

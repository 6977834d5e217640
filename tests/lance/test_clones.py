"""Shallow clones, and files below base paths: made and written to here and by pylance."""

from __future__ import annotations

import shutil
from dataclasses import replace
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import AlreadyExistsError, ForeignPathError, InvalidArgumentError, MissingFileError
from boathouse.lance.adapter import FORMAT
from boathouse.lance.lineage.sequences import encode_ids
from boathouse.lance.manifests.messages import BasePath, ExternalFile
from boathouse.table.features import Clonable

from .test_refs import rows

lance = pytest.importorskip("lance")


def sorted_rows(table: pa.Table) -> list[dict[str, object]]:
    return table.sort_by("a").to_pylist()


def both(uri: str) -> list[dict[str, object]]:
    """The rows of a table, as we and pylance read them."""
    theirs = lance.dataset(uri)
    theirs.validate()
    found = sorted_rows(bh.open(uri).to_arrow())
    assert sorted_rows(theirs.to_table()) == found
    return found


def manifest(uri: str):
    return bh.open(uri)._handle.snapshot.manifest


@pytest.fixture
def target(tmp_path) -> str:
    return str(tmp_path / "clone")


def make(kit, target: str, by_us: bool, version: int | None = None, ref: str | None = None) -> None:
    """A shallow clone of the table, of a version, or of a branch."""
    if by_us:
        options = {k: v for k, v in (("version", version), ("ref", ref)) if v is not None}
        kit.open(**options).clone(target)
    elif ref is not None:
        kit.dataset().shallow_clone(target, (ref, version))
    else:
        kit.dataset().shallow_clone(target, version if version is not None else kit.dataset().version)


@pytest.mark.few(3)
@pytest.mark.spec("L-123", "L-020", "L-063")
@pytest.mark.feature("shallow clone", format="lance", engine="either")
@pytest.mark.parametrize("by_us", [True, False])
@pytest.mark.parametrize(("version", "stable"), [("2.0", False), ("2.1", False), ("2.2", False), ("2.2", True)])
def test_a_clone_is_read_and_written(kit, target, by_us, version, stable):
    kit.pylance(rows(0, 10), data_storage_version=version, enable_stable_row_ids=stable)
    kit.open().append(rows(10, 10))
    kit.open().delete("a in (3, 12)")
    kit.dataset().update_config({"k": "v"})
    before = kit.files()
    make(kit, target, by_us)
    expected = both(kit.uri)
    assert both(target) == expected and len(expected) == 18
    made = manifest(target)
    assert made.version == 4 and made.branch is None and bh.open(target).properties == {"k": "v"}
    assert [(b.id, b.is_dataset_root, b.path) for b in made.base_paths] == [(0, True, kit.uri)]
    assert all(f.base_id == 0 for g in made.fragments for f in g.files)  # 0 is there, and not the same as none
    assert [g.deletion_file.base_id for g in made.fragments] == [0, 0]
    for step in range(2):  # by turns
        t, theirs = bh.open(target), lance.dataset(target)
        t.append(rows(100 + step, 1))
        t.update({"s": "'u'"}, where=f"a = {step}")
        t.delete(f"a = {13 + step}")
        theirs.checkout_latest()
        theirs.insert(rows(200 + step, 1))
        theirs.update({"s": "'w'"}, where=f"a = {4 + step}")
        theirs.delete(f"a = {17 + step}")
        t.merge(rows(5, 1), on="target.a = source.a").when_matched_update_all().execute()
    expected = {r["a"]: r["s"] for r in expected if r["a"] not in (13, 14, 17, 18)}
    expected |= {0: "u", 1: "u", 4: "w", 5: rows(5, 1).column("s")[0].as_py()}
    expected |= {r["a"]: r["s"] for n in (100, 200) for r in rows(n, 2).to_pylist()}
    assert {r["a"]: r["s"] for r in both(target)} == expected
    bh.open(target).optimize()
    assert {r["a"]: r["s"] for r in both(target)} == expected
    assert all(f.base_id is None for g in manifest(target).fragments for f in g.files)
    bh.open(target).restore(4)
    assert both(target) == both(kit.uri) and kit.files() == before
    lance.dataset(target).restore()
    first = bh.open(target).history()[-1]
    assert (first.operation, first.version, first.parent) == ("clone", 4, None)


@pytest.mark.spec("L-123")
@pytest.mark.parametrize("by_us", [True, False])
def test_clones_of_versions_branches_and_clones(kit, tmp_path, by_us):
    kit.pylance(rows(0, 4))
    kit.open().append(rows(4, 4))
    kit.open().refs.create_branch("dev", 1)
    kit.open(ref="dev").append(rows(50, 2))
    kit.open(ref="dev").delete("a = 0")
    old, dev, again = (str(tmp_path / name) for name in ("old", "dev", "again"))
    make(kit, old, by_us, version=1)
    assert both(old) == rows(0, 4).to_pylist()
    make(kit, dev, by_us, ref="dev")
    expected = [*rows(1, 3).to_pylist(), *rows(50, 2).to_pylist()]
    assert both(dev) == expected and manifest(dev).branch is None
    assert {b.path for b in manifest(dev).base_paths} == {kit.uri, f"{kit.uri}/tree/dev"}
    bh.open(dev).append(rows(60, 1))
    if by_us:
        bh.open(dev).clone(again)
    else:
        lance.dataset(dev).shallow_clone(again, lance.dataset(dev).version)
    assert len(manifest(again).base_paths) == 3 and len({b.id for b in manifest(again).base_paths}) == 3
    bh.open(again).delete("a in (1, 50, 60)")
    assert both(again) == [r for r in [*expected, *rows(60, 1).to_pylist()] if r["a"] not in (1, 50, 60)]
    bh.open(again).refs.create_branch("side")
    side = bh.open(again, ref="side")
    side.append(rows(70, 1))
    theirs = lance.dataset(again).checkout_version(("side", None))
    assert sorted_rows(theirs.to_table()) == sorted_rows(side.to_arrow()) == [*both(again), *rows(70, 1).to_pylist()]
    back = str(tmp_path / "back")
    bh.open(again, ref="side").clone(back)
    assert both(back) == sorted_rows(side.to_arrow())


@pytest.mark.parametrize("name", ["a b", "dü +é", "e%20f"])
def test_folders_with_odd_names(tmp_path, name):
    """pylance writes a base path as the source was named: raw as a path, encoded as a URI."""
    folder = tmp_path / name
    lance.write_dataset(rows(0, 5), str(folder / "s")).delete("a = 3")
    encoded = f"file://{quote(str(folder))}/s"
    for at, place in enumerate([str(folder / "s"), encoded, encoded.replace("file:///", "file:/")]):
        source = lance.dataset(place)
        target = str(folder / f"theirs {at}")
        source.shallow_clone(target, source.version)
        assert [r["a"] for r in both(target)] == [0, 1, 2, 4]
        bh.open(target).delete("a = 1")
        again = str(folder / f"again {at}")
        bh.open(target).clone(again)
        assert both(target) == both(again) and len(both(again)) == 3
        source.create_branch(f"b{at}", source.version)
        branch = bh.open(str(folder / "s"), ref=f"b{at}")
        branch.append(rows(9, 1))
        assert branch.refresh().count() == branch.to_arrow().num_rows == 5
        assert lance.dataset(place).checkout_version((f"b{at}", None)).count_rows() == 5
    bh.open(str(folder / "s")).clone(str(folder / "ours"))
    assert len(both(str(folder / "ours"))) == 4


def test_what_a_clone_does_to_nobody(kit, target, numbers):
    """Neither orphans nor a drop of the clone touch the table that it names."""
    t = kit.create(numbers)
    t.delete("a = 1")
    before = kit.files()
    done = t.clone(target, message="mine")
    assert (done.operation, done.version, done.rows_added, done.files_added) == ("clone", 2, 9, 1)
    assert kit.files() == before
    assert bh.open(target).history()[0].message == "mine"
    with pytest.raises(AlreadyExistsError):
        t.clone(target)
    bh.open(target).append(rows(10, 1))
    t.overwrite(numbers)
    assert len(both(target)) == 10
    found = bh.open(target).find_write(done.write_id)
    assert found == 2
    shutil.rmtree(kit.root / "data")
    with pytest.raises(MissingFileError):
        bh.open(target).to_arrow()


def test_where_a_clone_cannot_be(kit, tmp_path, numbers):
    t = kit.create(numbers)
    before = kit.files()
    with pytest.raises(InvalidArgumentError, match="inside the other"):
        t.clone(f"{kit.uri}/inner")
    with pytest.raises(InvalidArgumentError, match="inside the other"):
        t.clone(tmp_path)
    with pytest.raises(ForeignPathError, match="another kind"):
        t.clone("memory://clones/x")
    assert t.clone(tmp_path / "dry", dry_run=True).rows_added == 10 and not (tmp_path / "dry").exists()
    assert kit.files() == before
    assert t._handle.snapshot.offers(Clonable) is not None


def test_base_paths_into_another_store(kit, numbers):
    """Whoever can write to a store must not have files of another one read."""
    kit.create(numbers)
    base = BasePath(id=0, is_dataset_root=True, path="s3://bucket/t")

    def moved(m):
        files = tuple(replace(f, base_id=0) for f in m.fragments[0].files)
        return replace(m, base_paths=(base,), fragments=(replace(m.fragments[0], files=files),))

    kit.edit(moved)
    with pytest.raises(ForeignPathError, match="s3://bucket"):
        kit.open().to_arrow()
    with pytest.raises(ForeignPathError, match="s3://bucket"):
        kit.open().clone(kit.root.parent / "clone")


@pytest.mark.spec("L-117")
def test_row_ids_of_a_clone(kit, target, numbers):
    """Those that the source has in another file are inline in the clone, which that file is not in."""
    kit.pylance(numbers, enable_stable_row_ids=True)
    ids = encode_ids(np.arange(7, 17))
    (kit.root / "ids.bin").write_bytes(b"xx" + ids)
    external = ExternalFile(path="ids.bin", offset=2, size=len(ids))
    kit.edit(
        lambda m: replace(
            m,
            next_row_id=17,
            fragments=(replace(m.fragments[0], inline_row_ids=None, external_row_ids=external),),
        )
    )
    kit.open().clone(target)
    t = bh.open(target)
    t.append(rows(10, 1))
    t.update({"s": "'u'"}, where="a = 2")
    found = t.scan(columns=["a", "_row_id"]).to_arrow().to_pylist()
    assert {r["a"]: r["_row_id"] for r in found} == {a: a + 7 for a in range(11)}
    theirs = lance.dataset(target).scanner(columns=["a"], with_row_id=True).to_table().to_pylist()
    assert {r["a"]: r["_rowid"] for r in theirs} == {a: a + 7 for a in range(11)}


@pytest.mark.spec("L-125")
def test_an_index_of_a_clone(kit, target):
    kit.pylance(rows(0, 100))
    kit.dataset().create_scalar_index("a", "BTREE")
    kit.open().clone(target)
    bh.open(target).append(rows(100, 20))
    bh.open(target).delete("a = 50")
    theirs = lance.dataset(target)
    assert [i.name for i in theirs.describe_indices()] == ["a_idx"]
    for a in (3, 50, 99, 100, 119):
        expected = [] if a == 50 else rows(a, 1).to_pylist()
        assert theirs.to_table(filter=f"a = {a}").to_pylist() == expected
        assert bh.open(target).scan(where=f"a = {a}").to_arrow().to_pylist() == expected


@pytest.mark.spec("L-020", "L-123")
@pytest.mark.parametrize("is_root", [True, False])
def test_files_in_other_places(kit, tmp_path, is_root):
    """A table of several places, each the root of a table or a folder of data files: ours write to the table's own."""
    other = lance.DatasetBasePath(str(tmp_path / "other"), name="second", is_dataset_root=is_root, id=3)
    kit.pylance(rows(0, 5), initial_bases=[other], target_bases=["second"])
    kit.pylance(rows(5, 5), mode="append")
    assert {f.base_id for g in manifest(kit.uri).fragments for f in g.files} == {3, None}
    assert both(kit.uri) == rows(0, 10).to_pylist()
    t = kit.open()
    t.delete("a in (1, 6)")
    t.update({"s": "'u'"}, where="a = 2")
    t.append(rows(10, 1))
    expected = {r["a"]: "u" if r["a"] == 2 else r["s"] for r in rows(0, 11).to_pylist() if r["a"] not in (1, 6)}
    assert {r["a"]: r["s"] for r in both(kit.uri)} == expected
    kit.pylance(rows(11, 1), mode="append", target_bases=["second"])
    t.refresh()
    t.optimize()
    assert {r["a"]: r["s"] for r in both(kit.uri)} == {**expected, 11: rows(11, 1).column("s")[0].as_py()}
    target = str(tmp_path / "clone")
    t.clone(target)
    assert both(target) == both(kit.uri)
    assert len(list(FORMAT.open(kit.context).files())) == 1


def test_blobs_of_a_clone_and_a_branch(kit, target):
    """Bytes beside the data files are found where those are."""
    blobs = [b"abc", bytes(300_000), bytes(5_000_000)]  # in the file, in one for several, in one of its own
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")])
    kit.pylance(pa.table({"id": [1, 2, 3], "b": lance.blob_array(blobs)}, schema=schema))
    assert sum(f.endswith(".blob") for f in kit.files()) == 2
    kit.open().clone(target)
    kit.open().refs.create_branch("dev")
    bh.open(target).delete("id = 1")
    kit.open(ref="dev").delete("id = 1")
    for theirs in (lance.dataset(target), kit.dataset().checkout_version(("dev", None))):
        assert [found.readall() for found in theirs.take_blobs("b", indices=[0, 1])] == blobs[1:]

"""Files that killed writers leave: they go after seven days, if they are of a kind that writers of tables make."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from uuid import UUID

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.lance.maintain.orphans import LanceOrphans
from boathouse.lance.manifests.messages import ExternalFile
from boathouse.lance.manifests.versions import parse_name

from .cleaned import LATER, by_pylance, by_us, days_ago, edited, ids, of_branch, rows

lance = pytest.importorskip("lance")
DAYS = 24 * 3600
ID = "0b4e1b0c-6c53-4f39-9f39-5f0a3b0a8c11"
LEFT = (
    "data/000010110110100001110000337b0248e7b5e6b694dc91ddb8.lance",
    "data/000010110110100001110000337b0248e7b5e6b694dc91ddb8/10000000000000000000000000000000.blob",
    "data/000010110110100001110000337b0248e7b5e6b694dc91ddb8/.tmpAbc123",
    "data/.tmpXyz987",
    "data/part=1/any name.lance",
    "data/abc.lance#1",
    f"_indices/{ID}/page_data.lance",
    f"_indices/{ID}/part_0_docs.lance",
    "_deletions/0-1-16099524701040109674.arrow",
    "_deletions/7-3-16099524701040109674.bin",
    f"_transactions/1-{ID}.txn",
    "_versions/.tmp_7.manifest_x",
    f"_versions/18446744073709551613.manifest-{ID}",
    "_versions/18446744073709551609.manifest#1",
)
"""The staged manifest is that of version 2, which is there or followed by others."""
YOUNG = ("a.lance", "1.blob", ".tmpA", ".tmpB", "b.lance", "a.lance#2", "a", "b", "1-1-1.arrow", "1-1-1.bin", "1-1.txn")
OTHERS = (
    "README.md",
    "_latest.manifest",
    "data/notes.txt",
    "data/x.parquet",
    "data/.hidden",
    "extra/x.lance",
    "_blobs/x.blob",
    "_fri/x/y.lance",
    "_versions/latest_version_hint.json",
    "_versions/notes.txt",
    "_transactions/x.json",
    "_indices/other/x.lance",
    "_refs/mine/x.json",
    "tree/lost/data/x.lance",
    "sub/data/x.lance",
)


@pytest.fixture
def made(kit):
    kit.pylance(rows(1, 2, 3))
    kit.open().append(rows(4))
    kit.dataset().delete("a = 2")
    kit.dataset().create_scalar_index("a", "BTREE")
    return kit


def leave(kit, *paths, days=7.1):
    for path in paths:
        (kit.root / path).parent.mkdir(parents=True, exist_ok=True)
        (kit.root / path).write_bytes(b"lost")
        os.utime(kit.root / path, (time.time() - days * DAYS,) * 2)


def aged(kit):
    for path in kit.root.rglob("*"):
        os.utime(path, (1, 1))


@pytest.mark.spec("L-124", "L-005", "L-073")
@pytest.mark.feature("removal of orphan files", format="lance")
def test_leftovers_go_after_seven_days(made):
    rows_before, before = by_pylance(made), made.files()
    leave(made, *LEFT, *OTHERS)
    young = [f"{p.rpartition('/')[0]}/{name}" for p, name in zip(LEFT, YOUNG, strict=False)]
    leave(made, *young, days=6.9)
    t = made.open()
    dry = t.remove_orphan_files(dry_run=True)
    assert made.files() == before.union(LEFT, OTHERS, young)
    done = t.remove_orphan_files()
    assert sorted(dry.paths) == sorted(done.paths) == sorted(LEFT) and done.bytes_removed == 4 * len(LEFT)
    assert made.files() == before.union(OTHERS, young) and done.retention_hours == 7 * 24
    with pytest.raises(InvalidArgumentError, match=r"the last 168 hours are kept, and not only of 24"):
        t.remove_orphan_files(days_ago(1))
    t.remove_orphan_files(days_ago(1), enforce_retention_duration=False)
    assert made.files() == before.union(OTHERS)
    assert by_pylance(made) == by_us(made) == rows_before and t.version == max(rows_before), "no commit is made"


@pytest.mark.spec("L-124", "L-005")
def test_what_any_version_needs_stays_whatever_its_age(made):
    made.dataset().tags.create("gold", 1)
    made.dataset().create_branch("dev", 2).insert(rows(100))
    fragment = lance.fragment.LanceFragment.create(made.uri, rows(70))
    append = lance.LanceOperation.Append([fragment])
    detached = lance.LanceDataset.commit(made.uri, append, read_version=4, detached=True).version
    made.pylance(rows(50), mode="overwrite")
    expected, before = by_pylance(made), made.files()
    leave(made, *OTHERS)
    aged(made)
    for call in (made.open().remove_orphan_files, made.open().vacuum):
        assert call().paths == ()
    assert made.open().vacuum(0, enforce_retention_duration=False, mode="lite").files_removed
    assert by_pylance(made) == {v: expected[v] for v in (1, 2, 5)} and made.files() < before.union(OTHERS)
    assert ids(made.dataset(version=detached).to_table()) == [1, 3, 4, 70] and ids(of_branch(made, "dev")) == [
        1,
        2,
        3,
        4,
        100,
    ]
    aged(made)
    assert made.open().remove_orphan_files().paths == ()


@pytest.mark.spec("L-124")
def test_staged_manifests(made):
    """An external store may name one as the newest version; it is left over where a newer version is there."""
    expected = by_pylance(made)
    newest = made.manifests()[0]
    version = parse_name(newest.name).version
    staged = newest.with_name(f"{newest.name}-{UUID(int=5)}")
    body, fresh = newest.read_bytes(), lance.fragment.LanceFragment.create(made.uri, rows(70))
    path = fresh.files[0].path

    def with_file(m):
        file = replace(m.fragments[0].files[0], path=path, file_size_bytes=0)
        return replace(m, version=version + 1, fragments=(*m.fragments, replace(m.fragments[0], id=9, files=(file,))))

    following = newest.with_name(f"{(1 << 64) - 1 - version - 1:020}.manifest-{UUID(int=6)}")
    following.write_bytes(edited(newest, with_file))
    half = newest.with_name(f"{(1 << 64) - 1 - version - 2:020}.manifest-{UUID(int=7)}")
    half.write_bytes(body[:50])
    staged.write_bytes(body)
    aged(made)
    assert made.open().remove_orphan_files().paths == (f"_versions/{staged.name}",)
    assert following.exists() and half.exists() and (made.root / "data" / path).exists()
    following.unlink()
    assert made.open().remove_orphan_files().paths == (f"data/{path}",)
    assert by_pylance(made) == expected


def test_row_ids_in_a_file_of_the_data_folder(kit):
    kit.pylance(rows(1, 2, 3), enable_stable_row_ids=True)
    kept = []

    def external(m):
        kept.append(m.fragments[0].inline_row_ids)
        file = ExternalFile(path="data/ids.lance", size=len(kept[0]))
        return replace(m, fragments=(replace(m.fragments[0], inline_row_ids=None, external_row_ids=file),))

    kit.edit(external)
    (kit.root / "data/ids.lance").write_bytes(kept[0])
    leave(kit, "data/other.lance")
    aged(kit)
    assert kit.open().vacuum().paths == ("data/other.lance",)
    assert kit.open().to_arrow()["a"].to_pylist() == [1, 2, 3]


def test_an_append_while_it_looks(made, monkeypatch):
    """What is committed after the listing is known when the leftovers are removed."""
    original = LanceOrphans.kept

    def slow(self):
        made.open().append(rows(7))
        yield from original(self)

    monkeypatch.setattr(LanceOrphans, "kept", slow)
    leave(made, *LEFT)
    done = made.open().remove_orphan_files(LATER, enforce_retention_duration=False)
    assert sorted(done.paths) == sorted(LEFT)
    assert ids(made.dataset().to_table()) == [1, 3, 4, 7]


def test_vacuum_is_expiry_and_leftovers(made):
    leave(made, *LEFT, days=20)
    assert made.open().vacuum(mode="lite").files_removed == 0
    assert sorted(made.open().vacuum().paths) == sorted(LEFT)
    leave(made, *LEFT, days=3)
    t = made.open()
    done = t.vacuum(0, mode="lite", enforce_retention_duration=False)
    assert by_pylance(made) == {4: [1, 3, 4]} and not {*done.paths} & {*LEFT}
    assert sorted(t.vacuum(0, enforce_retention_duration=False).paths) == sorted(LEFT)


def test_a_folder_of_two_formats_is_refused(made):
    bh.write(rows(9), str(made.root.parent / "d"), format="delta")
    shutil.copytree(made.root.parent / "d" / "_delta_log", made.root / "_delta_log")
    before = made.files()
    for call in ("remove_orphan_files", "vacuum"):
        with pytest.raises(UnsupportedFeatureError, match="is a table of delta too"):
            getattr(made.open(), call)()
    assert made.files() == before


def test_tables_below_this_one_stay(made):
    lance.write_dataset(pa.table({"x": [1]}), str(made.root / "data" / "inner"))
    before = made.files()
    aged(made)
    assert made.open().vacuum().paths == () and made.files() == before

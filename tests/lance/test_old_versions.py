"""Versions that expire, and the files that go with them: on copies of one table pylance's cleanup removes the same."""

from __future__ import annotations

import datetime as dt
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.bits import system
from boathouse.errors import (
    CorruptTableError,
    InvalidArgumentError,
    MissingFileError,
    ReadOnlyError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from boathouse.lance.maintain.expiry import LanceExpiry
from boathouse.lance.maintain.settings import older_than_ms
from boathouse.lance.manifests.messages import Timestamp
from boathouse.lance.manifests.versions import parse_name
from boathouse.ops.files import expire
from boathouse.testing.clocks import Ahead

from .cleaned import LATER, by_pylance, by_us, cleaned_by_pylance, days_ago, edited, ids, of_branch, rows

lance = pytest.importorskip("lance")
DAY = 24
TWO_WEEKS = 14 * DAY


@pytest.fixture
def made(kit):
    """Six versions: of us and of pylance in turn, with a delete, a compaction and an overwrite."""
    kit.pylance(rows(1, 2, 3))
    kit.open().append(rows(4, 5))
    kit.dataset().delete("a = 2")
    kit.open().update({"s": "'x'"}, where="a = 4")
    kit.open().optimize()
    kit.pylance(rows(9), mode="append")
    assert kit.load().version == 6
    return kit


@pytest.mark.spec("L-124")
@pytest.mark.feature("expiry of versions", format="lance")
def test_only_what_the_newest_version_needs_stays(made):
    before, rows_before = made.files(), by_pylance(made)
    dry = made.open().expire_snapshots(LATER, dry_run=True)
    assert made.files() == before and dry.dry_run and dry.versions == (1, 2, 3, 4, 5)
    theirs, sizes = cleaned_by_pylance(made, older_than=dt.timedelta(0)), {f: os.stat(made.root / f) for f in before}
    t = made.open()
    done = t.expire_snapshots(LATER)
    assert made.files() == theirs == before - {*done.paths}
    assert set(dry.paths) == {*done.paths} and dry.bytes_removed == done.bytes_removed
    assert done.bytes_removed == sum(sizes[f].st_size for f in done.paths) and done.files_removed == len(done.paths)
    assert done.kinds.keys() == {"data", "position deletes", "manifest", "transaction"} and done.kinds["manifest"] == 5
    assert done.commit is None and t.version == 6 and not done.failed, "no commit is made"
    assert by_pylance(made) == by_us(made) == {6: rows_before[6]} == {6: [1, 3, 4, 5, 9]}
    t.append(rows(10))
    assert ids(made.dataset().to_table()) == [1, 3, 4, 5, 9, 10]
    assert made.open().expire_snapshots(retain_last=1).versions == (), "version 6 is younger than two weeks"


@pytest.mark.few(2)
@pytest.mark.spec("L-124")
@pytest.mark.parametrize("v2", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_same_files_go_as_by_pylance(kit, v2, seed):
    """Random histories of both, with tags, indices and stable row ids, whose old versions both remove."""
    draw, numbers = random.Random(seed * 2 + v2), np.random.default_rng(seed)
    kit.pylance(rows(*range(20)), enable_v2_manifest_paths=v2, enable_stable_row_ids=seed == 1)
    for step in range(12):
        some = sorted(numbers.choice(200, 5, replace=False).tolist())
        text = ", ".join(map(str, some))
        match draw.choice(["append", "delete", "update", "optimize", "theirs", "index", "compact", "overwrite", "tag"]):
            case "append":
                kit.open().append(rows(*some))
            case "delete":
                kit.open().delete(f"a IN ({text})")
            case "update":
                kit.open().update({"s": "'y'"}, where=f"a IN ({text})")
            case "optimize":
                kit.open().optimize()
            case "theirs":
                kit.pylance(rows(*some), mode="append")
            case "index":
                kit.dataset().create_scalar_index("a", "BTREE", replace=True)
            case "compact":
                kit.dataset().optimize.compact_files()
            case "overwrite" if step > 6:
                kit.pylance(rows(*some), mode="overwrite")
            case "tag":
                kit.dataset().tags.create(f"t{step}", draw.choice(kit.dataset().versions())["version"])
    before = by_pylance(kit)
    keep = draw.randrange(1, 4)
    theirs = cleaned_by_pylance(kit, older_than=dt.timedelta(0), retain_versions=keep)
    done = kit.open().expire_snapshots(LATER, retain_last=keep)
    assert kit.files() == theirs
    assert by_pylance(kit) == by_us(kit) == {v: found for v, found in before.items() if v not in done.versions}
    assert by_pylance(kit).keys() >= {
        *sorted(before)[-keep:],
        *(t["version"] for t in kit.dataset().tags.list().values()),
    }
    kit.dataset().cleanup_old_versions(older_than=dt.timedelta(0), error_if_tagged_old_versions=False)
    assert by_us(kit).keys() == {max(before), *(t["version"] for t in kit.dataset().tags.list().values())}
    assert kit.dataset().to_table(filter="a < 100").num_rows == kit.read(where="a < 100").num_rows


@pytest.mark.spec("L-124")
def test_ages_and_numbers(made):
    """By the clock of the manifests, not of the files; the newest version stays however old."""
    now = system.current().now_ms()
    for path in made.manifests():
        age = 7 - parse_name(path.name).version
        document = edited(path, lambda m, age=age: replace(m, timestamp=Timestamp.of_ms(now - age * 86_400_000)))
        path.write_bytes(document)
    t = made.open()
    with system.use(Ahead(1)):  # versions 1 to 6 are 6 to 1 days old, and an hour
        assert t.expire_snapshots(dry_run=True).versions == ()
        assert t.expire_snapshots(days_ago(3.5), dry_run=True).versions == (1, 2, 3)
        assert t.expire_snapshots(days_ago(3.5), retain_last=5, dry_run=True).versions == (1,)
        assert t.expire_snapshots(days_ago(3.5), snapshot_ids=[5], dry_run=True).versions == (1, 2, 3, 5)
        assert t.expire_snapshots(snapshot_ids=[2]).versions == (2,)
    assert by_pylance(made).keys() == by_us(made).keys() == {1, 3, 4, 5, 6}
    with system.use(Ahead(365 * DAY)):
        assert t.expire_snapshots(retain_last=2).versions == (1, 3, 4)
        assert t.vacuum().retention_hours == TWO_WEEKS
    assert by_pylance(made).keys() == {6}
    for wrong, error in (([6], InvalidArgumentError), ([2], VersionNotFoundError), ([77], VersionNotFoundError)):
        with pytest.raises(error):
            t.expire_snapshots(snapshot_ids=wrong)


@pytest.mark.spec("L-124")
def test_tags_hold_their_versions(made):
    made.dataset().tags.create("gold", 3)
    made.dataset().tags.create("old.1", 1)
    before = by_pylance(made)
    t = made.open()
    assert t.expire_snapshots(LATER).versions == (2, 4, 5)
    assert by_pylance(made) == by_us(made) == {v: before[v] for v in (1, 3, 6)}
    assert ids(made.dataset(version="gold").to_table()) == ids(made.open(ref="gold").to_arrow()) == before[3]
    with pytest.raises(InvalidArgumentError, match="version 3 is that of the tag 'gold', so it cannot expire"):
        t.expire_snapshots(snapshot_ids=[3])
    with pytest.raises(ReadOnlyError):
        made.open(ref="gold").vacuum()
    made.dataset().tags.delete("gold")
    assert t.expire_snapshots(LATER).versions == (3,)
    assert made.files() == cleaned_by_pylance(made, older_than=dt.timedelta(0))


@pytest.mark.spec("L-124")
def test_branches_keep_the_files_that_they_share(made):
    """Also a branch of a branch, and one whose beginning is long gone; what only the main line had goes."""
    first = made.dataset().create_branch("dev/x", 2)
    first.insert(rows(100))
    second = made.dataset().checkout_version(("dev/x", None)).create_branch("deep")
    second.delete("a = 4")
    third = made.dataset().create_branch("here")
    third.insert(rows(300))
    made.pylance(rows(50), mode="overwrite")
    kept = {name: ids(of_branch(made, name)) for name in ("dev/x", "deep", "here")}
    assert kept == {"dev/x": [1, 2, 3, 4, 5, 100], "deep": [1, 2, 3, 5, 100], "here": [1, 3, 4, 5, 9, 300]}
    done = made.open().expire_snapshots(LATER)
    assert done.versions == (1, 3, 4, 5), "branches begin at 2 and 6"
    assert by_pylance(made) == by_us(made) == {2: [1, 2, 3, 4, 5], 6: [1, 3, 4, 5, 9], 7: [50]}
    assert {name: ids(of_branch(made, name)) for name in kept} == kept
    assert {name: ids(made.open(ref=name).to_arrow()) for name in kept} == kept
    assert not any(path.startswith(("tree/", "_refs/")) for path in done.paths)
    with pytest.raises(InvalidArgumentError, match="version 2 is where the branch 'dev/x' begins"):
        made.open().expire_snapshots(snapshot_ids=[2])
    for name in ("deep", "dev/x", "here"):
        made.dataset().branches.delete(name)
    assert made.open().expire_snapshots(LATER).versions == (2, 6)
    assert made.files() == cleaned_by_pylance(made, older_than=dt.timedelta(0))


@pytest.mark.spec("L-124")
def test_branches_under_another_name_of_the_folder(made):
    """Base paths name the folder as it was when the branch was made: what is named alike stays."""
    made.dataset().create_branch("dev", 1)
    shared = {p for p in made.files() if p.startswith("data/")}
    (made.root / "_refs/branches/dev.json").unlink()
    moved = made.root.rename(made.root.parent / "moved")
    os.symlink(moved, made.root)
    made.root = moved
    made.pylance(rows(50), mode="overwrite")
    made.open().expire_snapshots(LATER)
    link = lance.dataset(str(moved.parent / "t" / "tree" / "dev"))
    assert ids(link.to_table()) == [1, 2, 3] and shared & made.files()


@pytest.mark.spec("L-124")
def test_detached_versions_keep_their_files(made):
    fragment = lance.fragment.LanceFragment.create(made.uri, rows(70))
    append = lance.LanceOperation.Append([fragment])
    detached = lance.LanceDataset.commit(made.uri, append, read_version=6, detached=True).version
    made.pylance(rows(50), mode="overwrite")
    assert made.open().expire_snapshots(LATER).versions == (1, 2, 3, 4, 5, 6)
    assert ids(made.dataset(version=detached).to_table()) == [1, 3, 4, 5, 9, 70]
    with system.use(Ahead(30 * DAY)):
        assert made.open().vacuum().files_removed == 0
    assert ids(made.dataset(version=detached).to_table()) == [1, 3, 4, 5, 9, 70]


@pytest.mark.spec("L-124")
def test_blobs_and_indices_go_with_what_needs_them(kit):
    def blobs(id):
        schema = pa.schema([("a", pa.int64()), lance.blob_field("b")])
        return pa.table({"a": [id], "b": lance.blob_array([bytes([id]) * 100_000])}, schema=schema)

    kit.pylance(blobs(1))
    kit.dataset().create_scalar_index("a", "BTREE")
    kit.pylance(blobs(2), mode="overwrite")
    kit.pylance(blobs(3), mode="append")
    kit.dataset().create_scalar_index("a", "BTREE")
    theirs = cleaned_by_pylance(kit, older_than=dt.timedelta(0))
    done = kit.open().expire_snapshots(LATER)
    assert kit.files() == theirs and done.kinds["index"] == 2 and done.kinds["data"] == 2
    assert [b.read()[0] for b in kit.dataset().take_blobs("b", indices=[0, 1])] == [2, 3]
    assert kit.dataset().to_table(filter="a = 3", columns=["a"]).num_rows == 1
    with system.use(Ahead(30 * DAY)):
        assert kit.open().vacuum().files_removed == 0


@pytest.mark.spec("L-124", "L-073")
def test_after_each_file_every_listed_version_is_whole(made, monkeypatch):
    """So it is after a crash at any of them; what was not removed yet goes with the orphans."""
    made.dataset().tags.create("gold", 3)
    expected, left, before = by_pylance(made), by_pylance(made), made.files()
    whole = cleaned_by_pylance(made, older_than=dt.timedelta(0))
    removed = []

    def one_by_one(stores, engine, uris):
        nonlocal left
        for uri in uris:
            Path(uri.removeprefix("file://")).unlink()
            removed.append(uri)
            left = by_pylance(made)
            assert left == by_us(made) == {v: expected[v] for v in left}
            if len(removed) == stop:
                raise KeyboardInterrupt
        return {}

    monkeypatch.setattr(expire, "remove", one_by_one)
    for stop in range(1, len(before - whole)):
        fresh = made.root.parent / "fresh"
        shutil.copytree(made.root, fresh)
        removed.clear()
        with pytest.raises(KeyboardInterrupt):
            made.open().expire_snapshots(LATER)
        assert len(removed) == stop and left.keys() >= {3, 6}
        with monkeypatch.context() as patch:
            patch.undo()
            with system.use(Ahead(8 * DAY)):
                t = made.open()
                t.vacuum(0, enforce_retention_duration=False)
        assert made.files() == whole and by_pylance(made) == {v: expected[v] for v in (3, 6)}
        shutil.rmtree(made.root)
        fresh.rename(made.root)


def test_a_version_that_cannot_be_removed_keeps_its_files(made, monkeypatch):
    expected, original = by_pylance(made), expire.remove
    stuck = next(str(p) for p in made.manifests() if parse_name(p.name).version == 2)

    def stubborn(stores, engine, uris):
        gone = [uri for uri in uris if not uri.endswith(stuck)]
        original(stores, engine, gone)
        return {uri: "no" for uri in uris if uri not in gone}

    monkeypatch.setattr(expire, "remove", stubborn)
    done = made.open().expire_snapshots(LATER)
    assert done.versions == (1, 3, 4, 5) and done.failed == ((f"file://{stuck}", "no"),)
    assert by_pylance(made) == by_us(made) == {v: expected[v] for v in (2, 6)}
    monkeypatch.undo()
    assert made.open().expire_snapshots(LATER).versions == (2,)
    assert made.files() == cleaned_by_pylance(made, older_than=dt.timedelta(0))


@pytest.mark.parametrize("what", ["tag", "branch", "restore", "append", "clean"])
def test_others_while_it_looks(made, monkeypatch, what):
    """What comes between the look and the removal keeps what it needs."""
    expected = by_pylance(made)
    original = LanceExpiry.documents

    def late(self, expired):
        match what:
            case "tag":
                made.dataset().tags.create("late", 2)
            case "branch":
                made.dataset().create_branch("late", 2)
            case "restore":
                made.dataset(version=2).restore()
            case "append":
                made.pylance(rows(77), mode="append")
            case "clean":
                made.dataset().cleanup_old_versions(older_than=dt.timedelta(0))
        return original(self, expired)

    monkeypatch.setattr(LanceExpiry, "documents", late)
    t = made.open()
    done = t.expire_snapshots(LATER)
    monkeypatch.undo()
    found = by_pylance(made)
    assert found == by_us(made)
    match what:
        case "tag" | "branch":
            assert done.versions == (1, 3, 4, 5) and found == {v: expected[v] for v in (2, 6)}
        case "restore":
            assert found == {6: expected[6], 7: expected[2]}
        case "append":
            assert found == {6: expected[6], 7: [*expected[6], 77]}
        case "clean":
            assert found == {6: expected[6]} and not done.failed
    if what == "branch":
        assert ids(of_branch(made, "late")) == expected[2]
    assert t.version == max(found)


@pytest.mark.spec("L-124", "L-055")
def test_readers_of_a_version_that_goes(made):
    t = made.open(version=3)
    made.open().expire_snapshots(LATER, retain_last=2)
    with pytest.raises(VersionNotFoundError, match="version 3 does not exist") as caught:
        made.open(version=3)
    assert caught.value.advice == "the retained versions are 5, 6"
    with pytest.raises(MissingFileError):
        t.to_arrow()
    with pytest.raises(VersionNotFoundError, match="no version is as old"):
        made.open(timestamp="2001-01-01")
    with pytest.raises(VersionNotFoundError):
        made.open().restore(3)
    assert [e.version for e in made.open().history()] == [6, 5]


def test_a_writer_that_began_before(made):
    """Its version has expired: it still lands, or says that what came in between is not known; nothing is lost."""
    made.open().append(rows(20))
    with made.overtaken_by(lambda: (made.open().append(rows(21)), made.open().expire_snapshots(LATER))):
        made.open().append(rows(22))
    assert ids(made.dataset().to_table()) == [1, 3, 4, 5, 9, 20, 21, 22]


@pytest.mark.spec("L-124")
@pytest.mark.feature("vacuum", format="lance")
def test_vacuum_means_the_same_as_for_other_formats(made):
    before = made.files()
    assert made.open().vacuum().files_removed == 0
    with pytest.raises(InvalidArgumentError, match="1 hours is less than the table's 336"):
        made.open().vacuum(1)
    with system.use(Ahead(TWO_WEEKS + 1)):
        dry = made.open().vacuum(dry_run=True)
        assert made.files() == before and dry.files_removed
        done = made.open().vacuum()
    assert {*dry.paths} == {*done.paths} and done.versions == () and done.retention_hours == TWO_WEEKS
    assert made.files() == before - {*done.paths} == cleaned_by_pylance(made, older_than=dt.timedelta(0))
    assert by_pylance(made) == {6: [1, 3, 4, 5, 9]}


@pytest.mark.spec("L-124")
def test_the_table_s_own_settings(made):
    """They are pylance's; they stay in the table, and our commits clean nothing by themselves."""
    options = {"lance.auto_cleanup.older_than": "3d 12h", "lance.auto_cleanup.retain_versions": "4",
               "lance.auto_cleanup.interval": "1"}  # fmt: skip
    made.open().set_properties(options)
    t = made.open()
    newest = t.version
    with system.use(Ahead(80)):
        assert t.vacuum().files_removed == 0
    with system.use(Ahead(85)):
        assert t.vacuum(dry_run=True, mode="lite").retention_hours == 84
        assert t.expire_snapshots(dry_run=True).versions == tuple(range(1, newest - 3))
        assert t.expire_snapshots(retain_last=2).versions == tuple(range(1, newest - 1))
        t.append(rows(30))
        assert len(by_us(made)) == 3
    assert made.open().properties.items() >= options.items()
    for name, value in (("older_than", "soon"), ("older_than", "3 fortnights"), ("retain_versions", "0")):
        made.open().set_properties({**options, f"lance.auto_cleanup.{name}": value})
        with pytest.raises(InvalidArgumentError, match=f"lance.auto_cleanup.{name} is '{value}'"):
            made.open().expire_snapshots(dry_run=True)


@pytest.mark.parametrize(
    ("text", "ms"),
    [("14d", 1_209_600_000), ("2weeks", 1_209_600_000), ("1h 30m", 5_400_000), ("90min", 5_400_000), ("500ms", 500),
     ("1d12h", 129_600_000), ("0s", 0), ("1month", 2_630_016_000), ("1M", 2_630_016_000), ("1 y", 31_557_600_000)],
)  # fmt: skip
def test_texts_of_durations(text, ms):
    assert older_than_ms({"lance.auto_cleanup.older_than": text}, "t") == ms


@pytest.mark.parametrize("text", ["", "d", "5", "5x", "-5d", "1.5d", "5d later", "d5"])
def test_texts_that_are_no_durations(text):
    with pytest.raises(InvalidArgumentError):
        older_than_ms({"lance.auto_cleanup.older_than": text}, "t")


def test_versions_that_cannot_be_read(made):
    """What a retained one needs would not be known, so nothing goes; an expired one goes by its number."""
    before = made.files()
    path = next(p for p in made.manifests() if parse_name(p.name).version == 5)
    original = path.read_bytes()
    path.write_bytes(original[:40])
    for call in (lambda t: t.expire_snapshots(LATER), lambda t: t.expire_snapshots(snapshot_ids=[2])):
        with pytest.raises(CorruptTableError, match="which files a version needs is not known") as caught:
            call(made.open())
        assert caught.value.where.endswith(path.name) and "expire_snapshots(snapshot_ids" in caught.value.advice
        assert made.files() == before
    path.write_bytes(edited(made.manifests()[2], lambda m: replace(m, version=5, reader_feature_flags=4096)))
    with pytest.raises(UnsupportedFeatureError, match="4096"):
        made.open().expire_snapshots(LATER)
    path.write_bytes(original[:40])
    done = made.open().expire_snapshots(LATER, snapshot_ids=[5])
    assert done.versions == (1, 2, 3, 4, 5) and by_pylance(made) == {6: [1, 3, 4, 5, 9]}
    assert made.files() >= {f for f in before if f.startswith("data/") and f in made.files()}


@pytest.mark.parametrize("text", ["[]", "{}", '{"parentVersion": "x"}', '{"parentVersion": 1, "parentBranch": 5}'])
def test_branches_that_cannot_be_read(made, text):
    path = made.root / "_refs/branches/dev.json"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    before = made.files()
    with pytest.raises(CorruptTableError, match=r"a branch (that|of)") as caught:
        made.open().expire_snapshots(LATER)
    assert caught.value.where.endswith("dev.json") and made.files() == before


def test_files_of_another_table_stay(kit):
    """A shallow clone names files of its source: the source does not know it, as with pylance."""
    kit.pylance(rows(1, 2))
    kit.pylance(rows(3), mode="append")
    clone = kit.root.parent / "clone"
    kit.dataset().shallow_clone(str(clone), 2)
    lance.write_dataset(rows(4), str(clone), mode="append")
    before = kit.files()
    bh.open(str(clone)).expire_snapshots(LATER)
    assert kit.files() == before and ids(lance.dataset(str(clone)).to_table()) == [1, 2, 3, 4]
    kit.dataset().delete("a = 1")
    kit.open().expire_snapshots(LATER)
    assert ids(lance.dataset(str(clone)).to_table()) == [1, 2, 3, 4]
    kit.pylance(rows(9), mode="overwrite")
    kit.open().expire_snapshots(LATER)
    with pytest.raises((OSError, pa.ArrowInvalid)):
        lance.dataset(str(clone)).to_table()

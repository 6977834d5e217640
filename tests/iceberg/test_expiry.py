"""Snapshots that expire, and the files that go with them: by rules that are written down a second time here, and files
that fastavro finds."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from foreign_writer import Foreign
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import InvalidArgumentError, MissingFileError, UnsupportedFeatureError, VersionNotFoundError
from boathouse.iceberg.maintain.expiry import IcebergExpiry
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.ops.files import expire
from boathouse.table.features import ExpiryRule

DAY = 24 * 3_600_000
NOW = 1_000 * DAY
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
LATER = "2100-01-01"
MODES = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}


def rows(*ids):
    return pa.table({"id": list(ids), "p": [f"p{i % 2}" for i in ids]}, SCHEMA)


def reachable(foreign, document=None):
    """What snapshots need, as fastavro reads it: paths below the table's root."""
    document = document or foreign.document
    found = set()
    for snapshot in document["snapshots"]:
        found.add(snapshot["manifest-list"])
        for row in foreign._avro(snapshot["manifest-list"]):
            found.add(row["manifest_path"])
            found |= {e["data_file"]["file_path"] for e in foreign._avro(row["manifest_path"]) if e["status"] != 2}
    for name in ("statistics", "partition-statistics"):
        found |= {s["statistics-path"] for s in document.get(name) or []}
    return {str(Path(p.removeprefix("file://")).relative_to(foreign.root)) for p in found}


def on_disk(foreign):
    """The files, but for metadata documents."""
    found = (p.relative_to(foreign.root) for p in foreign.root.rglob("*") if p.is_file())
    return {str(p) for p in found if not p.name.endswith((".metadata.json", ".crc", "hint.text"))}


def read_by_pyiceberg(foreign):
    """The ids of each snapshot."""
    table = StaticTable.from_metadata(f"file://{foreign.head}")
    ids = (s.snapshot_id for s in table.snapshots())
    return {id: sorted(table.scan(snapshot_id=id).to_arrow()["id"].to_pylist()) for id in ids}


def read_by_us(foreign):
    return {
        s["snapshot-id"]: sorted(bh.open(str(foreign.root), version=s["snapshot-id"]).to_arrow()["id"].to_pylist())
        for s in foreign.document["snapshots"]
    }


# ---- which snapshots


def history(refs, times, properties=None):
    """A table with snapshots 1, 2, ... (ages in days by parent: `{id: (parent, days)}`), and these refs."""
    snapshots = [
        {"snapshot-id": id, "timestamp-ms": int(NOW - days * DAY), **({"parent-snapshot-id": p} if p else {})}
        for id, (p, days) in times.items()
    ]
    document = {"format-version": 2, "snapshots": snapshots, "refs": refs, "properties": properties or {},
                "current-snapshot-id": refs["main"]["snapshot-id"]}  # fmt: skip
    return TableMetadata(document, "file:///t/metadata/v9.metadata.json")


def branch(id, **settings):
    return {"type": "branch", "snapshot-id": id, **{k.replace("_", "-"): v for k, v in settings.items()}}


def tag(id, **settings):
    return branch(id, **settings) | {"type": "tag"}


class Fixed:
    """What a rule is asked of."""

    def __init__(self, metadata):
        self.metadata, self.properties, self.token = metadata, metadata.properties, metadata.uri


def due(metadata, **rule):
    found = IcebergExpiry(Fixed(metadata)).due(ExpiryRule(**rule), NOW)
    return set(metadata.snapshots) - set(found.versions), set(found.refs)


LINE = {1: (None, 20), 2: (1, 15), 3: (2, 10), 4: (3, 6), 5: (4, 2), 6: (5, 1)}
FORK = LINE | {7: (3, 9), 8: (7, 8), 9: (2, 3)}
"""8 is on a branch from 3; 9 comes from 2, and is staged."""


@pytest.mark.spec("I-224", "I-225")
@pytest.mark.parametrize(
    ("refs", "rule", "properties", "kept"),
    [
        ({"main": branch(6)}, {}, {}, {5, 6}),
        ({"main": branch(6)}, {"keep": 4}, {}, {3, 4, 5, 6}),
        ({"main": branch(6)}, {"before_ms": NOW}, {}, {6}),
        ({"main": branch(6)}, {"before_ms": NOW - 6 * DAY}, {}, {4, 5, 6}),
        ({"main": branch(6)}, {}, {"history.expire.max-snapshot-age-ms": str(12 * DAY)}, {3, 4, 5, 6}),
        ({"main": branch(6)}, {}, {"history.expire.min-snapshots-to-keep": "5"}, {2, 3, 4, 5, 6}),
        ({"main": branch(6)}, {"keep": 1}, {"history.expire.min-snapshots-to-keep": "5"}, {5, 6}),
        ({"main": branch(6, min_snapshots_to_keep=3)}, {"keep": 1, "before_ms": NOW}, {}, {4, 5, 6}),
        ({"main": branch(6, max_snapshot_age_ms=8 * DAY)}, {"before_ms": NOW}, {}, {4, 5, 6}),
        ({"main": branch(6), "t": tag(2)}, {"before_ms": NOW}, {}, {2, 6}),
        ({"main": branch(6)}, {"versions": frozenset({5})}, {}, {6}),
    ],
)
def test_what_a_branch_retains(refs, rule, properties, kept):
    assert due(history(refs, LINE, properties), **rule) == (kept, set())


@pytest.mark.spec("I-224")
def test_branches_and_what_is_on_none():
    refs = {"main": branch(6), "dev": branch(8, min_snapshots_to_keep=2)}
    assert due(history(refs, FORK)) == ({5, 6, 7, 8, 9}, set()), "9 is young, and may be cherry-picked"
    assert due(history(refs, FORK), before_ms=NOW) == ({6, 7, 8}, set())
    refs["dev"] = branch(8, max_snapshot_age_ms=30 * DAY)
    assert due(history(refs, FORK), before_ms=NOW) == ({1, 2, 3, 6, 7, 8}, set())


@pytest.mark.spec("I-223", "I-225")
def test_refs_that_are_too_old():
    refs = {"main": branch(6, max_ref_age_ms=1), "old": tag(1, max_ref_age_ms=19 * DAY), "kept": tag(2)}
    assert due(history(refs, FORK)) == ({2, 5, 6, 9}, {"old"}), "main never expires"
    limited = {"history.expire.max-ref-age-ms": str(5 * DAY)}
    assert due(history(refs, FORK, limited)) == ({5, 6, 9}, {"old", "kept"})
    refs = {"main": branch(6), "dev": branch(8), "lost": tag(77)}
    assert due(history(refs, FORK, limited)) == ({5, 6, 9}, {"dev", "lost"})


def retained(metadata, rule, age, fewest):
    """The rules a second time: sets instead of a walk."""
    young = {id for id, s in metadata.snapshots.items() if s["timestamp-ms"] >= NOW - age}
    kept, known = set(), set()
    for ref in metadata.refs.values():
        line = [int(s["snapshot-id"]) for s in metadata.ancestors(ref["snapshot-id"])]
        if ref["type"] == "tag":
            kept.add(line[0])
            known.add(line[0])
            continue
        known |= set(line)
        first_old = next((i for i, id in enumerate(line) if id not in young), len(line))
        kept |= set(line[: max(first_old, fewest)]) | {line[0]}
    return kept | (young - known)


@pytest.mark.spec("I-224")
@pytest.mark.parametrize("seed", range(40))
def test_random_histories(seed):
    random.seed(seed)
    times, days = {}, 40.0
    for id in range(1, random.randint(2, 14)):
        days -= random.choice([0, 0.5, 3])
        times[id] = (random.choice([None, *times]) if times else None, days)
    refs = {"main": branch(random.choice(list(times)))}
    for i in range(random.randint(0, 3)):
        refs[f"r{i}"] = random.choice([branch, tag])(random.choice(list(times)))
    age, fewest = random.choice([0, 35, 37, 39]) * DAY, random.randint(1, 4)
    metadata = history(refs, times)
    rule = {"before_ms": NOW - age, "keep": fewest}
    assert due(metadata, **rule)[0] == retained(metadata, rule, age, fewest)


def test_what_cannot_expire():
    metadata = history({"main": branch(6), "t": tag(3)}, LINE)
    with pytest.raises(InvalidArgumentError, match="snapshot 3 is that of 't'"):
        due(metadata, versions=frozenset({3}))
    with pytest.raises(VersionNotFoundError, match="snapshot 77"):
        due(metadata, versions=frozenset({77}))
    with pytest.raises(InvalidArgumentError, match=r"min-snapshots-to-keep is 'two'"):
        due(history({"main": branch(6)}, LINE, {"history.expire.min-snapshots-to-keep": "two"}))


# ---- which files


@pytest.fixture(params=["1", "2", "3"])
def version(request):
    return request.param


@pytest.fixture
def table(tmp_path, version):
    """Three appends, a delete, a compaction, an overwrite of some rows, another append."""
    path = str(tmp_path / "a täble")
    properties = {"format-version": version} | ({} if version == "1" else MODES)
    t = bh.create(path, SCHEMA, format="iceberg", partition_by=["p"], properties=properties)
    for i in range(3):
        t.append(rows(*range(10 * i, 10 * i + 10)))
    t.delete("id IN (1, 2, 11)")
    t.optimize()
    t.delete("id IN (21, 22)")
    t.overwrite(rows(*range(30, 40, 2)), where="p = 'p0'")
    t.append(rows(50))
    return t


@pytest.fixture
def foreign(table):
    return Foreign(table.uri.removeprefix("file://"))


@pytest.mark.spec("I-226", "I-010")
@pytest.mark.feature("expiry of versions", format="iceberg")
def test_files_go_that_no_snapshot_needs(table, foreign):
    before, disk = read_by_pyiceberg(foreign), on_disk(foreign)
    assert disk == reachable(foreign), "no commit removes a file"
    dry = table.expire_snapshots(LATER, retain_last=2, dry_run=True)
    assert on_disk(foreign) == disk and dry.commit is None and len(dry.versions) == len(before) - 2
    done = table.expire_snapshots(LATER, retain_last=2, message="old")
    assert (done.versions, sorted(done.paths), done.kinds) == (dry.versions, sorted(dry.paths), dry.kinds)
    assert set(done.paths) == disk - on_disk(foreign) and on_disk(foreign) == reachable(foreign)
    assert done.files_removed == sum(done.kinds.values()) == len(done.paths) and not done.failed
    assert done.kinds["data"] > 3 and done.kinds["manifest list"] == len(done.versions)
    assert read_by_pyiceberg(foreign) == read_by_us(foreign)
    assert read_by_pyiceberg(foreign) == {id: ids for id, ids in before.items() if id not in done.versions}
    newest = table.history()[0]
    assert (newest.operation, newest.message, newest.metadata_only) == ("expire", "old", True)
    assert newest.metrics == {"versions": len(done.versions), "refs": 0}
    with pytest.raises(VersionNotFoundError, match="expired"):
        bh.open(table.uri, version=done.versions[0])
    again = table.expire_snapshots(LATER, retain_last=2)
    assert (again.versions, again.commit, again.files_removed) == ((), None, 0)
    table.append(rows(60))
    assert 60 in read_by_pyiceberg(foreign)[table.version]


@pytest.mark.few(3)
@pytest.mark.spec("I-226")
@pytest.mark.parametrize("seed", range(3))
def test_random_expiries(table, foreign, seed):
    """Branches, tags, and rules by chance: what is left is what some snapshot needs, and reads as before."""
    random.seed(seed)
    ids = [s["snapshot-id"] for s in foreign.document["snapshots"]]

    def fork(document):
        for i in range(random.randint(0, 3)):
            document["refs"][f"r{i}"] = random.choice([branch, tag])(random.choice(ids))

    foreign.edit(fork)
    before = read_by_us(foreign)
    t = bh.open(table.uri)
    for _ in range(2):
        heads = {r["snapshot-id"] for r in foreign.document["refs"].values()}
        free = [s["snapshot-id"] for s in foreign.document["snapshots"] if s["snapshot-id"] not in heads]
        picked = random.sample(free, min(len(free), random.randint(0, 2)))
        t.expire_snapshots(random.choice([None, LATER]), retain_last=random.randint(1, 4), snapshot_ids=picked)
        assert on_disk(foreign) == reachable(foreign)
        left = {s["snapshot-id"] for s in foreign.document["snapshots"]}
        assert heads <= left and not left & set(picked)
        assert read_by_us(foreign) == read_by_pyiceberg(foreign) == {id: before[id] for id in left}
    t.append(rows(70))
    assert 70 in read_by_pyiceberg(foreign)[t.version]


@pytest.mark.spec("I-227")
def test_the_log_begins_after_the_last_that_expired(table, foreign):
    log = [e["snapshot-id"] for e in foreign.document["snapshot-log"]]
    foreign.edit(lambda d: d["refs"].update({"t": tag(log[1])}))
    bh.open(table.uri).expire_snapshots(LATER, retain_last=3)
    assert [e["snapshot-id"] for e in foreign.document["snapshot-log"]] == log[-3:], "what it says of a time is true"
    assert log[1] in [s["snapshot-id"] for s in foreign.document["snapshots"]]


@pytest.mark.spec("I-249")
def test_statistics_go_with_their_snapshots_unless_they_are_shared(table, foreign):
    ids = [s["snapshot-id"] for s in foreign.document["snapshots"]]
    for name in ("own", "shared", "head", "by-partition"):
        (foreign.root / "metadata" / f"{name}.puffin").write_bytes(b"x" * 7)

    def describe(document):
        def of(id, name):
            return {"snapshot-id": id, "statistics-path": f"file://{foreign.root}/metadata/{name}.puffin",
                    "file-size-in-bytes": 7}  # fmt: skip

        more = {"file-footer-size-in-bytes": 3, "blob-metadata": []}
        named = [(ids[0], "own"), (ids[1], "shared"), (ids[-1], "shared"), (ids[2], "head")]
        document["statistics"] = [of(id, name) | more for id, name in named]
        document["partition-statistics"] = [of(ids[3], "by-partition")]
        document["refs"]["t"] = tag(ids[2])

    foreign.edit(describe)
    done = bh.open(table.uri).expire_snapshots(LATER)
    assert done.kinds["statistics"] == 2
    assert {p.name for p in (foreign.root / "metadata").glob("*.puffin")} == {"shared.puffin", "head.puffin"}
    assert [s["snapshot-id"] for s in foreign.document["statistics"]] == [ids[-1], ids[2]]
    assert foreign.document["partition-statistics"] == [] and on_disk(foreign) == reachable(foreign)


@pytest.mark.spec("I-228")
def test_a_crash_after_the_commit_leaves_orphans(table, foreign, monkeypatch):
    def die(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(expire, "remove", die)
        with pytest.raises(KeyboardInterrupt):
            table.expire_snapshots(LATER)
    left = on_disk(foreign)
    assert len(foreign.document["snapshots"]) == 1 and left > reachable(foreign)
    t = bh.open(table.uri)
    assert t.expire_snapshots(LATER).files_removed == 0, "nothing knows them any more"
    gone = t.remove_orphan_files(LATER, enforce_retention_duration=False)
    assert set(gone.paths) == left - reachable(foreign) and on_disk(foreign) == reachable(foreign)
    assert read_by_pyiceberg(foreign) == read_by_us(foreign)


def test_a_file_that_cannot_be_removed_is_reported(table, foreign, monkeypatch):
    from boathouse.ops.tasks import remove

    refused = set()

    def most(task, original=remove.remove_files):
        first, *others = task.uris
        refused.add(first)
        yield from original(type(task)(task.files, tuple(others)))
        yield pa.RecordBatch.from_pylist([{"uri": first, "error": "no permission"}], remove.FAILED)

    monkeypatch.setattr("boathouse.ops.files.remove.remove_files", most)
    done = table.expire_snapshots(LATER)
    assert dict(done.failed) == dict.fromkeys(refused, "no permission") and "no permission" in repr(done)
    assert on_disk(foreign) == reachable(foreign) | {
        str(Path(uri.removeprefix("file://")).relative_to(foreign.root)) for uri in refused
    }


def test_nothing_expires_if_what_stays_is_damaged(table, foreign):
    head = next(s for s in foreign.document["snapshots"] if s["snapshot-id"] == table.version)
    manifest = foreign._avro(head["manifest-list"])[0]["manifest_path"]
    Path(manifest.removeprefix("file://")).rename(foreign.root / "away")
    before = foreign.document
    with pytest.raises(MissingFileError, match="metadata names is missing"):
        bh.open(table.uri).expire_snapshots(LATER)
    assert foreign.document == before and on_disk(foreign) - {"away"} == reachable_paths(foreign)


def reachable_paths(foreign):
    return {p for p in on_disk(foreign) if p != "away"}


def test_what_is_missing_of_a_snapshot_that_expires_does_not_matter(table, foreign, caplog):
    first = foreign.document["snapshots"][0]
    Path(first["manifest-list"].removeprefix("file://")).unlink()
    with caplog.at_level("WARNING", "boathouse"):
        done = bh.open(table.uri).expire_snapshots(LATER)
    assert first["snapshot-id"] in done.versions and f"what snapshot {first['snapshot-id']} alone needs" in caplog.text
    assert len(read_by_pyiceberg(foreign)) == 1


@pytest.mark.parametrize("call", ["expire_snapshots", "remove_orphan_files", "vacuum"])
def test_files_of_several_tables_stay(table, foreign, call):
    table.set_properties({"gc.enabled": "false"})
    before = on_disk(foreign)
    with pytest.raises(UnsupportedFeatureError, match=r"gc\.enabled is false"):
        getattr(table, call)()
    assert on_disk(foreign) == before


# ---- beside others


def test_an_append_beside_it(table, foreign, monkeypatch):
    """It comes between the plan and the commit: the expiry is planned again, and what the append wrote stays."""
    original, left = IcebergExpiry.due, [2]

    def slow(self, rule, now_ms):
        found = original(self, rule, now_ms)
        if left[0]:
            left[0] -= 1
            bh.open(table.uri).append(rows(80 + left[0]))
        return found

    monkeypatch.setattr(IcebergExpiry, "due", slow)
    done = bh.open(table.uri).expire_snapshots(LATER)
    (kept,) = read_by_pyiceberg(foreign).values()
    assert {80, 81} <= set(kept) and len(done.versions) == 9 and on_disk(foreign) == reachable(foreign)


def test_it_comes_beside_an_append(table, foreign, monkeypatch):
    """Planned before the expiry and committed after it."""
    from boathouse.ops.rows.append import Append

    t, original = bh.open(table.uri), Append.plan

    def slow(self, start):
        planned = original(self, start)
        monkeypatch.setattr(Append, "plan", original)
        bh.open(table.uri).append(rows(90))
        bh.open(table.uri).expire_snapshots(LATER)
        return planned

    monkeypatch.setattr(Append, "plan", slow)
    t.append(rows(91))
    assert {90, 91} <= set(read_by_pyiceberg(foreign)[t.version])
    assert reachable(foreign) <= on_disk(foreign)


def test_a_tag_that_is_made_meanwhile_holds_its_snapshot(table, foreign, monkeypatch):
    first = foreign.document["snapshots"][0]["snapshot-id"]
    original = IcebergExpiry.due

    def slow(self, rule, now_ms):
        found = original(self, rule, now_ms)
        if "held" not in foreign.document["refs"]:
            foreign.edit(lambda d: d["refs"].update({"held": tag(first)}))
        return found

    monkeypatch.setattr(IcebergExpiry, "due", slow)
    t = bh.open(table.uri)
    before = read_by_us(foreign)[first]
    assert first not in t.expire_snapshots(LATER).versions
    assert sorted(bh.open(table.uri, ref="held").to_arrow()["id"].to_pylist()) == before


@pytest.mark.parametrize("threads", [2])
def test_writers_and_an_expiry_at_once(tmp_path, threads):
    """Ten appends while another handle expires everything it can: every row is there, and no file too few."""
    from concurrent.futures import ThreadPoolExecutor

    path = str(tmp_path / "t")
    bh.create(path, SCHEMA, format="iceberg")

    def write(n):
        for i in range(5):
            bh.open(path).append(rows(n * 100 + i))

    def clean():
        for _ in range(8):
            bh.open(path).expire_snapshots(LATER)

    with ThreadPoolExecutor(threads + 1) as pool:
        for done in [*(pool.submit(write, n) for n in range(threads)), pool.submit(clean)]:
            done.result()
    t, foreign = bh.open(path), Foreign(tmp_path / "t")
    wanted = sorted(n * 100 + i for n in range(threads) for i in range(5))
    assert sorted(t.to_arrow()["id"].to_pylist()) == wanted == read_by_pyiceberg(foreign)[t.version]
    assert reachable(foreign) <= on_disk(foreign)

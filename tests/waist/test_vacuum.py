"""Vacuum: what no retained version needs goes, and nothing else does."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from peers import PEERS, by_peer

import boathouse as bh
from boathouse import errors
from boathouse.bits import system
from boathouse.ops.files import vacuum
from boathouse.ops.tasks import remove
from boathouse.testing.clocks import HOUR_MS, Ahead
from makers.traits import REAL, TRAITS, Traits

DAY = 24


@pytest.fixture(params=["toy", "delta", "delta-vectors", "delta-mapped"])
def made(request, tmp_path, make_people, properties_of):
    """A table with rows of three appends, of which those below 9 are deleted and those from 20 replaced."""
    format, properties = request.param.partition("-")[0], properties_of(request.param)
    uri = str(tmp_path / "täble")
    bh.create(uri, make_people(0, 1).schema, format=format, partition_by="city", properties=properties)
    t = bh.open(uri, format=format)
    for i in range(0, 30, 10):
        t.append(make_people(i, i + 10))
    t.delete("id < 9")
    t.overwrite(make_people(20, 25), where="id >= 20")
    return t


@pytest.fixture
def traits(made) -> Traits:
    return TRAITS[made.format]


def files(t) -> set[str]:
    """Every file in the table's folder except its log, by path."""
    root = Path(t.uri.removeprefix("file://"))
    found = (p.relative_to(root) for p in root.rglob("*") if p.is_file())
    return {str(p) for p in found if p.parts[0] != "_delta_log"}


def ids(t) -> list[int]:
    return sorted(t.scan(["id"]).to_arrow()["id"].to_pylist())


def theirs(uri: str) -> list[int]:
    """The ids that deltalake reads."""
    table = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(uri)).execute("select id from t")
    return sorted(pa.table(table)["id"].to_pylist())


def check(t) -> None:
    """We and the format's own library read exactly these rows, and every file is there."""
    for found in (bh.open(t.uri, format=t.format).to_arrow(), by_peer(t.uri, t.format)):
        assert sorted(found["id"].to_pylist()) == list(range(9, 25))


def needed(t) -> set[str]:
    """The files of the newest version: of data, and of vectors."""
    live = set()
    for batch in t._handle.snapshot.files():
        for row in batch.to_pylist():
            paths = [part["path"] for part in row["parts"] or ()] or [row["path"]]
            live |= {p.removeprefix(f"{t.uri}/") for p in paths}
            if (row["native"].get("deletionVector") or {}).get("storageType") == "u":
                live |= {f for f in files(t) if f.startswith("deletion_vector")}
    return live


@pytest.mark.spec("D-120", "D-003")
def test_nothing_goes_while_it_is_retained(made):
    before, version = files(made), made.version
    result = made.vacuum()
    assert (result.files_removed, result.bytes_removed, result.paths) == (0, 0, ())
    assert files(made) == before and result.retention_hours == 7 * DAY
    assert ids(bh.open(made.uri, format=made.format, version=version - 2)) == list(range(30))
    check(made)


@pytest.mark.spec("D-120")
@pytest.mark.feature("vacuum", format="delta")
def test_after_the_retention_only_the_files_of_the_newest_version_stay(made):
    before, keep = files(made), needed(made)
    assert keep < before
    sizes = {f: (Path(made.uri.removeprefix("file://")) / f).stat().st_size for f in before}
    with system.use(Ahead(8 * DAY)):
        dry = made.vacuum(dry_run=True)
        assert files(made) == before and made.refresh().history(1)[0].operation not in ("vacuum-start", "VACUUM END")
        result = made.vacuum()
    assert files(made) == keep
    assert set(result.paths) == set(dry.paths) == before - keep
    assert result.files_removed == dry.files_removed == len(before - keep)
    assert result.bytes_removed == dry.bytes_removed == sum(sizes[f] for f in before - keep)
    assert dry.versions == () and "dry run" in repr(dry) and "dry run" not in repr(result)
    assert len(result.versions) == 2 and made.version == result.versions[1]
    check(made)
    made.append(pa.table({"id": [25], "name": ["x"], "score": [1.0], "city": ["Oslo"]}))
    assert ids(made) == list(range(9, 26))


def test_versions_within_the_retention_are_still_read(made):
    kept = made.version
    with system.use(Ahead(5 * DAY)):
        made.delete("id < 20")
    with system.use(Ahead(8 * DAY)):
        removed = made.vacuum()
        assert removed.files_removed > 0
        assert ids(made) == list(range(20, 25))
        assert ids(bh.open(made.uri, format=made.format, version=kept)) == list(range(9, 25))
    with system.use(Ahead(13 * DAY)):
        assert made.vacuum().files_removed > 0
        assert files(made) == needed(made)


def test_a_short_retention_has_to_be_confirmed(made):
    before = files(made)
    for retention in (0, 1.5, dt.timedelta(days=6)):
        with pytest.raises(errors.InvalidArgumentError, match="less than the table's 168") as caught:
            made.vacuum(retention)
        assert "enforce_retention_duration=False" in caught.value.advice and caught.value.where == made.uri
    assert files(made) == before
    with system.use(Ahead(0.1)):
        result = made.vacuum(dt.timedelta(0), enforce_retention_duration=False)
    assert result.files_removed and files(made) == needed(made)
    check(made)


@pytest.mark.parametrize("retention", [-1, float("nan"), float("inf"), "7 days", True, dt.timedelta(hours=-1)])
def test_retentions_that_are_none(made, retention):
    with pytest.raises(errors.InvalidArgumentError, match="is not a duration"):
        made.vacuum(retention)
    with pytest.raises(errors.InvalidArgumentError, match="full or lite"):
        made.vacuum(mode="half")


def test_files_that_nobody_committed_go_once_they_are_old(made, traits):
    folder = next(f for f in sorted(files(made)) if f.endswith(traits.data_suffix)).rpartition("/")[0]
    stray = Path(made.uri.removeprefix("file://")) / folder / "stray.parquet"
    stray.write_bytes(b"12345")
    made.vacuum()
    assert stray.exists()
    with system.use(Ahead(8 * DAY)):
        assert f"{folder}/stray.parquet".lstrip("/") in made.vacuum().paths
    assert not stray.exists()


def test_lite_removes_what_the_log_says_and_lists_nothing(made, traits, monkeypatch):
    root = Path(made.uri.removeprefix("file://"))
    stray = root / traits.data_folder / "stray.parquet"
    stray.write_bytes(b"x")
    before, keep = files(made), needed(made)
    with system.use(Ahead(8 * DAY)):
        dry = made.vacuum(mode="lite", dry_run=True)
        assert set(dry.paths) == before - keep - {str(stray.relative_to(root))}
        assert dry.bytes_removed == sum((root / p).stat().st_size for p in dry.paths)
        made.vacuum(mode="lite")
        assert files(made) == keep | {str(stray.relative_to(root))}
        assert made.vacuum(mode="lite").paths == ()
    check(made)


def forget_the_first(t) -> None:
    PEERS[t.format].forget(t.uri, len(t.history()) - 1)


def test_lite_is_refused_where_the_history_was_cleaned(made, traits):
    with system.use(Ahead(8 * DAY)):
        forget_the_first(made)
        before = files(made)
        with pytest.raises(errors.VersionNotFoundError):
            made.vacuum(mode="lite")
        assert files(made) == before
        made.vacuum()
        assert files(made) == needed(made)
        if traits.records_vacuums:
            made.delete("id < 12")
            forget_the_first(made)
            with system.use(Ahead(16 * DAY)):
                made.vacuum(mode="lite")
            assert files(made) == needed(made)


def test_failures_are_reported_and_do_not_stop_the_rest(made, traits, monkeypatch):
    keep = needed(made)
    stuck = sorted(f for f in files(made) - keep)[0]
    real = remove.RemoveTask

    class Broken:
        def __init__(self, files) -> None:
            self.files = files

        def delete(self, uri: str) -> None:
            if uri.endswith(stuck):
                raise errors.StorageError("Permission denied", where=uri)
            self.files.delete(uri)

    monkeypatch.setattr("boathouse.ops.files.remove.RemoveTask", lambda files, uris: real(Broken(files), uris))
    with system.use(Ahead(8 * DAY)):
        result = made.vacuum()
    assert result.failed == ((stuck, "Permission denied"),) and stuck not in result.paths
    assert files(made) == keep | {stuck} and "1 could not be removed" in repr(result)
    if traits.records_vacuums:
        entry = made.history(1)[0]
        assert (entry.operation, entry.parameters) == ("VACUUM END", {"status": "FAILED"})
        assert not (Path(made.uri.removeprefix("file://")) / "_delta_log" / "_last_vacuum_info").exists()
    check(made)


def test_a_pinned_table_and_one_that_may_not_be_written_are_not_vacuumed(made, monkeypatch):
    with pytest.raises(errors.ReadOnlyError):
        bh.open(made.uri, format=made.format, version=made.version).vacuum(dry_run=True)
    monkeypatch.setenv("BOATHOUSE_READ_ONLY", "1")
    with pytest.raises(errors.ReadOnlyError):
        made.vacuum()


def test_a_file_that_a_commit_brings_back_meanwhile_stays(made, monkeypatch):
    """A concurrent commit between the listing and the start."""
    other = bh.open(made.uri, format=made.format)
    calls = []

    def between(real):
        def found(*args):
            garbage = real(*args)
            calls.append(1)
            other.append(pa.table({"id": [30], "name": ["x"], "score": [1.0], "city": ["Oslo"]}))
            return garbage

        return found

    monkeypatch.setattr(vacuum, "listed", between(vacuum.listed))
    with system.use(Ahead(8 * DAY)):
        made.vacuum()
    assert calls and files(made) == needed(made)
    assert ids(made) == [*range(9, 25), 30]


@pytest.fixture
def delta(tmp_path, make_people):
    uri = str(tmp_path / "t")
    bh.create(uri, make_people(0, 1).schema)
    t = bh.open(uri)
    t.append(make_people(0, 5))
    t.overwrite(make_people(9, 25))
    return t


@pytest.mark.spec("D-012")
def test_hidden_folders_stay_and_old_changes_go(delta):
    root = Path(delta.uri.removeprefix("file://"))
    hidden = ["_delta_index/a.bin", ".hidden/b", "x/_c/d", "_e", ".f.parquet", "x/.g", "metadata/v1.metadata.json"]
    seen = ["_change_data/h.parquet", "x/i", "j", "x=1/_change_data=2/k"]
    for path in (*hidden, *seen):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"x")
    log = sorted((root / "_delta_log").iterdir())
    with system.use(Ahead(8 * DAY)):
        result = delta.vacuum()
    assert {p for p in result.paths if not p.endswith(".parquet") or "/" in p} == set(seen) - {"x=1/_change_data=2/k"}
    assert all((root / path).exists() for path in (*hidden, "x=1/_change_data=2/k"))
    assert set(log) < set((root / "_delta_log").iterdir())
    check(delta)


def test_a_partition_column_whose_name_begins_with_an_underscore(tmp_path):
    rows = pa.table({"id": [1, 2, 3], "_pé": ["a b", "c%20d", None]})
    uri = str(tmp_path / "t")
    bh.write(rows, uri, partition_by="_pé")
    t = bh.open(uri)
    t.overwrite(rows)
    assert len(files(t)) == 6
    with system.use(Ahead(8 * DAY)):
        assert t.vacuum().files_removed == 3
    assert len(files(t)) == 3 and sorted(t.to_arrow()["id"].to_pylist()) == [1, 2, 3] == theirs(uri)


def test_paths_that_look_encoded_belong_to_the_table(tmp_path):
    values = ["a%20b", "a b", "a/b", "ä#é?", "50%", "x=y", "..", "a+b", ""]
    rows = pa.table({"id": range(len(values)), "p": values})
    uri = str(tmp_path / "t")
    deltalake.write_deltalake(uri, rows, partition_by=["p"])
    bh.write(rows, f"{uri}2", partition_by="p")
    for path in (uri, f"{uri}2"):
        t = bh.open(path)
        before = files(t)
        with system.use(Ahead(8 * DAY)):
            assert t.vacuum().paths == ()
        assert files(t) == before and ids(t) == list(range(len(values))) == theirs(path)


def test_names_that_the_log_spells_otherwise(delta):
    """A path with `..`, one that is absolute, and the table's folder by another name."""
    root = Path(delta.uri.removeprefix("file://"))
    entry = root / "_delta_log" / f"{delta.version:020}.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    (add,) = [line["add"] for line in lines if "add" in line]
    name = add["path"]
    for spelled in (f"x/../{name}", f"./{name}", f"../t/{name}", f"{root}/{name}", f"file:{root}/{name}"):
        add["path"] = spelled
        entry.write_text("\n".join(map(json.dumps, lines)) + "\n")
        with system.use(Ahead(8 * DAY)):
            assert name not in bh.open(str(root)).vacuum(dry_run=True).paths
    alias = root.parent / "alias"
    alias.symlink_to(root)
    with system.use(Ahead(8 * DAY)):
        result = bh.open(str(alias)).vacuum(dry_run=True)
    assert name not in result.paths and len(result.paths) == 1


def test_in_a_bucket(make_people):
    """Where folders are listed at the same time."""
    uri = f"memory://bucket-{system.current().uuid4()}/lake/t"
    bh.create(uri, make_people(0, 1).schema, partition_by="city", properties={"delta.enableDeletionVectors": "true"})
    t = bh.open(uri)
    t.append(make_people(0, 30))
    t.delete("id = 3")
    t.overwrite(make_people(30, 31), where="city = 'Oslo'")
    bh.write(make_people(0, 5), f"{uri}/city=Oslo/inner", "iceberg")
    with system.use(Ahead(8 * DAY)):
        dry = t.vacuum(dry_run=True)
        assert len(dry.paths) == 2 and not any("inner" in p for p in dry.paths)
        assert t.vacuum().bytes_removed == dry.bytes_removed > 0
        assert t.vacuum(mode="lite").paths == t.vacuum().paths == ()
    assert bh.open(f"{uri}/city=Oslo/inner").count() == 5
    assert ids(bh.open(uri)) == [*(i for i in range(30) if i % 3), 30]


def test_after_a_checkpoint(made, traits, make_people):
    """Live files and tombstones come from the checkpoint, and entries after it name some of them again."""
    if traits.checkpoints is None:
        pytest.skip("no checkpoints")
    deltalake.DeltaTable(made.uri).create_checkpoint()
    t = bh.open(made.uri)
    assert t.detail()["checkpoint"] == made.version
    t.delete("id in (10, 20)")
    before = t.version
    assert t.vacuum(dry_run=True).paths == ()
    with system.use(Ahead(8 * DAY)):
        t.append(make_people(40, 41))
        t.restore(before)
        keep = needed(t)
        assert t.vacuum(48, enforce_retention_duration=False).files_removed > 0
        assert ids(t) == [i for i in range(9, 25) if i not in (10, 20)] == theirs(t.uri)
        assert keep < files(t)  # the append, which is younger
    with system.use(Ahead(16 * DAY)):
        t.vacuum()
    assert files(t) == needed(t) == keep


@pytest.mark.parametrize("format", REAL)
def test_a_table_below_the_root_survives(delta, format, make_people):
    inner = f"{delta.uri}/deep/inner"
    bh.write(make_people(0, 5), inner, format)
    outside = Path(f"{delta.uri}/deep/old".removeprefix("file://"))
    outside.write_bytes(b"x")
    with system.use(Ahead(8 * DAY)):
        result = delta.vacuum()
    assert "deep/old" in result.paths and not any("inner" in p for p in result.paths)
    assert bh.open(inner).count() == 5
    check(delta)


def test_the_history_is_that_of_the_reference(delta):
    with system.use(Ahead(8 * DAY)):
        result = delta.vacuum(200, message="nightly")
    end, start = deltalake.DeltaTable(delta.uri).history(2)
    assert (start["operation"], end["operation"]) == ("VACUUM START", "VACUUM END")
    assert start["operationParameters"] == {
        "retentionCheckEnabled": True,
        "specifiedRetentionMillis": 200 * HOUR_MS,
        "defaultRetentionMillis": 168 * HOUR_MS,
    }
    assert int(start["operationMetrics"]["numFilesToDelete"]) == result.files_removed == 0
    assert int(start["operationMetrics"]["sizeOfDataToDelete"]) == 0
    assert end["operationParameters"] == {"status": "COMPLETED"} and end["userMetadata"] == "nightly"
    assert int(end["operationMetrics"]["numVacuumedDirectories"]) == 1
    assert not any(e.data_change for e in delta.history(2))
    assert delta.changes(delta.version - 1).to_arrow().num_rows == 0


def test_the_retention_of_the_table(delta):
    delta.set_properties({"delta.deletedFileRetentionDuration": "interval 2 days"})
    with system.use(Ahead(3 * DAY)):
        assert delta.vacuum().retention_hours == 48
        assert len(files(delta)) == 1


def test_longer_than_the_checkpoint_remembers(delta, make_people):
    """A checkpoint drops tombstones older than the table's retention; the entries before it still have them."""
    delta.set_properties({"delta.deletedFileRetentionDuration": "interval 1 hour"})
    with system.use(Ahead(2)):
        for i in range(8):
            delta.append(make_people(i, i + 1))
    delta = bh.open(delta.uri)
    assert delta.detail()["checkpoint"] == 10
    with system.use(Ahead(3)):
        removed = delta.vacuum(48, dry_run=True).paths
        assert removed == ()
        assert len(delta.vacuum(dry_run=True).paths) == 1


@pytest.mark.spec("D-309")
@pytest.mark.feature("vacuumProtocolCheck", format="delta")
def test_the_writer_protocol_is_checked(delta):
    log = Path(delta.uri.removeprefix("file://")) / "_delta_log"
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["vacuumProtocolCheck"],
        "writerFeatures": ["vacuumProtocolCheck"],
    }
    entry = log / f"{delta.version + 1:020}.json"
    entry.write_text(json.dumps({"protocol": protocol}) + "\n")
    with system.use(Ahead(8 * DAY)):
        assert bh.open(delta.uri).vacuum(dry_run=True).files_removed == 1
        protocol["writerFeatures"].append("someFeature")
        entry.write_text(json.dumps({"protocol": protocol}) + "\n")
        with pytest.raises(errors.UnsupportedFeatureError, match="someFeature"):
            bh.open(delta.uri).vacuum(dry_run=True)


def test_deltalake_would_remove_the_same(delta, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "t", copy)
    wanted = deltalake.DeltaTable(copy).vacuum(0, dry_run=True, enforce_retention_duration=False, full=True)
    with system.use(Ahead(0.01)):
        assert sorted(delta.vacuum(0, enforce_retention_duration=False).paths) == sorted(wanted)


@pytest.mark.spark
@pytest.mark.feature("vacuum", format="delta")
@pytest.mark.route("vacuum")
def test_on_spark(delta, spark):
    t = bh.open(delta.uri, spark=spark)
    with system.use(Ahead(8 * DAY)):
        result = t.vacuum()
    assert result.files_removed == 1 and len(files(t)) == 1 and result.failed == ()
    assert sorted(r.id for r in t.to_spark().select("id").collect()) == list(range(9, 25))


def test_temporary_files_of_killed_writers_go(tmp_path, make_people):
    t = bh.create(str(tmp_path / "t"), make_people(0, 1).schema)
    t.append(make_people(0, 3))
    name = ".boathouse-1f-00112233445566778899aabbccddeeff.tmp"
    left = [tmp_path / "t" / name, tmp_path / "t" / "_delta_log" / name]
    for path in left:
        path.write_bytes(b"half")
    assert t.vacuum().files_removed == 0 and all(p.exists() for p in left)
    with system.use(Ahead(25)):
        dry = t.vacuum(dry_run=True)
        assert sorted(dry.paths) == [name, f"_delta_log/{name}"] and dry.bytes_removed == 8
        t.vacuum()
    assert not any(p.exists() for p in left) and t.count() == 3

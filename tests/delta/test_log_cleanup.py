"""What is removed from the log, and what never is."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.bits import system
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.delta.log.cleanup import clean_log
from boathouse.errors import VersionNotFoundError

DAY = 86_400_000
MIDNIGHT = 20_000 * DAY
ROWS = pa.table({"x": [1]})


class Clock(system.System):
    now = MIDNIGHT

    def now_ms(self):
        return self.now


@pytest.fixture
def clock():
    found = Clock()
    with system.use(found):
        yield found


def names(path):
    return sorted(f.name for f in (path / "_delta_log").iterdir() if f.is_file() and f.name != "_last_checkpoint")


def versions(path, end):
    return [int(n[:20]) for n in names(path) if n.endswith(end)]


def dated(path, day_of):
    """Gives the files of a version the time of a day before the clock's."""
    for file in (path / "_delta_log").iterdir():
        if file.name[:20].isdigit():
            at = (MIDNIGHT - day_of(int(file.name[:20])) * DAY) / 1000
            os.utime(file, (at, at))


@pytest.fixture
def aged(tmp_path, clock):
    """A table of versions 0 to 24, checkpoints at 10 and 20, one version a day: 24 is of today's midnight."""

    def make(**properties):
        path = tmp_path / "t"
        settings = {"delta.enableExpiredLogCleanup": "false", "delta.logRetentionDuration": "interval 8 days"}
        given = {f"delta.{k}": v for k, v in properties.items()}
        t = bh.create(str(path), ROWS.schema, format="delta", properties=settings | given)
        for _ in range(24):
            t.append(ROWS)
        dated(path, lambda version: 24 - version)
        return path

    return make


def snapshot(path):
    return bh.open(str(path))._handle.snapshot


@pytest.mark.spec("D-301")
def test_a_checkpoint_is_kept_for_the_oldest_version(aged, delta):
    """Eight days before today is version 16; the checkpoint at or before it is 10."""
    path = aged()
    bh.open(str(path)).compact_log(5, 10)
    bh.open(str(path)).compact_log(10, 12)
    bh.open(str(path)).compact_log(11, 12)
    before = bh.open(str(path)).count()
    assert clean_log(snapshot(path)) == 2 * 10 + 2
    assert (
        versions(path, ".json") == [*range(10, 12), 11, *range(12, 25)] and len(versions(path, "compacted.json")) == 1
    )
    assert versions(path, ".parquet") == [10, 20]
    assert versions(path, ".crc") == list(range(10, 25))
    assert bh.open(str(path)).count() == before == len(delta.rows(path))
    assert bh.open(str(path), version=10).count() == 10
    with pytest.raises(VersionNotFoundError, match="begins at the checkpoint of version 10"):
        bh.open(str(path), version=9)
    assert [e.version for e in bh.open(str(path)).history()] == list(range(24, 9, -1))
    assert clean_log(snapshot(path)) == 0


@pytest.mark.spec("D-301")
@pytest.mark.parametrize(("later_ms", "first"), [(-1, 10), (0, 20), (DAY - 1, 20)])
def test_the_cut_is_at_midnight_utc(aged, clock, later_ms, first):
    """Version 20 is of midnight four days ago: a commit at midnight is an acceptable cut."""
    path = aged(logRetentionDuration="interval 4 days")
    clock.now = MIDNIGHT + later_ms
    clean_log(snapshot(path))
    assert versions(path, ".json")[0] == first


@pytest.mark.spec("D-301")
def test_without_a_checkpoint_nothing_goes(aged):
    path = aged(logRetentionDuration="interval 20 days")
    before = names(path)
    assert clean_log(snapshot(path)) == 0
    assert names(path) == before


@pytest.mark.parametrize("retention", ["interval 1 month", "soon", ""])
def test_a_duration_that_is_none_retains_everything(aged, retention):
    path = aged(logRetentionDuration=retention)
    assert clean_log(snapshot(path)) == 0


def test_a_checkpoint_that_cannot_be_read_or_has_no_entry_is_none_to_rely_on(aged):
    path = aged(logRetentionDuration="interval 4 days")
    kept = path / "_delta_log" / f"{20:020d}.checkpoint.parquet"
    content, time = kept.read_bytes(), kept.stat().st_mtime
    kept.write_bytes(content[:-9])
    with pytest.raises(bh.errors.CorruptTableError):
        clean_log(snapshot(path))
    assert versions(path, ".json") == list(range(25))
    kept.write_bytes(content)
    os.utime(kept, (time, time))
    (path / "_delta_log" / f"{20:020d}.json").unlink()
    clean_log(snapshot(path))
    assert versions(path, ".json")[0] == 10, "an older checkpoint is kept"


@pytest.mark.spec("D-301")
def test_it_follows_a_checkpoint(tmp_path, clock):
    """And is not done where the table says so."""
    found = {}
    for on in ("true", "false"):
        path = tmp_path / on
        properties = {"delta.enableExpiredLogCleanup": on, "delta.logRetentionDuration": "interval 1 day"}
        t = bh.create(str(path), ROWS.schema, format="delta", properties=properties)
        for _ in range(12):
            t.append(ROWS)
        dated(path, lambda version: 20 - version)
        for _ in range(8):
            t.append(ROWS)
        found[on] = versions(path, ".json")
        assert bh.open(str(path)).count() == 20
    assert found == {"true": list(range(10, 21)), "false": list(range(21))}


def test_recorded_times_decide(aged, clock):
    """The files are as old as the others', but the commits say that they were made today."""
    path = aged(enableInCommitTimestamps="true", logRetentionDuration="interval 4 days")
    assert clean_log(snapshot(path)) == 0


@pytest.mark.parametrize(("protected", "cleaned"), [(11, False), (10, True), (0, True)])
@pytest.mark.feature("checkpointProtection", format="delta")
def test_protected_checkpoints(aged, protected, cleaned):
    path = aged()
    features = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["checkpointProtection", "appendOnly"]}
    entry = path / "_delta_log" / f"{24:020d}.json"
    metadata = dict(snapshot(path).metadata.raw)
    metadata["configuration"] = {
        **metadata["configuration"],
        "delta.requireCheckpointProtectionBeforeVersion": str(protected),
    }
    with entry.open("a") as file:
        file.write(json.dumps({"protocol": features}) + "\n" + json.dumps({"metaData": metadata}) + "\n")
    os.utime(entry, (MIDNIGHT / 1000,) * 2)
    assert (clean_log(snapshot(path)) > 0) == cleaned
    bh.open(str(path)).append(ROWS)


@pytest.mark.spec("D-301")
def test_sidecars_that_a_checkpoint_needs_or_may_need(aged, delta, tmp_path):
    """Named by a checkpoint that remains, or made since yesterday's midnight."""
    path = aged()
    sidecars = path / "_delta_log" / "_sidecars"
    sidecars.mkdir()
    named = _as_sidecar(path, 20)
    ages = {"old": 2 * DAY, "edge": DAY, "young": DAY - 1000, named: 9 * DAY}
    for name, age in ages.items():
        file = sidecars / name
        if not file.exists():
            file.write_bytes(b"x")
        os.utime(file, ((MIDNIGHT - age) / 1000,) * 2)
    assert clean_log(snapshot(path)) == 2 * 10 + 1
    assert {f.name for f in sidecars.iterdir()} == {"edge", "young", named}
    assert bh.open(str(path)).count() == 24


def _as_sidecar(path, version):
    """Moves the file actions of a checkpoint into a sidecar, and returns its name."""
    log = path / "_delta_log"
    classic = log / f"{version:020d}.checkpoint.parquet"
    time = classic.stat().st_mtime
    rows = pq.read_table(classic)
    files = rows.filter(rows.column("add").is_valid()).select(["add", "remove"])
    name = "3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet"
    pq.write_table(files, log / "_sidecars" / name)
    size = (log / "_sidecars" / name).stat().st_size
    small = [{"checkpointMetadata": {"version": version}}]
    kept = rows.drop_columns(["add", "remove"]).to_pylist(maps_as_pydicts="lossy")
    small += [{kind: action} for row in kept for kind, action in row.items() if action]
    small.append({"sidecar": {"path": name, "sizeInBytes": size, "modificationTime": 1}})
    uuid = log / f"{version:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    uuid.write_text("".join(json.dumps(a) + "\n" for a in small))
    os.utime(uuid, (time, time))
    classic.unlink()
    return name


def test_writers_that_began_below_plan_again(aged):
    path = aged(logRetentionDuration="interval 4 days")
    began = bh.open(str(path))
    other = bh.open(str(path))
    other.append(ROWS)
    write_checkpoint(snapshot(path))
    clean_log(snapshot(path))
    began.append(ROWS)
    assert bh.open(str(path)).count() == 26

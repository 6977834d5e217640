"""Commits that record their own time."""

import datetime as dt
import os

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.bits import system
from boathouse.errors import BoathouseError, VersionNotFoundError

ON = {"delta.enableInCommitTimestamps": "true"}
ROWS = pa.table({"x": [1]})
SINCE = ("delta.inCommitTimestampEnablementVersion", "delta.inCommitTimestampEnablementTimestamp")


class Clock(system.System):
    """A clock that a test sets."""

    now = 1_700_000_000_000

    def now_ms(self):
        return self.now


@pytest.fixture
def clock():
    found = Clock()
    with system.use(found):
        yield found


def times(delta, path):
    found = {}
    for version, entry in delta.log(path).items():
        assert list(entry[0]) == ["commitInfo"]
        found[version] = entry[0]["commitInfo"].get("inCommitTimestamp")
    return found


def configuration(delta, path):
    return [a["metaData"]["configuration"] for e in delta.log(path).values() for a in e if "metaData" in a][-1]


def version_at(path, ms):
    return bh.open(str(path), timestamp=dt.datetime.fromtimestamp(ms / 1000, dt.UTC)).version


@pytest.mark.spec("D-304")
def test_times_rise_whatever_the_clock(tmp_path, delta, clock):
    path = tmp_path / "t"
    start = clock.now
    bh.write(ROWS, str(path), format="delta", properties=ON)
    bh.open(str(path)).append(ROWS)
    clock.now -= 60_000
    bh.open(str(path)).append(ROWS)
    clock.now = start + 5_000
    table = bh.open(str(path))
    table.delete("x = 1")
    table.optimize()
    assert times(delta, path) == {0: start, 1: start + 1, 2: start + 2, 3: start + 5_000}
    assert not any(key in configuration(delta, path) for key in SINCE)
    assert [h.timestamp_ms for h in table.history()][::-1] == list(times(delta, path).values())
    assert len(delta.rows(path)) == 0


@pytest.mark.spec("D-304")
def test_travel_by_recorded_times_and_file_times(tmp_path, delta, clock):
    """Versions 0 to 2 have the times of their files, 3 begins to record, 6 no longer does."""
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta")
    for _ in range(2):
        bh.open(str(path)).append(ROWS)
    for n in range(3):
        os.utime(path / "_delta_log" / f"{n:020d}.json", (1_600_000_000 + n * 100,) * 2)
    bh.open(str(path)).set_properties(ON)
    told = configuration(delta, path)
    assert told[SINCE[0]] == "3" and told[SINCE[1]] == str(clock.now) == str(times(delta, path)[3])
    for _ in range(2):
        clock.now += 1_000_000
        bh.open(str(path)).append(ROWS)
    # The files say otherwise, as those of a table that was copied do.
    for n in range(3, 6):
        os.utime(path / "_delta_log" / f"{n:020d}.json", (1_500_000_000,) * 2)
    start = 1_700_000_000_000
    for ms, version in (
        (1_600_000_000_000, 0), (1_600_000_150_000, 1), (start - 1, 2), (start, 3), (start + 999_999, 3),
        (start + 1_000_000, 4), (start + 9_000_000, 5),
    ):  # fmt: skip
        assert version_at(path, ms) == version
    with pytest.raises(VersionNotFoundError):
        version_at(path, 1_599_999_999_000)
    rows = bh.open(str(path)).changes(4, 5).to_arrow()
    assert sorted(round(t.timestamp() * 1000) for t in rows.column("_commit_timestamp").to_pylist()) == [
        start + 1_000_000,
        start + 2_000_000,
    ]
    bh.open(str(path)).set_properties({"delta.enableInCommitTimestamps": "false"})
    assert not any(key in configuration(delta, path) for key in SINCE)
    bh.open(str(path)).append(ROWS)
    assert times(delta, path)[7] is None


@pytest.mark.spec("D-304")
@pytest.mark.feature("inCommitTimestamp", format="delta")
def test_the_reference_goes_on(tmp_path, delta, clock):
    deltalake = pytest.importorskip("deltalake")
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties=ON)
    bh.open(str(path)).append(ROWS)
    assert deltalake.DeltaTable(str(path)).version() == 1 and len(delta.rows(path)) == 2


def test_when_it_began_is_not_the_users_to_say(tmp_path):
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", properties=ON)
    for key in SINCE:
        with pytest.raises(BoathouseError, match=key):
            bh.open(path).set_properties({key: "1"})
    with pytest.raises(BoathouseError, match="enableInCommitTimestamps"):
        bh.open(path).set_properties({"delta.enableInCommitTimestamps": "maybe"})

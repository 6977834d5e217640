"""Version checksums: the file beside an entry that says what the version contains."""

import json
import logging

import pyarrow as pa
import pytest

import boathouse as bh

ROWS = pa.table({"x": [1, 2, 3]})


def crc(path, version):
    file = path / "_delta_log" / f"{version:020d}.crc"
    return json.loads(file.read_text()) if file.exists() else None


def counted(delta, path, version):
    """Files, bytes, the last protocol and metaData, from the entries alone."""
    live, last = {}, {}
    for _, entry in sorted((v, e) for v, e in delta.log(path).items() if v <= version):
        for action in entry:
            ((kind, content),) = action.items()
            if kind in ("add", "remove"):
                vector = content.get("deletionVector") or {}
                key = (content["path"], vector.get("pathOrInlineDv"), vector.get("offset"))
                live.pop(key, None)
                if kind == "add":
                    live[key] = content["size"]
            last[kind] = content
    return len(live), sum(live.values()), last["protocol"], last["metaData"]


def check(delta, path, version):
    found = crc(path, version)
    assert found["numMetadata"] == found["numProtocol"] == 1
    counts = (found["numFiles"], found["tableSizeBytes"], found["protocol"], found["metadata"])
    assert counts == counted(delta, path, version)


@pytest.mark.spec("D-300")
@pytest.mark.parametrize("vectors", ["false", "true"])
def test_every_commit_continues_the_one_before(tmp_path, delta, vectors):
    """Appends, deletes, properties, columns, overwrites and a restore, in one process and from new openings."""
    path = tmp_path / "t"
    properties = {"delta.enableDeletionVectors": vectors, "delta.checkpointInterval": "4"}
    t = bh.create(str(path), ROWS.schema, format="delta", properties=properties)
    t.append(ROWS)
    t.append(ROWS)
    t.delete("x = 1")
    t = bh.open(str(path))
    t.set_properties({"own": "1"})
    t.update({"x": "x + 1"}, "x = 2")
    t.append(ROWS.append_column("y", pa.array(["a", "b", "c"])), merge_schema=True)
    bh.open(str(path)).optimize()
    t = bh.open(str(path))
    t.overwrite(t.to_arrow())
    t.restore(2)
    newest = bh.open(str(path)).version
    assert newest >= 8
    for version in range(newest + 1):
        check(delta, path, version)


def test_commits_that_record_their_time(tmp_path):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties={"delta.enableInCommitTimestamps": "true"})
    bh.open(str(path)).append(ROWS)
    made = [entry.timestamp_ms for entry in bh.open(str(path)).history()][::-1]
    assert [crc(path, v)["inCommitTimestampOpt"] for v in (0, 1)] == made
    bh.open(str(path)).set_properties({"delta.enableInCommitTimestamps": "false"})
    assert "inCommitTimestampOpt" not in crc(path, 2)


@pytest.mark.spec("D-300")
def test_without_a_predecessor_the_next_checkpoint_begins_again(tmp_path, delta):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties={"delta.checkpointInterval": "3"})
    (path / "_delta_log" / f"{0:020d}.crc").unlink()
    for _ in range(4):
        bh.open(str(path)).append(ROWS)
    assert [crc(path, v) is not None for v in range(5)] == [False, False, False, True, True]
    check(delta, path, 3)
    check(delta, path, 4)


@pytest.mark.spec("D-300")
def test_a_checksum_is_never_overwritten(tmp_path):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta")
    there = path / "_delta_log" / f"{1:020d}.crc"
    there.write_text("another's")
    bh.open(str(path)).append(ROWS)
    assert there.read_text() == "another's"


@pytest.mark.spec("D-300")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"numFiles": 7}, "7 files, not 1"),
        ({"tableSizeBytes": 0}, "0 bytes, not"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}, "another protocol"),
        ({"metadata": {"id": "x"}}, "other metadata"),
    ],
)
def test_a_contradiction_is_reported_and_not_continued(tmp_path, caplog, change, words):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta")
    file = path / "_delta_log" / f"{0:020d}.crc"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with caplog.at_level(logging.WARNING, "boathouse"):
        assert bh.open(str(path)).detail()["files"] == 1
    assert any(words in m and file.name in m for m in caplog.messages), caplog.messages
    assert bh.open(str(path)).to_arrow() == ROWS
    bh.open(str(path)).append(ROWS)
    if not change.keys() & {"numFiles", "tableSizeBytes"}:
        assert crc(path, 1) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"numFiles": -1}', "null", '{"numFiles": true}'])
def test_a_damaged_checksum_is_none(tmp_path, content):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta")
    (path / "_delta_log" / f"{0:020d}.crc").write_text(content)
    t = bh.open(str(path))
    t.append(ROWS)
    assert t.detail()["files"] == 2 and t.count() == 6
    assert crc(path, 1) is None


def test_a_rebase_continues_the_winner(tmp_path, delta):
    """The snapshot that a commit was planned on is not the one that it follows."""
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta")
    mine, other = bh.open(str(path)), bh.open(str(path))
    other.append(ROWS)
    mine.append(ROWS)
    for version in range(3):
        check(delta, path, version)


def test_deltalake_goes_on(tmp_path, delta):
    """It writes none: ours follow again from the next checkpoint."""
    deltalake = pytest.importorskip("deltalake")
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta", properties={"delta.checkpointInterval": "3"})
    deltalake.write_deltalake(str(path), ROWS, mode="append")
    for _ in range(2):
        bh.open(str(path)).append(ROWS)
    assert [crc(path, v) is not None for v in range(4)] == [True, False, False, True]
    check(delta, path, 3)
    assert len(delta.rows(path)) == 12

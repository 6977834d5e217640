"""Restore: the table is again what it was at an older version, in one commit that anybody reads."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from peers import by_peer

import boathouse as bh
from boathouse import errors
from boathouse.bits import system
from boathouse.ops.table import restore
from boathouse.testing.clocks import Ahead
from makers.traits import TRAITS


@pytest.fixture(params=["toy", "delta", "delta-vectors", "delta-mapped"])
def made(request, tmp_path, make_people, properties_of):
    """Rows 0 to 20 in two appends, partitioned by city."""
    format, properties = request.param.partition("-")[0], properties_of(request.param)
    uri = str(tmp_path / "täble")
    bh.create(uri, make_people(0, 1).schema, format=format, partition_by="city", properties=properties)
    t = bh.open(uri, format=format)
    t.append(make_people(0, 10))
    t.append(make_people(10, 20))
    return t


def rows(t) -> list[dict]:
    return sorted(t.to_arrow().to_pylist(), key=lambda r: r["id"])


def theirs(t) -> list[dict]:
    """The rows as the format's own library reads them."""
    return sorted(by_peer(t.uri, t.format).to_pylist(), key=lambda r: r["id"])


def check(t, wanted: list[dict]) -> None:
    assert rows(bh.open(t.uri, format=t.format)) == rows(t) == wanted == theirs(t)


def without_counters(properties) -> dict[str, str]:
    """The properties that a restore sets: an id that was given out is never given out again."""
    return {k: v for k, v in properties.items() if k != "delta.columnMapping.maxColumnId"}


def folder(t) -> Path:
    return Path(t.uri.removeprefix("file://"))


def change(t, make_people, kind: str) -> None:
    """One of the ways in which a version becomes another one."""
    match kind:
        case "append":
            t.append(make_people(20, 25))
        case "delete":
            t.delete("id % 3 = 1")
        case "delete twice":
            t.delete("id = 4")
            t.delete("id in (5, 12)")
        case "delete all":
            t.delete()
        case "update":
            t.update({"score": "-1.0"}, where="id > 15")
        case "overwrite":
            t.overwrite(make_people(50, 53))
        case "optimize":
            t.optimize()
        case "several":
            t.delete("id = 1")
            t.optimize()
            t.append(make_people(30, 33))
            t.update({"name": "'x'"}, where="id = 30")


KINDS = ["append", "delete", "delete twice", "delete all", "update", "overwrite", "optimize", "several"]


@pytest.mark.few(10)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.feature("restore", format="delta")
def test_every_change_is_undone_and_redone(made, make_people, kind):
    before, wanted = made.version, rows(made)
    change(made, make_people, kind)
    after, other = made.version, rows(made)
    assert (wanted == other) == (kind == "optimize")
    units = made.files()
    result = made.restore(before)
    assert (result.operation, result.version) == ("restore", made.version)
    assert made.version not in (before, after) and result.commit is not None
    check(made, wanted)
    assert rows(bh.open(made.uri, format=made.format, version=after)) == other
    made.restore(after)
    check(made, other)
    assert sorted(made.files()["path"].to_pylist()) == sorted(units["path"].to_pylist())
    made.append(make_people(90, 91))
    assert len(rows(made)) == len(other) + 1
    assert theirs(made) == rows(made)


def test_deletes_of_a_delete_come_back(made):
    """The vectors of the version are those that were in force then, not their union."""
    made.delete("id = 4")
    first, wanted = made.version, rows(made)
    made.delete("id = 5")
    second, both = made.version, rows(made)
    made.restore(first)
    check(made, wanted)
    made.restore(second)
    check(made, both)
    made.restore(first)
    made.delete("id = 6")
    check(made, [r for r in wanted if r["id"] != 6])


@pytest.mark.spec("D-089")
def test_schema_partitioning_and_properties_come_back(made, make_people):
    before, wanted, detail = made.version, rows(made), made.detail()
    made.add_column("extra", "int")
    made.set_properties({"owner": "me", "delta.logRetentionDuration": "interval 3 days"})
    more = make_people(40, 42).append_column("extra", pa.array([1, 2], pa.int32()))
    made.append(more)
    made.overwrite(more.select(["id", "extra"]), overwrite_schema=True, partition_by="extra")
    assert list(made.schema.names) == ["id", "extra"]
    made.restore(before)
    assert list(made.schema.names) == ["id", "name", "score", "city"]
    assert [f.name for f in made.partitioning.current] == ["city"]
    check(made, wanted)
    now = made.detail()
    assert without_counters(made.properties) == without_counters(detail["properties"])
    assert now.get("id") == detail.get("id")
    assert now["files"] == detail["files"] and now["rows"] == detail["rows"]


def test_nothing_is_committed_if_nothing_differs(made):
    before = made.version
    result = made.restore(before)
    assert result.version is None and "nothing to do" in repr(result) and made.refresh().version == before


def test_a_time(made):
    entry = made.history(1)[0]
    wanted = rows(made)
    with system.use(Ahead(1)):
        made.append(made.to_arrow())
    if dated := TRAITS[made.format].dated_by:
        later = entry.timestamp_ms / 1000 + 60
        os.utime(folder(made) / dated.format(made.version), (later, later))
        made = bh.open(made.uri)
    moment = dt.datetime.fromtimestamp((entry.timestamp_ms + 1000) / 1000, dt.UTC)
    made.restore(timestamp=moment)
    check(made, wanted)
    assert made.history(1)[0].parameters.get("timestamp", moment.isoformat(timespec="milliseconds")) == (
        moment.isoformat(timespec="milliseconds")
    )


def test_wrong_arguments(made):
    for arguments in ({}, {"version": 1, "timestamp": "2026-01-01"}):
        with pytest.raises(errors.InvalidArgumentError, match="a version or a timestamp"):
            made.restore(**arguments)
    with pytest.raises(errors.InvalidArgumentError, match="not a whole number"):
        made.restore("1")
    with pytest.raises(errors.VersionNotFoundError):
        made.restore(99)
    with pytest.raises(errors.ReadOnlyError):
        bh.open(made.uri, format=made.format, version=made.version).restore(1)


def test_a_file_that_is_gone_is_named_before_anything_is_committed(made, make_people):
    before = made.version
    made.overwrite(make_people(50, 53))
    head, wanted = made.version, rows(made)
    with system.use(Ahead(8 * 24)):
        made.vacuum()
    head = made.version
    with pytest.raises(errors.MissingFileError, match=f"version {before} cannot be restored") as caught:
        made.restore(before)
    assert caught.value.where.startswith(made.uri) and not Path(caught.value.where.removeprefix("file://")).exists()
    with pytest.raises(errors.MissingFileError):
        made.restore(before, dry_run=True)
    assert made.refresh().version == head
    check(made, wanted)


def test_a_dry_run(made, make_people):
    before, wanted = made.version, made.to_arrow().num_rows
    made.overwrite(make_people(50, 53))
    head = made.version
    dry = made.restore(before, dry_run=True)
    assert dry.dry_run and dry.files_added == 6 and dry.files_removed == 3 and made.refresh().version == head
    done = made.restore(before)
    assert (done.files_added, done.files_removed, done.bytes_added) == (6, 3, dry.bytes_added)
    assert made.count() == wanted


@pytest.mark.parametrize("kind", ["append", "delete", "set_properties"])
def test_a_concurrent_commit_plans_it_again(made, make_people, monkeypatch, kind):
    before, wanted = made.version, rows(made)
    made.append(make_people(20, 25))
    other = bh.open(made.uri, format=made.format)
    real, calls = restore._check_files, []

    def check_files(*args):
        calls.append(1)
        if len(calls) == 1:
            match kind:
                case "append":
                    other.append(make_people(60, 63))
                case "delete":
                    other.delete("id < 15")
                case "set_properties":
                    other.set_properties({"owner": "them"})
        return real(*args)

    monkeypatch.setattr(restore, "_check_files", check_files)
    result = made.restore(before)
    assert len(calls) == 2 and result.retries == 1
    check(made, wanted)
    assert "owner" not in made.properties


def actions(t) -> list[dict]:
    entry = folder(t) / "_delta_log" / f"{t.version:020}.json"
    return [json.loads(line) for line in entry.read_text().splitlines()]


@pytest.fixture
def delta(tmp_path, make_people):
    uri = str(tmp_path / "t")
    bh.create(uri, make_people(0, 1).schema)
    t = bh.open(uri)
    t.append(make_people(0, 5))
    return t


def test_the_history_is_that_of_the_reference(delta, make_people):
    size = delta.files()["size"][0].as_py()
    delta.overwrite(make_people(5, 9))
    new = delta.files()["size"][0].as_py()
    delta.append(make_people(9, 10))
    last = delta.files()["size"].to_pylist()
    delta.restore(1, message="back")
    entry = deltalake.DeltaTable(delta.uri).history(1)[0]
    assert (entry["operation"], entry["userMetadata"]) == ("RESTORE", "back")
    assert entry["operationParameters"] == {"version": 1, "timestamp": None}
    assert {k: int(v) for k, v in entry["operationMetrics"].items()} == {
        "tableSizeAfterRestore": size,
        "numOfFilesAfterRestore": 1,
        "numRemovedFiles": 2,
        "numRestoredFiles": 1,
        "removedFilesSize": sum(last),
        "restoredFilesSize": size,
    }
    assert new in last
    found = actions(delta)
    assert not any("metaData" in a or "protocol" in a for a in found)
    assert all(a[k]["dataChange"] for a in found for k in ("add", "remove") if k in a)
    (again,) = [a["add"] for a in found if "add" in a]
    assert again["stats"] and json.loads(again["stats"])["numRecords"] == 5
    counted = delta.changes(delta.version).to_arrow()["_change_type"].to_pylist()
    assert (counted.count("insert"), counted.count("delete")) == (5, 5)


def test_the_protocol_is_never_downgraded(delta):
    before = delta.version
    delta.set_properties({"delta.enableDeletionVectors": "true"})
    delta.delete("id = 1")
    high, marked = delta.detail(), delta.version
    delta.restore(before)
    now = delta.detail()
    assert (now["minReaderVersion"], now["minWriterVersion"]) == (3, 7) and "deletionVectors" in now["writerFeatures"]
    assert now["writerFeatures"] == high["writerFeatures"] and "delta.enableDeletionVectors" not in delta.properties
    check(delta, rows(bh.open(delta.uri, version=before)))
    delta.restore(marked)
    check(delta, rows(bh.open(delta.uri, version=marked)))


def test_through_checkpoints(delta, make_people):
    """Both versions are read from checkpoints; the statistics come back, from either of their forms."""
    delta.set_properties({"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpoint.writeStatsAsJson": "false"})
    for i in range(5, 13):
        delta.append(make_people(i, i + 1))
    assert delta.version == 10
    wanted = rows(delta)
    delta.delete("id < 3")
    for _ in range(10):
        delta.append(make_people(0, 1))
    fresh = bh.open(delta.uri)
    assert fresh.detail()["checkpoint"] == 20
    fresh.restore(10)
    check(fresh, wanted)
    assert not any("metaData" in a for a in actions(fresh))
    again = [json.loads(a["add"]["stats"]) for a in actions(fresh) if "add" in a]
    assert [(s["numRecords"], s["minValues"]["id"]) for s in again] == [(5, 0)]


def test_an_append_only_table_is_not_restored(delta, make_people):
    delta.set_properties({"delta.appendOnly": "true"})
    delta.append(make_people(5, 6))
    head = delta.version
    with pytest.raises(errors.ConstraintViolationError, match="append-only"):
        delta.restore(1)
    assert delta.refresh().version == head


def test_a_feature_that_cannot_be_written_is_refused(delta):
    log = folder(delta) / "_delta_log"
    strange = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["someFeature"]}
    plain = {"minReaderVersion": 1, "minWriterVersion": 2}
    for version, protocol in ((2, strange), (3, plain)):
        (log / f"{version:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    t = bh.open(delta.uri)
    with pytest.raises(errors.UnsupportedFeatureError, match="someFeature"):
        t.restore(2)
    assert t.refresh().version == 3 and t.restore(1).version is None


@pytest.mark.spark
@pytest.mark.feature("restore", format="delta")
@pytest.mark.route("restore")
def test_on_spark(delta, spark, make_people):
    t = bh.open(delta.uri, spark=spark)
    t.overwrite(make_people(5, 9))
    assert t.restore(1).files_added == 1
    assert sorted(r.id for r in t.to_spark().select("id").collect()) == list(range(5))

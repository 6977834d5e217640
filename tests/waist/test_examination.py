"""Examinations: every fault at once, where opening and reading stop at the first."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import CorruptTableError
from boathouse.table.features import Examination, required
from boathouse.table.findings import Finding, damage, placed, raise_first
from makers.traits import REAL

ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "s": [*"abcdef"]})


def examined(path, depth="files") -> list[Finding]:
    snapshot = bh.open(str(path))._handle.snapshot
    return list(required(snapshot, Examination, "examine").examine(depth))


@pytest.fixture(params=REAL)
def table(request, tmp_path):
    bh.write(ROWS, str(tmp_path / "t"), format=request.param)
    bh.open(str(tmp_path / "t")).append(ROWS)
    return bh.open(str(tmp_path / "t"))


def files_of(table) -> list[Path]:
    return [Path(p.removeprefix("file://")) for p in table.files().column("path").to_pylist()]


def test_a_whole_table_has_no_findings(table):
    table.delete("id = 3")
    table.optimize()
    assert examined(table.uri) == []


def test_every_lost_and_cut_file_is_named(table):
    first, second = files_of(table)
    table.append(ROWS)
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    found = examined(table.uri)
    assert {(f.code, f.severity, f.where) for f in found} == {
        (f"{table.format}.missing-file", "damage", f"file://{first}"),
        (f"{table.format}.file-size", "damage", f"file://{second}"),
    }
    assert examined(table.uri, "metadata") == [], "no data file is looked for"


def test_lost_vectors_of_deletes_are_found_in_the_metadata(tmp_path):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="lance")
    bh.open(str(path)).delete("id = 3")
    (gone,) = (path / "_deletions").iterdir()
    gone.unlink()
    (found,) = examined(path, "metadata")
    assert (found.code, found.where) == ("lance.unreadable", f"file://{gone}")


def test_a_checksum_that_contradicts_the_log_is_a_hazard(tmp_path):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="delta")
    checksum = path / "_delta_log" / f"{0:020d}.crc"
    checksum.write_text(json.dumps(json.loads(checksum.read_text()) | {"numFiles": 7}))
    (found,) = examined(path)
    assert (found.code, found.severity, found.where) == ("delta.checksum", "hazard", f"file://{checksum}")
    assert "7 files, not 1" in found.message


def test_rules_that_others_refuse_a_table_for_are_hazards(tmp_path):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="iceberg")
    (head,) = (path / "metadata").glob("*.metadata.json")
    document = json.loads(head.read_text())
    document["last-column-id"] = 1
    document["sort-orders"].append({"order-id": 7, "fields": []})
    head.write_text(json.dumps(document))
    found = examined(path)
    assert {f.severity for f in found} == {"hazard"} and {f.where for f in found} == {f"file://{head}"}
    assert {f.message.split(":")[0] for f in found} == {
        "last-column-id is 1, but 2 is in use", "sort order 7 has 0 fields",
    }  # fmt: skip


def test_a_lost_manifest_is_damage(tmp_path):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="iceberg")
    (gone,) = (path / "metadata").glob("*-m0.avro")
    gone.unlink()
    (found,) = examined(path)
    assert (found.code, found.severity, found.where) == ("iceberg.unreadable", "damage", f"file://{gone}")


def test_manifests_of_older_versions_are_examined(tmp_path):
    path = tmp_path / "t"
    bh.write(ROWS, str(path), format="lance")
    bh.open(str(path)).append(ROWS)
    older = sorted((path / "_versions").iterdir())[-1]
    older.write_bytes(b"no manifest")
    (found,) = examined(path)
    assert (found.code, found.where) == ("lance.manifest", f"file://{older}")


def test_opening_raises_the_first_damage():
    hazard = Finding("toy.hazard", "hazard", "others may refuse it")
    raise_first([hazard])
    with pytest.raises(CorruptTableError, match="one is wrong") as refused:
        raise_first(placed([hazard, damage("toy.a", "one is wrong"), damage("toy.b", "another too")], "memory://t"))
    assert refused.value.where == "memory://t"

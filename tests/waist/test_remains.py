"""No table is created over what is left, or there so far, of another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from peers import by_peer

import boathouse as bh
from boathouse.bits import system
from boathouse.errors import CorruptTableError, TableNotFoundError
from boathouse.testing.clocks import Ahead
from makers.traits import REAL

ROWS = pa.table({"x": [1]})
HOUR = 3600
VERSION = "00000000000000000010"
REMAINS = {
    "a checksum": f"_delta_log/{VERSION}.crc",
    "a part of a checkpoint": f"_delta_log/{VERSION}.checkpoint.0000000001.0000000002.parquet",
    "an empty checkpoint": f"_delta_log/{VERSION}.checkpoint.parquet",
    "the hint": "_delta_log/_last_checkpoint",
    "a sidecar": "_delta_log/_sidecars/3a0d65cd-4056-49b8-937b-95f9e3ee90e5.parquet",
    "a checksum of Hadoop": "_delta_log/.00000000000000000000.json.crc",
    "a compacted entry": f"_delta_log/{VERSION}.{VERSION}.compacted.json",
    "a version hint": "metadata/version-hint.text",
    "an old manifest": "metadata/3a0d65cd-m0.avro",
    "statistics": "metadata/1-3a0d65cd.stats",
    "a detached version": "_versions/d12.manifest",
    "a hint of Lance": "_versions/latest_version_hint.json",
}


def put(path: Path, name: str, hours: int = 2) -> None:
    file = path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"" if "empty" in name or name.endswith("10.checkpoint.parquet") else b"x")
    then = file.stat().st_mtime - hours * HOUR
    os.utime(file, (then, then))


def listed(path: Path) -> list[str]:
    return sorted(str(p.relative_to(path)) for p in path.rglob("*"))


@pytest.mark.parametrize("format", REAL)
@pytest.mark.parametrize("remains", REMAINS)
def test_nothing_is_created_over_remains(tmp_path, format, remains):
    put(tmp_path, REMAINS[remains])
    before = listed(tmp_path)
    uri = str(tmp_path)
    with pytest.raises(TableNotFoundError):
        bh.open(uri)
    attempts = [
        lambda m=m: bh.write(ROWS, uri, format=format, mode=m) for m in ("error", "append", "overwrite", "ignore")
    ]
    for attempt in (*attempts, lambda: bh.create(uri, ROWS.schema, format=format)):
        with pytest.raises(CorruptTableError, match=r"part of an? [A-Z][a-z]+ table already exists here") as caught:
            attempt()
        assert caught.value.where == f"file://{tmp_path}/{REMAINS[remains]}" and "remove" in caught.value.advice
    assert listed(tmp_path) == before


@pytest.mark.parametrize(
    "name",
    [
        "_delta_log/.tmp/00000000000000000000.json", "_delta_log/_commit_3a0d65cd.json.tmp", "metadata/readme.txt",
        "_versions/1.manifest-3a0d65cd", "data/part.parquet", "part.parquet", "_transactions/0-3a0d65cd.txn",
    ],
)  # fmt: skip
@pytest.mark.parametrize("format", REAL)
def test_what_is_no_table_stands_in_nobodys_way(tmp_path, format, name):
    put(tmp_path, name)
    bh.write(ROWS, str(tmp_path), format=format, mode="append")
    assert bh.open(str(tmp_path), format=format).count() == 1


def test_a_manifest_just_written_is_another_writers(tmp_path):
    """It may be creating the table: whoever puts the first version wins, and the other finds it."""
    put(tmp_path, "metadata/3a0d65cd-m0.avro", hours=0)
    bh.write(ROWS, str(tmp_path), format="iceberg", mode="append")
    assert bh.open(str(tmp_path)).count() == 1


def test_empty_folders_are_free(tmp_path):
    for mark in ("_delta_log", "metadata", "_versions"):
        (tmp_path / mark).mkdir()
    bh.write(ROWS, str(tmp_path), mode="append")
    assert bh.open(str(tmp_path)).count() == 1


KILLED = """
import os, sys
import pyarrow as pa
import boathouse as bh
from boathouse.table.commit import FileCommitter
FileCommitter.publish = lambda self, attempt: os._exit(9)
bh.write(pa.table({"x": [1, 2]}), sys.argv[1], sys.argv[2], mode="append", txn=("query", 0))
"""


@pytest.mark.few(3)
@pytest.mark.parametrize("hours", [0, 30])
@pytest.mark.parametrize("format", REAL)
def test_a_writer_that_was_killed_before_its_first_commit_goes_on(tmp_path, format, hours):
    uri = str(tmp_path / "t")
    assert subprocess.run([sys.executable, "-c", KILLED, uri, format], check=False).returncode == 9
    assert listed(tmp_path)
    with system.use(Ahead(hours)):
        with pytest.raises(TableNotFoundError, match=r"was to create an? [A-Z][a-z]+ table and did not end"):
            bh.open(uri)
        assert bh.detect(uri) == ()
        bh.write(ROWS, uri, format=format, mode="append", txn=("query", 0))
        assert bh.write(ROWS, uri, format=format, mode="append", txn=("query", 0)).skipped
    assert bh.open(uri).count() == 1 == by_peer(uri, format).num_rows

"""Files that nothing names, whose paths may be spelled in several ways; and vacuum, which expires versions first."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pytest
from foreign_writer import Foreign
from pyiceberg.catalog import load_catalog
from test_expiry import on_disk, reachable, read_by_pyiceberg

import boathouse as bh
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.testing.clocks import Ahead

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
DAYS = 24 * 3600


def rows(*ids):
    return pa.table({"id": list(ids), "p": ["a"] * len(ids)}, SCHEMA)


@pytest.fixture
def table(tmp_path):
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg", partition_by=["p"])
    t.append(rows(1, 2))
    t.append(rows(3))
    return t


@pytest.fixture
def foreign(table, tmp_path):
    return Foreign(tmp_path / "t")


def stray(root, *paths, days=10.0):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"orphan")
        os.utime(root / path, (time.time() - days * DAYS,) * 2)


ORPHANS = ["data/p=a/x.parquet", "data/x.puffin", "metadata/abc-m0.avro", "metadata/snap-1-1-a.avro", "stats.bin"]


@pytest.mark.spec("I-339")
@pytest.mark.feature("removal of orphan files", format="iceberg")
def test_orphans_go_after_three_days(table, foreign):
    before = on_disk(foreign)
    stray(foreign.root, *ORPHANS)
    stray(foreign.root, "data/young.parquet", days=2.9)
    dry = table.remove_orphan_files(dry_run=True)
    assert sorted(dry.paths) == sorted(ORPHANS) and dry.bytes_removed == 6 * len(ORPHANS) and dry.dry_run
    assert on_disk(foreign) == before | {*ORPHANS, "data/young.parquet"}
    done = table.remove_orphan_files()
    assert sorted(done.paths) == sorted(ORPHANS) and on_disk(foreign) == before | {"data/young.parquet"}
    with pytest.raises(InvalidArgumentError, match=r"the last 72 hours are kept, and not only of 2\d\.\d"):
        table.remove_orphan_files(time_ago(1.1))
    assert table.remove_orphan_files(time_ago(1.1), enforce_retention_duration=False).paths == ("data/young.parquet",)
    assert on_disk(foreign) == before and table.count() == 3
    assert len(table.history()) == 3, "no commit is made"


def time_ago(days):
    import datetime as dt

    return dt.datetime.now(dt.UTC) - dt.timedelta(days=days)


@pytest.mark.spec("I-339")
def test_what_the_table_names_stays_whatever_its_age(table, foreign):
    """Old snapshots, tags, the log of documents, statistics, the hint."""
    table.delete("id = 1")
    table.optimize()
    first = foreign.document["snapshots"][0]["snapshot-id"]
    stray(foreign.root, "metadata/s.puffin", "metadata/p.parquet")

    def describe(document):
        document["refs"]["t"] = {"type": "tag", "snapshot-id": first}
        path = f"file://{foreign.root}/metadata/"
        document["statistics"] = [{"snapshot-id": first, "statistics-path": path + "s.puffin", "file-size-in-bytes": 6,
                                   "file-footer-size-in-bytes": 1, "blob-metadata": []}]  # fmt: skip
        document["partition-statistics"] = [
            {"snapshot-id": first, "statistics-path": path + "p.parquet", "file-size-in-bytes": 6}
        ]

    foreign.edit(describe)
    every = {p for p in foreign.root.rglob("*") if p.is_file()}
    for path in every:
        os.utime(path, (1, 1))
    assert bh.open(table.uri).remove_orphan_files().paths == ()
    assert {p for p in foreign.root.rglob("*") if p.is_file()} == every and on_disk(foreign) == reachable(foreign)


@pytest.mark.spec("I-339")
@pytest.mark.parametrize("scheme", ["file:", "file://", "", "FILE://", "file://localhost"])
def test_spellings_of_paths(tmp_path, scheme):
    """Files that the metadata names by another spelling of their URI are no orphans."""
    import json

    import fastavro

    root = tmp_path / "t"
    bh.create(str(root), SCHEMA, format="iceberg").append(rows(1))
    foreign = Foreign(root)
    for path in [*(root / "metadata").glob("*.avro")]:
        with open(path, "rb") as file:
            reader = fastavro.reader(file)
            records, schema, header = list(reader), reader.writer_schema, reader.metadata
        for record in records:
            place = record if "manifest_path" in record else record["data_file"]
            key = "manifest_path" if place is record else "file_path"
            place[key] = scheme + place[key].removeprefix("file://")
        header = {k: v for k, v in header.items() if not k.startswith("avro.")}
        with open(path, "wb") as file:
            fastavro.writer(file, schema, records, metadata=header)
    text = json.dumps(foreign.document).replace("file:///", f"{scheme}/")
    foreign.head.write_text(text)
    for path in root.rglob("*"):
        if path.is_file():
            os.utime(path, (1, 1))
    stray(root, *ORPHANS)
    t = bh.open(str(root), verify=False)
    assert sorted(t.remove_orphan_files().paths) == sorted(ORPHANS)
    assert t.to_arrow()["id"].to_pylist() == [1]


def test_what_is_of_others_stays(table, foreign):
    """Other tables below this one, hidden files and folders; a folder of two formats is refused."""
    bh.write(rows(9), str(foreign.root / "data" / "inner"), format="delta")
    bh.write(rows(9), str(foreign.root / "other"), format="iceberg")
    stray(foreign.root, "data/_SUCCESS", "data/.hidden", "_spark/x", "data/_temporary/x", ".sys/x")
    for path in foreign.root.rglob("*"):
        os.utime(path, (1, 1))
    assert table.remove_orphan_files().paths == ()
    bh.write(rows(9), str(foreign.root.parent / "d"), format="delta")
    shutil.copytree(foreign.root.parent / "d" / "_delta_log", foreign.root / "_delta_log")
    for call in (table.remove_orphan_files, table.vacuum):
        with pytest.raises(UnsupportedFeatureError, match="is a table of delta too"):
            call()
    assert table.vacuum(mode="lite").files_removed == 0


def test_an_append_while_it_looks(table, foreign, monkeypatch):
    """What is committed after the listing is known when the orphans are removed."""
    from boathouse.iceberg.maintain.expiry import IcebergExpiry

    original = IcebergExpiry.kept

    def slow(self):
        bh.open(table.uri).append(rows(7))
        yield from original(self)

    monkeypatch.setattr(IcebergExpiry, "kept", slow)
    stray(foreign.root, *ORPHANS)
    done = table.remove_orphan_files("2100-01-01", enforce_retention_duration=False)
    assert sorted(done.paths) == sorted(ORPHANS)
    assert sorted(bh.open(table.uri).to_arrow()["id"].to_pylist()) == [1, 2, 3, 7]


def test_documents_of_commits_of_a_catalog(tmp_path):
    """One that lost or is about to be committed stays for three days."""
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/wh"}
    catalog, client = bh.catalog("prod", **options), load_catalog("prod", **options)
    client.create_namespace("db")
    client.create_table("db.t", SCHEMA)
    t = catalog.open("db.t")
    for i in range(3):
        t.append(rows(i))
    t.expire_snapshots("2100-01-01")
    root = Path(t.uri.removeprefix("file://"))
    old, young = "metadata/00002-aaaa.metadata.json", "metadata/00004-bbbb.metadata.json"
    for path in root.rglob("*"):
        os.utime(path, (1, 1))
    stray(root, old, "data/x.parquet")
    stray(root, young, days=1)
    assert set(t.remove_orphan_files().paths) == {old, "data/x.parquet"}
    assert (root / young).exists()
    assert sorted(client.load_table("db.t").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
    assert len(client.load_table("db.t").snapshots()) == 1
    t.append(rows(3))
    assert t.count() == 4


@pytest.mark.feature("vacuum", format="iceberg")
def test_vacuum_means_the_same_as_for_delta(table, foreign, monkeypatch):
    """What no version of the retention needs goes; older versions can no longer be read."""
    from boathouse.bits import system

    table.delete("id = 1")
    stray(foreign.root, *ORPHANS)
    assert sorted(table.vacuum(dry_run=True).paths) == sorted(ORPHANS)
    assert table.vacuum(mode="lite").files_removed == 0 and on_disk(foreign) > reachable(foreign)
    with pytest.raises(InvalidArgumentError, match=r"1 hours is less than the table's 120"):
        table.vacuum(1)
    monkeypatch.setattr(system, "current", lambda clock=Ahead(6 * 24): clock)
    dry = table.vacuum(dry_run=True)
    done = table.vacuum()
    assert sorted(dry.paths) == sorted(done.paths) and set(ORPHANS) < set(done.paths)
    assert done.retention_hours == 120 and len(foreign.document["snapshots"]) == 1
    assert on_disk(foreign) == reachable(foreign) and list(read_by_pyiceberg(foreign).values()) == [[2, 3]]
    table.set_properties({"history.expire.max-snapshot-age-ms": str(3_600_000)})
    table.append(rows(4))
    assert table.vacuum(0, enforce_retention_duration=False).files_removed > 0
    assert on_disk(foreign) == reachable(foreign)


@pytest.mark.spec("I-238")
@pytest.mark.parametrize("cleaned", ["true", "false"])
def test_the_log_of_documents(tmp_path, cleaned):
    """Each commit logs the document before it, at most so many; the others are removed only where the table says so."""
    path = str(tmp_path / "t")
    t = bh.create(path, SCHEMA, format="iceberg", properties={"write.metadata.previous-versions-max": "3"})
    t.set_properties({"write.metadata.delete-after-commit.enabled": cleaned})
    foreign = Foreign(tmp_path / "t")
    for i in range(6):
        t.append(rows(i))
        logged = [Path(e["metadata-file"]).name for e in foreign.document["metadata-log"]]
        number = i + 3
        assert logged == [f"v{n}.metadata.json" for n in range(max(1, number - 3), number)]
        there = {p.name for p in (tmp_path / "t" / "metadata").glob("*.metadata.json")}
        first = max(1, number - 3) if cleaned == "true" else 1
        assert there == {f"v{n}.metadata.json" for n in range(first, number + 1)}
    assert bh.open(path).count() == 6 == len(read_by_pyiceberg(foreign)[t.version])
    logged_times = [e["timestamp-ms"] for e in foreign.document["metadata-log"]]
    assert logged_times == sorted(logged_times)


@pytest.mark.spec("I-238")
def test_documents_of_a_sql_catalog_go_too(tmp_path):
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/wh"}
    catalog, client = bh.catalog("prod", **options), load_catalog("prod", **options)
    client.create_namespace("db")
    properties = {"write.metadata.previous-versions-max": "2", "write.metadata.delete-after-commit.enabled": "true"}
    client.create_table("db.t", SCHEMA, properties=properties)
    t = catalog.open("db.t")
    for i in range(5):
        t.append(rows(i))
    there = {p.name for p in Path(t.uri.removeprefix("file://")).glob("metadata/*.metadata.json")}
    loaded = client.load_table("db.t")
    named = [loaded.metadata_location, *(e.metadata_file for e in loaded.metadata.metadata_log)]
    assert there == {Path(n).name for n in named} and len(there) == 3

"""Maintenance by ours and by iceberg-spark: the same snapshots expire and the same files go, and each goes on after the
other."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from reference_spark import ICEBERG, started

import boathouse as bh

pytestmark = pytest.mark.slow
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
MODES = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
LATER = "2100-01-01"


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = started(ICEBERG, tmp_path_factory.mktemp("reference"))
    yield found
    found.close()


def rows(*ids):
    return pa.table({"id": list(ids), "p": [f"p{i % 3}" for i in ids]}, SCHEMA)


def made(path, version):
    """A history with everything that expires: files that were replaced, marks, a branch and a tag."""
    t = bh.create(path, SCHEMA, format="iceberg", partition_by=["p"], properties=MODES | {"format-version": version})
    for i in range(4):
        t.append(rows(*range(10 * i, 10 * i + 10)))
    t.delete("id IN (3, 14)")
    t.optimize()
    t.delete("id IN (25, 26)")
    t.overwrite(rows(90, 93, 96), where="p = 'p0'")
    return t


def fork(path):
    """A branch and a tag by hand, so that both tables have the same document but for their files."""
    folder = Path(path) / "metadata"
    head = max(folder.glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    document = json.loads(head.read_text())
    ids = [s["snapshot-id"] for s in document["snapshots"]]
    document["refs"]["dev"] = {"type": "branch", "snapshot-id": ids[4], "min-snapshots-to-keep": 2}
    document["refs"]["first"] = {"type": "tag", "snapshot-id": ids[0]}
    document["refs"]["old"] = {"type": "tag", "snapshot-id": ids[1], "max-ref-age-ms": 1}
    head.write_text(json.dumps(document))
    return ids


def state(path):
    """Places of the snapshots that are left in the history, refs, how many files of each kind there are."""
    t = bh.open(path)
    left = [s["snapshot_id"] for s in t.inspect.snapshots().to_pylist()]
    files = [p.name for p in Path(path).rglob("*") if p.is_file() and not p.name.startswith(".")]
    kinds = {
        "data": sum(n.endswith(".parquet") for n in files),
        "lists": sum(n.startswith("snap-") for n in files),
        "manifests": sum(n.endswith(".avro") and not n.startswith("snap-") for n in files),
        "puffin": sum(n.endswith(".puffin") for n in files),
    }
    return left, sorted(t.inspect.refs().column("name").to_pylist()), kinds


def ids_of(reference, name):
    return sorted(reference.rows(f"SELECT id FROM ice.n.{name}")["id"].to_pylist())


@pytest.mark.spec("I-224", "I-226")
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("keep", [1, 3])
def test_the_same_expires(reference, version, keep):
    found = {}
    for who in ("ours", "theirs"):
        name = f"expiry_{who}_{version}_{keep}"
        path = str(reference.root / "n" / name)
        made(path, version)
        ids = fork(path)
        if who == "ours":
            done = bh.open(path).expire_snapshots(LATER, retain_last=keep)
            figures = [done.kinds.get(k, 0) for k in ("data", "position deletes", "manifest", "manifest list")]
        else:
            call = f"CALL ice.system.expire_snapshots('n.{name}', TIMESTAMP '{LATER} 00:00:00', {keep})"
            (row,) = reference.rows(call).to_pylist()
            names = ("data_files", "position_delete_files", "manifest_files", "manifest_lists")
            figures = [row[f"deleted_{n}_count"] for n in names]
        left, refs, kinds = state(path)
        found[who] = [ids.index(id) for id in left], refs, kinds, figures
        wanted = sorted(bh.open(path).to_arrow()["id"].to_pylist())
        assert ids_of(reference, name) == wanted
        reference.sql(f"INSERT INTO ice.n.{name} VALUES (200, 'p2')")
        bh.open(path).append(rows(201))
        assert ids_of(reference, name) == [*wanted, 200, 201] == sorted(bh.open(path).to_arrow()["id"].to_pylist())
    assert found["ours"] == found["theirs"]


@pytest.mark.parametrize("version", ["2", "3"])
def test_it_goes_on_after_ours(reference, version):
    """Manifests are rewritten, versions expire, orphans go; theirs reads, rewrites and expires what is left."""
    name = f"goes_on_{version}"
    path = str(reference.root / "n" / name)
    t = made(path, version)
    lineage = ", _row_id, _last_updated_sequence_number" if version == "3" else ""
    read = f"SELECT id, p{lineage} FROM ice.n.{name} ORDER BY id"
    before = reference.rows(read)
    t.rewrite_manifests()
    reference.sql(f"REFRESH TABLE ice.n.{name}")
    assert reference.rows(read) == before
    t.expire_snapshots(LATER)
    assert t.remove_orphan_files(LATER, enforce_retention_duration=False).paths == ()
    reference.sql(f"REFRESH TABLE ice.n.{name}")
    assert reference.rows(read) == before
    assert len(reference.rows(f"SELECT * FROM ice.n.{name}.snapshots")) == 1
    orphans = f"CALL ice.system.remove_orphan_files(table => 'n.{name}', dry_run => true)"
    assert reference.rows(orphans).num_rows == 0
    reference.sql(
        f"INSERT INTO ice.n.{name} VALUES (300, 'p0')",
        f"DELETE FROM ice.n.{name} WHERE id = 93",
        f"CALL ice.system.rewrite_manifests('n.{name}')",
        f"CALL ice.system.rewrite_data_files(table => 'n.{name}', options => map('rewrite-all', 'true'))",
        f"CALL ice.system.expire_snapshots('n.{name}', TIMESTAMP '{LATER} 00:00:00', 1)",
    )
    left = [i for i in before["id"].to_pylist() if i != 93] + [300]
    t.refresh()
    assert sorted(t.to_arrow()["id"].to_pylist()) == sorted(left)
    t.rewrite_manifests()
    t.vacuum(0, enforce_retention_duration=False)
    assert ids_of(reference, name) == sorted(left)

"""Shallow clones: other tables of the same files, which neither table's writes take from the other."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote, unquote

import deltalake
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors

ROWS = pa.table({"id": [1, 2, 3, 4], "k": ["a b", "ü%/=", None, "a b"], "v": [1.5, None, 2.5, 0.0]})
VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name", **VECTORS}


@pytest.fixture(params=[{}, VECTORS, MAPPED], ids=["plain", "vectors", "mapped"])
def source(request, tmp_path):
    uri = str(tmp_path / "sö urce")
    properties = {**request.param, "delta.enableInCommitTimestamps": "true", "note": "kept"}
    bh.create(uri, ROWS.schema, partition_by=["k"], properties=properties)
    table = bh.open(uri)
    table.append(ROWS, txn=("job", 3))
    if "delta.columnMapping.mode" in request.param:
        table.rename_column("v", "va lue")
    table.append(pa.table({"id": [5, 6, 7], "k": ["a b"] * 3}))
    table.delete("id in (1, 6)")
    return table


def by_id(rows: pa.Table) -> list[dict]:
    return sorted(rows.to_pylist(), key=lambda r: r["id"])


def foreign(uri: str) -> list[dict]:
    table = deltalake.DeltaTable(uri.removeprefix("file://"))
    return by_id(pa.table(deltalake.QueryBuilder().register("t", table).execute("select * from t")))


def files(table) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in Path(table.uri.removeprefix("file://")).rglob("*") if p.is_file()}


def entry(table, version: int = 0) -> dict[str, list[dict]]:
    path = Path(table.uri.removeprefix("file://")) / f"_delta_log/{version:020d}.json"
    found: dict[str, list[dict]] = {}
    for line in path.read_text().splitlines():
        for kind, action in json.loads(line).items():
            found.setdefault(kind, []).append(action)
    return found


@pytest.mark.feature("shallow clone", format="delta", engine="either")
def test_a_clone_has_everything_but_the_files(source, tmp_path):
    target = str(tmp_path / "clone")
    before = files(source)
    dry = source.clone(target, dry_run=True)
    assert (dry.dry_run, dry.version, dry.files_added, dry.rows_added) == (True, None, source.files().num_rows, 5)
    assert not Path(target).exists()
    result = source.clone(target, message="for tests")
    assert (result.operation, result.version, result.rows_added) == ("clone", 0, 5)
    clone = bh.open(target)
    assert clone.schema == source.schema and clone.partitioning == source.partitioning
    wanted = by_id(source.to_arrow())
    assert by_id(clone.to_arrow()) == wanted == foreign(clone.uri)
    same = {k: v for k, v in source.properties.items() if "Enablement" not in k}
    assert dict(clone.properties) == same and clone.properties["note"] == "kept"
    ours, theirs = clone.detail(), source.detail()
    assert ours["id"] != theirs["id"]
    for name in ("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"):
        assert ours[name] == theirs[name]
    assert sorted(p.suffix for p in Path(target).rglob("*.*")) == [".crc", ".json"]
    assert files(source) == before
    info = clone.history()[0]
    assert (info.operation, info.message, info.parameters["sourceVersion"]) == ("CLONE", "for tests", source.version)
    assert info.metrics["sourceNumOfFiles"] == result.files_added
    assert clone.append(ROWS.rename_columns(clone.schema.names), txn=("job", 3)).version == 1


def test_paths_are_absolute_and_encoded(source, tmp_path):
    source.clone(str(tmp_path / "clone"))
    adds = entry(bh.open(str(tmp_path / "clone")))["add"]
    assert all(a["path"].startswith("file:/") and "/sö%20urce/" in a["path"] and a["dataChange"] for a in adds)
    vectors = [a["deletionVector"] for a in adds if "deletionVector" in a]
    assert bool(vectors) == (source.properties.get("delta.enableDeletionVectors") == "true")
    for vector in vectors:
        assert vector["storageType"] == "p" and vector["pathOrInlineDv"].startswith("file:/")
        assert vector["pathOrInlineDv"].endswith(".bin") and "/sö%20urce/" in vector["pathOrInlineDv"]
    for text in (*(a["path"] for a in adds), *(v["pathOrInlineDv"] for v in vectors)):
        assert not text.startswith("file://")


ODD = "a b%20c+dü&=é'(x),;$!~@[]{}^#日"


def test_paths_are_spelled_as_delta_spark_spells_them(tmp_path):
    """delta-spark compares them as text with the names of files that Spark reads, and aborts where none fits."""
    folder = tmp_path / ODD
    values = ["a b", "50%", "x+y", "ü", "p/q", "é=1:2"]
    source = bh.create(str(folder / "s"), "id bigint, `k+y` string", partition_by=["k+y"], properties=VECTORS)
    source.append([{"id": i, "k+y": k} for i in range(2) for k in values])
    source.delete("id = 0")
    source.clone(str(folder / "t"))
    clone = bh.open(str(folder / "t"))
    adds = entry(clone)["add"]
    root = f"file:{tmp_path}/a%20b%2520c+dü&=é'(x),;$!~@%5B%5D%7B%7D%5E%23日/s"
    written = ["a%20b", "50%2525", "x+y", "ü", "p%252Fq", "é%253D1%253A2"]
    assert {a["path"].rpartition("/")[0] for a in adds} == {f"{root}/k+y={k}" for k in written}
    assert all(a["deletionVector"]["pathOrInlineDv"].startswith(f"{root}/deletion_vector_") for a in adds)
    assert by_id(clone.to_arrow()) == by_id(source.to_arrow()) and clone.count() == len(values)


def respelled(table, spell) -> None:
    """The first commit of a clone with other spellings of its absolute paths."""
    log = Path(table.uri.removeprefix("file://")) / "_delta_log"
    path = log / f"{0:020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for add in (line["add"] for line in lines if "add" in line):
        add["path"] = spell(add["path"])
        if "deletionVector" in add:
            add["deletionVector"]["pathOrInlineDv"] = spell(add["deletionVector"]["pathOrInlineDv"])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for crc in log.glob("*.crc"):
        crc.unlink()


SPELLINGS = {
    "three slashes": lambda path: path.replace("file:/", "file:///", 1),
    "encoded": lambda path: "file:///" + quote(unquote(path).removeprefix("file:/"), safe="/="),
    "a path": lambda path: path.removeprefix("file:"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_other_spellings_name_the_same_files(source, tmp_path, spelling):
    source.clone(str(tmp_path / "clone"))
    clone = bh.open(str(tmp_path / "clone"))
    wanted, before = by_id(source.to_arrow()), files(source)
    named = sorted(clone.files()["path"].to_pylist())
    respelled(clone, SPELLINGS[spelling])
    clone = bh.open(clone.uri)
    assert sorted(clone.files()["path"].to_pylist()) == named and by_id(clone.to_arrow()) == wanted
    clone.set_properties({"delta.enableChangeDataFeed": "true"})
    since = clone.delete("id = 7").version
    clone.clone(str(tmp_path / "again"))
    assert by_id(bh.open(str(tmp_path / "again")).to_arrow()) == [r for r in wanted if r["id"] != 7]
    assert [r["id"] for r in clone.changes(since, since).to_arrow().to_pylist()] == [7]
    clone.update({"id": "id + 10"}, "id = 3")
    clone.optimize()
    for mode in ("lite", "full"):
        clone.vacuum(0, mode=mode, enforce_retention_duration=False)
    assert files(source) == before
    source.vacuum(0, enforce_retention_duration=False)
    clone.restore(0)
    assert by_id(clone.to_arrow()) == wanted == by_id(source.to_arrow())


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_file_is_removed_in_another_spelling(source, tmp_path, spelling):
    source.clone(str(tmp_path / "clone"))
    clone = bh.open(str(tmp_path / "clone"))
    (first, *others) = entry(clone)["add"]
    remove = {"path": SPELLINGS[spelling](first["path"]), "deletionTimestamp": 1, "dataChange": True}
    if "deletionVector" in first:
        remove["deletionVector"] = first["deletionVector"]
    info = {"timestamp": 4_000_000_000_000, "inCommitTimestamp": 4_000_000_000_000, "operation": "DELETE"}
    log = Path(clone.uri.removeprefix("file://")) / "_delta_log"
    lines = [{"commitInfo": info}, {"remove": remove}]
    (log / f"{1:020d}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    clone.refresh()
    assert clone.files().num_rows == len(others)
    clone.restore(0)
    assert by_id(clone.to_arrow()) == by_id(source.to_arrow())


def test_writes_to_the_clone_leave_the_source_alone(source, tmp_path):
    wanted, before = by_id(source.to_arrow()), files(source)
    source.clone(str(tmp_path / "clone"))
    clone = bh.open(str(tmp_path / "clone"))
    clone.delete("id = 7")
    clone.update({"id": "id + 10"}, "id = 3")
    assert [r["id"] for r in by_id(clone.to_arrow())] == [2, 4, 5, 13] == [r["id"] for r in foreign(clone.uri)]
    again = str(tmp_path / "clone of clone")
    clone.clone(again)
    assert by_id(bh.open(again).to_arrow()) == by_id(clone.to_arrow()) == foreign(again)
    clone.optimize()
    clone.delete()
    for mode in ("lite", "full"):
        clone.vacuum(0, mode=mode, enforce_retention_duration=False)
    assert files(source) == before and by_id(source.to_arrow()) == wanted
    assert clone.to_arrow().num_rows == 0
    clone.restore(0)
    assert by_id(clone.to_arrow()) == wanted


def test_an_older_version_is_cloned(source, tmp_path):
    bh.open(source.uri, version=1).clone(str(tmp_path / "clone"))
    assert [r["id"] for r in by_id(bh.open(str(tmp_path / "clone")).to_arrow())] == [1, 2, 3, 4]


def test_what_is_refused(tmp_path):
    uri = str(tmp_path / "t")
    bh.write(ROWS, uri)
    table = bh.open(uri)
    for target in (uri + "/inside", str(tmp_path)):
        with pytest.raises(errors.InvalidArgumentError, match="inside the other"):
            table.clone(target)
    with pytest.raises(errors.ForeignPathError, match="another kind"):
        table.clone("memory://clones/t")
    other = str(tmp_path / "other")
    bh.write(ROWS, other)
    with pytest.raises(errors.AlreadyExistsError):
        table.clone(other)
    bh.write(ROWS, f"{uri}-iceberg", format="iceberg")
    with pytest.raises(errors.UnsupportedFeatureError, match="clone is not offered"):
        bh.open(f"{uri}-iceberg").clone(str(tmp_path / "x"))


def test_tables_with_row_tracking_are_not_cloned(tmp_path):
    uri = str(tmp_path / "t")
    properties = {"delta.enableRowTracking": "true"}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["rowTracking", "domainMetadata"]}
    bh.create(uri, "id bigint")
    log = Path(uri) / "_delta_log" / ("0" * 20 + ".json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = protocol
        if "metaData" in line:
            line["metaData"]["configuration"] = properties
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for crc in log.parent.glob("*.crc"):
        crc.unlink()
    with pytest.raises(errors.UnsupportedFeatureError, match="row tracking is not cloned"):
        bh.open(uri).clone(str(tmp_path / "x"))

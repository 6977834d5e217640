"""Domain metadata, row ids, clustering columns and checkpoints of version 2: what writers owe them."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.adapter import FORMAT
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.delta.features.domains import domains
from boathouse.errors import CorruptTableError, InvalidArgumentError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location

ROWS = pa.table({"x": [0, 1, 2]})


def snapshot(path):
    return FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))


def domain(name, removed=False, **configuration):
    return {"domainMetadata": {"domain": name, "configuration": json.dumps(configuration), "removed": removed}}


def actions(delta, path, kind):
    return [[a[kind] for a in entry if kind in a] for entry in delta.log(path).values()]


def ids(path):
    return sorted(bh.open(str(path)).to_arrow().column("x").to_pylist())


@pytest.mark.spec("D-302")
@pytest.mark.feature("domainMetadata", format="delta")
def test_domains_are_kept_whatever_they_mean(with_features, delta):
    table = with_features("domainMetadata", more=[domain("their.own", a=1), domain("gone", b=2)])
    bh.open(str(table)).append(ROWS)
    table.commit(2, domain("gone", removed=True), domain("their.own", a=3))
    bh.open(str(table)).append(ROWS)
    assert domains(snapshot(table.path)) == {"their.own": '{"a": 3}'}
    write_checkpoint(snapshot(table.path))
    rows = pq.read_table(table.log / f"{3:020d}.checkpoint.parquet").column("domainMetadata").to_pylist()
    assert [r for r in rows if r] == [{"domain": "their.own", "configuration": '{"a": 3}', "removed": False}]
    for version in range(4):
        table.entry(version).unlink()
    assert domains(snapshot(table.path)) == {"their.own": '{"a": 3}'} and ids(table) == [0, 0, 1, 1, 2, 2]
    assert len(delta.rows(table)) == 6
    table.commit(4, {"domainMetadata": {"domain": 7}})
    with pytest.raises(CorruptTableError, match="domain metadata"):
        domains(snapshot(table.path))


@pytest.mark.spec("D-303")
@pytest.mark.feature("rowTracking", format="delta")
def test_every_row_gets_an_id_of_its_own(with_features, delta):
    table = with_features(
        "rowTracking", "domainMetadata", readers=["deletionVectors"],
        properties={"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
    )  # fmt: skip
    opened = bh.open(str(table))
    opened.append(ROWS)
    opened.append(pa.table({"x": [3, 4]}))
    opened.delete("x = 1")
    opened.set_properties({"delta.enableDeletionVectors": "false"})
    opened.delete("x = 3")
    adds = actions(delta, table, "add")
    told = [[(a["baseRowId"], a["defaultRowCommitVersion"]) for a in version] for version in adds]
    # The delete by a vector adds its file again with what it had; the one that copies a row stores its id in the file,
    # in a column that got its name when the properties were set.
    assert told == [[], [(0, 1)], [(3, 2)], [(0, 1)], [], [(5, 5)]]
    marks = [[json.loads(d["configuration"]) for d in v] for v in actions(delta, table, "domainMetadata")]
    assert marks == [[], [{"rowIdHighWaterMark": 2}], [{"rowIdHighWaterMark": 4}], [], [], [{"rowIdHighWaterMark": 5}]]
    removes = actions(delta, table, "remove")
    assert [(r["baseRowId"], r["defaultRowCommitVersion"]) for r in (*removes[3], *removes[5])] == [(0, 1), (3, 2)]
    tags = [v[0].get("tags") for v in actions(delta, table, "commitInfo")[1:]]
    assert [t["delta.rowTracking.preserved"] for t in tags] == ["true"] * 5
    kept = opened.scan(columns=["x", "_row_id", "_row_version"]).to_arrow().to_pylist()
    assert {(r["x"], r["_row_id"], r["_row_version"]) for r in kept} == {(0, 0, 1), (2, 2, 1), (4, 4, 2)}
    assert ids(table) == [0, 2, 4] == sorted(r["x"] for r in delta.rows(table))
    opened.restore(version=2)
    assert ids(table) == [0, 1, 2, 3, 4]
    restored = actions(delta, table, "add")[6]
    assert sorted(a["baseRowId"] for a in restored) == [0, 3]
    opened.append(ROWS)
    assert actions(delta, table, "add")[7][0]["baseRowId"] == 6


@pytest.mark.spec("D-303")
def test_the_mark_survives_checkpoints_and_other_writers(with_features, delta):
    table = with_features("rowTracking", "domainMetadata", more=[domain("delta.rowTracking", rowIdHighWaterMark=41)])
    first, second = bh.open(str(table)), bh.open(str(table))
    first.append(ROWS)
    second.append(ROWS)
    assert [a["baseRowId"] for v in actions(delta, table, "add") for a in v] == [42, 45]
    assert all("tags" not in v[0] for v in actions(delta, table, "commitInfo")[1:])
    write_checkpoint(snapshot(table.path))
    for version in range(3):
        table.entry(version).unlink()
    bh.open(str(table)).append(ROWS)
    assert [a["baseRowId"] for a in actions(delta, table, "add")[-1]] == [48]
    found = pq.read_table(table.log / f"{2:020d}.checkpoint.parquet").column("add").to_pylist()
    assert [(a["baseRowId"], a["defaultRowCommitVersion"]) for a in found if a] == [(42, 1), (45, 2)]


@pytest.mark.spec("D-307")
@pytest.mark.parametrize("form", ["names", "paths"])
def test_clustering_columns_have_statistics(with_features, delta, form):
    nested = {"type": "struct", "fields": [delta.field("deep", "long")], "nullable": True}
    fields = [delta.field("x", "long"), delta.field("late", "string"), delta.field("s", nested)]
    columns = [["late"], ["s", "deep"]] if form == "paths" else ["late"]
    table = with_features(
        "clustering", "domainMetadata", fields=fields, properties={"delta.dataSkippingNumIndexedCols": "1"},
        more=[domain("delta.clustering", clusteringColumns=columns)],
    )  # fmt: skip
    bh.open(str(table)).append(pa.table({"x": [1], "late": ["b"], "s": [{"deep": 7}]}))
    (stats,) = [json.loads(a["stats"]) for v in actions(delta, table, "add") for a in v]
    assert stats["minValues"] == {"x": 1, "late": "b"} | ({"s": {"deep": 7}} if form == "paths" else {})
    assert all("clusteringProvider" not in a for v in actions(delta, table, "add") for a in v)
    bh.open(str(table)).delete("x = 1")
    assert domains(snapshot(table.path))["delta.clustering"] == json.dumps({"clusteringColumns": columns})


@pytest.mark.spec("D-298")
def test_tables_with_checkpoints_of_version_2(with_features, delta):
    table = with_features(readers=["v2Checkpoint"], properties={"delta.checkpointInterval": "2"})
    opened = bh.open(str(table))
    for _ in range(3):
        opened.append(ROWS)
    found = pq.read_table(table.log / f"{2:020d}.checkpoint.parquet")
    assert [r["version"] for r in found.column("checkpointMetadata").to_pylist() if r] == [2]
    table.entry(0).unlink()
    table.entry(1).unlink()
    assert len(ids(table)) == 9 == len(delta.rows(table))
    assert bh.open(str(table), version=2).count() == 6


@pytest.mark.spec("D-199")
def test_a_clustering_column_is_not_dropped(with_features, delta):
    def mapped(name, id, type):
        keys = {"delta.columnMapping.id": id, "delta.columnMapping.physicalName": f"col-{id}"}
        return delta.field(name, type, **keys)

    table = with_features(
        "clustering", "domainMetadata", readers=["columnMapping"],
        fields=[mapped("x", 1, "long"), mapped("late", 2, "string")],
        properties={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
        more=[domain("delta.clustering", clusteringColumns=[["col-2"]])],
    )  # fmt: skip
    opened = bh.open(str(table))
    with pytest.raises(InvalidArgumentError, match="clustered by `late`"):
        opened.drop_column("late")
    opened.rename_column("late", "later")
    with pytest.raises(InvalidArgumentError, match="clustered by `later`"):
        opened.drop_column("later")
    opened.drop_column("x")
    assert list(bh.open(str(table)).schema.names) == ["later"]

"""Features: their names, the versions that imply them, and how a table loses one."""

import json
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.actions import Protocol
from boathouse.delta.adapter import FORMAT
from boathouse.delta.features.support import FEATURES, dropped, supports, writer_features
from boathouse.delta.log.cleanup import PROTECTED
from boathouse.errors import (
    BoathouseError,
    ConstraintViolationError,
    InvalidArgumentError,
    SchemaError,
    UnsupportedFeatureError,
)
from boathouse.ops import write as write_op
from boathouse.ops.table import drop_feature as features
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location
from boathouse.types import Identity

ROWS = pa.table({"x": [1, 2, 3]})
VECTORS = {"delta.enableDeletionVectors": "true"}


def snapshot(path):
    return FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))


def last(delta, path, kind):
    return [a[kind] for entry in delta.log(path).values() for a in entry if kind in a][-1]


def kinds(entry):
    return sorted({k for action in entry for k in action})


@pytest.fixture
def by_hand(raw, delta):
    """A table whose protocol is this one, and whose only column is `x`."""

    def make(writer, reader=1, names=None, readers=None, properties=None, more=(), **column):
        table = raw()
        protocol = {"minReaderVersion": reader, "minWriterVersion": writer}
        protocol |= {} if names is None else {"writerFeatures": names}
        protocol |= {} if readers is None else {"readerFeatures": readers}
        fields = [delta.field("x", "long", **column), *more]
        table.commit(0, {"protocol": protocol}, delta.metadata(fields, configuration=properties or {}))
        return str(table)

    return make


LEGACY = range(1, 7)


def raises(act):
    try:
        act()
    except ConstraintViolationError:
        return True
    return False


@pytest.mark.spec("D-169")
@pytest.mark.parametrize("writer", LEGACY)
def test_each_version_enforces_what_is_its_own(by_hand, delta, writer):
    """From its version on, and not before: the same keys mean nothing to older writers."""
    path = by_hand(writer, properties={"delta.appendOnly": "true"})
    bh.open(path).append(ROWS)
    assert raises(lambda: bh.open(path).delete()) == (writer >= 2)
    invariant = {"delta.invariants": json.dumps({"expression": {"expression": "x > 1"}})}
    assert raises(lambda: bh.open(by_hand(writer, **invariant)).append(ROWS)) == (writer >= 2)
    constraint = by_hand(writer, properties={"delta.constraints.c": "x > 1"})
    assert raises(lambda: bh.open(constraint).append(ROWS)) == (writer >= 3)
    feed = by_hand(writer, properties={"delta.enableChangeDataFeed": "true"})
    bh.open(feed).append(ROWS)
    bh.open(feed).update({"x": "x + 1"}, where="x = 1")
    assert ("cdc" in kinds(delta.log(feed)[2])) == (writer >= 4)
    twice = by_hand(writer, more=[delta.field("g", "long", **{"delta.generationExpression": "x * 2"})])
    bh.open(twice).append(ROWS)
    assert bh.open(twice).to_arrow().column("g").to_pylist() == ([2, 4, 6] if writer >= 4 else [None] * 3)
    keys = {"delta.identity.start": 7, "delta.identity.step": 1, "delta.identity.allowExplicitInsert": False}
    numbered = by_hand(writer, more=[delta.field("id", "long", **keys)])
    bh.open(numbered).append(ROWS)
    assert bh.open(numbered).to_arrow().column("id").to_pylist() == ([7, 8, 9] if writer >= 6 else [None] * 3)


@pytest.mark.spec("D-169")
@pytest.mark.parametrize(("reader", "writer"), [(1, 4), (1, 6), (2, 5), (2, 6)])
def test_column_mapping_by_version(by_hand, delta, reader, writer):
    mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}
    path = by_hand(writer, reader, properties={"delta.columnMapping.mode": "name"}, **mapped)
    bh.open(path).append(ROWS)
    (file,) = Path(path).glob("**/part-*.parquet")
    assert pq.read_schema(file).names == (["x"] if reader == 1 else ["col-1"])
    assert bh.open(path).count() == 3


@pytest.mark.spec("D-169")
@pytest.mark.parametrize("writer", [3, 4, 6])
def test_statistics_of_checkpoints_by_version(by_hand, writer):
    forms = {"delta.checkpoint.writeStatsAsJson": "false", "delta.checkpoint.writeStatsAsStruct": "true"}
    path = by_hand(writer, properties={**forms, "delta.checkpointInterval": "1"})
    bh.open(path).append(ROWS)
    add = pq.read_schema(Path(path) / "_delta_log" / f"{1:020d}.checkpoint.parquet").field("add").type
    assert {f.name for f in add} & {"stats", "stats_parsed"} == {"stats_parsed"}


@pytest.mark.spec("D-166")
@pytest.mark.feature("drop features", format="delta", engine="either")
def test_the_names_that_are_written(tmp_path, by_hand, delta):
    assert set(FEATURES) >= {
        "appendOnly", "invariants", "checkConstraints", "generatedColumns", "changeDataFeed", "columnMapping",
        "identityColumns", "deletionVectors",
    }  # fmt: skip
    path = str(tmp_path / "t")
    bh.create(path, "id bigint, x bigint", identity={"id": Identity()}, properties={"delta.columnMapping.mode": "name"})
    assert last(delta, path, "protocol") == {"minReaderVersion": 2, "minWriterVersion": 6}
    bh.open(path).set_properties(VECTORS)
    protocol = last(delta, path, "protocol")
    assert sorted(protocol["writerFeatures"]) == [
        "appendOnly", "changeDataFeed", "checkConstraints", "columnMapping", "deletionVectors", "generatedColumns",
        "identityColumns", "invariants",
    ]  # fmt: skip
    assert sorted(protocol["readerFeatures"]) == ["columnMapping", "deletionVectors"]
    both = by_hand(7, names=["columnInvariants"], **{
        "delta.invariants": json.dumps({"expression": {"expression": "x > 1"}})
    })  # fmt: skip
    with pytest.raises(ConstraintViolationError, match="invariant of x"):
        bh.open(both).append(ROWS)
    bh.open(both).append(pa.table({"x": [5]}))


@pytest.mark.spec("D-165")
def test_no_other_way_to_lose_a_feature(tmp_path, delta):
    """Neither properties nor an older version take features from the list."""
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta")
    table = bh.open(path)
    table.set_properties(VECTORS)
    table.delete("x = 1")
    names = last(delta, path, "protocol")
    table.set_properties({"delta.enableDeletionVectors": None})
    for properties in ({"delta.minReaderVersion": "1"}, {"delta.minWriterVersion": "2"}):
        table.set_properties(properties)  # as upgradeTableProtocol to what the table is beyond: nothing changes
        assert dict(snapshot(path).protocol.raw) == names and not set(properties) & set(table.properties)
    table.restore(version=0)
    assert dict(snapshot(path).protocol.raw) == names
    for wrong in ("deletionvectors", "zap", "rowTracking"):
        with pytest.raises(InvalidArgumentError, match="has no feature"):
            table.drop_feature(wrong)
    with pytest.raises(InvalidArgumentError, match="is not the name"):
        table.drop_feature("")
    for other in ("iceberg", "lance"):
        bh.write(ROWS, str(tmp_path / other), format=other)
        with pytest.raises(UnsupportedFeatureError, match="drop_feature is not offered"):
            bh.open(str(tmp_path / other)).drop_feature("x")


@pytest.mark.spec("D-165")
def test_deletion_vectors_are_purged_first(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(pa.table({"x": range(10)}), path, format="delta", properties=VECTORS)
    table = bh.open(path)
    table.append(pa.table({"x": [20]}))
    table.delete("x < 3")
    table.delete("x = 5")
    before = table.version
    result = table.drop_feature("deletionVectors", message="no more")
    log = delta.log(path)
    assert result.versions == (before + 1, before + 2) and kinds(log[before + 1]) == [
        "add", "commitInfo", "metaData", "remove",
    ]  # fmt: skip
    assert kinds(log[before + 2]) == ["commitInfo", "metaData", "protocol"]
    files = [a for a in log[before + 1] if "add" in a or "remove" in a]
    assert [a["dataChange"] for action in files for a in action.values()] == [False] * 2
    assert not any("deletionVector" in a["add"] for a in files if "add" in a)
    protocol = last(delta, path, "protocol")
    assert protocol == {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": protocol["writerFeatures"]}
    assert sorted(protocol["writerFeatures"]) == ["appendOnly", "checkpointProtection", "invariants"]
    properties = last(delta, path, "metaData")["configuration"]
    assert properties[PROTECTED] == str(before + 2) and properties["delta.enableDeletionVectors"] == "false"
    assert log[before + 2][0]["commitInfo"]["operation"] == "DROP FEATURE"
    for version in (before + 1, before + 2):
        assert (Path(path) / "_delta_log" / f"{version:020d}.checkpoint.parquet").exists()
    expected = [3, 4, 6, 7, 8, 9, 20]
    assert sorted(r["x"] for r in delta.rows(path)) == expected == sorted(bh.open(path).to_arrow()["x"].to_pylist())
    for version in range(before + 1):
        (Path(path) / "_delta_log" / f"{version:020d}.json").unlink()
    assert bh.open(path).count() == 7 and bh.open(path, version=before + 1).count() == 7
    table = bh.open(path)
    table.delete("x = 9")
    assert table.count() == 6 and "deletionVector" not in str(delta.log(path)[before + 3])
    table.set_properties(VECTORS)
    assert "deletionVectors" in last(delta, path, "protocol")["writerFeatures"]


@pytest.mark.spec("D-165")
def test_a_reader_feature_without_traces_goes_at_once(by_hand, delta):
    path = by_hand(
        7, 3, names=["vacuumProtocolCheck", "deletionVectors"], readers=["vacuumProtocolCheck", "deletionVectors"]
    )
    bh.open(path).append(ROWS)
    assert bh.open(path).drop_feature("vacuumProtocolCheck").versions == (2,)
    assert last(delta, path, "protocol") == {
        "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "checkpointProtection"],
    }  # fmt: skip
    assert bh.open(path).drop_feature("deletionVectors").versions == (3,)
    assert last(delta, path, "protocol") == {
        "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["checkpointProtection"],
    }  # fmt: skip
    assert last(delta, path, "metaData")["configuration"] == {PROTECTED: "3"}
    with pytest.raises(UnsupportedFeatureError, match="versions before 3 need it"):
        bh.open(path).drop_feature("checkpointProtection")
    log = Path(path) / "_delta_log"
    for old in (*log.glob(f"{0:020d}*"), *log.glob(f"{1:020d}*"), *log.glob(f"{2:020d}*")):
        old.unlink()
    bh.open(path).drop_feature("checkpointProtection")
    assert last(delta, path, "protocol") == {"minReaderVersion": 1, "minWriterVersion": 1}
    assert last(delta, path, "metaData")["configuration"] == {}
    assert bh.open(path).count() == 3 and len(delta.rows(path)) == 3


@pytest.mark.spec("D-165")
def test_checkpoints_of_version_2(by_hand, delta):
    path = by_hand(7, 3, names=["v2Checkpoint"], readers=["v2Checkpoint"], properties={"delta.checkpointInterval": "1"})
    bh.open(path).append(ROWS)
    checkpoint = Path(path) / "_delta_log" / f"{1:020d}.checkpoint.parquet"
    assert "checkpointMetadata" in pq.read_schema(checkpoint).names
    bh.open(path).drop_feature("v2Checkpoint")
    assert last(delta, path, "metaData")["configuration"]["delta.checkpointPolicy"] == "classic"
    for version in (2, 3):
        found = pq.read_schema(Path(path) / "_delta_log" / f"{version:020d}.checkpoint.parquet")
        assert "checkpointMetadata" not in found.names
    assert not supports(snapshot(path).protocol, "v2Checkpoint") and bh.open(path).count() == 3
    bh.open(path).set_properties({"delta.checkpointPolicy": "v2"})
    assert supports(snapshot(path).protocol, "v2Checkpoint")
    with pytest.raises(InvalidArgumentError, match="classic or v2"):
        bh.open(path).set_properties({"delta.checkpointPolicy": "v3"})


@pytest.mark.spec("D-165")
def test_row_ids_and_domains(by_hand, delta):
    path = by_hand(
        7, names=["rowTracking", "domainMetadata", "clustering"],
        properties={"delta.enableRowTracking": "true", "delta.rowTracking.materializedRowIdColumnName": "_row_id"},
    )  # fmt: skip
    for _ in range(2):
        bh.open(path).append(ROWS)
    for needs in ("rowTracking", "clustering"):
        with pytest.raises(UnsupportedFeatureError, match=f"feature {needs} needs domainMetadata"):
            bh.open(path).drop_feature("domainMetadata")
        assert bh.open(path).drop_feature(needs).commit is not None
    log = delta.log(path)
    adds = [a["add"] for a in log[3] if "add" in a]
    assert len(adds) == 2 and not any(
        "baseRowId" in a or "defaultRowCommitVersion" in a or a["dataChange"] for a in adds
    )
    assert all(json.loads(a["stats"])["numRecords"] == 3 for a in adds)
    domain = next(a["domainMetadata"] for a in log[3] if "domainMetadata" in a)
    assert (domain["domain"], domain["removed"]) == ("delta.rowTracking", True)
    assert last(delta, path, "metaData")["configuration"] == {"delta.enableRowTracking": "false"}
    assert bh.open(path).drop_feature("domainMetadata").versions == (5,)
    assert last(delta, path, "protocol") == {"minReaderVersion": 1, "minWriterVersion": 1}
    assert bh.open(path).count() == 6 == len(delta.rows(path))
    checksums = [json.loads(f.read_text())["numFiles"] for f in sorted((Path(path) / "_delta_log").glob("*.crc"))]
    assert checksums == sorted(checksums) and (not checksums or checksums[-1] == 2)
    bh.open(path).append(ROWS)
    assert "baseRowId" not in str(delta.log(path)[6])


@pytest.mark.spec("D-165")
def test_a_domain_of_another_keeps_the_feature(by_hand, delta):
    path = by_hand(7, names=["domainMetadata"])
    domain = {"domainMetadata": {"domain": "their.own", "configuration": "{}", "removed": False}}
    entry = Path(path) / "_delta_log" / f"{1:020d}.json"
    entry.write_text(json.dumps(domain) + "\n")
    with pytest.raises(UnsupportedFeatureError, match=r"their\.own"):
        bh.open(path).drop_feature("domainMetadata")


@pytest.mark.spec("D-165")
def test_commit_times(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta")
    bh.open(path).set_properties({"delta.enableInCommitTimestamps": "true"})
    bh.open(path).drop_feature("inCommitTimestamp")
    bh.open(path).append(ROWS)
    log = delta.log(path)
    assert ["inCommitTimestamp" in log[v][0]["commitInfo"] for v in (1, 3)] == [True, False]
    assert last(delta, path, "metaData")["configuration"] == {"delta.enableInCommitTimestamps": "false"}
    assert last(delta, path, "protocol") == {"minReaderVersion": 1, "minWriterVersion": 2}


IN_USE = [
    ("appendOnly", {"delta.appendOnly": "true"}, {}, "delta.appendOnly is true"),
    ("checkConstraints", {"delta.constraints.c": "x > 0"}, {}, "there are constraints"),
    ("changeDataFeed", {"delta.enableChangeDataFeed": "true"}, {}, "enableChangeDataFeed is true"),
    ("generatedColumns", {}, {"delta.generationExpression": "1"}, "generationExpression"),
    ("invariants", {}, {"delta.invariants": '{"expression": {"expression": "x > 0"}}'}, r"delta\.invariants"),
    ("identityColumns", {}, {"delta.identity.start": 1, "delta.identity.step": 1}, r"delta\.identity\.start"),
]


@pytest.mark.spec("D-165")
@pytest.mark.parametrize(("name", "properties", "column", "why"), IN_USE)
def test_features_in_use_stay(by_hand, delta, name, properties, column, why):
    """Also those that an old version implies; without use they go, and the rest is spelled as shortly as it can be."""
    path = by_hand(6, properties=properties, **column)
    with pytest.raises(UnsupportedFeatureError, match=why) as error:
        bh.open(path).drop_feature(name)
    assert error.value.advice and "first" in error.value.advice
    free = by_hand(6)
    bh.open(free).drop_feature(name)
    left = {"appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns"}
    assert set(writer_features(snapshot(free).protocol)) == left - {name}
    bh.open(free).append(ROWS)


@pytest.mark.spec("D-165")
def test_features_that_others_need(tmp_path, by_hand, delta):
    path = str(tmp_path / "t")
    bh.create(path, "x bigint, t timestamp_ntz", properties={"delta.enableIcebergCompatV2": "true"})
    with pytest.raises(UnsupportedFeatureError, match="timestamp_ntz"):
        bh.open(path).drop_feature("timestampNtz")
    with pytest.raises(UnsupportedFeatureError, match="icebergCompatV2 needs columnMapping"):
        bh.open(path).drop_feature("columnMapping")
    bh.open(path).drop_feature("icebergCompatV2")
    assert "icebergCompatV2" not in last(delta, path, "protocol")["writerFeatures"]
    unused = by_hand(5, 2)
    bh.open(unused).drop_feature("columnMapping")
    assert last(delta, unused, "protocol")["minReaderVersion"] == 1


NESTED = pa.struct([("a b", pa.int32()), ("l", pa.list_(pa.struct([("c", pa.string())])))])


@pytest.mark.spec("D-165")
@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_get_files_of_their_own_names(tmp_path, delta, mode):
    """Every file is written again, also one that comes meanwhile; then other readers need to know no mapping."""
    path = str(tmp_path / "t")
    nested = pa.array([None, {"a b": 1, "l": []}, {"a b": 2, "l": [{"c": "z"}, None]}], NESTED)
    rows = pa.table({"x": pa.array([1, 2, 3]), "p": ["u", "ü /", None], "s": nested})
    bh.write(rows, path, format="delta", partition_by=["p"], properties={**VECTORS, "delta.columnMapping.mode": mode})
    table = bh.open(path)
    table.rename_column("x", "y")
    table.append(rows.rename_columns(["y", "p", "s"]))
    table.delete("y = 2")
    with pytest.raises(SchemaError, match=r"`s\.a b` contains ' ', which Delta allows with column mapping only"):
        table.drop_feature("columnMapping")
    table.rename_column("s.a b", "a")
    before = bh.open(path).to_arrow().to_pylist()
    done = table.drop_feature("columnMapping")
    first, second = (delta.log(path)[version] for version in done.versions)
    assert kinds(second) == ["commitInfo", "metaData", "protocol"]
    recorded = next(a["metaData"] for a in first if "metaData" in a)
    assert "columnMapping" not in recorded["schemaString"] and "columnMapping" not in str(recorded["configuration"])
    assert "columnMapping" not in last(delta, path, "protocol")["writerFeatures"]
    added = [a["add"] for a in first if "add" in a]
    assert {tuple(a["partitionValues"]) for a in added} == {("p",)} and not any(a["dataChange"] for a in added)
    assert all("y" in json.loads(a["stats"])["minValues"] for a in added)
    assert sorted(map(str, bh.open(path).to_arrow().to_pylist())) == sorted(map(str, before))
    for add in added:
        names = pq.ParquetFile(f"{path}/{unquote(add['path'])}").schema_arrow.names
        assert names == ["y", "s"]
    found = sorted(r["y"] for r in delta.rows(path))
    assert found == [1, 1, 3, 3] == sorted(r["y"] for r in bh.open(path).to_arrow().to_pylist())
    assert bh.open(path).scan(where="p = 'u' AND s.a IS NULL").count() == 2
    assert bh.open(path, version=done.versions[0] - 1).count() == 4
    bh.open(path).append(pa.table({"y": [9]}))
    assert bh.open(path).count() == 5


@pytest.mark.spec("D-165", "D-305")
def test_widened_columns_get_files_of_their_type(tmp_path, delta):
    path = str(tmp_path / "t")
    narrow = pa.table({"x": pa.array([1, 2], pa.int8()), "f": pa.array([0.1, None], pa.float32())})
    bh.write(narrow, path, format="delta", properties={"delta.enableTypeWidening": "true"})
    table = bh.open(path)
    table.widen_column("x", "bigint")
    table.widen_column("f", "double")
    table.append(pa.table({"x": [2**40], "f": [0.1]}))
    before = table.to_arrow()
    table.drop_feature("typeWidening")
    assert table.to_arrow().sort_by("x").equals(before.sort_by("x")) and table.count() == 3
    recorded = last(delta, path, "metaData")
    assert "typeChanges" not in recorded["schemaString"]
    assert recorded["configuration"]["delta.enableTypeWidening"] == "false"
    assert "typeWidening" not in last(delta, path, "protocol")["writerFeatures"]
    types = {
        str(pq.ParquetFile(f.removeprefix("file://")).schema_arrow.types) for f in table.files()["path"].to_pylist()
    }
    assert types == {"[DataType(int64), DataType(double)]"}
    assert sorted(r["x"] for r in delta.rows(path)) == [1, 2, 2**40]
    with pytest.raises(InvalidArgumentError, match="no feature"):
        table.drop_feature("typeWidening")


@pytest.mark.spec("D-165")
def test_a_file_that_comes_while_mapped_ones_are_written_again(tmp_path, delta, monkeypatch):
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", properties={"delta.columnMapping.mode": "name"})
    table, once = bh.open(path), []

    def meanwhile(*args):
        if not once:
            once.append(bh.open(path).append(ROWS))
        return copied(*args)

    copied = features.write_units
    monkeypatch.setattr(features, "write_units", meanwhile)
    done = table.drop_feature("columnMapping")
    assert len(once) == 1 and done.retries == 1
    assert len(delta.rows(path)) == 2 * ROWS.num_rows == bh.open(path).count()


@pytest.mark.spec("D-165")
def test_a_feature_that_is_used_again_meanwhile(tmp_path, delta, monkeypatch):
    """Somebody turns vectors on again, and deletes, between the purge and the end."""
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", properties=VECTORS)
    bh.open(path).delete("x = 1")
    real, calls = write_op.TaskWork.perform, []

    def perform(work, engine):
        done = real(work, engine)
        calls.append(len(work.tasks))
        if len(calls) == 1:
            bh.open(path).delete("x = 2")
        return done

    monkeypatch.setattr(write_op.TaskWork, "perform", perform)
    bh.open(path).drop_feature("deletionVectors")
    assert not supports(snapshot(path).protocol, "deletionVectors")
    assert bh.open(path).to_arrow()["x"].to_pylist() == [3] and [r["x"] for r in delta.rows(path)] == [3]


@pytest.mark.spec("D-165")
def test_writers_beside_a_drop(tmp_path, delta, monkeypatch):
    """Whoever wrote under the old protocol loses."""
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", properties=VECTORS)
    real, calls = write_op.RowWork.perform, []

    def perform(work, engine):
        done = real(work, engine)
        if not calls:
            calls.append(1)
            bh.open(path).drop_feature("deletionVectors")
        return done

    monkeypatch.setattr(write_op.RowWork, "perform", perform)
    with pytest.raises(BoathouseError, match="protocol"):
        bh.open(path).append(ROWS)
    assert bh.open(path).count() == 3


def test_dry_run(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", properties=VECTORS)
    bh.open(path).delete("x = 1")
    result = bh.open(path).drop_feature("deletionVectors", dry_run=True)
    assert result.dry_run and result.files_removed == 1 and list(delta.log(path)) == [0, 1]


@pytest.mark.parametrize(
    ("versions", "name", "left"),
    [
        ((1, 4), "generatedColumns", (1, 7)),
        ((1, 4), "changeDataFeed", (1, 7)),
        ((2, 5), "columnMapping", (1, 4)),
        ((1, 6), "identityColumns", (1, 4)),
        ((2, 6), "identityColumns", (2, 5)),
        ((2, 6), "checkConstraints", (2, 7)),
        ((1, 3), "checkConstraints", (1, 2)),
    ],
)
def test_the_shortest_spelling(versions, name, left):
    before = Protocol(*versions)
    found = Protocol.parse(dropped(before, name), "")
    assert (found.min_reader, found.min_writer) == left
    assert set(writer_features(found)) == set(writer_features(before)) - {name}

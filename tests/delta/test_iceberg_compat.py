"""Iceberg compatibility V1 and V2: what a writer refuses, and the form of schemas and files."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.adapter import FORMAT
from boathouse.delta.features.column_mapping import nested_paths
from boathouse.errors import UnsupportedFeatureError
from boathouse.ops import write as write_op
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location

V1, V2 = {"delta.enableIcebergCompatV1": "true"}, {"delta.enableIcebergCompatV2": "true"}
NAMES = {"delta.columnMapping.mode": "name"}
NESTED = "delta.columnMapping.nested.ids"
ROWS = pa.table({"p": ["a", "b", "a"], "x": pa.array([1, 2, 3], pa.int64()), "d": [0.5, None, float("nan")]})
DEEP = pa.table(
    {
        "col1": pa.array([[[1, 2], None], None], pa.list_(pa.list_(pa.int32()))),
        "p": ["a", "b"],
        "col2": pa.array([[(1, [3])], [(2, None)]], pa.map_(pa.int32(), pa.list_(pa.int32()))),
        "col3": pa.array(
            [[(1, {"subcol1": [4]})], None], pa.map_(pa.int32(), pa.struct([("subcol1", pa.list_(pa.int32()))]))
        ),
    }
)


def schema_of(delta, path):
    found = [a["metaData"] for entry in delta.log(path).values() for a in entry if "metaData" in a]
    return json.loads(found[-1]["schemaString"])["fields"], found[-1]["configuration"]


def protocol_of(delta, path):
    return [a["protocol"] for entry in delta.log(path).values() for a in entry if "protocol" in a][-1]


def stored(path):
    return [pq.ParquetFile(f).schema_arrow for f in sorted(Path(path).glob("**/*.parquet")) if "_log" not in str(f)]


def ids(field):
    """Every id of a stored field: at each level, whatever its kind."""
    type = field.type
    below = (
        list(type) if pa.types.is_struct(type) else [type.value_field] if pa.types.is_list(type)
        else [type.key_field, type.item_field] if pa.types.is_map(type) else []
    )  # fmt: skip
    return [int((field.metadata or {}).get(b"PARQUET:field_id", b"-1")), *(i for f in below for i in ids(f))]


def refused(why, act, path=None, delta=None):
    before = list(delta.log(path)) if path else None
    with pytest.raises(UnsupportedFeatureError, match=why):
        act()
    assert path is None or list(delta.log(path)) == before


@pytest.mark.spec("D-308")
@pytest.mark.parametrize(("properties", "feature"), [(V1, "icebergCompatV1"), (V2, "icebergCompatV2")])
@pytest.mark.feature("icebergCompatV1", "icebergCompatV2", format="delta")
def test_turned_on_when_created(tmp_path, delta, properties, feature):
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", partition_by="p", properties=properties)
    bh.open(path).append(ROWS)
    bh.open(path).delete("x = 1")
    bh.open(path).optimize()
    protocol = protocol_of(delta, path)
    assert feature in protocol["writerFeatures"] and "columnMapping" in protocol["readerFeatures"]
    fields, configuration = schema_of(delta, path)
    assert configuration["delta.columnMapping.mode"] == "name"
    physical = {f["name"]: f["metadata"]["delta.columnMapping.physicalName"] for f in fields}
    for file in stored(path):
        assert file.names == [physical[n] for n in ("x", "d", "p")]
        assert [i for f in file for i in ids(f)] == [2, 3, 1]
    adds = [a["add"] for entry in delta.log(path).values() for a in entry if "add" in a]
    assert all(json.loads(a["stats"])["numRecords"] > 0 for a in adds)
    assert all(physical["p"] not in json.loads(a["stats"])["minValues"] for a in adds)
    assert {a["partitionValues"][physical["p"]] for a in adds} == {"a", "b"}
    mine = sorted((r["p"], r["x"]) for r in bh.open(path).to_arrow().to_pylist())
    assert mine == sorted((r["p"], r["x"]) for r in delta.rows(path)) == [("a", 3)] * 2 + [("b", 2)] * 2
    assert bh.open(path).scan(where="p = 'a' AND x > 2").count() == 2


@pytest.mark.spec("D-308")
def test_ids_of_elements_keys_and_values(tmp_path, delta):
    """The schema of the protocol's example; pyiceberg takes the files as they are."""
    path = str(tmp_path / "t")
    bh.write(DEEP, path, format="delta", partition_by="p", properties=V2)
    fields, configuration = schema_of(delta, path)
    by_name = {f["name"]: f["metadata"] for f in fields}
    steps = {
        n: [k.removeprefix(m["delta.columnMapping.physicalName"]) for k in m.get(NESTED, {})]
        for n, m in by_name.items()
    }
    assert steps == {
        "col1": [".element", ".element.element"],
        "p": [],
        "col2": [".key", ".value", ".value.element"],
        "col3": [".key", ".value"],
    }
    inner = fields[3]["type"]["valueType"]["fields"][0]["metadata"]
    assert list(inner[NESTED]) == [inner["delta.columnMapping.physicalName"] + ".element"]
    every = [m["delta.columnMapping.id"] for m in (*by_name.values(), inner)]
    every += [i for m in (*by_name.values(), inner) for i in m.get(NESTED, {}).values()]
    assert len(set(every)) == len(every) == 13 and configuration["delta.columnMapping.maxColumnId"] == str(max(every))
    nested = {n: list(m.get(NESTED, {}).values()) for n, m in by_name.items()}
    for file in stored(path):
        found = [ids(f) for f in file]
        assert found[0] == [by_name["col1"]["delta.columnMapping.id"], *nested["col1"]]
        assert found[1] == [by_name["col2"]["delta.columnMapping.id"], *nested["col2"]]
        last = [inner["delta.columnMapping.id"], *inner[NESTED].values()]
        assert found[2] == [by_name["col3"]["delta.columnMapping.id"], *nested["col3"], *last]
        iceberg = pytest.importorskip("pyiceberg.io.pyarrow").pyarrow_to_schema(file)
        assert iceberg.highest_field_id == max(i for f in found for i in f)
        assert iceberg.find_field(nested["col2"][1]).name == "value"
    assert sorted(map(str, bh.open(path).to_arrow().to_pylist())) == sorted(map(str, DEEP.to_pylist()))


@pytest.mark.spec("D-308")
def test_ids_stay_with_their_columns(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(DEEP, path, format="delta", properties=V2)
    before = schema_of(delta, path)[0]
    table = bh.open(path)
    table.rename_column("col1", "renamed")
    table.add_column("more", "array<string>")
    table.append(pa.table({"more": [["z"]]}))
    fields, configuration = schema_of(delta, path)
    assert [f["metadata"] for f in fields[:4]] == [f["metadata"] for f in before]
    assert list(fields[4]["metadata"][NESTED].values()) == [int(configuration["delta.columnMapping.maxColumnId"])]
    table.overwrite(DEEP.select(["p", "col2"]).append_column("col9", pa.array([[1], []])), overwrite_schema=True)
    again, _ = schema_of(delta, path)
    assert again[1]["metadata"] == before[2]["metadata"]
    assert max(again[2]["metadata"][NESTED].values()) > max(fields[4]["metadata"][NESTED].values())
    assert sorted(map(str, table.to_arrow().column("col2").to_pylist())) == sorted(map(str, DEEP["col2"].to_pylist()))
    element = {"type": "array", "elementType": {"type": "struct", "fields": []}, "containsNull": True}
    assert list(nested_paths(element, "c")) == ["c.element"]


@pytest.mark.spec("D-308")
def test_types(tmp_path, delta):
    path = str(tmp_path / "t")
    for schema in ("x int, a array<int>", "x int, m map<string, int>", "x int, s struct<a: array<int>>"):
        refused("icebergCompatV1 excludes", lambda schema=schema: bh.create(path, schema, properties=V1))
    void = pa.schema([("x", pa.int64()), ("v", pa.null())])
    for properties in (V1, V2):
        refused("is void, which", lambda properties=properties: bh.create(path, void, properties=properties))
    assert not Path(path).exists()
    bh.create(path, "x bigint, s struct<a: int>", properties=V1)
    for act in (
        lambda: bh.open(path).add_column("a", "array<int>"),
        lambda: bh.open(path).add_column("s.m", "map<int, int>"),
        lambda: bh.open(path).append(pa.table({"x": [1], "l": [[1]]}), merge_schema=True),
        lambda: bh.open(path).overwrite(pa.table({"l": [[1]]}), overwrite_schema=True),
    ):
        refused("icebergCompatV1 excludes", act, path, delta)
    bh.open(path).set_properties({"delta.enableIcebergCompatV1": "false"})
    bh.open(path).add_column("a", "array<int>")
    every = "a tinyint, b smallint, c int, d bigint, e float, f double, g decimal(38, 9), h string, i binary, j boolean"
    bh.create(
        path + "2", f"{every}, k timestamp, l timestamp_ntz, m date, n array<struct<x: map<int, int>>>", properties=V2
    )


@pytest.mark.spec("D-308")
def test_deletion_vectors(tmp_path, delta):
    vectors = {"delta.enableDeletionVectors": "true"}
    for properties, why in ((V1, "excludes the feature deletionVectors"), (V2, "excludes deletion vectors")):
        path = str(tmp_path / why)
        refused(why, lambda p=properties, w=path: bh.create(w, "x int", properties={**p, **vectors}))
        bh.create(path, "x int", properties=properties)
        refused(why, lambda w=path: bh.open(w).set_properties(vectors), path, delta)
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", properties={**vectors, **NAMES})
    table = bh.open(path)
    table.delete("x = 1")
    table.set_properties({"delta.enableDeletionVectors": "false"})
    refused("deletion vectors, which files have", lambda: table.set_properties(V2), path, delta)
    refused("excludes the feature", lambda: table.set_properties(V1), path, delta)
    table.overwrite(ROWS)
    table.set_properties(V2)
    table.delete("x = 1")
    adds = [a["add"] for entry in delta.log(path).values() for a in entry if "add" in a]
    assert "deletionVector" not in adds[-1] and table.count() == 2
    refused("deletion vectors", lambda: table.set_properties(vectors), path, delta)


@pytest.mark.spec("D-308")
def test_turned_on_later(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(DEEP, path, format="delta", partition_by="p")
    table = bh.open(path)
    refused("needs column mapping", lambda: table.set_properties(V2), path, delta)
    refused("exclude each other", lambda: table.set_properties({**V1, **V2, **NAMES}), path, delta)
    refused("which icebergCompatV1 excludes", lambda: table.set_properties({**V1, **NAMES}), path, delta)
    table.set_properties({**V2, **NAMES})
    fields, _ = schema_of(delta, path)
    assert list(fields[2]["metadata"][NESTED]) == ["col2.key", "col2.value", "col2.value.element"]
    table.append(DEEP)
    assert table.count() == 4 and len({len(f) for f in stored(path)}) == 2
    assert sorted(map(str, table.to_arrow().to_pylist())) == sorted(map(str, DEEP.to_pylist() * 2))
    refused("exclude each other", lambda: table.set_properties(V1), path, delta)
    later = str(tmp_path / "later")
    bh.write(DEEP, later, format="delta", properties=NAMES)
    bh.open(later).set_properties(V2)
    assert schema_of(delta, later)[0][0]["metadata"][NESTED]
    parted = str(tmp_path / "parted")
    bh.write(ROWS, parted, format="delta", partition_by="p", properties=NAMES)
    refused("the files lack them", lambda: bh.open(parted).set_properties(V1), parted, delta)
    bh.open(parted).delete()
    bh.open(parted).set_properties(V1)
    bh.open(parted).append(ROWS)
    assert sorted({len(f) for f in stored(parted)}) == [2, 3]


@pytest.mark.spec("D-308")
def test_the_number_of_rows_of_every_file(raw, delta):
    table = raw()
    table.file("f", pa.table({"x": [1, 2]}))
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]), table.add("f"))
    path = str(table)
    refused("the number of rows of every file", lambda: bh.open(path).set_properties({**V2, **NAMES}), path, delta)
    bh.open(path).overwrite(pa.table({"x": [5]}))
    bh.open(path).set_properties({**V2, **NAMES})
    assert bh.open(path).to_arrow().to_pylist() == [{"x": 5}]
    bh.open(path).set_properties({"own": "1"})
    # A version under the property, whose file lacks the number, as a careless writer may leave it.
    log = delta.log(path)
    bare = next(a for a in log[1] if "add" in a)
    bare = {"add": {k: v for k, v in bare["add"].items() if k != "stats"}}
    table.commit(4, {"remove": {"path": bare["add"]["path"], "dataChange": True, "deletionTimestamp": 1}}, bare)
    table.commit(5, {"remove": {"path": bare["add"]["path"], "dataChange": True, "deletionTimestamp": 1}})
    refused("needs the number of rows of", lambda: bh.open(path).restore(version=4), path, delta)


@pytest.mark.spec("D-308")
def test_the_partitioning_stays(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", partition_by="p", properties=V2)
    for by in ("x", []):
        act = lambda by=by: bh.open(path).overwrite(ROWS, overwrite_schema=True, partition_by=by)  # noqa: E731
        refused("partitioned by p stays so", act, path, delta)
    numbers = pa.table({"p": [1, 2], "y": [3, 4]})
    bh.open(path).overwrite(numbers, overwrite_schema=True, partition_by="p")
    assert bh.open(path).count() == 2
    bh.open(path).rename_column("p", "q")
    bh.open(path).append(pa.table({"q": [1], "y": [9]}))
    free = str(tmp_path / "free")
    bh.write(ROWS, free, format="delta", properties=V2)
    bh.open(free).overwrite(ROWS, overwrite_schema=True, partition_by="p")
    assert len(stored(free)[-1]) == 3


@pytest.mark.spec("D-308")
def test_change_files_and_merges(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", partition_by="p", properties={**V2, "delta.enableChangeDataFeed": "true"})
    table = bh.open(path)
    table.upsert(pa.table({"p": ["a", "c"], "x": [1, 9], "d": [7.0, 8.0]}), on="x")
    assert sorted((r["p"], r["x"]) for r in delta.rows(path)) == [("a", 1), ("a", 3), ("b", 2), ("c", 9)]
    kinds = sorted(r["_change_type"] for r in table.changes(1, 1).to_arrow().to_pylist())
    assert kinds == ["insert", "update_postimage", "update_preimage"]


@pytest.mark.spark
@pytest.mark.spec("D-308")
def test_files_that_spark_writes(tmp_path, delta, spark):
    path = str(tmp_path / "t")
    bh.write(DEEP, path, format="delta", partition_by="p", properties=V2)
    bh.open(path, spark=spark).append(bh.open(path).to_spark(spark))
    assert len({tuple(i for f in file for i in ids(f)) for file in stored(path)}) == 1
    mine = sorted(map(str, bh.open(path).to_arrow().to_pylist()))
    assert mine == sorted(map(str, DEEP.to_pylist() * 2))
    assert bh.open(path).to_spark(spark).where("p = 'a'").count() == 2


def test_files_without_partition_columns_do_not_serve(tmp_path, monkeypatch):
    """Another writer turns compatibility on again while rows are written."""
    path = str(tmp_path / "t")
    bh.write(ROWS, path, format="delta", partition_by="p", properties=V2)
    bh.open(path).set_properties({"delta.enableIcebergCompatV2": "false"})
    real, calls = write_op.RowWork.perform, []

    def perform(work, engine):
        done = real(work, engine)
        calls.append(work.context.materialized)
        if len(calls) == 1:
            bh.open(path).set_properties(V2)
        return done

    monkeypatch.setattr(write_op.RowWork, "perform", perform)
    bh.open(path).append(ROWS)
    assert calls == [False, True]
    head = FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))
    assert head.version == 3 and bh.open(path).count() == 6


@pytest.mark.spec("D-308")
def test_types_that_were_widened(tmp_path, delta):
    """What Iceberg has no promotion for."""
    path = str(tmp_path / "t")
    bh.create(path, "i int, d decimal(5, 2), f float, k int", properties={**V2, "delta.enableTypeWidening": "true"})
    for name, type in (("i", "bigint"), ("d", "decimal(9, 2)"), ("f", "double")):
        bh.open(path).widen_column(name, type)
    for name, type in (("d", "decimal(12, 4)"), ("k", "double"), ("k", "decimal(20, 0)")):
        refused("icebergCompatV2 excludes", lambda n=name, t=type: bh.open(path).widen_column(n, t), path, delta)
    later = str(tmp_path / "later")
    bh.create(later, "k int", properties={**NAMES, "delta.enableTypeWidening": "true"})
    bh.open(later).widen_column("k", "double")
    refused("was integer and became double", lambda: bh.open(later).set_properties(V2), later, delta)


@pytest.mark.spec("D-308")
def test_files_that_are_there_are_not_adopted(tmp_path):
    (tmp_path / "t").mkdir()
    pq.write_table(ROWS, tmp_path / "t" / "f.parquet")
    refused("needs field ids in every file", lambda: bh.convert(str(tmp_path / "t"), properties=V2))
    assert not (tmp_path / "t" / "_delta_log").exists()

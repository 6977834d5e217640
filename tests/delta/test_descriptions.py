"""What a table says of itself: names of columns, its own name and comments, its protocol and profile."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError, SchemaError, UnsupportedFeatureError
from boathouse.types import INT32, INT64, Field, ListType, Schema, StructType

MAPPED = {"delta.columnMapping.mode": "name"}
RARELY = {"delta.checkpointInterval": "1000"}
PLACES = {
    "top": lambda name: f"id int, `{name}` int",
    "struct": lambda name: f"id int, s struct<`{name}`: int>",
    "list": lambda name: f"id int, l array<struct<`{name}`: int>>",
    "map": lambda name: f"id int, m map<string, struct<`{name}`: int>>",
}


def metadata_of(delta, path):
    return [a["metaData"] for entry in delta.log(path).values() for a in entry if "metaData" in a][-1]


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "t")


@pytest.mark.spec("D-294")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("character", " ,;{}()\n\t=")
def test_characters_of_names(path, character, place):
    """The reference refuses them at every depth where files have the names of the schema."""
    schema = PLACES[place](f"a{character}b")
    with pytest.raises(SchemaError, match=r"(?s)a.b.*column mapping") as error:
        bh.create(path, schema)
    assert "delta.columnMapping.mode" in error.value.advice
    table = bh.create(path, schema, properties=MAPPED)
    rows = table.to_arrow().schema.empty_table().to_pylist()
    assert rows == [] and table.version == 0


@pytest.mark.spec("D-294")
def test_names_of_new_columns(path, delta):
    rows = pa.table({"x": [1], "a b": [2]})
    with pytest.raises(SchemaError, match="`a b`"):
        bh.write(rows, path, format="delta")
    table = bh.create(path, "x bigint, s struct<y: int>")
    for add in (
        lambda t: t.add_column("`a b`", "int"),
        lambda t: t.add_column("s.`a b`", "int"),
        lambda t: t.add_column("ok", "array<struct<`a=b`: int>>"),
        lambda t: t.append(rows, merge_schema=True),
        lambda t: t.overwrite(rows, overwrite_schema=True),
    ):
        with pytest.raises(SchemaError, match=r"a.b"):
            add(table)
    assert list(delta.log(path)) == [0]
    table.set_properties(MAPPED)
    table.add_column("`a b`", "int")
    table.rename_column("x", "x,;{}()\n\t=")
    table.append(pa.table({"x,;{}()\n\t=": [1], "a b": pa.array([2], pa.int32())}))
    assert table.to_arrow().select(["x,;{}()\n\t=", "a b"]).to_pylist() == [{"x,;{}()\n\t=": 1, "a b": 2}]
    assert [r["a b"] for r in delta.rows(path)] == [2]
    for name in ("", None):
        with pytest.raises(InvalidArgumentError):
            table.rename_column("`a b`", name)
    with pytest.raises(SchemaError, match="no name"):
        bh.create(f"{path}2", pa.schema([("", pa.int64())]), properties=MAPPED)


@pytest.mark.spec("D-294")
def test_tables_of_others_with_such_names_are_written(path, delta):
    """deltalake allows them; rows are added as before, and only new columns must do better."""
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(path, pa.table({"a b": [1], "c;d": ["x"]}))
    table = bh.open(path)
    table.append(pa.table({"a b": [2], "c;d": ["y"]}))
    table.delete("`a b` = 1")
    table.add_column("fine", "int")
    with pytest.raises(SchemaError, match="`not fine`"):
        table.add_column("`not fine`", "int")
    assert delta.rows(path) == table.to_arrow().to_pylist() == [{"a b": 2, "c;d": "y", "fine": None}]


@pytest.mark.spec("D-295")
@pytest.mark.parametrize("key", ["delta.invariants", "delta.generationExpression", "delta.identity.start", "delta.own"])
def test_keys_that_are_deltas_own(path, key):
    inner = Field("y", INT32, metadata={key: "1"})
    for field in (
        Field("x", INT64, metadata={key: "1"}),
        Field("s", StructType((inner,))),
        Field("l", ListType(Field("element", StructType((inner,))))),
    ):
        with pytest.raises(InvalidArgumentError, match=key.replace(".", r"\.")):
            bh.create(path, Schema((Field("id", INT64), field)))


@pytest.mark.spec("D-295")
def test_what_is_said_of_other_files_is_not_taken_along(path, delta):
    """A schema that was read from another table; a key that is not Delta's stays."""
    table = bh.create(path, "x int, s struct<y: date>", properties=MAPPED | {"delta.enableTypeWidening": "true"})
    table.widen_column("x", "bigint")
    assert "delta.typeChanges" in table.schema.field("x").metadata
    fields = table.schema.fields
    own = Field("o", INT64, metadata={"own": "1"})
    made = bh.create(f"{path}2", Schema((*fields, own)))
    found = json.loads(metadata_of(delta, f"{path}2")["schemaString"])["fields"]
    assert [f["metadata"] for f in found] == [{}, {}, {"own": "1"}]
    assert made.detail()["minReaderVersion"] == 1
    other = bh.create(f"{path}3", Schema(fields), properties=MAPPED)
    names = {f.metadata["delta.columnMapping.physicalName"] for f in (*fields, *other.schema.fields)}
    assert len(names) == 4, "another table's files have other names"


@pytest.mark.spec("D-090")
@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.feature("name the table", "comments", format="delta", engine="either")
def test_name_and_description(path, delta, checkpointed):
    table = bh.create(path, "id bigint, s struct<`a.b`: int>", properties={"own": "1"} | RARELY)
    assert not {"name", "description"} & (metadata_of(delta, path).keys() | table.detail().keys())
    table.set_name('orders, größe "1"')
    table.set_comment("what was sold\nand when")
    table.set_comment("the key", "ID")
    table.set_comment("inner", "s.`a.b`")

    def reopened():
        if checkpointed:
            write_checkpoint(bh.open(path)._handle.snapshot)
        found = bh.open(path)
        assert found.detail()["checkpoint"] == (found.version if checkpointed else None)
        return found

    found = reopened()
    assert (found.detail()["name"], found.detail()["description"]) == ('orders, größe "1"', "what was sold\nand when")
    assert [f.doc for f in found.schema] == ["the key", None]
    assert found.schema.field("s").type.fields[0].doc == "inner"
    theirs = pytest.importorskip("deltalake").DeltaTable(path).metadata()
    assert (theirs.name, theirs.description) == ('orders, größe "1"', "what was sold\nand when")
    # Other commits keep them.
    found.append(pa.table({"id": [1]}))
    found.set_properties({"own": "2"})
    found.add_column("later", "int")
    found.overwrite(pa.table({"id": [2]}), overwrite_schema=True)
    assert metadata_of(delta, path)["description"] == "what was sold\nand when"
    found.restore(version=found.version - 1)
    found.set_name(None)
    found.set_comment(None)
    found.set_comment(None, "id")
    found = reopened()
    assert not {"name", "description"} & (metadata_of(delta, path).keys() | found.detail().keys())
    assert found.schema.field("id").doc is None and found.schema.field("s").type.fields[0].doc == "inner"
    assert metadata_of(delta, path)["configuration"] == {"own": "2"} | RARELY


@pytest.mark.spec("D-090")
def test_texts_that_are_not(path):
    table = bh.create(path, "id bigint")
    for wrong in ("", 7, b"x"):
        with pytest.raises(InvalidArgumentError):
            table.set_name(wrong)
        with pytest.raises(InvalidArgumentError):
            table.set_comment(wrong)
    with pytest.raises(ColumnNotFoundError):
        table.set_comment("c", "zap")
    sayings = (lambda t: t.set_name("n"), lambda t: t.set_comment("c"), lambda t: t.set_comment("c", "id"))
    for format, refused in (("iceberg", sayings[:1]), ("lance", sayings[:2])):
        other = bh.create(f"{path}-{format}", "id bigint", format=format)
        for say in refused:
            with pytest.raises(UnsupportedFeatureError):
                say(other)


@pytest.mark.spec("D-151")
def test_nothing_is_added_that_is_not_used(path, delta):
    bh.create(path, "id bigint, p string, t timestamp, l array<int>", partition_by=["p"], properties={"own": "1"})
    assert delta.log(path)[0][1]["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 2}
    bh.write(pa.table({"x": [1]}), f"{path}2", format="delta")
    assert [a for a in delta.log(f"{path}2")[0] if "protocol" in a] == [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    ]
    off = {"delta.enableDeletionVectors": "false", "delta.enableTypeWidening": "false", "delta.appendOnly": "true"}
    bh.create(f"{path}3", "id bigint", properties=off)
    assert delta.log(f"{path}3")[0][1]["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 2}


@pytest.mark.spec("D-151")
def test_the_modern_profile(path, delta):
    table = bh.create(path, "id bigint, `a b` string", profile="modern")
    protocol = delta.log(path)[0][1]["protocol"]
    assert set(protocol["readerFeatures"]) == {"deletionVectors", "columnMapping"}
    assert {"deletionVectors", "columnMapping", "inCommitTimestamp"} <= set(protocol["writerFeatures"])
    assert "inCommitTimestamp" in delta.log(path)[0][0]["commitInfo"]
    assert table.properties["delta.columnMapping.mode"] == "name"
    table.append(pa.table({"id": [1, 2], "a b": ["x", "y"]}))
    table.delete("id = 1")
    assert table.files().column("deleted").to_pylist() == [1]
    assert delta.rows(path) == [{"id": 2, "a b": "y"}]
    given = {"delta.enableDeletionVectors": "false", "delta.columnMapping.mode": "id"}
    own = bh.create(f"{path}2", "id bigint", profile="modern", properties=given)
    assert {k: own.properties[k] for k in given} == given
    assert "deletionVectors" not in own.detail()["readerFeatures"]
    with pytest.raises(UnsupportedFeatureError, match=r"'classic'.*modern"):
        bh.create(f"{path}3", "id bigint", profile="classic")


@pytest.mark.spec("D-061")
@pytest.mark.parametrize("mode", ["name", "id"])
def test_checkpoints_of_mapped_tables_have_physical_names(path, delta, mode):
    """As in the protocol's example: typed statistics and partition values of renamed columns."""
    properties = {
        "delta.columnMapping.mode": mode,
        "delta.checkpoint.writeStatsAsStruct": "true",
        "delta.checkpoint.writeStatsAsJson": "false",
    }
    rows = pa.table({"id": [1, 2], "p": ["x", "y"], "d": pa.array([1, 2], pa.int32()), "s": [{"a": 1}, {"a": 2}]})
    bh.write(rows, path, format="delta", properties=properties, partition_by=["p", "d"])
    table = bh.open(path)
    table.rename_column("id", "key")
    table.rename_column("p", "part")
    table.rename_column("s.a", "b")
    write_checkpoint(table._handle.snapshot)
    log = Path(path) / "_delta_log"
    (file,) = log.glob("*.checkpoint.parquet")
    fields = {f["name"]: f for f in json.loads(metadata_of(delta, path)["schemaString"])["fields"]}

    def physical(f):
        return f["metadata"]["delta.columnMapping.physicalName"]

    add = pq.read_schema(file).field("add").type
    values = add.field("partitionValues_parsed").type
    assert {f.name: f.type for f in values} == {
        physical(fields["part"]): pa.string(),
        physical(fields["d"]): pa.int32(),
    }
    low = add.field("stats_parsed").type.field("minValues").type
    inner = fields["s"]["type"]["fields"][0]
    assert {f.name for f in low} == {physical(fields["key"]), physical(fields["s"])}
    assert [f.name for f in low.field(physical(fields["s"])).type] == [physical(inner)]
    for entry in log.glob("0*.json"):
        if int(entry.stem) < table.version:
            entry.unlink()
    again = bh.open(path)
    assert again.detail()["checkpoint"] == table.version
    assert len(again.scan(where="key = 1 AND part = 'x'").files()) == 1
    assert len(again.scan(where="s.b > 1").files()) == 1 and again.scan(where="key > 2").files() == []
    assert sorted(r["key"] for r in delta.rows(path)) == [1, 2]

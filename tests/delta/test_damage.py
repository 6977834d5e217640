"""Damage that must not be read past: a typed error that names the file, never other rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.arrow.utf8 import require_utf8
from boathouse.delta.adapter import FORMAT
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.errors import BoathouseError, CorruptTableError, StorageError, UnsupportedFeatureError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location

DATA = pa.table({"p": ["a", "b", None], "x": [1, 2, 3]})
NAME, ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"
MAPPED = {"minReaderVersion": 2, "minWriterVersion": 5}
CHECKPOINT = "00000000000000000001.checkpoint.parquet"


@pytest.fixture
def path(tmp_path) -> Path:
    bh.write(DATA, str(tmp_path / "t"), format="delta", partition_by=["p"])
    return tmp_path / "t"


@pytest.fixture
def checkpoint(path) -> Path:
    """A checkpoint of version 1, and no entry before it."""
    bh.open(str(path)).append(DATA)
    write_checkpoint(FORMAT.open(TableContext(Location(f"file://{path}"), Stores())))
    for version in range(2):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    assert bh.open(str(path)).count() == 6
    return path / "_delta_log" / CHECKPOINT


def edit(path: Path, change: Any, version: int = 0) -> None:
    """Changes actions of an entry in place: `change` gets all of them."""
    entry = path / "_delta_log" / f"{version:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    change({k: v for a in actions for k, v in a.items()})
    entry.write_text("".join(json.dumps(a) + "\n" for a in actions))


def refused(path: Path, words: str, file: str = f"{0:020d}.json", kind: type = CorruptTableError) -> None:
    """Reading says `words`, and names the file."""
    for read in (lambda: bh.open(str(path)).to_arrow(), lambda: bh.open(str(path)).count()):
        with pytest.raises(kind, match=words) as caught:
            read()
        assert re.search(file, caught.value.where), caught.value


def mapped(path: Path, mode: str, fields: list[dict[str, Any]]) -> None:
    def change(found: dict[str, Any]) -> None:
        found["metaData"]["configuration"] = {"delta.columnMapping.mode": mode}
        found["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": fields})
        found["protocol"].clear()
        found["protocol"].update(MAPPED)

    edit(path, change)


def test_column_mapping_by_names_that_are_missing_or_doubled(path, delta):
    p = delta.field("p", "string", **{ID: 1, NAME: "p"})
    mapped(path, "name", [p, delta.field("renamed", "long", **{ID: 2, NAME: "x"})])
    assert bh.open(str(path)).to_arrow().column("renamed").to_pylist() == [1, 2, 3]
    mapped(path, "name", [p, delta.field("renamed", "long", **{ID: 2})])
    refused(path, "`renamed` has no delta.columnMapping.physicalName")
    mapped(path, "name", [p, delta.field("renamed", "long", **{ID: 2, NAME: ""})])
    refused(path, "`renamed` has no delta.columnMapping.physicalName")
    mapped(
        path,
        "name",
        [p, delta.field("y", "long", **{ID: 2, NAME: "x"}), delta.field("z", "long", **{ID: 3, NAME: "x"})],
    )
    refused(path, "`y` and `z` have the same delta.columnMapping.physicalName, x")
    inner = {
        "type": "array",
        "containsNull": True,
        "elementType": {"type": "struct", "fields": [delta.field("m", "long")]},
    }
    mapped(
        path, "name", [p, delta.field("x", "long", **{ID: 2, NAME: "x"}), delta.field("l", inner, **{ID: 3, NAME: "l"})]
    )
    refused(path, r"`l\.element\.m` has no delta.columnMapping.physicalName")


def test_column_mapping_by_ids_that_are_missing_or_doubled(path, delta):
    p = delta.field("p", "string", **{ID: 1, NAME: "p"})
    mapped(path, "id", [p, delta.field("x", "long", **{NAME: "x"})])
    refused(path, "`x` has no delta.columnMapping.id")
    mapped(path, "id", [p, delta.field("x", "long", **{ID: 1, NAME: "x"})])
    refused(path, "`p` and `x` have the same delta.columnMapping.id, 1")
    mapped(path, "rename", [p, delta.field("x", "long", **{ID: 2, NAME: "x"})])
    refused(path, "columnMapping.mode is 'rename'")


@pytest.mark.spec("D-088")
@pytest.mark.parametrize("key", ["id", "format", "schemaString", "partitionColumns", "configuration"])
def test_required_fields_of_the_metadata(path, key):
    missing = [lambda found: found["metaData"].pop(key)]
    if key != "configuration":
        missing.insert(0, lambda found: found["metaData"].update({key: None}))
    for change in missing:
        edit(path, change)
        refused(path, f"the metaData action has no {key}")


@pytest.mark.spec("D-088")
def test_a_configuration_of_null_is_empty(path):
    edit(path, lambda found: found["metaData"].update(configuration=None))
    assert bh.open(str(path)).count() == 3 and dict(bh.open(str(path)).properties) == {}


@pytest.mark.spec("D-092")
@pytest.mark.parametrize("provider", ["csv", "orc", "json", "text"])
def test_files_that_are_not_parquet(path, provider):
    edit(path, lambda found: found["metaData"]["format"].update(provider=provider))
    refused(path, f"the data files are {provider}", kind=UnsupportedFeatureError)
    with pytest.raises(UnsupportedFeatureError, match=provider):
        bh.open(str(path)).append(DATA)


@pytest.mark.spec("D-085")
def test_two_of_what_there_is_one_of(path):
    entry = path / "_delta_log" / f"{0:020d}.json"
    lines = entry.read_text().splitlines()
    for kind in ("metaData", "protocol"):
        again = next(line for line in lines if line.startswith(f'{{"{kind}"'))
        entry.write_text("\n".join([*lines, again]))
        refused(path, f"has 2 {kind} actions")


def test_partition_values_that_are_missing(path):
    edit(path, lambda found: found["add"].pop("partitionValues"))
    refused(path, "has no value of `p`")


def test_one_partition_value_that_is_missing(path):
    edit(path, lambda found: found["add"]["partitionValues"].clear())
    refused(path, "has no value of `p`")


def test_actions_that_are_not_objects(path):
    entry = path / "_delta_log" / f"{0:020d}.json"
    whole = entry.read_text()
    for kind in ("add", "remove", "txn", "domainMetadata", "metaData", "protocol"):
        entry.write_text(whole + json.dumps({kind: 7}) + "\n")
        with pytest.raises(CorruptTableError) as caught:
            bh.open(str(path)).to_arrow()
        assert caught.value.where.endswith(f"{0:020d}.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.update(name=None), "called None"),
        (lambda f: f.update(name=7), "called 7"),
        (lambda f: f.pop("name"), "'name' is missing"),
        (lambda f: f.pop("type"), "'type' is missing"),
        (lambda f: f.update(nullable="no"), "`nullable`"),
        (lambda f: f.update(metadata=[1]), "cannot be read"),
        (lambda f: f.update(type="decimal(99,3)"), "decimal"),
        (lambda f: f.update(name="X" if f["name"] == "p" else "x"), "'X' and 'x'"),
        (lambda f: f.update(name="\ud800"), "an unpaired surrogate"),
    ],
)
def test_fields_of_the_schema(path, change, words):
    def both(found: dict[str, Any]) -> None:
        schema = json.loads(found["metaData"]["schemaString"])
        for f in schema["fields"]:
            change(f)
        found["metaData"]["schemaString"] = json.dumps(schema)

    edit(path, both)
    refused(path, words)


def nested(depth: int) -> str:
    start, end = '{"type":"array","containsNull":true,"elementType":', "}"
    return start * depth + '"string"' + end * depth


@pytest.mark.parametrize(("depth", "kind"), [(150, UnsupportedFeatureError), (2000, CorruptTableError)])
def test_schemas_that_are_deep(path, depth, kind):
    fields = f'{{"type":"struct","fields":[{{"name":"p","type":"string"}},{{"name":"d","type":{nested(depth)}}}]}}'
    edit(path, lambda found: found["metaData"].update(schemaString=fields))
    refused(path, "deep", kind=kind)


def test_a_schema_as_deep_as_is_read(path):
    fields = f'{{"type":"struct","fields":[{{"name":"p","type":"string"}},{{"name":"d","type":{nested(98)}}}]}}'
    edit(path, lambda found: found["metaData"].update(schemaString=fields))
    assert bh.open(str(path)).to_arrow().column("d").null_count == 3


@pytest.mark.parametrize("bad", [b"\xff\xfe", b'"\\ud800"', b"\xed\xa0\x80"])
def test_entries_that_are_not_utf8(path, bad):
    entry = path / "_delta_log" / f"{0:020d}.json"
    whole = entry.read_bytes()
    assert b'"p":"a"' in whole
    entry.write_bytes(whole.replace(b'"p":"a"', b'"p":' + (bad if bad[:1] == b'"' else b'"' + bad + b'"')))
    refused(path, "not UTF-8|surrogate")


@pytest.mark.parametrize("missing", ["cardinality", "sizeInBytes", "storageType", "pathOrInlineDv"])
def test_vectors_that_lack_something(path, missing):
    vector = {"storageType": "i", "pathOrInlineDv": "x" * 40, "sizeInBytes": 32, "cardinality": 1}
    edit(path, lambda found: found["add"].update(deletionVector={k: v for k, v in vector.items() if k != missing}))
    refused(path, f"a deletion vector has no {missing}")
    for odd in (-1, 1.5, "7", True, None, 1 << 63):
        edit(path, lambda found, odd=odd: found["add"].update(deletionVector={**vector, "sizeInBytes": odd}))
        refused(path, "a deletion vector has no sizeInBytes")


def test_a_vector_of_a_checkpoint_without_cardinality(checkpoint):
    table = pq.read_table(checkpoint)
    at = table.schema.get_field_index("add")
    adds = table.column(at).combine_chunks()
    vector = {"storageType": "i", "pathOrInlineDv": "x" * 40, "offset": None, "sizeInBytes": 32, "cardinality": None}
    rows = [None if a is None else {**a, "deletionVector": vector} for a in adds.to_pylist()]
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(rows, adds.type)), checkpoint)
    refused(checkpoint.parent.parent, "no cardinality", CHECKPOINT)


def with_add(table: pa.Table, change: Any) -> pa.Table:
    """The checkpoint with another `add` column; None leaves it out."""
    at = table.schema.get_field_index("add")
    array = change(table.column(at).combine_chunks())
    return table.remove_column(at) if array is None else table.set_column(at, "add", array)


def without(adds: pa.StructArray, name: str) -> pa.StructArray:
    kept = [f for f in adds.type if f.name != name]
    return pa.StructArray.from_arrays([adds.field(f.name) for f in kept], fields=kept, mask=adds.is_null())


def replaced(adds: pa.StructArray, name: str, array: pa.Array) -> pa.StructArray:
    fields = [pa.field(name, array.type) if f.name == name else f for f in adds.type]
    arrays = [array if f.name == name else adds.field(f.name) for f in adds.type]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=adds.is_null())


def not_utf8(array: pa.Array) -> pa.Array:
    """The first text with bytes that are no UTF-8, still called text."""
    values = [None if v is None else v.encode() for v in array.to_pylist()]
    first = next(i for i, v in enumerate(values) if v)
    values[first] = b"\x9d\xff" + values[first]
    made = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(made), made.buffers())


CHANGES = {
    "add is missing": (lambda adds: None, "`add` of the checkpoint is missing"),
    "add is text": (lambda adds: pa.array(["a"] * len(adds)), "`add` of the checkpoint is string"),
    "no path": (lambda adds: without(adds, "path"), "`add` of the checkpoint has no path"),
    "path of numbers": (lambda adds: replaced(adds, "path", pa.array(range(len(adds)))), r"`add\.path` .* is int64"),
    "partition values as text": (
        lambda adds: replaced(adds, "partitionValues", pa.array(["a"] * len(adds))),
        r"`add\.partitionValues` .* is string",
    ),
    "no partition values": (lambda adds: without(adds, "partitionValues"), "has no partitionValues"),
    "path that is not UTF-8": (lambda adds: replaced(adds, "path", not_utf8(adds.field("path"))), "not UTF-8"),
    "stats that are not UTF-8": (lambda adds: replaced(adds, "stats", not_utf8(adds.field("stats"))), "not UTF-8"),
    "path as bytes": (
        lambda adds: replaced(adds, "path", not_utf8(adds.field("path")).view(pa.binary())),
        "UTF",
    ),
    "a path that is null": (
        lambda adds: replaced(adds, "path", pa.nulls(len(adds), pa.string())),
        "an add action of the checkpoint has no path",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_checkpoints_whose_adds_are_none(checkpoint, case):
    change, words = CHANGES[case]
    pq.write_table(with_add(pq.read_table(checkpoint), change), checkpoint)
    refused(checkpoint.parent.parent, words, CHECKPOINT)
    with pytest.raises(CorruptTableError):
        bh.open(str(checkpoint.parent.parent)).scan(where="p = 'a'").to_arrow()


@pytest.mark.parametrize("case", ["add is missing", "add is text", "no path", "partition values as text"])
def test_the_entries_stand_in_for_such_a_checkpoint(path, case):
    bh.open(str(path)).append(DATA)
    write_checkpoint(FORMAT.open(TableContext(Location(f"file://{path}"), Stores())))
    found = path / "_delta_log" / CHECKPOINT
    pq.write_table(with_add(pq.read_table(found), CHANGES[case][0]), found)
    assert sorted(bh.open(str(path)).to_arrow().column("x").to_pylist()) == [1, 1, 2, 2, 3, 3]


def test_a_newest_checkpoint_that_is_empty(checkpoint):
    """The newest version is not what is left below it."""
    path = checkpoint.parent.parent
    before = path / "_delta_log" / f"{0:020d}.json"
    before.write_text(json.dumps({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}) + "\n")
    with before.open("a") as out:
        out.write(
            json.dumps({"metaData": dict(FORMAT.open(TableContext(Location(f"file://{path}"), Stores())).metadata.raw)})
        )
    checkpoint.write_bytes(b"")
    refused(path, "the log ends at version 0, but the checkpoint of version 1", CHECKPOINT)
    assert bh.open(str(path), version=0).count() == 0
    checkpoint.unlink()
    (checkpoint.parent / "00000000000000000001.checkpoint.0000000001.0000000002.parquet").write_bytes(b"PAR1")
    refused(path, "the checkpoint of version 1", "0000000001.0000000002.parquet")


def test_a_stray_entry_of_a_far_version(path):
    (path / "_delta_log" / f"{'9' * 20}.json").write_text("{}")
    with pytest.raises(CorruptTableError, match="lacks version 1 "):
        bh.open(str(path))


@pytest.mark.parametrize(
    "sidecar",
    [
        {}, {"path": "s.parquet"}, {"sizeInBytes": 4}, {"path": 7, "sizeInBytes": 4}, 7,
        {"path": "s.parquet", "sizeInBytes": "4"}, {"path": "s3://b/s", "sizeInBytes": 4},
    ],
)  # fmt: skip
def test_sidecars_without_path_or_size(path, sidecar):
    entry = path / "_delta_log" / f"{0:020d}.json"
    name = f"{0:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    lines = [line for line in entry.read_text().splitlines() if '"add"' not in line]
    (path / "_delta_log" / name).write_text("\n".join([*lines, json.dumps({"sidecar": sidecar})]))
    assert bh.open(str(path)).count() == 3, "the entries stand in"
    entry.unlink()
    refused(path, "sidecar", name)


@pytest.mark.parametrize(
    ("sidecar", "kind", "words"),
    [
        ("9" * 300 + ".parquet", StorageError, "cannot be opened"),
        ("folder.parquet", CorruptTableError, "folder.parquet is a directory"),
        ("file.parquet/x.parquet", CorruptTableError, "is missing"),
        ("absent.parquet", CorruptTableError, "is missing"),
    ],
)
def test_sidecars_that_cannot_be_opened(path, sidecar, kind, words):
    """Whatever the operating system says, it is an error of ours that names the file."""
    sidecars = path / "_delta_log" / "_sidecars"
    (sidecars / "folder.parquet").mkdir(parents=True)
    (sidecars / "file.parquet").write_bytes(b"x")
    name = f"{0:020d}.checkpoint.3a0d65cd-4056-49b8-937b-95f9e3ee90e5.json"
    entry = path / "_delta_log" / f"{0:020d}.json"
    lines = [a for a in entry.read_text().splitlines() if "commitInfo" not in a and '"add"' not in a]
    lines.append(json.dumps({"checkpointMetadata": {"version": 0}}))
    lines.append(json.dumps({"sidecar": {"path": sidecar, "sizeInBytes": 9, "modificationTime": 1}}))
    (path / "_delta_log" / name).write_text("\n".join(lines))
    entry.unlink()
    refused(path, words, re.escape(sidecar.rpartition("/")[2]), kind)


@pytest.mark.parametrize("hint", ["[" * 100_000, '{"version": ' + "9" * 400 + "}", '{"version": 1e400}', "\xff", "nul"])
def test_hints_of_any_kind(checkpoint, hint):
    (checkpoint.parent / "_last_checkpoint").write_bytes(hint.encode("latin-1"))
    assert bh.open(str(checkpoint.parent.parent)).count() == 6


@pytest.mark.parametrize("text", ["1E+999999999", "1E-999999999", "9" * 5000, "999999-01-01 00:00:00", "nan", "\0"])
@pytest.mark.parametrize("type", ["decimal(10,2)", "timestamp", "date", "long"])
def test_partition_values_cost_no_more_than_their_text(raw, delta, type, text):
    table = raw()
    table.file("f.parquet", pa.table({"x": [1]}))
    fields = [delta.field("p", type), delta.field("x", "long")]
    table.commit(0, delta.PROTOCOL, delta.metadata(fields, ["p"]), table.add("f.parquet", {"p": text}))
    try:
        assert bh.open(str(table)).to_arrow().num_rows == 1
        assert (type, text) == ("date", "999999-01-01 00:00:00")
    except CorruptTableError as error:
        assert "partition value" in error.message


@pytest.mark.parametrize("type", ["string", "map", "list", "struct"])
def test_texts_of_data_files_that_are_not_utf8(raw, delta, type):
    table = raw()
    bad = not_utf8(pa.array(["a", "b", "c"]))
    column, kind = bad, "string"
    if type == "list":
        column = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), bad)
        kind = {"type": "array", "elementType": "string", "containsNull": True}
    elif type == "map":
        column = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), bad, pa.array([1, 2, 3], pa.int64()))
        kind = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    elif type == "struct":
        column = pa.StructArray.from_arrays([bad], ["m"])
        kind = {"type": "struct", "fields": [delta.field("m", "string")]}
    table.file("f.parquet", pa.table({"s": column, "x": [1, 2, 3]}))
    fields = [delta.field("s", kind), delta.field("x", "long")]
    table.commit(0, delta.PROTOCOL, delta.metadata(fields), table.add("f.parquet", stats='{"numRecords":3}'))
    opened = bh.open(str(table))
    assert opened.count() == 3 and opened.scan(["x"]).to_arrow().num_rows == 3
    for read in (opened.to_arrow, lambda: opened.delete("x = 1"), lambda: opened.scan(["s"], "x < 3").to_arrow()):
        with pytest.raises(BoathouseError, match="`s` contains a string that is not UTF-8") as caught:
            read()
        assert isinstance(caught.value, CorruptTableError) and caught.value.where.endswith("f.parquet")
    assert opened.scan(["s"], "x > 1").to_arrow().column("s").combine_chunks().equals(column.slice(1))


def test_where_text_is_looked_for():
    bad = not_utf8(pa.array(["ab", "c", None]))
    arrays = [
        bad,
        pa.chunked_array([bad]),
        pa.StructArray.from_arrays([bad], ["a"]),
        pa.DictionaryArray.from_arrays(pa.array([1, 0]), bad),
        pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), bad),
        pa.FixedSizeListArray.from_arrays(bad, 3),
    ]
    for array in arrays:
        with pytest.raises(CorruptTableError, match=r"f\.parquet"):
            require_utf8(array, "f.parquet")
    halves = pa.Array.from_buffers(  # one character over two values: valid only when taken together
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer("é".encode())]
    )
    with pytest.raises(CorruptTableError):
        require_utf8(halves, "f")
    for array in (
        pa.array(["é", None]),
        bad.slice(1),
        pa.nulls(2, pa.string()),
        pa.array([], pa.string()),
        pa.array([1]),
    ):
        require_utf8(array, "f")

"""Files without field ids: the name mapping, and tables that have none."""

import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from mixed_files import FORMATS, evolved, opener, read

import boathouse as bh
from boathouse.errors import CorruptTableError
from boathouse.iceberg.metadata.name_mapping import NAME_MAPPING, NameMapping
from boathouse.types import INT32, INT64, STRING, Field, ListType, MapType, Schema, StructType
from makers.effort import counted_calls

# The example of the specification's appendix.
EXAMPLE = [
    {"field-id": 1, "names": ["id", "record_id"]},
    {"field-id": 2, "names": ["data"]},
    {"field-id": 3, "names": ["location"], "fields": [
        {"field-id": 4, "names": ["latitude", "lat"]},
        {"field-id": 5, "names": ["longitude", "long"]},
    ]},
]  # fmt: skip


def parse(mapping):
    return NameMapping.parse(json.dumps(mapping), "x")


@pytest.mark.spec("I-095")
def test_the_example_of_the_appendix():
    found = parse(EXAMPLE)
    assert found.json() == EXAMPLE and parse(found.json()) == found
    paths = {("id",): 1, ("record_id",): 1, ("data",): 2, ("location",): 3, ("location", "lat"): 4,
             ("location", "long"): 5, ("lat",): None, ("location", "lat", "x"): None, (): None}  # fmt: skip
    assert {path: found.id_at(path) for path in paths} == paths


@pytest.mark.spec("I-096")
def test_the_key_of_ids():
    """The specification's table has `field_id` in drafts, its example `field-id`."""
    found = parse([{"field_id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b"]}])
    assert found.id_at(("a",)) == 1 and found.id_at(("b",)) == 2
    assert found.json() == [{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b"]}]


@pytest.mark.parametrize("broken", (
    {}, [1], [{}], [{"names": "a"}], [{"names": [1]}], [{"field-id": True, "names": []}],
    [{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}],
    [{"field-id": 1, "names": ["a"]}, {"names": ["a"]}], [{"field-id": 1, "names": ["a"], "fields": [2]}],
), ids=str)  # fmt: skip
def test_broken_mappings(broken):
    if broken == {}:
        assert parse(broken).json() == []
        return
    with pytest.raises(CorruptTableError, match="name mapping cannot be read"):
        parse(broken)


def test_many_names_at_many_levels_take_few_calls():
    deep = []
    for n in range(60):
        deep = [{"field-id": n, "names": ["a", "b"], "fields": deep}]
    with counted_calls() as calls:
        assert parse(deep).id_at(("a", "b") * 30) == 0
    assert calls.count < 10_000  # of 2**60 paths


@pytest.fixture
def new(tmp_path):
    return opener(tmp_path)


def mapped(files, mapping):
    files.edit(lambda d: d["properties"].update({NAME_MAPPING: json.dumps(mapping)}))
    return files


def without_ids(files, format, rows):
    """The entry of a file with the columns of `rows`, and no field ids."""
    path = files._file(format)
    if format == "parquet":
        pq.write_table(rows, path)
        return files.entry(path, "PARQUET", 0, rows.num_rows)
    schema = type_of(pa.struct(list(rows.schema)))
    return files.file(format, rows, schema, ids=False)


NUMBERS = itertools.count()


def type_of(type):
    if pa.types.is_struct(type):
        made = [{"id": next(NUMBERS), "name": f.name, "required": False, "type": type_of(f.type)} for f in type]
        return {"type": "struct", "fields": made}
    if pa.types.is_map(type):
        return {"type": "map", "key-id": next(NUMBERS), "key": type_of(type.key_type), "value-id": next(NUMBERS),
                "value": type_of(type.item_type), "value-required": False}  # fmt: skip
    if pa.types.is_list(type):
        element = type_of(type.value_type)
        return {"type": "list", "element-id": next(NUMBERS), "element": element, "element-required": False}
    return {"int32": "int", "int64": "long", "string": "string"}[str(type)]


A = Schema((Field("a", INT64), Field("b", STRING)))


@pytest.mark.spec("I-088", "I-093")
@pytest.mark.parametrize("format", FORMATS)
def test_two_names_of_a_column_and_columns_that_are_not_mapped(new, format):
    files = mapped(new(A), [{"field-id": 1, "names": ["a", "old_a"]}, {"field-id": 2, "names": ["x"]}])
    files.commit(
        without_ids(files, format, pa.table({"a": pa.array([1]), "b": ["not mapped"], "x": ["one"]})),
        without_ids(files, format, pa.table({"more": ["?"], "x": ["two"], "old_a": pa.array([2])})),
    )
    assert read(files).to_pylist() == [{"a": 1, "b": "one"}, {"a": 2, "b": "two"}]
    assert read(files, where="b = 'two'").to_pylist() == [{"a": 2, "b": "two"}]


@pytest.mark.spec("I-089")
@pytest.mark.parametrize("format", ("parquet", "orc"))
def test_a_name_with_a_dot_is_one_name(new, format):
    mapping = [{"field-id": 1, "names": ["s.n"]}, {"field-id": 2, "names": ["b"]},
               {"names": ["s"], "fields": [{"names": ["n"]}]}]  # fmt: skip
    files = mapped(new(A), mapping)
    rows = pa.table({"s": [{"n": 7}], "s.n": pa.array([5]), "b": ["x"]})
    files.commit(without_ids(files, format, rows))
    assert read(files).to_pylist() == [{"a": 5, "b": "x"}]


NESTED = Schema((
    Field("s", StructType((Field("x", INT32), Field("y", INT32)))),
    Field("l", ListType(Field("element", StructType((Field("x", INT32),))))),
    Field("m", MapType(Field("key", STRING, False), Field("value", StructType((Field("x", INT32),))))),
    Field("n", ListType(Field("element", INT32))),
))  # fmt: skip


@pytest.mark.spec("I-090", "I-092")
@pytest.mark.parametrize("format", FORMATS)
def test_nested_names(new, format):
    files = new(NESTED)
    ids = {f["name"]: f for f in files.schema["fields"]}
    x = ids["s"]["type"]["fields"][0]["id"]
    deep = {"field-id": ids["l"]["type"]["element"]["fields"][0]["id"], "names": ["lx"]}
    value = {"field-id": ids["m"]["type"]["value"]["fields"][0]["id"], "names": ["mx"]}
    mapping = [
        {"field-id": ids["s"]["id"], "names": ["struct"], "fields": [
            {"field-id": x, "names": ["ex", "x"]}, {"names": ["y"]}]},
        {"field-id": ids["l"]["id"], "names": ["list"], "fields": [
            {"field-id": ids["l"]["type"]["element-id"], "names": ["element"], "fields": [deep]}]},
        {"field-id": ids["m"]["id"], "names": ["map"], "fields": [
            {"field-id": ids["m"]["type"]["key-id"], "names": ["key"]},
            {"field-id": ids["m"]["type"]["value-id"], "names": ["value"], "fields": [value]}]},
        {"field-id": ids["n"]["id"], "names": ["n"]},
    ]  # fmt: skip
    mapped(files, mapping)
    int = pa.int32()
    rows = pa.table({
        "struct": pa.array([{"y": 9, "ex": 1}, None], pa.struct([("y", int), ("ex", int)])),
        "list": pa.array([[{"lx": 2}, None], None], pa.list_(pa.struct([("lx", int)]))),
        "map": pa.array([[("k", {"mx": 3})], []], pa.map_(pa.string(), pa.struct([("mx", int)]))),
        "n": pa.array([[4], None], pa.list_(int))})  # fmt: skip
    files.commit(without_ids(files, format, rows))
    assert read(files).to_pylist() == [
        {"s": {"x": 1, "y": None}, "l": [{"x": 2}, None], "m": [("k", {"x": 3})], "n": [4]},
        {"s": None, "l": None, "m": [], "n": None},
    ]


@pytest.mark.spec("I-086", "I-091")
@pytest.mark.parametrize("format", FORMATS)
def test_the_order_of_what_a_missing_column_holds(new, format):
    """The partition's value, the mapped column, the initial default, null."""
    columns = ("p", "mapped", "default", "nothing", "empty")
    schema = Schema((Field("id", INT64), *(Field(n, STRING) for n in columns)))
    files = new(schema, partition_by=["p"]).upgrade()
    mapping = [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["p"]}, {"field-id": 3, "names": ["here"]},
               {"field-id": 4, "names": ["absent"]}, {"field-id": 6, "names": []}]  # fmt: skip
    mapped(files, mapping)

    def change(fields):
        for f in fields[1:4]:
            f["initial-default"] = f"default of {f['name']}"

    evolved(files, change)
    rows = pa.table({"id": pa.array([1]), "p": ["in the file"], "here": ["mapped"], "nothing": ["?"], "empty": ["?"],
                     "default": ["?"]})  # fmt: skip
    entry = without_ids(files, format, rows)
    entry["data_file"]["partition"] = {"p": "of the partition"}
    files.commit(entry)
    expected = {"id": 1, "p": "of the partition", "mapped": "mapped", "default": "default of default",
                "nothing": None, "empty": None}  # fmt: skip
    assert read(files).to_pylist() == [expected]
    assert read(files, columns=["id"], where="`default` = 'default of default' AND nothing IS NULL").num_rows == 1


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_with_ids_needs_no_mapping(new, format):
    files = mapped(new(A), [{"field-id": 2, "names": ["a"]}, {"field-id": 1, "names": ["b"]}])
    files.commit(files.file(format, pa.table({"a": pa.array([1]), "b": ["x"]})))
    assert read(files).to_pylist() == [{"a": 1, "b": "x"}]


@pytest.mark.spec("I-087")
@pytest.mark.parametrize("format", FORMATS)
def test_without_ids_and_mapping_names_decide_unless_they_have_changed(new, format):
    rows = pa.table({"b": ["x"], "A": pa.array([1])})
    files = new(A)
    files.commit(without_ids(files, format, rows))
    assert read(files).to_pylist() == [{"a": 1, "b": "x"}]
    evolved(files, lambda fields: fields.append({"id": 3, "name": "c", "required": False, "type": "long"}))
    assert read(files).to_pylist() == [{"a": 1, "b": "x", "c": None}]
    assert read(files, columns=["c"]).to_pylist() == [{"c": None}]
    # `a` becomes `d`, and another column is called `a`: which of them does the file have?
    evolved(files, lambda fields: (fields[0].update(name="d"), fields[2].update(name="a")))
    for column in ("a", "d", "b"):
        with pytest.raises(CorruptTableError, match=f"`{column}` must be found by its field id .* no ids") as caught:
            read(files, columns=[column])
        assert f".{format}" in str(caught.value) and "name-mapping" in str(caught.value)
    mapped(files, [{"field-id": 1, "names": ["A"]}, {"field-id": 2, "names": ["b"]}])
    assert read(files).to_pylist() == [{"d": 1, "b": "x", "a": None}]


@pytest.mark.parametrize("format", FORMATS)
def test_explain_says_that_names_decide(new, format):
    files = new(A)
    files.commit(files.file(format, pa.table({"a": pa.array([1]), "b": ["x"]})))

    def notes():
        return bh.open(str(files.root)).scan().explain().notes

    assert notes() == ()
    entry = without_ids(files, format, pa.table({"b": ["x"], "a": pa.array([2])}))
    files.commit(entry)
    files.commit(files.file(format, pa.table({"a": pa.array([3]), "b": ["z"]})))
    assert notes() == (), "the oldest file has ids"
    bh.open(str(files.root)).delete("a = 1")
    (note,) = notes()
    assert entry["data_file"]["file_path"] in note and note.endswith("their columns are found by name")
    assert f"  note: {note}" in str(bh.open(str(files.root)).scan().explain())
    evolved(files, lambda fields: fields[0].update(name="d"))
    (note,) = notes()
    assert "they are refused" in note
    with pytest.raises(CorruptTableError, match="no ids"):
        read(files)
    mapped(files, [{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b"]}])
    assert notes() == () and sorted(read(files)["d"].to_pylist()) == [2, 3]


@pytest.mark.spec("I-087")
@pytest.mark.parametrize("format", FORMATS)
def test_names_that_the_table_never_had_are_not_guessed(new, format):
    """As Hive names columns in ORC."""
    files = new(A)
    files.commit(without_ids(files, format, pa.table({"_col0": pa.array([1]), "_col1": ["x"]})))
    with pytest.raises(CorruptTableError, match="no ids"):
        read(files)
    mapped(files, [{"field-id": 1, "names": ["_col0"]}, {"field-id": 2, "names": ["_col1"]}])
    assert read(files).to_pylist() == [{"a": 1, "b": "x"}]


@pytest.mark.spec("I-094")
def test_new_columns_come_into_the_mapping(new):
    inner = StructType((Field("x", INT32),))
    files = new(Schema((Field("a", INT64), Field("s", inner))))
    stored = [{"field-id": 1, "names": ["a", "old"]}, {"field-id": 2, "names": ["s"], "fields": [
        {"field-id": 3, "names": ["x"]}]}, {"names": ["c"]}]  # fmt: skip
    mapped(files, stored)
    files.commit(without_ids(files, "parquet", pa.table({"old": pa.array([1]), "s": [{"x": 5}]})))
    table = bh.open(str(files.root))
    table.add_column("c", "array<struct<y:int>>")
    table.add_column("s.z", "int")
    mapping = json.loads(files.document["properties"][NAME_MAPPING])
    new_c = {"field-id": 4, "names": ["c"], "fields": [
        {"field-id": 5, "names": ["element"], "fields": [{"field-id": 6, "names": ["y"]}]}]}  # fmt: skip
    assert mapping == [
        stored[0],
        {"field-id": 2, "names": ["s"], "fields": [{"field-id": 3, "names": ["x"]}, {"field-id": 7, "names": ["z"]}]},
        new_c,
    ]
    table.append(pa.table({"a": pa.array([2]), "w": ["new"]}), merge_schema=True)
    mapping = json.loads(files.document["properties"][NAME_MAPPING])
    assert mapping[3:] == [{"field-id": 8, "names": ["w"]}]
    assert sorted(read(files)["a"].to_pylist()) == [1, 2]


@pytest.mark.spec("I-094")
def test_renamed_columns_keep_their_old_names():
    def schema(*names):
        return Schema(tuple(Field(n, INT64, id=id) for id, n in names))

    mapping = parse([{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["b", "e"]}])
    before = schema((1, "a"), (2, "b"))
    assert mapping.evolved(before, schema((1, "c"), (2, "b"))).json() == [
        {"field-id": 1, "names": ["a", "c"]}, {"field-id": 2, "names": ["b", "e"]}]  # fmt: skip
    # Names that go to another field are taken from the old one.
    moved = mapping.evolved(before, schema((1, "b"), (3, "e"))).json()
    assert [(f["field-id"], f["names"]) for f in moved] == [(1, ["a", "b"]), (2, []), (3, ["e"])]
    assert mapping.evolved(before, before) == mapping

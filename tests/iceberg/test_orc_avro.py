"""Data files and delete files in ORC and Avro, mixed with Parquet in one table."""

import datetime as dt
import json
import random
import struct
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pytest
from file_writers import (
    arrow_schema,
    edited_footer,
    types,
)
from mixed_files import (
    EVERY,
    FORMATS,
    ID,
    PLAIN,
    POSITIONS,
    column,
    evolved,
    ids_of,
    opener,
    plain,
    random_rows,
    read,
    same,
    value,
)

import boathouse as bh
from boathouse.errors import (
    CorruptTableError,
    SchemaMismatchError,
)
from boathouse.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    TIMESTAMP_NTZ,
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimeType,
)


@pytest.fixture
def new(tmp_path):
    return opener(tmp_path)


@pytest.mark.few(2)
@pytest.mark.spec("I-005", "I-011", "I-170", "I-282", "I-284", "I-285", "I-295", "I-296", "I-297")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.feature("ORC and Avro files", format="iceberg")
def test_every_type_in_every_format(new, seed):
    chance = random.Random(seed)
    files = new(EVERY)
    rows = random_rows(files.schema, 150, chance)
    avro = {"codec": chance.choice(("null", "deflate")), "maps": chance.random() < 0.5,
            "null_last": chance.random() < 0.5, "sync_interval": chance.choice((16000, 500))}  # fmt: skip
    packed = {"compression": chance.choice(("uncompressed", "zlib"))}
    parts = {f: rows.slice(i * 50, 50) for i, f in enumerate(FORMATS)}
    options = {"avro": avro, "orc": packed, "parquet": {}}
    for format in FORMATS:
        files.commit(files.file(format, parts[format], **options[format]))
    same(read(files).sort_by("k"), rows)
    for part in parts.values():
        (first, *_, last) = part["k"].to_pylist()
        same(
            read(files, where=f"k between {first} and {last}", columns=["mi", "k", "ls"]),
            part.select(["mi", "k", "ls"]),
        )


@pytest.mark.spec("I-267", "I-264", "I-266")
@pytest.mark.parametrize("format", ("orc", "avro"))
def test_deletes_in_every_format(new, format):
    files = new(PLAIN)
    files.commit(*(files.file(f, plain(*range(i * 10, i * 10 + 10))) for i, f in enumerate(FORMATS)))
    paths = files.live()
    gone = [(path, n) for path in paths for n in (0, 3, 9)] + [(paths[0], 99), ("file:///nowhere", 1)]
    positions = pa.table({"file_path": [p for p, _ in gone], "pos": pa.array([n for _, n in gone], pa.int64())})
    files.commit(files.file(format, positions, POSITIONS, 1))
    left = [i for i in range(30) if i % 10 not in (0, 3, 9)]
    assert ids_of(files) == left and bh.open(str(files.root)).count() == len(left)
    assert ids_of(files, where="x > 2.0") == [i for i in left if i > 4]
    keys = pa.table({"id": pa.array([1, 11, 21, 22, None], pa.int64())})
    files.commit(files.file(format, keys, ID, 2, more={"equality_ids": [1]}))
    left = [i for i in left if i not in (1, 11, 21, 22)]
    assert ids_of(files) == left
    # What is written onto it goes on in Parquet.
    table = bh.open(str(files.root))
    table.update({"x": "-1.0"}, "id in (2, 12)")
    table.delete("id = 24")
    left.remove(24)
    assert ids_of(files) == left and ids_of(files, where="x = -1.0") == [2, 12]
    table.optimize()
    assert ids_of(files) == left


@pytest.mark.parametrize("format", ("orc", "avro"))
def test_a_delete_file_without_its_columns(new, format):
    files = new(PLAIN)
    files.commit(files.file("parquet", plain(1, 2, 3)))
    before = files.document["current-snapshot-id"]
    no_ids = pa.table({"file_path": [files.live()[0]], "pos": pa.array([1], pa.int64())})
    files.commit(files.file(format, no_ids, POSITIONS, 1, ids=False))
    assert ids_of(files) == [1, 3]
    files.commit(files.file(format, pa.table({"s": ["s1"]}), {"fields": [
        {"id": 2, "name": "s", "type": "string", "required": False}]}, 2, more={"equality_ids": [1]}))  # fmt: skip
    with pytest.raises(CorruptTableError, match="lacks its key column `id`"):
        read(files)
    assert bh.open(str(files.root), version=before).count() == 3
    files.commit(files.file(format, pa.table({"id": pa.array([1], pa.int64())}), ID, 2, ids=False,
                            more={"equality_ids": [1]}), drop=lambda f: f["content"] == 2)  # fmt: skip
    with pytest.raises(CorruptTableError, match="has no ids"):
        read(files)


OLD = Schema((
    Field("i", INT32), Field("f", FLOAT), Field("d", DecimalType(9, 2)), Field("gone", STRING), Field("swap", STRING),
    Field("st", StructType((Field("a", INT32), Field("b", STRING)))),
    Field("li", ListType(Field("element", StructType((Field("a", INT32), Field("b", STRING)))))),
    Field("mp", MapType(Field("key", STRING, False), Field("value", INT32))),
))  # fmt: skip


@pytest.mark.spec("I-011")
def test_evolution_gives_the_same_in_every_format(new):
    files = new(OLD)
    files.upgrade()
    chance = random.Random(5)
    arrow = arrow_schema(files.schema)
    rows = pa.table([column(f.type, [value(f.type, chance) for _ in range(40)]) for f in arrow], schema=arrow)
    for format in FORMATS:
        files.commit(files.file(format, rows))

    def change(fields):
        by_name = {f["name"]: f for f in fields}
        by_name["i"].update(type="long", name="wide")
        by_name["f"]["type"], by_name["d"]["type"] = "double", "decimal(20, 2)"
        fields.remove(by_name["gone"])
        by_name["swap"]["name"] = "gone"
        new = {"id": 50, "name": "swap", "required": False, "type": "int", "initial-default": 7, "write-default": 8}
        fields.insert(0, new)
        for id, f in ((60, by_name["st"]["type"]["fields"]), (61, by_name["li"]["type"]["element"]["fields"])):
            f[0].update(type="long", name="b")
            f[1]["name"] = "a"
            f.insert(1, {"id": id, "name": "new", "required": False, "type": "string",
                         "initial-default": "x", "write-default": "x"})  # fmt: skip
        by_name["mp"]["type"]["value"] = "long"

    evolved(files, change)
    found = read(files)
    first, *others = (found.slice(i * 40, 40) for i in range(3))
    for other in others:
        same(other, first)
    assert set(first["swap"].to_pylist()) == {7} and first["gone"].to_pylist() == rows["swap"].to_pylist()
    assert first.schema.field("wide").type == pa.int64() and first["wide"].to_pylist() == rows["i"].to_pylist()
    for mine, theirs in zip(first["st"].to_pylist(), rows["st"].to_pylist()):
        assert mine == (None if theirs is None else {"b": theirs["a"], "new": "x", "a": theirs["b"]})
    assert read(files, columns=["swap"]).num_rows == 120
    assert read(files, columns=["wide"], where="swap = 8").num_rows == 0


@pytest.mark.spec("I-299")
def test_the_examples_of_the_specification(new):
    files = new(Schema((Field("a", INT32), Field("b", STRING))))
    files.commit(files.file("orc", pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]})))

    def change(fields):
        fields[:] = [{**fields[1], "name": "a"}, {"id": 3, "name": "c", "required": False, "type": "date"}]

    evolved(files, change)
    assert read(files).to_pylist() == [{"a": "x", "c": None}]
    inner = StructType((Field("b", STRING), Field("c", DATE)))
    files = new(Schema((Field("a", inner),)), "nested")
    day = pa.array([3], pa.int32()).view(pa.date32())
    struct = pa.StructArray.from_arrays([pa.array(["y"]), day], names=["b", "c"])
    files.commit(files.file("orc", pa.table({"a": struct})))

    def change(fields):
        fields[0]["name"] = "aa"
        b, c = fields[0]["type"]["fields"]
        fields[0]["type"]["fields"] = [{**c, "name": "cc"}, {**b, "name": "bb"}]

    evolved(files, change)
    assert read(files).to_pylist() == [{"aa": {"cc": dt.date(1970, 1, 4), "bb": "y"}}]


@pytest.mark.spec("I-287", "I-300")
@pytest.mark.parametrize("format", ("orc", "avro"))
def test_files_without_ids(new, format):
    files = new(Schema((Field("id", INT64), Field("st", StructType((Field("a", INT32), Field("b", STRING)))))))
    rows = pa.table({"id": [1, 2], "st": [{"a": 1, "b": "x"}, None]}, arrow_schema(files.schema))
    files.commit(files.file(format, rows, ids=False))
    assert read(files).equals(read(files)) and read(files).to_pylist() == rows.to_pylist()
    # Without a mapping, names decide until one changes.
    evolved(files, lambda fields: fields[0].update(name="number"))
    with pytest.raises(CorruptTableError, match="the file has no ids"):
        read(files)
    mapping = [
        {"field-id": 1, "names": ["number", "id"]},
        {"field-id": 2, "names": ["st"], "fields": [{"field-id": 3, "names": ["a"]}, {"names": ["b"]}]},
    ]
    files.edit(lambda d: d["properties"].update({"schema.name-mapping.default": json.dumps(mapping)}))
    assert read(files).to_pylist() == [{"number": 1, "st": {"a": 1, "b": None}}, {"number": 2, "st": None}]


@pytest.mark.spec("I-286")
def test_names_that_avro_does_not_have(new):
    names = ("1 a-b", "ü", "a.b", "x\ty")
    files = new(Schema((Field(names[0], INT64), Field(names[1], StructType((Field(names[2], INT32),))))))
    rows = pa.table({names[0]: [1], names[1]: [{names[2]: 2}]}, arrow_schema(files.schema))
    for format in FORMATS:
        files.commit(files.file(format, rows))
    assert read(files).to_pylist() == rows.to_pylist() * 3


def test_names_with_dots_in_orc(new):
    """pyarrow would take them for paths."""
    files = new(Schema((Field("a.b", INT64), Field("a", StructType((Field("c", STRING), Field("C", STRING)))))))
    schema = json.loads(json.dumps(files.schema).replace('"c"', '"b"').replace('"C"', '"B"'))
    rows = pa.table({"a.b": [1], "a": [{"b": "x", "B": "y"}]}, arrow_schema(schema))
    files.commit(files.file("orc", rows, schema))
    assert read(files).to_pylist() == [{"a.b": 1, "a": {"c": "x", "C": "y"}}]
    assert read(files, columns=["a.b"]).to_pylist() == [{"a.b": 1}]


@pytest.mark.spec("I-295")
def test_types_of_hive(new):
    files = new(Schema((Field("t", INT32), Field("s", INT32), Field("c", STRING), Field("v", STRING))))
    rows = pa.table({"t": pa.array([-128, 127, None], pa.int8()), "s": pa.array([-32768, 32767, None], pa.int16()),
                     "c": ["é", "long enough", None], "v": ["a ", "", None]})  # fmt: skip
    entry = files.file("orc", rows)
    path = Path(entry["data_file"]["file_path"].removeprefix("file://"))
    kinds = {3: [(1, 0, 17), (4, 0, 11)], 4: [(1, 0, 16), (4, 0, 4)]}
    edited_footer(path, types(lambda n, fields: kinds[n] + fields[1:] if n in kinds else fields))
    entry["data_file"]["file_size_in_bytes"] = path.stat().st_size
    files.commit(entry)
    assert read(files).to_pylist() == rows.to_pylist()


@pytest.mark.spec("I-298")
def test_fixed_of_another_length(new):
    files = new(Schema((Field("x", FixedType(5)), Field("i", INT32))))
    entry = files.file("orc", pa.table({"x": [b"12345", b"123"], "i": pa.array([1, 2], pa.int32())}))
    files.commit(entry)
    with pytest.raises(SchemaMismatchError, match="values of"):
        read(files)
    assert read(files, columns=["i"])["i"].to_pylist() == [1, 2]


def test_timestamps_beyond_nanoseconds_in_orc(new):
    files = new(Schema((Field("i", INT32), Field("t", TIMESTAMP_NTZ))))
    late = pa.array([253402300799_999_999, 0], pa.int64()).view(pa.timestamp("us"))
    rows = pa.table({"i": pa.array([1, 2], pa.int32()), "t": late})
    files.commit(files.file("orc", rows))
    same(read(files), rows)
    assert read(files, where="t > TIMESTAMP_NTZ'9000-01-01 00:00:00'", columns=["i"])["i"].to_pylist() == [1]
    files = new(Schema((Field("i", INT32), Field("t", TIMESTAMP_NTZ))), "avro")
    files.commit(files.file("avro", rows))
    same(read(files), rows)


def test_many_stripes_and_blocks(new):
    files = new(PLAIN)
    files.commit(
        files.file("orc", plain(*range(40_000)), stripe_size=1 << 16, batch_size=500),
        files.file("avro", plain(*range(40_000, 60_000)), sync_interval=2000),
    )
    path = next(p for p in files.live() if p.endswith("orc"))
    assert orc.ORCFile(path.removeprefix("file://")).nstripes > 1
    gone = pa.table({"file_path": [p for p in files.live() for _ in range(2000)],
                     "pos": pa.array([*range(0, 20_000, 10)] * 2, pa.int64())})  # fmt: skip
    files.commit(files.file("orc", gone, POSITIONS, 1))
    dead = {*range(0, 20_000, 10), *range(40_000, 60_000, 10)}
    assert ids_of(files) == [i for i in range(60_000) if i not in dead]
    assert ids_of(files, where="id between 39990 and 40005") == [i for i in range(39990, 40006) if i not in dead]
    assert bh.open(str(files.root)).count() == 60_000 - len(dead)


def test_avro_that_others_write(new):
    """Named types used again, enums, wrapped types, unions that nobody asks for, decimals as bytes, milliseconds."""
    files = new(Schema((
        Field("e", STRING), Field("a", StructType((Field("n", INT32),))), Field("b", StructType((Field("n", INT32),))),
        Field("d", DecimalType(10, 2)), Field("t", TIMESTAMP_NTZ), Field("m", TimeType("us")),
    )))  # fmt: skip
    inner = {"type": "record", "name": "Inner", "namespace": "x.y", "fields": [{"name": "n", "type": {"type": "int"}}]}
    schema = {"type": "record", "name": "row", "fields": [
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["ONE", "TWO"]}},
        {"name": "mixed", "type": ["null", "int", "string"]},
        {"name": "a", "type": ["null", inner]}, {"name": "b", "type": ["x.y.Inner", "null"]},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "t", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "m", "type": {"type": "int", "logicalType": "time-millis"}},
    ]}  # fmt: skip
    day = dt.datetime(1969, 12, 31, 23, 59, 59, 999000)
    rows = [
        {"e": "TWO", "mixed": "x", "a": {"n": 1}, "b": None, "d": Decimal("-1.28"), "t": day, "m": dt.time(1, 2, 3)},
        {"e": "ONE", "mixed": 3, "a": None, "b": {"n": -5}, "d": Decimal("99999999.99"), "t": day, "m": dt.time(0)},
    ]
    path = files._file("avro")
    with open(path, "wb") as f:
        fastavro.writer(f, schema, rows)
    files.commit(files.entry(path, "AVRO", 0, 2))
    assert read(files).to_pylist() == [{k: v for k, v in r.items() if k != "mixed"} for r in rows]


@pytest.mark.spec("I-283")
def test_lists_of_one_row_longer_than_a_block(new):
    files = new(Schema((Field("li", ListType(Field("element", ListType(Field("element", INT64))))),)))
    rows = pa.table({"li": [[[*range(n), None], [], None] for n in (30_000, 0, 3)]}, arrow_schema(files.schema))
    files.commit(files.file("avro", rows), files.file("orc", rows))
    found = read(files)
    assert found["li"].to_pylist() == rows["li"].to_pylist() * 2


@pytest.mark.parametrize("format, values", [("orc", 3), ("parquet", 2), ("avro", None)])
def test_nulls_of_structs_that_java_does_not_count(new, format, values):
    """In Parquet it leaves them out of the values too, where the field is a float."""
    files = new(Schema((Field("id", INT64), Field("st", StructType((Field("c", DOUBLE),))))))
    rows = pa.table({"id": [1, 2, 3], "st": [{"c": 5.0}, None, {"c": 7.0}]}, arrow_schema(files.schema))
    counts = {"null_value_counts": [{"key": 3, "value": 0}], "nan_value_counts": [{"key": 3, "value": 0}]}
    bounds = {f"{n}_bounds": [{"key": 3, "value": struct.pack("<d", v)}] for n, v in (("lower", 5), ("upper", 7))}
    counted = {} if values is None else {"value_counts": [{"key": 3, "value": values}]}
    files.commit(files.file(format, rows, more=counts | bounds | counted))
    assert ids_of(files, where="st.c IS NULL") == [2] and ids_of(files, where="st.c IS NOT NULL") == [1, 3]
    assert ids_of(files, where="NOT (st.c > 1) OR st.c IS NULL") == [2]
    bh.open(str(files.root)).delete("st.c > 1")
    assert ids_of(files) == [2]


@pytest.mark.spark
@pytest.mark.feature("ORC and Avro files", format="iceberg")
@pytest.mark.route("ORC and Avro files")
def test_on_executors(spark, new):
    files = new(PLAIN)
    files.commit(*(files.file(f, plain(*range(i * 10, i * 10 + 10))) for i, f in enumerate(FORMATS)))
    gone = pa.table({"file_path": files.live(), "pos": pa.array([1] * 3, pa.int64())})
    files.commit(files.file("orc", gone, POSITIONS, 1))
    keys = pa.table({"id": pa.array([2, 12, 22], pa.int64())})
    files.commit(files.file("avro", keys, ID, 2, more={"equality_ids": [1]}))
    table = bh.open(str(files.root), spark=spark)
    expected = [i for i in range(30) if i % 10 not in (1, 2)]
    assert sorted(r.id for r in table.to_spark(spark).collect()) == expected
    found = table.scan(["id", "s"], where="x > 5").to_spark(spark).collect()
    assert sorted((r.id, r.s) for r in found) == [(i, f"s{i}") for i in expected if i > 10]
    table.update({"s": "'new'"}, "id in (3, 13, 23)")
    assert ids_of(files, where="s = 'new'") == [3, 13, 23] and ids_of(files) == expected

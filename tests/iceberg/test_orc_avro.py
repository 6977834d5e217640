"""Data files and delete files in ORC and Avro, mixed with Parquet in one table."""

import datetime as dt
import itertools
import json
import random
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pytest
from file_writers import (
    arrow_schema,
    arrow_type,
    fields_of,
    join_orc,
    message,
    split_orc,
    write_avro,
    write_orc,
)
from foreign_writer import PATH_ID, POSITION_ID, Foreign

import boathouse as bh
from boathouse.errors import CorruptTableError, SchemaMismatchError, UnsupportedFeatureError
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimeType,
)

FORMATS = ("parquet", "orc", "avro")
LEAVES = {
    "bo": BOOLEAN, "i": INT32, "l": INT64, "f": FLOAT, "d": DOUBLE, "da": DATE, "t": TimeType("us"),
    "ts": TIMESTAMP_NTZ, "tz": TIMESTAMP, "s": STRING, "u": UUID, "x": FixedType(5), "bi": BINARY,
    "p9": DecimalType(9, 2), "p18": DecimalType(18, 0), "p38": DecimalType(38, 10), "p3": DecimalType(3, 3),
}  # fmt: skip
NESTED = {
    "st": StructType((Field("a", INT32), Field("b", StructType((Field("c", STRING), Field("t", TIMESTAMP)))))),
    "li": ListType(Field("element", DecimalType(20, 2))),
    "ll": ListType(Field("element", ListType(Field("element", TIMESTAMP_NTZ)))),
    "ms": MapType(Field("key", STRING, False), Field("value", INT64)),
    "mi": MapType(
        Field("key", INT32, False), Field("value", StructType((Field("t", TimeType("us")), Field("u", UUID))))),
    "ls": ListType(Field("element", StructType((Field("d", DATE), Field("m", MapType(
        Field("key", INT64, False), Field("value", STRING))))))),
}  # fmt: skip
EVERY = Schema(tuple(Field(n, t) for n, t in ({"k": INT32} | LEAVES | NESTED).items()))


class Files(Foreign):
    """Writes data files of every format."""

    @property
    def schema(self):
        document = self.document
        return next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])

    def file(self, format, table, schema=None, content=0, partition=None, more=None, **options):
        """The entry of a file with the rows of `table` in a schema of the metadata."""
        schema = schema or self.schema
        if format == "parquet":
            with_id = [field_with_ids(f) for f in schema["fields"]]
            return self.parquet(table.cast(pa.schema(with_id)), None, content, partition, **(more or {}))
        path = self._file(format)
        {"orc": write_orc, "avro": write_avro}[format](path, table, schema, **options)
        return self.entry(path, format.upper(), content, table.num_rows, partition, **(more or {}))


def field_with_ids(f):
    """An Arrow field of a field in the metadata, with Parquet field ids at every level."""
    type = f["type"]
    if isinstance(type, str):
        made = arrow_type(type)
    elif type["type"] == "struct":
        made = pa.struct([field_with_ids(g) for g in type["fields"]])
    elif type["type"] == "list":
        inner = {"name": "element", "id": type["element-id"], "type": type["element"], "required": False}
        made = pa.list_(field_with_ids(inner))
    else:
        key, value = (
            field_with_ids({"name": n, "id": type[f"{n}-id"], "type": type[n], "required": n == "key"})
            for n in ("key", "value")
        )
        made = pa.map_(key, value)
    metadata = {b"PARQUET:field_id": str(f["id"]).encode()}
    return pa.field(f["name"], made, not f.get("required"), metadata)


@pytest.fixture
def new(tmp_path):
    def new(schema, name="t", **options):
        root = tmp_path / name
        bh.create(str(root), schema, format="iceberg", **options)
        return Files(root)

    return new


def read(files, **scan):
    return bh.open(str(files.root)).scan(**scan).to_arrow()


# pyarrow reads timestamps of ORC as nanoseconds.
LIMITS = {
    "date32[day]": (-719162, 2932896), "time64[us]": (0, 86_399_999_999),
    "timestamp[us]": (-9_000_000_000_000_000, 9_000_000_000_000_000),
}  # fmt: skip


def value(type, chance, null=0.2):
    """A random value that the Arrow type holds, edges among them."""
    if chance.random() < null:
        return None
    if pa.types.is_boolean(type):
        return chance.random() < 0.5
    if pa.types.is_decimal(type):
        digits = chance.choice((1, type.precision, chance.randint(1, type.precision)))
        unscaled = chance.choice(
            (0, -1, 1, 10**digits - 1, 1 - 10**digits, chance.randint(-(10**digits) + 1, 10**digits - 1))
        )
        return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -type.scale))
    if pa.types.is_integer(type):
        top = (1 << type.bit_width - 1) - 1
        return chance.choice((0, -1, top, -top - 1, chance.randint(-70, 70), chance.randint(-top, top)))
    if pa.types.is_floating(type):
        import struct

        found = chance.choice((0.0, -0.0, float("nan"), float("inf"), chance.gauss(0, 1e6)))
        return struct.unpack("f", struct.pack("f", found))[0] if type.bit_width == 32 else found
    if pa.types.is_string(type):
        return "".join(chance.choice("ab\0é世🎈") for _ in range(chance.choice((0, 1, 5, 90))))
    if pa.types.is_fixed_size_binary(type):
        return chance.randbytes(type.byte_width)
    if pa.types.is_binary(type):
        return chance.randbytes(chance.choice((0, 1, 70)))
    if pa.types.is_struct(type):
        return {f.name: value(f.type, chance) for f in type}
    if pa.types.is_map(type):
        keys = {value(type.key_type, chance, 0) for _ in range(chance.choice((0, 1, 3)))}
        return [(k, value(type.item_type, chance)) for k in sorted(keys)]
    if pa.types.is_list(type):
        return [value(type.value_type, chance) for _ in range(chance.choice((0, 1, 2, 20)))]
    low, high = next(v for k, v in LIMITS.items() if str(type).startswith(k[:-1]))
    return chance.choice((low, high, 0, -1, 1, chance.randint(low, high)))


def column(type, values):
    """An array of values, of which dates and times are numbers."""
    if pa.types.is_temporal(type):
        return pa.array(values, pa.int32() if pa.types.is_date(type) else pa.int64()).view(type)
    if pa.types.is_struct(type):
        children = [column(f.type, [None if v is None else v[f.name] for v in values]) for f in type]
        return pa.StructArray.from_arrays(children, fields=list(type), mask=pa.array([v is None for v in values]))
    if pa.types.is_list(type) or pa.types.is_map(type):
        ends, flat = [0], []
        for v in values:
            flat += v or []
            ends.append(len(flat))
        valid = pa.array([v is not None for v in values]).buffers()[1]
        offsets = pa.array(ends, pa.int32()).buffers()[1]
        if pa.types.is_map(type):
            inner = pa.StructArray.from_arrays(
                [column(type.key_type, [k for k, _ in flat]), column(type.item_type, [v for _, v in flat])],
                fields=[type.key_field, type.item_field],
            )
        else:
            inner = column(type.value_type, flat)
        return pa.Array.from_buffers(type, len(values), [valid, offsets], children=[inner])
    return pa.array(values, type)


def random_rows(schema, count, chance):
    arrow = arrow_schema(schema)
    columns = [column(f.type, [value(f.type, chance) for _ in range(count)]) for f in arrow]
    return pa.table([pa.array(range(count), pa.int32()), *columns[1:]], schema=arrow)


def bits(array):
    """Values as Python's, dates and times as numbers, floats by their text: NaN is NaN, and -0.0 is not 0.0."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    type = array.type
    if pa.types.is_temporal(type):
        array = array.view(pa.int32() if pa.types.is_date(type) else pa.int64())
    if pa.types.is_floating(type):
        return [repr(v) for v in array.to_pylist()]
    if pa.types.is_struct(type):
        children = [bits(c) for c in array.flatten()]
        return [tuple(c[i] for c in children) if v else None for i, v in enumerate(array.is_valid().to_pylist())]
    if pa.types.is_map(type) or pa.types.is_list(type):
        parts = (array.keys, array.items) if pa.types.is_map(type) else (array.values,)
        inner = list(zip(*map(bits, parts)))
        ends = array.offsets.to_pylist()
        return [inner[a:b] if v else None for a, b, v in zip(ends, ends[1:], array.is_valid().to_pylist())]
    return array.to_pylist()


def same(mine, theirs):
    assert mine.num_rows == theirs.num_rows
    for name in theirs.column_names:
        assert bits(mine[name]) == bits(theirs[name]), name


@pytest.mark.spec("I-005", "I-011", "I-170", "I-282", "I-284", "I-285", "I-295", "I-296", "I-297")
@pytest.mark.parametrize("seed", range(4))
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


PLAIN = Schema((Field("id", INT64), Field("s", STRING), Field("x", DOUBLE)))


def plain(*ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{i}" for i in ids], "x": [i / 2 for i in ids]})


def ids_of(files, **scan):
    return sorted(read(files, columns=["id"], **scan)["id"].to_pylist())


POSITIONS = {
    "fields": [
        {"id": PATH_ID, "name": "file_path", "type": "string", "required": True},
        {"id": POSITION_ID, "name": "pos", "type": "long", "required": True},
    ]
}
ID = {"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


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


def evolved(files, change):
    """Makes a changed schema the current one."""

    def edit(document):
        schema = json.loads(json.dumps(document["schemas"][-1]))
        change(schema["fields"])
        schema["schema-id"] = len(document["schemas"])
        document["schemas"].append(schema)
        document["current-schema-id"] = schema["schema-id"]
        document["last-column-id"] = 99

    files.edit(edit)


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
    # Without a mapping, names decide, as in Java's library.
    evolved(files, lambda fields: fields[0].update(name="number"))
    assert read(files)["number"].to_pylist() == [None, None]
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


def edited_types(path, edit):
    """Changes the types in the footer: `edit(number, fields)` gives the new fields of each."""
    before, footer, script = split_orc(path.read_bytes())
    numbers, fields = itertools.count(), []
    for number, wire, content in fields_of(footer):
        if number == 4:
            content = message(edit(next(numbers), list(fields_of(content))))
        fields.append((number, wire, content))
    path.write_bytes(join_orc(before, message(fields), script))


@pytest.mark.spec("I-295")
def test_types_of_hive(new):
    files = new(Schema((Field("t", INT32), Field("s", INT32), Field("c", STRING), Field("v", STRING))))
    rows = pa.table({"t": pa.array([-128, 127, None], pa.int8()), "s": pa.array([-32768, 32767, None], pa.int16()),
                     "c": ["é", "long enough", None], "v": ["a ", "", None]})  # fmt: skip
    entry = files.file("orc", rows)
    path = Path(entry["data_file"]["file_path"].removeprefix("file://"))
    kinds = {3: [(1, 0, 17), (4, 0, 11)], 4: [(1, 0, 16), (4, 0, 4)]}
    edited_types(path, lambda n, fields: kinds[n] + fields[1:] if n in kinds else fields)
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
    with pytest.raises(UnsupportedFeatureError, match=r"`t`: ORC timestamps outside the years 1677 to 2262"):
        read(files)
    assert read(files, columns=["i"]).num_rows == 2
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

"""Tables with files of every format, and random rows of every type."""

import json
from decimal import Decimal

import pyarrow as pa
from file_writers import (
    arrow_schema,
    arrow_type,
    write_avro,
    write_orc,
)
from foreign_writer import PATH_ID, POSITION_ID, Foreign

import boathouse as bh
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
    return max(low, chance.choice((low, high, 0, -1, 1, chance.randint(low, high))))


def column(type, values):
    """An array of values, of which dates and times are numbers."""
    if pa.types.is_temporal(type):
        return pa.array(values, pa.int32() if pa.types.is_date(type) else pa.int64()).view(type)
    if pa.types.is_struct(type):
        children = [column(f.type, [None if v is None else v[f.name] for v in values]) for f in type]
        return pa.StructArray.from_arrays(
            children, fields=list(type), mask=pa.array([v is None for v in values], pa.bool_())
        )
    if pa.types.is_list(type) or pa.types.is_map(type):
        ends, flat = [0], []
        for v in values:
            flat += v or []
            ends.append(len(flat))
        valid = pa.array([v is not None for v in values], pa.bool_()).buffers()[1]
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


PLAIN = Schema((Field("id", INT64), Field("s", STRING), Field("x", DOUBLE)))


def plain(*ids):
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{i}" for i in ids], "x": [i / 2 for i in ids]})


def read(files, **scan):
    return bh.open(str(files.root)).scan(**scan).to_arrow()


def ids_of(files, **scan):
    return sorted(read(files, columns=["id"], **scan)["id"].to_pylist())


POSITIONS = {
    "fields": [
        {"id": PATH_ID, "name": "file_path", "type": "string", "required": True},
        {"id": POSITION_ID, "name": "pos", "type": "long", "required": True},
    ]
}
ID = {"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


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


def opener(folder):
    """new(schema, name) -> the writer of a new table."""

    def new(schema, name="t", **options):
        bh.create(str(folder / name), schema, format="iceberg", **options)
        return Files(folder / name)

    return new

"""Writes ORC and Avro files as Iceberg's appendix A says, from a schema of the table's metadata: Avro by fastavro, ORC
by pyarrow, into whose footer the attributes are put by hand. It shares no code with what it tests."""

import itertools
import re
import zlib

import fastavro
import pyarrow as pa
import pyarrow.orc as orc

_ARROW = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "date": pa.date32(), "time": pa.time64("us"), "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"), "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"), "string": pa.string(), "uuid": pa.binary(16), "binary": pa.binary(),
    "variant": pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]),
    "geometry": pa.binary(), "geography": pa.binary(),
}  # fmt: skip


def arrow_type(type):
    """The Arrow type of a type in the metadata."""
    if isinstance(type, str):
        if found := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", type):
            return pa.decimal128(int(found[1]), int(found[2]))
        if found := re.fullmatch(r"fixed\[(\d+)]", type):
            return pa.binary(int(found[1]))
        return _ARROW[type]
    if type["type"] == "struct":
        return pa.struct([(f["name"], arrow_type(f["type"])) for f in type["fields"]])
    if type["type"] == "list":
        return pa.list_(pa.field("element", arrow_type(type["element"])))
    return pa.map_(arrow_type(type["key"]), arrow_type(type["value"]))


def arrow_schema(schema):
    return pa.schema([(f["name"], arrow_type(f["type"])) for f in schema["fields"]])


_AVRO = {
    "date": {"type": "int", "logicalType": "date"}, "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
    "timestamp_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": False},
    "timestamptz_ns": {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True}, "binary": "bytes",
    "geometry": "bytes", "geography": "bytes",
}  # fmt: skip


class AvroSchema:
    """The Avro schema of a table's. `maps` makes maps of strings Avro's own; `null_last` turns unions around."""

    def __init__(self, ids=True, maps=False, null_last=False):
        self.ids, self.maps, self.null_last = ids, maps, null_last

    def of(self, schema):
        return {"type": "record", "name": "table", "fields": [self.field(f) for f in schema["fields"]]}

    def _with(self, **ids):
        return {k.replace("_", "-"): v for k, v in ids.items()} if self.ids else {}

    def field(self, f):
        name = re.sub(r"\W", lambda m: f"_x{ord(m[0]):X}", f["name"])
        made = {"name": name, "type": self.optional(f["type"], f["required"], f["id"]), **self._with(field_id=f["id"])}
        if name != f["name"]:
            made["iceberg-field-name"] = f["name"]
        if not f["required"] and not self.null_last:
            made["default"] = None
        return made

    def optional(self, type, required, id):
        made = self.type(type, id)
        return made if required else [made, "null"] if self.null_last else ["null", made]

    def type(self, type, id):
        if isinstance(type, str):
            if found := re.fullmatch(r"decimal\((\d+), ?(\d+)\)", type):
                precision, scale = map(int, found.groups())
                size = ((10**precision).bit_length() + 8) // 8
                return {"type": "fixed", "name": f"d{id}", "size": size, "logicalType": "decimal",
                        "precision": precision, "scale": scale}  # fmt: skip
            if type == "variant":
                parts = [{"name": n, "type": "bytes"} for n in ("metadata", "value")]
                return {"type": "record", "name": f"r{id}", "logicalType": "variant", "fields": parts}
            if type == "uuid":
                return {"type": "fixed", "name": f"u{id}", "size": 16, "logicalType": "uuid"}
            if found := re.fullmatch(r"fixed\[(\d+)]", type):
                return {"type": "fixed", "name": f"x{id}", "size": int(found[1])}
            return _AVRO.get(type, type)
        if type["type"] == "struct":
            return {"type": "record", "name": f"r{id}", "fields": [self.field(f) for f in type["fields"]]}
        if type["type"] == "list":
            item = self.optional(type["element"], type["element-required"], type["element-id"])
            return {"type": "array", "items": item, **self._with(element_id=type["element-id"])}
        value = self.optional(type["value"], type["value-required"], type["value-id"])
        ids = self._with(key_id=type["key-id"], value_id=type["value-id"])
        if self.maps and type["key"] == "string":
            return {"type": "map", "values": value, **ids}
        key = {"name": "key", "type": self.type(type["key"], type["key-id"]), **self._with(field_id=type["key-id"])}
        fields = [key, {"name": "value", "type": value, **self._with(field_id=type["value-id"])}]
        record = {"type": "record", "name": f"k{type['key-id']}_v{type['value-id']}", "fields": fields}
        return {"type": "array", "logicalType": "map", "items": record}


def _raw(type, value, avro):
    """A value as fastavro writes it: what Python's own dates do not hold is a number."""
    if value is None:
        return None
    if pa.types.is_struct(type):
        return {re.sub(r"\W", lambda m: f"_x{ord(m[0]):X}", f.name): _raw(f.type, value[f.name], avro) for f in type}
    if pa.types.is_map(type):
        pairs = [(_raw(type.key_type, k, avro), _raw(type.item_type, v, avro)) for k, v in value]
        own = avro.maps and pa.types.is_string(type.key_type)
        return dict(pairs) if own else [{"key": k, "value": v} for k, v in pairs]
    if pa.types.is_list(type):
        return [_raw(type.value_type, v, avro) for v in value]
    return value


def _numbers(array):
    """Dates and times as numbers, at any depth."""
    type = array.type
    if pa.types.is_date32(type):
        return array.view(pa.int32())
    if pa.types.is_time(type) or pa.types.is_timestamp(type):
        return array.view(pa.int64())
    if pa.types.is_struct(type):
        children = [_numbers(array.field(i)) for i in range(type.num_fields)]
        fields = [pa.field(f.name, c.type) for f, c in zip(type, children)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pa.types.is_map(type):
        keys, items = _numbers(array.keys), _numbers(array.items)
        entries = pa.StructArray.from_arrays([keys, items], fields=[pa.field("key", keys.type, False),
                                                                    pa.field("value", items.type)])  # fmt: skip
        return pa.Array.from_buffers(
            pa.map_(keys.type, items.type), len(array), array.buffers()[:2], children=[entries]
        )
    if pa.types.is_list(type):
        values = _numbers(array.values)
        return pa.Array.from_buffers(pa.list_(values.type), len(array), array.buffers()[:2], children=[values])
    return array


def write_avro(path, table, schema, *, codec="deflate", ids=True, maps=False, null_last=False, **options):
    """The table's rows, in the types of `arrow_schema(schema)`."""
    avro = AvroSchema(ids, maps, null_last)
    plain = pa.table([_numbers(c.combine_chunks()) for c in table.columns], names=table.column_names)
    rows = [_raw(pa.struct(list(plain.schema)), row, avro) for row in plain.to_pylist()]
    with open(path, "wb") as f:
        fastavro.writer(f, avro.of(schema), rows, codec=codec, **options)


def _stored(array):
    """As ORC stores it: no times, and no bytes of a fixed length."""
    type = array.type
    if pa.types.is_time(type):
        return array.view(pa.int64())
    if pa.types.is_fixed_size_binary(type):
        return array.cast(pa.binary())
    if pa.types.is_struct(type):
        children = [_stored(array.field(i)) for i in range(type.num_fields)]
        fields = [pa.field(f.name, c.type) for f, c in zip(type, children)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pa.types.is_map(type):
        keys, items = _stored(array.keys), _stored(array.items)
        entries = pa.StructArray.from_arrays([keys, items], fields=[pa.field("key", keys.type, False),
                                                                    pa.field("value", items.type)])  # fmt: skip
        return pa.Array.from_buffers(
            pa.map_(keys.type, items.type), len(array), array.buffers()[:2], children=[entries]
        )
    if pa.types.is_list(type):
        values = _stored(array.values)
        return pa.Array.from_buffers(pa.list_(values.type), len(array), array.buffers()[:2], children=[values])
    return array


def write_orc(path, table, schema, *, ids=True, compression="zlib", **options):
    """The table's rows, in the types of `arrow_schema(schema)`, with the attributes of Iceberg unless not `ids`."""
    plain = pa.table([_stored(c.combine_chunks()) for c in table.columns], names=table.column_names)
    orc.write_table(plain, path, compression=compression, **options)
    if ids:
        path.write_bytes(with_attributes(path.read_bytes(), _attributes(schema)))


def _attributes(schema):
    """Of each type in the order of the tree, after that of the whole row."""
    found = [{}]

    def add(type, id, required):
        mine = {"iceberg.id": str(id), "iceberg.required": "true" if required else "false"}
        found.append(mine)
        if isinstance(type, str):
            if type == "time":
                mine["iceberg.long-type"] = "TIME"
            if type == "variant":
                mine["iceberg.struct-type"] = "VARIANT"
                found.extend(({}, {}))
            if type == "uuid":
                mine["iceberg.binary-type"] = "UUID"
            if type.startswith("timestamp"):
                mine["iceberg.timestamp-unit"] = "NANOS" if type.endswith("_ns") else "MICROS"
            if size := re.fullmatch(r"fixed\[(\d+)]", type):
                mine |= {"iceberg.binary-type": "FIXED", "iceberg.length": size[1]}
        elif type["type"] == "struct":
            for f in type["fields"]:
                add(f["type"], f["id"], f["required"])
        elif type["type"] == "list":
            add(type["element"], type["element-id"], type["element-required"])
        else:
            add(type["key"], type["key-id"], True)
            add(type["value"], type["value-id"], type["value-required"])

    for f in schema["fields"]:
        add(f["type"], f["id"], f["required"])
    return found


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields_of(data):
    """(number, wire type, value: an int or bytes) of a protobuf message."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        value, at = _read_varint(data, at)
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value
        yield tag >> 3, tag & 7, value


def message(fields):
    out = b""
    for number, wire, value in fields:
        out += _varint(number << 3 | wire) + (_varint(len(value)) + value if wire == 2 else _varint(value))
    return out


def split_orc(data):
    """(bytes before the footer, the footer, the postscript) with the footer decompressed, which pyarrow compresses by
    zlib or not at all."""
    length = data[-1]
    script = data[-1 - length : -1]
    known = {n: v for n, _, v in fields_of(script)}
    cut = len(data) - 1 - length - known[1]
    packed, footer = data[cut : -1 - length], b""
    if known.get(2, 0) == 0:
        return data[:cut], packed, script
    while packed:
        head = int.from_bytes(packed[:3], "little")
        part, packed = packed[3 : 3 + (head >> 1)], packed[3 + (head >> 1) :]
        footer += part if head & 1 else zlib.decompress(part, -15)
    return data[:cut], footer, script


def join_orc(before, footer, script):
    known = {n: v for n, _, v in fields_of(script)}
    if known.get(2, 0) != 0:
        parts = [footer[i : i + 1000] for i in range(0, len(footer), 1000)]
        footer = b"".join((len(p) << 1 | 1).to_bytes(3, "little") + p for p in parts)
    script = message([(n, w, len(footer) if n == 1 else v) for n, w, v in fields_of(script)])
    return before + footer + script + bytes([len(script)])


def with_attributes(data, attributes):
    """An ORC file with these attributes on its types."""
    before, footer, script = split_orc(data)
    mine, fields = iter(attributes), []
    for number, wire, value in fields_of(footer):
        if number == 4:
            value += message([
                (7, 2, message([(1, 2, k.encode()), (2, 2, v.encode())])) for k, v in next(mine).items()])  # fmt: skip
        fields.append((number, wire, value))
    return join_orc(before, message(fields), script)


def edited_footer(path, edit):
    before, footer, script = split_orc(path.read_bytes())
    footer, script = edit(list(fields_of(footer)), list(fields_of(script)))
    path.write_bytes(join_orc(before, message(footer), message(script)))


def put(fields, number, value):
    """The message with another value of a number."""
    return [(n, w, value if n == number else v) for n, w, v in fields]


def stripes(change):
    """Changes the numbers of every stripe: offset, index, data, footer, rows."""
    return lambda f, s: ([(n, w, message(change(list(fields_of(v)))) if n == 3 else v) for n, w, v in f], s)


def types(change):
    """`change(number, fields)`, of every type."""

    def edit(footer, script):
        numbers = itertools.count()
        made = [(n, w, message(change(next(numbers), list(fields_of(v)))) if n == 4 else v) for n, w, v in footer]
        return made, script

    return edit

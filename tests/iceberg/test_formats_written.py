"""Data files and delete files written in ORC and Avro, as other libraries and we ourselves read them."""

import datetime as dt
import json
import random
import uuid
import zlib

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pytest
from file_writers import fields_of, split_orc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mixed_files import EVERY, LEAVES, bits, column, same, value
from written_formats import WRITTEN, formatted, live, local, orc_types

import boathouse as bh
from boathouse.arrow.schema import to_arrow, to_arrow_type
from boathouse.errors import ConstraintViolationError, UnsupportedFeatureError
from boathouse.types import (
    BINARY,
    DOUBLE,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    VARIANT,
    Field,
    FixedType,
    ListType,
    MapType,
    NullType,
    Schema,
    StructType,
    TimestampType,
    TimeType,
)

NAMES = ("a.b", "a b", "1x", "a-b", "a_x2Db", "é`", "A", "key", "element")


def drawn(field, chance):
    """A value of a field: null where it may be, at any depth."""
    if field.nullable and chance.random() < 0.2:
        return None
    match field.type:
        case StructType(fields):
            return {f.name: drawn(f, chance) for f in fields}
        case ListType(element):
            return [drawn(element, chance) for _ in range(chance.choice((0, 1, 2, 20)))]
        case MapType(key, item):
            keys = {drawn(key, chance) for _ in range(chance.choice((0, 1, 3)))}
            return [(k, drawn(item, chance)) for k in sorted(keys)]
    found = value(to_arrow_type(field.type), chance, 0)
    if field.type in (TIMESTAMP, TIMESTAMP_NTZ) and -1_000_000 < found < 0:
        return chance.choice((-1_000_001, -999_999, -1_500_000))  # ORC has no others of that second
    return found


def data(schema, count, chance):
    arrow = to_arrow(schema)
    columns = [column(f.type, [drawn(g, chance) for _ in range(count)]) for f, g in zip(arrow, schema)]
    return pa.table([pa.array(range(count), pa.int32()), *columns[1:]], schema=arrow)


def any_type(chance, depth):
    if depth == 0 or chance.random() < 0.4:
        return chance.choice(list(LEAVES.values()))
    match chance.choice(("struct", "list", "map")):
        case "struct":
            names = chance.sample(NAMES, chance.randint(1, 3))
            return StructType(tuple(any_field(name, chance, depth - 1) for name in names))
        case "list":
            return ListType(any_field("element", chance, depth - 1))
    key = chance.choice((STRING, INT32, INT64, UUID, FixedType(3), LEAVES["da"], LEAVES["p9"], TIMESTAMP))
    return MapType(Field("key", key, False), any_field("value", chance, depth - 1))


def any_field(name, chance, depth):
    return Field(name, any_type(chance, depth), chance.random() < 0.7)


def eye(found, type):
    """A value as fastavro gives it, or Arrow, in one form: fields of structs by their order."""
    if found is None:
        return None
    if pa.types.is_struct(type):
        return tuple(eye(v, f.type) for v, f in zip(found.values(), type, strict=True))
    if pa.types.is_map(type):
        pairs = found.items() if isinstance(found, dict) else [p.values() if isinstance(p, dict) else p for p in found]
        return [(eye(k, type.key_type), eye(v, type.item_type)) for k, v in pairs]
    if pa.types.is_list(type):
        return [eye(v, type.value_type) for v in found]
    if isinstance(found, uuid.UUID):
        return found.bytes
    if isinstance(found, dt.datetime):
        return found.replace(tzinfo=None)
    return repr(found) if isinstance(found, float) else found


def looked_at(path, table):
    """Compares a file's rows, by the library of its format, with a table."""
    if path.suffix == ".avro":
        with path.open("rb") as f:
            found = list(fastavro.reader(f))
        type = pa.struct(list(table.schema))
        assert [eye(r, type) for r in found] == [eye(r, type) for r in table.to_pylist()]
        return
    found = orc.ORCFile(path).read()
    assert found.column_names == table.column_names
    for name in table.column_names:
        assert bits(found[name].cast(as_orc(table.schema.field(name).type))) == bits(
            table[name].cast(as_orc(table.schema.field(name).type))
        ), name


def as_orc(type):
    if pa.types.is_fixed_size_binary(type):
        return pa.binary()
    if pa.types.is_time(type):
        return pa.int64()
    if pa.types.is_struct(type):
        return pa.struct([pa.field(f.name, as_orc(f.type)) for f in type])
    if pa.types.is_map(type):
        return pa.map_(as_orc(type.key_type), as_orc(type.item_type))
    return pa.list_(pa.field("item", as_orc(type.value_type))) if pa.types.is_list(type) else type


@pytest.mark.spec("I-268", "I-282", "I-283", "I-284", "I-285", "I-286", "I-295", "I-296", "I-297")
@pytest.mark.feature("ORC and Avro files", format="iceberg")
@pytest.mark.parametrize("format", WRITTEN)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 1 << 32))
def test_random_types_and_values(tmp_path_factory, format, seed):
    root = tmp_path_factory.mktemp("t")
    chance = random.Random(seed)
    names = chance.sample(NAMES, chance.randint(1, 4))
    schema = Schema((Field("k", INT32), *(any_field(name, chance, 3) for name in names)))
    codec = chance.choice({"orc": ("none", "zlib", "zstd", "snappy", "lz4"),
                           "avro": ("uncompressed", "gzip", "zstd", "snappy")}[format])  # fmt: skip
    more = {f"write.{format}.compression-codec": codec, "write.orc.stripe-size-bytes": chance.choice(("3000", "99999"))}
    table = bh.create(str(root / "t"), schema, format="iceberg", properties=formatted(format, **more))
    whole = data(schema, chance.choice((1, 40, 200)), chance)
    parts = [whole.slice(i, 30) for i in range(0, whole.num_rows, 30)]  # slices: their offsets are not written
    table.append(pa.Table.from_batches([b for p in parts for b in p.to_batches()], whole.schema))
    same(bh.open(str(root / "t")).to_arrow().sort_by("k"), whole)
    (file,) = live(root / "t")
    assert file["file_format"] == format.upper() and file["record_count"] == whole.num_rows
    assert file["file_path"].endswith(f".{format}")
    if codec not in ("zstd", "snappy") or format == "orc":  # for which fastavro needs other libraries
        looked_at(local(file["file_path"]), whole)


def tree(schema):
    """Ids and names of an Avro schema, by where the specification puts them."""
    if isinstance(schema, list):
        assert schema[0] == "null" and len(schema) == 2
        return ("?", tree(schema[1]))
    if isinstance(schema, str):
        return schema
    match schema["type"]:
        case "record":
            assert all(isinstance(f["field-id"], int) for f in schema["fields"])
            for f in schema["fields"]:
                optional = isinstance(f["type"], list)
                assert ("default" in f) == (optional and schema["name"][0] != "k")
            fields = {f["field-id"]: (f["name"], tree(f["type"])) for f in schema["fields"]}
            return fields
        case "array":
            if schema.get("logicalType") == "map":
                return ("entries", tree(schema["items"]))
            return ("list", schema["element-id"], tree(schema["items"]))
        case "map":
            return ("map", schema["key-id"], schema["value-id"], tree(schema["values"]))
    return {k: v for k, v in schema.items() if k != "name"}


@pytest.mark.spec("I-283", "I-284", "I-285", "I-286")
def test_the_schema_of_an_avro_file(tmp_path):
    schema = Schema((
        Field("1 a-b", INT32, False), Field("l", ListType(Field("element", LEAVES["p9"]))),
        Field("m", MapType(Field("key", STRING, False), Field("value", INT64, False))),
        Field("n", MapType(Field("key", INT32, False), Field("value", StructType((Field("u", UUID),))))),
        Field("t", TIMESTAMP), Field("w", TIMESTAMP_NTZ), Field("c", TimeType("us")),
    ))  # fmt: skip
    table = bh.create(str(tmp_path / "t"), schema, format="iceberg", properties=formatted("avro"))
    table.append(
        pa.table(
            {
                f.name: pa.array([1], pa.int32()) if f.name[0] == "1" else pa.nulls(1, to_arrow_type(f.type))
                for f in schema
            }
        )
    )
    with local(live(tmp_path / "t")[0]["file_path"]).open("rb") as f:
        found = json.loads(fastavro.reader(f).metadata["avro.schema"])
    assert [f.get("iceberg-field-name") for f in found["fields"]] == ["1 a-b", *[None] * 6]
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    decimal = {"type": "fixed", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
    uuids = ("?", {"type": "fixed", "size": 16, "logicalType": "uuid"})
    assert tree(found) == {
        1: ("_1_x20a_x2Db", "int"),
        2: ("l", ("?", ("list", 3, ("?", decimal)))),
        4: ("m", ("?", ("map", 5, 6, "long"))),
        7: ("n", ("?", ("entries", {8: ("key", "int"), 9: ("value", ("?", {10: ("u", uuids)}))}))),
        11: ("t", ("?", {**micros, "adjust-to-utc": True})),
        12: ("w", ("?", {**micros, "adjust-to-utc": False})),
        13: ("c", ("?", {"type": "long", "logicalType": "time-micros"})),
    }


@pytest.mark.spec("I-296", "I-297")
def test_the_attributes_of_an_orc_file(tmp_path):
    schema = Schema((
        Field("u", UUID, False), Field("f", FixedType(3)), Field("t", TimeType("us")), Field("w", TIMESTAMP_NTZ),
        Field("z", ListType(Field("element", TIMESTAMP, False))),
        Field("m", MapType(Field("key", STRING, False), Field("value", INT64))),
    ))  # fmt: skip
    table = bh.create(str(tmp_path / "t"), schema, format="iceberg", properties=formatted("orc"))
    arrow = to_arrow(schema)
    table.append(pa.table([pa.array([b"u" * 16], pa.binary(16)), *(pa.nulls(1, f.type) for f in list(arrow)[1:])],
                          schema=arrow))  # fmt: skip
    found = orc_types(local(live(tmp_path / "t")[0]["file_path"]))
    required = [f.pop("iceberg.required", None) for f in found]
    assert required == [None, "true", "false", "false", "false", "false", "true", "false", "true", "false"]
    assert found == [
        {}, {"iceberg.id": "1", "iceberg.binary-type": "UUID"},
        {"iceberg.id": "2", "iceberg.binary-type": "FIXED", "iceberg.length": "3"},
        {"iceberg.id": "3", "iceberg.long-type": "TIME"}, {"iceberg.id": "4", "iceberg.timestamp-unit": "MICROS"},
        {"iceberg.id": "5"}, {"iceberg.id": "6", "iceberg.timestamp-unit": "MICROS"},
        {"iceberg.id": "7"}, {"iceberg.id": "8"}, {"iceberg.id": "9"},
    ]  # fmt: skip


METRICS = ("record_count", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


@pytest.mark.few(3)
@pytest.mark.parametrize("format", WRITTEN)
@pytest.mark.parametrize("mode", ("full", "truncate(3)", "counts", "none"))
def test_the_metrics_are_those_of_parquet(tmp_path, format, mode):
    chance = random.Random(3)
    schema = Schema(tuple(Field(f.name, f.type, f.nullable) for f in EVERY))
    whole = data(schema, 120, chance)
    found = {}
    for name in ("parquet", format):
        properties = formatted(name, **{"write.metadata.metrics.default": mode})
        table = bh.create(str(tmp_path / name), schema, format="iceberg", properties=properties)
        table.append(pa.Table.from_batches(whole.to_batches(max_chunksize=50)))
        (found[name],) = live(tmp_path / name)
    assert [found[format][m] for m in METRICS] == [found["parquet"][m] for m in METRICS]
    assert bool(found[format]["column_sizes"]) == (format == "orc" and mode != "none")
    assert set(dict(found[format]["column_sizes"] or ())) <= set(dict(found["parquet"]["column_sizes"] or ()))


@pytest.mark.parametrize("format", WRITTEN)
def test_zeros_nans_and_empty_files(tmp_path, format):
    schema = Schema((Field("x", DOUBLE), Field("s", STRING)))
    table = bh.create(str(tmp_path / "t"), schema, format="iceberg", properties=formatted(format))
    for values in ([0.0, -0.0], [float("nan"), None], [float("nan"), 2.0, -1.0]):
        table.append(pa.table({"x": pa.array(values, pa.float64()), "s": pa.nulls(len(values), pa.string())}))
    found = sorted(live(tmp_path / "t"), key=lambda f: f["file_path"])
    ends = [[dict(f[name] or ()).get(1, b"").hex() for name in ("lower_bounds", "upper_bounds")] for f in found]
    assert sorted(ends) == [
        ["", ""],
        ["0000000000000080", "0000000000000000"],
        ["000000000000f0bf", "0000000000000040"],
    ]
    assert {dict(f["nan_value_counts"])[1] for f in found} == {0, 1}
    values = sorted(map(repr, bh.open(str(tmp_path / "t")).to_arrow()["x"].to_pylist()))
    assert values == sorted(map(repr, (0.0, -0.0, float("nan"), None, float("nan"), 2.0, -1.0)))
    assert bh.open(str(tmp_path / "t")).scan(where="x > 1.5").to_arrow().num_rows == 3  # NaN is greater


@pytest.mark.spec("I-297")
@pytest.mark.parametrize("unit", ("us", "ns"))
def test_moments_before_1970_are_stored_as_the_specification_of_orc_says(tmp_path, unit):
    """No nanoseconds are negative, as those of pyarrow's own files are, which readers in Java misread."""
    root = tmp_path / "t"
    kind = TimestampType(False, unit)
    schema = Schema((Field("t", kind), Field("l", ListType(Field("element", kind)))))
    t = bh.create(str(root), schema, format="iceberg", properties=formatted("orc", **{"format-version": "3"}))
    scale = {"us": 1, "ns": 1000}[unit]
    moments = [v * scale for v in (-1_500_000, -1_000_001, -999_999, -2_000_000, 0, 1, 86_400_000_001, -(10**15) - 1)]
    array = pa.array([*moments, None], pa.int64()).view(pa.timestamp(unit))
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 3, 3, 4, 9, 9, 9, 9, 9], pa.int32()), array)
    t.append(pa.table({"t": array, "l": lists}))
    same(bh.open(str(root)).to_arrow(), pa.table({"t": array, "l": lists}))
    path = local(live(root)[0]["file_path"])
    assert all(n >= 0 for n in nanoseconds(path))
    mine = orc.ORCFile(path).read()["t"].cast(pa.timestamp(unit))
    assert mine.to_pylist() == array.to_pylist() if unit == "us" else bits(mine) == bits(array)


def nanoseconds(path):
    """The numbers of all streams of nanoseconds: runs of one version and kind, as they are written here."""
    raw = path.read_bytes()
    _, footer, script = split_orc(raw)
    assert {n: v for n, _, v in fields_of(script)}[2] == 1
    stripe = {n: v for n, _, v in fields_of(next(v for n, _, v in fields_of(footer) if n == 3))}
    end = stripe[1] + stripe.get(2, 0) + stripe[3]
    at, found = stripe[1], []
    for n, _, v in fields_of(unpacked(raw[end : end + stripe[4]])):
        if n == 1:
            stream = {m: w for m, _, w in fields_of(v)}
            body, at = unpacked(raw[at : at + stream.get(3, 0)]), at + stream.get(3, 0)
            if stream[1] == 5:
                assert body[0] >> 6 == 1
                width = {7: 1, 15: 2, 23: 3, 27: 4, 28: 5, 29: 6, 30: 7, 31: 8}[body[0] >> 1 & 31]
                count = ((body[0] & 1) << 8 | body[1]) + 1
                assert len(body) == 2 + count * width
                numbers = [int.from_bytes(body[2 + i * width : 2 + (i + 1) * width], "big") for i in range(count)]
                found += [(x >> 3) * (10 ** ((x & 7) + 1) if x & 7 else 1) for x in numbers]
    assert len(found) > 3
    return [x if x < 10**9 else -1 for x in found]


def unpacked(data):
    out = b""
    while data:
        head = int.from_bytes(data[:3], "little")
        part, data = data[3 : 3 + (head >> 1)], data[3 + (head >> 1) :]
        out += part if head & 1 else zlib.decompress(part, -15)
    return out


def test_moments_that_orc_lacks_are_refused(tmp_path):
    root = tmp_path / "t"
    schema = Schema((Field("t", TIMESTAMP_NTZ),))
    t = bh.create(str(root), schema, format="iceberg", properties=formatted("orc"))
    before = sorted(root.rglob("*"))
    bad = pa.table({"t": pa.array([0, -500_000], pa.int64()).view(pa.timestamp("us"))})
    with pytest.raises(ConstraintViolationError, match="`t` has a timestamp in the last second before 1970"):
        t.append(bad)
    assert sorted(p for p in root.rglob("*") if p.is_file()) == [p for p in before if p.is_file()]
    t.set_properties({"write.format.default": "avro"})
    t.append(bad)
    assert bh.open(str(root)).to_arrow()["t"].to_pylist() == bad["t"].to_pylist()


@pytest.mark.spec("I-282", "I-055")
@pytest.mark.parametrize("format", WRITTEN)
def test_types_of_version_3(tmp_path, format):
    """Nanoseconds; unknown columns are not in the files."""
    root = tmp_path / "t"
    kinds = {"i": INT32, "u": NullType(), "nz": TimestampType(True, "ns"),
             "s": StructType((Field("u", NullType()), Field("b", BINARY)))}  # fmt: skip
    schema = Schema(tuple(Field(n, t) for n, t in kinds.items()))
    t = bh.create(str(root), schema, format="iceberg", properties=formatted(format, **{"format-version": "3"}))
    arrow = to_arrow(schema)
    times = pa.array([1_500_000_000_123_456_789, None], pa.int64()).view(pa.timestamp("ns", "UTC"))
    columns = [pa.array([1, 2], pa.int32()), pa.nulls(2), times,
               pa.array([{"u": None, "b": b"x"}, None], arrow.field("s").type)]  # fmt: skip
    whole = pa.table(columns, schema=arrow)
    t.append(whole)
    found = bh.open(str(root)).to_arrow()
    assert found.num_rows == 2 and found["u"].null_count == 2
    same(found.drop(["u"]), whole.drop(["u"]))
    (file,) = live(root)
    assert set(dict(file["lower_bounds"])) == {1, 3, 6}
    path = local(file["file_path"])
    if format == "orc":
        assert orc.ORCFile(path).read().column_names == ["i", "nz", "s"]
        assert {"iceberg.id": "3", "iceberg.required": "false", "iceberg.timestamp-unit": "NANOS"} in orc_types(path)
    else:
        with path.open("rb") as f:
            fields = fastavro.reader(f).writer_schema["fields"]
        assert [x["name"] for x in fields] == ["i", "nz", "s"]
        assert fields[1]["type"][1] == {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": True}


def test_variants_are_in_avro_and_refused_in_orc(tmp_path):
    root = tmp_path / "t"
    schema = Schema((Field("v", VARIANT), Field("l", ListType(Field("element", VARIANT)))))
    more = {"format-version": "3"}
    t = bh.create(str(root), schema, format="iceberg", properties=formatted("avro", **more))
    one = {"metadata": b"\x11\x00\x00", "value": b"\x0c\x07"}
    arrow = to_arrow(schema)
    whole = pa.table([pa.array([one, None], arrow.field("v").type),
                      pa.array([[one, None], None], arrow.field("l").type)], schema=arrow)  # fmt: skip
    t.append(whole)
    same(bh.open(str(root)).to_arrow(), whole)
    with local(live(root)[0]["file_path"]).open("rb") as f:
        reader = fastavro.reader(f)
        assert [(r["v"], r["l"]) for r in reader] == [(one, [one, None]), (None, None)]
        assert reader.writer_schema["fields"][0]["type"][1]["logicalType"] == "variant"
    t.set_properties({"write.format.default": "orc"})
    before = sorted(root.rglob("*"))
    with pytest.raises(UnsupportedFeatureError, match="variants in ORC files, as of `v`"):
        t.append(whole)
    assert sorted(root.rglob("*")) == before
    nested = Schema((Field("i", INT32), Field("s", StructType((Field("x", ListType(Field("element", VARIANT))),)))))
    with pytest.raises(UnsupportedFeatureError, match=r"`s\.x\.element`"):
        bh.create(str(tmp_path / "u"), nested, format="iceberg", properties=formatted("orc", **more)).append(
            pa.table({"i": pa.array([1], pa.int32())})
        )

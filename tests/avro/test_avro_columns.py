"""Avro records decoded as columns against the same records decoded one by one, for any schema and any blocks."""

import io
import struct
from unittest import mock

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boathouse.avro import columns as avro_columns
from boathouse.avro import container as avro
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.manifests import entries
from boathouse.iceberg.manifests import records as manifests
from boathouse.iceberg.manifests.schemas import METRICS
from boathouse.iceberg.manifests.values import arrow_array, bounds_array, decode
from boathouse.iceberg.metadata.versions import NEW
from boathouse.types import (
    DATE,
    INT32,
    INT64,
    STRING,
    DecimalType,
    FloatType,
    PartitionSpec,
    TimestampType,
)

LONG = st.one_of(st.integers(-70, 70), st.integers(-(2**63), 2**63 - 1))
INT = st.integers(-(2**31), 2**31 - 1)
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
KEY = st.one_of(st.integers(0, 5), INT)
VALUES = {
    "long": LONG,
    "int": INT,
    "string": st.text(max_size=70),
    "bytes": st.binary(max_size=70),
    "boolean": st.booleans(),
    "double": st.floats(allow_nan=False),
    "float": st.floats(width=32, allow_nan=False),
    "null": st.none(),
}
SIMPLE = st.sampled_from(sorted(VALUES))


def pair(value):
    fields = [{"name": "key", "type": "int"}, {"name": "value", "type": value}]
    return st.permutations(fields).map(lambda f: {"type": "record", "name": "pair", "fields": f})


def nested(inner):
    some = inner.filter(lambda t: not isinstance(t, list) and t != "null")
    return st.one_of(
        some.flatmap(lambda t: st.permutations(["null", t])),
        st.just(["null", "long", "string"]),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda ts: {
                "type": "record",
                "name": "r",
                "fields": [{"name": f"f{i}", "type": t} for i, t in enumerate(ts)],
            }
        ),
        st.sampled_from(["long", "string", "bytes"]).map(lambda t: {"type": "array", "items": t}),
        st.sampled_from(["long", "bytes", "string", "double"])
        .flatmap(pair)
        .map(lambda p: {"type": "array", "items": p, "logicalType": "map"}),
        st.sampled_from(["long", "bytes"]).map(lambda t: {"type": "map", "values": t}),
        st.integers(0, 20).map(lambda n: {"type": "fixed", "name": "x", "size": n}),
        st.just({"type": "enum", "name": "e", "symbols": ["A", "B", "C"]}),
    )


TYPES = st.recursive(SIMPLE, nested, max_leaves=4)


def named(schema, count=None):
    """The schema with a name of its own for each named type."""
    count = count if count is not None else iter(range(1000))
    if isinstance(schema, list):
        return [named(s, count) for s in schema]
    if isinstance(schema, str):
        return schema
    found = {**schema, **({"name": f"n{next(count)}"} if "name" in schema else {})}
    if "fields" in schema:
        found["fields"] = [{**f, "type": named(f["type"], count)} for f in schema["fields"]]
    for key in ("items", "values"):
        if key in schema:
            found[key] = named(schema[key], count)
    return found


def values(schema):
    if isinstance(schema, str):
        return VALUES[schema]
    if isinstance(schema, list):
        return st.one_of([values(s) for s in schema])
    match schema["type"]:
        case "record":
            return st.fixed_dictionaries({f["name"]: values(f["type"]) for f in schema["fields"]})
        case "array":
            items = schema["items"]
            if isinstance(items, dict) and items["type"] == "record" and items["fields"][0]["name"] in ("key", "value"):
                value = next(f["type"] for f in items["fields"] if f["name"] == "value")
                pairs = st.dictionaries(KEY, values(value), max_size=20)
                return pairs.map(lambda d: [{"key": k, "value": v} for k, v in d.items()])
            return st.lists(values(items), max_size=20)
        case "map":
            return st.dictionaries(st.text(max_size=3), values(schema["values"]), max_size=12)
        case "fixed":
            return st.binary(min_size=schema["size"], max_size=schema["size"])
    return st.sampled_from(schema["symbols"])


RECORDS = st.lists(TYPES, min_size=1, max_size=4).map(
    lambda ts: named(
        {"type": "record", "name": "top", "fields": [{"name": f"c{i}", "type": t} for i, t in enumerate(ts)]}
    )
)
FILES = RECORDS.filter(lambda s: not no_bytes(s)).flatmap(
    lambda s: st.tuples(
        st.just(s), st.lists(values(s), max_size=6), st.integers(1, 20), st.sampled_from([0, 1, 40, 9000])
    )
)


def no_bytes(schema):
    return avro.least(avro.by_ids(schema, {}, "x")) == 0


def paths_of(schema, path=()):
    """Every field that can be asked for: those inside records, but not inside arrays."""
    for f in schema["fields"]:
        here = (*path, f["name"])
        yield here
        inner = f["type"]
        if isinstance(inner, list) and len(inner) == 2 and "null" in inner:
            inner = next(t for t in inner if t != "null")
        if isinstance(inner, dict) and inner["type"] == "record":
            yield from paths_of(inner, here)


def at(record, path):
    for name in path:
        record = None if record is None else record[name]
    return record


def file_of(schema, rows, interval):
    out = io.BytesIO()
    fastavro.writer(out, schema, rows, codec="deflate", sync_interval=interval)
    return avro.parse(out.getvalue(), "x")


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(FILES, st.data())
@pytest.mark.spec("I-144", "I-145")
def test_columns_are_the_records_one_by_one(file, data):
    schema, rows, times, interval = file
    container = file_of(schema, rows * times, interval)
    own = avro.by_ids(container.schema, {}, "x")
    one_by_one = [r for block in avro.records(container, own) for r in block]
    paths = list(paths_of(own))
    wanted = data.draw(st.sets(st.sampled_from(paths)))
    found = avro_columns.read(container, own, frozenset(wanted))
    assert repr(found.records()) == repr(one_by_one)
    some = np.array(
        sorted(data.draw(st.sets(st.integers(0, max(0, len(rows) * times - 1)))))[: len(one_by_one)], np.int64
    )
    for part, records in ((found, one_by_one), *(((found.take(some), [one_by_one[i] for i in some]),) if rows else ())):
        for path in wanted:
            expected = [at(r, path) for r in records]
            assert repr(part.values(path)) == repr(expected), path
            several, codes = part.distinct(path)
            assert repr([several[c] for c in codes]) == repr(expected), path
            assert len({(type(v), repr(v)) for v in several}) == len(several)
            check_typed(part, path, expected)


def check_typed(part, path, expected):
    kind = part.type(path)
    kind = (
        next(t for t in kind if t != "null") if isinstance(kind, list) and len(kind) == 2 and "null" in kind else kind
    )
    if kind in ("int", "long"):
        numbers, valid = part.longs(path)
        assert [n if v else None for n, v in zip(numbers.tolist(), valid.tolist())] == expected
    elif kind == "string":
        assert part.strings(path).to_pylist() == expected
    elif isinstance(kind, dict) and kind["type"] == "array" and avro_columns.is_pair(kind["items"]):
        present = [k for m in expected for k in m or ()]
        keys = [*dict.fromkeys(present[:3]), 4]
        for key, column in part.pairs(path, keys).items():
            assert column.to_pylist() == [None if m is None else m.get(key) for m in expected]


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(FILES.filter(lambda f: f[1]), st.integers(0, 10_000), st.binary(min_size=1, max_size=3), st.booleans())
def test_damage_is_found_or_reads_as_one_by_one(file, place, patch, cut):
    schema, rows, times, interval = file
    out = io.BytesIO()
    fastavro.writer(out, schema, rows * times, sync_interval=interval)
    intact = avro.parse(out.getvalue(), "x")
    count, block = intact.blocks[place % len(intact.blocks)]
    damaged = bytearray(block)
    start = place % max(1, len(damaged))
    damaged[start : start + len(patch)] = b"" if cut else patch
    container = avro.Container(intact.metadata, ((count, memoryview(bytes(damaged))),), "x", "null")
    own = avro.by_ids(container.schema, {}, "x")
    try:
        columns = avro_columns.read(container, own, frozenset(paths_of(own)))
        found = columns.records()
    except CorruptTableError as error:
        assert error.where == "x"
        return
    assert repr(found) == repr([r for part in avro.records(container, own) for r in part])


CHOICE = {"type": "record", "name": "t", "fields": [
    {"name": "e", "type": ["null", {"type": "enum", "name": "n", "symbols": ["A", "B", "C"]}]},
    {"name": "o", "type": ["null", "string"]},
    {"name": "u", "type": ["null", "long", "string"]}]}  # fmt: skip


@pytest.mark.parametrize(
    ("block", "field"),
    [
        (b"\x02\x01\x00\x00", "e"),  # a symbol before the first
        (b"\x02\x06\x00\x00", "e"),  # and one after the last
        (b"\x02\x00\x02\x02\xff\x00", "o"),
        (b"\x02\x00\x00\x04\x02\xff", "u"),
    ],
)
def test_what_is_stepped_over_but_not_of_its_type_is_damage(block, field):
    intact = file_of(CHOICE, [{"e": "A", "o": None, "u": None}], 1)
    container = avro.Container(intact.metadata, ((1, memoryview(block)),), "x", "null")
    own = avro.by_ids(container.schema, {}, "x")
    with pytest.raises(CorruptTableError):
        list(avro.records(container, own))
    columns = avro_columns.read(container, own, frozenset({(field,)}))
    for work in (columns.records, lambda: columns.values((field,)), lambda: columns.strings((field,))):
        with pytest.raises(CorruptTableError) as caught:
            work()
        assert caught.value.where == "x"


def test_a_long_array_among_short_ones_is_read():
    schema = named({"type": "record", "name": "t", "fields": [
        {"name": "m", "type": ["null", {"type": "array", "items": {"type": "record", "name": "p", "fields": [
            {"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}]}}]},
        {"name": "after", "type": "long"}]})  # fmt: skip
    rows = [
        {"m": [{"key": k, "value": b"v" * (k % 80)} for k in range(3 + 5000 * (i == 7))], "after": i}
        for i in range(400)
    ]
    container = file_of(schema, rows, 1)
    found = avro_columns.read(container, avro.by_ids(container.schema, {}, "x"), frozenset({("m",), ("after",)}))
    assert found.longs(("after",))[0].tolist() == list(range(400))
    column = found.pairs(("m",), [2, 5001])
    assert column[2].to_pylist() == [b"vv"] * 400
    assert [i for i, v in enumerate(column[5001].to_pylist()) if v is not None] == [7]


def test_maps_of_several_frames_are_stepped_over():
    """Whatever maps are stepped over together: the same keys and lengths, others, none, and more than are compared."""
    schema = named({"type": "record", "name": "t", "fields": [
        {"name": "m", "type": ["null", {"type": "array", "items": {"type": "record", "name": "p", "fields": [
            {"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}]}}]},
        {"name": "after", "type": "long"}]})  # fmt: skip
    kinds = [
        {k: b"v" * (k % 80) for k in range(20)},
        {k: b"w" * (k % 80) for k in range(20)},
        {k: b"v" * (k % 80 + (k == 7)) for k in range(20)},
        {k + (k == 19): b"v" * (k % 80) for k in range(20)},
        {k: b"v" * (k % 80) for k in range(19)},
        {},
        None,
        dict.fromkeys(range(400), b"x"),
        {1: b"y" * 5000},
    ]
    found = [kinds[i * i % 7 if i < 600 else i % 9] for i in range(900)]
    rows = [{"m": as_pairs(m), "after": i} for i, m in enumerate(found)]
    container = file_of(schema, rows, 1)
    columns = avro_columns.read(container, avro.by_ids(container.schema, {}, "x"), frozenset({("m",), ("after",)}))
    assert columns.longs(("after",))[0].tolist() == list(range(900))
    for key, column in columns.pairs(("m",), [1, 7, 19, 20]).items():
        assert column.to_pylist() == [None if m is None else m.get(key) for m in found]


def test_a_map_whose_lengths_leave_the_file_is_damage():
    schema = {"type": "record", "name": "t", "fields": [
        {"name": "m", "type": {"type": "array", "items": {"type": "record", "name": "p", "fields": [
            {"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}]}}}]}  # fmt: skip
    intact = file_of(schema, [{"m": []}], 1)
    own = avro.by_ids(intact.schema, {}, "x")
    for length in (avro.long_bytes(-3), avro.long_bytes(1 << 40), avro.long_bytes(6)):
        blocks = tuple((1, memoryview(b"\x02\x02" + length + b"ab\x00")) for _ in range(20))
        with pytest.raises(CorruptTableError):
            avro_columns.read(avro.Container(intact.metadata, blocks, "x", "null"), own, frozenset({("m",)}))


SPEC = PartitionSpec(0)
OPTIONAL = {n: st.none() | LONG.filter(lambda v: v >= 0) for n in ("sequence_number", "file_sequence_number")}
COUNTS = st.none() | st.dictionaries(st.integers(1, 9), st.integers(0, 2**40), max_size=9)
BOUNDS = st.none() | st.dictionaries(st.integers(1, 9), st.binary(max_size=20), max_size=9)


def as_pairs(value):
    return [{"key": k, "value": v} for k, v in value.items()] if isinstance(value, dict) else value


FILE = st.fixed_dictionaries(
    {
        "content": st.sampled_from([0, 0, 0, 1]),
        "file_path": st.text(min_size=1, max_size=100),
        "file_format": st.sampled_from(["PARQUET", "parquet", "orc"]),
        "partition": st.just({}),
        "record_count": st.integers(-1, 2**40),
        "file_size_in_bytes": st.integers(0, 2**40),
        **dict.fromkeys(("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"), COUNTS),
        **dict.fromkeys(("lower_bounds", "upper_bounds"), BOUNDS),
        "key_metadata": st.sampled_from([None, None, b"", b"k"]),
        "split_offsets": st.none() | st.lists(LONG, max_size=3),
        "equality_ids": st.none(),
        "sort_order_id": st.none() | INT,
        "referenced_data_file": st.none() | st.text(),
    }
).map(lambda f: {k: v if k == "partition" else as_pairs(v) for k, v in f.items()})
ENTRY = st.fixed_dictionaries(
    {"status": st.sampled_from([0, 1, 1, 1, 2]), "snapshot_id": st.none() | LONG, **OPTIONAL, "data_file": FILE}
)


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(st.lists(ENTRY, max_size=30), st.sampled_from([0, 7]), st.sampled_from([1, 300, 16000]))
@pytest.mark.parametrize("few", [0, 64])
@pytest.mark.spec("I-148", "I-147", "I-167")
def test_live_files_are_the_entries_one_by_one(few, rows, sequence, interval):
    out = io.BytesIO()
    fastavro.writer(out, NEW.manifest(SPEC), rows, codec="deflate", sync_interval=interval)
    source = manifests.ManifestFile("m", 0, 0, sequence, sequence, 77, None, {})
    with mock.patch.object(entries, "FEW", few):
        check_live_files(out.getvalue(), source)


def check_live_files(data, source):
    try:
        expected = manifests.read_entries(data, source, "m")
    except (CorruptTableError, UnsupportedFeatureError) as error:
        with pytest.raises(type(error)) as caught:
            _ = entries.Entries.read(data, source, "m").live
        assert str(caught.value) == str(error)
        return
    found = entries.Entries.read(data, source, "m")
    assert found.records() == expected
    assert found.records(metrics=frozenset({"lower_bounds"})) == manifests.read_entries(
        data, source, "m", metrics=frozenset({"lower_bounds"})
    )
    files = [e["data_file"] for e in expected]
    assert found.live.paths().to_pylist() == [f["file_path"] for f in files]
    for mine, name in (
        ("snapshot_id", "snapshot_id"),
        ("sequence", "sequence_number"),
        ("file_sequence", "file_sequence_number"),
    ):
        assert getattr(found.live, mine).tolist() == [e[name] for e in expected]
    assert found.live.rows.tolist() == [f["record_count"] for f in files]
    assert found.live.sizes.tolist() == [f["file_size_in_bytes"] for f in files]
    for name in METRICS - {"column_sizes"}:
        for id, column in found.live.metric(name, [1, 5, 12]).items():
            assert column.to_pylist() == [None if f[name] is None else f[name].get(id) for f in files]


BOUND_TYPES = [INT32, INT64, FloatType(32), FloatType(64), DATE, STRING, DecimalType(9, 2), TimestampType(True, "us")]


@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(st.sampled_from(BOUND_TYPES), st.data())
@pytest.mark.spec("I-159", "I-162")
def test_bounds_are_decoded_as_one_by_one(type, data):
    width = data.draw(st.sampled_from([4, 8, None]))
    one = st.binary(max_size=9) if width is None else st.binary(min_size=width, max_size=width)
    some = st.none() | one | st.sampled_from([struct.pack("<d", float("nan")), struct.pack("<i", 5)])
    found = data.draw(st.lists(some if data.draw(st.booleans()) else st.none() | one, max_size=6))
    array = pa.array(found, pa.binary())
    expected = arrow_array([decode(b, type) for b in found], type)
    assert bounds_array(array, type).equals(expected)

"""Our Avro codec against fastavro, both ways."""

import io
import math

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.avro import container as avro
from boathouse.avro.codec import reader, writer
from boathouse.errors import CorruptTableError, UnsupportedFeatureError

PAIR = {
    "type": "record",
    "name": "pair",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
}
NUMBERS = {"type": "record", "name": "n", "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "long"}]}
SCHEMA = {
    "type": "record",
    "name": "all",
    "fields": [
        {"name": "l", "type": "long"},
        {"name": "i", "type": ["null", "int"]},
        {"name": "s", "type": ["string", "null"]},
        {"name": "d", "type": "double"},
        {"name": "f", "type": "float"},
        {"name": "b", "type": "boolean"},
        {"name": "x", "type": {"type": "fixed", "name": "fx", "size": 3}},
        {"name": "m", "type": ["null", {"type": "array", "items": PAIR, "logicalType": "map"}]},
        {"name": "n", "type": {"type": "array", "items": NUMBERS}},
        {"name": "li", "type": {"type": "array", "items": "long"}},
        {"name": "r", "type": {"type": "record", "name": "in", "fields": [{"name": "z", "type": ["null", "long"]}]}},
    ],
}
LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
ROWS = st.fixed_dictionaries(
    {
        "l": LONG,
        "i": st.none() | INT,
        "s": st.none() | st.text(),
        "d": st.floats(allow_nan=False),
        "f": st.floats(width=32, allow_nan=False),
        "b": st.booleans(),
        "x": st.binary(min_size=3, max_size=3),
        "m": st.none() | st.dictionaries(INT, st.binary(), max_size=4),
        "n": st.dictionaries(INT, LONG, max_size=70),
        "li": st.lists(LONG, max_size=4),
        "r": st.fixed_dictionaries({"z": st.none() | LONG}),
    }
)


def listed(row):
    """Maps as fastavro takes them."""
    pairs = {k: row[k] and [{"key": a, "value": b} for a, b in row[k].items()] for k in ("m", "n")}
    return {**row, **{k: v if v is not None and v != {} else ([] if row[k] == {} else None) for k, v in pairs.items()}}


@settings(max_examples=150)
@given(st.lists(ROWS, max_size=4))
@pytest.mark.spec("I-144", "I-145")
def test_what_fastavro_writes_is_read(rows):
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, [listed(r) for r in rows], codec="deflate")
    container = avro.parse(out.getvalue(), "x")
    schema = avro.by_ids(container.schema, {}, "x")
    assert [r for block in avro.records(container, schema) for r in block] == rows
    less = [r for block in avro.records(container, schema, frozenset({"n", "m", "s"})) for r in block]
    assert less == [{**r, "n": None, "m": None, "s": None} for r in rows]


@settings(max_examples=100)
@given(st.lists(ROWS, max_size=4))
def test_what_we_write_fastavro_reads(rows):
    schema = {
        **SCHEMA,
        "fields": [f if f["name"] != "s" else {**f, "type": ["null", "string"]} for f in SCHEMA["fields"]],
    }
    data = avro.write(schema, rows, {"k": "v"}, "deflate")
    found = fastavro.reader(io.BytesIO(data))
    assert [{**r} for r in found] == [listed(r) for r in rows]
    assert found.metadata["k"] == "v"


@settings(max_examples=200)
@given(ROWS, st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_damage_is_a_typed_error_or_other_values(row, at, patch):
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, [listed(row)])
    data = bytearray(out.getvalue())
    start = len(data) - 17 - at % max(1, len(data) // 3)
    data[start : start + len(patch)] = patch
    try:
        container = avro.parse(bytes(data), "x")
        list(avro.records(container, avro.by_ids(container.schema, {}, "x")))
    except (CorruptTableError, UnsupportedFeatureError) as error:
        assert error.where == "x"


def test_nan_and_named_types():
    assert math.isnan(reader("double")(b"\x00\x00\x00\x00\x00\x00\xf8\x7f", 0)[0])
    twice = {"type": "record", "name": "a", "fields": [{"name": "p", "type": PAIR}, {"name": "q", "type": "pair"}]}
    out = bytearray()
    found = avro.by_ids(twice, {}, "x")
    writer(found)({"p": {"key": 1, "value": b"x"}, "q": {"key": 2, "value": b"y"}}, out)
    assert reader(found)(bytes(out), 0)[0]["q"] == {"key": 2, "value": b"y"}
    with pytest.raises(CorruptTableError, match="nowhere"):
        avro.by_ids({"type": "record", "name": "a", "fields": [{"name": "p", "type": "nowhere"}]}, {}, "x")

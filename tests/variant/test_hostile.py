"""Bytes made to hurt: depth, sharing, wild counts, mutations; every reader refuses alike (checklist V-083 to V-086)."""

from __future__ import annotations

import os
import tracemalloc
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.arrow.schema import MARK, VARIANT_STORAGE
from boathouse.errors import BoathouseError, EvaluationError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant import Lenient, Variant, VariantBuilder, build_metadata, extract, from_arrow, shred, to_json
from boathouse.variant.validate import validate_bytes
from makers import variants as made

A = build_metadata(["a"])
EMPTY = build_metadata([])

READINGS = {
    "to_python": Variant.to_python,
    "to_json": lambda v: v.to_json(special="null"),
    "hash": hash,
    "copy": lambda v: VariantBuilder().append_variant(v),
    "from_python": lambda v: Variant.from_python([v]),
}


def nested_arrays(depth: int, core: bytes = b"\x00") -> bytes:
    """Arrays of one element around `core`, offsets of four bytes."""
    heads = []
    size = len(core)
    for _ in range(depth):
        heads.append(b"\x0f\x01" + bytes(4) + size.to_bytes(4, "little"))
        size += 10
    return b"".join(reversed(heads)) + core


def nested_objects(depth: int) -> bytes:
    heads, size = [], 1
    for _ in range(depth):
        heads.append(b"\x0e\x01\x00" + bytes(4) + size.to_bytes(4, "little"))
        size += 11
    return b"".join(reversed(heads)) + b"\x00"


@pytest.mark.spec("V-083")
@pytest.mark.parametrize("nested", [nested_arrays, nested_objects])
def test_depth(nested):
    deepest = Variant(A, nested(1_000))
    assert [f for f in deepest.validate() if f.kind == "error"] == []
    for read in (READINGS["to_python"], READINGS["to_json"], READINGS["hash"], READINGS["copy"]):
        assert read(deepest) is not None
    assert deepest == Variant(A, nested(1_000))
    for depth in (1_001, 5_000, 100_000):
        value = Variant(A, nested(depth))
        for name, read in READINGS.items():
            with pytest.raises(MalformedVariant if name != "from_python" else BoathouseError, match="1,000 nested"):
                read(value)
        assert [f.kind for f in value.validate()] == ["error"]
        assert "1,000 nested" in value.validate()[0].message
        assert value.get((0,) * 500 if nested is nested_arrays else ("a",) * 500) is not None
        assert "nested" in repr(value)


@pytest.mark.spec("V-083")
def test_a_hundred_thousand_arrays_in_less_than_400_kb():
    # Five bytes a level: offsets of one byte cannot tell the size, so the outer ones lie, and are refused at once.
    raw = b"\x03\x01\x00\xff" * 50_000 + b"\x00"
    for read in READINGS.values():
        with pytest.raises(MalformedVariant):
            read(Variant(A, raw))


def doubling(levels: int, core: bytes = b"\x00") -> bytes:
    """Arrays of two elements that are the same one, `levels` deep: 2^levels leaves."""
    for _ in range(levels):
        size = len(core)
        core = b"\x07\x02" + bytes(4) + size.to_bytes(2, "little") + core
    return core


@pytest.mark.spec("V-084")
@pytest.mark.parametrize("levels", [18, 24, 64, 300])
def test_exponential_sharing_is_refused_by_budget(levels):
    value = Variant(A, doubling(levels))
    for name, read in READINGS.items():
        with pytest.raises(MalformedVariant, match="shared values"):
            read(value)
        assert name
    errors = [f for f in value.validate() if f.kind == "error"]
    assert len(errors) == 1
    assert "shared values" in errors[0].message
    assert value.get((0,) * 10).type == "array"


@pytest.mark.spec("V-084", "V-033")
def test_sharing_within_the_budget_is_read():
    assert Variant(A, doubling(8)).to_json().count("null") == 256
    text = bytes([63 << 2 | 1]) + b"x" * 63
    many = b"\x13" + (60).to_bytes(4, "little") + bytes(60) + b"\x40" + text
    assert Variant(A, many).to_python() == ["x" * 63] * 60


@pytest.mark.spec("V-084")
def test_only_what_is_visited_counts():
    # A shared array with a gap of 10,000 bytes: the gap is never read, however often the array is.
    inner = b"\x07\x01" + (10_000).to_bytes(2, "little") + (10_001).to_bytes(2, "little") + bytes(10_001)
    raw = b"\x07\xc8" + bytes(400) + len(inner).to_bytes(2, "little") + inner
    value = Variant(A, raw)
    assert value.to_python() == [[None]] * 200
    assert [f.kind for f in value.validate()] == ["oddity", "oddity"]
    assert judge(A, raw) == "read"


@pytest.mark.spec("V-084")
def test_a_long_string_shared_many_times_is_refused_before_it_is_copied():
    content = b"\x40" + (1_000_000).to_bytes(4, "little") + b"x" * 1_000_000
    count = 10_000
    raw = b"\x1b" + count.to_bytes(4, "little") + bytes(3 * count) + len(content).to_bytes(3, "little") + content
    value = Variant(A, raw)
    tracemalloc.start()
    try:
        for read in READINGS.values():
            with pytest.raises(MalformedVariant, match="shared values"):
                read(value)
        assert tracemalloc.get_traced_memory()[1] < 80_000_000  # of 10 GB
    finally:
        tracemalloc.stop()


@pytest.mark.spec("V-085")
@pytest.mark.parametrize(
    "raw",
    [
        b"\x4e\xff\xff\xff\xff\x00\x00\x00\x00\x00", b"\x1f\xff\xff\xff\xff\x00\x00\x00\x00\x00",
        b"\x42\xff\xff\xff\xff", b"\x13\xff\xff\xff\xff\x00", b"\x7e\xff\xff\xff\xff" + b"\xff" * 20,
        b"\x40\xff\xff\xff\xffabc", b"\x3c\xff\xff\xff\xffabc", b"\x0f\x01\x00\x00\x00\x00\xff\xff\xff\xff\x00",
        b"\x0e\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff",
    ],
    ids=bytes.hex,
)  # fmt: skip
def test_counts_and_sizes_of_2_to_the_32_are_refused_before_allocating(raw):
    tracemalloc.start()
    try:
        lazy = (len, lambda v: v.get((0,)), Variant.values) if raw[0] & 3 > 1 else (lambda v: v.scalar,)
        for read in (*READINGS.values(), *lazy, lambda v: v.value):
            with pytest.raises(MalformedVariant):
                read(Variant(A, raw))
        errors = [f.kind for f in validate_bytes(A, raw)]
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()
    assert errors == ["error"]


def test_many_overlapping_containers_are_linear():
    # Every byte is the header of an array that claims most of what follows.
    inner = b"\x03" * 60_000
    count = 10_000
    offsets = b"".join(i.to_bytes(3, "little") for i in range(count))
    raw = b"\x1b" + count.to_bytes(4, "little") + offsets + len(inner).to_bytes(3, "little") + inner
    for read in READINGS.values():
        with pytest.raises(MalformedVariant):
            read(Variant(A, raw))
    assert len(Variant(A, raw).validate()) <= 1_001


def test_a_dictionary_of_one_name_many_times():
    count = 20_000
    metadata = (
        b"\x41"
        + count.to_bytes(2, "little")
        + b"".join(min(i, 1).to_bytes(2, "little") for i in range(count + 1))
        + b"a"
    )
    ids = b"".join(i.to_bytes(2, "little") for i in range(count))
    raw = b"\x5a" + count.to_bytes(4, "little") + ids + bytes(3 * count) + b"\x01\x00\x00" + b"\x00"
    value = Variant(metadata, raw)
    with pytest.raises(MalformedVariant, match="'' twice"):
        value.get(("",))
    assert value["a"].type == "null"
    with pytest.raises(MalformedVariant, match="twice"):
        value.to_python()


def judge(metadata: bytes, raw: bytes) -> str:
    """What all readers say about bytes: they must agree with validate, and never raise anything of their own."""
    findings = validate_bytes(metadata, raw)
    bad = any(f.kind == "error" for f in findings)
    unknown = any("is unknown" in f.message for f in findings)
    try:
        value = Variant(metadata, raw)
    except MalformedVariant:
        assert bad
        return "malformed"
    outcomes = {}
    for name, read in READINGS.items():
        try:
            read(value)
            outcomes[name] = None
        except (MalformedVariant, UnsupportedFeatureError, EvaluationError) as problem:
            outcomes[name] = type(problem)
    repr(value)
    if bad:
        assert None not in outcomes.values(), (findings, outcomes)
        return "malformed"
    if unknown:
        assert {o for o in outcomes.values() if o is not EvaluationError} == {UnsupportedFeatureError}, outcomes
        return "unknown"
    assert {n for n, o in outcomes.items() if o} <= {"to_python"}, (findings, outcomes)
    assert outcomes["to_python"] in (None, EvaluationError)
    copy = VariantBuilder().append_variant(value).finish()
    assert copy == value
    assert made.tree_of(copy) == made.tree_of(value)
    assert not [f for f in copy.validate() if "scale" not in f.message]
    return "read"


@pytest.mark.spec("V-086")
@given(made.trees(), st.integers(0, 2**32))
@settings(max_examples=int(os.environ.get("BOATHOUSE_FUZZ", 60)))
def test_mutated_values_are_read_or_refused_by_all_readers_alike(tree, seed):
    random = Random(seed)
    value = made.encode_loosely(tree, random, gaps=True)
    assert judge(value.metadata, value.value) == "read"
    for _ in range(10):
        metadata = made.mutate(value.metadata, random) if random.random() < 0.2 else value.metadata
        judge(metadata, made.mutate(value.value, random))


@given(st.binary(max_size=40), st.binary(min_size=1, max_size=60))
@settings(max_examples=100)
def test_any_bytes_are_read_or_refused_by_all_readers_alike(metadata, raw):
    judge(metadata, raw)
    judge(b"\x11\x02\x00\x01\x02ab", raw)


@pytest.mark.spec("V-084")
def test_a_long_string_shared_many_times_is_refused_by_what_reads_a_part_of_the_value():
    raw = b"\x40" + (50_000).to_bytes(4, "little") + b"a" * 50_000
    count = 20_000
    shared = bytes([0x1F]) + count.to_bytes(4, "little") + bytes(4 * count) + len(raw).to_bytes(4, "little") + raw
    value = Variant(EMPTY, shared)
    assert value[19_999].scalar == "a" * 50_000
    whole = pa.array([{"metadata": EMPTY, "value": shared}], VARIANT_STORAGE)
    table = pa.table([whole], pa.schema([pa.field("v", VARIANT_STORAGE, metadata={MARK: b"variant"})]))
    readers = [
        lambda: value.cast("array<string>"),
        lambda: value.cast("array<variant>"),
        lambda: extract(whole, "$", "array<string>"),
        lambda: extract(whole, "$", "array<variant>"),
        lambda: shred(whole, "array<string>"),
        lambda: shred(whole, "array<variant>"),
        lambda: from_arrow(table),
    ]
    for read in readers:
        with pytest.raises(MalformedVariant, match="shared"):
            read()
    bad = Lenient()
    assert shred(whole, "array<string>", lenient=bad).null_count == 1
    assert bad.rows == [0]


@pytest.mark.spec("V-084")
def test_a_long_name_used_many_times_is_no_endless_text():
    metadata = build_metadata(["n" * 200_000])
    count = 15_000
    objects = bytes([2, 1, 0, 0, 1, 0]) * count
    offsets = b"".join((6 * i).to_bytes(4, "little") for i in range(count + 1))
    raw = bytes([0x1F]) + count.to_bytes(4, "little") + offsets + objects
    value = Variant(metadata, raw)
    assert len(value.to_python()) == count
    whole = pa.array([{"metadata": metadata, "value": raw}], VARIANT_STORAGE)
    readers = [
        value.to_json,
        lambda: to_json(whole),
        lambda: extract(whole, "$", "string"),
        lambda: extract(whole, "$", "array<map<string,int>>"),
        lambda: extract(whole, "$", "array<variant>"),
    ]
    for read in readers[3:]:
        with pytest.raises(EvaluationError, match="bytes of"):
            read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("boathouse.variant.json_out.MAX_TEXT", 1 << 24)
        for read in readers[:3]:
            with pytest.raises(EvaluationError, match="JSON text"):
                read()

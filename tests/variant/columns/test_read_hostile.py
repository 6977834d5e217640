"""Malformed bytes in columns: what the one-value path refuses is refused with its row, the rest reads the same."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from boathouse.errors import EvaluationError, MalformedVariant, UnsupportedFeatureError
from boathouse.types.text import parse_type
from boathouse.variant import Lenient, Variant
from boathouse.variant.cast import cast_exact
from boathouse.variant.columns.decode import to_pylist
from boathouse.variant.columns.extract import extract
from boathouse.variant.columns.schema_of import schema_of
from boathouse.variant.columns.to_arrow import to_arrow
from boathouse.variant.columns.to_json import to_json
from boathouse.variant.columns.valid import is_valid
from boathouse.variant.schemas import SchemaBuilder
from boathouse.variant.shredding.shred import shred
from boathouse.variant.shredding.unshred import unshred
from boathouse.variant.validate import validate_bytes
from makers.variants import Tree, encode, loose_variants, mutate, scalars, variants

Raw = tuple[bytes, bytes]
PATHS: list[tuple[str | int, ...]] = [
    (),
    ("a",),
    ("b",),
    ("a", "b"),
    (0,),
    (1,),
    ("a", 0),
    (0, "a"),
    ("id",),
    ("type", "a"),
]
GOOD = Variant.from_python({"a": [1, {"b": "x"}], "b": 2, "id": 3})


def stored(rows: list[Raw]) -> pa.StructArray:
    parts = [pa.array([m for m, _ in rows], pa.binary()), pa.array([v for _, v in rows], pa.binary())]
    return pa.StructArray.from_arrays(parts, ["metadata", "value"])


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except MalformedVariant:
        return MalformedVariant
    except UnsupportedFeatureError:
        return UnsupportedFeatureError
    except EvaluationError:
        return EvaluationError


def is_error(found: Any) -> bool:
    return isinstance(found, type)


def one_value(raw: Raw, path: tuple[str | int, ...]) -> bytes | None:
    found = Variant(*raw).get(path)
    return None if found is None else found.value


def damaged(seed: int, value: Variant, count: int) -> list[Raw]:
    chance = random.Random(seed)
    rows: list[Raw] = []
    for _ in range(count):
        metadata, raw = value.metadata, value.value
        if chance.random() < 0.3:
            metadata = mutate(metadata, chance)
        if chance.random() < 0.8:
            raw = mutate(raw, chance)
        rows.append((metadata, raw))
    return rows


values = st.one_of(variants(8), loose_variants(8), scalars().map(encode), st.just(GOOD))


@settings(max_examples=80)
@given(values, st.integers(0, 2**32), st.sampled_from(PATHS))
@example(encode(Tree("null", None)), 1, ())  # The last of the damaged rows is empty.
def test_paths_into_damaged_rows(value: Variant, seed: int, path: tuple[str | int, ...]) -> None:
    rows = damaged(seed, value, 12)
    each = [outcome(lambda: one_value(raw, path)) for raw in rows]  # noqa: B023
    data = stored(rows)
    errors = [i for i, found in enumerate(each) if isinstance(found, type)]
    if errors:
        with pytest.raises((MalformedVariant, UnsupportedFeatureError)) as caught:
            extract(data, path)
        if isinstance(caught.value, MalformedVariant):
            assert each[caught.value.row] is MalformedVariant
    lenient = Lenient()
    found = extract(data, path, lenient=lenient)
    found.validate(full=True)
    shown = [None if one is None else one["value"] for one in found.to_pylist()]
    assert shown == [None if isinstance(one, type) else one for one in each]
    assert lenient.count == len(errors)
    assert lenient.rows == errors


TYPES = ["int", "string", "double", "decimal(12,3)", "timestamp", "boolean", "binary", "time"]


def one_cast(raw: Raw, path: tuple[str | int, ...], type: Any, safe: bool) -> Any:
    found = Variant(*raw).get(path)
    return None if found is None else cast_exact(found, type, safe=safe)


@settings(max_examples=80)
@given(values, st.integers(0, 2**32), st.sampled_from(PATHS), st.sampled_from(TYPES))
def test_casts_of_damaged_rows(value: Variant, seed: int, path: tuple[str | int, ...], type: str) -> None:
    rows = damaged(seed, value, 8)
    target = parse_type(type)
    each = [outcome(lambda: one_cast(raw, path, target, True)) for raw in rows]  # noqa: B023
    lenient = Lenient()
    found = extract(stored(rows), path, type, safe=True, lenient=lenient)
    found.validate(full=True)
    nulls = found.is_null().to_pylist()
    for raw, want, null in zip(rows, each, nulls, strict=True):
        assert null == (want is None or is_error(want)), (raw, want)
    refused = [i for i, want in enumerate(each) if want in (MalformedVariant, UnsupportedFeatureError)]
    assert set(refused) <= set(lenient.rows)
    for row in set(lenient.rows) - set(refused):
        # A cast that is null whatever the scalar holds need not read it.
        assert each[row] is None and not sound(rows[row])
    strict = [outcome(lambda: one_cast(raw, path, target, False)) for raw in rows]  # noqa: B023
    if any(map(is_error, strict)):
        assert is_error(outcome(lambda: extract(stored(rows), path, type)))
    elif not lenient.count:
        extract(stored(rows), path, type)


def sound(raw: Raw) -> bool:
    return all(finding.kind != "error" for finding in validate_bytes(*raw))


def one_schema(raw: Raw) -> str:
    Variant(*raw).to_json(special="null")  # reads all scalars
    return str(SchemaBuilder().add(Variant(*raw)).finish())


@settings(max_examples=60)
@given(values, st.integers(0, 2**32))
def test_schemas_and_validity_of_damaged_rows(value: Variant, seed: int) -> None:
    rows = damaged(seed, value, 8)
    assert is_valid(stored(rows)).to_pylist() == [sound(raw) for raw in rows]
    each = [outcome(lambda: one_schema(raw)) for raw in rows]  # noqa: B023
    builder = SchemaBuilder()
    for raw, found in zip(rows, each, strict=True):
        if isinstance(found, str):
            builder.add(Variant(*raw))
    lenient = Lenient()
    assert schema_of(stored(rows), lenient=lenient) == builder.finish()
    assert lenient.count == sum(not isinstance(found, str) for found in each)


NESTED = "struct<a:array<struct<b:string>>,b:int,id:map<string,variant>>"


@settings(max_examples=60)
@given(values, st.integers(0, 2**32))
def test_nested_types_of_damaged_rows(value: Variant, seed: int) -> None:
    rows = damaged(seed, value, 8)
    target = parse_type(NESTED)
    each = [outcome(lambda: one_cast(raw, (), target, True)) for raw in rows]  # noqa: B023
    lenient = Lenient()
    found = to_arrow(stored(rows), NESTED, safe=True, lenient=lenient)
    found.validate(full=True)
    for want, got, i in zip(each, found.to_pylist(), range(len(rows)), strict=True):
        if i in lenient.rows:
            # What lies below a part that is not asked for may be refused by one of the two alone.
            assert got is None
        else:
            assert not isinstance(want, type)
            assert (want is None) == (got is None)
            if want is not None:
                assert got["b"] == want["b"]


WHOLE = [
    *map(Variant.from_python, (None, True, 1, 300, 2**40, 1.5, Decimal("1.25"), Decimal(10**20), "x", "x" * 70, b"xy")),
    *map(Variant.from_python, (date(2020, 1, 2), datetime(2020, 1, 2, 3), time(1), UUID(int=5), [], {}, [1, "x"])),
    GOOD,
]


@pytest.mark.few(6)
@pytest.mark.parametrize("value", WHOLE, ids=str)
def test_the_last_row_is_cut_short(value: Variant) -> None:
    """Where a row ends too early, the column's bytes end too: nothing beyond them is read."""
    for size in {*range(len(value.value))[:8], len(value.value) - 1}:
        rows = [(value.metadata, value.value), (value.metadata, value.value[:size])]
        data = stored(rows)
        for work in (extract, to_arrow):
            for type in ("variant", *TYPES, "array<int>", NESTED):
                lenient = Lenient()
                found = work(data, *(("$",) if work is extract else ()), type, safe=True, lenient=lenient)
                found.validate(full=True)
                assert found[1].as_py() is None
                assert lenient.rows in ([1], [])
                if type == "variant":
                    assert found[0].as_py()["value"] == value.value and lenient.rows == [1]
        for steps in (("a",), (0,)):
            lenient = Lenient()
            assert not extract(data, steps, lenient=lenient)[1].is_valid
        lenient = Lenient()
        assert to_json(data, special="string", lenient=lenient)[1].as_py() is None and lenient.rows == [1]
        lenient = Lenient()
        assert to_pylist(data, lenient=lenient)[1] is None and lenient.rows == [1]
        lenient = Lenient()
        assert schema_of(data, lenient=lenient) == SchemaBuilder().add(value).finish() and lenient.rows == [1]
        assert is_valid(data).to_pylist() == [True, False]
        for shape in (*TYPES, "array<int>", "struct<a:array<int>,b:int>"):
            lenient = Lenient()
            shredded = shred(data, shape, widen=True, lenient=lenient)
            assert lenient.rows == [1]
            assert to_pylist(unshred(shredded)) == [value.to_python(), None]


def test_errors_name_row_and_byte() -> None:
    short = (GOOD.metadata, GOOD.value[:-1])
    with pytest.raises(MalformedVariant) as caught:
        extract(stored([(GOOD.metadata, GOOD.value), short]), "$.id", "int")
    assert caught.value.row == 1 and caught.value.offset == 0
    text = Variant.from_python({"t": "é"})
    broken = (text.metadata, text.value[:-1] + b"\x28")
    with pytest.raises(MalformedVariant, match="UTF-8") as caught:
        extract(stored([(text.metadata, text.value)] * 3 + [broken]), "$.t", "string")
    assert caught.value.row == 3 and caught.value.offset == len(text.value) - 2
    assert extract(stored([broken]), "$.t", "string", lenient=Lenient()).to_pylist() == [None]


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_counts_that_no_row_holds(width: int) -> None:
    """2^32 - 1 elements in a few bytes: refused before anything is made of them."""
    for header in ((0x10 | width - 1) << 2 | 2, (0x04 | width - 1) << 2 | 3):
        raw = (GOOD.metadata, bytes([header]) + b"\xff\xff\xff\xff" + bytes(8))
        for path in ("$.a", "$[0]", "$"):
            with pytest.raises(MalformedVariant):
                extract(stored([raw]), path)
        assert is_valid(stored([raw])).to_pylist() == [False]


def test_a_name_under_two_ids() -> None:
    """Legal in a dictionary without the flag; twice in one object it is an error."""
    metadata = b"\x01\x03\x00\x01\x02\x03aba"

    def value(*ids: int) -> bytes:
        body = b"".join(struct.pack("<Bb", 12, i) for i in range(len(ids)))
        return bytes([2, len(ids), *ids, *(2 * i for i in range(len(ids) + 1))]) + body

    rows = [(metadata, value(0, 1)), (metadata, value(1, 2)), (metadata, value(1))]
    assert extract(stored(rows), "$.a", "int").to_pylist() == [0, 1, None]
    for ids in ((0, 2), (0, 0), (2, 1, 2)):
        with pytest.raises(MalformedVariant, match="twice") as caught:
            extract(stored([*rows, (metadata, value(*ids))]), "$.a", "int")
        assert caught.value.row == 3


def test_sharing_and_depth_are_bounded() -> None:
    value = b"\x0c\x01"
    for _ in range(24):
        value = bytes([3 | 1 << 2, 2]) + struct.pack("<HHH", 0, 0, len(value)) + value
    bomb = (b"\x11\x00\x00", value)
    with pytest.raises(MalformedVariant):
        to_arrow(stored([bomb]), "array<" * 24 + "int" + ">" * 24)
    with pytest.raises(MalformedVariant):
        schema_of(stored([bomb]))
    assert is_valid(stored([bomb])).to_pylist() == [False]
    # A path visits one child a step.
    assert extract(stored([bomb]), (0,) * 24, "int").to_pylist() == [1]
    deep = b"\x0c\x01"
    for _ in range(1001):
        deep = bytes([3 | 2 << 2, 1]) + (0).to_bytes(3, "little") + len(deep).to_bytes(3, "little") + deep
    with pytest.raises(MalformedVariant):
        schema_of(stored([(b"\x11\x00\x00", deep)]))
    assert is_valid(stored([(b"\x11\x00\x00", deep)])).to_pylist() == [False]
    assert extract(stored([(b"\x11\x00\x00", deep)]), (0,) * 1001, "int").to_pylist() == [1]

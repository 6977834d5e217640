"""Python values in and out, one value at a time (checklist V-066)."""

from __future__ import annotations

import enum
import math
from collections import ChainMap, OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings

from boathouse.errors import InvalidArgumentError
from boathouse.variant import Variant, VariantBuilder
from makers import variants as made


@pytest.mark.spec("V-066")
@given(made.python_values())
@settings(max_examples=200)
def test_any_python_value_round_trips(obj):
    value = Variant.from_python(obj)
    assert same(value.to_python(), obj)
    assert value.validate() == ()
    again = VariantBuilder().begin_array().append(obj).append_variant(value).end().finish()
    assert same(again.to_python(), [obj, obj])
    assert Variant.from_python(value.to_python()) == value


def same(left, right) -> bool:
    """Equal with the same types all the way down; integers beyond 64 bits come back as decimals of scale 0."""
    if isinstance(right, dict):
        return isinstance(left, dict) and left.keys() == right.keys() and all(same(left[k], right[k]) for k in right)
    if isinstance(right, list):
        return isinstance(left, list) and len(left) == len(right) and all(map(same, left, right))
    if type(right) is int and not -(2**63) <= right < 2**63:
        return type(left) is Decimal and left == right
    if type(right) is Decimal:
        return left.as_tuple() == right.as_tuple() or (not left and not right)
    return type(left) is type(right) and left == right


def refused(obj, match: str, where: str | None = None) -> None:
    for call in (Variant.from_python, VariantBuilder().append):
        with pytest.raises(InvalidArgumentError, match=match) as caught:
            call(obj)
        assert caught.value.where == where


@pytest.mark.spec("V-066")
def test_big_integers():
    assert Variant.from_python(2**64).type == "decimal16"
    assert Variant.from_python(10**38 - 1).scalar == (10**38 - 1, 0)
    assert Variant.from_python(1 - 10**38).scalar == (1 - 10**38, 0)
    for number in (10**38, -(10**38), 2**127, 2**128, 2**200, 10**5_000):
        refused(number, "does not fit into decimal16")
        refused({"a": [number]}, "does not fit", "$['a'][0]")


@pytest.mark.spec("V-066")
@pytest.mark.parametrize(
    "obj",
    [
        {1, 2},
        frozenset(),
        object(),
        timedelta(1),
        1j,
        range(3),
        iter([]),
        lambda: 0,
        type,
        Ellipsis,
        np.timedelta64(1, "s"),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_types_that_no_variant_holds(obj):
    refused(obj, "cannot hold")
    refused([1, {"a": [None, obj]}], "cannot hold", "$[1]['a'][1]")


@pytest.mark.spec("V-066")
@pytest.mark.parametrize("key", [1, None, True, math.nan, b"a", ("a",), 1.5, date(2020, 1, 1)], ids=repr)
def test_keys_that_are_no_strings(key):
    refused({key: 1}, "not a field name", "$")
    refused([{"a": {"ok": 1, key: 2}}], "not a field name", "$[0]['a']")


@pytest.mark.parametrize("obj", ["\ud800", ["\udfff"], {"a": "x\ud800"}])
def test_unpaired_surrogates(obj):
    with pytest.raises(InvalidArgumentError, match="surrogate"):
        Variant.from_python(obj)
    refused([{"\ud800": 1}], "surrogate", "$[0]")


@pytest.mark.spec("V-066")
def test_datetimes_with_and_without_zone():
    naive = datetime(2026, 7, 1, 12, 30, 0, 5)
    assert Variant.from_python(naive).type == "timestamp_ntz"
    assert Variant.from_python(naive).to_python() == naive
    for zone in (UTC, ZoneInfo("America/New_York"), timezone(timedelta(hours=5, minutes=45))):
        aware = naive.replace(tzinfo=zone)
        value = Variant.from_python(aware)
        assert value.type == "timestamp"
        assert value.to_python() == aware
        assert value.to_python().tzinfo is UTC
    fold = datetime(2026, 11, 1, 1, 30, tzinfo=ZoneInfo("America/New_York"))
    assert Variant.from_python(fold.replace(fold=1)).scalar - Variant.from_python(fold).scalar == 3_600_000_000
    assert Variant.from_python(fold.replace(tzinfo=None, fold=1)) == Variant.from_python(fold.replace(tzinfo=None))
    assert Variant.from_python(datetime.max).to_python() == datetime.max
    assert Variant.from_python(datetime.min.replace(tzinfo=UTC)).to_python() == datetime.min.replace(tzinfo=UTC)
    refused(time(1, 2, tzinfo=UTC), "no zone")


def test_pandas_timestamps():
    pd = pytest.importorskip("pandas")
    assert Variant.from_python(pd.Timestamp("2026-01-01 00:00:00.000001")).type == "timestamp_ntz"
    assert Variant.from_python(pd.Timestamp("2026-01-01 00:00:00.000001", tz="Europe/Rome")).type == "timestamp"
    stamp = pd.Timestamp("1969-12-31 23:59:59.123456789")
    value = Variant.from_python(stamp)
    assert (value.type, value.scalar) == ("timestamp_ntz_nanos", stamp.value)
    zoned = pd.Timestamp("2026-01-01 00:00:00.123456789", tz="Europe/Rome")
    value = Variant.from_python(zoned)
    assert (value.type, value.scalar) == ("timestamp_nanos", zoned.value)
    assert Variant.from_python([pd.NaT]).to_python() == [None]


@pytest.mark.spec("V-066")
@pytest.mark.parametrize(
    ("obj", "type", "expected"),
    [
        (np.int8(5), "int8", 5),
        (np.int16(5), "int16", 5),
        (np.int32(5), "int32", 5),
        (np.int64(5), "int64", 5),
        (np.uint8(255), "int16", 255),
        (np.uint16(65_535), "int32", 65_535),
        (np.uint32(2**32 - 1), "int64", 2**32 - 1),
        (np.uint64(2**64 - 1), "decimal16", Decimal(2**64 - 1)),
        (np.longlong(5), "int64", 5),
        (np.float16(0.5), "float", 0.5),
        (np.float32(0.1), "float", float(np.float32(0.1))),
        (np.float64(0.1), "double", 0.1),
        (np.bool_(True), "boolean", True),
        (np.str_("x"), "string", "x"),
        (np.bytes_(b"x"), "binary", b"x"),
        (np.datetime64("2026-01-01"), "date", date(2026, 1, 1)),
        (np.datetime64("2026-01-01T01:02:03"), "timestamp_ntz", datetime(2026, 1, 1, 1, 2, 3)),
        (np.datetime64("1957-01-01T01:02:03.004"), "timestamp_ntz", datetime(1957, 1, 1, 1, 2, 3, 4_000)),
        (np.datetime64("2026-01-01", "us"), "timestamp_ntz", datetime(2026, 1, 1)),
        (np.datetime64(7, "ns"), "timestamp_ntz_nanos", np.datetime64(7, "ns")),
        (np.datetime64("NaT"), "null", None),
        (np.datetime64("NaT", "ns"), "null", None),
        (np.array(3, np.int16), "int16", 3),
        (np.ma.masked_array([1], [False])[0], "int64", 1),
    ],
    ids=repr,
)
def test_numpy_scalars_keep_their_width(obj, type, expected):
    value = Variant.from_python(obj)
    assert (value.type, value.to_python()) == (type, expected)
    assert Variant.from_python({"a": [obj]})["a"][0].value == value.value


def test_numpy_that_is_refused():
    refused(np.datetime64("2026", "Y"), "numpy value of type")
    refused(np.datetime64(1, "ps"), "numpy value of type")
    refused(np.datetime64(2**62, "s"), "timestamp_ntz")
    refused(np.complex64(1), "numpy value of type")
    refused(np.longdouble(1), "numpy value of type")


def test_numpy_arrays_are_arrays_of_their_scalars():
    value = Variant.from_python(np.array([[1, 2], [3, 4]], np.int16))
    assert value.to_python() == [[1, 2], [3, 4]]
    assert value[1][0].type == "int16"
    assert Variant.from_python(np.array([], np.float32)).to_python() == []
    assert Variant.from_python(np.array([1, "x", None], object)).to_python() == [1, "x", None]


def test_containers_of_every_kind():
    pair = namedtuple("pair", "x y")
    assert Variant.from_python((1, [2, ()])).to_python() == [1, [2, []]]
    assert Variant.from_python(pair(1, 2)).to_python() == [1, 2]
    for mapping in (OrderedDict(b=1, a=2), MappingProxyType({"b": 1, "a": 2}), ChainMap({"b": 1}, {"a": 2})):
        assert Variant.from_python(mapping).to_python() == {"a": 2, "b": 1}
    assert list(Variant.from_python({"b": 1, "a": 2}).to_python()) == ["a", "b"]


def test_subclasses_are_what_they_derive_from():
    class Colour(enum.IntEnum):
        RED = 300

    class Name(str):
        pass

    class Number(float):
        pass

    assert Variant.from_python(Colour.RED).scalar == 300
    assert Variant.from_python({Name("k"): Name("v")}).to_python() == {"k": "v"}
    assert type(next(iter(Variant.from_python({Name("k"): 1}).to_python()))) is str
    assert Variant.from_python(Number(1.5)).type == "double"
    assert Variant.from_python(True).type == "boolean"


def test_variants_inside_keep_their_exact_types():
    inner = Variant.from_python({"z": np.int64(1), "a": [np.float32(0.5), Decimal("1.10")]})
    value = Variant.from_python({"m": [inner, inner["a"]], "z": inner["z"]})
    assert made.tree_of(value["m"][0]) == made.tree_of(inner)
    assert made.tree_of(value["m"][1]) == made.tree_of(inner["a"])
    assert value["z"].type == "int64"
    assert Variant.from_python(inner).value == inner.value
    assert value.validate() == ()


def test_depth_and_cycles():
    deep: list = []
    for _ in range(999):
        deep = [deep]
    value = Variant.from_python(deep)
    found, levels = value.to_python(), 0
    while found:
        found, levels = found[0], levels + 1
    assert levels == 999
    with pytest.raises(InvalidArgumentError, match="1,000 nested"):
        Variant.from_python([deep])
    for build in (
        lambda: VariantBuilder().begin_array().append(deep),
        lambda: VariantBuilder().begin_array().append_variant(value),
        lambda: Variant.from_python({"a": value}),
    ):
        with pytest.raises(InvalidArgumentError, match="nested"):
            build()
    cycle: list = []
    cycle.append(cycle)
    with pytest.raises(InvalidArgumentError, match="cycle"):
        Variant.from_python(cycle)
    both: dict = {}
    both["a"] = both["b"] = both
    with pytest.raises(InvalidArgumentError, match="cycle"):
        Variant.from_python(both)
    builder = VariantBuilder()
    for _ in range(1_000):
        builder.begin_array()
    with pytest.raises(InvalidArgumentError, match="1,000"):
        builder.begin_array()


def test_long_paths_are_cut_short():
    obj: object = {1, 2}
    for _ in range(900):
        obj = [obj]
    with pytest.raises(InvalidArgumentError, match="900 levels deep") as caught:
        Variant.from_python(obj)
    assert len(str(caught.value)) < 500


@given(made.trees())
@settings(max_examples=100)
def test_from_python_and_the_builder_agree(tree):
    value = made.encode(tree)
    builder = VariantBuilder()

    def append(variant: Variant) -> None:
        if variant.type == "array":
            builder.begin_array()
            for child in variant.values():
                append(child)
            builder.end()
        elif variant.type == "object":
            builder.begin_object()
            for name, child in variant.items():
                builder.key(name)
                append(child)
            builder.end()
        else:
            builder.append_variant(variant)

    append(value)
    assert builder.finish().value == value.value
    assert Variant.from_python(value).value == value.value


def test_a_builder_starts_again_after_finish():
    builder = VariantBuilder()
    assert builder.append({"a": 1}).finish().to_python() == {"a": 1}
    assert builder.append([2]).finish().to_python() == [2]

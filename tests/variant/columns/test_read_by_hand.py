"""Layouts and damage built by hand, through every reader of columns: rows that share a dictionary, and rows of which
each has its own (another code path). The one-value path has the same vectors in test_metadata and test_containers."""

from __future__ import annotations

import itertools
import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from boathouse.errors import MalformedVariant, UnsupportedFeatureError
from boathouse.variant import (
    Lenient,
    Variant,
    build_metadata,
    choose,
    extract,
    is_valid,
    schema_of,
    shred,
    to_arrow,
    to_json,
    to_pylist,
    unshred,
)
from boathouse.variant.columns.layout import column
from boathouse.variant.schemas import SchemaBuilder
from makers.variants import to_column, tree_of

Pair = tuple[bytes, bytes]
ABC = build_metadata("abc")
EMPTY = b"\x11\x00\x00"
OWN: list[Variant | None] = [Variant.from_python({f"own{i}": i}) for i in range(1100)]


def metadata(strings: list[Any], *, size: int = 1, flag: bool = False, extra: int = 0, offsets: Any = None) -> bytes:
    raw = [s if isinstance(s, bytes) else s.encode() for s in strings]
    found = offsets or [sum(map(len, raw[:i])) for i in range(len(raw) + 1)]
    numbers = b"".join(n.to_bytes(size, "little") for n in (len(raw), *found))
    return bytes([1 | flag << 4 | (size - 1) << 6]) + numbers + b"".join(raw) + bytes(extra)


def number(n: int) -> bytes:
    return bytes([12, n & 255])


def container(
    ids: list[int] | None, values: list[bytes], offsets: Any = None, large: bool = False, id_size: int = 1,
    offset_size: int = 1, last: int | None = None, reserved: int = 0,
) -> bytes:  # fmt: skip
    """An object, or an array where `ids` is None."""
    body = b"".join(values)
    offsets = [sum(map(len, values[:i])) for i in range(len(values))] if offsets is None else offsets
    head = large << 2 | offset_size - 1 if ids is None else large << 4 | (id_size - 1) << 2 | offset_size - 1
    count = len(offsets if ids is None else ids)
    return b"".join([
        bytes([head << 2 | (3 if ids is None else 2) | reserved]), count.to_bytes(4 if large else 1, "little"),
        *(id.to_bytes(id_size, "little") for id in ids or []),
        *(o.to_bytes(offset_size, "little") for o in (*offsets, len(body) if last is None else last)), body,
    ])  # fmt: skip


def obj(ids: list[int], values: list[bytes], **how: Any) -> bytes:
    return container(ids, values, **how)


def arr(values: list[bytes], **how: Any) -> bytes:
    return container(None, values, **how)


def layouts(cases: list[Pair]) -> Iterator[tuple[pa.Array, int]]:
    """The cases among others, and the row of the first: with few dictionaries, and with one for each row."""
    for others in (OWN[:2], OWN):
        rows = [(v.metadata, v.value) for v in others if v is not None]
        at = len(rows)
        rows = [*rows, *cases, rows[0]]
        parts = [pa.array([row[i] for row in rows], pa.binary()) for i in (0, 1)]
        data = pa.StructArray.from_arrays(parts, ["metadata", "value"])
        assert column(data).meta.distinct == (others is not OWN)
        yield data, at


def steps(value: Any) -> Iterator[tuple[str | int, ...]]:
    """The paths into a Python value: the first and last ones of each container."""
    yield ()
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else [])
    for name, child in items if len(items) < 9 else [*items[:3], *items[-3:]]:
        yield from ((name, *rest) for rest in steps(child))


def read(cases: list[tuple[bytes, bytes, Any]]) -> None:
    """Every reader gives what is expected, and what the one-value path does."""
    ones = [Variant(m, v) for m, v, _ in cases]
    texts = [one.to_json() for one in ones]
    kinds = [tree_of(one) for one in ones]
    for data, at in layouts([(m, v) for m, v, _ in cases]):
        found = to_pylist(data)[at:-1]
        assert found == [expected for *_, expected in cases]
        assert to_json(data).to_pylist()[at:-1] == texts
        assert [json.loads(t) for t in texts] == found
        assert is_valid(data).to_pylist() == [True] * len(data)
        builder = SchemaBuilder()
        for one in ones:
            builder.add(one)
        mine = data.slice(at, len(cases))
        assert schema_of(mine) == builder.finish()
        back = unshred(shred(data, choose(mine)))
        assert [tree_of(Variant(**row)) for row in back.to_pylist()[at:-1]] == kinds
        for path in dict.fromkeys(path for *_, expected in cases for path in steps(expected)):
            want = [
                None if (v := one.get(path)) is None else {"metadata": v.metadata, "value": v.value} for one in ones
            ]
            assert extract(data, path).to_pylist()[at:-1] == want, path


def refused(cases: list[Pair], match: str | None = None, kind: type[Exception] = MalformedVariant) -> None:
    """Every reader of whole values refuses each by its row, loses it alone leniently, and allocates little."""
    readers: dict[str, Callable[..., Any]] = {
        "to_pylist": to_pylist,
        "to_json": lambda d, **how: to_json(d, **how).to_pylist(),
        "schema_of": schema_of,
    }
    for data, at in layouts(cases):
        bad = list(range(at, at + len(cases)))
        if kind is MalformedVariant:
            assert [i for i, sound in enumerate(is_valid(data).to_pylist()) if not sound] == bad
        for name, reader in readers.items():
            lenient = Lenient()
            found = reader(data, lenient=lenient)
            assert (lenient.count, sorted(lenient.rows)) == (len(cases), bad[:100]), name
            if isinstance(found, list):
                assert [i for i, row in enumerate(found) if row is None] == bad, name
        for i in bad if len(data) < 100 else bad[:1]:
            one = pa.concat_arrays([data.slice(0, at), data.slice(i, 1), data.slice(0, 1)])
            for name, reader in readers.items():
                with pytest.raises(kind, match=match) as caught:
                    reader(one)
                if kind is MalformedVariant:
                    assert caught.value.row == at and caught.value.offset is not None, name
                else:
                    assert f"row {at:,}" in str(caught.value), name
        copied_or_lost(data, cases, at)


def copied_or_lost(data: pa.Array, cases: list[Pair], at: int) -> None:
    """What no typed column looks into is copied into `value` as it is: a malformed row never becomes another value."""
    for schema in ("tinyint", "string"):
        found = shred(data, schema, lenient=Lenient())
        for row, (_, value) in zip(found.to_pylist()[at:-1], cases, strict=True):
            assert row is None or (row["typed_value"] is None and value.startswith(row["value"]))
        back = unshred(found, lenient=Lenient())
        assert to_json(back, lenient=Lenient()).to_pylist()[at:-1] == [None] * len(cases)


THREE = {"a": 1, "b": 2, "c": 3}


@pytest.mark.spec("V-009", "V-010", "V-014", "V-017", "V-018")
def test_dictionaries_of_every_header() -> None:
    value = obj([0, 1, 2], [number(1), number(2), number(3)])
    cases: list[tuple[bytes, bytes, Any]] = [
        (metadata(list("abc"), size=size, flag=flag, extra=extra), value, THREE)
        for size, flag, extra in itertools.product([1, 2, 3, 4], [False, True], [0, 7])
    ]
    reserved = bytearray(metadata(list("abc")))
    reserved[0] |= 0x20
    cases.append((bytes(reserved), value, THREE))
    for order in ("cab", "bca", "cba"):
        ids = [order.index(name) for name in "abc"]
        cases.append((metadata(list(order)), obj(ids, [number(1), number(2), number(3)]), THREE))
    cases += [
        (b"\x01\x00\x00", b"\x02\x00\x00", {}),
        (metadata([""]), obj([0], [number(5)]), {"": 5}),
        *((metadata(["a", "b", "a"]), obj([id], [number(id)]), {"a": id}) for id in (0, 2)),
    ]
    read(cases)


@pytest.mark.spec("V-016", "V-037")
@pytest.mark.parametrize("names", ["cba", "bac", "acb", "abcdefghijklmnopqzyxwvutsr"])
def test_a_lying_sorted_flag_changes_no_look_up(names: str) -> None:
    many = [names[i:] + names[:i] for i in range(len(names))]
    whole: list[tuple[bytes, bytes, Any]] = []
    for order in many:
        ids = sorted(range(len(order)), key=lambda i, order=order: order[i])
        expected = {order[i]: i for i in ids}
        whole.append((metadata(list(order), flag=True), obj(ids, [number(i) for i in ids]), expected))
        whole += [(metadata(list(order), flag=True), obj([i], [number(i)]), {order[i]: i}) for i in (0, len(order) - 1)]
    whole += [(metadata(["a", "a", "c"], flag=True), obj([id], [number(id)]), {"a": id}) for id in (0, 1)]
    read(whole)


@pytest.mark.spec("V-013")
def test_first_and_last_offsets_of_dictionaries() -> None:
    value = obj([0, 1], [number(1), number(2)])
    read([
        (metadata(["ab", "c"], offsets=[1, 2, 3]), value, {"b": 1, "c": 2}),
        (metadata(["ab", "cd"], offsets=[0, 2, 3]), value, {"ab": 1, "c": 2}),
    ])  # fmt: skip
    refused([
        (metadata(["ab", "c"], offsets=[2, 1, 3]), value), (metadata(["ab", "c"], offsets=[0, 3, 2]), value),
        (metadata(["ab", "c"], offsets=[0, 2, 4]), value), (metadata(["ab", "c"], offsets=[0, 200, 3]), value),
    ])  # fmt: skip


@pytest.mark.spec("V-012")
def test_dictionaries_of_every_size() -> None:
    cases: list[tuple[bytes, bytes, Any]] = []
    for count in (1, 255, 256, 65_535, 65_536):
        raw = build_metadata([f"{i:05d}" for i in range(count)])
        cases.append((raw, obj([count - 1], [number(7)], id_size=3), {f"{count - 1:05d}": 7}))
    read(cases[:3])
    long = Variant(build_metadata(["x" * (1 << 24)]), obj([0], [number(7)]))
    data = to_column([*(Variant(m, v) for m, v, _ in cases), long])
    assert to_pylist(data) == [*(expected for *_, expected in cases), {"x" * (1 << 24): 7}]
    assert to_json(data)[5].as_py() == long.to_json()
    for count in (65_535, 65_536):
        name = f"{count - 1:05d}"
        want = [7 if count == other else None for other in (1, 255, 256, 65_535, 65_536, 0)]
        assert extract(data, (name,), "int").to_pylist() == want
        own = pa.concat_arrays([to_column(OWN), data.slice(0, 5)])
        assert extract(own, (name,), "int").to_pylist() == [None] * len(OWN) + want[:5]


@pytest.mark.spec("V-011")
@pytest.mark.parametrize("version", [0, 2, 15])
def test_rows_of_other_versions_are_lost_alone(version: int) -> None:
    raw = bytes([ABC[0] & 0xF0 | version]) + ABC[1:]
    refused([(raw, number(1)), (raw, obj([0], [number(1)]))], f"version {version}")


@pytest.mark.spec("V-015")
def test_names_and_texts_that_are_not_utf8_are_refused_where_they_are_reached() -> None:
    raw = metadata([b"\xff", "ok", b"\xed\xa0\x80"])
    read([(raw, obj([1], [number(7)]), {"ok": 7})])
    refused([(raw, obj([0], [number(7)])), (raw, obj([2], [number(7)])), (EMPTY, b"\x05\xff"),
             (EMPTY, arr([b"\x40\x02\x00\x00\x00\xc3\x28"]))], "not UTF-8")  # fmt: skip


@pytest.mark.spec("V-021", "V-022", "V-023", "V-044")
def test_each_of_the_256_headers() -> None:
    """Zeros behind each header: content of scalars, or a container of nothing."""
    known = [h for h in range(256) if h & 3 or h >> 2 <= 20]
    raws = [bytes([h]) + bytes(80) for h in range(256)]
    assert len(known) == 3 * 64 + 21
    whole = to_column([Variant(EMPTY, raws[h]) for h in known if h >> 2 not in (18, 19) or h & 3])
    assert to_pylist(whole) == [Variant(**row).to_python() for row in whole.to_pylist()]
    data = pa.StructArray.from_arrays([pa.array([EMPTY] * 256), pa.array(raws)], ["metadata", "value"])
    lenient = Lenient()
    texts = to_json(data, lenient=lenient).to_pylist()
    assert [h for h in range(256) if texts[h] is None] == lenient.rows == sorted(set(range(256)) - set(known))
    for h in known:
        assert texts[h] == Variant(EMPTY, raws[h]).to_json()
        assert (json.loads(texts[h]) if h & 3 else None) == ([None, "\0" * (h >> 2), {}, []][h & 3])
    back = unshred(shred(whole, choose(whole))).to_pylist()
    assert [tree_of(Variant(**r)) for r in back] == [tree_of(Variant(**r)) for r in whole.to_pylist()]
    refused([(EMPTY, bytes([id << 2]) + b"?") for id in range(21, 64)], "type", UnsupportedFeatureError)


@pytest.mark.spec("V-022", "V-023", "V-057")
def test_short_and_long_strings_are_one_to_every_reader() -> None:
    sizes = (0, 1, 3, 62, 63, 64, 65, 300)
    long = [b"\x40" + n.to_bytes(4, "little") + b"x" * n for n in sizes]
    short = [bytes([n << 2 | 1]) + b"x" * n for n in sizes if n < 64]
    texts = ["x" * n for n in (*sizes, *sizes[:5])]
    read([(EMPTY, raw, text) for raw, text in zip([*long, *short], texts, strict=True)])
    data = to_column([Variant(EMPTY, raw) for raw in (*long, *short)])
    assert extract(data, "$", "string").to_pylist() == texts
    assert extract(data, "$", "binary").to_pylist() == [text.encode() for text in texts]
    assert shred(data, "string").field("typed_value").to_pylist() == texts
    inside = [Variant(ABC, obj([0, 1], [raw, number(1)])) for raw in (long[2], short[2])]
    assert extract(to_column(inside), "$.a", "string").to_pylist() == ["xxx", "xxx"]
    assert extract(to_column(inside), "$.b", "int").to_pylist() == [1, 1]
    assert to_arrow(to_column(inside), "struct<a:string,b:int>").to_pylist() == [{"a": "xxx", "b": 1}] * 2


@pytest.mark.spec("V-024", "V-025", "V-026", "V-038")
def test_containers_of_every_width() -> None:
    inner = obj([1], [number(9)])
    values = [number(1), b"\x05x", inner]
    expected = {"a": 1, "b": "x", "c": {"b": 9}}
    cases: list[tuple[bytes, bytes, Any]] = []
    for large, id_size, offset_size in itertools.product([False, True], [1, 2, 3, 4], [1, 2, 3, 4]):
        how: dict[str, Any] = {"large": large, "offset_size": offset_size}
        cases.append((ABC, obj([0, 1, 2], values, id_size=id_size, **how), expected))
        cases.append((ABC, obj([], [], id_size=id_size, **how), {}))
        cases.append((ABC, arr(values, **how), [1, "x", {"b": 9}]))
        cases.append((ABC, arr([], **how), []))
    cases.append((ABC, obj([0, 1, 2], values, reserved=0x80), expected))
    cases += [(ABC, arr(values, reserved=bit), [1, "x", {"b": 9}]) for bit in (0x20, 0x40, 0x80, 0xE0)]
    read(cases)
    Random(1).shuffle(cases)
    read(cases)


@pytest.mark.spec("V-028", "V-029", "V-038", "V-041", "V-033")
def test_values_in_any_order_with_gaps_and_shared_ones() -> None:
    contents = [number(1), b"\x0dabc", obj([0], [number(7)])]
    expected = {"a": 1, "b": "abc", "c": {"a": 7}}
    cases: list[tuple[bytes, bytes, Any]] = [
        (ABC, obj([0, 1, 2], [number(3), number(2), number(1)], offsets=[4, 2, 0]), {"a": 1, "b": 2, "c": 3})
    ]
    for order in itertools.permutations(range(3)):
        body = [contents[i] for i in order]
        offsets = [sum(map(len, body[: order.index(i)])) for i in range(3)]
        cases.append((ABC, obj([0, 1, 2], body, offsets=offsets), expected))
        cases.append((ABC, arr(body, offsets=offsets), list(expected.values())))
    text = b"\x0dabc"
    cases += [
        (ABC, obj([0, 1], [text], offsets=[0, 0]), {"a": "abc", "b": "abc"}),
        (ABC, arr([arr([number(5)])], offsets=[0, 0, 0]), [[5], [5], [5]]),
        (ABC, arr([number(1), b"\xff\xff", number(2)], offsets=[0, 4]), [1, 2]),
        (ABC, arr([b"\x04", number(1), number(2)], offsets=[1, 3]), [1, 2]),
    ]
    read(cases)


@pytest.mark.spec("V-030", "V-032", "V-033", "V-035", "V-041")
def test_wrong_containers() -> None:
    two = [number(1), number(2)]
    refused([(ABC, value) for value in (
        *(obj([0, 1], two, last=last) for last in (0, 1, 2, 3, 5)), obj([0, 1], two, last=5) + b"\x00",
        obj([], [], last=1) + b"\x00", arr([], last=1) + b"\x00", arr([obj([0], [number(1)], last=3), b"\x00"]),
        obj([0, 3], two), obj([0, 255], two), obj([0, 65_535], two, id_size=2), obj([0, 2**32 - 1], two, id_size=4),
        obj([0, 1], two, offsets=[0, 4]), obj([0, 1], two, offsets=[0, 200]),
        *(obj([0, 1], two, offsets=[0, 2**32 - n], offset_size=4) for n in (1, 6)),
        arr([obj([0], [number(1)])], offsets=[2]), obj([0, 1], [b"\x0dabc"], offsets=[0, 1]),
        arr([b"\x0d\x04\x04\x04"], offsets=[0, 2]), obj([0, 1], [b"\x0d\x04\x04\x04"], offsets=[2, 0]),
        obj([0, 0], two), *(arr(two, offsets=offsets) for offsets in ([0, 4], [0, 255], [4, 0])),
        arr([number(1)], offsets=[0, 1]), bytes([3, 2, 0, 2]),
    )])  # fmt: skip
    refused([(b"\x01\x02\x00\x01\x02aa", obj([0, 1], two)), (ABC, arr([obj([1, 1], two)]))], "twice")


@pytest.mark.spec("V-031", "V-040", "V-036")
def test_large_containers() -> None:
    cases: list[tuple[bytes, bytes, Any]] = []
    for count in (0, 1, 255, 256, 65_536):
        expected: Any = dict.fromkeys((f"{i:05d}" for i in range(count)), True)
        value = Variant.from_python(expected)
        cases.append((value.metadata, value.value, expected))
    for count in (255, 256, 70_000):
        expected = [[i] if i % 3 == 0 else i if i % 3 == 1 else str(i) for i in range(count)]
        value = Variant.from_python(expected)
        cases.append((value.metadata, value.value, expected))
    value = Variant.from_python({"a": 1, "A": 2})
    cases.append((value.metadata, value.value, {"A": 2, "a": 1}))
    read([case for case in cases if len(case[2]) <= 256])
    data = to_column([Variant(m, v) for m, v, _ in cases])
    assert to_pylist(data) == [expected for *_, expected in cases]
    assert to_json(data).to_pylist() == [Variant(m, v).to_json() for m, v, _ in cases]
    assert is_valid(data).to_pylist() == [True] * len(cases)
    assert extract(data, ("65535",), "boolean").to_pylist() == [None] * 4 + [True, None, None, None, None]
    assert extract(data, (69_999, 0), "int").to_pylist() == [None] * 7 + [69_999, None]
    back = unshred(shred(data, "struct<`65535`:boolean,`00000`:string>"))
    assert back.to_pylist() == data.to_pylist()


@pytest.mark.spec("V-042", "V-043", "V-029")
def test_what_is_extracted_is_the_bytes_of_the_child_and_a_variant_by_itself() -> None:
    rows = [Variant.from_python([{"a": i}, {"b": {"x": [1, {"y": f"deep{i}"}]}}]) for i in range(5)]
    found = extract(to_column(list(rows)), "$[1].b").to_pylist()
    for row, child in zip(rows, found, strict=True):
        assert child["metadata"] == row.metadata
        assert child["value"] == row[1]["b"].value and child["value"] in row.value
    again = extract(pa.array(found), "$.x[1].y", "string")
    assert again.to_pylist() == [f"deep{i}" for i in range(5)]


@pytest.mark.spec("V-048", "V-051", "V-052")
def test_wrong_scalars() -> None:
    wrong = [
        *(bytes([id << 2, scale]) + bytes(width) for id, width in ((8, 4), (9, 8), (10, 16)) for scale in (39, 255)),
        *(bytes([id << 2, 2]) + n.to_bytes(width, "little", signed=True)
          for id, width, n in ((8, 4, 2_000_000_000), (8, 4, -(10**9)), (9, 8, 10**18), (10, 16, 10**38),
                               (10, 16, -(2**127)))),
        *(bytes([17 << 2]) + n.to_bytes(8, "little", signed=True) for n in (86_400_000_000, -1, 2**63 - 1)),
        *(bytes([id << 2]) + n.to_bytes(4, "little") + b"abc"
          for id in (15, 16) for n in (4, 255, 2**31 - 1, 2**31, 2**32 - 1)),
    ]  # fmt: skip
    refused([(EMPTY, raw) for raw in wrong])
    refused([(EMPTY, arr([number(1), raw, number(2)])) for raw in wrong[:14]])
    for type in ("decimal(38,2)", "string", "binary", "time", "double", "bigint"):
        bad = pa.StructArray.from_arrays([pa.array([EMPTY] * len(wrong)), pa.array(wrong)], ["metadata", "value"])
        lenient = Lenient()
        assert extract(bad, "$", type, safe=True, lenient=lenient).null_count == len(wrong)


@pytest.mark.spec("V-027")
def test_rows_cut_at_every_length_are_not_read_into_their_neighbours() -> None:
    """The rows of a column lie one after another: the bytes that would complete a cut row are those of the next."""
    whole = Variant.from_python({"a": [1, 300, None, "x" * 70], "b": {"c": [True, b"bytes"]}, "c": 1 << 40})
    raw = whole.value
    values = [part for cut in range(len(raw)) for part in (raw[:cut], raw[cut:])]
    assert b"".join(values) == raw * len(raw)
    meta = pa.array([whole.metadata] * len(values))
    data = pa.StructArray.from_arrays([meta, pa.array(values)], ["metadata", "value"])
    cuts = list(range(0, len(values), 2))
    dates = 11 << 2  # one that Python has no date for may stand behind a cut
    datas = {"to_json": data, "to_pylist": data.filter(pa.array([not value or value[0] != dates for value in values]))}
    assert len(datas["to_pylist"]) >= len(data) - 3
    for name, reader in {"to_json": lambda d, **how: to_json(d, **how).to_pylist(), "to_pylist": to_pylist}.items():
        given = datas[name].field("value").to_pylist()
        found = reader(datas[name], lenient=Lenient())
        assert [f for f, value in zip(found, given, strict=True) if value != raw and raw.startswith(value)] == [
            None
        ] * len(cuts)
        assert found[given.index(raw)] == (whole.to_json() if name == "to_json" else whole.to_python())
    sound = is_valid(data).to_pylist()
    assert not any(sound[i] for i in cuts) and sound[1]
    for path in ((), ("a",), ("c",), ("a", 3), ("b", "c", 1)):
        lenient = Lenient()
        found = extract(data, path, lenient=lenient).to_pylist()
        for i in cuts:
            try:
                one = Variant(whole.metadata, values[i]).get(path)
                want = None if one is None else one.value
            except MalformedVariant:
                want = None
            assert (found[i] and found[i]["value"]) == want, (path, i)


def nested(depth: int, core: bytes = b"\x03\x00\x00") -> bytes:
    """Arrays of one element; 10 bytes a level."""
    heads, size = [], len(core)
    for _ in range(depth - 1):
        heads.append(b"\x0f\x01" + bytes(4) + size.to_bytes(4, "little"))
        size += 10
    return b"".join(reversed(heads)) + core


def doubling(levels: int) -> bytes:
    value = number(1)
    for _ in range(levels):
        value = b"\x07\x02" + bytes(4) + len(value).to_bytes(2, "little") + value
    return value


@pytest.mark.spec("V-083")
def test_depth_costs_no_stack() -> None:
    """A thousand levels are read with room for a few dozen frames; more are refused."""
    deep = Variant(EMPTY, nested(1_000))
    data = to_column([deep, Variant.from_python(1)])
    frames, frame = 0, sys._getframe()
    while frame is not None:
        frames, frame = frames + 1, frame.f_back
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(frames + 120)
    try:
        text, size = deep.to_json(), len(deep.validate())
        copy, number_of_it = Variant.from_python(deep), hash(deep)
        parsed, column_text = Variant.from_json(text), to_json(data)
        value, column_value = deep.to_python(), to_pylist(data)[0]
        back, sound = unshred(shred(data, "array<array<tinyint>>")), is_valid(data)
        schema, found = schema_of(data), extract(data, (0,) * 999)
        equal = deep == copy
    finally:
        sys.setrecursionlimit(limit)
    assert text == "[" * 1_000 + "]" * 1_000 == column_text[0].as_py()
    assert (size, number_of_it, equal) == (0, hash(copy), True)
    assert parsed == deep and tree_depth(value) == tree_depth(column_value) == 1_000
    assert Variant(**back[0].as_py()) == deep and sound.to_pylist() == [True, True]
    assert str(schema) and found.to_pylist() == [{"metadata": EMPTY, "value": b"\x03\x00\x00"}, None]


def tree_depth(value: Any) -> int:
    depth = 1
    while value:
        value, depth = value[0], depth + 1
    return depth


@pytest.mark.spec("V-083", "V-084", "V-085")
def test_bombs_are_refused_by_every_reader_with_little_memory() -> None:
    raws = [nested(1_001), nested(20_000), b"\x03\x01" * 100_000, b"\x03\x01\x00\xff" * 50_000 + b"\x00"]
    raws += [doubling(levels) for levels in (24, 64, 300)]
    raws += [
        b"\x4e\xff\xff\xff\xff\x00\x00\x00\x00\x00", b"\x1f\xff\xff\xff\xff\x00\x00\x00\x00\x00",
        b"\x42\xff\xff\xff\xff", b"\x13\xff\xff\xff\xff\x00", b"\x7e\xff\xff\xff\xff" + b"\xff" * 20,
        b"\x40\xff\xff\xff\xffabc", b"\x3c\xff\xff\xff\xffabc", b"\x0f\x01\x00\x00\x00\x00\xff\xff\xff\xff\x00",
        b"\x0e\x01\x00\xff\xff\xff\xff\xff\xff\xff\xff",
    ]  # fmt: skip
    refused([(ABC, raw) for raw in raws])
    tracemalloc.start()
    try:
        refused([(ABC, raw) for raw in raws[7:]])
        refused([(b"\xd1\xff\xff\xff\xff\x00", b"\x00"), (b"\xd1\xfe\xff\xff\xff" + bytes(40), b"\x00")])
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
    deep = extract(to_column([Variant(ABC, nested(20_000)), Variant(ABC, doubling(24))]), (0,) * 24)
    assert [Variant(**row).type for row in deep.to_pylist()] == ["array", "int8"]

"""Byte strings of columns, and values assembled from parts: against plain Python and the one-value code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import InvalidArgumentError, MalformedVariant, UnsupportedTypeError
from boathouse.variant import Variant, VariantBuilder, build_metadata
from boathouse.variant.columns import assemble
from boathouse.variant.columns.byte_columns import (
    Fixed,
    Loose,
    Ragged,
    Rope,
    interleave,
    prefixes,
    rope,
    splits_of,
    spread,
    stack,
)
from boathouse.variant.columns.layout import column
from boathouse.variant.columns.metadata_builder import dictionary, dictionary_rows, row_dictionaries, variant_array
from boathouse.variant.columns.nodes import roots
from boathouse.variant.columns.rewrite import Rewriter
from makers.variants import columns, names, to_column, tree_of, variants

QUICK = settings(max_examples=60)
STRINGS = st.lists(st.binary(max_size=6), max_size=8)


def listed(found: Ragged) -> list[bytes]:
    return [found[i] for i in range(found.rows)]


@given(rows=STRINGS, more=STRINGS)
@QUICK
def test_ragged_rows(rows: list[bytes], more: list[bytes]) -> None:
    found = Ragged.of(rows)
    assert listed(found) == rows
    assert found.sizes.tolist() == [len(row) for row in rows]
    assert listed(stack([found, Ragged.of(more)])) == rows + more
    assert listed(found.slice(1, len(rows)) if rows else found) == rows[1:]
    splits = np.array([0, len(rows) // 2, len(rows)])
    assert listed(found.group(splits)) == [b"".join(rows[: splits[1]]), b"".join(rows[splits[1] :])]
    back = list(range(len(rows)))[::-1]
    assert listed(found.take(np.array(back, np.int64))) == rows[::-1]
    mixed = interleave([found, Ragged.of(more)], [np.arange(0, 2 * len(rows), 2), np.arange(len(more)) * 2 + 1], 20)
    expected = [b""] * 20
    expected[0 : 2 * len(rows) : 2] = rows
    expected[1 : 2 * len(more) : 2] = more
    assert listed(mixed) == expected
    mask = np.array([i % 3 == 0 for i in range(3 * len(rows))], np.bool_)
    assert listed(spread(found, mask)) == [row for one in rows for row in (one, b"", b"")]


@pytest.mark.parametrize(
    "type",
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.string(), pa.large_string(), pa.string_view(), pa.binary(2)],
)
def test_ragged_from_any_arrow_layout(type: pa.DataType) -> None:
    array = pa.array([b"xx", b"ab", b"cd", b"ef"], pa.binary()).cast(type).slice(1, 2)
    assert listed(Ragged.from_arrow(array)) == [b"ab", b"cd"]
    assert listed(Ragged.from_arrow(array.slice(0, 0))) == []
    assert Ragged.from_arrow(array).to_arrow().to_pylist() == [b"ab", b"cd"]
    assert Ragged.from_arrow(array).to_arrow(np.array([False, True])).to_pylist() == [None, b"cd"]


def test_what_holds_no_bytes_is_refused() -> None:
    with pytest.raises(UnsupportedTypeError, match="int64"):
        Ragged.from_arrow(pa.array([1]))


@given(sizes=st.lists(st.integers(0, 5), max_size=10))
@QUICK
def test_prefixes(sizes: list[int]) -> None:
    records = np.arange(len(sizes) * 5, dtype=np.uint8).reshape(-1, 5)
    found = prefixes(records, np.array(sizes, np.int64))
    assert listed(found) == [records[i, :size].tobytes() for i, size in enumerate(sizes)]


@given(rows=st.lists(st.tuples(st.booleans(), st.booleans(), st.binary(max_size=3)), max_size=8))
@QUICK
def test_a_rope_has_its_parts_in_order_within_each_row(rows: list[tuple[bool, bool, bytes]]) -> None:
    count = len(rows)
    first, second = (np.array([row[i] for row in rows], np.bool_) for i in (0, 1))
    numbers = np.arange(count, dtype="<u2")
    parts = (
        Fixed(1, ((0, 7),)),
        Fixed(2, ((0, numbers),)),
        Loose(Ragged.of([row[2] for row in rows]), first),
        Fixed(1, ((0, 9),), second),
        Fixed(1, ((0, 8),), second),
    )
    found = Rope(count, parts)
    expected = [b"\7" + i.to_bytes(2, "little") + a * text + b * b"\x09\x08" for i, (a, b, text) in enumerate(rows)]
    assert listed(found.join()) == expected
    assert found.sizes.tolist() == [len(row) for row in expected]
    assert listed(found.within(first).join()) == [a * one for (a, _, _), one in zip(rows, expected)]
    assert listed(rope(found, found).join()) == [one + one for one in expected]
    assert Rope(count, parts[:2]).size == 3


@given(numbers=st.lists(st.integers(0, 62).flatmap(lambda bits: st.integers(-(1 << bits) - 1, 1 << bits)), max_size=9))
@QUICK
def test_integers_are_as_narrow_as_each_fits(numbers: list[int]) -> None:
    found = listed(assemble.integers(np.array(numbers, np.int64)).join())
    assert found == [VariantBuilder().append_int(number).finish().value for number in numbers]


@given(texts=st.lists(st.one_of(st.text(max_size=5), st.text(min_size=60, max_size=70)), max_size=6))
@QUICK
def test_strings_are_short_below_64_bytes(texts: list[str]) -> None:
    found = listed(assemble.strings(Ragged.of([text.encode() for text in texts])).join())
    assert found == [VariantBuilder().append_string(text).finish().value for text in texts]


OBJECTS = st.lists(st.dictionaries(names(), st.binary(max_size=300), max_size=4), min_size=1, max_size=6)


@given(rows=OBJECTS)
@QUICK
def test_objects_whose_fields_differ_by_row(rows: list[dict[str, bytes]]) -> None:
    raw, ids = dictionary(name.encode() for row in rows for name in row)
    fields = [sorted((name.encode(), value) for name, value in row.items()) for row in rows]
    children = assemble.binaries(Ragged.of([value for row in fields for _, value in row])).join()
    splits = splits_of(np.array([len(row) for row in fields]))
    found = assemble.objects(splits, np.array([ids[name] for row in fields for name, _ in row], np.int64), children)
    assert raw == build_metadata([name for row in rows for name in row])
    builder = [VariantBuilder(raw).append(row).finish().value for row in rows]
    assert listed(found.join()) == builder


@given(rows=OBJECTS)
@QUICK
def test_dictionaries_of_rows(rows: list[dict[str, bytes]]) -> None:
    every = sorted({name.encode() for row in rows for name in row})
    pairs = [(i, every.index(name.encode())) for i, row in enumerate(rows) for name in row][::-1]
    row, name = np.array([*pairs, *pairs], np.int64).reshape(-1, 2).T
    found = row_dictionaries(len(rows), row, name, Ragged.of(every))
    assert listed(found.metadata) == [build_metadata(list(one)) for one in rows]
    for (i, rank), id in zip(pairs, found.ids(row, name).tolist()):
        assert Variant(found.metadata[i], b"\0").dictionary.name(id).encode() == every[rank]


def test_dictionaries_of_groups_of_names() -> None:
    given_names = [[b"a", b"b" * 300], [], [b"%06d" % i for i in range(300)], [b""]]
    splits = splits_of(np.array([len(row) for row in given_names]))
    found = dictionary_rows(splits, Ragged.of([name for row in given_names for name in row]))
    assert listed(found) == [build_metadata([name.decode() for name in row]) for row in given_names]


@pytest.mark.parametrize("fields", [3, 20])
@pytest.mark.parametrize("sets", [1, 3, 200])
def test_structs_with_few_and_many_sets_of_present_fields(fields: int, sets: int) -> None:
    rows, random = 400, np.random.default_rng(fields * sets)
    kinds = random.random((sets, fields)) < 0.6
    there = kinds[random.integers(0, sets, rows)]
    raw, ids = dictionary(b"f%02d" % i for i in range(fields))
    texts = [[b"x" * int(size) for size in random.integers(0, 150, rows)] for _ in range(fields)]
    ropes = [assemble.strings(Ragged.of(column)) for column in texts]
    masks = [np.ascontiguousarray(there[:, i]) for i in range(fields)]
    inside = random.random(rows) < 0.8
    found = assemble.structs(rows, list(ids.values()), ropes, [mask & inside for mask in masks], inside)
    by_matrix = assemble.structs(
        rows, np.tile(np.arange(fields), (rows, 1)), ropes, [mask & inside for mask in masks], inside
    )
    expected = [
        VariantBuilder(raw)
        .append({f"f{i:02}": texts[i][row].decode() for i in range(fields) if there[row, i]})
        .finish()
        .value
        if inside[row]
        else b""
        for row in range(rows)
    ]
    assert listed(found.join()) == expected
    assert listed(by_matrix.join()) == expected


def test_sizes_beyond_four_bytes_are_refused() -> None:
    assert assemble.widths(np.array([0, 255, 256, 65_535, 65_536, 2**24, 2**32 - 1])).tolist() == [1, 1, 2, 2, 3, 4, 4]
    with pytest.raises(InvalidArgumentError, match="4,294,967,296"):
        assemble.widths(np.array([1, 2**32]))


@pytest.mark.spec("V-052")
@pytest.mark.parametrize(("make", "id"), [(assemble.strings, 16), (assemble.binaries, 15)])
def test_lengths_have_four_bytes(make: Any, id: int) -> None:
    data = np.empty(0, np.uint8)  # the bytes themselves are not looked at
    (head, _) = make(Ragged(np.array([0, 1 << 31]), data)).parts
    assert listed(head.materialise(1)) == [bytes([id << 2]) + (1 << 31).to_bytes(4, "little")]
    (head, _) = make(Ragged(np.array([0, (1 << 32) - 1]), data)).parts
    assert listed(head.materialise(1)) == [bytes([id << 2]) + b"\xff" * 4]
    with pytest.raises(InvalidArgumentError):
        make(Ragged(np.array([0, 1 << 32]), data))


def test_more_than_2_gib_of_values_become_large_binary() -> None:
    # The pages of this buffer are never touched but for the last.
    data = np.zeros((1 << 31) + 64, np.uint8)
    data[-1] = 0x0C
    found = variant_array(b"\x11\0\0", Ragged(np.array([0, 1 << 31, len(data) - 2, len(data)]), data))
    assert found.type.field("value").type == pa.large_binary()
    assert found.type.field("metadata").type == pa.binary()
    assert found[2]["value"].as_py() == b"\0\x0c"
    small = variant_array(b"\x11\0\0", Ragged(np.array([(1 << 31) + 62, (1 << 31) + 64]), data))
    assert small.type.field("value").type == pa.binary()
    assert small[0]["value"].as_py() == b"\0\x0c"


def rewritten(rows: list[Variant | None]) -> tuple[list[bytes], bytes]:
    rewriter = Rewriter(roots(column(to_column(rows))))
    raw, ids = dictionary([*rewriter.names, b"another", b"\0"])
    ranks = np.array([ids[name] for name in rewriter.names], np.int64)
    return listed(rewriter.write(lambda _, names: ranks[names])), raw


@given(rows=columns(max_rows=6))
@QUICK
def test_rewritten_variants_keep_exact_types_under_another_dictionary(rows: list[Variant | None]) -> None:
    found, raw = rewritten(rows)
    assert [tree_of(Variant(raw, one)) for one in found] == [tree_of(row) for row in rows if row is not None]


@given(rows=st.lists(variants(), max_size=4))
@QUICK
def test_canonical_variants_are_rewritten_as_the_builder_would(rows: list[Variant]) -> None:
    found, raw = rewritten(list(rows))
    assert found == [VariantBuilder(raw).append_variant(row).finish().value for row in rows]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"\2\2\0\1\0\1\2\0\0", "twice"),  # the names of both ids are equal
        (b"\2\1\7\0\1\0", "beyond the dictionary"),
        (b"\x03\1\0\5\0", "end beyond"),
        (b"", "missing"),
    ],
)
def test_malformed_variants_are_not_rewritten(value: bytes, message: str) -> None:
    metadata = b"\1\2\0\1\2aa"
    array: Any = pa.StructArray.from_arrays([pa.array([metadata] * 2), pa.array([b"\0", value])], ["metadata", "value"])
    with pytest.raises(MalformedVariant, match=message) as error:
        Rewriter(roots(column(array))).write(lambda rows, names: names)
    assert error.value.row == 1


def test_depth_beyond_the_limit_is_refused() -> None:
    deep = b"\0"
    for _ in range(1_001):
        size = len(deep)
        width = 1 if size < 256 else 2
        deep = bytes([3 | (width - 1) << 2, 1]) + bytes(width) + size.to_bytes(width, "little") + deep
    inner = Variant(b"\x11\0\0", deep)[0]
    assert len(rewritten([inner])[0]) == 1
    with pytest.raises(MalformedVariant, match="1,000"):
        rewritten([Variant(b"\x11\0\0", deep)])

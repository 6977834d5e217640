"""Extraction from columns: the one-value path row by row, in every layout; DuckDB's objects and answers."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import (
    EvaluationError,
    ExpressionError,
    InvalidArgumentError,
    MalformedVariant,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from boathouse.types import DateType, TimestampType, TimeType
from boathouse.types.text import parse_type
from boathouse.variant import Lenient, Variant, VariantBuilder, build_metadata
from boathouse.variant.cast import cast_exact
from boathouse.variant.columns.layout import column
from boathouse.variant.extraction import extract
from makers.variants import columns, encode, loose_variants, scalars, to_column, variants

Row = Variant | None


def plain(rows: list[Row]) -> pa.StructArray:
    return to_column(rows)


def children(rows: list[Row], metadata: pa.DataType, value: pa.DataType, names: tuple[str, str]) -> pa.StructArray:
    found = to_column(rows)
    by_name = {"metadata": found.field("metadata").cast(metadata), "value": found.field("value").cast(value)}
    return pa.StructArray.from_arrays([by_name[n] for n in names], list(names), mask=found.is_null())


def sliced(rows: list[Row]) -> pa.StructArray:
    extra: list[Row] = [Variant.from_python({"x": 1}), None, Variant.from_python([1, 2])]
    return to_column([*extra, *rows, *extra]).slice(3, len(rows))


def coded_metadata(rows: list[Row]) -> pa.StructArray:
    found = to_column(rows)
    parts = [found.field("metadata").dictionary_encode(), found.field("value")]
    return pa.StructArray.from_arrays(parts, ["metadata", "value"], mask=found.is_null())


def coded_struct(rows: list[Row]) -> pa.DictionaryArray:
    words = to_column([*rows[::-1], Variant.from_python("unused")])
    places = [None if row is None else len(rows) - 1 - i for i, row in enumerate(rows)]
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int16()), words)


def chunked(rows: list[Row]) -> pa.ChunkedArray:
    half = len(rows) // 2
    return pa.chunked_array([to_column(rows[:half]), to_column([]), sliced(rows[half:])])


class Foreign(pa.ExtensionType):  # type: ignore[misc]
    """An extension type over the storage, registered nowhere."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "tests.some.variant")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def extension(rows: list[Row]) -> pa.ExtensionArray:
    storage = to_column(rows)
    return pa.ExtensionArray.from_storage(Foreign(storage.type), storage)


class Exporter:
    """Knows the C interface only."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.array.__arrow_c_array__(requested_schema)


def exported(rows: list[Row]) -> Exporter:
    return Exporter(to_column(rows))


MV, VM = ("metadata", "value"), ("value", "metadata")
LAYOUTS: dict[str, Callable[[list[Row]], Any]] = {
    "plain": plain,
    "value first": lambda rows: children(rows, pa.binary(), pa.binary(), VM),
    "large": lambda rows: children(rows, pa.large_binary(), pa.large_binary(), MV),
    "views": lambda rows: children(rows, pa.binary_view(), pa.binary_view(), MV),
    "mixed": lambda rows: children(rows, pa.binary_view(), pa.large_binary(), VM),
    "sliced": sliced,
    "metadata coded": coded_metadata,
    "rows coded": coded_struct,
    "chunked": chunked,
    "extension": extension,
    "exported": exported,
}


def flat(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def shown(array: pa.Array | pa.ChunkedArray) -> list[tuple[bytes, bytes] | None]:
    """A variant column as pairs of bytes."""
    return [None if row is None else (row["metadata"], row["value"]) for row in array.to_pylist()]


def expected(rows: list[Row], path: tuple[str | int, ...]) -> list[tuple[bytes, bytes] | None]:
    found = [None if row is None else row.get(path) for row in rows]
    return [None if v is None else (v.metadata, v.value) for v in found]


def paths(rows: list[Row]) -> list[tuple[str | int, ...]]:
    """Those that lead somewhere in the rows, and some that do not."""
    found: dict[tuple[str | int, ...], None] = {(): None, ("a",): None, ("nix", "a"): None, (0,): None, (5,): None}
    work: list[tuple[tuple[str | int, ...], Variant]] = [((), row) for row in rows if row is not None]
    while work and len(found) < 40:
        path, value = work.pop()
        found[path] = None
        if value.type == "object":
            work += [((*path, name), child) for name, child in value.items()]
        elif value.type == "array":
            work += [((*path, i), child) for i, child in enumerate(value.values())]
    return list(found)


@pytest.mark.few(4)
@pytest.mark.spec("V-088", "V-029", "V-037", "V-062")
@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=14)
@given(rows=columns())
def test_every_layout_gives_what_one_value_gives(layout: str, rows: list[Row]) -> None:
    data = LAYOUTS[layout](rows)
    for path in paths(rows):
        found = extract(data, path)
        assert shown(found) == expected(rows, path), path
        flat(found).validate(full=True)


@settings(max_examples=20)
@given(st.lists(loose_variants(8), min_size=1, max_size=5), st.integers(1, 400))
def test_many_rows_as_a_few(rows: list[Variant], times: int) -> None:
    """Enough rows that those of one shape are read together."""
    many: list[Row] = [*rows, None] * times
    data = to_column(many)
    for path in paths(list(rows))[:12]:
        assert shown(extract(data, path)) == expected([*rows, None], path) * times


TYPES = [
    "boolean", "tinyint", "smallint", "int", "bigint", "uint8", "uint64", "float", "double", "halffloat",
    "decimal(9,2)", "decimal(18,6)", "decimal(5,5)", "decimal(38,10)", "decimal(38,0)", "string", "binary",
    "fixed(16)", "uuid", "date", "time", "time(9)", "timestamp", "timestamp_ntz",
]  # fmt: skip
UNITS = [TimestampType(utc, unit) for utc in (True, False) for unit in ("s", "ms", "ns")]  # type: ignore[arg-type]
ALL = [parse_type(text) for text in TYPES] + UNITS + [TimeType("s"), TimeType("ms")]


def stored(array: pa.Array | pa.ChunkedArray, type: Any) -> list[Any]:
    """Values as `cast_exact` gives them."""
    if isinstance(type, DateType | TimeType | TimestampType):
        whole = flat(array)
        return whole.view(pa.int32() if whole.type.bit_width == 32 else pa.int64()).to_pylist()
    return array.to_pylist()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("<d", a) == struct.pack("<d", b) or (a != a and b != b)
    return a == b and type(a) is type(b)


def attempt(work: Callable[[], Any]) -> Any:
    """What it gives, or the class of its error."""
    try:
        return work()
    except (EvaluationError, MalformedVariant, UnsupportedFeatureError) as problem:
        return type(problem)


@pytest.mark.few(12)
@pytest.mark.spec("V-063")
@pytest.mark.parametrize("type", ALL, ids=str)
@settings(max_examples=18)
@given(rows=st.lists(st.one_of(st.none(), scalars().map(encode), variants(3)), max_size=12))
def test_casts_are_those_of_one_value(type: Any, rows: list[Row]) -> None:
    data = to_column(rows)
    each = [None if row is None else cast_exact(row, type, safe=True) for row in rows]
    found = extract(data, "$", type, safe=True)
    flat(found).validate(full=True)
    for row, want, got in zip(rows, each, stored(found, type), strict=True):
        assert same(want, got), (row, want, got)
    strict = [None if row is None else attempt(lambda: cast_exact(row, type)) for row in rows]  # noqa: B023
    if EvaluationError in strict:
        with pytest.raises(EvaluationError, match="row"):
            extract(data, "$", type)
    else:
        assert repr(stored(extract(data, "$", type), type)) == repr(stored(found, type))


WORDS = [
    "12", " 12 ", "1.5", "-0", "1e3", "9223372036854775808", "true", "no", "2026-01-31", "2026-01-31 12:00:00",
    "2026-01-31T12:00:00Z", "12:30", "abc", "", "NaN", "Infinity", "0.005", "\u0000", "日本", "x" * 80,
    "123e4567-e89b-12d3-a456-426614174000",
]  # fmt: skip


@pytest.mark.spec("V-063")
@pytest.mark.parametrize("type", ALL, ids=str)
def test_texts_are_cast_as_one_value_is(type: Any) -> None:
    rows: list[Row] = [Variant.from_python(word) for word in WORDS * 3]
    each = [cast_exact(row, type, safe=True) for row in rows if row is not None]
    for want, got in zip(each, stored(extract(to_column(rows), (), type, safe=True), type), strict=True):
        assert same(want, got)


def number(id: int, *parts: bytes) -> Variant:
    return Variant(b"\x11\x00\x00", bytes([id << 2]) + b"".join(parts))


LONG = struct.Struct("<q").pack
EDGES = [
    *(number(8, bytes([s]), struct.pack("<i", v)) for s in (0, 1, 9, 10, 22, 23, 38) for v in (0, 5, -5, 999_999_999)),
    *(number(9, bytes([s]), LONG(v)) for s in (0, 2, 18, 19, 38) for v in (15, -15, 10**18 - 1, 1 - 10**18)),
    *(number(9, bytes([2]), LONG(v)) for v in (2**53, 2**53 + 1, -(2**53) - 1, 16777217 * 100, 250, 350, -250)),
    *(
        number(10, bytes([s]), v.to_bytes(16, "little", signed=True))
        for s in (0, 1, 19, 20, 38)
        for v in (0, 7, -(2**63), 2**63 - 1, 2**63, 10**38 - 1, 1 - 10**38)
    ),
    *(number(7, struct.pack("<d", v)) for v in (2.0**63, -(2.0**63), 2.0**31, 1e300, -0.0, 0.5, 2147483647.9, 65520.0)),
    *(number(7, struct.pack("<d", v)) for v in (float("nan"), float("inf"), 127.99, -128.5, 9223372036854.775)),
    *(number(14, struct.pack("<f", v)) for v in (1.1, 3.0e38, float("nan"), -1e-45, 16777217.0)),
    *(number(6, LONG(v)) for v in (2**63 - 1, -(2**63), 2**53 + 1, 9223372036855, -9223372036855, 16777217)),
    *(number(i, LONG(v)) for i in (12, 13, 18, 19) for v in (-1, -(2**63), 2**63 - 1, 1_500_000, 86_400_000_000)),
    *(number(11, struct.pack("<i", v)) for v in (0, -1, 2**31 - 1, -(2**31), 106_751_991)),
    *(number(17, struct.pack("<q", v)) for v in (0, 86_399_999_999, 1)),
]  # fmt: skip


@pytest.mark.spec("V-063")
@pytest.mark.parametrize("type", ALL, ids=str)
def test_limits_are_cast_as_one_value_is(type: Any) -> None:
    rows: list[Row] = list(EDGES)
    each = [cast_exact(row, type, safe=True) for row in EDGES]
    for row, want, got in zip(rows, each, stored(extract(to_column(rows), (), type, safe=True), type), strict=True):
        assert same(want, got), (row, row and row.value, want, got)


@pytest.mark.spec("V-056", "V-057")
def test_equal_numbers_and_texts_extract_to_equal_values() -> None:
    long = Variant(b"\x11\x00\x00", b"\x40\x05\x00\x00\x00hello")
    rows: list[Row] = [
        number(3, b"\x01"),
        number(6, struct.pack("<q", 1)),
        number(10, b"\x02", (100).to_bytes(16, "little")),
    ]
    for type in ("int", "bigint", "decimal(10,2)", "string", "boolean"):
        assert len(set(extract(to_column(rows), "$", type).to_pylist())) == 1, type
    texts: list[Row] = [long, Variant.from_python("hello")]
    assert extract(to_column(texts), "$", "string").to_pylist() == ["hello", "hello"]
    assert extract(to_column(texts), "$", "binary").to_pylist() == [b"hello", b"hello"]


@pytest.mark.spec("V-062")
def test_where_a_path_leads_nowhere_is_null() -> None:
    rows: list[Row] = [Variant.from_python(v) for v in (1, "a", {"a": {"b": 1}}, {"a": [5]}, {"a": None}, [], {})]
    assert extract(to_column(rows), "$.a.b", "int").to_pylist() == [None, None, 1, None, None, None, None]
    assert extract(to_column(rows), "$.a[0]", "int").to_pylist() == [None, None, None, 5, None, None, None]
    assert extract(to_column(rows), "$.a[1]", "int").null_count == 7
    found = extract(to_column(rows), "$.a").to_pylist()
    assert [None if one is None else one["value"] for one in found][4] == b"\x00"
    assert found[0] is None


def test_names_differ_by_case_and_hold_any_character() -> None:
    value = {"a": 1, "A": 2, "a.b": 3, "": 4, "😀": 5, "it's": 6}
    data = to_column([Variant.from_python(value)])
    for name, want in value.items():
        assert extract(data, (name,), "int").to_pylist() == [want]
    assert extract(data, "$['a.b']", "int").to_pylist() == [3]


def test_arrow_types_are_given_as_asked() -> None:
    data = to_column([Variant.from_python({"a": 1, "s": "x"}), None])
    assert extract(data, "$.a", pa.int16()).type == pa.int16()
    assert extract(data, "$.s", pa.large_string()).type == pa.large_string()
    assert extract(data, "$.a", pa.timestamp("ms", "UTC")).type == pa.timestamp("ms", "UTC")
    assert isinstance(extract(pa.chunked_array([data, data]), "$.a", "int"), pa.ChunkedArray)
    assert extract(pa.chunked_array([], data.type), "$.a", "int").type == pa.int32()
    assert extract(data.slice(0, 0), "$.a", "string").type == pa.string()


def test_wrong_arguments_are_refused() -> None:
    data = to_column([Variant.from_python(1)])
    with pytest.raises(ExpressionError):
        extract(data, "a")
    with pytest.raises(UnsupportedTypeError):
        extract(data, "$", "map<int,int>")
    with pytest.raises(InvalidArgumentError, match="list"):
        extract([1, 2], "$")


@pytest.mark.parametrize("edges", [(0, 2, 1, 1), (0, 3, 1, 2)])
def test_invalid_arrow_arrays_are_refused(edges: tuple[int, ...]) -> None:
    offsets = np.array(edges, np.int32)
    value = pa.Array.from_buffers(pa.binary(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(bytes(3))])
    kind = pa.struct([("metadata", pa.binary()), ("value", pa.binary())])
    data = pa.Array.from_buffers(kind, 3, [None], children=[pa.array([b"\x11\x00\x00"] * 3), value])
    with pytest.raises(InvalidArgumentError, match="offsets"):
        extract(data, "$.a", "int")


@pytest.mark.spec("V-003")
def test_other_structs_are_refused_by_name() -> None:
    text = pa.StructArray.from_arrays([pa.array(["a"]), pa.array([b"\x00"])], ["metadata", "value"])
    with pytest.raises(SchemaMismatchError, match="`metadata`"):
        extract(text, "$")
    with pytest.raises(SchemaMismatchError, match="`value`"):
        extract(pa.StructArray.from_arrays([pa.array([b"\x11\x00\x00"])], ["metadata"]), "$")
    kinds = [pa.array([b"\x11\x00\x00"]), pa.array([None], pa.binary()), pa.array([1])]
    shredded = pa.StructArray.from_arrays(kinds, ["metadata", "value", "typed_value"])
    with pytest.raises(SchemaMismatchError, match="shredded"):
        column(shredded)
    assert extract(shredded, "$", "int").to_pylist() == [1]
    lacking = pa.StructArray.from_arrays(
        [pa.array([b"\x11\x00\x00", None], pa.binary()), pa.array([b"\x00", b"\x00"])], ["metadata", "value"]
    )
    with pytest.raises(MalformedVariant, match="metadata is null") as caught:
        extract(lacking, "$", "int")
    assert caught.value.row == 1


def wide(count: int, first: int = 0, order: Callable[[list[int]], list[int]] = sorted) -> Variant:
    """An object of `count` fields k000 ...; its ids in the given order, by an encoder of this test."""
    names = [f"k{i:04}" for i in range(first, first + count)]
    metadata = build_metadata(names)
    ids = order(list(range(count)))
    values = [struct.pack("<Bi", 5 << 2, first + i) for i in ids]
    head = bytes([(1 << 4 | 1 << 2 | 2) << 2 | 2]) + struct.pack("<I", count)
    offsets = b"".join((5 * i).to_bytes(3, "little") for i in range(count + 1))
    return Variant(metadata, head + b"".join(struct.pack("<H", i) for i in ids) + offsets + b"".join(values))


@pytest.mark.spec("V-034", "V-037", "V-088")
@pytest.mark.parametrize("order", [sorted, lambda ids: ids[::-1], lambda ids: random.Random(3).sample(ids, len(ids))])
def test_wide_objects_in_any_order(order: Callable[[list[int]], list[int]]) -> None:
    rows: list[Row] = [wide(300, order=order), None] * 40 + [wide(40 + i, i, order) for i in range(60)]
    data = to_column(rows)
    for k in (0, 1, 39, 41, 254, 255, 256, 299, 300):
        name = f"k{k:04}"
        want = [None if row is None or (v := row.get((name,))) is None else v.scalar for row in rows]
        assert extract(data, (name,), "int").to_pylist() == want
        assert k == 300 or k in want


@pytest.mark.spec("V-088")
@pytest.mark.parametrize("long", [0, 3000])
def test_windows_of_ascii_and_of_other_text(long: int) -> None:
    """Text in all of a window, or in some row, and values close together or far apart."""
    texts = [f"{'é' if 8000 < i < 9000 else 'e'}{i}" for i in range(25_000)]
    rows = [{"t": text, "x": "y" * (long if i % 2 else 0)} for i, text in enumerate(texts)]
    data = to_column([Variant.from_python(row) for row in rows])
    order = np.random.default_rng(1).permutation(len(texts))
    for at in (np.arange(len(texts)), order, np.repeat(order[:50], 400)):
        found = extract(data.take(pa.array(at)), "$.t", "string")
        found.validate(full=True)
        assert found.to_pylist() == [texts[i] for i in at]


@pytest.mark.spec("V-088")
def test_metadata_all_distinct() -> None:
    rows: list[Row] = [Variant.from_python({f"own{i}": 1, "id": i, "s": {"t": str(i)}}) for i in range(3000)]
    data = to_column(rows)
    assert not column(data).meta.distinct
    assert extract(data, "$.id", "int").to_pylist() == list(range(3000))
    assert extract(data, "$.s.t", "string").to_pylist() == [str(i) for i in range(3000)]
    assert extract(data, "$.own17", "int").to_pylist() == [1 if i == 17 else None for i in range(3000)]


@pytest.mark.spec("V-034")
def test_objects_as_duckdb_writes_them() -> None:
    """Fields in the order of the struct, not of their names."""
    names = [f"f{i:02}" for i in range(40)][::-1]
    pairs = ", ".join(f"'{name}': {i} + r" for i, name in enumerate(names))
    table = duckdb.sql(f"select {{{pairs}}}::variant as v from range(100) t(r)").to_arrow_table()
    data = table["v"]
    for i, name in enumerate(names):
        assert extract(data, f"$.{name}", "bigint").to_pylist() == [i + r for r in range(100)]


def test_duckdb_extracts_the_same() -> None:
    rng = random.Random(7)
    rows: list[Row] = [
        Variant.from_python({"id": i, "n": {"s": "x" * rng.randrange(80), "f": i / 4}, "b": rng.random() < 0.5})
        for i in range(500)
    ]
    data = to_column(rows)
    field = pa.field("v", data.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    kinds = [pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)]
    data = pa.StructArray.from_arrays([data.field(0), data.field(1)], fields=kinds)
    events = pa.table([data], pa.schema([field.with_type(data.type)]))
    for path, ours, theirs in (
        ("id", "bigint", "bigint"), ("n.s", "string", "varchar"),
        ("n.f", "double", "double"), ("b", "boolean", "boolean"),
    ):  # fmt: skip
        want = duckdb.sql(f"select v.{path}::{theirs} as x from events").to_arrow_table()["x"]
        assert want.to_pylist() == extract(events["v"], f"$.{path}", ours).to_pylist()


def bad_rows() -> tuple[pa.StructArray, int]:
    """A million rows of one value, and the place of a wrong one."""
    good = Variant.from_python({"a": 1, "b": "text"})
    count, wrong = 1_000_000, 777_777
    size = len(good.value)
    values = np.tile(np.frombuffer(good.value, np.uint8), count)
    values[wrong * size + 1] = 200
    offsets = np.arange(count + 1, dtype=np.int32) * size
    value = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(values)])
    codes = pa.array(np.zeros(count, np.int32))
    metadata = pa.DictionaryArray.from_arrays(codes, pa.array([good.metadata]))
    return pa.StructArray.from_arrays([metadata, value], ["metadata", "value"]), wrong


@pytest.mark.spec("V-087")
def test_one_bad_row_in_a_million() -> None:
    data, wrong = bad_rows()
    with pytest.raises(MalformedVariant) as caught:
        extract(data, "$.a", "int")
    assert (caught.value.row, caught.value.offset) == (wrong, 0)
    parts = pa.chunked_array([data.slice(0, 500_000), data.slice(500_000)])
    with pytest.raises(MalformedVariant) as caught:
        extract(parts, "$.b", "string")
    assert caught.value.row == wrong
    for source in (data, parts):
        lenient = Lenient()
        found = flat(extract(source, "$.a", "int", lenient=lenient))
        assert (lenient.count, lenient.rows) == (1, [wrong])
        assert found.null_count == 1 and found[wrong].as_py() is None
        assert found.fill_null(1).unique().to_pylist() == [1]


@pytest.mark.spec("V-011")
@pytest.mark.parametrize("version", [0, 2, 15])
def test_rows_of_another_version(version: int) -> None:
    good, other = Variant.from_python({"a": 1}), Variant.from_python({"a": 2})
    metadata = bytes([other.metadata[0] & 0xF0 | version]) + other.metadata[1:]
    data = pa.StructArray.from_arrays(
        [pa.array([good.metadata, metadata, good.metadata]), pa.array([good.value, other.value, good.value])],
        ["metadata", "value"],
    )
    with pytest.raises(MalformedVariant, match=f"version {version}") as caught:
        extract(data, "$.a", "int")
    assert caught.value.row == 1
    lenient = Lenient()
    assert extract(data, "$.a", "int", lenient=lenient).to_pylist() == [1, None, 1]
    assert lenient.rows == [1]


@pytest.mark.spec("V-014")
def test_bytes_after_dictionary_and_value_are_left_alone() -> None:
    one = Variant.from_python({"a": "x"})
    data = pa.StructArray.from_arrays(
        [pa.array([one.metadata + b"zz"]), pa.array([one.value + b"\xff\xff"])], ["metadata", "value"]
    )
    assert extract(data, "$.a", "string").to_pylist() == ["x"]
    assert extract(data, "$").to_pylist() == [{"metadata": one.metadata + b"zz", "value": one.value}]


@pytest.mark.spec("V-054")
def test_types_of_later_versions_leave_their_siblings_readable() -> None:
    builder = VariantBuilder()
    builder.begin_object()
    for name in ("a", "b"):
        builder.key(name)
        builder.append(1)
    builder.end()
    value = builder.finish()
    metadata, raw = value.metadata, bytearray(value.value)
    raw[-2] = 33 << 2
    data = pa.StructArray.from_arrays(
        [pa.array([metadata] * 2), pa.array([bytes(raw), value.value])], ["metadata", "value"]
    )
    assert extract(data, "$.a", "int").to_pylist() == [1, 1]
    for type in ("int", "variant"):
        with pytest.raises(UnsupportedFeatureError, match="33"):
            extract(data, "$.b", type)
    lenient = Lenient()
    assert extract(data, "$.b", "int", lenient=lenient).to_pylist() == [None, 1]
    assert lenient.count == 1
    assert extract(data, "$.a", "variant")[0].as_py()["value"] == value.value[-4:-2]


@pytest.mark.slow
@pytest.mark.spec("V-088")
def test_three_gibibytes_of_values() -> None:
    """Offsets beyond 2 GiB: in the column, and in what is extracted."""
    text = "x" * (1 << 20)
    one = Variant.from_python({"a": 7, "t": text})
    count = 3 * 1024
    size = len(one.value)
    values = np.tile(np.frombuffer(one.value, np.uint8), count)
    offsets = np.arange(count + 1, dtype=np.int64) * size
    value = pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(values)])
    metadata = pa.array([one.metadata] * count)
    data = pa.StructArray.from_arrays([metadata, value], ["metadata", "value"])
    assert extract(data, "$.a", "int").unique().to_pylist() == [7]
    found = extract(data, "$.t", "string")
    assert isinstance(found, pa.ChunkedArray) and len(found) == count
    assert found[count - 1].as_py() == text
    assert {len(chunk) * len(text) < 2**31 for chunk in found.chunks} == {True}
    half = values[: size * count // 2]
    edges = pa.py_buffer((np.arange(count // 2 + 1) * size).astype(np.int32))
    small = pa.Array.from_buffers(pa.binary(), count // 2, [None, edges, pa.py_buffer(half)])
    part = pa.StructArray.from_arrays([metadata.slice(0, count // 2), small], ["metadata", "value"])
    joined = column(pa.chunked_array([part, part]))
    assert len(joined.data) > 3 << 30
    assert extract(joined, "$.a", "int").unique().to_pylist() == [7]

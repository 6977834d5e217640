"""Nested Arrow arrays as columns of variants: against what each value is by itself, and under foreign eyes."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boathouse.arrow.schema import MARK
from boathouse.errors import InvalidArgumentError, MalformedVariant, UnsupportedTypeError
from boathouse.variant import Variant, VariantBuilder, build_metadata
from boathouse.variant.columns.from_arrow import from_arrow
from makers.arrows import LEAVES, Leaf, Sample, samples, tree, values
from makers.arrows import array as array_of
from makers.variants import Tree, columns, to_column, tree_of

QUICK = settings(max_examples=80, suppress_health_check=list(HealthCheck))
NARROW = (("int8", 7), ("int16", 15), ("int32", 31), ("int64", 63))


def rows_of(column: pa.Array | pa.ChunkedArray) -> list[Variant | None]:
    """Each row by the one-value code, found to be canonical: no findings, and no other bytes for what it holds."""
    found: list[Variant | None] = []
    for row in column:
        if not row.is_valid:
            found.append(None)
            continue
        metadata, value = row["metadata"].as_py(), row["value"].as_py()
        variant = Variant(metadata, value)
        assert variant.validate() == ()
        assert VariantBuilder(metadata).append_variant(variant).finish().value == value
        assert metadata == build_metadata(variant.dictionary.names())
        found.append(variant)
    return found


def python_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    return [None if row is None else row.to_python() for row in rows_of(column)]


def narrowed(one: Tree) -> Tree:
    if one.type in dict(NARROW):
        return Tree(next(name for name, bits in NARROW if -(1 << bits) <= one.content < 1 << bits), one.content)
    if one.type == "array":
        return Tree("array", tuple(map(narrowed, one.content)))
    if one.type == "object":
        return Tree("object", tuple((name, narrowed(child)) for name, child in one.content))
    return one


def nested(values: pa.Array, name: str = "v", **marks: bytes) -> pa.StructArray:
    field = pa.field(name, values.type, metadata=marks or None)
    return pa.StructArray.from_arrays(
        [values, pa.array(range(len(values)), pa.int16())], fields=[field, pa.field("n", pa.int16())]
    )


@pytest.mark.spec("V-019", "V-045", "V-046", "V-047", "V-049", "V-050", "V-051", "V-053")
@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: str(leaf.type))
@given(data=st.data())
@settings(max_examples=15)
def test_each_leaf_type_keeps_its_exact_type_and_bytes(leaf: Leaf, data: st.DataObject) -> None:
    rows = data.draw(st.lists(values(leaf), max_size=6))
    column = from_arrow(pa.array(rows, leaf.type))
    assert [row and tree_of(row) for row in rows_of(column)] == [None if v is None else leaf.tree(v) for v in rows]


@given(sample=samples(), omit=st.booleans(), narrow=st.booleans())
@QUICK
def test_any_nested_array_agrees_with_the_one_value_code(sample: Sample, omit: bool, narrow: bool) -> None:
    column = from_arrow(sample.array, nulls="omit" if omit else "null", narrow=narrow)
    expected = [None if row is None else tree(sample.shape, row, omit=omit) for row in sample.rows]
    if narrow:
        expected = [row and narrowed(row) for row in expected]
    assert [row and tree_of(row) for row in rows_of(column)] == expected
    assert not any(child.nullable for child in column.type)


@given(sample=samples(max_rows=40), omit=st.booleans(), seed=st.integers(0, 1 << 32))
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_many_rows_take_the_paths_of_few_values(sample: Sample, omit: bool, seed: int) -> None:
    array = array_of(sample.shape, sample.rows * 3 + [None] * 7 * len(sample.rows), Random(seed))
    mode = "omit" if omit else "null"
    expected = [None if row is None else tree(sample.shape, row, omit=omit) for row in sample.rows * 3]
    column = from_arrow(nested(array), nulls=mode)
    got = [dict(tree_of(row).content) for row in rows_of(column)]
    empty = {} if omit else {"v": Tree("null", None)}
    assert [{"v": one["v"]} if "v" in one else {} for one in got] == [
        empty if row is None else {"v": row} for row in [*expected, *[None] * 7 * len(sample.rows)]
    ]


def test_values_agree_with_from_python() -> None:
    rows = [{"a": True, "b": "x", "c": [1.5, None], "d": dt.date(1950, 2, 3), "e": {"f": Decimal("1.10")}, "g": b"\0"}]
    assert rows_of(from_arrow(pa.array(rows))) == [Variant.from_python(row) for row in rows]


def test_null_fields_are_variant_nulls_unless_left_out() -> None:
    array = pa.array([{"a": None, "b": {"c": None}}, {"a": 1, "b": None}, None])
    assert python_of(from_arrow(array)) == [{"a": None, "b": {"c": None}}, {"a": 1, "b": None}, None]
    assert python_of(from_arrow(array, nulls="omit")) == [{"b": {}}, {"a": 1}, None]
    with pytest.raises(InvalidArgumentError, match="'keep'"):
        from_arrow(array, nulls="keep")  # type: ignore[arg-type]


def test_null_rows_stay_null_and_hold_a_well_formed_null() -> None:
    column = from_arrow(pa.array([None, 5], pa.int8()))
    assert column.is_null().to_pylist() == [True, False]
    assert column.field("value").to_pylist() == [b"\0", b"\x0c\5"]
    assert column.field("metadata").to_pylist() == [b"\x11\0\0"] * 2
    assert from_arrow(pa.nulls(3)).null_count == 3
    assert python_of(from_arrow(pa.array([{"a": None}], pa.struct([("a", pa.null())])))) == [{"a": None}]


@pytest.mark.spec("V-019", "V-020")
def test_names_are_sorted_by_utf8_bytes_not_by_utf16() -> None:
    names = ["\U0001f600", "\uff5e", "b", "B", "", "é", "a.b"]
    column = from_arrow(pa.StructArray.from_arrays([pa.array([i]) for i in range(len(names))], names))
    (row,) = rows_of(column)
    assert row is not None
    assert row.dictionary.names() == ("", "B", "a.b", "b", "é", "\uff5e", "\U0001f600")
    assert list(row.keys()) == list(row.dictionary.names())
    assert row.to_python() == {name: i for i, name in enumerate(names)}


@pytest.mark.spec("V-019")
@pytest.mark.parametrize(("fields", "length", "size"), [(3, 5, 1), (100, 3, 2), (256, 1, 2), (500, 140, 3)])
def test_metadata_has_the_smallest_sizes(fields: int, length: int, size: int) -> None:
    names = [f"{i:0{max(length, 3)}}" for i in range(fields)]
    column = from_arrow(pa.StructArray.from_arrays([pa.array([None])] * fields, names), nulls="omit")
    metadata = column[0]["metadata"].as_py()
    assert metadata[0] == 0x11 | (size - 1) << 6
    assert metadata == build_metadata(names)


@pytest.mark.few(1)
@pytest.mark.spec("V-031")
@pytest.mark.parametrize("count", [0, 1, 255, 256, 65_536])
def test_objects_are_large_exactly_when_needed(count: int) -> None:
    offsets = pa.array([0, count, count], pa.int32())
    keys = pa.array([f"k{i:06}" for i in range(count)], pa.string())
    map_column = pa.MapArray.from_arrays(offsets, keys, pa.array(range(count), pa.int32()))
    one, none = rows_of(from_arrow(map_column))
    assert one is not None and none is not None
    assert bool(one.value[0] >> 6 & 1) == (count > 255)
    assert int.from_bytes(one.value[1 : 5 if count > 255 else 2], "little") == count == len(one)
    assert none.value == b"\2\0\0"
    if count <= 256:
        wide = pa.StructArray.from_arrays([pa.array([1])] * count, keys.to_pylist()) if count else pa.array([{}])
        (row,) = rows_of(from_arrow(wide))
        assert row is not None
        assert bool(row.value[0] >> 6 & 1) == (count > 255)
        assert len(row) == count


@pytest.mark.spec("V-040")
@pytest.mark.parametrize("count", [0, 1, 255, 256, 70_000])
def test_arrays_are_large_exactly_when_needed(count: int) -> None:
    (row,) = rows_of(from_arrow(pa.array([list(range(count))], pa.list_(pa.int32()))))
    assert row is not None
    assert bool(row.value[0] >> 4 & 1) == (count > 255)
    assert row.to_python() == list(range(count))


@pytest.mark.parametrize("length", [10, 250, 300, 65_600, 17_000_000])
def test_offsets_are_as_wide_as_each_row_needs(length: int) -> None:
    array = pa.array([{"a": "x", "b": 1}, {"a": "y" * length, "b": 2}, {"a": "z", "b": 3}])
    column = from_arrow(array)
    assert [row["value"].as_py()[0] >> 2 & 3 for row in column] == [
        0,
        (length > 240) + (length > 65535) + (length > 2**24),
        0,
    ]
    assert [row and row["b"].scalar for row in map(_quick, column)] == [1, 2, 3]


def _quick(row: Any) -> Variant:
    return Variant(row["metadata"].as_py(), row["value"].as_py())


@pytest.mark.spec("V-045", "V-049")
def test_unsigned_integers_beyond_int64_become_decimal16() -> None:
    array = pa.array([0, 2**63 - 1, 2**63, 2**64 - 1, None], pa.uint64())
    assert [row and row.type for row in rows_of(from_arrow(array))] == [
        "int64",
        "int64",
        "decimal16",
        "decimal16",
        None,
    ]
    assert python_of(from_arrow(array, narrow=True)) == [0, 2**63 - 1, 2**63, 2**64 - 1, None]
    assert rows_of(from_arrow(array, narrow=True))[0].type == "int8"  # type: ignore[union-attr]


@pytest.mark.spec("V-049")
@pytest.mark.parametrize(
    ("type", "name"),
    [
        (pa.decimal128(9, 2), "decimal4"), (pa.decimal128(10, 2), "decimal8"), (pa.decimal64(18, 2), "decimal8"),
        (pa.decimal128(19, 2), "decimal16"), (pa.decimal256(38, 2), "decimal16"), (pa.decimal32(9, 2), "decimal4"),
        (pa.decimal128(5, -2), "decimal4"), (pa.decimal128(5, 10), "decimal8"),
    ],
)  # fmt: skip
def test_the_precision_of_the_column_picks_the_decimal(type: pa.DataType, name: str) -> None:
    given = Decimal((1, (1, 2, 3), -type.scale))
    (row,) = rows_of(from_arrow(pa.array([given], type)))
    assert row is not None
    assert row.type == name
    assert row.to_python() == given


@pytest.mark.spec("V-049")
@pytest.mark.parametrize(
    "type",
    [
        pa.decimal256(39, 2), pa.decimal256(38, -1), pa.duration("s"), pa.month_day_nano_interval(),
        pa.map_(pa.int32(), pa.int32()), pa.map_(pa.binary(), pa.int32()), pa.dense_union([pa.field("x", pa.int8())]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("inside", [False, True])
def test_types_that_no_variant_has_are_refused_by_name(type: pa.DataType, inside: bool) -> None:
    array = pa.array([], type) if not pa.types.is_union(type) else pa.nulls(1, type)
    array = (
        pa.StructArray.from_arrays([pa.ListArray.from_arrays(pa.array([0, 0], pa.int32()), array)], ["f"])
        if inside
        else array
    )
    with pytest.raises(UnsupportedTypeError) as error:
        from_arrow(array)
    assert error.value.where == ("f[]" if inside else None)


def _raw(type: pa.DataType, *buffers: bytes, rows: int = 2) -> pa.Array:
    return pa.Array.from_buffers(type, rows, [None, *map(pa.py_buffer, buffers)])


@pytest.mark.spec("V-048", "V-051")
@pytest.mark.parametrize(
    "array",
    [
        pa.array([0, 1], pa.time64("ns")),
        _raw(pa.time64("us"), np.array([0, 86_400_000_000]).tobytes()),
        _raw(pa.time64("us"), np.array([0, -1]).tobytes()),
        _raw(pa.time32("s"), np.array([0, 86_400], "i4").tobytes()),
        pa.array([0, 2**62], pa.timestamp("s")),
        pa.array([0, -(2**62)], pa.timestamp("ms")),
        _raw(pa.decimal128(9, 0), np.array([10**9, 0, 1, 0]).tobytes()),
        _raw(pa.decimal128(38, 0), (10**38).to_bytes(16, "little") * 2),
        _raw(pa.string(), np.array([0, 1, 2], "i4").tobytes(), b"a\xff"),
        _raw(pa.string(), np.array([0, 9, 2], "i4").tobytes(), b"ab"),
        pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]),
        pa.array([[("a", 1), ("b", 2), ("a", 3)]], pa.map_(pa.string(), pa.int8())),
    ],
)
def test_values_that_no_variant_holds_are_refused(array: pa.Array) -> None:
    with pytest.raises(InvalidArgumentError):
        from_arrow(array)


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed", "map", "struct"])
def test_rows_are_picked_from_layouts_that_arrow_cannot_pick_from(kind: str) -> None:
    views = pa.array(["a", "b" * 20, None, "d", "e", "f"], pa.string_view())
    layouts = {
        "list": lambda: pa.ListArray.from_arrays(pa.array([0, 1, 3, 6], pa.int32()), views),
        "large_list": lambda: pa.LargeListArray.from_arrays(pa.array([0, 1, 3, 6], pa.int64()), views),
        "fixed": lambda: pa.FixedSizeListArray.from_arrays(views, 2),
        "map": lambda: pa.MapArray.from_arrays([0, 1, 3, 6], pa.array(list("abcdef")), views),
        "struct": lambda: pa.StructArray.from_arrays([views.slice(0, 3)], ["s"]),
    }
    whole = layouts[kind]()
    picked = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 2, 0], pa.int8()), whole)
    rows = [dict(row) if kind == "map" else row for row in whole.to_pylist()]
    assert python_of(from_arrow(picked)) == [rows[2], None, rows[1], rows[2], rows[0]]
    none = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), whole.slice(0, 0))
    assert python_of(from_arrow(none)) == [None, None]


def test_what_lies_below_a_null_is_not_looked_at() -> None:
    times = pa.array([1, 1_000, None], pa.time64("ns"), mask=np.array([True, False, True]))
    assert python_of(from_arrow(times)) == [None, dt.time(0, 0, 0, 1), None]
    twice = pa.array([[("a", 1), ("a", 3)], [("a", 1)]], pa.map_(pa.string(), pa.int8()))
    masked = pa.MapArray.from_arrays(twice.offsets, twice.keys, twice.items, mask=pa.array([True, False]))
    assert python_of(from_arrow(masked)) == [None, {"a": 1}]


def test_maps_of_many_keys_get_a_dictionary_for_each_row() -> None:
    rows = [[(f"key-{i:05}-{j}", i) for j in (1, 0)] for i in range(500)]
    array = pa.StructArray.from_arrays(
        [pa.array(rows, pa.map_(pa.string(), pa.int16())), pa.array([f"s{i}" for i in range(500)])], ["zz", "m"]
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 500], pa.int32()), array)
    for column, expected in ((from_arrow(array), array), (from_arrow(lists), lists)):
        found = rows_of(column)
        assert [row and row.to_python() for row in found] == _with_dicts(expected.to_pylist())
    metadata = from_arrow(array).field("metadata").to_pylist()
    assert len(set(metadata)) == 500
    assert max(map(len, metadata)) < 60


def _with_dicts(rows: Any) -> Any:
    if isinstance(rows, dict):
        return {name: dict(value) if name == "zz" else value for name, value in rows.items()}
    return [_with_dicts(row) for row in rows]


@given(rows=columns(max_rows=6), omit=st.booleans())
@QUICK
def test_variants_inside_keep_their_exact_types(rows: list[Variant | None], omit: bool) -> None:
    variants = to_column(rows)
    array = nested(pa.concat_arrays([variants, variants]).slice(1), **{MARK.decode(): b"variant"})
    expected = (rows + rows)[1:]
    found = [tree_of(row) for row in map(_quick, from_arrow(array, nulls="omit" if omit else "null"))]
    for i, (one, row) in enumerate(zip(found, expected, strict=True)):
        fields = dict(one.content)
        assert fields.pop("n") == Tree("int16", i)
        assert fields == ({} if row is None and omit else {"v": Tree("null", None) if row is None else tree_of(row)})


def test_variants_are_known_by_any_of_their_marks() -> None:
    variants = from_arrow(pa.array([{"q": 1}, None]))
    spark = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})])
    for marked in (
        nested(variants, **{"ARROW:extension:name": b"arrow.parquet.variant"}),
        nested(variants, **{MARK.decode(): b"variant"}),
        nested(
            pa.StructArray.from_arrays(
                [variants.field("value"), variants.field("metadata")], fields=list(spark), mask=variants.is_null()
            )
        ),
    ):
        assert python_of(from_arrow(marked)) == [{"v": {"q": 1}, "n": 0}, {"v": None, "n": 1}]
    plain = python_of(from_arrow(nested(variants)))
    assert plain[0] == {"v": {"metadata": b"\x11\1\0\1q", "value": b"\2\1\0\0\x09\x18" + b"\1" + bytes(7)}, "n": 0}


def test_a_malformed_variant_inside_is_refused_with_its_row() -> None:
    bad = to_column([Variant.from_python(1), None])
    bad = pa.StructArray.from_arrays(
        [pa.array([b"\x11\0\0"] * 3), pa.array([b"\0", b"\2\1\0\0\1\0", b"\0"])], ["metadata", "value"]
    )
    with pytest.raises(MalformedVariant) as error:
        from_arrow(nested(bad, **{MARK.decode(): b"variant"}))
    assert error.value.row == 1


def test_chunks_tables_and_what_exports_itself() -> None:
    chunked = pa.chunked_array([pa.array([1]), pa.array([], pa.int64()), pa.array([None, 3])])
    column = from_arrow(chunked)
    assert isinstance(column, pa.ChunkedArray)
    assert python_of(column) == [1, None, 3]
    assert from_arrow(pa.chunked_array([], pa.int8())).type == column.type
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    assert python_of(from_arrow(table)) == table.to_pylist()
    assert python_of(from_arrow(table.to_batches()[0])) == table.to_pylist()

    class Exported:
        def __init__(self, array: pa.Array) -> None:
            self.array = array

        def __arrow_c_array__(self, schema: Any = None) -> Any:
            return self.array.__arrow_c_array__(schema)

    assert python_of(from_arrow(Exported(pa.array([1, None])))) == [1, None]
    with pytest.raises(InvalidArgumentError, match="list"):
        from_arrow([1, 2])


def test_a_deep_type_is_refused_without_recursion() -> None:
    array = pa.array([1])
    for _ in range(300):
        array = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), array)
    variant = _quick(from_arrow(array)[0])
    for _ in range(300):
        variant = variant[0]
    assert variant.to_python() == 1
    for _ in range(701):
        array = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), array)
    with pytest.raises(InvalidArgumentError, match="1,000"):
        from_arrow(array)


FOREIGN = pa.array(
    [
        {"id": 1, "name": "x" * 80, "score": 1.5, "tags": ["a", None], "inner": {"z": True, "a": None},
         "d": Decimal("1.10")},
        {"id": -(2**40), "name": "é\U0001f600", "score": -0.25, "tags": [], "inner": None, "d": None},
        {"id": None, "name": None, "score": None, "tags": None, "inner": {"z": False, "a": "q"},
         "d": Decimal("-3.00")},
        None,
    ],
    pa.struct(
        [
            ("id", pa.int64()), ("name", pa.string()), ("score", pa.float64()), ("tags", pa.list_(pa.string())),
            ("inner", pa.struct([("z", pa.bool_()), ("a", pa.string())])), ("d", pa.decimal128(9, 2)),
        ]
    ),
)  # fmt: skip


def _plain(row: Any) -> Any:
    return json.loads(json.dumps(row, default=float))


def test_duckdb_reads_the_column() -> None:
    duckdb = pytest.importorskip("duckdb")
    column = from_arrow(FOREIGN)
    mark = {"ARROW:extension:name": "arrow.parquet.variant"}
    ours = pa.table([column], pa.schema([pa.field("v", column.type, metadata=mark)]))
    assert ours.num_rows == 4
    found = duckdb.sql(
        "select v::json::varchar as j, v.inner.z::bool as z, variant_typeof(v) as t from ours"
    ).fetchall()
    assert [None if row[0] is None else _plain(json.loads(row[0])) for row in found] == _plain(FOREIGN.to_pylist())
    assert [row[1] for row in found] == [True, None, False, None]


def test_pyspark_reads_the_column() -> None:
    variant_utils = pytest.importorskip("pyspark.sql.variant_utils").VariantUtils
    column = from_arrow(FOREIGN.slice(0, 3))
    read = [variant_utils.to_python(row["value"].as_py(), row["metadata"].as_py()) for row in column]
    assert read == FOREIGN.slice(0, 3).to_pylist()
    assert pc.all(pc.is_valid(column)).as_py()

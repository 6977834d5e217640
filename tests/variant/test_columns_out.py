"""Columns as Python values and as JSON text: row by row what the one-value path says, whatever the layout."""

from __future__ import annotations

import json
import struct
import warnings
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boathouse as bh
from boathouse.errors import EvaluationError, InvalidArgumentError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant import Variant, VariantBuilder, build_metadata
from boathouse.variant.columns import reading
from boathouse.variant.columns.decode import to_pylist
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.to_json import to_json
from makers import variants as made


def column(rows):
    """Of (metadata, value) pairs, None for null."""
    children = [pa.array([None if row is None else row[i] for row in rows], pa.binary()) for i in (0, 1)]
    return pa.StructArray.from_arrays(
        children, ["metadata", "value"], mask=pa.array([row is None for row in rows], pa.bool_())
    )


def pairs(values):
    return [None if value is None else (value.metadata, value.value) for value in values]


def text(row):
    return None if row is None else Variant(*row).to_json(special="string")


def python(row):
    return Variant(*row).to_python()


def outcome(function):
    """The result as text that tells types and NaN, or the kind of error."""
    try:
        return repr(function())
    except (MalformedVariant, UnsupportedFeatureError, EvaluationError) as problem:
        return type(problem)


def layouts(array):
    """The same rows in other Arrow layouts."""
    metadata, value = array.field("metadata"), array.field("value")
    mask = array.is_null()

    def struct_of(metadata, value, names=("metadata", "value")):
        return pa.StructArray.from_arrays([metadata, value], list(names), mask=mask)

    nothing = array.slice(0, 0)
    yield array
    yield pa.concat_arrays([array, array]).slice(len(array))
    yield pa.chunked_array([array.slice(0, 1), nothing, array.slice(1)], array.type)
    yield struct_of(value, metadata, ("value", "metadata"))
    yield struct_of(metadata.cast(pa.large_binary()), value.cast(pa.large_binary()))
    yield struct_of(metadata.cast(pa.binary_view()), value.cast(pa.binary_view()))
    yield struct_of(metadata.dictionary_encode(), value)
    yield pa.DictionaryArray.from_arrays(
        pa.array([None if null else i for i, null in enumerate(mask.to_pylist())], pa.int32()), array
    )


rows_of = st.lists(st.one_of(st.none(), made.variants(6), made.loose_variants(6)), max_size=6)


@pytest.mark.spec("V-088")
@given(rows_of)
@settings(max_examples=60)
def test_every_layout_gives_what_each_value_gives_by_itself(values):
    rows = pairs(values)
    readable = [row for row in rows if row is None or outcome(partial(python, row)) is not EvaluationError]
    expected = [None if row is None else python(row) for row in readable]
    for array in layouts(column(readable)):
        assert repr(to_pylist(array)) == repr(expected)
    texts = [text(row) for row in rows]
    for array in layouts(column(rows)):
        found = to_json(array, special="string")
        found.validate(full=True)
        assert found.to_pylist() == texts


@given(rows_of)
@settings(max_examples=30)
def test_batches_make_no_difference(values):
    array = column(pairs(values))
    whole = to_json(array, special="string")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_BYTES", 16)
        assert to_json(array, special="string").equals(whole)


@pytest.mark.spec("V-086", "V-087")
@pytest.mark.parametrize("seed", range(4))
def test_malformed_rows_are_those_that_the_one_value_path_refuses(seed):
    random = Random(seed)
    sound = [pair for pair in pairs(_some_values(random)) if outcome(partial(python, pair)) is not EvaluationError]
    for _ in range(12):
        rows = []
        for _ in range(40):
            metadata, value = random.choice(sound)
            which = random.random()
            value = made.mutate(value, random) if which < 0.5 else value
            metadata = made.mutate(metadata, random) if which > 0.8 else metadata
            if outcome(partial(python, (metadata, value))) is not EvaluationError:
                rows.append((metadata, value))
        _check(rows, to_pylist, python)
        _check(rows, _texts, text)


def _texts(array, lenient=None):
    return to_json(array, special="string", lenient=lenient).to_pylist()


def _check(rows, kernel, one):
    expected = [outcome(partial(one, row)) for row in rows]
    wrong = [i for i, found in enumerate(expected) if isinstance(found, type)]
    lenient = Lenient()
    found = kernel(column(rows), lenient=lenient)
    assert sorted(lenient.rows) == wrong and lenient.count == len(wrong)
    for i, value in enumerate(found):
        assert value is None if i in wrong else repr(value) == expected[i]
    if wrong:
        with pytest.raises((MalformedVariant, UnsupportedFeatureError)) as caught:
            kernel(column(rows))
        if isinstance(caught.value, MalformedVariant):
            assert caught.value.row in wrong
            with pytest.raises((MalformedVariant, UnsupportedFeatureError)):
                one(rows[caught.value.row])


def _some_values(random):
    """Values of all types and shapes, without hypothesis, which would look for the smallest first."""
    found = []
    for _ in range(60):
        builder = VariantBuilder()
        builder.append(_python(random, 3))
        found.append(builder.finish())
    return found


def _python(random, depth):
    kind = random.randrange(9 if depth else 7)
    if kind == 7:
        return [_python(random, depth - 1) for _ in range(random.randrange(5))]
    if kind == 8:
        return {random.choice("abcdefgh") + "é" * random.randrange(2): _python(random, depth - 1) for _ in range(4)}
    return (
        None, random.random() < 0.5, random.randint(-(2**40), 2**40), random.random(),
        random.choice(["", "é", "x" * 70]),
        Decimal(random.randint(-(10**20), 10**20)).scaleb(-random.randrange(10)), random.randbytes(5),
    )[kind]  # fmt: skip


@pytest.mark.spec("V-087")
def test_one_bad_row_of_a_long_column():
    good = Variant.from_python({"a": [1, "x"], "b": None})
    rows = [(good.metadata, good.value)] * 50_000
    rows[33_333] = (good.metadata, good.value[:-1])
    array = column(rows)
    for kernel in (to_pylist, to_json):
        with pytest.raises(MalformedVariant) as caught:
            kernel(array)
        assert caught.value.row == 33_333 and caught.value.offset is not None
        lenient = Lenient()
        found = kernel(array, lenient=lenient)
        found = found if isinstance(found, list) else found.to_pylist()
        assert (lenient.count, lenient.rows) == (1, [33_333])
        assert [i for i, value in enumerate(found) if value is None] == [33_333]
    chunked = pa.chunked_array([array.slice(0, 20_000), array.slice(20_000)])
    with pytest.raises(MalformedVariant) as caught:
        to_json(chunked)
    assert caught.value.row == 33_333


def nested(depth):
    """An array within arrays, `depth` of them."""
    value = b"\x03\x00\x00"
    for _ in range(depth - 1):
        width = 1 if len(value) < 256 else 2 if len(value) < 65_536 else 3
        value = bytes([(width - 1) << 2 | 3, 1]) + bytes(width) + len(value).to_bytes(width, "little") + value
    return (b"\x11\x00\x00", value)


def sharing(levels):
    """Each array holds the one below twice, at the same place."""
    value = b"\x0c\x01"
    for _ in range(levels):
        value = b"\x03\x02\x00\x00" + bytes([len(value)]) + value
    return (b"\x11\x00\x00", value)


@pytest.mark.spec("V-083")
def test_a_thousand_levels_and_no_more():
    deep, deeper, bomb = nested(1_000), nested(1_001), nested(50_000)
    assert to_json(column([deep]))[0].as_py() == "[" * 1_000 + "]" * 1_000
    assert to_pylist(column([deep])) is not None
    for wrong in (deeper, bomb):
        with pytest.raises(MalformedVariant, match="1,000 nested"):
            to_json(column([deep, wrong]))
        lenient = Lenient()
        assert to_json(column([wrong, deep]), lenient=lenient).null_count == 1
        assert lenient.rows == [0]


@pytest.mark.spec("V-084", "V-033")
def test_shared_children_are_read_and_expansion_without_end_is_not():
    assert to_pylist(column([sharing(2)])) == [[[1, 1], [1, 1]]]
    assert to_json(column([sharing(3)])).to_pylist() == ["[[[1,1],[1,1]],[[1,1],[1,1]]]"]
    for kernel in (to_pylist, to_json):
        with pytest.raises(MalformedVariant, match="shared"):
            kernel(column([sharing(2), sharing(24)]))
    lenient = Lenient()
    assert to_pylist(column([sharing(24), sharing(1)]), lenient=lenient) == [None, [1, 1]]


@pytest.mark.spec("V-085")
def test_counts_beyond_the_bytes_are_refused():
    for value in (b"\x13\xff\xff\xff\xff\x00", b"\x42\xff\xff\xff\xff\x00", b"\x40\xff\xff\xff\xff\x00"):
        with pytest.raises(MalformedVariant):
            to_pylist(column([(b"\x11\x00\x00", value)]))
    with pytest.raises(MalformedVariant):
        to_json(column([(b"\xd1\xff\xff\xff\xff\x00", b"\x00")]))


@pytest.mark.spec("V-054")
def test_unknown_types_are_named():
    value = b"\x03\x01\x00\x01" + bytes([30 << 2])
    with pytest.raises(UnsupportedFeatureError, match="30") as caught:
        to_pylist(column([None, (b"\x11\x00\x00", value)]))
    assert "row 1" in str(caught.value)
    lenient = Lenient()
    assert to_json(column([(b"\x11\x00\x00", value), None]), lenient=lenient).to_pylist() == [None, None]
    assert lenient.rows == [0]


@pytest.mark.spec("V-050")
def test_dates_beyond_pythons_years_are_told_with_their_row():
    builder = VariantBuilder()
    builder.append_date(3_000_000)
    far = builder.finish()
    array = column([None, (far.metadata, far.value)])
    with pytest.raises(EvaluationError, match="row 1"):
        to_pylist(array)
    assert to_json(array)[1].as_py() == far.to_json()


@pytest.mark.spec("V-046")
def test_json_of_nan():
    number = Variant.from_python([1.5, float("nan")])
    array = column([(number.metadata, number.value)])
    with pytest.raises(EvaluationError, match="row 0"):
        to_json(array)
    assert to_json(array, special="null").to_pylist() == ["[1.5,null]"]
    assert to_json(array, special="string").to_pylist() == ['[1.5,"NaN"]']
    with pytest.raises(InvalidArgumentError):
        to_json(array, special="nan")
    signalling = (b"\x11\x00\x00", bytes([14 << 2]) + struct.pack("<I", 0x7FA00000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert repr(to_pylist(column([signalling]))) == "[nan]"


@pytest.mark.spec("V-065")
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20), st.lists(st.floats(width=32), max_size=20)
)
@settings(max_examples=60)
def test_numbers_as_text(doubles, floats):
    values = [struct.pack("<Bd", 7 << 2, number) for number in [*doubles, 1e9, 1e-4, 0.1, 1e16, 123456789.5, -0.0]]
    values += [struct.pack("<Bf", 14 << 2, number) for number in floats]
    rows = [(b"\x11\x00\x00", value) for value in values]
    assert to_json(column(rows), special="string").to_pylist() == [text(row) for row in rows]


@pytest.mark.spec("V-065")
@given(st.lists(st.tuples(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(0, 38)), min_size=1, max_size=20))
@settings(max_examples=60)
def test_decimals_as_text(numbers):
    rows = []
    for unscaled, scale in numbers:
        rows.append((b"\x11\x00\x00", struct.pack("<BBq", 9 << 2, scale, unscaled)))
        rows.append((b"\x11\x00\x00", struct.pack("<BBi", 8 << 2, scale, unscaled % 10**9)))
    assert to_json(column(rows)).to_pylist() == [text(row) for row in rows]


@pytest.mark.spec("V-065")
@given(st.lists(st.one_of(st.text(max_size=8), st.text('"\\\x00\x1f\n aé', max_size=8)), max_size=8))
def test_names_and_strings_are_escaped(words):
    value = Variant.from_python([dict.fromkeys(words, word) for word in words])
    found = to_json(column([(value.metadata, value.value)]))[0].as_py()
    assert found == value.to_json()
    assert json.loads(found) == value.to_python()


@pytest.mark.spec("V-034")
def test_fields_in_any_order_are_decoded_as_stored_and_written_by_name():
    path = Path(__file__).parent / "files" / "duckdb-2.0.0-nested.parquet"  # in the order of insertion
    found = pa.concat_tables([bh.read_parquet(path)] * 3)["v"]
    values = [Variant(row["metadata"], row["value"]) for row in found.to_pylist()]
    assert list(values[0].keys()) != sorted(values[0].keys())
    assert [list(row) for row in to_pylist(found)] == [list(value.keys()) for value in values]
    assert to_json(found).to_pylist() == [value.to_json() for value in values]


@pytest.mark.spec("V-015")
def test_names_that_are_not_utf8_are_refused_where_they_are_reached():
    metadata = b"\x01\x02\x00\x01\x02" + b"a\xff"
    fine, wrong = b"\x02\x01\x00\x00\x01\x00", b"\x02\x01\x01\x00\x01\x00"
    assert to_pylist(column([(metadata, fine)])) == [{"a": None}]
    assert to_json(column([(metadata, fine)])).to_pylist() == ['{"a":null}']
    for kernel in (to_pylist, to_json):
        with pytest.raises(MalformedVariant) as caught:
            kernel(column([(metadata, fine), (metadata, wrong)]))
        assert caught.value.row == 1


def test_null_metadata_in_a_row_that_is_not_null_is_malformed():
    array = pa.StructArray.from_arrays(
        [pa.array([None, b"\x11\x00\x00"], pa.binary()), pa.array([b"\x00", b"\x04"], pa.binary())],
        ["metadata", "value"],
    )
    with pytest.raises(MalformedVariant) as caught:
        to_pylist(array)
    assert caught.value.row == 0
    assert to_pylist(array, lenient=Lenient()) == [None, True]


@pytest.mark.spec("V-088")
def test_all_rows_with_metadata_of_their_own():
    values = [Variant.from_python({f"k{i}": i, "same": [i]}) for i in range(3_000)]
    array = column(pairs(values))
    assert to_pylist(array) == [{f"k{i}": i, "same": [i]} for i in range(3_000)]
    assert to_json(array).to_pylist() == [value.to_json() for value in values]


def test_texts_beyond_the_limit_of_a_batch_are_written_by_rows(monkeypatch):
    values = [Variant.from_python({"a": "x" * 50}), Variant.from_python(["y" * 20])]
    array = column(pairs([values[0], None, values[1]]))
    monkeypatch.setattr("boathouse.variant.columns.to_json.LIMIT", 40)
    found = to_json(array)
    assert found.to_pylist() == [values[0].to_json(), None, values[1].to_json()]


def test_empty_columns():
    none = column([])
    assert to_pylist(none) == [] and to_json(none).type == pa.string() and len(to_json(none)) == 0
    nulls = column([None, None])
    assert to_pylist(nulls) == [None, None] and to_json(nulls).null_count == 2
    assert to_json(pa.chunked_array([], none.type)).num_chunks == 0


def test_metadata_of_no_names_serves_scalars():
    rows = [(build_metadata([]), b"\x0c\x07"), (b"\x01\x00\x00", b"\x05a")]
    assert to_pylist(column(rows)) == [7, "a"]
    assert to_json(column(rows)).to_pylist() == ["7", '"a"']

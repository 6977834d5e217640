"""Value headers, objects and arrays, every layout built by hand (checklist V-021 to V-043)."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import EvaluationError, InvalidArgumentError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant import Variant, VariantBuilder, build_metadata
from boathouse.variant.decode import value_end
from makers import variants as made

ABC = build_metadata("abc")
EMPTY = b"\x01\x00\x00"


def number(value: int) -> bytes:
    return bytes([12, value & 255])


def obj(ids, values, *, offsets=None, large=False, id_size=1, offset_size=1, last=None, reserved=0) -> bytes:
    """An object by hand; `values` are laid one after another unless `offsets` says otherwise."""
    body = b"".join(values)
    if offsets is None:
        offsets = [sum(map(len, values[:i])) for i in range(len(values))]
    last = len(body) if last is None else last
    return b"".join(
        [
            bytes([(large << 4 | (id_size - 1) << 2 | offset_size - 1) << 2 | 2 | reserved]),
            len(ids).to_bytes(4 if large else 1, "little"),
            *(id.to_bytes(id_size, "little") for id in ids),
            *(offset.to_bytes(offset_size, "little") for offset in (*offsets, last)),
            body,
        ]
    )


def arr(values, *, offsets=None, large=False, offset_size=1, last=None, reserved=0) -> bytes:
    """An array by hand."""
    body = b"".join(values)
    if offsets is None:
        offsets = [sum(map(len, values[:i])) for i in range(len(values))]
    last = len(body) if last is None else last
    return b"".join(
        [
            bytes([(large << 2 | offset_size - 1) << 2 | 3 | reserved]),
            len(offsets).to_bytes(4 if large else 1, "little"),
            *(offset.to_bytes(offset_size, "little") for offset in (*offsets, last)),
            body,
        ]
    )


def refused(value: bytes, match: str | None = None, metadata: bytes = ABC) -> None:
    """Every full reading refuses the value, and validate calls it an error."""
    found = Variant(metadata, value)
    readings = (found.to_python, found.to_json, lambda: hash(found), lambda: VariantBuilder().append_variant(found))
    for reading in readings:
        with pytest.raises(MalformedVariant, match=match) as caught:
            reading()
        assert caught.value.offset is not None
    assert "error" in {finding.kind for finding in found.validate()}


def odd(value: bytes, metadata: bytes = ABC) -> list[str]:
    found = Variant(metadata, value).validate()
    assert all(finding.kind == "oddity" for finding in found), found
    return [finding.message for finding in found]


@pytest.mark.spec("V-021")
def test_each_of_the_256_headers_decodes_or_is_refused():
    # Enough zeros after each header: content of scalars, or a container of no elements.
    for header in range(256):
        found = Variant(EMPTY, bytes([header]) + bytes(80))
        basic, rest = header & 3, header >> 2
        if basic == 0 and rest > 20:
            for reading in (lambda f=found: f.type, found.to_python, found.to_json, lambda f=found: f.scalar):
                with pytest.raises(UnsupportedFeatureError, match=f"type {rest} at"):
                    reading()
        elif basic == 0:
            tree = made.tree_of(found)
            kinds = {
                0: None, 1: True, 2: False, 7: bytes(8), 8: (0, 0), 9: (0, 0), 10: (0, 0), 14: bytes(4), 15: b"",
                16: "", 20: bytes(16),
            }  # fmt: skip
            assert tree == made.Tree(made.TYPE_NAMES[rest], kinds.get(rest, 0))
        elif basic == 1:
            assert found.scalar == "\0" * rest
        else:
            assert found.to_python() == ({} if basic == 2 else [])


@pytest.mark.spec("V-022", "V-023")
@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 300])
def test_short_and_long_strings(length):
    value = Variant.from_python("x" * length)
    assert value.scalar == value.to_python() == "x" * length
    if length < 64:
        assert value.value == bytes([length << 2 | 1]) + b"x" * length
    else:
        assert value.value == b"\x40" + length.to_bytes(4, "little") + b"x" * length
    long = Variant(EMPTY, b"\x40" + length.to_bytes(4, "little") + b"x" * length)
    assert long.scalar == "x" * length
    assert long == value
    assert hash(long) == hash(value)
    assert long.validate() == ()
    assert VariantBuilder().append_variant(long).finish().value == value.value


def test_63_and_64_bytes_are_counted_in_utf8():
    assert Variant.from_python("é" * 31).value[0] & 3 == 1
    assert Variant.from_python("é" * 32).value[0] == 0x40


@pytest.mark.spec("V-024")
@pytest.mark.parametrize(("large", "id_size", "offset_size"), [*itertools.product([0, 1], [1, 2, 3, 4], [1, 2, 3, 4])])
def test_every_object_header(large, id_size, offset_size):
    children = [number(1), b"\x05x", obj([1], [number(9)]), b"\x00"]
    raw = obj([0, 1, 2], children[:3], large=bool(large), id_size=id_size, offset_size=offset_size)
    assert raw[0] == (large << 4 | (id_size - 1) << 2 | offset_size - 1) << 2 | 2
    value = Variant(ABC, raw)
    assert value.to_python() == {"a": 1, "b": "x", "c": {"b": 9}}
    assert value.get(("c", "b")).scalar == 9
    assert value["b"].value == b"\x05x"
    assert len(value) == 3
    assert value.value == raw
    assert value_end(raw + b"??", 0, len(raw) + 2) == len(raw)
    assert value.validate() == ()
    assert VariantBuilder().append_variant(value).finish() == value


def test_id_lists_of_the_same_bytes_are_told_apart_by_their_header():
    # 00 01 are the ids 0 and 1, or the id 256; the dictionary remembers neither for the other.
    metadata = build_metadata([f"{i:03d}" for i in range(300)])
    two = obj([0, 1], [number(1), number(2)], large=True)
    one = obj([256], [number(3)], large=True, id_size=2)
    for values in ((two, one), (one, two)):
        raw = arr([*values])
        expected = [{"000": 1, "001": 2} if value is two else {"256": 3} for value in values]
        assert Variant(metadata, raw).to_python() == expected
        assert VariantBuilder().append_variant(Variant(metadata, raw)).finish().to_python() == expected


@pytest.mark.spec("V-025")
@pytest.mark.parametrize(("large", "offset_size"), [*itertools.product([0, 1], [1, 2, 3, 4])])
def test_every_array_header(large, offset_size):
    raw = arr([number(1), b"\x05x", arr([b"\x00"])], large=bool(large), offset_size=offset_size)
    assert raw[0] == (large << 2 | offset_size - 1) << 2 | 3
    value = Variant(ABC, raw)
    assert value.to_python() == [1, "x", [None]]
    assert value[2][0].type == "null"
    assert value.value == raw
    assert value_end(raw, 0, len(raw)) == len(raw)
    assert value.validate() == ()


@pytest.mark.spec("V-026")
def test_reserved_bits_are_ignored_and_told():
    assert Variant(ABC, obj([0], [number(1)], reserved=0x80)).to_python() == {"a": 1}
    assert odd(obj([0], [number(1)], reserved=0x80)) == ["reserved bits of the header are set"]
    for bit in (0x20, 0x40, 0x80):
        assert Variant(ABC, arr([number(1)], reserved=bit)).to_python() == [1]
        assert odd(arr([number(1)], reserved=bit)) == ["reserved bits of the header are set"]


def samples() -> list[Variant]:
    """One value of every type, in containers of every kind."""
    scalars = [
        made.Tree(type, content)
        for type, content in {
            "null": None, "boolean": True, "int8": 1, "int16": 300, "int32": -70_000, "int64": 1 << 40,
            "double": b"\0\0\0\0\0\0\xf8\x3f", "float": b"\0\0\xc0\x3f", "decimal4": (110, 2), "decimal8": (1, 12),
            "decimal16": (-(10**30), 4), "date": 19_000, "timestamp": 1, "timestamp_ntz": -1, "timestamp_nanos": 5,
            "timestamp_ntz_nanos": -5, "time": 86_399_999_999, "binary": b"\0\xff", "string": "é" * 40,
            "uuid": bytes(range(16)),
        }.items()
    ]  # fmt: skip
    nested = made.Tree("object", tuple((f"k{i:02d}", tree) for i, tree in enumerate(scalars)))
    whole = made.Tree("array", (nested, made.Tree("string", "short"), made.Tree("array", ())))
    return [made.encode(tree) for tree in (*scalars, nested, whole)] + [made.encode_loosely(whole, Random(1))]


@pytest.mark.spec("V-027")
@pytest.mark.parametrize("value", samples(), ids=lambda v: v.type)
def test_cut_at_every_length(value):
    raw, metadata = value.value, value.metadata
    with pytest.raises(MalformedVariant, match="empty"):
        Variant(metadata, b"")
    for length in range(1, len(raw)):
        cut = Variant(metadata, raw[:length])
        for reading in (cut.to_python, cut.to_json, lambda c=cut: c.value, lambda c=cut: c.type, lambda c=cut: hash(c)):
            with pytest.raises(MalformedVariant):
                reading()
        assert [f.kind for f in cut.validate() if f.kind == "error"]
    assert Variant(metadata, raw).to_json()


@pytest.mark.spec("V-027")
def test_no_read_goes_beyond_the_end_of_a_view():
    # The bytes behind the bound would complete the value; they belong to someone else.
    raw = arr([number(1), number(2)])
    whole = Variant(ABC, raw)
    for end in range(1, len(raw)):
        view = Variant.view(whole.dictionary, raw, 0, end)
        with pytest.raises(MalformedVariant):
            view.to_python()
        with pytest.raises(MalformedVariant):
            view.get((1,))


@pytest.mark.spec("V-028")
def test_the_example_of_the_text():
    # {"c": 3, "b": 2, "a": 1}: ids and offsets by name, values as they were given.
    raw = obj([0, 1, 2], [number(3), number(2), number(1)], offsets=[4, 2, 0])
    value = Variant(ABC, raw)
    assert value.to_python() == {"a": 1, "b": 2, "c": 3}
    assert [(k, v.scalar) for k, v in value.items()] == [("a", 1), ("b", 2), ("c", 3)]
    ours = Variant.from_python({"c": 3, "b": 2, "a": 1})
    assert ours.metadata == ABC
    assert ours.value == obj([0, 1, 2], [number(1), number(2), number(3)])
    assert value == ours


@pytest.mark.spec("V-029", "V-038")
@given(st.permutations(list(range(5))), st.integers(0, 2**32))
@settings(max_examples=60)
def test_values_in_any_order(order, seed):
    names = build_metadata("abcde")
    contents = [number(1), b"\x0dabc", obj([0], [number(7)]), arr([b"\x00", b"\x04"]), b"\x08"]
    body = [contents[i] for i in order]
    offsets = [sum(map(len, body[: order.index(i)])) for i in range(5)]
    value = Variant(names, obj(range(5), body, offsets=offsets))
    assert value.to_python() == {"a": 1, "b": "abc", "c": {"a": 7}, "d": [None, True], "e": False}
    for name, content in zip("abcde", contents):
        assert value[name].value == content
    assert value.validate() == ()


@pytest.mark.spec("V-030")
def test_the_last_offset_is_the_size_of_the_values():
    children = [number(1), number(2)]
    for last in (0, 1, 2, 3):
        refused(obj([0, 1], children, last=last))
    refused(obj([0, 1], children, last=5))  # beyond the end
    refused(obj([0, 1], children, last=5) + b"\x00", "the last offset is 5, the values take 4")
    refused(obj([], [], last=1) + b"\x00", "the values take 0")
    refused(arr([], last=1) + b"\x00", "the values take 0")
    inner = obj([0], [number(1)], last=3)
    refused(arr([inner, b"\x00"]))
    assert Variant(ABC, obj([0, 1], children)).to_python() == {"a": 1, "b": 2}


@pytest.mark.spec("V-031")
@pytest.mark.parametrize("count", [0, 1, 255, 256, 65_536])
def test_objects_of_many_fields(count):
    names = [f"{i:05d}" for i in range(count)]
    value = Variant.from_python(dict.fromkeys(names, True))
    assert value.value[0] >> 6 & 1 == (count > 255)
    assert len(value) == count
    assert value.keys() == tuple(names)
    if count:
        assert value[names[-1]].scalar is True
        assert value.get((names[0],)).scalar is True
    assert value.get(("missing",)) is None
    assert value.to_python() == dict.fromkeys(names, True)
    assert value.validate() == ()


@pytest.mark.spec("V-032")
def test_field_ids_beyond_the_dictionary():
    for id, id_size in ((3, 1), (255, 1), (65_535, 2), (2**32 - 1, 4)):
        raw = obj([0, id], [number(1), number(2)], id_size=id_size)
        refused(raw, f"field id {id:,} in a dictionary of 3 names")
        assert Variant(ABC, raw)["a"].scalar == 1  # what is asked for is right


@pytest.mark.spec("V-033")
def test_wild_offsets():
    refused(obj([0, 1], [number(1), number(2)], offsets=[0, 4]), "beyond the end")
    refused(obj([0, 1], [number(1), number(2)], offsets=[0, 200]), "beyond the end")
    refused(obj([0, 1], [number(1), number(2)], offsets=[0, 2**32 - 1], offset_size=4), "beyond the end")
    refused(obj([0, 1], [number(1), number(2)], offsets=[0, 2**32 - 6], offset_size=4), "beyond the end")
    with pytest.raises(MalformedVariant):
        Variant(ABC, obj([0, 1], [number(1), number(2)], offsets=[0, 200]))["b"]
    # Offsets count from the first value: nothing can point back into the header.
    inner = obj([0], [number(1)])
    refused(arr([inner], offsets=[2]))


@pytest.mark.spec("V-033")
def test_overlapping_values_are_refused_shared_ones_read():
    text = b"\x0d" + b"abc"
    refused(obj([0, 1], [text], offsets=[0, 1]))
    # Both are whole values, and one lies within the other.
    refused(arr([b"\x0d\x04\x04\x04"], offsets=[0, 2]), "overlap")
    refused(obj([0, 1], [b"\x0d\x04\x04\x04"], offsets=[2, 0]), "overlap")
    shared = obj([0, 1], [text], offsets=[0, 0])
    assert Variant(ABC, shared).to_python() == {"a": "abc", "b": "abc"}
    assert odd(shared) == ["values are shared"]
    assert Variant(ABC, shared) == Variant.from_python({"a": "abc", "b": "abc"})
    inner = arr([number(5)])
    shared = arr([inner], offsets=[0, 0, 0])
    found = Variant(ABC, shared).to_python()
    assert found == [[5], [5], [5]]
    found[0].append(6)
    assert found[1] == [5]  # not one list three times
    gap = arr([number(1), b"\xff\xff", number(2)], offsets=[0, 4])
    assert Variant(ABC, gap).to_python() == [1, 2]
    assert odd(gap) == ["2 bytes before a value belong to no value"]


@pytest.mark.spec("V-034", "V-037")
@pytest.mark.parametrize("count", [2, 40, 300])
def test_fields_out_of_order_as_duckdb_writes_them(count):
    names = [f"f{i:03d}" for i in range(count)]
    metadata = build_metadata(names)
    backwards = list(range(count))[::-1]
    wide = {"id_size": 2, "offset_size": 2, "large": count > 255}
    value = Variant(metadata, obj(backwards, [number(i) for i in backwards], **wide))
    sorted_one = Variant(metadata, obj(backwards[::-1], [number(i) for i in backwards[::-1]], **wide))
    for i, name in enumerate(names):
        assert value.get((name,)).value == sorted_one.get((name,)).value == number(i)
    for missing in ("f", "f999", "", "g"):
        assert value.get((missing,)) is None is sorted_one.get((missing,))
    assert value == sorted_one
    assert hash(value) == hash(sorted_one)
    assert value.to_json() == sorted_one.to_json()
    assert odd(value.value, metadata) == ["the fields are not in the order of their names"]
    assert VariantBuilder().append_variant(value).finish().validate() == ()


@pytest.mark.spec("V-034")
def test_objects_that_duckdb_writes():
    duckdb = pytest.importorskip("duckdb")
    keys = [f"k{i:02d}" for i in range(40)][::-1]
    text = "{" + ",".join(f'"{key}":{i}' for i, key in enumerate(keys)) + "}"
    with duckdb.connect() as connection:
        table = connection.sql(f"SELECT '{text}'::JSON::VARIANT AS v").to_arrow_table()
    row = table.column("v").to_pylist()[0]
    value = Variant(row["metadata"], row["value"])
    assert value.to_python() == {key: i for i, key in enumerate(keys)}
    assert [value.get((key,)).scalar for key in keys] == list(range(40))


@pytest.mark.spec("V-035")
def test_duplicate_names():
    same_id = obj([0, 0], [number(1), number(2)])
    refused(same_id, "'a' twice")
    two_ids = obj([0, 1], [number(1), number(2)])
    metadata = b"\x01\x02\x00\x01\x02aa"
    refused(two_ids, "'a' twice", metadata)
    for value in (Variant(ABC, same_id), Variant(metadata, two_ids)):
        with pytest.raises(MalformedVariant, match="'a' twice"):
            value.get(("a",))
        with pytest.raises(MalformedVariant, match="'a' twice"):
            value.keys()
        assert value.get(("b",)) is None
    with pytest.raises(InvalidArgumentError, match="'a' twice"):
        VariantBuilder().begin_object().key("a").append(1).key("a").append(2).end()


@pytest.mark.spec("V-036")
def test_names_that_differ_by_case_only():
    value = Variant.from_python({"a": 1, "A": 2})
    assert (value["a"].scalar, value["A"].scalar) == (1, 2)
    assert value.to_python() == {"A": 2, "a": 1}


@pytest.mark.spec("V-037")
@given(
    st.dictionaries(made.names(), st.integers(-5, 5), max_size=40), st.lists(made.names(), max_size=10), st.integers()
)
@settings(max_examples=60)
def test_look_ups_answer_as_a_dict_does(fields, others, seed):
    tree = made.Tree("object", tuple((k, made.Tree("int8", v)) for k, v in sorted(fields.items())))
    for value in (made.encode(tree), made.encode_loosely(tree, Random(seed))):
        for name in [*fields, *others]:
            found = value.get((name,))
            assert (None if found is None else found.scalar) == fields.get(name)
            assert (name in value) == (name in fields)


@pytest.mark.spec("V-039")
def test_the_empty_object_and_array_are_three_bytes():
    assert Variant.from_python({}).value == b"\x02\x00\x00"
    assert Variant.from_python([]).value == b"\x03\x00\x00"
    assert (Variant.from_python({}).to_python(), Variant.from_python([]).to_python()) == ({}, [])


@pytest.mark.spec("V-040")
@pytest.mark.parametrize("count", [0, 1, 255, 256, 70_000])
def test_arrays_of_many_elements(count):
    expected = [[i] if i % 3 == 0 else i if i % 3 == 1 else str(i) for i in range(count)]
    value = Variant.from_python(expected)
    assert value.value[0] >> 4 & 1 == (count > 255)
    assert len(value) == count
    assert value.to_python() == expected
    if count:
        assert value[-1].to_python() == expected[-1]
    assert value.get((count,)) is None
    assert value.validate() == ()


@pytest.mark.spec("V-041")
def test_array_offsets():
    first = arr([b"\x04", number(1), number(2)], offsets=[1, 3])
    assert Variant(ABC, first).to_python() == [1, 2]
    assert odd(first) == ["1 bytes before a value belong to no value"]
    falling = arr([number(1), number(2)], offsets=[2, 0])
    assert Variant(ABC, falling).to_python() == [2, 1]
    assert odd(falling) == ["the values of the array are not in the order of its elements"]
    for offsets in ([0, 4], [0, 255], [4, 0]):
        refused(arr([number(1), number(2)], offsets=offsets), "beyond the end")
    refused(arr([number(1)], offsets=[0, 1]))
    refused(bytes([3, 2, 0, 2]), "2 elements do not fit")


@pytest.mark.spec("V-042", "V-043")
@given(made.trees(), st.integers(0, 2**32))
@settings(max_examples=60)
def test_children_are_variants_by_themselves(tree, seed):
    for root in (made.encode(tree), made.encode_loosely(tree, Random(seed))):
        work = [(root, tree)]
        while work:
            value, expected = work.pop()
            alone = Variant(root.metadata, value.value)
            assert made.tree_of(alone) == expected
            assert value.value in root.value
            assert alone == value
            if value.type in ("object", "array"):
                pairs = expected.content if value.type == "array" else [child for _, child in expected.content]
                children = value.values() if value.type == "array" else [value[name] for name, _ in expected.content]
                work.extend(zip(children, pairs))


@pytest.mark.spec("V-043")
def test_an_element_of_an_object_inside_an_array_of_objects_is_a_slice():
    inner = Variant.from_python({"x": [1, {"y": "deep"}]})
    value = Variant.from_python([{"a": 1}, {"b": {"x": [1, {"y": "deep"}]}}])
    found = value[1]["b"]
    assert found.buffer is value.buffer
    assert found.to_python() == inner.to_python()
    assert Variant(value.metadata, found.value).get("$.x[1].y").scalar == "deep"


def test_accessors_refuse_what_has_no_meaning():
    array, scalar, thing = Variant.from_python([1]), Variant.from_python(1), Variant.from_python({"a": 1})
    for call in (array.keys, array.items, scalar.keys, scalar.values, lambda: len(scalar), lambda: array.scalar):
        with pytest.raises(InvalidArgumentError):
            call()
    with pytest.raises(KeyError):
        thing["b"]
    with pytest.raises(IndexError):
        array[1]
    with pytest.raises(IndexError):
        array[-2]
    assert bool(Variant.from_python(False))
    assert [v.scalar for v in array] == [1]
    assert list(thing) == ["a"]
    for wrong in ("text", 5, None):
        with pytest.raises(InvalidArgumentError, match="made from bytes"):
            Variant(EMPTY, wrong)
    with pytest.raises(UnsupportedFeatureError, match="ordering"):
        sorted([array, thing])


def test_builders_refuse_calls_out_of_order():
    for build in (
        lambda b: b.end(),
        lambda b: b.finish(),
        lambda b: b.key("a"),
        lambda b: b.append(1).append(2),
        lambda b: b.begin_object().append(1),
        lambda b: b.begin_object().key("a").end(),
        lambda b: b.begin_object().key("a").key("b"),
        lambda b: b.begin_array().key("a"),
        lambda b: b.begin_array().finish(),
        lambda b: b.begin_object().key(1),
        lambda b: b.append_int8(128),
        lambda b: b.append_date(1 << 31),
        lambda b: b.append_uuid(b"short"),
    ):
        with pytest.raises(InvalidArgumentError):
            build(VariantBuilder())


def test_dates_out_of_range_in_a_container_are_no_malformed_variant():
    value = VariantBuilder().begin_array().append_date(2**31 - 1).end().finish()
    with pytest.raises(EvaluationError, match=r"2,147,483,647"):
        value.to_python()
    assert value[0].scalar == 2**31 - 1
    assert value.validate() == ()

"""The states of (value, typed_value), the INVALID rows of the specification, and hostile columns."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from boathouse.errors import InvalidArgumentError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant import Variant, build_metadata
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.shredding.get import get
from boathouse.variant.shredding.schema import ShreddedArray, ShreddingSchema, shredding_schema, storage_type
from boathouse.variant.shredding.shred import shred
from boathouse.variant.shredding.unshred import unshred
from makers.shredding import Pair, to_storage
from makers.variants import Tree, to_column, tree_of

EVENT = shredding_schema("struct<event_type:string,event_ts:bigint>")


def text(s):
    return Tree("string", s)


def long(n):
    return Tree("int64", n)


def obj(**fields):
    return Tree("object", tuple(sorted(fields.items())))


def event(value, type=Pair(None), ts=Pair(None)):
    return Pair(value, (("event_type", type), ("event_ts", ts)))


def trees(column):
    return [None if row is None else tree_of(Variant(**row)) for row in column.to_pylist()]


@pytest.mark.spec("V-067", "V-072", "V-073", "V-074")
def test_the_specifications_series_of_objects_is_stored_and_read_as_its_table_says():
    noop, ts = Pair(None, "noop"), Pair(None, 1729794114937)
    null, nothing = Tree("null", None), Pair(None)
    series = [
        (obj(event_type=text("noop"), event_ts=long(1729794114937)), event(None, noop, ts)),
        (
            obj(event_type=text("noop"), event_ts=long(1729794114937), email=text("u@x")),
            event(obj(email=text("u@x")), noop, ts),
        ),
        (obj(error_msg=text("malformed")), event(obj(error_msg=text("malformed")))),
        (text("malformed: not an object"), Pair(text("malformed: not an object"))),
        (obj(event_ts=long(1729794114937), click=text("_button")), event(obj(click=text("_button")), nothing, ts)),
        (obj(event_type=null, event_ts=long(1729794114937)), event(None, Pair(null), ts)),
        (
            obj(event_type=text("noop"), event_ts=text("2024-10-24")),
            event(None, noop, Pair(text("2024-10-24"))),
        ),
        (obj(), event(None)),
        (null, Pair(null)),
    ]
    from makers.shredding import pair_at
    from makers.variants import encode

    shredded = shred(to_column([encode(tree) for tree, _ in series]), EVENT)
    for (tree, pair), scalar in zip(series, shredded, strict=True):
        assert pair_at(scalar, EVENT) == pair, tree
    assert trees(unshred(to_storage([pair for _, pair in series], EVENT))) == [tree for tree, _ in series]


@pytest.mark.spec("V-075", "V-073")
def test_invalid_a_shredded_field_in_value_too_typed_value_wins():
    column = to_storage([event(obj(event_type=text("login")), Pair(None, "typed"), Pair(None, 5))], EVENT)
    assert trees(unshred(column)) == [obj(event_type=text("typed"), event_ts=long(5))]
    assert get(column, "$.event_type", "string").to_pylist() == ["typed"]


@pytest.mark.spec("V-075", "V-073")
def test_invalid_a_shredded_field_in_value_alone_is_missing_as_its_columns_say():
    column = to_storage([event(obj(event_type=text("login"), x=long(1)), Pair(None), Pair(None, 5))], EVENT)
    assert trees(unshred(column)) == [obj(event_ts=long(5), x=long(1))]
    assert get(column, "$.event_type", "string").to_pylist() == [None]


@pytest.mark.spec("V-075")
def test_invalid_an_object_in_value_while_typed_value_is_null_is_the_value():
    column = to_storage([Pair(obj(event_type=text("login")))], EVENT)
    assert trees(unshred(column)) == [obj(event_type=text("login"))]
    assert trees(get(column, "$")) == [obj(event_type=text("login"))]
    # Readers may assume that it is no object: a path reads the typed columns alone.
    assert get(column, "$.event_type", "string").to_pylist() == [None]


@pytest.mark.spec("V-075")
def test_invalid_a_value_that_is_no_object_beside_a_typed_object_is_refused():
    column = to_storage([event(None), event(text("a"))], EVENT)
    with pytest.raises(MalformedVariant, match="not an object") as error:
        unshred(column)
    assert error.value.row == 1
    with pytest.raises(MalformedVariant):
        get(column, "$")
    lenient = Lenient()
    assert trees(unshred(column, lenient=lenient)) == [obj(), None]
    assert (lenient.count, lenient.rows) == (1, [1])


@pytest.mark.spec("V-075", "V-039")
def test_invalid_an_empty_object_in_value_while_typed_value_is_null_is_an_empty_object():
    column = to_storage([Pair(obj())], EVENT)
    assert trees(unshred(column)) == [obj()]
    assert unshred(column).field("value").to_pylist() == [b"\x02\x00\x00"]


@pytest.mark.spec("V-075", "V-073", "V-076")
def test_nothing_invalid_is_written():
    values = [{"event_type": "a", "event_ts": 1}, {"event_ts": "x", "y": 1}, {}, [1], "a", None, {"event_type": None}]
    shredded = shred(to_column([Variant.from_python(v) for v in values]), EVENT)
    for row, source in zip(shredded.to_pylist(), values, strict=True):
        assert (row["typed_value"] is not None) == isinstance(source, dict)
        if row["value"] is not None and isinstance(source, dict):
            assert set(Variant(row["metadata"], row["value"]).keys()) == {"y"}
        for pair in (row["typed_value"] or {}).values():
            assert pair["value"] is None or pair["typed_value"] is None


@pytest.mark.spec("V-076")
@pytest.mark.parametrize("type", ["bigint", "string", "array<bigint>", "decimal(9,2)", "uuid", "boolean"])
def test_value_and_typed_value_of_what_is_no_object_are_refused(type):
    schema = shredding_schema(type)
    typed = {
        "bigint": 1,
        "string": "x",
        "array<bigint>": (),
        "decimal(9,2)": (1, 2),
        "uuid": bytes(16),
        "boolean": True,
    }
    column = to_storage([None, Pair(text("v"), typed[type])], schema)
    with pytest.raises(MalformedVariant, match="both") as error:
        unshred(column)
    assert error.value.row == 1
    with pytest.raises(MalformedVariant):
        get(column, "$", "string")


@pytest.mark.spec("V-068", "V-008")
def test_missing_is_variant_null_at_the_top_and_in_arrays_and_absent_in_objects():
    array = shredding_schema("array<string>")
    column = to_storage([Pair(None), None, Pair(None, (Pair(None), Pair(None, "x")))], array)
    null = Tree("null", None)
    assert trees(unshred(column)) == [null, None, Tree("array", (null, text("x")))]
    assert unshred(column)[0]["value"].as_py() == b"\x00"
    assert trees(unshred(to_storage([event(None)], EVENT))) == [obj()]
    assert trees(unshred(to_storage([Pair(None)], ShreddingSchema()))) == [null]


@pytest.mark.spec("V-072", "V-068")
def test_optional_groups_that_are_null_themselves_count_as_missing():
    metadata = build_metadata(["a"])
    group = pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", pa.int64())])
    type = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.struct([("a", group)]))])
    rows = [{"metadata": metadata, "value": None, "typed_value": {"a": a}} for a in (None, {"typed_value": 5})]
    column = pa.array(rows, type)
    assert [Variant(**row).to_python() for row in unshred(column).to_pylist()] == [{}, {"a": 5}]
    assert get(column, "$.a", "int").to_pylist() == [None, 5]
    listed = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.list_(group))])
    column = pa.array([{"metadata": metadata, "value": None, "typed_value": [None, {"typed_value": 5}]}], listed)
    assert [Variant(**row).to_python() for row in unshred(column).to_pylist()] == [[None, 5]]
    assert get(column, "$[1]", "int").to_pylist() == [5]


@pytest.mark.spec("V-073", "V-020")
def test_partial_objects_are_sorted_by_the_bytes_of_their_names():
    names = ["～", "😀", "a", "b", "é", "z"]
    value = Variant.from_python({name: i for i, name in enumerate(names)})
    for shredded_names in (["😀"], ["b", "～"], ["z", "a", "é"], names[:5]):
        schema = shredding_schema("struct<" + ",".join(f"`{name}`:tinyint" for name in shredded_names) + ">")
        (row,) = unshred(shred(to_column([value]), schema)).to_pylist()
        found = Variant(**row)
        assert list(found.keys()) == sorted(names, key=str.encode)
        assert found == value
        assert not found.validate()


@pytest.mark.spec("V-079")
def test_names_that_a_path_of_dots_could_not_tell_apart():
    value = Variant.from_python({"a": 1, "A": 2, "": 3, "a.b": 4, "b": {"a.b": 5, "": {"": 6}}})
    schema = shredding_schema(
        pa.struct(
            [
                ("metadata", pa.binary()),
                ("value", pa.binary()),
                (
                    "typed_value",
                    pa.struct(
                        [
                            (name, pa.struct([("value", pa.binary()), ("typed_value", pa.int8())]))
                            for name in ("a", "A", "", "a.b")
                        ]
                    ),
                ),
            ]
        )
    )
    shredded = shred(to_column([value]), schema)
    typed = shredded[0]["typed_value"].as_py()
    assert {name: pair["typed_value"] for name, pair in typed.items()} == {"a": 1, "A": 2, "": 3, "a.b": 4}
    for path, want in (("$.a", 1), ("$.A", 2), ("$['']", 3), ("$['a.b']", 4), ("$.b['a.b']", 5), ("$.b['']['']", 6)):
        assert get(shredded, path, "int").to_pylist() == [want]
    assert trees(unshred(shredded)) == [tree_of(value)]


@pytest.mark.spec("V-070")
def test_a_shredded_name_that_the_metadata_lacks_is_needed_to_rebuild_and_not_to_read_the_path():
    column = to_storage([event(None, Pair(None, "x"))], EVENT)
    children = [pa.array([build_metadata(["event_ts"])]), column.field("value"), column.field("typed_value")]
    column = pa.StructArray.from_arrays(children, ["metadata", "value", "typed_value"])
    assert get(column, "$.event_type", "string").to_pylist() == ["x"]
    with pytest.raises(MalformedVariant, match="event_type") as error:
        unshred(column)
    assert error.value.row == 0


@pytest.mark.spec("V-003")
def test_null_or_malformed_metadata_is_refused_with_its_row():
    column = to_storage([event(None), event(None)], EVENT)
    for bad in (None, b"", b"\x02\x00\x00", b"\x01\x05"):
        metadata = pa.array([column.field("metadata")[0].as_py(), bad], pa.binary())
        broken = pa.StructArray.from_arrays(
            [metadata, column.field("value"), column.field("typed_value")], ["metadata", "value", "typed_value"]
        )
        with pytest.raises(MalformedVariant) as error:
            unshred(broken)
        assert error.value.row == 1
        lenient = Lenient()
        assert trees(unshred(broken, lenient=lenient)) == [obj(), None]
        assert lenient.rows == [1]


@pytest.mark.spec("V-027", "V-086")
def test_residual_values_cut_short_are_refused_not_read_into_their_neighbours():
    array = shredding_schema("array<string>")
    whole = to_storage([Pair(None, (Pair(long(7)), Pair(None, "neighbour"), Pair(text("x" * 70))))], array)
    elements = whole.field("typed_value").values
    values = elements.field("value").to_pylist()
    for at in (0, 2):
        for cut in range(len(values[at])):
            broken = list(values)
            broken[at] = values[at][:cut]
            group = pa.StructArray.from_arrays(
                [pa.array(broken, pa.binary()), elements.field("typed_value")], ["value", "typed_value"]
            )
            lists = pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), group)
            column = pa.StructArray.from_arrays(
                [whole.field("metadata"), whole.field("value"), lists], ["metadata", "value", "typed_value"]
            )
            with pytest.raises(MalformedVariant) as error:
                unshred(column)
            assert error.value.row == 0


@pytest.mark.spec("V-047", "V-048", "V-051")
def test_typed_numbers_beyond_their_type_are_refused():
    metadata = pa.array([build_metadata([])])
    wrong = [
        pa.Array.from_buffers(pa.decimal128(9, 2), 1, [None, pa.py_buffer(np.array([2_000_000_000, 0], "<i8"))]),
        pa.Array.from_buffers(pa.decimal128(9, 2), 1, [None, pa.py_buffer(np.array([5, 1], "<i8"))]),
        pa.Array.from_buffers(pa.decimal128(38, 2), 1, [None, pa.py_buffer(np.array([0, (1 << 63) - 1], "<i8"))]),
        pa.array([86_400_000_000], pa.time64("us")),
        pa.array([-1], pa.time64("us")),
    ]
    for typed in wrong:
        column = pa.StructArray.from_arrays(
            [metadata, pa.nulls(1, pa.binary()), typed], ["metadata", "value", "typed_value"]
        )
        with pytest.raises(MalformedVariant, match="range"):
            unshred(column)


@pytest.mark.spec("V-054")
def test_a_type_of_a_later_specification_is_told_by_its_row_and_leaves_its_siblings_readable():
    later = bytes([25 << 2, 1, 2])
    array = shredding_schema("array<string>")
    column = to_storage([Pair(None, (Pair(None, "a"), Pair(text("b")))), None, Pair(None, (Pair(text("c")),))], array)
    elements = column.field("typed_value").values
    values = pa.array([*elements.field("value").to_pylist()[:2], later], pa.binary())
    group = pa.StructArray.from_arrays([values, elements.field("typed_value")], ["value", "typed_value"])
    lists = pa.ListArray.from_arrays(column.field("typed_value").offsets, group)
    column = pa.StructArray.from_arrays(
        [column.field("metadata"), column.field("value"), lists], ["metadata", "value", "typed_value"]
    )
    with pytest.raises(UnsupportedFeatureError, match=r"type 25 .*row 2"):
        unshred(column)
    lenient = Lenient()
    assert trees(unshred(column, lenient=lenient))[2] is None
    assert lenient.rows == [2]
    assert get(column, "$[1]", "string").to_pylist() == ["b", None, None]


@pytest.mark.spec("V-087")
def test_a_conflict_costs_a_lenient_path_its_row_alone():
    column = to_storage([event(None, Pair(text("x"), "y")), event(None, Pair(None, "z"))], EVENT)
    lenient = Lenient()
    assert get(column, "$.event_type", "string", lenient=lenient).to_pylist() == [None, "z"]
    assert (lenient.count, lenient.rows) == (1, [0])
    with pytest.raises(MalformedVariant):
        get(column, "$.event_type", "string")


@pytest.mark.spec("V-047")
def test_decimals_of_another_width_scale_or_precision_stay_in_value():
    from makers.variants import encode

    held = [("decimal4", 12345, 2), ("decimal4", -99999, 2), ("decimal4", 100000, 2), ("decimal4", 5, 3),
            ("decimal8", 12345, 2), ("decimal16", 12345, 2)]  # fmt: skip
    column = to_column([encode(Tree(type, (n, scale))) for type, n, scale in held])
    shredded = shred(column, "decimal(5,2)")
    assert shredded.field("typed_value").to_pylist() == [Decimal("123.45"), Decimal("-999.99"), *[None] * 4]
    assert trees(unshred(shredded)) == [Tree(type, (n, scale)) for type, n, scale in held]


@pytest.mark.spec("V-035")
def test_an_object_with_a_field_twice_is_refused_in_and_out():
    metadata = b"\x01\x03\x00\x01\x02\x03aab"  # a, a, b
    twice = Variant(metadata, b"\x02\x02\x00\x01\x00\x01\x02\x00\x00")
    for schema in ("struct<a:int>", "struct<b:int>"):
        with pytest.raises(MalformedVariant, match="twice"):
            shred(to_column([twice]), schema)
    once = Variant(metadata, b"\x02\x02\x01\x02\x00\x01\x02\x04\x08")
    (row,) = unshred(shred(to_column([once]), "struct<a:boolean>")).to_pylist()
    assert Variant(**row).to_python() == {"a": True, "b": False}


@pytest.mark.spec("V-015")
def test_text_that_is_not_utf8_does_not_reach_a_typed_column():
    bad = Variant(b"\x11\x00\x00", b"\x09\xff\xfe")
    column = to_column([Variant.from_python("é"), bad])
    with pytest.raises(MalformedVariant) as error:
        shred(column, "string")
    assert error.value.row == 1
    lenient = Lenient()
    shredded = shred(column, "string", lenient=lenient)
    shredded.validate(full=True)
    assert shredded.is_null().to_pylist() == [False, True]
    assert lenient.count == 1


def test_a_schema_without_value_columns_refuses_what_does_not_fit():
    schema = ShreddingSchema(ShreddedArray(shredding_schema("string")), has_value=False)
    column = to_column([Variant.from_python(["a", 5])])
    assert trees(unshred(shred(column, schema))) == trees(column)
    with pytest.raises(InvalidArgumentError, match="`value`"):
        shred(to_column([Variant.from_python(5)]), schema)


@pytest.mark.spec("V-088")
def test_layouts_of_arrow_make_no_difference():
    values = [{"a": i, "b": [str(i), None], "c": {"d": i * 1.5}, f"r{i}": i} for i in range(40)]
    column = to_column([Variant.from_python(v) if i % 7 else None for i, v in enumerate(values)])
    shredded = shred(column, "struct<a:tinyint,b:array<string>,c:struct<d:double>>")
    want = trees(column)
    assert trees(unshred(shredded.slice(5, 20))) == want[5:25]
    assert trees(get(shredded.slice(5, 20), "$.b")) == [None if t is None else dict(t.content)["b"] for t in want[5:25]]
    assert get(shredded.slice(5, 20), "$.b[0]", "string").to_pylist() == [
        None if i % 7 == 0 else str(i) for i in range(5, 25)
    ]
    chunked = unshred(pa.chunked_array([shredded.slice(0, 3), shredded.slice(3)]))
    assert chunked.num_chunks == 2
    assert trees(chunked) == want
    coded = pa.StructArray.from_arrays(
        [
            shredded.field("typed_value"),
            shredded.field("value").cast(pa.large_binary()),
            shredded.field("metadata").dictionary_encode(),
        ],
        ["typed_value", "value", "metadata"],
        mask=shredded.is_null(),
    )
    assert trees(unshred(coded)) == want
    assert trees(unshred(coded.slice(9))) == want[9:]
    assert [f.name for f in storage_type(shredding_schema("int"))] == ["metadata", "value", "typed_value"]


@pytest.mark.spec("V-031", "V-040")
def test_large_objects_and_arrays_of_wide_ids_and_offsets():
    names = [f"field {i:04}" for i in range(700)]
    rows = [
        {name: i for i, name in enumerate(names)},
        dict.fromkeys(names[:255], "x"),
        dict.fromkeys(names[:256], "y" * 300),
        {names[-1]: "z" * 70_000, names[3]: 1},
    ]
    lists = [list(range(1000)), ["é" * 200] * 300, [], [[1] * 256]]
    column = to_column([Variant.from_python({**row, "l": made}) for row, made in zip(rows, lists)])
    half = ",".join(f"`{name}`:string" for name in names[::2])
    for schema in (f"struct<{half}>", f"struct<{half},l:array<smallint>>", "struct<l:array<array<tinyint>>>"):
        again = unshred(shred(column, schema))
        assert trees(again) == trees(column)
        for row, source in zip(again.to_pylist(), column.to_pylist(), strict=True):
            assert row == source

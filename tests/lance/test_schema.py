"""Logical types both ways."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.arrow.schema import from_arrow, to_arrow
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError, UnsupportedFeatureError, UnsupportedTypeError
from boathouse.lance.file.fields import Field as LanceField
from boathouse.lance.schema import SPELLING, fields_for, from_schema, to_schema
from boathouse.types import INT64, VARIANT, Field, FixedSizeListType, ListType, MapType, Schema, StructType, UUIDType

PLAIN = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date32:day": pa.date32(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    "timestamp:s:-": pa.timestamp("s"),
    "timestamp:us:UTC": pa.timestamp("us", "UTC"),
    "timestamp:ns:UTC": pa.timestamp("ns", "UTC"),
    "duration:us": pa.duration("us"),
    "decimal:128:10:2": pa.decimal128(10, 2),
    "decimal:256:50:4": pa.decimal256(50, 4),
    "fixed_size_binary:7": pa.binary(7),
    "fixed_size_list:float:4": pa.list_(pa.float32(), 4),
    "fixed_size_list:fixed_size_list:float:2:3": pa.list_(pa.list_(pa.float32(), 2), 3),
}
SPELT = {
    "large_string": pa.string(),
    "large_binary": pa.binary(),
    "date64:ms": pa.date32(),
    "timestamp:ms:America/New_York": pa.timestamp("ms", "UTC"),
    "dict:string:int8:false": pa.string(),
}


@pytest.mark.spec("L-038", "L-040")
@pytest.mark.parametrize("logical", [*PLAIN, *SPELT])
def test_each_leaf_type_both_ways(logical):
    field = LanceField(name="c", id=0, parent_id=-1, logical_type=logical, nullable=True, type=0)
    schema = to_schema([field], {}, where="t")
    expected = {**PLAIN, **SPELT}[logical]
    assert to_arrow(schema).field(0).type == expected
    assert (SPELLING in schema.fields[0].metadata) == (logical in SPELT)
    (again,) = from_schema(schema)
    assert (again.name, again.id, again.parent_id, again.logical_type) == ("c", 0, -1, logical)


@pytest.mark.spec("L-039")
def test_names_nullability_and_metadata_round_trip(kit):
    inner = pa.field("x", pa.int32(), False, {"unit": "m"})
    schema = pa.schema(
        [pa.field("s", pa.struct([inner]), False, {"a": "1"}), pa.field("l", pa.large_list(pa.large_string()))]
    )
    kit.pylance(pa.table({"s": [{"x": 1}], "l": [["a"]]}, schema=schema))
    plain = kit.load().schema
    assert plain.field("s").nullable is False and plain.field("s").metadata["a"] == "1"
    again = from_schema(plain)
    theirs = kit.load().manifest.fields
    for ours, written in zip(again, theirs, strict=True):
        assert (ours.name, ours.id, ours.parent_id, ours.logical_type, ours.nullable) == (
            written.name, written.id, written.parent_id, written.logical_type, written.nullable,
        )  # fmt: skip
        assert {**written.metadata} == {**ours.metadata}


def test_comments_of_columns_are_kept_as_metadata_of_fields(kit):
    """Under the key that Spark and lance-spark give them."""
    inner = StructType((Field("x", INT64, doc="inner"),))
    schema = Schema((Field("a", INT64, doc="key: ü"), Field("s", inner, doc="outer"), Field("plain", INT64)))
    bh.create(kit.uri, schema, format="lance")
    kit.open().append([{"a": 1, "s": {"x": 2}, "plain": 3}])
    theirs = kit.dataset()
    assert theirs.schema.field("a").metadata == {b"comment": "key: ü".encode()}
    assert theirs.schema.field("s").type.field("x").metadata == {b"comment": b"inner"}
    assert not theirs.schema.field("plain").metadata
    theirs.insert(theirs.to_table())
    found = kit.open()
    assert [f.doc for f in found.schema] == ["key: ü", "outer", None]
    assert found.schema.field("s").type.fields[0].doc == "inner"
    assert found.to_arrow().schema.field("a").metadata == {b"comment": "key: ü".encode()}
    found.rename_column("a", "b")
    found.cast_column("b", "int")
    found.overwrite(found.to_arrow().select(["b"]), overwrite_schema=True)
    assert kit.open().schema.field("b").doc == "key: ü"
    assert kit.dataset().schema.field("b").metadata[b"comment"] == "key: ü".encode()


def test_comments_are_set_on_columns_and_fields(kit):
    """As metadata of fields, which pylance's own updates keep, and theirs are kept by ours."""
    t = bh.create(kit.uri, "a bigint comment 'it''s', s struct<x: bigint>", format="lance")
    t.append([{"a": 1, "s": {"x": 2}}])
    kit.dataset().update_field_metadata({"s.x": {"unit": "km"}})
    t.set_comment("how \u00fc far", "s.x")
    t.add_column("n", "int", comment="number")
    t.set_comment(None, "a")
    theirs = kit.dataset()
    assert theirs.schema.field("s").type.field("x").metadata == {b"unit": b"km", b"comment": "how \u00fc far".encode()}
    assert theirs.schema.field("n").metadata == {b"comment": b"number"} and not theirs.schema.field("a").metadata
    theirs.validate()
    theirs.update_field_metadata({"n": {"comment": "theirs"}})
    found = kit.open()
    assert [f.doc for f in found.schema] == [None, None, "theirs"]
    assert found.schema.field("s").type.fields[0].doc == "how \u00fc far"
    assert kit.read().to_pylist() == [{"a": 1, "s": {"x": 2}, "n": None}]
    before = kit.files()
    with pytest.raises(UnsupportedFeatureError, match="no comment of its own"):
        found.set_comment("of the table")
    with pytest.raises(ColumnNotFoundError, match="no column `gone`"):
        found.set_comment("x", "gone")
    assert kit.files() == before


def test_nested_types_both_ways(kit):
    data = pa.table(
        {
            "m": pa.array([[("a", {"v": 1})]], pa.map_(pa.string(), pa.struct([pa.field("v", pa.int64())]))),
            "ls": [[{"x": 1, "y": [Decimal("1.5")]}]],
            "u": pa.array([b"0" * 16], pa.binary(16)),
        }
    )
    kit.pylance(data)
    schema = kit.load().schema
    assert isinstance(schema.field("m").type, MapType)
    assert isinstance(schema.field("m").type.value.type, StructType)
    assert isinstance(schema.field("ls").type, ListType)
    assert [f.id for _, f in schema.walk()] == [f.id for f in kit.load().manifest.fields if f.name != "entries"]
    again = from_schema(schema)
    assert [(f.id, f.parent_id, f.logical_type) for f in again] == [
        (f.id, f.parent_id, f.logical_type) for f in kit.load().manifest.fields
    ]


def test_uuid_travels_as_its_extension(kit):
    fields = from_schema(Schema((Field("u", UUIDType()),)))
    assert (fields[0].logical_type, fields[0].extension_name) == ("fixed_size_binary:16", "arrow.uuid")
    assert isinstance(to_schema(fields, {}, where="t").fields[0].type, UUIDType)
    import uuid

    values = [uuid.UUID(int=i) for i in range(3)]
    kit.pylance(pa.table({"u": pa.array([v.bytes for v in values], pa.uuid())}))
    assert isinstance(kit.load().schema.field("u").type, UUIDType)
    assert kit.read().column("u").to_pylist() == [v.bytes for v in values]
    kit.open().append(pa.table({"u": pa.array([bytes(16)], pa.binary(16))}))
    assert kit.dataset().to_table().column("u").type == pa.uuid()
    assert kit.dataset().count_rows() == 4


@pytest.mark.spec("L-042")
@pytest.mark.parametrize(
    "column",
    [
        pa.array([None], pa.month_day_nano_interval()),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    ],
    ids=["interval", "union"],
)
def test_types_that_lance_cannot_hold_are_refused(kit, column):
    with pytest.raises(UnsupportedTypeError, match="`c`"):
        kit.create(pa.table({"c": column}))
    assert not kit.root.exists()


def test_variant_and_bad_names_are_refused():
    with pytest.raises(UnsupportedTypeError, match=r"`v`.*variant"):
        from_schema(Schema((Field("v", VARIANT),)))
    for names in (("a", "a"), ("",), ("a.b",)):
        with pytest.raises(InvalidArgumentError):
            from_schema(Schema(tuple(Field(n, INT64) for n in names)))


@pytest.mark.parametrize("extension", ["lance.json", "lance.bfloat16"])
def test_extensions_that_are_not_written_are_named(extension):
    storage = "json" if extension == "lance.json" else "fixed_size_binary:2"
    field = LanceField(name="c", id=0, parent_id=-1, logical_type=storage, extension_name=extension)
    schema = to_schema([field], {}, where="t")
    assert str(schema.fields[0].type) in ("string", "float")
    (made,) = from_schema(schema)
    assert (made.logical_type, made.extension_name) == (storage, extension)
    with pytest.raises(UnsupportedTypeError, match=rf"column `c`.*{extension}.*as bigint"):
        from_schema(Schema((schema.fields[0].with_type(INT64),)))
    with pytest.raises(UnsupportedTypeError, match=rf"column `s.c`.*{extension}.*inside another column"):
        from_schema(Schema((Field("s", StructType(schema.fields)),)))
    struct = LanceField(name="s", id=0, parent_id=-1, logical_type="struct")
    inner = LanceField(name="c", id=1, parent_id=0, logical_type=storage, extension_name=extension)
    with pytest.raises(UnsupportedFeatureError, match=rf"column `s.c`.*{extension}"):
        to_schema([struct, inner], {}, where="t")


def test_fields_for_keeps_what_is_there():
    present = from_schema(from_arrow(pa.schema([("a", pa.int64()), ("b", pa.string())])))
    moved = tuple(LanceField(**{**f.__dict__, "id": f.id + 5}) for f in present)
    schema = to_schema(moved, {}, where="t")
    assert fields_for(schema, moved, where="t") == moved
    other = from_arrow(pa.schema([("a", pa.int32()), ("b", pa.string())]))
    assert [f.id for f in fields_for(other, moved, where="t")] == [0, 1]
    vector = from_schema(Schema((Field("v", FixedSizeListType(Field("item", INT64), 3)),)))
    assert [f.logical_type for f in vector] == ["fixed_size_list:int64:3"]

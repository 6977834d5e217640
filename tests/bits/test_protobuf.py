"""The wire codec against google.protobuf, with presence, unknown fields and broken bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import given
from hypothesis import strategies as st

from boathouse.bits.protobuf import Message, mapping, nested, repeated, scalar
from boathouse.errors import CorruptTableError


@dataclass(frozen=True, kw_only=True)
class Thing(Message):
    i32: int = scalar(1, "int32")
    u64: int | None = scalar(2, "uint64", optional=True)
    text: str = scalar(3, "string")
    raw: bytes = scalar(4, "bytes")
    many: tuple[int, ...] = repeated(5, "int64")
    things: tuple[Thing, ...] = repeated(6, lambda: Thing)
    labels: dict[str, bytes] = mapping(7, "string", "bytes")
    left: int | None = scalar(8, "bool", oneof="side")
    right: Thing | None = nested(9, lambda: Thing, oneof="side")
    f: float = scalar(10, "double")
    fixed: int = scalar(300, "fixed32")


def foreign():
    t = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    m = file.message_type.add(name="Thing")
    m.oneof_decl.add(name="side")
    m.oneof_decl.add(name="_u64")
    entry = m.nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=t.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=t.TYPE_BYTES, label=1)
    m.field.add(name="i32", number=1, type=t.TYPE_INT32, label=1)
    m.field.add(name="u64", number=2, type=t.TYPE_UINT64, label=1, proto3_optional=True, oneof_index=1)
    m.field.add(name="text", number=3, type=t.TYPE_STRING, label=1)
    m.field.add(name="raw", number=4, type=t.TYPE_BYTES, label=1)
    m.field.add(name="many", number=5, type=t.TYPE_INT64, label=3)
    m.field.add(name="things", number=6, type=t.TYPE_MESSAGE, label=3, type_name=".t.Thing")
    m.field.add(name="labels", number=7, type=t.TYPE_MESSAGE, label=3, type_name=".t.Thing.LabelsEntry")
    m.field.add(name="left", number=8, type=t.TYPE_BOOL, label=1, oneof_index=0)
    m.field.add(name="right", number=9, type=t.TYPE_MESSAGE, label=1, type_name=".t.Thing", oneof_index=0)
    m.field.add(name="f", number=10, type=t.TYPE_DOUBLE, label=1)
    m.field.add(name="fixed", number=300, type=t.TYPE_FIXED32, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Thing"))


Foreign = foreign()
i64 = st.integers(-(1 << 63), (1 << 63) - 1)
leaves = st.builds(
    Thing,
    i32=st.integers(-(1 << 31), (1 << 31) - 1),
    u64=st.none() | st.integers(0, (1 << 64) - 1),
    text=st.text(),
    raw=st.binary(),
    many=st.lists(i64).map(tuple),
    labels=st.dictionaries(st.text(), st.binary(), max_size=3),
    left=st.none() | st.booleans(),
    f=st.floats(allow_nan=False).filter(lambda x: x != 0 or str(x) == "0.0"),
    fixed=st.integers(0, (1 << 32) - 1),
)
trees = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda t, many, right: replace(t, things=tuple(many), left=None, right=right),
        leaves,
        st.lists(inner, max_size=3),
        st.none() | inner,
    ),
    max_leaves=5,
)


def same(ours: Thing, theirs) -> None:
    assert (ours.i32, ours.text, ours.raw, ours.f, ours.fixed) == (
        theirs.i32, theirs.text, theirs.raw, theirs.f, theirs.fixed,
    )  # fmt: skip
    assert list(ours.many) == list(theirs.many)
    assert ours.labels == dict(theirs.labels)
    assert ours.u64 == (theirs.u64 if theirs.HasField("u64") else None)
    assert ours.left == (theirs.left if theirs.WhichOneof("side") == "left" else None)
    assert (ours.right is not None) == theirs.HasField("right")
    if ours.right is not None:
        same(ours.right, theirs.right)
    assert len(ours.things) == len(theirs.things)
    for a, b in zip(ours.things, theirs.things):
        same(a, b)


@given(trees)
def test_google_reads_ours_and_we_read_google(thing):
    theirs = Foreign.FromString(thing.encode())
    same(thing, theirs)
    assert Thing.decode(theirs.SerializeToString()) == thing


def test_presence_of_zero():
    assert Thing(u64=0).encode() == b"\x10\x00"
    assert Thing.decode(b"\x10\x00").u64 == 0
    assert Thing.decode(b"").u64 is None
    assert Thing.decode(b"\x40\x00").left is False


def test_last_member_of_a_oneof_wins():
    both = Thing(left=True).encode() + Thing(right=Thing(i32=1)).encode()
    assert Thing.decode(both).left is None
    assert Thing.decode(both).right == Thing(i32=1)


def test_unpacked_repeated_and_split_messages_are_merged():
    assert Thing.decode(b"\x28\x01\x2a\x02\x02\x03\x28\x04").many == (1, 2, 3, 4)
    twice = Thing(right=Thing(i32=1)).encode() + Thing(right=Thing(text="x")).encode()
    assert Thing.decode(twice).right == Thing(i32=1, text="x")


def test_unknown_fields_survive_a_rewrite():
    whole = Thing(i32=5, text="x", right=Thing(i32=7)).encode()

    @dataclass(frozen=True, kw_only=True)
    class Narrow(Message):
        i32: int = scalar(1, "int32")

    kept = replace(Narrow.decode(whole), i32=6).encode()
    assert Thing.decode(kept) == Thing(i32=6, text="x", right=Thing(i32=7))


@given(trees, st.data())
def test_broken_bytes_are_typed_errors(thing, data):
    raw = bytearray(thing.encode())
    raw = raw[: data.draw(st.integers(0, len(raw)))]
    if raw:
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        Thing.decode(bytes(raw), where="here")
    except CorruptTableError as error:
        assert error.where == "here"


def test_depth_is_bounded():
    raw = b""
    for _ in range(200):
        raw = Thing(raw=b"").encode() + b"\x4a" + bytes_length(raw) + raw
    with pytest.raises(CorruptTableError, match="nested"):
        Thing.decode(raw)


def bytes_length(raw: bytes) -> bytes:
    from boathouse.bits.protobuf import varint

    return varint(len(raw))


@dataclass(frozen=True, kw_only=True)
class Leaf(Message):
    shared = True
    number: int = scalar(1, "uint64")
    text: str = scalar(2, "string")


@dataclass(frozen=True, kw_only=True)
class Tree(Message):
    leaves: tuple[Leaf, ...] = repeated(1, Leaf)
    one: Leaf | None = nested(2, Leaf)


def test_shared_messages_are_decoded_once_and_written_as_they_were_read():
    odd = b"\x12\x01a\x08\x07\x1d\0\0\0\0"  # the fields in another order, an unknown one at the end
    raw = b"\x0a" + bytes([len(odd)]) + odd
    first, again = Tree.decode(raw), Tree.decode(raw + b"\x12\x02\x08\x07")
    assert first.leaves == (Leaf(number=7, text="a", unknown=b"\x1d\0\0\0\0"),) and again.one == Leaf(number=7)
    assert again.leaves[0] is first.leaves[0]
    assert first.encode() == raw
    changed = replace(first, leaves=(*first.leaves, replace(first.leaves[0], number=8), Leaf(number=9)))
    assert Tree.decode(changed.encode()) == changed and changed.encode().startswith(raw)
    with pytest.raises(CorruptTableError):
        Tree.decode(b"\x0a\x02\x08\x80")
    with pytest.raises(CorruptTableError):
        Tree.decode(b"\x0a\x02\x08\x80")

"""Metadata: headers, sizes, hostile offsets, names (checklist V-009 to V-020)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import InvalidArgumentError, MalformedVariant
from boathouse.variant import Variant, VariantBuilder, build_metadata, parse_metadata
from boathouse.variant.validate import validate_bytes

NULL = b"\x00"


def metadata(strings, *, size=1, flag=False, version=1, extra=0, offsets=None, reserved=False) -> bytes:
    """Metadata by hand, right or wrong."""
    raw = [s if isinstance(s, bytes) else s.encode() for s in strings]
    if offsets is None:
        offsets = [sum(map(len, raw[:i])) for i in range(len(raw) + 1)]
    header = version | flag << 4 | reserved << 5 | (size - 1) << 6
    numbers = [len(raw), *offsets]
    return bytes([header]) + b"".join(n.to_bytes(size, "little") for n in numbers) + b"".join(raw) + bytes(extra)


def oddities(raw: bytes) -> list[str]:
    found = validate_bytes(raw, NULL)
    assert all(f.kind == "oddity" and f.path == "metadata" for f in found), found
    return [f.message for f in found]


@pytest.mark.spec("V-009")
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("flag", [False, True])
def test_every_offset_size_and_flag(size, flag):
    raw = metadata(["a", "bb", "ccc"], size=size, flag=flag)
    found = parse_metadata(raw)
    assert found.names() == ("a", "bb", "ccc")
    assert (found.flag, found.size, len(found)) == (flag, len(raw), 3)
    assert [found.ids(name) for name in ("a", "ccc", "d")] == [(0,), (2,), ()]
    assert oddities(raw) == []


@pytest.mark.spec("V-010")
def test_reserved_bit_is_ignored_and_told():
    raw = metadata(["a"], reserved=True)
    assert parse_metadata(raw).names() == ("a",)
    assert oddities(raw) == ["the reserved bit 5 of the header is set"]


@pytest.mark.parametrize("version", [0, 2, 15])
def test_other_versions_are_refused_by_number(version):
    with pytest.raises(MalformedVariant, match=f"version {version}") as caught:
        Variant(metadata(["a"], version=version), NULL)
    assert caught.value.offset == 0


@pytest.mark.spec("V-012")
@pytest.mark.parametrize(("count", "size"), [(0, 1), (1, 1), (255, 2), (256, 2), (65_535, 3), (65_536, 3)])
def test_dictionary_sizes(count, size):
    names = [f"{i:05d}" for i in range(count)]
    raw = build_metadata(names)
    assert (raw[0] >> 6) + 1 == size
    assert int.from_bytes(raw[1 : 1 + size], "little") == count
    found = parse_metadata(raw)
    assert len(found) == count
    assert found.size == len(raw)
    if count:
        assert (found.name(0), found.name(count - 1)) == (names[0], names[-1])
        assert found.ids(names[-1]) == (count - 1,)


@pytest.mark.spec("V-012")
def test_255_and_256_bytes_of_names_and_counts_in_one_byte():
    assert build_metadata(["x" * 255])[0] == 0x11
    assert build_metadata(["x" * 256])[0] == 0x51
    assert build_metadata(["x" * 65_536])[0] == 0x91
    assert build_metadata(["x" * (1 << 24)])[0] == 0xD1
    assert parse_metadata(build_metadata(["x" * (1 << 24)])).name(0) == "x" * (1 << 24)


@pytest.mark.spec("V-012")
def test_dictionary_of_2_to_the_24_names():
    count = 1 << 24
    raw = b"\xc1" + count.to_bytes(4, "little") + bytes(4 * (count + 1))
    found = parse_metadata(raw)
    assert len(found) == count
    assert found.name(count - 1) == ""
    with pytest.raises(MalformedVariant, match="field id"):
        found.name(count)


@pytest.mark.spec("V-013")
def test_offsets_that_fall_or_lead_beyond_the_end_are_refused_others_told():
    with pytest.raises(MalformedVariant, match="offset 1 is below the previous one") as caught:
        parse_metadata(metadata(["ab", "c"], offsets=[2, 1, 3]))
    assert caught.value.offset == 3
    with pytest.raises(MalformedVariant, match="beyond the metadata"):
        parse_metadata(metadata(["ab", "c"], offsets=[0, 2, 4]))
    raw = metadata(["ab", "c"], offsets=[1, 2, 3])
    assert parse_metadata(raw).names() == ("b", "c")
    assert oddities(raw) == ["the first dictionary offset is not 0"]
    raw = metadata(["ab", "cd"], offsets=[0, 2, 3])
    assert parse_metadata(raw).names() == ("ab", "c")
    assert oddities(raw) == ["1 bytes follow the dictionary"]


@pytest.mark.spec("V-014")
def test_bytes_after_the_dictionary_are_tolerated_and_told():
    raw = metadata(["a", "b"], extra=5)
    found = parse_metadata(raw)
    assert found.names() == ("a", "b")
    assert found.size == len(raw) - 5
    assert oddities(raw) == ["5 bytes follow the dictionary"]


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_metadata_cut_at_every_length(size):
    raw = metadata(["a", "bc"], size=size)
    for length in range(len(raw)):
        with pytest.raises(MalformedVariant):
            Variant(raw[:length], NULL)


def test_dictionary_sizes_that_lie_are_refused_before_anything_is_allocated():
    for size in (1, 2, 3, 4):
        with pytest.raises(MalformedVariant, match="do not fit"):
            parse_metadata(bytes([1 | (size - 1) << 6]) + b"\xff" * size + bytes(8))


@pytest.mark.spec("V-015")
def test_names_that_are_not_utf8_are_refused_when_reached():
    raw = metadata([b"\xff", "ok", b"\xed\xa0\x80"])
    value = bytes([0x02, 1, 1, 0, 2, 0x0C, 7])
    assert Variant(raw, value).to_python() == {"ok": 7}
    assert Variant(raw, value)["ok"].scalar == 7
    for id in (0, 2):
        bad = Variant(raw, bytes([0x02, 1, id, 0, 2, 0x0C, 7]))
        assert bad.get(("ok",)) is None
        for reading in (bad.to_python, bad.keys, bad.to_json, lambda bad=bad: hash(bad)):
            with pytest.raises(MalformedVariant, match="not UTF-8"):
                reading()
    assert len([m for m in oddities(raw) if "not UTF-8" in m]) == 2


@pytest.mark.spec("V-016")
@pytest.mark.parametrize("names", [["b", "a", "c"], ["a", "a", "c"]])
def test_a_lying_sorted_flag_changes_no_answer(names):
    raw = metadata(names, flag=True)
    assert any("sorted" in message for message in oddities(raw))
    for id, name in enumerate(names):
        value = Variant(raw, bytes([0x02, 1, id, 0, 2, 0x0C, 40 + id]))
        assert value.to_python() == {name: 40 + id}
        assert value.get((name,)).scalar == 40 + id


@pytest.mark.spec("V-017")
def test_without_the_flag_nothing_is_assumed():
    for names in (["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]):
        raw = metadata(names)
        assert oddities(raw) == []
        value = Variant(raw, bytes([0x02, 3, *(names.index(n) for n in "abc"), 0, 2, 4, 6, 12, 1, 12, 2, 12, 3]))
        assert [value[n].scalar for n in "abc"] == [1, 2, 3]
        assert value.to_python() == {"a": 1, "b": 2, "c": 3}


@pytest.mark.spec("V-018")
def test_empty_dictionary_empty_name_and_repeated_names():
    assert Variant(b"\x01\x00\x00", b"\x02\x00\x00").to_python() == {}
    assert Variant(metadata([""]), bytes([0x02, 1, 0, 0, 1, 0])).to_python() == {"": None}
    assert Variant.from_python({"": {"": 1}})[""][""].scalar == 1
    raw = metadata(["a", "b", "a"])
    assert parse_metadata(raw).ids("a") == (0, 2)
    assert oddities(raw) == []
    for id in (0, 2):
        assert Variant(raw, bytes([0x02, 1, id, 0, 2, 12, 5])).get("$.a").scalar == 5


@pytest.mark.spec("V-019")
@given(st.lists(st.text(max_size=5)))
@settings(max_examples=100)
def test_written_metadata_is_canonical(names):
    raw = build_metadata(names)
    strings = sorted({name.encode() for name in names if not any(0xD800 <= ord(c) < 0xE000 for c in name)})
    found = parse_metadata(raw)
    assert [found.name_bytes(id) for id in range(len(found))] == strings
    assert found.flag
    assert found.size == len(raw)
    assert raw == metadata(strings, flag=True, size=1 if len(b"".join(strings)) < 256 and len(strings) < 256 else 2)
    assert validate_bytes(raw, NULL) == ()


def test_empty_metadata_is_three_bytes():
    assert build_metadata([]) == b"\x11\x00\x00" == Variant.from_python(5).metadata


@pytest.mark.spec("V-020")
def test_names_sort_by_utf8_bytes_not_utf16():
    # U+FF5E is EF BD 9E, U+1F600 is F0 9F 98 80; in UTF-16 the second starts with the smaller D83D.
    value = Variant.from_python({"😀": 1, "～": 2})
    assert parse_metadata(value.metadata).names() == ("～", "😀")
    assert value.keys() == ("～", "😀")
    assert value.to_json() == '{"～":2,"😀":1}'
    assert value.validate() == ()
    assert json.loads(value.to_json()) == value.to_python() == {"～": 2, "😀": 1}
    other = Variant(metadata(["😀", "～"]), bytes([0x02, 2, 0, 1, 0, 2, 4, 12, 1, 12, 2]))  # as the JVM orders
    assert other == value
    assert [f.message for f in other.validate()] == ["the fields are not in the order of their names"]


def test_unpaired_surrogates_are_no_names():
    with pytest.raises(InvalidArgumentError, match="surrogate"):
        build_metadata(["\ud800"])
    with pytest.raises(InvalidArgumentError, match="surrogate"):
        VariantBuilder().begin_object().key("\ud800").append_null().end().finish()
    assert Variant.from_python({"a": 1}).get(("\ud800",)) is None


def test_a_builder_may_be_given_the_metadata():
    raw = metadata(["z", "b", "a"])
    value = VariantBuilder(raw).append({"a": 1, "z": 2}).finish()
    assert isinstance(value, Variant)
    assert value.metadata == raw
    assert value.value[2:4] == bytes([2, 0])
    assert value.to_python() == {"a": 1, "z": 2}
    with pytest.raises(InvalidArgumentError, match="not have the name 'q'"):
        VariantBuilder(raw).append({"q": 1}).finish()

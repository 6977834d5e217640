"""What validate says: errors are what readers refuse, oddities what they read without loss."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.errors import InvalidArgumentError
from boathouse.variant import Finding, Variant, build_metadata
from boathouse.variant.validate import validate_bytes
from makers import variants as made

AB = build_metadata("ab")


def test_a_finding_is_a_frozen_value():
    (found,) = Variant(AB, b"\x0c\x01\xff\xff").validate()
    assert found == Finding("oddity", "2 bytes follow the value", 2, "$")
    assert str(found) == "oddity at $, byte 2: 2 bytes follow the value"
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.kind = "error"
    assert isinstance(Variant(AB, b"\x0c\x01\xff\xff").validate(), tuple)


@given(made.trees(types=tuple(t for t in made.TYPE_NAMES if "decimal" not in t)), st.integers(0, 2**32))
@settings(max_examples=80)
def test_what_is_written_has_no_findings_and_other_legal_encodings_no_errors(tree, seed):
    assert made.encode(tree).validate() == ()
    loose = made.encode_loosely(tree, Random(seed), gaps=True)
    assert {f.kind for f in loose.validate()} <= {"oddity"}


@pytest.mark.parametrize(
    ("metadata", "value", "kind", "message", "offset", "path"),
    [
        (b"", b"\x00", "error", "the metadata is empty", 0, "metadata"),
        (b"\x02\x00\x00", b"\x00", "error", "the metadata is of version 2", 0, "metadata"),
        (b"\x01\x05\x00", b"\x00", "error", "the offsets of 5 names", 3, "metadata"),
        (AB + b"\x00", b"\x00", "oddity", "1 bytes follow the dictionary", 7, "metadata"),
        (AB, b"", "error", "beyond the end", 0, "$"),
        (AB, b"\x0c", "error", "1 bytes beyond the end", 0, "$"),
        (AB, b"\x05\xff", "error", "not UTF-8", 1, "$"),
        (AB, b"\x54", "oddity", "type 21", 0, "$"),
        (AB, b"\x02\x01\x00\x00\x02\x05\xff", "error", "not UTF-8", 6, "$['a']"),
        (AB, b"\x02\x01\x07\x00\x01\x00", "error", "field id 7", 2, "$"),
        (AB, b"\x02\x02\x00\x00\x00\x01\x02\x00\x00", "error", "'a' twice", 0, "$"),
        (AB, b"\x02\x02\x01\x00\x00\x01\x02\x00\x00", "oddity", "not in the order of their names", 2, "$"),
        (AB, b"\x03\x01\x00\x06\x03\x01\x00\x02\x05\xff", "error", "not UTF-8", 9, "$[0][0]"),
        (AB, b"\x03\x02\x00\x00\x01\x00", "oddity", "values are shared", 2, "$"),
        (AB, b"\x03\x02\x01\x00\x02\x00\x04", "oddity", "not in the order of its elements", 2, "$"),
        (AB, b"\x03\x01\x01\x02\xff\x00", "oddity", "1 bytes before a value", 4, "$"),
        (AB, b"\x03\x01\x00\x03\x0c\x01\x00", "error", "the last offset is 3, the values take 2", 3, "$"),
        (AB, b"\x20\x0a\x01\x00\x00\x00", "oddity", "scale 10 in a decimal4", 1, "$"),
        (AB, b"\x20\x27\x01\x00\x00\x00", "error", "a decimal of scale 39", 1, "$"),
    ],
)
def test_findings_say_what_and_where(metadata, value, kind, message, offset, path):
    (found,) = validate_bytes(metadata, value)
    assert (found.kind, found.offset, found.path) == (kind, offset, path)
    assert message in found.message


def test_everything_is_found_at_once():
    children = b"".join([b"\x05\xff", b"\x54", b"\x0c\x01", b"\x05\xfe"])
    value = bytes([0x02, 4, 2, 0, 1, 3, 0, 2, 3, 5, 7]) + children
    found = validate_bytes(build_metadata("abcd"), value + b"\x00")
    assert [(f.kind, f.path) for f in found] == [
        ("oddity", "$"),  # bytes after the value
        ("oddity", "$"),  # fields out of order
        ("error", "$['c']"),
        ("oddity", "$['a']"),
        ("error", "$['d']"),
    ]


def test_findings_of_a_child_count_from_its_own_bytes():
    whole = Variant(AB, b"\x03\x02\x00\x01\x03\x00\x05\xff")
    assert [(f.offset, f.path) for f in whole[1].validate()] == [(1, "$")]
    assert whole[0].validate() == ()


def test_no_more_than_a_thousand_findings():
    count = 5_000
    raw = (
        b"\x17"
        + count.to_bytes(4, "little")
        + b"".join((2 * i).to_bytes(2, "little") for i in range(count + 1))
        + b"\x05\xff" * count
    )
    found = Variant(AB, raw).validate()
    assert len(found) == 1_001
    assert found[-1].message == "further findings are omitted"


def test_the_package_loads_what_is_asked_for():
    script = (
        "import sys, boathouse.variant as v; assert 'boathouse.variant.builder' not in sys.modules;"
        "x = v.Variant.from_python({'a': [1]}); assert x.to_json() == '{\"a\":[1]}';"
        "assert x.get('$.a[0]').scalar == 1;"
        "assert x.validate() == () and hash(x) == hash(v.Variant.from_json(x.to_json()));"
        "bad = {'pyspark', 'pyarrow', 'obstore', 'sqlglot', 'orjson'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        import boathouse.variant

        boathouse.variant.nothing  # noqa: B018


def test_options_that_do_not_exist():
    with pytest.raises(InvalidArgumentError, match="Choose"):
        Variant.from_python(1).to_json(special="maybe")

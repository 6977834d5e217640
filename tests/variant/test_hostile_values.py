"""Wrong bytes through paths, casts, schemas, edits and the command's tree: typed errors, and nothing else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.cli.variant_tree import inspect
from boathouse.errors import BoathouseError, MalformedVariant, UnsupportedFeatureError
from boathouse.variant import edit
from boathouse.variant.cast import cast_exact, cast_value
from boathouse.variant.explode import explode
from boathouse.variant.schemas import schema_of
from boathouse.variant.value import Variant

VALUE = Variant.from_json(
    '{"a":[1,2.50,"text",null,{"b":true}],"long":"' + "x" * 70 + '","n":{"deep":[[[1e3]]]},"i":12345678901}'
)
TYPES = (
    "string", "bigint", "decimal(38,10)", "timestamp", "variant", "array<string>", "map<string,variant>",
    "struct<a:array<int>,n:map<string,array<string>>,i:double>",
)  # fmt: skip
READERS = [
    *(lambda v, t=t: cast_value(v, t, safe=True) for t in TYPES),
    *(lambda v, t=t: cast_exact(v, t) for t in TYPES),
    *(lambda v, p=p: v.get(p, "string") for p in ("$.a[4].b", "$.a[1]", "$.n.deep[0][0][0]", "$.long", "$.zz")),
    schema_of,
    lambda v: [child.to_python() for _, _, child in explode(v)],
    edit.strip_nulls,
    lambda v: edit.set(v, "$.n.deep[2]", 1),
    lambda v: edit.delete(v, "$.a[0]", "$.i"),
    lambda v: edit.array_append(v, "$.a", 1),
]


def through_everything(metadata: bytes, value: bytes) -> int:
    """How many of the readers refused."""
    inspect(metadata, value)
    try:
        v = Variant(metadata, value)
    except MalformedVariant:
        return len(READERS)
    refused = 0
    for read in READERS:
        try:
            read(v)
        except BoathouseError:
            refused += 1
    return refused


def test_the_value_itself_is_read():
    # Strictly, the whole is no bigint, decimal, timestamp or array, and $.a[2] no int.
    assert through_everything(VALUE.metadata, VALUE.value) == 5


@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_mutated_bytes(at: random.Random, count: int):
    metadata, value = bytearray(VALUE.metadata), bytearray(VALUE.value)
    for _ in range(count):
        part = at.choice([metadata, value, value, value])
        part[at.randrange(len(part))] = at.choice([0, 1, 2, 3, 0xFF, at.randrange(256)])
    through_everything(bytes(metadata), bytes(value))


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_random_bytes(metadata: bytes, value: bytes):
    through_everything(b"\x11" + metadata, value)


def test_every_cut():
    for cut in range(len(VALUE.value)):
        found = inspect(VALUE.metadata, VALUE.value[:cut])
        assert [f for f in found["findings"] if f["kind"] == "error"]
        if cut:
            with pytest.raises((MalformedVariant, UnsupportedFeatureError)):
                schema_of(Variant(VALUE.metadata, VALUE.value[:cut]))

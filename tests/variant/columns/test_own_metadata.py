"""Names in columns whose rows each have their own metadata: the same answers as one dictionary at a time."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from boathouse.errors import MalformedVariant
from boathouse.variant import Variant
from boathouse.variant.columns.extract import extract
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import column
from boathouse.variant.columns.names import ABSENT, SEVERAL, Dictionaries
from boathouse.variant.metadata import parse_metadata

NAMES = (
    b"",
    b"a",
    b"id",
    b"oar",
    b"type",
    b"login",
    b"payload",
    b"created_at",
    b"an_even_longer_name",
    b"twin",
    b"cox",
)


def dictionary(names: list[bytes], width: int = 1) -> bytes:
    edges = np.cumsum([0, *map(len, names)]).tolist()
    numbers = b"".join(number.to_bytes(width, "little") for number in (len(names), *edges))
    return bytes([1 | (width - 1) << 6]) + numbers + b"".join(names)


def expected(raw: bytes, name: bytes) -> int:
    """By the one-value path."""
    try:
        found = parse_metadata(raw).ids(name.decode())
    except MalformedVariant:
        return ABSENT
    return found[0] if len(found) == 1 else SEVERAL if found else ABSENT


def rows(rng: random.Random, count: int) -> list[bytes]:
    """Few shapes, names changed in some rows (others, twins), some rows cut, stretched or wounded."""
    shapes = [(rng.sample(NAMES, rng.randrange(0, 9)), rng.randrange(1, 5)) for _ in range(3)]
    shapes.append(([b"%03d" % i for i in range(60)], 1))
    out = []
    for i in range(count):
        names, width = rng.choice(shapes)
        names = [*names, b"k%06d" % i]
        if rng.random() < 0.1:
            at = rng.randrange(len(names))
            same = [name for name in (*NAMES, *names) if len(name) == len(names[at])]
            names[at] = rng.choice(same)
        raw = bytearray(dictionary(names, width))
        fate = rng.random()
        if fate < 0.03:
            del raw[rng.randrange(len(raw)) :]
        elif fate < 0.08:
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        elif fate < 0.12:
            raw += rng.randbytes(5)
        elif fate < 0.15:
            raw[1 + width] ^= 1  # a gap before the first name, or an overlap
        out.append(bytes(raw))
    return out


def unlike(raws: list[bytes]) -> Dictionaries:
    data = np.frombuffer(b"".join(raws), np.uint8)
    end = np.cumsum([len(raw) for raw in raws])
    start = end - [len(raw) for raw in raws]
    return Dictionaries(data, start, end, np.arange(len(raws), dtype=np.int32), distinct=False)


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(12))
def test_ids_are_those_of_each_dictionary(seed: int) -> None:
    rng = random.Random(seed)
    raws = rows(rng, 600)
    whole = unlike(raws)
    for first, last in ((0, 600), (0, 250), (250, 590), (590, 600)):
        part = whole.slice(first, last)
        for name in (*NAMES, b"k%06d" % 300, b"absent"):
            assert part.ids(name.decode()).tolist() == [expected(raw, name) for raw in raws[first:last]], name
        assert [code for code in range(last - first) if part.message(code)] == [
            i for i, raw in enumerate(raws[first:last]) if _is_broken(raw)
        ]


def _is_broken(raw: bytes) -> bool:
    try:
        parse_metadata(raw)
    except MalformedVariant:
        return True
    return False


def test_a_name_that_differs_in_one_row_is_not_taken_for_the_others() -> None:
    common = [b"created_at", b"login", b"payload"]
    raws = [dictionary([*common, b"k%06d" % i]) for i in range(300)]
    raws[200] = dictionary([b"created_by", b"logon", b"payload", b"k%06d" % 200])
    raws[299] = dictionary([b"created_at", b"login", b"payl0ad", b"payload"])
    whole = unlike(raws)
    for part in (whole.slice(0, 150), whole.slice(150, 300), whole):
        at = {len(part) - 100} if len(part) == 300 else {50} if int(part.start[0]) else set()
        absent = [ABSENT if i in at else 0 for i in range(len(part))]
        assert part.ids("created_at").tolist() == absent
        assert part.ids("login").tolist() == [1 if one == 0 else one for one in absent]
        payload = [2] * len(part)
        if len(part) == 300 or at:
            payload[-1] = 3
        assert part.ids("payload").tolist() == payload


def test_extraction_from_rows_with_their_own_metadata() -> None:
    rng = random.Random(3)
    values: list[object] = [
        {"actor": {"login": f"cox{i}", "id": i}, f"k{i:05}": {"size": i}, "size": rng.choice([i, None, "x", {"a": 1}])}
        if i % 5
        else {f"k{i:05}": 1, "size": i}
        for i in range(9000)
    ]
    variants = [None if i % 97 == 0 else Variant.from_python(value) for i, value in enumerate(values)]
    storage = pa.array(
        [None if one is None else {"metadata": one.metadata, "value": one.value} for one in variants],
        pa.struct([("metadata", pa.binary()), ("value", pa.binary())]),
    )
    assert not column(storage).meta.distinct
    logins = [f"cox{i}" if i % 5 and i % 97 else None for i in range(9000)]
    assert extract(storage, "$.actor.login", "string").to_pylist() == logins
    assert extract(storage.slice(8000), "$.actor.login", "string").to_pylist() == logins[8000:]
    own = [i if i == 8999 else None for i in range(9000)]
    assert extract(storage, "$.k08999.size", "int").to_pylist() == own


def test_dictionary_encoded_rows_keep_their_own_metadata() -> None:
    variants = [Variant.from_python({f"own{i}": i}) for i in range(1100)]
    storage = pa.array([{"metadata": one.metadata, "value": one.value} for one in variants])
    turned = pa.DictionaryArray.from_arrays(pa.array(range(1099, -1, -1), pa.int32()), storage)
    found = column(turned).slice(100, 1100)
    assert extract(found, "$.own7", "int").to_pylist() == [7 if i == 992 else None for i in range(1000)]


def test_malformed_rows_among_their_like() -> None:
    variants = [Variant.from_python({"size": i, f"own{i:05}": i}) for i in range(3000)]
    metadata = [one.metadata for one in variants]
    metadata[2500] = metadata[2500][:-1]
    metadata[2600] = metadata[2600][:2] + b"\x09" + metadata[2600][3:]
    storage = pa.array([{"metadata": m, "value": one.value} for m, one in zip(metadata, variants, strict=True)])
    with pytest.raises(MalformedVariant, match="end beyond its bytes") as caught:
        extract(storage, "$.size", "int")
    assert caught.value.row == 2500
    lenient = Lenient()
    found = extract(storage, "$.size", "int", lenient=lenient).to_pylist()
    assert lenient.rows == [2500, 2600]
    assert found == [None if i in (2500, 2600) else i for i in range(3000)]

"""Bytes that become text, and bytes that inflate: right, or an error that names the file."""

import gzip
import tracemalloc
import zlib

import pyarrow as pa
import pytest

from boathouse.bits.inflate import FLOOR, RATIO, Budget
from boathouse.bits.text import json_value, text
from boathouse.errors import CorruptTableError


def raw(data: bytes) -> bytes:
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    return squeeze.compress(data) + squeeze.flush()


def test_text() -> None:
    assert text("käse 🧀".encode(), "f") == "käse 🧀"
    assert text(memoryview(b"abc"), None) == "abc"
    with pytest.raises(CorruptTableError, match=r"a name is not UTF-8: byte 0x9d at 2 \[file:///f\]"):
        text(b"ab\x9d\xff", "file:///f", "a name")


def test_json() -> None:
    assert json_value(b'{"a": [1, "\\ud83e\\uddc0"]}', "f") == {"a": [1, "🧀"]}
    assert json_value('"\\\\ud800"', "f") == "\\ud800"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "the schema is not JSON"),
        (b'"\xff"', "the schema is not UTF-8"),
        (b"[" * 100_000, "the schema is nested too deeply"),
        (b'"\\ud800"', "the schema contains an unpaired surrogate"),
        (b'"\\uDC00"', "the schema contains an unpaired surrogate"),
    ],
)
def test_json_that_is_damaged(data: bytes, message: str) -> None:
    with pytest.raises(CorruptTableError, match=message) as caught:
        json_value(data, "file:///f", "the schema")
    assert caught.value.where == "file:///f"


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 5_000_000])
def test_what_was_compressed_comes_back(size: int) -> None:
    data = bytes(i * i % 251 for i in range(min(size, 70_000))) * (size // 70_000 + 1)
    data = data[:size]
    assert Budget(100, "f").deflate(raw(data)) == data
    assert Budget(100, "f").deflate(memoryview(raw(data))) == data
    assert Budget(100, "f").gzip(gzip.compress(data)) == data
    assert Budget(100, "f").gzip(gzip.compress(data) + gzip.compress(b"more") + b"\0" * 9) == data + b"more"
    assert Budget(100, "f").deflate(zlib.compress(data)[2:-1]) == data
    packed = pa.Codec("zstd").compress(data)
    assert Budget(100, "f").stream(pa.input_stream(packed, compression="zstd").read) == data


def zeros(size: int) -> tuple[bytes, bytes, bytes]:
    data = bytes(size)
    return raw(data), gzip.compress(data), pa.Codec("zstd").compress(data).to_pybytes()


def test_bombs_are_refused_in_bounded_memory() -> None:
    deflated, zipped, zstd = zeros(3 << 20)
    floor = 1 << 20
    tracemalloc.start()
    for inflate in (
        lambda b: b.deflate(deflated),
        lambda b: b.gzip(zipped),
        lambda b: b.stream(pa.input_stream(pa.py_buffer(zstd), compression="zstd").read),
        lambda b: b.take(3 << 20),
    ):
        with pytest.raises(CorruptTableError, match="4,000 bytes inflate to more than 1,048,576") as caught:
            inflate(Budget(4_000, "file:///f", floor))
        assert caught.value.where == "file:///f"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * floor


def test_blocks_share_the_budget_of_their_file() -> None:
    deflated = raw(bytes(1 << 20))
    budget = Budget(len(deflated), "f", 3 << 20)
    for _ in range(3):
        assert len(budget.deflate(deflated)) == 1 << 20
    with pytest.raises(CorruptTableError, match="inflate to more than"):
        budget.deflate(deflated)


def test_a_large_file_may_inflate_to_its_plausible_size() -> None:
    data = bytes(RATIO * 100)
    assert len(Budget(100, "f", 0).deflate(raw(data))) == len(data)
    with pytest.raises(CorruptTableError, match="inflate to more than 20,000"):
        Budget(100, "f", 0).deflate(raw(data + b"\0"))
    assert FLOOR >= 1 << 20


@pytest.mark.parametrize("size", [100, 3_000_000])
def test_damage_of_compressed_data(size: int) -> None:
    data = bytes(i * i % 251 for i in range(70_000)) * (size // 70_000 + 1)
    deflated, zipped = raw(data), gzip.compress(data)
    zstd = pa.Codec("zstd").compress(data).to_pybytes()
    for cut in (1, len(deflated) // 2):
        with pytest.raises(CorruptTableError, match="cut short"):
            Budget(100, "f").deflate(deflated[:-cut])
        with pytest.raises(CorruptTableError, match="cut short"):
            Budget(100, "f").gzip(zipped[:-cut])
    with pytest.raises(CorruptTableError, match="does not decompress"):
        Budget(100, "f").stream(pa.input_stream(pa.py_buffer(zstd[: len(zstd) // 2]), compression="zstd").read)
    with pytest.raises(CorruptTableError, match="does not decompress"):
        Budget(100, "f").gzip(zipped[:-5] + b"12345")
    with pytest.raises(CorruptTableError, match="does not decompress"):
        Budget(100, "f").gzip(zipped + b"no gzip")
    with pytest.raises(CorruptTableError, match="5 bytes follow"):
        Budget(100, "f").deflate(deflated + b"abcde")

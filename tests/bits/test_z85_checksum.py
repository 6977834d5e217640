"""Z85 and CRC-32 against their published vectors."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from boathouse.bits import z85
from boathouse.bits.checksum import check_crc32, crc32
from boathouse.errors import CorruptTableError, InvalidArgumentError


def test_the_vector_of_rfc_32() -> None:
    assert z85.encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    assert z85.decode("HelloWorld") == bytes.fromhex("864FD26FB559F75B")


def test_the_uuid_of_the_delta_protocol() -> None:
    assert uuid.UUID(bytes=z85.decode("^-aqEH.-t@S}K{vb[*k^")) == uuid.UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")


@pytest.mark.spec("D-213")
@example(bytes(range(256)))
@given(st.binary(max_size=64).map(lambda b: b[: len(b) // 4 * 4]))
def test_round_trip(data: bytes) -> None:
    assert z85.decode(z85.encode(data)) == data


@pytest.mark.parametrize("text", ["abc", "abcd\\", "#####", "ab cd", "abcdé"])
def test_broken_text_is_refused(text: str) -> None:
    with pytest.raises(CorruptTableError):
        z85.decode(text, where="x")


def test_refuses_odd_lengths() -> None:
    with pytest.raises(InvalidArgumentError):
        z85.encode(b"abc")


def test_crc32() -> None:
    assert crc32(b"123456789") == 0xCBF43926
    check_crc32(b"123456789", bytes.fromhex("cbf43926"))
    with pytest.raises(CorruptTableError, match="cbf43926"):
        check_crc32(b"123456789", bytes.fromhex("cbf43927"))

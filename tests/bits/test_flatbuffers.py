"""Fields of flatbuffers, on the messages that Arrow writes."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from boathouse.bits import flatbuffers


def message() -> bytes:
    """The metadata of a batch of 7 rows with one column of 64-bit integers without nulls."""
    batch = pa.record_batch({"a": pa.array(range(7), pa.int64())})
    return pa.ipc.read_message(batch.serialize()).metadata.to_pybytes()


def test_fields_of_an_arrow_message() -> None:
    raw = message()
    top = flatbuffers.root(raw)
    header = flatbuffers.field(raw, top, 2)
    assert header is not None and flatbuffers.field(raw, top, 4) is None and flatbuffers.field(raw, top, 99) is None
    batch = flatbuffers.target(raw, header)
    length, buffers = flatbuffers.field(raw, batch, 0), flatbuffers.field(raw, batch, 2)
    assert length is not None and struct.unpack_from("<q", raw, length) == (7,)
    assert buffers is not None and flatbuffers.field(raw, batch, 3) is None  # nothing is compressed
    found = flatbuffers.structs(raw, flatbuffers.target(raw, buffers), struct.Struct("<qq"))
    assert [size for _, size in found] == [0, 56]


def test_data_that_is_cut_short_or_leads_outside() -> None:
    raw = message()
    for data in (b"", raw[:3]):
        with pytest.raises(struct.error):
            flatbuffers.root(data)
    with pytest.raises(struct.error):
        flatbuffers.field(raw, len(raw), 0)
    with pytest.raises(struct.error, match="offsets at byte -96"):
        flatbuffers.field(bytes(4) + struct.pack("<i", 100), 4, 0)
    with pytest.raises(struct.error, match="a vector of 5 elements"):
        flatbuffers.structs(struct.pack("<I", 5) + bytes(64), 0, struct.Struct("<qq"))

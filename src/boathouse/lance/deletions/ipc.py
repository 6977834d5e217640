"""Arrow files of one column of integers, read batch by batch within a budget of bytes.

Arrow itself allocates whatever size a compressed buffer claims to have, as often as the footer names its batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from boathouse.bits import flatbuffers
from boathouse.bits.inflate import Budget
from boathouse.errors import CorruptTableError

_TAIL: Final = struct.Struct("<i6s")
"""The length of the footer before it, and the magic."""
_BLOCK: Final = struct.Struct("<qi4xq")
_BUFFER: Final = struct.Struct("<qq")
_SIZE: Final = struct.Struct("<q")
_BATCHES: Final = 3
"""Field of a Footer."""
_HEADER, _METADATA = 2, 4
"""Fields of a Message."""
_BUFFERS, _COMPRESSION = 2, 3
"""Fields of a RecordBatch."""
_PLAIN: Final = -1
"""The size that stands before a buffer which is stored as it is."""
_V5: Final = 4
"""Below this version the codec may be named by metadata of the message (Arrow 0.17)."""


def read_integers(data: bytes, where: str) -> pa.ChunkedArray:
    """The only column of an Arrow file. Raises CorruptTableError if it is none, or not of integers, or has nulls."""
    try:
        column = _read(data, where)
        column.validate(full=True)
    except CorruptTableError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError, EOFError, struct.error) as error:
        # Arrow's message may not be text.
        raise CorruptTableError(f"a deletion file that is not an Arrow file: {error}", where=where) from error
    if column.null_count:
        raise CorruptTableError("a deletion file with nulls", where=where)
    return column


def _read(data: bytes, where: str) -> pa.ChunkedArray:
    schema = pa.ipc.open_file(pa.BufferReader(data)).schema
    if len(schema) != 1 or not pa.types.is_integer(schema.field(0).type):
        raise CorruptTableError(f"a deletion file of {len(schema)} columns, not one of offsets", where=where)
    budget, found = Budget(len(data), where), []
    for start in _blocks(data):
        message = pa.ipc.read_message(pa.py_buffer(data).slice(start))
        for size in _sizes(message):
            budget.take(size)
        found.append(pa.ipc.read_record_batch(message, schema).column(0))
    return pa.chunked_array(found, schema.field(0).type)


def _blocks(data: bytes) -> list[int]:
    """Where the footer says that the batches are."""
    length, _ = _TAIL.unpack(data[-_TAIL.size :])
    footer = data[len(data) - _TAIL.size - length : -_TAIL.size]
    vector = flatbuffers.field(footer, flatbuffers.root(footer), _BATCHES)
    if vector is None:
        return []
    starts = [block[0] for block in flatbuffers.structs(footer, flatbuffers.target(footer, vector), _BLOCK)]
    if any(not 0 <= start <= len(data) for start in starts):
        raise ValueError("a batch outside the file")
    return starts


def _sizes(message: pa.ipc.Message) -> Iterator[int]:
    """The sizes that the buffers of a batch have, or claim to have once they are decompressed."""
    if message.type != "record batch":
        raise ValueError(f"a message of the type {message.type}")
    raw = message.metadata.to_pybytes()
    top = flatbuffers.root(raw)
    header = flatbuffers.field(raw, top, _HEADER)
    if header is None or (message.metadata_version < _V5 and flatbuffers.field(raw, top, _METADATA) is not None):
        raise ValueError("a message of an experimental version")
    batch = flatbuffers.target(raw, header)
    buffers = flatbuffers.field(raw, batch, _BUFFERS)
    compressed = flatbuffers.field(raw, batch, _COMPRESSION) is not None
    if buffers is None:
        return
    for offset, length in flatbuffers.structs(raw, flatbuffers.target(raw, buffers), _BUFFER):
        if min(offset, length) < 0 or offset + length > message.body.size:
            raise ValueError(f"a buffer of {length} bytes at byte {offset} of {message.body.size}")
        claimed = _PLAIN
        if compressed and length:
            (claimed,) = _SIZE.unpack(message.body.slice(offset, min(length, _SIZE.size)).to_pybytes())
        yield length if claimed == _PLAIN else claimed

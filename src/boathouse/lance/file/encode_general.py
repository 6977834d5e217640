"""General compression of buffers: zstd and lz4, each block preceded by its length (file format, "General")."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from boathouse.lance.file import messages as m
from boathouse.lance.file.encode_values import Buffers, Chunked
from boathouse.lance.file.hints import Hints
from boathouse.lance.file.plain import Fixed, Plain, Var

LEAST_BYTES: Final = 32 << 10
"""Pages with less text than this are not compressed unless the field's metadata asks for it."""
GAIN: Final = 0.8
"""What remains of a sample must be less than this."""
_SAMPLES, _SAMPLE_BYTES = 4, 16 << 10
_SCHEMES: Final = {"lz4": (1, "lz4_raw", 4), "zstd": (2, "zstd", 8)}
_LEVEL: Final = 1
"""Of zstd: higher ones take longer and save little of chunks as small as these."""


@dataclass(frozen=True, slots=True)
class General:
    """A scheme and its level."""

    scheme: str
    level: int | None = None

    def block(self, raw: Any) -> bytes:
        """The bytes as one compressed block."""
        _, _, prefix = _SCHEMES[self.scheme]
        return len(raw).to_bytes(prefix, "little") + self._engine().compress(raw, asbytes=True)

    def blocks(self, parts: Buffers) -> list[bytes]:
        """Each of the parts as a block."""
        engine, (_, _, prefix) = self._engine(), _SCHEMES[self.scheme]
        return [len(raw).to_bytes(prefix, "little") + engine.compress(raw, asbytes=True) for raw in parts]

    def around(self, encoding: m.CompressiveEncoding) -> m.CompressiveEncoding:
        """The encoding of what is in the blocks, compressed."""
        how = m.BufferCompression(scheme=_SCHEMES[self.scheme][0], level=self.level)
        return m.CompressiveEncoding(general=m.General(compression=how, values=encoding))

    def of(self, chunked: Chunked) -> Chunked:
        """Chunks of which the first buffer is compressed; readers expect no other to be."""
        first, *rest = chunked.buffers
        return replace(chunked, buffers=[self.blocks(first), *rest], encoding=self.around(chunked.encoding))

    def _engine(self) -> pa.Codec:
        _, name, _ = _SCHEMES[self.scheme]
        if name != "zstd":
            return pa.Codec(name)
        return pa.Codec(name, compression_level=_LEVEL if self.level is None else self.level)


def general_of(values: Plain, hints: Hints) -> General | None:
    """The compression that the field's metadata asks for, else of texts that a sample shows to become smaller."""
    if hints.scheme is not None:
        return None if hints.scheme == "none" else General(hints.scheme, hints.level)
    if not isinstance(values, Var) or len(values.data) < LEAST_BYTES:
        return None
    found = General("zstd", hints.level)
    step = len(values.data) // _SAMPLES
    data = np.ascontiguousarray(values.data)
    parts = [data[i * step : i * step + _SAMPLE_BYTES].data for i in range(_SAMPLES)]
    return found if sum(map(len, found.blocks(parts))) < GAIN * sum(map(len, parts)) else None


def split(chunked: Chunked, width: int) -> Chunked:
    """Flat numbers of `width` bytes with the bytes of one place together, in each chunk."""
    (first,) = chunked.buffers
    parts = [np.frombuffer(raw, np.uint8).reshape(-1, width).T.tobytes() for raw in first]
    encoding = m.CompressiveEncoding(byte_stream_split=m.ByteStreamSplit(values=chunked.encoding))
    return replace(chunked, buffers=[parts], encoding=encoding)


def compressed(chunked: Chunked, values: Plain, general: General, hints: Hints, floats: bool) -> Chunked:
    """The chunks compressed; of plain numbers their bytes are split first if the metadata says so, or a part of the
    chunks is smaller for it."""
    numbers = isinstance(values, Fixed) and values.width in (4, 8) and chunked.encoding.flat is not None
    if not numbers or hints.split == "off" or (hints.split == "auto" and not floats):
        return general.of(chunked)
    assert isinstance(values, Fixed)
    by_place = split(chunked, values.width)
    if hints.split == "on":
        return general.of(by_place)
    sizes = [sum(map(len, general.blocks(c.buffers[0][:_SAMPLES]))) for c in (chunked, by_place)]
    return general.of(by_place if sizes[1] < sizes[0] else chunked)

"""Data files of version 0.1: plain pages, located by a table of (field, batch), in the batches in which they were
written.

The format has no validity: nulls of fixed width are read as zero, null strings and empty strings both as null, or both
as empty if the field cannot be null.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.lance.file import messages as m
from boathouse.lance.file.assemble import dictionary_of, typed
from boathouse.lance.file.columns import naming, split
from boathouse.lance.file.container import Source
from boathouse.lance.file.fields import Dictionary
from boathouse.lance.file.pages import Wanted
from boathouse.lance.file.plain import Bits, Fixed, Ints, Plain, Var, Vectors, buffer, byte_width, unpack_bits
from boathouse.lance.file.schema import Node, arrow_type, tree
from boathouse.lance.file.segments import Broken, NotRead, unsigned

_FOOTER = struct.Struct("<qHH4s")


class LegacyReader:
    """Fields of a file of version 0.1."""

    def __init__(self, source: Source) -> None:
        self._source = source
        position, *_ = _FOOTER.unpack(source.read(source.size - _FOOTER.size, _FOOTER.size).tobytes())
        metadata = m.LegacyMetadata.decode(self._prefixed(position), where=source.uri)
        manifest = m.LegacyManifest.decode(self._prefixed(metadata.manifest_position), where=source.uri)
        self.fields = manifest.fields
        self.metadata = dict(manifest.schema_metadata)
        self._batches = list(metadata.batch_offsets) or [0]
        if self._batches[0] != 0 or any(b < a for a, b in pairwise(self._batches)):
            raise Broken("batches that decrease")
        self.rows = self._batches[-1]
        nodes = {n.id: n for top in tree(self.fields, where=source.uri) for n in top.walk()}
        self._nodes = nodes
        self._first_id = min(nodes, default=0)
        span = max(nodes, default=-1) - self._first_id + 1
        batches = len(self._batches) - 1
        raw = source.read(metadata.page_table_position, span * batches * 16)
        self._pages = unsigned(raw, 8).astype(np.int64).reshape(span, batches, 2)

    def _prefixed(self, position: int) -> bytes:
        """A message, preceded by its u32 length."""
        size = int.from_bytes(self._source.read(position, 4).tobytes(), "little")
        return self._source.read(position + 4, size).tobytes()

    def size(self, node: Node) -> int:
        return max(self._source.size // max(len(self._nodes), 1), 1)

    def read(self, node: Node, wanted: Wanted) -> list[pa.Array]:
        with naming(self._source.uri, f"field `{node.name}`"):
            out = []
            for batch, part in split(wanted, self._batches[:-1], self._batches[1:]):
                if isinstance(part, range):
                    out.append(self._read(node, batch, part.start, part.stop))
                else:
                    near = self._read(node, batch, int(part[0]), int(part[-1]) + 1)
                    out.append(near.take(pa.array(part - part[0])))
            return out

    def _read(self, node: Node, batch: int, start: int, stop: int) -> pa.Array:
        """Values `start` to `stop` of a field in a batch."""
        kind = arrow_type(node)
        own = self._nodes.get(node.id)
        if own is None or pa.types.is_null(kind):
            return pa.nulls(stop - start, kind)
        if node.logical_type == "struct":
            children = [self._read(child, batch, start, stop) for child in node.children]
            return pa.Array.from_buffers(kind, stop - start, [None], 0, 0, children)
        position, length = self._pages[node.id - self._first_id, batch].tolist()
        if stop > length:
            raise Broken(f"a page of {length} values where {stop} are expected")
        if node.children and node.logical_type in ("list", "list.struct", "large_list", "large_list.struct"):
            return self._list(node, kind, batch, position, start, stop)
        if pa.types.is_dictionary(kind):
            return self._dictionary(own, kind, position, start, stop)
        if node.children:
            raise NotRead(f"{node.logical_type} of version 0.1")
        return self._plain(kind, position, start, stop, nullable=node.field.nullable)

    def _plain(self, kind: pa.DataType, position: int, start: int, stop: int, *, nullable: bool) -> pa.Array:
        """An empty string is null if the field may be null."""
        if _is_string(kind):
            values = self._strings(position + 8 * start, stop - start, large=_is_large(kind))
            return typed(values, kind, np.diff(values.offsets) > 0 if nullable else None)
        return typed(self._fixed(kind, position, start, stop), kind, None)

    def _fixed(self, kind: pa.DataType, position: int, start: int, stop: int) -> Plain:
        if pa.types.is_fixed_size_list(kind):
            dim = kind.list_size
            return Vectors(dim, self._fixed(kind.value_type, position, start * dim, stop * dim))
        if pa.types.is_boolean(kind):
            first = start // 8
            raw = self._source.read(position + first, (stop + 7) // 8 - first)
            return Bits(unpack_bits(raw, start % 8, stop - start))
        if pa.types.is_nested(kind):
            raise NotRead(f"{kind} of version 0.1")
        width = byte_width(kind)
        return Fixed(self._source.read(position + start * width, (stop - start) * width).reshape(-1, width))

    def _strings(self, position: int, count: int, *, large: bool) -> Var:
        """i64 positions in the file, one more than strings; the bytes are between the first and the last."""
        if not count:
            return Var(np.zeros(1, np.int64), np.empty(0, np.uint8))
        places = self._offsets(position, count, 8)
        data = self._source.read(int(places[0]), int(places[-1] - places[0]))
        return Var(places - places[0], data, 8 if large else 4)

    def _offsets(self, position: int, count: int, width: int) -> Ints:
        places = unsigned(self._source.read(position, (count + 1) * width), width).astype(np.int64)
        if (np.diff(places) < 0).any():
            raise Broken("offsets that decrease")
        return places

    def _list(self, node: Node, kind: pa.DataType, batch: int, position: int, start: int, stop: int) -> pa.Array:
        width = 8 if pa.types.is_large_list(kind) else 4
        offsets = self._offsets(position + width * start, stop - start, width)
        inner = self._read(node.children[0], batch, int(offsets[0]), int(offsets[-1]))
        ends: npt.NDArray[Any] = offsets - offsets[0]
        ends = ends.astype(f"<i{width}")
        return pa.Array.from_buffers(kind, stop - start, [None, buffer(ends)], 0, 0, [inner])

    def _dictionary(self, node: Node, kind: pa.DataType, position: int, start: int, stop: int) -> pa.Array:
        keys = self._plain(kind.index_type, position, start, stop, nullable=False)
        place = node.field.dictionary or Dictionary()
        if _is_string(kind.value_type):
            values = self._strings(place.offset, place.length, large=_is_large(kind.value_type))
            words = typed(values, kind.value_type, np.diff(values.offsets) > 0 if node.field.nullable else None)
        else:
            words = typed(self._fixed(kind.value_type, place.offset, 0, place.length), kind.value_type, None)
        codes = keys.to_numpy(zero_copy_only=False)
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(words):
            raise Broken(f"a key beyond a dictionary of {len(words)}")
        return dictionary_of(keys, words, kind)


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_binary(kind) or _is_large(kind)


def _is_large(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)

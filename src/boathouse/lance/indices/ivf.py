"""The files of one part of an IVF index: centroids, and of each partition the rows that are in it, with their vectors,
or codes of them (Vector Indices, "Storage Layout (V3)").

Partitions follow each other in the auxiliary file. In an index by cosine vectors are of length 1. What stands for a
vector in PQ is its difference from the centroid, but for dot products; the codes of a partition are stored one
sub-vector after another, those of 4 bits two in a byte, the first one lower. A graph beside them (HNSW) is not read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits.protobuf import Message, nested, repeated, scalar
from boathouse.compute.distances import distances
from boathouse.lance.file.reader import LanceFile
from boathouse.lance.indices.stored import StoredIndex
from boathouse.table.features.random_access import Numbers

INDEX, AUXILIARY = "index.idx", "auxiliary.idx"
KINDS: Final = frozenset(f"IVF_{graph}{kind}" for graph in ("", "HNSW_") for kind in ("FLAT", "PQ", "SQ"))
_ELEMENTS: Final = 1 << 20
"""So many of vectors are decoded at once."""
_CODE_BYTES: Final = 256 << 20
"""Of the codes of one partition, which are read whole."""
_TENSORS: Final = {1: "<f2", 2: "<f4", 3: "<f8", 4: "<u1"}
Floats = npt.NDArray[np.float32]
Vector = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Tensor(Message):
    data_type: int = scalar(1, "enum")
    shape: tuple[int, ...] = repeated(2, "uint32")
    data: bytes = scalar(3, "bytes")

    def array(self) -> npt.NDArray[Any]:
        """Raises ValueError, LookupError if the data are not those of the shape, or of a type that is not read."""
        return np.frombuffer(self.data, _TENSORS[self.data_type]).reshape(self.shape)


@dataclass(frozen=True, kw_only=True)
class Ivf(Message):
    """`offsets` and `lengths` are those of the partitions' rows, in the auxiliary file alone."""

    offsets: tuple[int, ...] = repeated(2, "uint64")
    lengths: tuple[int, ...] = repeated(3, "uint32")
    centroids: Tensor | None = nested(4, Tensor)


@dataclass(frozen=True)
class IvfPart:
    """One part, open. Whatever reads it raises CorruptTableError, ValueError, LookupError, OSError for damage."""

    kind: str
    metric: str
    centroids: npt.NDArray[Any]
    partitions: Ivf
    file: LanceFile
    storage: dict[str, Any]

    @staticmethod
    def open(index: StoredIndex, stack: ExitStack) -> IvfPart | None:
        """None for an index of another kind."""
        head = stack.enter_context(index.open(INDEX))
        described = json.loads(head.metadata["lance:index"])
        if described["type"] not in KINDS:
            return None
        ivf = Ivf.decode(head.global_buffer(int(head.metadata["lance:ivf"])), where=head.uri)
        file = stack.enter_context(index.open(AUXILIARY))
        partitions = Ivf.decode(file.global_buffer(int(file.metadata["lance:ivf"])), where=file.uri)
        if ivf.centroids is None:
            raise ValueError("an IVF index without centroids")
        centroids = ivf.centroids.array()
        ends = np.cumsum(np.array(partitions.lengths, np.int64))
        begins = np.array(partitions.offsets, np.int64)
        if centroids.ndim != 2 or not len(centroids) == len(begins) == len(ends):
            raise ValueError(f"{len(centroids)} centroids, {len(begins)} offsets and {len(ends)} lengths of partitions")
        if ends[-1] != file.num_rows or (begins != ends - np.array(partitions.lengths)).any():
            raise ValueError(f"partitions of {int(ends[-1])} rows in a file of {file.num_rows}")
        storage = json.loads(json.loads(file.metadata["storage_metadata"])[0])
        kind = described["type"].rpartition("_")[2]
        return IvfPart(kind, described["distance_type"], centroids, partitions, file, storage)

    def nearest_partitions(self, vector: Vector, count: int) -> list[int]:
        """Those whose centroids are nearest, nearest first; empty ones are left out."""
        if vector.shape != self.centroids.shape[1:]:
            raise ValueError(f"centroids of {self.centroids.shape[1]} numbers for a vector of {len(vector)}")
        metric = "l2" if self.metric == "cosine" else self.metric
        rows = pa.array(np.ascontiguousarray(self.centroids).reshape(-1))
        held = pa.FixedSizeListArray.from_arrays(rows, self.centroids.shape[1])
        far = distances(held, self._query(vector).astype(self.centroids.dtype), metric)
        nearest = np.argsort(far, kind="stable")[:count].tolist()
        return [i for i in nearest if self.partitions.lengths[i]]

    def rows(self, partition: int, vector: Vector) -> Iterator[tuple[Numbers, Floats]]:
        """The ids of its rows, and how far their vectors are, or about that."""
        start, length = self.partitions.offsets[partition], self.partitions.lengths[partition]
        codes = self._codes(start, length) if self.kind == "PQ" else None
        table = self._table(partition, vector) if self.kind == "PQ" else None
        slab = max(1, _ELEMENTS // max(1, len(vector)))
        for first in range(start, start + length, slab):
            rows = range(first, min(first + slab, start + length))
            ids = self.file.read(["_rowid"], rows).column(0)
            if ids.null_count:
                raise ValueError("rows without an id")
            if codes is not None and table is not None:
                mine = codes[:, first - start : rows.stop - start]
                far = table[np.arange(len(mine))[:, None], mine].sum(axis=0, dtype=np.float32)
            else:
                far = self._measured(rows, vector)
            yield ids.to_numpy().astype(np.int64), far

    def _query(self, vector: Vector) -> Vector:
        """Of length 1 in an index by cosine."""
        if self.metric != "cosine":
            return vector
        wide = vector.astype(np.float64)
        with np.errstate(all="ignore"):
            return (wide / np.sqrt(wide @ wide)).astype(np.float32)

    def _measured(self, rows: range, vector: Vector) -> Floats:
        """Of vectors that are stored as they are, or rounded to steps between two bounds (SQ)."""
        if self.kind == "FLAT":
            return distances(_one(self.file.read(["flat"], rows).column(0)), vector, self.metric)
        bounds, bits = self.storage["bounds"], self.storage["num_bits"]
        codes = _bytes_of(_one(self.file.read(["__sq_code"], rows).column(0)))
        if bits != 8 or codes.shape[1] != len(vector):
            raise ValueError(f"scalar codes of {bits} bits, {codes.shape[1]} for vectors of {len(vector)}")
        step = (float(bounds["end"]) - float(bounds["start"])) / 255
        values = (codes * np.float32(step) + np.float32(bounds["start"])).astype(np.float32)
        held = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), len(vector))
        metric = "l2" if self.metric == "cosine" else self.metric
        return distances(held, self._query(vector).astype(np.float32), metric)

    def _codes(self, start: int, length: int) -> npt.NDArray[np.uint8]:
        """The codes of a partition: a row for each sub-vector."""
        bits, parts, _ = self._book
        width = parts * bits // 8
        if length * width > _CODE_BYTES:
            raise ValueError(f"a partition of {length:,} codes, which is not read whole")
        raw = _bytes_of(_one(self.file.read(["__pq_code"], range(start, start + length)).column(0)))
        if raw.shape[1] != width:
            raise ValueError(f"codes of {raw.shape[1]} bytes where {width} are expected")
        codes = raw.reshape(width, length) if self.storage.get("transposed") else raw.T
        return codes if bits == 8 else np.stack((codes & 15, codes >> 4), axis=1).reshape(parts, length)

    @cached_property
    def _book(self) -> tuple[int, int, Floats]:
        """Bits of a code, the number of sub-vectors, and of each of these what its codes stand for."""
        bits, parts = int(self.storage["nbits"]), int(self.storage["num_sub_vectors"])
        size = self.centroids.shape[1]
        tensor = Tensor.decode(self.file.global_buffer(int(self.storage["codebook_position"])), where=self.file.uri)
        if bits not in (4, 8) or parts < 1 or size % parts or parts * bits % 8:
            raise ValueError(f"{parts} codes of {bits} bits for vectors of {size}")
        return bits, parts, tensor.array().astype(np.float32).reshape(parts, 1 << bits, size // parts)

    def _table(self, partition: int, vector: Vector) -> Floats:
        """How far each code of each sub-vector is; their sum is how far a vector is."""
        _, parts, book = self._book
        query = self._query(vector).astype(np.float32)
        with np.errstate(all="ignore"):
            if self.metric == "dot":
                found = 1 / np.float32(parts) - np.einsum("ijk,ik->ij", book, query.reshape(parts, -1))
            else:
                between = book - (query - self.centroids[partition]).astype(np.float32).reshape(parts, 1, -1)
                found = np.einsum("ijk,ijk->ij", between, between)
        return np.asarray(found, np.float32)


def _one(column: pa.ChunkedArray) -> pa.FixedSizeListArray:
    if not pa.types.is_fixed_size_list(column.type) or column.null_count:
        raise ValueError(f"vectors or codes of {column.type}, {column.null_count} of them null")
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)


def _bytes_of(codes: pa.FixedSizeListArray) -> npt.NDArray[np.uint8]:
    """A row of bytes for each."""
    values = codes.flatten()
    if values.type != pa.uint8() or values.null_count:
        raise ValueError(f"codes of {values.type}")
    return values.to_numpy().reshape(len(codes), codes.type.list_size)

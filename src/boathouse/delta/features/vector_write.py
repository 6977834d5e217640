"""Marks rows of data files as deleted: writes a file of deletion vectors, and the actions that put them in force
(PROTOCOL.md, "Deletion Vectors")."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from boathouse.bits import system, z85
from boathouse.bits.roaring import Bitmap, deserialize64, serialize64
from boathouse.delta.commit.known_files import added_again, stats_with_rows, vector_of
from boathouse.delta.features.deletion_vectors import PORTABLE, load_all
from boathouse.delta.stats.parsed import TIGHT
from boathouse.delta.stats.written import dump_stats
from boathouse.storage import PutMode, Stores
from boathouse.table.edits import SetDeletes

Action = dict[str, Any]
_VERSION: Final = b"\x01"


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A file that was written, and the descriptor of each vector in it."""

    uri: str
    descriptors: Sequence[Mapping[str, Any]]


def write_vectors(bitmaps: Sequence[Bitmap], root: str, stores: Stores) -> VectorFile:
    """One file with a vector for each bitmap, in the table's folder."""
    id = system.current().uuid4()
    data, descriptors = bytearray(_VERSION), []
    for bitmap in bitmaps:
        vector = struct.pack("<I", PORTABLE) + serialize64(bitmap)
        descriptors.append(
            {
                "storageType": "u",
                "pathOrInlineDv": z85.encode(id.bytes),
                "offset": len(data),
                "sizeInBytes": len(vector),
                "cardinality": len(bitmap),
            }
        )
        data += struct.pack(">i", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    uri = f"{root}/deletion_vector_{id}.bin"
    storage, key = stores.resolve(uri)
    storage.put(key, bytes(data), PutMode.CREATE)
    return VectorFile(uri, descriptors)


def marked(
    edits: Sequence[SetDeletes], root: str, stores: Stores, data_change: bool
) -> tuple[list[Action], tuple[str, ...]]:
    """The add actions of files that lost rows, and the files that hold their vectors.

    An add repeats what the log has of the file; its statistics count the rows of the file and are no longer tight.
    """
    units = [e.units for e in edits]
    if not units:
        return [], ()
    rows = [row for u in units for row in u.select(["path", "size", "native"]).to_pylist()]
    news = [deserialize64(v) for e in edits for v in e.vectors]
    before = load_all([vector_of(row["native"]) for row in rows], root, stores)
    bitmaps = [new if old is None else deserialize64(old) | new for new, old in zip(news, before, strict=True)]
    file = write_vectors(bitmaps, root, stores)
    adds = (add for u in units for add in added_again(u, data_change))
    marks = [
        {**add, "stats": _wide(add.get("stats"), row, stores), "deletionVector": dict(descriptor)}
        for add, row, descriptor in zip(adds, rows, file.descriptors, strict=True)
    ]
    return marks, (file.uri,)


def _wide(text: str | None, row: Mapping[str, Any], stores: Stores) -> str:
    """Statistics with the number of rows, which a file with a vector must have, and bounds that may be too wide."""
    document = stats_with_rows(text, row, stores)
    return dump_stats({k: v for k, v in document.items() if k != TIGHT} | {TIGHT: False})

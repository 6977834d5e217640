"""Blobs of rows that are read to be written again: each with the file that has its bytes."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.vector import only_where
from boathouse.storage import join
from boathouse.types.blobs import FILE

INLINE: Final = 0
PACKED: Final = 1
DEDICATED: Final = 2
EXTERNAL: Final = 3
"""Kinds of blobs of version 2.2: in the data file, with others in a file beside it, alone in one, and in a file of any
other program, by its URI."""


def beside(uri: str, blob_id: int) -> str:
    """The file of blobs beside a data file, by its number."""
    return join(uri.removesuffix(".lance"), f"{blob_id:032b}"[::-1] + ".blob")


def with_files(stored: pa.ChunkedArray, kind: pa.StructType, uri: str, version: str) -> pa.ChunkedArray:
    """What a data file stores of blobs, with the files of their bytes, in the type of the rows of a write. Blobs in the
    files of other programs have none, and neither has null, which a file of 2.0 does not store as such."""
    return pa.chunked_array([_with_files(chunk, kind, uri, version) for chunk in stored.chunks], kind)


def _with_files(stored: pa.StructArray, kind: pa.StructType, uri: str, version: str) -> pa.Array:
    parts = {stored.type.field(i).name: part for i, part in enumerate(stored.flatten())}
    own = pa.repeat(pa.scalar(uri), len(stored))
    if version == "2.0":
        absent = pc.and_(pc.equal(parts["size"], 0), pc.greater(parts["position"], 0))
        files = only_where(pc.invert(absent), own)
    elif "kind" in parts:
        files = _of_kinds(parts, own, uri)
    else:
        files = own
    parts[FILE] = only_where(stored.is_valid(), files) if stored.null_count else files
    members = [parts[f.name].cast(f.type) if f.name in parts else pa.nulls(len(stored), f.type) for f in kind]
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=stored.is_null() if stored.null_count else None)


def _of_kinds(parts: dict[str, pa.Array], own: pa.Array, uri: str) -> pa.Array:
    """The file of each blob."""
    kind = parts["kind"]
    aside = pc.is_in(kind, pa.array([PACKED, DEDICATED], kind.type))
    files = only_where(pc.equal(kind, INLINE), own)
    if not aside.true_count:
        return files
    numbers = only_where(aside, parts["blob_id"]).dictionary_encode()
    named = pa.array([beside(uri, number) for number in numbers.dictionary.to_pylist()], pa.string())
    return pc.coalesce(files, named.take(numbers.indices))

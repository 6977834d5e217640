"""Deletion files: the physical offsets of a fragment's deleted rows, all of them in every file.

`_deletions/{fragment}-{read version}-{random}.arrow` is an Arrow IPC file with one column `row_id: uint32`, in any
order; `.bin` is a portable 32-bit roaring bitmap. The format changes at 5,000 deleted rows.
"""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa

from boathouse.bits.roaring import Bitmap, deserialize32, serialize32
from boathouse.bits.system import current
from boathouse.errors import CorruptTableError, MissingFileError, NotFoundError, UnsupportedFeatureError
from boathouse.lance.deletions.ipc import read_integers
from boathouse.lance.manifests.messages import ARROW_ARRAY, BITMAP, DataFragment, DeletionFile
from boathouse.lance.new_files import put_new
from boathouse.storage import Stores, join

DELETIONS = "_deletions"
BITMAP_FROM = 5000
_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), False)])
_SUFFIX = {ARROW_ARRAY: "arrow", BITMAP: "bin"}


def deletion_uri(root: str, fragment_id: int, file: DeletionFile) -> str:
    """The location of a fragment's deletion file. Raises UnsupportedFeatureError for an unknown type of file."""
    suffix = _SUFFIX.get(file.file_type)
    if suffix is None:
        raise UnsupportedFeatureError(f"a deletion file of type {file.file_type}", where=root)
    return join(root, DELETIONS, f"{fragment_id}-{file.read_version}-{file.id}.{suffix}")


def read_deletions(stores: Stores, root: str, fragment: DataFragment) -> Bitmap:
    """The deleted offsets of a fragment with a deletion file, which is below `root`.

    Raises CorruptTableError if the file is missing, does not parse or has another number of rows than recorded.
    """
    file = fragment.deletion_file
    assert file is not None
    uri = deletion_uri(root, fragment.id, file)
    storage, key = stores.resolve(uri)
    try:
        data = storage.get(key)
    except NotFoundError as error:
        raise MissingFileError(f"the deletion file of fragment {fragment.id} is missing", where=uri) from error
    found = deserialize32(data, where=uri) if file.file_type == BITMAP else _parse_arrow(data, uri)
    if file.num_deleted_rows and len(found) != file.num_deleted_rows:
        raise CorruptTableError(
            f"a deletion file of {len(found)} rows; its fragment records {file.num_deleted_rows}", where=uri
        )
    return found


def write_deletions(
    stores: Stores, root: str, fragment_id: int, version: int, rows: Bitmap
) -> tuple[DeletionFile, str]:
    """Writes all deleted offsets of a fragment, based on `version`; the file's message and its URI."""
    kind = ARROW_ARRAY if len(rows) < BITMAP_FROM else BITMAP
    random = current().uuid4().int >> 64
    file = DeletionFile(file_type=kind, read_version=version, id=random, num_deleted_rows=len(rows))
    uri = deletion_uri(root, fragment_id, file)
    storage, key = stores.resolve(uri)
    put_new(storage, key, serialize32(rows) if kind == BITMAP else _arrow_bytes(rows))
    return file, uri


def _arrow_bytes(rows: Bitmap) -> bytes:
    batch = pa.record_batch([pa.array(rows.positions(), pa.uint32())], schema=_SCHEMA)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _parse_arrow(data: bytes, where: str) -> Bitmap:
    values = read_integers(data, where).to_numpy()
    if len(values) and not 0 <= int(values.min()) <= int(values.max()) < 1 << 32:
        raise CorruptTableError("a deletion file with offsets beyond 32 bits", where=where)
    return Bitmap.of(values.astype(np.int64))

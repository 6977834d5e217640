"""Reading position delete files, on executors too: one file's positions, as a bitmap for each path in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import DataFiles
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.errors import CorruptTableError, MissingFileError, NotFoundError
from boathouse.iceberg.data_files.reading import open_file, scan_open
from boathouse.iceberg.manifests.schemas import FILE_PATH_ID, POSITION_ID
from boathouse.parquet.matching import Matching
from boathouse.parquet.read import SourceColumn
from boathouse.types import INT64, STRING

FOUND = pa.schema(
    [
        pa.field("delete", pa.int32(), False),
        pa.field("path", pa.string(), False),
        pa.field("inline", pa.binary(), False),
    ]
)


def _id(path: tuple[str, ...]) -> int | None:
    """The ids of a delete file that was written without them."""
    return {"file_path": FILE_PATH_ID, "pos": POSITION_ID}.get(".".join(path))


@dataclass(frozen=True, slots=True)
class DeleteFileTask:
    """One delete file; `index` identifies it in the result."""

    index: int
    files: DataFiles
    uri: str
    format: int


def read_positions(task: DeleteFileTask) -> Iterator[pa.RecordBatch]:
    """Rows (delete, path as recorded, portable 64-bit bitmap), one per path; positions in any order, repeats allowed.

    Null records, as Impala writes them, delete nothing. Raises MissingFileError, CorruptTableError.
    """
    try:
        yield _positions(task)
    except NotFoundError:
        raise MissingFileError("a delete file that the table's metadata names is missing", where=task.uri) from None


def _batches(task: DeleteFileTask, columns: Sequence[SourceColumn]) -> Iterator[pa.RecordBatch]:
    source = open_file(task.format, task.files, task.uri, Matching(file_ids=_id))
    try:
        yield from scan_open(source, columns)
    finally:
        source.close()


def _positions(task: DeleteFileTask) -> pa.RecordBatch:
    columns = [
        SourceColumn("file_path", STRING, field_id=FILE_PATH_ID),
        SourceColumn("pos", INT64, field_id=POSITION_ID),
    ]
    found: dict[str, list[np.ndarray]] = {}
    for batch in _batches(task, columns):
        if batch.column(0).null_count or batch.column(1).null_count:
            batch = batch.drop_null()
        if batch.num_rows and pc.min(batch.column(1)).as_py() < 0:
            raise CorruptTableError("a delete file has a negative position", where=task.uri)
        encoded = pc.dictionary_encode(batch.column(0))
        codes = encoded.indices.to_numpy()
        positions = batch.column(1).to_numpy()
        order = np.argsort(codes, kind="stable")
        cuts = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
        for i, path in enumerate(encoded.dictionary.to_pylist()):
            found.setdefault(path, []).append(positions[order[cuts[i] : cuts[i + 1]]])
    bitmaps = [serialize64(Bitmap.of(np.concatenate(parts))) for parts in found.values()]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([task.index] * len(found), pa.int32()),
            pa.array(list(found), pa.string()),
            pa.array(bitmaps, pa.binary()),
        ],
        schema=FOUND,
    )

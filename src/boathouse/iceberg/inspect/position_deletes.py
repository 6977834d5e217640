"""The table `position_deletes`: every position that a live position delete file or deletion vector has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import data_files
from boathouse.arrow.longs import longs
from boathouse.arrow.schema import to_arrow
from boathouse.errors import CorruptTableError, MissingFileError, NotFoundError
from boathouse.iceberg.data_files.reading import open_file, scan_open
from boathouse.iceberg.deletes import vectors as deletion_vectors
from boathouse.iceberg.deletes.equality import delete_format
from boathouse.iceberg.deletes.vectors import Vector
from boathouse.iceberg.inspect.columns import PARTITION, Layout, required, struct
from boathouse.iceberg.manifests.records import EQUALITY_DELETES, partition_values
from boathouse.iceberg.manifests.schemas import FILE_PATH_ID, POSITION_ID
from boathouse.iceberg.manifests.values import arrow_array
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.parquet.matching import Matching
from boathouse.parquet.read import SourceColumn
from boathouse.types import INT64, STRING, StructType

ROW_ID: Final = 2147483544
_METRICS: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class _DeleteFile:
    """An entry of a delete manifest, with the values that all of its positions have."""

    data: Mapping[str, Any]
    spec_id: int
    partition: Mapping[int, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return str(self.data["file_path"])


def position_deletes(snapshot: IcebergSnapshot, layout: Layout) -> pa.Table:
    """As the files record them, whether they apply to a live file or not."""
    schema = _schema(snapshot, layout)
    return pa.Table.from_batches(_batches(snapshot, layout, schema), schema)


def _schema(snapshot: IcebergSnapshot, layout: Layout) -> pa.Schema:
    vectors = [pa.field(name, pa.int64()) for name in ("content_offset", "content_size_in_bytes")]
    return pa.schema(
        [
            required("file_path", pa.string()),
            required("pos", pa.int64()),
            pa.field("row", pa.struct(list(to_arrow(snapshot.schema)))),
            *layout.partition_fields,
            required("spec_id", pa.int32()),
            required("delete_file_path", pa.string()),
            *(vectors if snapshot.metadata.version > 2 else ()),
        ]
    )


def _batches(snapshot: IcebergSnapshot, layout: Layout, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    vectors: dict[str, list[_DeleteFile]] = {}
    for file in _files(snapshot):
        if str(file.data["file_format"]).upper() == "PUFFIN":
            vectors.setdefault(snapshot.paths.uri(file.path), []).append(file)
            continue
        for paths, positions, rows in _positions(snapshot, file):
            yield _batch(schema, layout, file, paths, positions, rows)
    for uri, files in vectors.items():
        described = [Vector.of(f.data) for f in files]
        loaded = deletion_vectors.load(uri, described, snapshot.stores)
        for file, vector, bitmap in zip(files, described, loaded, strict=True):
            positions = longs(bitmap.positions())
            yield _batch(schema, layout, file, pa.repeat(vector.data_file, len(positions)), positions, None)


def _files(snapshot: IcebergSnapshot) -> Iterator[_DeleteFile]:
    listing = snapshot.listing
    for source in listing.delete_manifests:
        spec = listing.spec(source)
        for entry in listing.entries(source, metrics=_METRICS):
            data = entry["data_file"]
            if data.get("content") != EQUALITY_DELETES:
                yield _DeleteFile(data, spec.id, partition_values(data, spec, source.path))


def _positions(snapshot: IcebergSnapshot, file: _DeleteFile) -> Iterator[tuple[pa.Array, pa.Array, pa.Array | None]]:
    """Paths, positions and, if the file has them, the deleted rows. Null records delete nothing."""
    uri = snapshot.paths.uri(file.path)
    row = StructType(snapshot.schema.fields)
    columns = [
        SourceColumn("file_path", STRING, field_id=FILE_PATH_ID),
        SourceColumn("pos", INT64, field_id=POSITION_ID),
        SourceColumn("row", row, field_id=ROW_ID),
    ]
    try:
        source = open_file(delete_format(file.data, uri), data_files(snapshot.stores), uri, Matching(file_ids=_id))
    except NotFoundError:
        raise MissingFileError("a delete file that the table's metadata names is missing", where=uri) from None
    try:
        for batch in scan_open(source, columns):
            there = batch.filter(pc.and_(batch.column(0).is_valid(), batch.column(1).is_valid()))
            if len(there) and pc.min(there.column(1)).as_py() < 0:
                raise CorruptTableError("a delete file has a negative position", where=uri)
            yield there.column(0), there.column(1), there.column(2)
    finally:
        source.close()


def _id(path: tuple[str, ...]) -> int | None:
    """The ids of a delete file that was written without them."""
    return {"file_path": FILE_PATH_ID, "pos": POSITION_ID, "row": ROW_ID}.get(".".join(path))


def _batch(
    schema: pa.Schema, layout: Layout, file: _DeleteFile, paths: pa.Array, positions: pa.Array, rows: pa.Array | None
) -> pa.RecordBatch:
    n = len(positions)
    columns = {
        "file_path": paths,
        "pos": positions,
        "row": pa.nulls(n, schema.field("row").type) if rows is None else rows.cast(schema.field("row").type),
        "spec_id": pa.repeat(pa.scalar(file.spec_id, pa.int32()), n),
        "delete_file_path": pa.repeat(file.path, n),
        **{name: _constant(file.data.get(name), n) for name in ("content_offset", "content_size_in_bytes")},
    }
    if layout.partition:
        values = [arrow_array([file.partition.get(id)], f.type) for id, f in layout.partition]
        whole = [pa.repeat(v[0], n) if v[0].is_valid else pa.nulls(n, v.type) for v in values]
        columns[PARTITION] = struct(whole, layout.partition_type, n)
    return pa.RecordBatch.from_arrays([columns[f.name] for f in schema], schema=schema)


def _constant(value: int | None, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.int64()), rows)

"""Fragments as rows of FILES: one row per fragment, with its data files as `parts`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from boathouse.errors import CorruptTableError
from boathouse.lance.manifests.messages import DataFile, DataFragment, Manifest
from boathouse.lance.options import NATIVE, NO_PARTITION
from boathouse.lance.paths import LEGACY, data_uri, file_version
from boathouse.table.sizes import FileCounts
from boathouse.table.units import LANCE, PART, files_schema, stats_type
from boathouse.types import DataType

BATCH = 4096

RowCount = Callable[[DataFragment], int]


def fragment_batches(
    manifest: Manifest, root: str, types: Sequence[DataType], rows_of: RowCount
) -> Iterator[pa.RecordBatch]:
    """FILES of all fragments, in order; `rows_of` finds the rows of a fragment that does not record them."""
    schema = files_schema(NO_PARTITION, stats_type(types), NATIVE)
    fragments = manifest.fragments
    for start in range(0, len(fragments), BATCH):
        yield _batch(manifest, fragments[start : start + BATCH], root, schema, rows_of)


def units_of(manifest: Manifest, root: str, rows_of: RowCount) -> pa.Table:
    """FILES of all fragments as one table."""
    schema = files_schema(NO_PARTITION, stats_type(()), NATIVE)
    return pa.Table.from_batches(fragment_batches(manifest, root, (), rows_of), schema)


def _batch(
    manifest: Manifest, fragments: Sequence[DataFragment], root: str, schema: pa.Schema, rows_of: RowCount
) -> pa.RecordBatch:
    n = len(fragments)
    parts = [_parts(manifest, fragment, root) for fragment in fragments]
    counts = [fragment_counts(manifest, f, rows_of) for f in fragments]
    columns: dict[str, Any] = {
        "unit": pa.array([f.id for f in fragments], pa.int64()),
        "path": pa.array([p[0]["path"] if p else root for p in parts], pa.string()),
        "format": pa.array([LANCE] * n, pa.int8()),
        "size": pa.array([c[0] for c in counts], pa.int64()),
        "rows": pa.array([c[1] for c in counts], pa.int64()),
        "deleted": pa.array([c[2] for c in counts], pa.int64()),
        "spec": pa.array([0] * n, pa.int32()),
        "partition": pa.array([{}] * n, NO_PARTITION),
        "parts": pa.array(parts, pa.list_(PART)),
        "first_row_id": pa.array([0 if f.has_row_ids else None for f in fragments], pa.int64()),
        "native": pa.array([{"fragment": f.encode()} for f in fragments], NATIVE),
    }
    arrays = [columns[f.name] if f.name in columns else pa.nulls(n, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _parts(manifest: Manifest, fragment: DataFragment, root: str) -> list[dict[str, Any]]:
    """The data files, and then overlays of them, without columns: whoever compares units sees that it has others.
    Raises CorruptTableError."""
    found = [part_of(manifest, f, root) for f in fragment.files]
    for overlay in fragment.overlays:
        if overlay.data_file is None:
            raise CorruptTableError(f"a data overlay of fragment {fragment.id} without a file", where=root)
        found.append(part_of(manifest, overlay.data_file, root) | {"fields": [], "columns": []})
    return found


def part_of(manifest: Manifest, file: DataFile, root: str) -> dict[str, Any]:
    """The entry of a data file in `parts`. Raises CorruptTableError."""
    path = data_uri(manifest, file, root)
    if file_version(file, path) != LEGACY and len(file.fields) != len(file.column_indices):
        raise CorruptTableError(
            f"a data file with {len(file.fields)} fields and {len(file.column_indices)} column indices", where=path
        )
    return {
        "path": path,
        "size": file.file_size_bytes or None,
        "format": LANCE,
        "fields": list(file.fields),
        "columns": list(file.column_indices),
    }


def fragment_counts(manifest: Manifest, fragment: DataFragment, rows_of: RowCount) -> FileCounts:
    sizes = [f.file_size_bytes for f in fragment.files]
    rows = trusted_rows(manifest, fragment) or rows_of(fragment)
    return sum(sizes) if all(sizes) else None, rows, _deleted(manifest, fragment)


def trusted_rows(manifest: Manifest, fragment: DataFragment) -> int:
    """The recorded physical rows, 0 for unknown: writers before 0.8 recorded no version, and wrong numbers."""
    return fragment.physical_rows if manifest.writer_version is not None else 0


def _deleted(manifest: Manifest, fragment: DataFragment) -> int | None:
    """0 without a deletion file; None if its writer did not count."""
    if fragment.deletion_file is None:
        return 0
    return (fragment.deletion_file.num_deleted_rows or None) if manifest.writer_version is not None else None

"""Opens units whose data file is Parquet."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from boathouse.parquet.read import scan_file
from boathouse.parquet.resolve import SourceColumn
from boathouse.table.reading import UnitRead


def read_parquet_unit(read: UnitRead) -> Iterator[pa.RecordBatch]:
    """The columns of one Parquet file, pruned by row group. Raises CorruptTableError, SchemaMismatchError."""
    return scan_file(
        read.spec.files,
        read.unit["path"],
        [SourceColumn(c.name, c.type, c.physical, c.field_id, c.default, c.nullable) for c in read.columns],
        size=read.unit["size"],
        row_filter=read.where,
        deleted=read.deleted,
        positions=read.positions,
        matching=read.spec.matching,
    )

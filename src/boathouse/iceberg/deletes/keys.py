"""Reads the key rows of equality delete files, on executors too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from boathouse.errors import CorruptTableError, MissingFileError, NotFoundError
from boathouse.iceberg.data_files.reading import open_file, scan_open
from boathouse.parquet.read import SourceColumn, output_schema
from boathouse.table.tasks import ReadColumn, ReadSpec


def load_keys(read: ReadSpec, delete: Mapping[str, Any], keys: Sequence[ReadColumn]) -> pa.Table:
    """The key columns of one delete file, with the types of the table's columns; found by field id only.

    Raises MissingFileError, CorruptTableError (also if the file lacks a key column: a missing value is not null).
    """
    columns = [SourceColumn(k.name, k.type, field_id=k.field_id) for k in keys]
    uri = delete["path"]
    try:
        source = open_file(delete["format"], read.files, uri, read.matching)
    except NotFoundError:
        raise MissingFileError("a delete file that the table's metadata names is missing", where=uri) from None
    try:
        for column in columns:
            if source.resolver.found(column) is None:
                raise CorruptTableError(
                    f"an equality delete file lacks its key column `{column.name}` (field id {column.field_id})",
                    where=uri,
                )
        return pa.Table.from_batches(scan_open(source, columns), output_schema(columns))
    except CorruptTableError as error:
        error.where = error.where or uri
        raise
    finally:
        source.close()

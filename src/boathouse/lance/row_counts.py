"""The number of rows of a data file, if its manifest does not record it."""

from __future__ import annotations

from boathouse.arrow.filesystem import data_files
from boathouse.lance.manifests.messages import DataFile
from boathouse.lance.read import open_part
from boathouse.storage import Stores
from boathouse.table.tasks import data_files_of, version_words


def count_rows(stores: Stores, uri: str, file: DataFile, version: int, table: str) -> int:
    """The number of rows of one data file of a version of `table`, including deleted ones. Raises CorruptTableError."""
    part = {
        "path": uri,
        "size": file.file_size_bytes or None,
        "fields": list(file.fields),
        "columns": list(file.column_indices),
    }
    with data_files_of(version_words(version, table)):
        opened = open_part(data_files(stores), part)
        try:
            return opened.num_rows
        finally:
            opened.close()

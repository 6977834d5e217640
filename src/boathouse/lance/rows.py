"""The number of rows of a data file, if its manifest does not record it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boathouse.bits.lazy_import import Late
from boathouse.lance.messages import DataFile
from boathouse.storage import Stores

if TYPE_CHECKING:
    from boathouse.arrow import filesystem
    from boathouse.lance import read
else:
    filesystem = Late("boathouse.arrow.filesystem")
    read = Late("boathouse.lance.read")


def count_rows(stores: Stores, uri: str, file: DataFile) -> int:
    """The number of rows of one data file, including deleted ones. Raises CorruptTableError."""
    part = {
        "path": uri,
        "size": file.file_size_bytes or None,
        "fields": list(file.fields),
        "columns": list(file.column_indices),
    }
    opened = read.open_part(filesystem.data_files(stores), part)
    try:
        return opened.num_rows
    finally:
        opened.close()

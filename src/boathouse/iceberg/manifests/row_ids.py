"""The column `first_row_id`: of files that have none, inherited from their manifest (spec, "First Row ID
Inheritance")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.longs import longs
from boathouse.avro.columns import Columns
from boathouse.avro.small_files import FewColumns
from boathouse.errors import CorruptTableError
from boathouse.iceberg.manifests.entries import FILE
from boathouse.iceberg.manifests.records import DATA, DELETED, Entry, ManifestFile

_MOST = 1 << 62


def number_rows(entries: Sequence[Entry], source: ManifestFile) -> None:
    """Sets the ids in the entries of one manifest. Raises CorruptTableError."""
    number = _first(source)
    for entry in entries:
        file = entry["data_file"]
        if number is None:
            file["first_row_id"] = None
        elif file.get("first_row_id") is None and entry["status"] != DELETED:
            file["first_row_id"] = number
            number += file["record_count"]


def row_ids(
    columns: Columns | FewColumns, rows: npt.NDArray[np.int64], source: ManifestFile, nothing: pa.Array
) -> pa.Array:
    """The ids of the files of one manifest with these numbers of rows; `nothing` is an array of nulls. Raises
    CorruptTableError."""
    number = _first(source)
    if number is None:
        return nothing
    found, valid = columns.longs((FILE, "first_row_id"))
    inherits = ~valid & (columns.longs(("status",))[0] != DELETED)
    counts = np.where(inherits, rows, 0)
    inherited = number + np.cumsum(counts) - counts
    return longs(np.where(valid, found, inherited), valid | inherits)


def _first(source: ManifestFile) -> int | None:
    """The id of a manifest's first row without one. In a manifest without it, as in versions before 3 and in manifests
    of deletes, files have none either."""
    number = source.row.get("first_row_id") if source.content == DATA else None
    if number is not None and not 0 <= number < _MOST:
        raise CorruptTableError(f"the manifest list has a row whose first_row_id is {number}", where=source.path)
    return number

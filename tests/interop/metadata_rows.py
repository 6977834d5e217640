"""Metadata tables as ours and as iceberg-spark give them, made comparable."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import PurePosixPath

import pyarrow as pa

from boathouse.table.inspection import NAMES

MOST = [n for n in NAMES if n != "position_deletes"]
"""iceberg-spark fails to read `position_deletes` of a table that has lists: "Invalid partition field parent"."""


def kind(type):
    """A type without the names of items and without what may be null."""
    if pa.types.is_struct(type):
        return [(f.name, kind(f.type)) for f in type]
    if pa.types.is_map(type):
        return ["map", kind(type.key_type), kind(type.item_type)]
    if pa.types.is_list(type):
        return ["list", kind(type.value_type)]
    return str(type)


def plain(value, type):
    if value is None:
        return None
    if pa.types.is_struct(type):
        return [(f.name, plain(value[f.name], f.type)) for f in type]
    if pa.types.is_map(type):
        return sorted((k, plain(v, type.item_type)) for k, v in value)
    if pa.types.is_list(type):
        return [plain(v, type.value_type) for v in value]
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).isoformat()
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def rows(table, name):
    found = [[(f.name, plain(row[f.name], f.type)) for f in table.schema] for row in table.to_pylist()]
    if name == "metadata_log_entries":
        # The name of the newest file is that by which each of us reached it.
        found = [[(n, PurePosixPath(v).name if n == "file" else v) for n, v in row] for row in found]
    return sorted(found, key=repr)


def compared(reference, full_name, table, names):
    """Metadata tables of the table that the reference calls `full_name`, and that is open as `table`."""
    for name in names:
        mine = table.inspect.to_arrow(name)
        mine.validate(full=True)
        theirs = reference.rows(f"SELECT * FROM {full_name}.{name}")
        if name == "all_manifests" and "key_metadata" not in theirs.column_names:
            mine = mine.drop_columns(["key_metadata"])  # which later releases have
        assert [(f.name, kind(f.type)) for f in mine.schema] == [(f.name, kind(f.type)) for f in theirs.schema], name
        assert rows(mine, name) == rows(theirs, name), name

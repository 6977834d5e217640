"""FILES, DELETES and OUTCOMES: the Arrow tables that describe data files (docs/design/001-waist.md, 1 to 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import pyarrow as pa

from boathouse.arrow.schema import to_arrow_type
from boathouse.types import DataType, Partitioning, PartitionSpec

PARQUET: Final = 0
ORC: Final = 1
AVRO: Final = 2
LANCE: Final = 3

VECTOR: Final = 0
POSITION: Final = 1
EQUALITY: Final = 2

DATA_FILE: Final = "data"
DELETE_FILE: Final = "delete"
CHANGE_FILE: Final = "change"

Content = Literal["data", "changes", "positions", "keys"]
"""What files hold: rows, changed rows with `_change_type`, the places of deleted rows, or the keys of deleted rows."""
KIND_OF: Final[Mapping[Content, str]] = {
    "data": DATA_FILE, "changes": CHANGE_FILE, "positions": DELETE_FILE, "keys": DELETE_FILE,
}  # fmt: skip
"""The `kind` of OUTCOMES of a file."""

PART = pa.struct(
    [
        pa.field("path", pa.string(), False),
        pa.field("size", pa.int64()),
        pa.field("format", pa.int8(), False),
        pa.field("fields", pa.list_(pa.int32())),
        pa.field("columns", pa.list_(pa.int32())),
    ]
)


def stats_type(types: Sequence[DataType]) -> pa.StructType:
    """`struct<"0": S, "1": S, ...>` for columns of these types; null means unknown, never zero."""
    return pa.struct([pa.field(str(i), column_stats_type(to_arrow_type(t))) for i, t in enumerate(types)])


def column_stats_type(value: pa.DataType) -> pa.StructType:
    """S: bounds, whether each bound is attained, and counts, of one column of one file."""
    return pa.struct(
        [
            pa.field("lower", value),
            pa.field("upper", value),
            pa.field("lower_exact", pa.bool_()),
            pa.field("upper_exact", pa.bool_()),
            pa.field("nulls", pa.int64()),
            pa.field("nans", pa.int64()),
            pa.field("values", pa.int64()),
        ]
    )


def partition_type(specs: Partitioning | PartitionSpec) -> pa.StructType:
    """`struct<"<partition field id>": T>`: the union over all specs, in the order of first appearance."""
    found: dict[int, DataType] = {}
    for spec in specs.specs if isinstance(specs, Partitioning) else (specs,):
        for f in spec:
            found[f.id] = f.type
    return pa.struct([pa.field(str(i), to_arrow_type(t)) for i, t in found.items()])


def files_schema(partition: pa.StructType, stats: pa.StructType, native: pa.StructType) -> pa.Schema:
    """The schema of FILES."""
    return pa.schema(
        [
            pa.field("unit", pa.int64(), False),
            pa.field("path", pa.string(), False),
            pa.field("format", pa.int8(), False),
            pa.field("size", pa.int64()),
            pa.field("rows", pa.int64()),
            pa.field("deleted", pa.int64()),
            pa.field("spec", pa.int32(), False),
            pa.field("partition", partition, False),
            pa.field("sequence", pa.int64()),
            pa.field("first_row_id", pa.int64()),
            pa.field("parts", pa.list_(PART)),
            pa.field("deletes", pa.list_(pa.int32())),
            pa.field("stats", stats),
            pa.field("native", native),
        ]
    )


def deletes_schema(partition: pa.StructType = pa.struct([]), native: pa.StructType = pa.struct([])) -> pa.Schema:
    """The schema of DELETES. Vectors, and position deletes once they are resolved to units, have their bitmap inline.

    `inline` holds a portable 64-bit roaring bitmap of deleted row positions; of equality deletes, whose key columns
    have the field ids `keys`, it may hold the key rows as an Arrow IPC stream instead of a `path`. `files` is from how
    many files it is, null from one.
    """
    return pa.schema(
        [
            pa.field("delete", pa.int32(), False),
            pa.field("kind", pa.int8(), False),
            pa.field("path", pa.string()),
            pa.field("format", pa.int8()),
            pa.field("offset", pa.int64()),
            pa.field("length", pa.int64()),
            pa.field("inline", pa.binary()),
            pa.field("rows", pa.int64()),
            pa.field("files", pa.int64()),
            pa.field("sequence", pa.int64()),
            pa.field("spec", pa.int32()),
            pa.field("partition", partition),
            pa.field("everywhere", pa.bool_()),
            pa.field("unit_path", pa.string()),
            pa.field("keys", pa.list_(pa.int32())),
            pa.field("native", native),
        ]
    )


def outcomes_schema(partition: pa.StructType, stats: pa.StructType, native: pa.StructType) -> pa.Schema:
    """The schema of OUTCOMES, the results of writing: one row per written file, or a row with only an error.

    `kind` is data, delete or change. `unit` and `vector` name the planned unit and its deleted rows (a portable 64-bit
    roaring bitmap of `rows` positions); a unit that goes has `vector` null and `kind` delete. A file of deletes has a
    `path`, and as `unit_path` that of the unit that it is for, null for several of the current partition spec.
    `numbered` is above every ordinal that was given to a row with identity columns.
    """
    return pa.schema(
        [
            pa.field("kind", pa.string(), False),
            pa.field("path", pa.string()),
            pa.field("format", pa.int8()),
            pa.field("size", pa.int64()),
            pa.field("rows", pa.int64()),
            pa.field("spec", pa.int32()),
            pa.field("partition", partition),
            pa.field("first_row_id", pa.int64()),
            pa.field("parts", pa.list_(PART)),
            pa.field("stats", stats),
            pa.field("native", native),
            pa.field("unit", pa.int64()),
            pa.field("vector", pa.binary()),
            pa.field("unit_path", pa.string()),
            pa.field("inserted", pa.int64()),
            pa.field("updated", pa.int64()),
            pa.field("deleted", pa.int64()),
            pa.field("copied", pa.int64()),
            pa.field("numbered", pa.int64()),
            pa.field("error", pa.binary()),
        ]
    )


def plain_rows(schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of OUTCOMES that are no files: of columns that no row has nothing is built but their nulls, since `stats`
    and `native` may be structs of thousands of fields."""
    given = {name for row in rows for name in row}
    columns = [
        pa.array([row.get(f.name) for row in rows], f.type) if f.name in given else pa.nulls(len(rows), f.type)
        for f in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def outcome_rows(schema: pa.Schema, kind: str, format: int, spec: int, known: Mapping[str, Any]) -> pa.Table:
    """OUTCOMES rows of files of one kind: `known` are columns (arrays or lists) of equal length, the others null."""
    count = len(next(iter(known.values())))
    constant = {"kind": kind, "format": format, "spec": spec}
    columns = []
    for f in schema:
        if f.name in constant:
            columns.append(pa.repeat(pa.scalar(constant[f.name], f.type), count))
        elif f.name in known:
            values = known[f.name]
            columns.append(values if isinstance(values, pa.Array) else pa.array(values, f.type))
        else:
            columns.append(pa.nulls(count, f.type))
    return pa.Table.from_arrays(columns, schema=schema)

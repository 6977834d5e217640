"""The Avro schemas of manifest lists and manifests, of each format version (spec, "Manifests", Appendix A)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

from boathouse import types as T
from boathouse.iceberg.manifests.values import decimal_size

LIST_NAMES: Final = {
    500: "manifest_path",
    501: "manifest_length",
    502: "partition_spec_id",
    517: "content",
    515: "sequence_number",
    516: "min_sequence_number",
    503: "added_snapshot_id",
    504: "added_files_count",
    505: "existing_files_count",
    506: "deleted_files_count",
    512: "added_rows_count",
    513: "existing_rows_count",
    514: "deleted_rows_count",
    507: "partitions",
    519: "key_metadata",
    509: "contains_null",
    518: "contains_nan",
    510: "lower_bound",
    511: "upper_bound",
    520: "first_row_id",
}
ENTRY_NAMES: Final = {
    0: "status",
    1: "snapshot_id",
    3: "sequence_number",
    4: "file_sequence_number",
    2: "data_file",
    134: "content",
    100: "file_path",
    101: "file_format",
    102: "partition",
    103: "record_count",
    104: "file_size_in_bytes",
    108: "column_sizes",
    109: "value_counts",
    110: "null_value_counts",
    137: "nan_value_counts",
    125: "lower_bounds",
    128: "upper_bounds",
    131: "key_metadata",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
    **dict.fromkeys((117, 119, 121, 138, 126, 129), "key"),
    **dict.fromkeys((118, 120, 122, 139, 127, 130), "value"),
}
"""Canonical names of fields by id. Partition fields have ids from 1000 and are named `f<id>`."""

METRICS: Final = frozenset(
    {"column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"}
)

FILE_PATH_ID: Final = 2147483546
POSITION_ID: Final = 2147483545
"""The columns of files of position deletes."""

_Field = tuple[str, Any, int, str]
"""A field's name, type and id, and whether versions 1, 2 and 3 require it (r), allow it (o) or lack it (-)."""


def _map(key: int, value: int, type: str) -> dict[str, Any]:
    fields = [_required("key", "int", key), _required("value", type, value)]
    return {
        "type": "array",
        "items": {"type": "record", "name": f"k{key}_v{value}", "fields": fields},
        "logicalType": "map",
    }


def _list(id: int, type: Any) -> dict[str, Any]:
    return {"type": "array", "items": type, "element-id": id}


def _required(name: str, type: Any, id: int) -> dict[str, Any]:
    return {"name": name, "type": type, "field-id": id}


def _optional(name: str, type: Any, id: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", type], "default": None, "field-id": id}


def _fields(fields: Iterable[_Field], version: int) -> list[dict[str, Any]]:
    make = {"r": _required, "o": _optional}
    return [
        make[has[version - 1]](name, type, id) for name, type, id, has in fields if has[version - 1] != "-"
    ]  # fmt: skip


_SUMMARY: Final = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required("contains_null", "boolean", 509),
        _optional("contains_nan", "boolean", 518),
        _optional("lower_bound", "bytes", 510),
        _optional("upper_bound", "bytes", 511),
    ],
}
_LIST: Final[tuple[_Field, ...]] = (
    ("manifest_path", "string", 500, "rrr"),
    ("manifest_length", "long", 501, "rrr"),
    ("partition_spec_id", "int", 502, "rrr"),
    ("content", "int", 517, "-rr"),
    ("sequence_number", "long", 515, "-rr"),
    ("min_sequence_number", "long", 516, "-rr"),
    ("added_snapshot_id", "long", 503, "rrr"),
    ("added_files_count", "int", 504, "orr"),
    ("existing_files_count", "int", 505, "orr"),
    ("deleted_files_count", "int", 506, "orr"),
    ("added_rows_count", "long", 512, "orr"),
    ("existing_rows_count", "long", 513, "orr"),
    ("deleted_rows_count", "long", 514, "orr"),
    ("partitions", _list(508, _SUMMARY), 507, "ooo"),
    ("key_metadata", "bytes", 519, "ooo"),
    ("first_row_id", "long", 520, "--o"),
)
_DATA_FILE: Final[tuple[_Field, ...]] = (
    ("content", "int", 134, "-rr"),
    ("file_path", "string", 100, "rrr"),
    ("file_format", "string", 101, "rrr"),
    ("partition", None, 102, "rrr"),
    ("record_count", "long", 103, "rrr"),
    ("file_size_in_bytes", "long", 104, "rrr"),
    ("block_size_in_bytes", "long", 105, "r--"),
    ("column_sizes", _map(117, 118, "long"), 108, "ooo"),
    ("value_counts", _map(119, 120, "long"), 109, "ooo"),
    ("null_value_counts", _map(121, 122, "long"), 110, "ooo"),
    ("nan_value_counts", _map(138, 139, "long"), 137, "ooo"),
    ("lower_bounds", _map(126, 127, "bytes"), 125, "ooo"),
    ("upper_bounds", _map(129, 130, "bytes"), 128, "ooo"),
    ("key_metadata", "bytes", 131, "ooo"),
    ("split_offsets", _list(133, "long"), 132, "ooo"),
    ("equality_ids", _list(136, "int"), 135, "-oo"),
    ("sort_order_id", "int", 140, "ooo"),
    ("first_row_id", "long", 142, "--o"),
    ("referenced_data_file", "string", 143, "-oo"),
    ("content_offset", "long", 144, "--o"),
    ("content_size_in_bytes", "long", 145, "--o"),
)


@cache
def manifest_list(version: int) -> dict[str, Any]:
    """The schema of a manifest list."""
    return {"type": "record", "name": "manifest_file", "fields": _fields(_LIST, version)}


def avro_name(name: str) -> str:
    """`name` in Avro's syntax: other characters become `_x<hex>`, a leading digit gets `_`."""
    text = re.sub(r"[^A-Za-z0-9_]", lambda m: f"_x{ord(m[0]):X}", name)
    return f"_{text}" if not text or text[0].isdigit() else text


def partition_type(spec: T.PartitionSpec) -> dict[str, Any]:
    """The record of a spec's partition values."""
    fields = []
    for f in spec:
        name = avro_name(f.name)
        field = _optional(name, avro_type(f.type, f.recorded_id), f.recorded_id)
        if name != f.name:
            field["iceberg-field-name"] = f.name
        fields.append(field)
    return {"type": "record", "name": "r102", "fields": fields}


def avro_type(type: T.DataType, id: int) -> Any:
    """A type that is not nested; `id` makes its name unique."""
    match type:
        case T.BooleanType():
            return "boolean"
        case T.IntegerType(bits):
            return "int" if bits == 32 else "long"
        case T.FloatType(bits):
            return "float" if bits == 32 else "double"
        case T.DateType():
            return {"type": "int", "logicalType": "date"}
        case T.TimeType():
            return {"type": "long", "logicalType": "time-micros"}
        case T.TimestampType(utc, unit):
            logical = "timestamp-nanos" if unit == "ns" else "timestamp-micros"
            return {"type": "long", "logicalType": logical, "adjust-to-utc": utc}
        case T.DecimalType(precision, scale):
            return {
                "type": "fixed",
                "name": f"decimal_{precision}_{scale}_{id}",
                "size": decimal_size(precision),
                "logicalType": "decimal",
                "precision": precision,
                "scale": scale,
            }
        case T.UUIDType():
            return {"type": "fixed", "name": f"uuid_fixed_{id}", "size": 16, "logicalType": "uuid"}
        case T.FixedType(length):
            return {"type": "fixed", "name": f"fixed_{length}_{id}", "size": length}
        case T.BinaryType():
            return "bytes"
        case T.StringType():
            return "string"
    raise TypeError(f"{type} is not a type of values")


def manifest(spec: T.PartitionSpec, version: int) -> dict[str, Any]:
    """The schema of a manifest's entries for files of this spec."""
    partition = partition_type(spec)
    file = [(n, partition if n == "partition" else type, id, has) for n, type, id, has in _DATA_FILE]
    entry: tuple[_Field, ...] = (
        ("status", "int", 0, "rrr"),
        ("snapshot_id", "long", 1, "roo"),
        ("sequence_number", "long", 3, "-oo"),
        ("file_sequence_number", "long", 4, "-oo"),
        ("data_file", {"type": "record", "name": "r2", "fields": _fields(file, version)}, 2, "rrr"),
    )
    return {"type": "record", "name": "manifest_entry", "fields": _fields(entry, version)}

"""Checks manifest lists and manifests against the specification: types by their Avro schema, once per file, and the few
values that a type leaves open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from boathouse.avro.codec import is_pair
from boathouse.errors import CorruptTableError

Schema = Any
Kinds = Mapping[str, Any]
"""Field -> `long`, `string`, `bytes`, `boolean`, `longs` (an array), a pair (a map's key and value), or Kinds."""
_PRIMITIVES: Final = {
    "long": ("int", "long"), "string": ("string", "enum"), "bytes": ("bytes", "fixed"), "boolean": ("boolean",),
}  # fmt: skip
_COUNTS: Final = ("long", "long")
_BOUNDS: Final = ("long", "bytes")
LIST: Final[Kinds] = {
    "manifest_path": "string",
    **dict.fromkeys(
        ("manifest_length", "partition_spec_id", "content", "sequence_number", "min_sequence_number",
         "added_snapshot_id", "added_files_count", "existing_files_count", "deleted_files_count", "added_rows_count",
         "existing_rows_count", "deleted_rows_count", "first_row_id"), "long"),
    "partitions": [
        {"contains_null": "boolean", "contains_nan": "boolean", "lower_bound": "bytes", "upper_bound": "bytes"}
    ],
    "key_metadata": "bytes",
}  # fmt: skip
ENTRY: Final[Kinds] = {
    **dict.fromkeys(("status", "snapshot_id", "sequence_number", "file_sequence_number"), "long"),
    "data_file": {
        **dict.fromkeys(
            ("content", "record_count", "file_size_in_bytes", "sort_order_id", "first_row_id", "content_offset",
             "content_size_in_bytes"), "long"),
        **dict.fromkeys(("file_path", "file_format", "referenced_data_file"), "string"),
        **dict.fromkeys(("column_sizes", "value_counts", "null_value_counts", "nan_value_counts"), _COUNTS),
        **dict.fromkeys(("lower_bounds", "upper_bounds"), _BOUNDS),
        **dict.fromkeys(("split_offsets", "equality_ids"), "longs"),
        "partition": {},
        "key_metadata": "bytes",
    },
}  # fmt: skip
_CONTENTS: Final = ("data", "deletes")
_LAST: Final = (1 << 63) - 1


def check_schema(schema: Schema, kinds: Kinds, where: str, name: str = "") -> None:
    """Raises CorruptTableError naming the first field with an unsuitable Avro type."""
    if not isinstance(schema, dict) or schema["type"] != "record":
        raise CorruptTableError(f"the field {name or 'at the top'} is not a record", where=where)
    for field in schema["fields"]:
        kind = kinds.get(field["name"])
        if kind is None:
            continue
        type, label = _present(field["type"]), f"{name}.{field['name']}".lstrip(".")
        if isinstance(kind, Mapping):
            check_schema(type, kind, where, label)
        elif isinstance(kind, list):
            if _named(type) != "array":
                raise _wrong(label, type, where)
            check_schema(_present(type["items"]), kind[0], where, label)
        elif not _fits(type, kind):
            raise _wrong(label, type, where)


def _wrong(label: str, type: Schema, where: str) -> CorruptTableError:
    return CorruptTableError(f"the field {label} has the Avro type {_named(type)}", where=where)


def _fits(type: Schema, kind: str | tuple[str, str]) -> bool:
    if isinstance(kind, tuple):
        items: Schema = _present(type["items"]) if _named(type) == "array" else "null"
        if not is_pair(items):
            return False
        found = {f["name"]: _present(f["type"]) for f in items["fields"]}
        return all(_fits(found[n], k) for n, k in zip(("key", "value"), kind))
    if kind == "longs":
        return _named(type) == "array" and _fits(_present(type["items"]), "long")
    return _named(type) in _PRIMITIVES[kind]


def _present(type: Schema) -> Schema:
    """The type of the values that are not null; a union of several stays a list."""
    if isinstance(type, list):
        rest = [t for t in type if t != "null"]
        return rest[0] if len(rest) == 1 else rest
    return type


def _named(type: Schema) -> str:
    if isinstance(type, list):
        return "union"
    return str(type) if isinstance(type, str) else str(type["type"])


def check_row(row: Mapping[str, Any], where: str) -> None:
    """One row of a manifest list."""
    for name in ("manifest_path", "partition_spec_id", "added_snapshot_id"):
        if row[name] is None:
            raise CorruptTableError(f"the manifest list has a row whose {name} is null", where=where)
    if row.get("content") not in (None, 0, 1):
        raise CorruptTableError(f"the manifest list has a manifest of content {row['content']}", where=where)
    for name in ("sequence_number", "min_sequence_number", "added_files_count", "existing_files_count"):
        value = row.get(name)
        if value is not None and not 0 <= value <= _LAST:
            raise CorruptTableError(f"the manifest list has a row whose {name} is {value}", where=where)


def check_content(named: str | None, content: int, where: str) -> None:
    """A manifest's header names its content; the manifest list must agree."""
    if named is not None and named != _CONTENTS[content]:
        raise CorruptTableError(
            f"the manifest has {_CONTENTS[content]} in the manifest list, but {named!r:.40} in its header",
            where=where,
        )


def check_entry(entry: Mapping[str, Any], content: int, where: str) -> None:
    """One entry of a manifest, after inheritance."""
    data = entry["data_file"]
    if entry["status"] not in (0, 1, 2) or data is None:
        raise CorruptTableError(f"a manifest entry has the status {entry['status']}", where=where)
    path = data["file_path"]
    if path is None or data["file_format"] is None:
        raise CorruptTableError("a manifest entry has no path, or no file format", where=where)
    numbers = {
        "record_count": data["record_count"], "file_size_in_bytes": data["file_size_in_bytes"],
        "sequence_number": entry["sequence_number"], "file_sequence_number": entry["file_sequence_number"],
    }  # fmt: skip
    for name, value in numbers.items():
        if value is None or not 0 <= value <= _LAST:
            raise CorruptTableError(f"the entry of {path!r:.200} has {name} {value}", where=where)
    kind = data.get("content") or 0
    if kind not in ((1, 2) if content else (0,)):
        raise CorruptTableError(
            f"the entry of {path!r:.200} has content {kind} in a manifest of {_CONTENTS[content]}", where=where
        )
    if not content and not -_LAST <= entry["snapshot_id"] <= _LAST:
        raise CorruptTableError(f"the entry of {path!r:.200} has snapshot_id {entry['snapshot_id']}", where=where)

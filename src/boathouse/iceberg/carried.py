"""Carries manifests of other writers over to a new manifest list, and their entries to a new manifest.

Fields that their Avro schemas lack are added: optional fields as null, the content and the sequence numbers of format
version 1 as 0, counts by counting. Partition values get the current width of the spec's types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.manifest_schemas import MANIFEST_LIST_FIELDS, data_file_fields
from boathouse.iceberg.manifests import ADDED, DELETED, EXISTING, Entry, ManifestFile, Row, partition_row
from boathouse.iceberg.manifests import partition_values as values_of
from boathouse.iceberg.partitions import unknown_transforms
from boathouse.types import PartitionSpec

_COUNTS: Final = {ADDED: "added", EXISTING: "existing", DELETED: "deleted"}
_LIST_FIELDS: Final = tuple(str(f["name"]) for f in MANIFEST_LIST_FIELDS)
_ZERO: Final = ("content", "sequence_number", "min_sequence_number")
_SUMMARY: Final = ("contains_null", "contains_nan", "lower_bound", "upper_bound")


def row(source: ManifestFile, entries: Callable[[], Sequence[Entry]]) -> Row:
    """The manifest's row in the next list. `entries` reads all of them, if counts are missing."""
    found: Row = {name: source.row.get(name) for name in _LIST_FIELDS}
    for name in _ZERO:
        found[name] = found[name] or 0
    if found["partitions"] is not None:
        found["partitions"] = [{name: p.get(name) for name in _SUMMARY} for p in found["partitions"]]
    missing = {n for n in _LIST_FIELDS if n.endswith("_count") and found[n] is None}
    if missing:
        found.update({n: count for n, count in counts(entries()).items() if n in missing})
    lacking = [f["name"] for f in MANIFEST_LIST_FIELDS if not isinstance(f["type"], list) and found[f["name"]] is None]
    if lacking:
        raise CorruptTableError(f"the manifest list lacks {', '.join(lacking)} of a manifest", where=source.path)
    return found


def counts(entries: Sequence[Entry]) -> dict[str, int]:
    """Files and rows by status, under the names of the manifest list."""
    found = {f"{how}_{what}_count": 0 for how in _COUNTS.values() for what in ("files", "rows")}
    for e in entries:
        how = _COUNTS[e["status"]]
        found[f"{how}_files_count"] += 1
        found[f"{how}_rows_count"] += e["data_file"]["record_count"]
    return found


def entry(found: Entry, spec: PartitionSpec, where: str) -> Entry:
    """The entry with every field that a manifest of ours has. Raises CorruptTableError for a required one."""
    data_file = found["data_file"]
    complete = {name: data_file.get(name) for name, _ in data_file_fields()}
    complete["content"] = complete["content"] or 0
    lacking = [name for name, required in data_file_fields() if required and complete[name] is None]
    if lacking and lacking != ["partition"]:
        raise CorruptTableError(f"a manifest entry lacks {', '.join(lacking)}", where=where)
    try:
        complete["partition"] = partition_row(values_of(data_file, spec), spec)
    except (OverflowError, ValueError, TypeError) as error:
        path = data_file["file_path"]
        raise CorruptTableError(f"the partition values of {path} do not fit their types: {error}", where=where) from (
            None
        )
    return {**found, "data_file": complete}


def check_spec(spec: PartitionSpec, where: str) -> None:
    """Raises UnsupportedFeatureError for a spec with an unknown transform, whose values have an unknown type."""
    unknown = unknown_transforms(spec)
    if unknown:
        raise UnsupportedFeatureError(
            f"removing files that are partitioned by transform {unknown[0]} is not offered", where=where
        )

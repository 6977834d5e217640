"""Carries manifests of other writers over to a new manifest list.

Fields that their Avro schemas lack are added: optional fields as null, the content and the sequence numbers of format
version 1 as 0, counts by counting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.manifests.records import ManifestFile, Row
from boathouse.iceberg.metadata.partitions import unknown_transforms
from boathouse.iceberg.metadata.versions import FormatVersion
from boathouse.types import PartitionSpec

_ZERO: Final = ("content", "sequence_number", "min_sequence_number")
_SUMMARY: Final = ("contains_null", "contains_nan", "lower_bound", "upper_bound")


def row(source: ManifestFile, counts: Callable[[], Mapping[str, int]], version: FormatVersion) -> Row:
    """The manifest's row in the next list. `counts` reads the manifest, if the list has none."""
    fields = version.manifest_list()["fields"]
    found: Row = {f["name"]: source.row.get(f["name"]) for f in fields}
    for name in _ZERO:
        found[name] = found.get(name) or 0
    if found["partitions"] is not None:
        found["partitions"] = [{name: p.get(name) for name in _SUMMARY} for p in found["partitions"]]
    missing = {n for n in found if n.endswith("_count") and found[n] is None}
    if missing:
        found.update({n: count for n, count in counts().items() if n in missing})
    lacking = [f["name"] for f in fields if not isinstance(f["type"], list) and found[f["name"]] is None]
    if lacking:
        raise CorruptTableError(f"the manifest list lacks {', '.join(lacking)} of a manifest", where=source.path)
    return found


def check_spec(spec: PartitionSpec, where: str) -> None:
    """Raises UnsupportedFeatureError for a spec with an unknown transform, whose values have an unknown type."""
    unknown = unknown_transforms(spec)
    if unknown:
        raise UnsupportedFeatureError(
            f"removing files that are partitioned by transform {unknown[0]} is not offered", where=where
        )

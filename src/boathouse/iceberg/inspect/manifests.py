"""The tables `manifests` and `all_manifests`: rows of manifest lists, with readable summaries of partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from boathouse.errors import CorruptTableError
from boathouse.iceberg.files import Listing
from boathouse.iceberg.inspect.columns import required
from boathouse.iceberg.inspect.documents import signed
from boathouse.iceberg.manifests.records import DATA, ManifestFile, Summary
from boathouse.iceberg.manifests.values import arrow_array, decode
from boathouse.iceberg.metadata.partitions import human
from boathouse.types import PartitionField, PartitionSpec

_SUMMARY: Final = pa.struct(
    [
        required("contains_null", pa.bool_()),
        pa.field("contains_nan", pa.bool_()),
        pa.field("lower_bound", pa.string()),
        pa.field("upper_bound", pa.string()),
    ]
)
_COUNTS: Final = tuple(
    (f"{state}_{kind}_files_count", kind, f"{state}_files_count")
    for kind in ("data", "delete")
    for state in ("added", "existing", "deleted")
)
MANIFESTS: Final = pa.schema(
    [
        required("content", pa.int32()),
        required("path", pa.string()),
        required("length", pa.int64()),
        required("partition_spec_id", pa.int32()),
        pa.field("added_snapshot_id", pa.int64()),
        *(pa.field(name, pa.int32()) for name, _, _ in _COUNTS),
        pa.field("partition_summaries", pa.list_(required("element", _SUMMARY))),
    ]
)
"""As in the reference, but nulls are allowed where manifest lists of version 1 lack a value."""
ALL_MANIFESTS: Final = pa.schema(
    [*MANIFESTS, required("reference_snapshot_id", pa.int64()), pa.field("key_metadata", pa.binary())]
)


def manifests(listing: Listing) -> pa.Table:
    """The manifests of one snapshot."""
    rows = [_row(listing, source) for source in listing.manifest_files]
    return _table(rows, MANIFESTS, listing.metadata.uri)


def all_manifests(listings: Sequence[Listing], where: str) -> pa.Table:
    """The manifests of every snapshot, each as often as a snapshot lists it."""
    rows = []
    for listing in listings:
        id = None if listing.snapshot is None else signed(int(listing.snapshot["snapshot-id"]))
        for source in listing.manifest_files:
            key = source.row.get("key_metadata")
            rows.append({**_row(listing, source), "reference_snapshot_id": id, "key_metadata": key})
    return _table(rows, ALL_MANIFESTS, where)


def _table(rows: Sequence[dict[str, Any]], schema: pa.Schema, where: str) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise CorruptTableError(f"a manifest list has a number that is too large: {error}", where=where) from None


def _row(listing: Listing, source: ManifestFile) -> dict[str, Any]:
    kind = "data" if source.content == DATA else "delete"
    counts = {name: source.row.get(counted) if of == kind else 0 for name, of, counted in _COUNTS}
    summaries = None if source.partitions is None else _summaries(source.partitions, listing.spec(source))
    return {
        "content": source.content,
        "path": source.path,
        "length": source.row.get("manifest_length") or 0,
        "partition_spec_id": source.spec_id,
        "added_snapshot_id": signed(source.snapshot_id),
        **counts,
        "partition_summaries": summaries,
    }


def _summaries(summaries: Sequence[Summary], spec: PartitionSpec) -> list[dict[str, Any]]:
    return [
        {
            "contains_null": s.contains_null,
            "contains_nan": s.contains_nan,
            "lower_bound": _text(s.lower, field),
            "upper_bound": _text(s.upper, field),
        }
        for s, field in zip(summaries, spec)
    ]


def _text(bound: bytes | None, field: PartitionField) -> str:
    """A bound as the specification's readable string; "null" where there is none, as in the reference."""
    value = decode(bound, field.type)
    try:
        return human(field, arrow_array([value], field.type)[0].as_py())
    except (ValueError, OverflowError):
        # A date or time that Python does not have.
        return str(value)

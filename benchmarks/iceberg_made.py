"""Iceberg tables of the benchmarks that no engine writes: many files without their data, and equality deletes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import boathouse as bh
from boathouse.iceberg.manifests import writer as manifest_writer
from boathouse.iceberg.manifests.columns import of_entries
from boathouse.iceberg.metadata.document import TableMetadata, dump
from boathouse.iceberg.metadata.draft import add_snapshot, begun, finished

A_MANIFEST = 8000
PARTITIONS = 30
A_MANIFEST_OF_PLANS = 6000
BOUND = A_MANIFEST_OF_PLANS * 1000 // 2
WHERE = f"n7 = 7 and n0 >= {BOUND}"
"""One partition of 30, and half of its files by their bounds; every manifest has such files."""
NAMES = [*(f"n{i}" for i in range(8)), *(f"d{i}" for i in range(4)), *(f"s{i}" for i in range(4))]
SCHEMA = pa.schema([(n, {"n": pa.int64(), "d": pa.float64(), "s": pa.string()}[n[0]]) for n in NAMES])
NO_METRICS = dict.fromkeys(
    ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
)
Row = dict[str, Any]


def entry(**file: object) -> Row:
    """An added file; `#######` in its path is where its manifest's number is."""
    numbers = {"snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
    others = {"key_metadata": None, "split_offsets": None, "equality_ids": None, "sort_order_id": None}
    fixed = {"file_format": "PARQUET", "referenced_data_file": None}
    return {"status": 1, **numbers, "data_file": {**fixed, **others, **NO_METRICS, **file}}


def bounds(i: int, more: int) -> dict[int, bytes]:
    """Of the file `i`, whose partition is the value of n7."""
    number, text = 1000 * i + more, f"value-{i:09d}-{more}"
    kinds = {"n": struct.pack("<q", number), "d": struct.pack("<d", number / 7), "s": text.encode()[:16]}
    found = {id: kinds[name[0]] for id, name in enumerate(NAMES, 1)}
    return {**found, 1 + NAMES.index("n7"): struct.pack("<q", i % PARTITIONS)}


def many(root: str, i: int) -> Row:
    ids = range(1, len(NAMES) + 1)
    return entry(
        content=0, file_path=f"file://{root}/data/n7={i % PARTITIONS}/#######-{i:05d}-c0ffee.parquet",
        partition={"f1000": i % PARTITIONS}, record_count=100_000 + i, file_size_in_bytes=64_000_000 + i,
        column_sizes={id: 1_000_000 + id * i % 9999 for id in ids}, value_counts=dict.fromkeys(ids, 100_000 + i),
        null_value_counts=dict.fromkeys(ids, i % 10), nan_value_counts=dict.fromkeys(range(9, 13), 0),
        lower_bounds=bounds(i, 1), upper_bounds=bounds(i, 9), split_offsets=[4, 32_000_000 + i], sort_order_id=0,
    )  # fmt: skip


def build(root: str, files: int, size: int = A_MANIFEST) -> str:
    """A table with manifests of `size` files; its data files do not exist. The manifests differ in the paths only."""
    bh.create(root, SCHEMA, format="iceberg", partition_by=["n7"])
    size = min(size, files)
    entries = [many(root, i) for i in range(size)]

    def listed(metadata: TableMetadata, sequence: int, id: int) -> list[Row]:
        rows, spec = [], metadata.partitioning.current
        template = manifest_writer.write(of_entries(entries, spec), spec, metadata.schema, 0, 0, "null")
        row = manifest_writer.list_row("", len(template), spec, of_entries(entries, spec), 0, sequence, id)
        for number in range(files // size):
            path = Path(root) / "metadata" / f"m{number}.avro"
            path.write_bytes(template.replace(b"#######", f"{number:07d}".encode()))
            rows.append({**row, "manifest_path": f"file://{path}"})
        return rows

    commit(root, listed)
    return root


def delete_by_keys(root: str, keys: pa.Table, ref: str | None = None) -> None:
    """One equality delete file of the whole table, as Flink writes them: Parquet with field ids, and no bounds."""
    ids = {f.name: f.id for f in bh.open(root)._handle.snapshot.schema if f.name in keys.column_names}
    fields = [f.with_metadata({"PARQUET:field_id": str(ids[f.name])}) for f in keys.schema]
    path = Path(root) / "data" / f"equality-{ref}.parquet"
    pq.write_table(keys.cast(pa.schema(fields)), path)
    deletes = entry(
        content=2, file_path=f"file://{path}", partition={}, record_count=keys.num_rows,
        file_size_in_bytes=path.stat().st_size, equality_ids=list(ids.values()),
    )  # fmt: skip

    def listed(metadata: TableMetadata, sequence: int, id: int) -> list[Row]:
        spec, place = metadata.partitioning.current, Path(root) / "metadata" / f"equality-{ref}.avro"
        data = manifest_writer.write(of_entries([deletes], spec), spec, metadata.schema, 0, 1, "null")
        place.write_bytes(data)
        return [
            manifest_writer.list_row(f"file://{place}", len(data), spec, of_entries([deletes], spec), 1, sequence, id)
        ]

    commit(root, listed, ref)


def commit(root: str, listed: Callable[[TableMetadata, int, int], list[Row]], ref: str | None = None) -> None:
    """A snapshot with the manifests of the current one, and with those that `listed` makes of the metadata, the
    sequence number and the snapshot's id."""
    snapshot = bh.open(root)._handle.snapshot
    metadata, kept = snapshot.metadata, [m.row for m in snapshot.listing.manifest_files]
    sequence, now = metadata.last_sequence_number + 1, metadata.document["last-updated-ms"] + 1
    id = 4_000_000_000 + sequence
    folder = Path(root) / "metadata"
    place = folder / f"list-{id}.avro"
    place.write_bytes(manifest_writer.write_list([*kept, *listed(metadata, sequence, id)], {}, "null"))
    new = {
        "snapshot-id": id, "sequence-number": sequence, "timestamp-ms": now, "schema-id": 0,
        "summary": {"operation": "overwrite" if kept else "append"}, "manifest-list": f"file://{place}",
    }  # fmt: skip
    if kept:
        new["parent-snapshot-id"] = snapshot.version
    if "next-row-id" in metadata.document:
        new |= {"first-row-id": metadata.document["next-row-id"], "added-rows": 0}
    draft = begun(metadata, now)
    add_snapshot(draft, new, ref)
    number = int(Path(metadata.uri).name[1:].split(".")[0])
    (folder / f"v{number + 1}.metadata.json").write_bytes(dump(finished(draft.document, metadata, "bench")))

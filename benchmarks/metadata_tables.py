"""The metadata table `files` of an Iceberg table of 400,000 files with metrics of 16 columns, against pyiceberg.

python benchmarks/metadata_tables.py [FILES]
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pyarrow as pa
from harness import DATA, alternate, fresh, peak_memory, record, timed
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.iceberg import manifests
from boathouse.iceberg.documents import add_snapshot, finish
from boathouse.iceberg.metadata import TableMetadata, dump

A_MANIFEST = 8000
SNAPSHOT = 4_000_000_001
NAMES = [*(f"n{i}" for i in range(8)), *(f"d{i}" for i in range(4)), *(f"s{i}" for i in range(4))]
SCHEMA = pa.schema([(n, {"n": pa.int64(), "d": pa.float64(), "s": pa.string()}[n[0]]) for n in NAMES])


def bounds(i: int, more: int) -> dict[int, bytes]:
    number, text = 1000 * i + more, f"value-{i:09d}-{more}"
    kinds = {"n": struct.pack("<q", number), "d": struct.pack("<d", number / 7), "s": text.encode()[:16]}
    return {id: kinds[name[0]] for id, name in enumerate(NAMES, 1)}


def entry(i: int) -> dict[str, object]:
    """A file of a manifest; `#######` is where its manifest's number is."""
    ids = range(1, len(NAMES) + 1)
    file = {
        "content": 0, "file_path": f"s3://bucket/warehouse/db/table/data/d0=7.0/#######-{i:05d}-c0ffee.parquet",
        "file_format": "PARQUET", "partition": {"f1000": i % 30}, "record_count": 100_000 + i,
        "file_size_in_bytes": 64_000_000 + i, "column_sizes": {id: 1_000_000 + id * i % 9999 for id in ids},
        "value_counts": dict.fromkeys(ids, 100_000 + i), "null_value_counts": dict.fromkeys(ids, i % 10),
        "nan_value_counts": dict.fromkeys(range(9, 13), 0), "lower_bounds": bounds(i, 1), "upper_bounds": bounds(i, 9),
        "key_metadata": None, "split_offsets": [4, 32_000_000 + i], "equality_ids": None, "sort_order_id": 0,
        "referenced_data_file": None,
    }  # fmt: skip
    numbers = {"snapshot_id": None, "sequence_number": None, "file_sequence_number": None}
    return {"status": 1, **numbers, "data_file": file}


def build(root: str, files: int) -> str:
    """The metadata of a table; its data files do not exist. The manifests differ in the paths only."""
    bh.create(root, SCHEMA, format="iceberg", partition_by=["n7"])
    folder = Path(root) / "metadata"
    head = next(folder.glob("v*.metadata.json"))
    metadata = TableMetadata.parse(head.read_bytes(), f"file://{head}")
    spec, rows = metadata.partitioning.current, []
    size = min(A_MANIFEST, files)
    entries = [entry(i) for i in range(size)]
    template = manifests.write_entries(entries, spec, metadata.schema, 0, 0, "null")
    for number in range(files // size):
        path = folder / f"m{number}.avro"
        path.write_bytes(template.replace(b"#######", f"{number:07d}".encode()))
        rows.append(manifests.list_row(f"file://{path}", len(template), spec, entries, 0, 1, SNAPSHOT))
    (folder / "list.avro").write_bytes(manifests.write_list(rows, {}, "null"))
    document, now = dict(metadata.document), metadata.document["last-updated-ms"] + 1
    snapshot = {
        "snapshot-id": SNAPSHOT, "sequence-number": 1, "timestamp-ms": now, "schema-id": 0,
        "summary": {"operation": "append"}, "manifest-list": f"file://{folder}/list.avro",
    }  # fmt: skip
    add_snapshot(document, snapshot, None)
    finish(document, metadata, now, "bench")
    (folder / "v2.metadata.json").write_bytes(dump(document))
    return root


def ours(root: str, name: str) -> pa.Table:
    return bh.open(root).inspect.to_arrow(name)


def theirs(root: str, name: str) -> pa.Table:
    return getattr(StaticTable.from_metadata(f"{root}/metadata/v2.metadata.json").inspect, name)()


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    root = build(fresh(DATA / "iceberg-metadata-tables"), files)
    targets = {"files": "at most 0.1x the time, 0.5x the peak memory"}
    cases = []
    for name in ("files", "entries", "partitions"):
        calls = {"pyiceberg": (theirs, (root, name)), "boathouse": (ours, (root, name))}
        case = alternate(
            f"`inspect.{name}()`", timed(calls), "boathouse", rounds=3, warm=0, target=targets.get(name, "")
        )
        cases.append(peak_memory(case, calls))
    if files == 400_000:
        notes = "50 uncompressed manifests on the local disk. Peak memory: by how much a new process grows."
        record("Iceberg: metadata tables of 400,000 files with metrics of 16 columns", cases, notes)


if __name__ == "__main__":
    main()

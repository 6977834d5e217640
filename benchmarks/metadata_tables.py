"""The metadata table `files` of an Iceberg table of 400,000 files with metrics of 16 columns, against pyiceberg.

python benchmarks/metadata_tables.py [FILES]
"""

from __future__ import annotations

import sys

import pyarrow as pa
from harness import DATA, alternate, fresh, peak_memory, record, timed
from iceberg_made import build
from pyiceberg.table import StaticTable

import boathouse as bh


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

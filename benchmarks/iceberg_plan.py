"""Metadata of large Iceberg tables against pyiceberg: manifests decoded, files planned, documents parsed.

python benchmarks/iceberg_plan.py [FILES]: with a number of files nothing is recorded, and each runs twice.
"""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import pyarrow as pa
from harness import DATA, Case, alternate, fresh, peak_memory, record, timed
from iceberg_made import A_MANIFEST_OF_PLANS as A_MANIFEST
from iceberg_made import WHERE, build
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadataUtil

import boathouse as bh
from boathouse.api.engines import LOCAL
from boathouse.avro.items import maps
from boathouse.iceberg.manifests.entries import FILE
from boathouse.iceberg.manifests.schemas import METRICS
from boathouse.iceberg.metadata.document import TableMetadata

MANIFESTS = 8
KINDS = (pa.map_(pa.int32(), pa.int64()), pa.map_(pa.int32(), pa.binary()))
PARSED = 20


def ours_plan(root: str, where: str | None) -> int:
    return bh.open(root).scan(where=where).plan(LOCAL).units.num_rows


def theirs_plan(root: str, where: str | None) -> int:
    table = StaticTable.from_metadata(f"{root}/metadata/v2.metadata.json")
    return len(list((table.scan() if where is None else table.scan(row_filter=where)).plan_files()))


def ours_decode(root: str) -> int:
    """Every metric of every entry, as the maps of Arrow that the metadata tables have."""
    listing, rows = bh.open(root)._handle.snapshot.listing, 0
    sources = ((m, listing.paths.uri(m.path)) for m in listing.data_manifests[:MANIFESTS])
    for entries in listing.reader.whole(sources, True):
        files, keys = entries.files(), []
        found = [maps(files.columns, (FILE, name), KINDS["bounds" in name], keys) for name in sorted(METRICS)]
        assert len(found[0]) == len(files.paths())
        rows += len(files)
    return rows


def theirs_decode(root: str) -> int:
    table = StaticTable.from_metadata(f"{root}/metadata/v2.metadata.json")
    found = table.current_snapshot().manifests(table.io)[:MANIFESTS]
    return sum(len(m.fetch_manifest_entry(table.io)) for m in found)


def document(root: str, count: int = 1000) -> bytes:
    """The table's metadata with so many snapshots and refs."""
    made = orjson.loads((Path(root) / "metadata" / "v2.metadata.json").read_bytes())
    (last,) = made["snapshots"]
    first, ids = last["snapshot-id"] - count + 1, range(count)
    summary = {"operation": "append", **{f"added-{what}": "123456" for what in ("records", "files", "files-size")}}
    numbered = [
        {**last, "snapshot-id": first + i, "sequence-number": i + 1, "summary": summary,
         "manifest-list": last["manifest-list"].replace("list", f"list-{i}")} for i in ids
    ]  # fmt: skip
    tags = {f"tag-{i}": {"snapshot-id": first + i, "type": "tag"} for i in ids[:-1]}
    log = [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in numbered]
    more = {"snapshots": numbered, "refs": {**made["refs"], **tags}, "snapshot-log": log}
    return orjson.dumps({**made, **more, "last-sequence-number": count})


def ours_parse(data: bytes) -> int:
    for _ in range(PARSED):
        found = TableMetadata.parse(data, "file:///t/metadata/v2.metadata.json")
        count = len(found.snapshots) + len(found.refs) + len(found.schema.fields) + len(found.partitioning.specs)
    return count


def theirs_parse(data: bytes) -> int:
    for _ in range(PARSED):
        found = TableMetadataUtil.parse_raw(data.decode())
        count = len(found.snapshots) + len(found.refs) + len(found.schema().fields) + len(found.partition_specs)
    return count


def case(title: str, ours, theirs, arguments: tuple, target: str, rounds: int, memory: bool = False) -> Case:
    calls = {"pyiceberg": (theirs, arguments), "boathouse": (ours, arguments)}
    counts = set()
    found = alternate(title, timed(calls), "boathouse", rounds, warm=0, target=target, check=lambda _, n: counts.add(n))
    assert len(counts) == 1, counts
    return peak_memory(found, calls) if memory else found


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 1_500_000
    whole, tenth = (build(fresh(DATA / f"iceberg-plan-{n}"), n, A_MANIFEST) for n in (files, files // 10))
    rounds = 3 if len(sys.argv) == 1 else 2
    decoded, rest = MANIFESTS * A_MANIFEST, (f"{files:,} files", f"{files // 10:,} files")
    cases = [
        case(f"every metric of 16 columns of {decoded:,} entries in {MANIFESTS} manifests decoded",
             ours_decode, theirs_decode, (tenth,), "at most 0.2x", 5, True),
        case(f"1,000 snapshots and 1,000 refs parsed, {PARSED} times", ours_parse, theirs_parse, (document(tenth),),
             "at most 0.5x", 5),
        case(f"open and plan {rest[0]}: a partition and a bound", ours_plan, theirs_plan, (whole, WHERE),
             "at most 0.05x", 2),
        case(f"open and plan {rest[1]}: all", ours_plan, theirs_plan, (tenth, None), "at most 0.1x", rounds, True),
    ]  # fmt: skip
    alone = {"boathouse": (ours_plan, (whole, None))}
    title = f"open and plan {rest[0]}: all (pyiceberg takes ten times as long as for a tenth)"
    cases.append(peak_memory(alternate(title, timed(alone), "boathouse", rounds, warm=0, target="reported"), alone))
    if len(sys.argv) == 1:
        notes = f"30 partitions, metrics of 16 columns; every manifest has {A_MANIFEST:,} files of all partitions."
        record("Iceberg: metadata of 1,500,000 files against pyiceberg", cases, notes)


if __name__ == "__main__":
    main()

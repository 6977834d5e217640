"""A Delta table with many files, without their data: a checkpoint with JSON statistics, and a log tail after it.

`python benchmarks/delta_million.py FOLDER [FILES]` writes the table; planning reads only the log. The checkpoint is of
version 1, or of version 2 with sidecars.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PARTITIONS = 1000
CHECKPOINT = 10
TEXT_MAP = pa.map_(pa.string(), pa.string())
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": n, "type": t, "nullable": True, "metadata": {}}
        for n, t in (("day", "date"), ("id", "long"), ("name", "string"), ("price", "double"), ("seen", "timestamp"))
    ],
}
METADATA = {
    "id": "6f1c9d2e-0000-4000-8000-000000000000",
    "format": {"provider": "parquet", "options": {}},
    "schemaString": json.dumps(SCHEMA),
    "partitionColumns": ["day"],
    "configuration": {},
    "createdTime": 1_700_000_000_000,
}
PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}
SECOND = {
    "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"],
    "writerFeatures": ["v2Checkpoint", "appendOnly", "invariants"],
}  # fmt: skip
NAME = "6f1c9d2e-1111-4000-8000-{:012}"
SIDECAR_ROWS = 50_000
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", TEXT_MAP),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("tags", TEXT_MAP),
    ]
)


@dataclass(frozen=True)
class Shape:
    """`clustered` keeps the files of a partition together; each of the `commits` adds and removes `changes` files."""

    files: int = 1_000_000
    clustered: bool = False
    group_rows: int = 1 << 18
    sidecars: bool = False
    commits: int = 9
    changes: int = 1000


def build(folder: Path, shape: Shape = Shape()) -> Path:
    """Writes the table if it does not exist."""
    log = folder / "_delta_log"
    if (log / "_last_checkpoint").exists():
        return folder
    log.mkdir(parents=True, exist_ok=True)
    order = np.arange(shape.files) if shape.clustered else np.random.default_rng(7).permutation(shape.files)
    size = _checkpoint(log, order, shape)
    for version in range(CHECKPOINT + 1, CHECKPOINT + 1 + shape.commits):
        _commit(log, version, shape)
    hint = {"version": CHECKPOINT, "size": shape.files + 2, "sizeInBytes": size, "numOfAddFiles": shape.files}
    (log / "_last_checkpoint").write_text(json.dumps(hint))
    return folder


def days(numbers: np.ndarray, files: int) -> pa.Array:
    """The partition of each file: files are numbered partition by partition."""
    day = numbers * PARTITIONS // files
    return (pa.array(np.datetime64("2023-01-01") + day.astype("timedelta64[D]"), pa.date32())).cast(pa.string())


def adds(numbers: np.ndarray, files: int) -> pa.StructArray:
    """Add actions of the files of these numbers."""
    n = pa.array(numbers).cast(pa.string())
    wide = pc.utf8_lpad(n, 12, "0")
    day = days(numbers, files)
    path = _join("day=", day, "/part-00000-00000000-0000-4000-8000-", wide, ".c000.snappy.parquet")
    low, high = (pa.array(numbers * 1000 + i).cast(pa.string()) for i in (0, 999))
    stats = _join(
        '{"numRecords":1000,"minValues":{"id":', low, ',"name":"customer-', low, '","price":0.5,"seen":"', day,
        'T00:00:00.000Z"},"maxValues":{"id":', high, ',"name":"customer-', high, '","price":999.5,"seen":"', day,
        'T23:59:59.999Z"},"nullCount":{"id":0,"name":0,"price":12,"seen":0}}',
    )  # fmt: skip
    count = len(numbers)
    keys = pa.array(np.full(count, "day"), pa.string())
    partition = pa.MapArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), keys, day)
    times = pa.array(np.full(count, 1_700_000_000_000), pa.int64())
    sizes = pa.array(numbers % 1000 + 1_000_000, pa.int64())
    same = pa.array(np.zeros(count, bool))
    return pa.StructArray.from_arrays(
        [path, partition, sizes, times, same, stats, pa.nulls(count, TEXT_MAP)], fields=list(ADD)
    )


def _join(*parts: str | pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*(pa.scalar(p) if isinstance(p, str) else p for p in parts), "")


def _checkpoint(log: Path, order: np.ndarray, shape: Shape) -> int:
    features = pa.list_(pa.string())
    protocol = pa.struct(
        [("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32()), ("readerFeatures", features),
         ("writerFeatures", features)]
    )  # fmt: skip
    metadata = pa.struct(
        [("id", pa.string()), ("name", pa.string()), ("description", pa.string()),
         ("format", pa.struct([("provider", pa.string()), ("options", TEXT_MAP)])), ("schemaString", pa.string()),
         ("partitionColumns", features), ("configuration", TEXT_MAP), ("createdTime", pa.int64())]
    )  # fmt: skip
    remove = pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())])
    txn = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
    fields = [("txn", txn), ("add", ADD), ("remove", remove), ("metaData", metadata), ("protocol", protocol)]
    if shape.sidecars:
        sidecar = [("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())]
        fields += [("checkpointMetadata", pa.struct([("version", pa.int64())])), ("sidecar", pa.struct(sidecar))]
    schema = pa.schema(fields)

    def rows(kind: str, *actions: dict) -> pa.Table:
        return _table(schema, kind, pa.array(actions, schema.field(kind).type))

    described = {**METADATA, "format": {"provider": "parquet", "options": []}, "configuration": []}
    name = (
        f"{CHECKPOINT:020d}.checkpoint.{NAME.format(0)}.parquet"
        if shape.sidecars
        else f"{CHECKPOINT:020d}.checkpoint.parquet"
    )
    with pq.ParquetWriter(log / name, schema, compression="snappy") as out:
        out.write_table(rows("protocol", SECOND if shape.sidecars else PROTOCOL))
        out.write_table(rows("metaData", described))
        if shape.sidecars:
            out.write_table(rows("checkpointMetadata", {"version": CHECKPOINT}))
            out.write_table(rows("sidecar", *_sidecars(log, order, pa.schema(fields[1:3]))))
            return (log / name).stat().st_size
        for start in range(0, len(order), shape.group_rows):
            part = order[start : start + shape.group_rows]
            out.write_table(_table(schema, "add", adds(part, len(order))), shape.group_rows)
    return (log / name).stat().st_size


def _table(schema: pa.Schema, kind: str, actions: pa.Array) -> pa.Table:
    return pa.table([actions if f.name == kind else pa.nulls(len(actions), f.type) for f in schema], schema=schema)


def _sidecars(log: Path, order: np.ndarray, schema: pa.Schema) -> list[dict]:
    """Writes the files; returns the actions that refer to them."""
    folder = log / "_sidecars"
    folder.mkdir(exist_ok=True)
    found = []
    for start in range(0, len(order), SIDECAR_ROWS):
        path = folder / f"{NAME.format(start + 1)}.parquet"
        actions = adds(order[start : start + SIDECAR_ROWS], len(order))
        pq.write_table(_table(schema, "add", actions), path, compression="snappy")
        found.append({"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 1_700_000_000_000})
    return found


def _commit(log: Path, version: int, shape: Shape) -> None:
    """New files, and as many removed ones of the checkpoint."""
    after, files, changes = version - CHECKPOINT, shape.files, shape.changes
    new = adds(np.arange(files, files + changes) + (after - 1) * changes, files + shape.commits * changes).to_pylist()
    old = adds(np.arange(changes) * (files // changes) + after, files).to_pylist()
    lines = [{"commitInfo": {"timestamp": 1_700_000_000_000 + version, "operation": "WRITE"}}]
    for action in old:
        removed = {"path": action["path"], "deletionTimestamp": 1_700_000_000_000 + version, "dataChange": True}
        lines.append({"remove": removed})
    for action in new:
        kept = {k: v for k, v in action.items() if v is not None}
        lines.append({"add": {**kept, "partitionValues": dict(action["partitionValues"]), "dataChange": True}})
    (log / f"{version:020d}.json").write_text("".join(json.dumps(x) + "\n" for x in lines))


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), Shape(int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)))

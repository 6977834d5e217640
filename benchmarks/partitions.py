"""In process: 4,000 rows into 2,000 partitions, compared with deltalake and pyiceberg."""

from __future__ import annotations

import itertools
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import DATA, alternate, fresh, record
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.transforms import IdentityTransform

import boathouse as bh

ROWS, PARTITIONS, CHUNK = 4_000, 2_000, 100
SHARED_MEMORY = Path("/dev/shm")


def data() -> pa.Table:
    random = np.random.default_rng(1)
    place = random.permutation(np.arange(ROWS) % PARTITIONS)
    return pa.table({"p": place, "v": random.random(ROWS), "s": [f"x{i}" for i in range(ROWS)]})


def with_pyiceberg(catalog: InMemoryCatalog, name: str, table: pa.Table) -> None:
    made = catalog.create_table(name, schema=table.schema)
    with made.update_spec() as spec:
        spec.add_field("p", IdentityTransform(), "p")
    made.append(table)


def check(root: Path) -> None:
    files = list(root.rglob("*.parquet"))
    assert len(files) == PARTITIONS, len(files)
    assert sum(pq.read_metadata(f).num_rows for f in files) == ROWS


def cases(folder: Path, where: str, target: str) -> list:
    table = data()
    chunks = pa.concat_tables([table.slice(i, CHUNK) for i in range(0, ROWS, CHUNK)])
    catalog = InMemoryCatalog("bench", warehouse=f"file://{folder}/parted-peer-iceberg")
    catalog.create_namespace("b")
    count = itertools.count()
    peer, ours = folder / "parted-peer", folder / "parted-ours"

    def stream(format: str) -> None:
        reader = pa.RecordBatchReader.from_batches(chunks.schema, chunks.to_batches())
        bh.write(reader, str(ours), format=format, partition_by="p")

    def delta(what: pa.Table):
        return lambda: deltalake.write_deltalake(str(peer), what, partition_by=["p"])

    def us(what: pa.Table, format: str):
        return lambda: bh.write(what, str(ours), format=format, partition_by="p")

    def iceberg() -> None:
        with_pyiceberg(catalog, f"b.t{next(count)}", table)

    found = []
    for title, runners, names in (
        (f"delta, {where}", {"deltalake": delta(table), "boathouse": us(table, "delta")}, (peer, ours)),
        (
            f"delta, in batches of {CHUNK} rows, {where}",
            {"deltalake": delta(chunks), "boathouse": us(chunks, "delta"), "as a stream": lambda: stream("delta")},
            (peer, ours, ours),
        ),
        (
            f"iceberg, {where}",
            {"pyiceberg": iceberg, "deltalake": delta(table), "boathouse": us(table, "iceberg")},
            (folder / "parted-peer-iceberg", peer, ours),
        ),
    ):
        places = dict(zip(runners, names))

        def clear() -> None:
            for path in (peer, ours, folder / "parted-peer-iceberg"):
                fresh(path)

        def whole(name: str, _: object, places: dict[str, Path] = places) -> None:
            check(places[name])

        found.append(alternate(title, runners, "boathouse", between=clear, check=whole, target=target))
        clear()
    return found


def main() -> None:
    found = cases(DATA, "disk", "at most 2x")
    if SHARED_MEMORY.is_dir():
        found += cases(SHARED_MEMORY / "boathouse-bench", "memory", "at most 2x")
    notes = "The rows are shuffled. Each run creates the table; its 2,000 files and their rows are counted."
    record("In process: 4,000 rows into 2,000 partitions", found, notes)


if __name__ == "__main__":
    main()

"""Joins a stream with a table in memory, as MERGE does: the local engine, DuckDB and polars, each in its own process.

A full join of 5 million streamed rows with a source, by one integer key, one string key or two keys, with ten more
columns on each side; half of the source matches. Run: python benchmarks/join.py
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROWS = 5_000_000
BATCH = 65_536
KEYS = {"int64": ["k"], "string": ["k"], "two": ["k", "j"]}


def keyed(kind: str, numbers: np.ndarray) -> dict[str, pa.Array]:
    if kind == "int64":
        return {"k": pa.array(numbers)}
    if kind == "string":
        texts = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), 10, "0")
        return {"k": pc.binary_join_element_wise(pa.repeat("key", len(numbers)), texts, "-")}
    return {"k": pa.array(numbers // 1000), "j": pa.array((numbers % 1000).astype(np.int32))}


def payload(side: str, rows: int) -> dict[str, pa.Array]:
    numbers = np.arange(rows)
    texts = pc.binary_join_element_wise(pa.repeat("some text", rows), pa.array(numbers % 97).cast(pa.string()), " ")
    columns = [pa.array(numbers + i) for i in range(4)] + [pa.array(numbers * 0.5)] * 3 + [texts] * 3
    return {f"{side}{i}": column for i, column in enumerate(columns)}


def target(kind: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Keys in no order, made while they are read."""
    rest = payload("t", BATCH)

    def batches() -> Iterator[pa.RecordBatch]:
        rng = np.random.default_rng(1)
        for start in range(0, ROWS, BATCH):
            size = min(BATCH, ROWS - start)
            keys = keyed(kind, rng.integers(0, 2 * ROWS, size))
            yield pa.record_batch({**keys, **{name: column.slice(0, size) for name, column in rest.items()}})

    return next(batches()).schema, batches()


def source(kind: str, rows: int) -> pa.Table:
    numbers = np.random.default_rng(2).choice(2 * ROWS, rows, replace=False)
    return pa.table({**keyed(kind, numbers), **payload("s", rows)})


def ours(kind: str, right: pa.Table) -> int:
    from boathouse.engines.local import LocalEngine
    from boathouse.engines.sources import Batches

    engine = LocalEngine()
    schema, batches = target(kind)
    on = " AND ".join(f"target.{k} = source.{k}" for k in KEYS[kind])
    joined = engine.join(Batches(schema, lambda: batches, once=True), engine.source(right), on, "full")
    return sum(batch.num_rows for batch in joined.open())


def duckdb(kind: str, right: pa.Table) -> int:
    import duckdb

    con = duckdb.connect()
    schema, batches = target(kind)
    con.register("target", pa.RecordBatchReader.from_batches(schema, batches))
    con.register("source", right)
    on = " AND ".join(f"target.{k} = source.{k}" for k in KEYS[kind])
    con.execute("SET preserve_insertion_order = false")
    found = con.sql(f"SELECT target.*, source.*, true FROM target FULL JOIN source ON {on}")
    return sum(batch.num_rows for batch in found.to_arrow_reader(BATCH))


def polars(kind: str, right: pa.Table) -> int:
    import polars as pl
    from polars.io.plugins import register_io_source

    schema, batches = target(kind)
    empty = pl.from_arrow(schema.empty_table())

    def read(columns: object, predicate: object, rows: object, size: object) -> Iterator[pl.DataFrame]:
        for batch in batches:
            yield pl.from_arrow(pa.Table.from_batches([batch]))

    left = register_io_source(read, schema=empty.schema)
    joined = left.join(pl.from_arrow(right).lazy(), on=KEYS[kind], how="full", nulls_equal=False)
    return sum(frame.height for frame in joined.collect_batches(chunk_size=BATCH, engine="streaming"))


def one(name: str, kind: str, rows: int) -> None:
    right = source(kind, rows)
    if name == "nothing":
        run = lambda kind, right: sum(b.num_rows for b in target(kind)[1])  # noqa: E731
    else:
        run = {"ours": ours, "duckdb": duckdb, "polars": polars}[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin, processor = time.perf_counter(), time.process_time()
    count = run(kind, right)
    seconds, processor = time.perf_counter() - begin, time.process_time() - processor
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = {"rows": count, "seconds": seconds, "processor": processor, "before": before >> 10, "peak": after >> 10}
    print(json.dumps(found))


def main() -> None:
    print("| join | source | " + " | ".join(["reading alone", "boathouse", "DuckDB", "polars"]) + " |")
    print("|---|--:|--:|--:|--:|--:|")
    for kind in KEYS:
        for rows in (10_000, 1_000_000):
            cells = []
            for name in ("nothing", "ours", "duckdb", "polars"):
                command = [sys.executable, __file__, name, kind, str(rows)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                if done.returncode:
                    cells.append(done.stderr.strip().splitlines()[-1][:60])
                    continue
                found = json.loads(done.stdout)
                memory = f"+{found['peak'] - found['before']:,} MiB"
                cells.append(f"{found['seconds']:.1f} s ({found['processor']:.1f} s CPU), {memory}")
            print(f"| {kind} | {rows:,} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()

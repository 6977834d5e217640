"""In process: appends of one row, the 1st and the 500th, compared with deltalake, pyiceberg and pylance."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable

import deltalake
import pyarrow as pa
from harness import DATA, Case, fresh, record
from pyiceberg.catalog.memory import InMemoryCatalog

import boathouse as bh
import lance

APPENDS, TABLES, LAST = 500, 7, 11
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("value", pa.float64())])
PEERS = {"delta": "deltalake", "iceberg": "pyiceberg", "lance": "pylance"}

Append = Callable[[pa.Table], object]
Maker = Callable[[], tuple[Append, Callable[[], int]]]


def row(i: int) -> pa.Table:
    return pa.table({"id": [i], "name": [f"row {i}"], "value": [i / 7]}, SCHEMA)


def makers() -> dict[str, Maker]:
    """Each creates an empty table, and returns a function that appends to it and one that counts its rows."""
    count = itertools.count()
    catalog = InMemoryCatalog("bench", warehouse=f"file://{DATA}/one-row-iceberg")
    catalog.create_namespace("b")

    def place() -> str:
        return fresh(DATA / f"one-row-{next(count)}")

    def with_delta() -> tuple[Append, Callable[[], int]]:
        path = place()
        deltalake.DeltaTable.create(path, deltalake.Schema.from_arrow(SCHEMA))
        return (
            lambda t: deltalake.write_deltalake(path, t, mode="append"),
            lambda: deltalake.DeltaTable(path).to_pyarrow_table().num_rows,
        )

    def with_iceberg() -> tuple[Append, Callable[[], int]]:
        name = f"b.t{next(count)}"
        catalog.create_table(name, schema=SCHEMA)
        return lambda t: catalog.load_table(name).append(t), lambda: catalog.load_table(name).scan().to_arrow().num_rows

    def with_lance() -> tuple[Append, Callable[[], int]]:
        path = place()
        lance.write_dataset(SCHEMA.empty_table(), path)
        return lambda t: lance.write_dataset(t, path, mode="append"), lambda: lance.dataset(path).count_rows()

    def ours(format: str) -> Maker:
        def make() -> tuple[Append, Callable[[], int]]:
            path = place()
            bh.create(path, SCHEMA, format=format)
            return lambda t: bh.write(t, path, mode="append"), lambda: bh.open(path).to_arrow().num_rows

        return make

    peers: dict[str, Maker] = {"deltalake": with_delta, "pyiceberg": with_iceberg, "pylance": with_lance}
    return {**peers, **{f"boathouse {f}": ours(f) for f in PEERS}}


def timed(append: Append, i: int) -> float:
    data = row(i)
    started = time.perf_counter()
    append(data)
    return time.perf_counter() - started


def main() -> None:
    names = makers()
    first: dict[str, list[float]] = {name: [] for name in names}
    last: dict[str, list[float]] = {name: [] for name in names}
    for i in range(TABLES + 1):
        for name, make in names.items():
            append, _ = make()
            gc.collect()
            seconds = timed(append, 0)
            if i:  # imports of the first call in the process are not counted
                first[name].append(seconds)
    tables = {name: make() for name, make in names.items()}
    for i in range(1, APPENDS + LAST // 2 + 1):
        for name, (append, _) in tables.items():
            seconds = timed(append, i)
            if abs(i - APPENDS) <= LAST // 2:
                last[name].append(seconds)
    for name, (_, rows) in tables.items():
        assert rows() == APPENDS + LAST // 2, name
    cases = []
    for format, peer in PEERS.items():
        us = f"boathouse {format}"
        for which, seconds in ((f"1st append, {format}", first), (f"{APPENDS}th append, {format}", last)):
            cases.append(Case(which, us, {peer: seconds[peer], us: seconds[us]}, target="reported"))
            print(cases[-1].row(), flush=True)
    near = f"{APPENDS - LAST // 2} to {APPENDS + LAST // 2}"
    record(
        "In process: appends of one row",
        cases,
        "Each append is one call with the table's path (with its name in pyiceberg's catalog in memory). The 1st: of "
        f"{TABLES} new tables; the {APPENDS}th: the median of appends {near} of one table. The rows are counted in "
        "the end.",
    )


if __name__ == "__main__":
    main()

"""In process: appends of one row, the 1st, the 100th and the 500th, compared with deltalake, pyiceberg and pylance.

Processor time: that of a table in memory, or on a disk that others use too, says more than the clock.

With names as arguments, such as `lance` or `"SQLite catalog"`, only what has one of them in its name is measured,
and nothing is recorded.
"""

from __future__ import annotations

import gc
import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import deltalake
import pyarrow as pa
from harness import DATA, Case, fresh, record
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.memory import InMemoryCatalog

import boathouse as bh
import lance

PLACES, AROUND = (1, 100, 500), 2
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("value", pa.float64())])
FORMATS = {"delta": "deltalake", "iceberg": "pyiceberg", "lance": "pylance"}
CATALOG = "SQLite catalog"
TARGETS = {1: "at most 1.0x", 100: "reported", 500: "at most 0.5x"}
"""Of pyiceberg, where both append through a SQLite catalog."""
WAYS = {"path": "bh.write(rows, path)", "table": "t.append(rows)"}

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

    def ours(format: str, way: str) -> Maker:
        def make() -> tuple[Append, Callable[[], int]]:
            path = place()
            table = bh.create(path, SCHEMA, format=format)
            append = table.append if way == "table" else lambda t: bh.write(t, path, mode="append")
            return append, lambda: bh.open(path).to_arrow().num_rows

        return make

    def in_sql_catalog(way: str) -> Maker:
        def make() -> tuple[Append, Callable[[], int]]:
            path = place()
            fresh(Path(f"{path}.db"))
            options = {"type": "sql", "uri": f"sqlite:///{path}.db", "warehouse": f"file://{path}"}
            theirs = load_catalog("bench", **options)
            theirs.create_namespace("b")
            theirs.create_table("b.t", schema=SCHEMA)
            ours = bh.catalog("bench", **options)
            opened = {"path": ours.open, "theirs": theirs.load_table, "table": lambda _, held=ours.open("b.t"): held}
            return lambda t: opened[way]("b.t").append(t), lambda: theirs.load_table("b.t").scan().to_arrow().num_rows

        return make

    peers: dict[str, Maker] = {"deltalake": with_delta, "pyiceberg": with_iceberg, "pylance": with_lance,
                               f"pyiceberg, {CATALOG}": in_sql_catalog("theirs")}  # fmt: skip
    own = {f"boathouse {f}, {WAYS[way]}": ours(f, way) for f in FORMATS for way in WAYS}
    ways = {"table": "t.append(rows)", "path": "catalog.open(name).append(rows)"}
    named = {f"boathouse iceberg, {CATALOG}, {ways[way]}": in_sql_catalog(way) for way in ways}
    return {**peers, **own, **named}


def curve(make: Maker) -> dict[int, list[float]]:
    """Seconds of the five appends of a table around each place, the first five for the 1st."""
    seconds: dict[int, list[float]] = {n: [] for n in PLACES}
    append, rows = make()
    gc.collect()
    last = PLACES[-1] + AROUND
    for i in range(1, last + 1):
        data = row(i)
        started = time.process_time()
        append(data)
        took = time.process_time() - started
        for n in PLACES:
            if max(n, 1 + AROUND) - AROUND <= i <= max(n, 1 + AROUND) + AROUND:
                seconds[n].append(took)
    assert rows() == last
    return seconds


def main(only: list[str]) -> None:
    chosen = {n: m for n, m in makers().items() if not only or any(word in n for word in only)}
    for make in chosen.values():
        make()[0](row(0))  # imports of the first call in the process are not counted
    seconds = {name: curve(make) for name, make in chosen.items()}
    cases = []
    for name, found in seconds.items():
        if not name.startswith("boathouse"):
            continue
        peer = next(p for f, p in FORMATS.items() if name.startswith(f"boathouse {f}"))
        peer += f", {CATALOG}" if CATALOG in name else ""
        for n in PLACES:
            runs = {**({peer: seconds[peer][n]} if peer in seconds else {}), name: found[n]}
            target = TARGETS[n] if CATALOG in name else "reported" if n < PLACES[-1] else "at most 2x of its 1st"
            cases.append(Case(f"append {n}, {name}", name, runs, target=target))
            print(cases[-1].row(), flush=True)
    load = f"{os.getloadavg()[2]:.0f}"
    if not only:
        record(
            "In process: appends of one row",
            cases,
            "Processor time, medians of 5 appends of one table, each one call: of the peers with the table's path (by "
            f"its name in pyiceberg's catalog in memory, and in a {CATALOG}). Around the 1st are the first 5. The rows "
            f"are counted in the end. {load} processes were running on average.",
        )


if __name__ == "__main__":
    main(sys.argv[1:])

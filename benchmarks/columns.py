"""In process: tables of 4,000 columns, where the cost per column dominates."""

from __future__ import annotations

import itertools

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from harness import DATA, Case, alternate, fresh, record
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import StaticTable

import boathouse as bh
import lance

COLUMNS, ROWS, ROUNDS = 4_000, 1_000, 5


def data() -> pa.Table:
    numbers = np.arange(ROWS)
    columns = [pa.array(numbers + i) if i % 2 else pa.array(numbers * 0.5 + i) for i in range(COLUMNS)]
    return pa.table(columns, names=[f"feature_{i}" for i in range(COLUMNS)])


def checked(table: pa.Table) -> int:
    assert table.shape == (ROWS, COLUMNS), table.shape
    return table.num_rows


def cases(table: pa.Table) -> list[Case]:
    count = itertools.count()
    catalog = InMemoryCatalog("bench", warehouse=f"file://{DATA}/columns-iceberg-peer")
    catalog.create_namespace("b")

    def pyiceberg_write() -> str:
        made = catalog.create_table(f"b.t{next(count)}", schema=table.schema)
        made.append(table)
        return str(made.metadata_location)

    def delta_write() -> None:
        deltalake.write_deltalake(fresh(DATA / "columns-delta-peer"), table)

    def lance_write() -> None:
        lance.write_dataset(table, fresh(DATA / "columns-lance-peer"))

    def write(format: str) -> str:
        path = fresh(DATA / f"columns-{format}")
        bh.write(table, path, format=format)
        return path

    metadata, file = pyiceberg_write(), DATA / "columns.parquet"
    pq.write_table(table, file)
    delta_write()
    lance_write()
    paths = {format: write(format) for format in ("delta", "iceberg", "lance")}
    peers = {
        "delta": (
            "deltalake",
            delta_write,
            lambda: deltalake.DeltaTable(DATA / "columns-delta-peer").to_pyarrow_table(),
        ),
        "iceberg": ("pyiceberg", pyiceberg_write, lambda: StaticTable.from_metadata(metadata).scan().to_arrow()),
        "lance": ("pylance", lance_write, lambda: lance.dataset(DATA / "columns-lance-peer").to_table()),
    }
    found = []
    for format, (name, peer_write, peer_read) in peers.items():
        writers = {name: peer_write, "boathouse": lambda f=format: write(f)}
        found.append(alternate(f"create and append, {format}", writers, "boathouse", ROUNDS, target="reported"))
        readers = {
            name: lambda r=peer_read: checked(r()),
            "boathouse": lambda f=format: checked(bh.open(paths[f]).to_arrow()),
        }
        found.append(alternate(f"to_arrow, {format}", readers, "boathouse", ROUNDS, target="reported"))
    readers = {"pyarrow": lambda: checked(pq.read_table(file)), "boathouse": lambda: checked(bh.read_parquet(file))}
    found.append(alternate("read_parquet", readers, "boathouse", ROUNDS, target="reported"))
    return found


if __name__ == "__main__":
    record(f"In process: {COLUMNS:,} columns of numbers, {ROWS:,} rows", cases(data()))

"""In process: to_arrow and append of TPC-H lineitem against deltalake, pyiceberg and pylance."""

from __future__ import annotations

import itertools

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from harness import DATA, alternate, first_calls, fresh, lineitem, peak_memory, record, timed
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.table import StaticTable

import boathouse as bh
import lance

ROWS = 6_001_215


def data() -> pa.Table:
    table = pq.read_table(lineitem())
    fields = [pa.field(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type) for f in table.schema]
    return table.cast(pa.schema(fields)).combine_chunks()


def checked(table) -> int:
    assert table.num_rows == ROWS, table.num_rows
    return table.num_rows


def delta_query(path: str) -> int:
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    return checked(pa.table(builder.execute("select * from t").read_all()))


def delta_query_as_text(path: str) -> int:
    """The same query with the types of the table: Arrow can neither compare nor sort string views."""
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    found = pa.table(builder.execute("select * from t").read_all())
    text = [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in found.schema]
    return checked(found.cast(pa.schema(text)))


def delta_dataset(path: str) -> int:
    """deltalake's other reader, which returns strings as we do; it does not support deletion vectors."""
    return checked(deltalake.DeltaTable(path).to_pyarrow_table())


def pyiceberg_scan(metadata: str) -> int:
    return checked(StaticTable.from_metadata(metadata).scan().to_arrow())


def pylance_scan(path: str) -> int:
    return checked(lance.dataset(path).to_table())


def ours(path: str) -> int:
    return checked(bh.open(path).to_arrow())


def reads(uris: dict[str, str]) -> list:
    metadata = bh.open(uris["iceberg"])._handle.snapshot.token
    peers = {
        "delta": ("deltalake QueryBuilder", delta_query, uris["delta"], "at most 1.0x"),
        "delta, snappy": ("deltalake QueryBuilder", delta_query, uris["delta, snappy"], "reported"),
        "iceberg": ("pyiceberg", pyiceberg_scan, metadata, "at most 1.0x"),
        "lance": ("pylance", pylance_scan, uris["lance"], "reported"),
    }
    cases = []
    for format, (name, function, argument, target) in peers.items():
        calls = {name: (function, (argument,)), "boathouse": (ours, (uris[format],))}
        if format.startswith("delta"):
            calls["deltalake QueryBuilder, then cast to string"] = (delta_query_as_text, (argument,))
            calls["deltalake to_pyarrow_table"] = (delta_dataset, (argument,))
        case = alternate(f"to_arrow, {format}", timed(calls), "boathouse", rounds=15, target=target)
        cases.append(peak_memory(case, calls))
        cases.append(first_calls(f"to_arrow, {format}, first of a process", calls, "boathouse", target="reported"))
    return cases


def appends(table: pa.Table) -> list:
    count = itertools.count()
    catalog = InMemoryCatalog("bench", warehouse=f"file://{DATA}/iceberg-peer")
    catalog.create_namespace("b")

    def with_delta() -> None:
        deltalake.write_deltalake(fresh(DATA / "peer-delta"), table)

    def with_iceberg() -> None:
        name = f"b.t{next(count)}"
        catalog.create_table(name, schema=table.schema).append(table)
        catalog.drop_table(name)

    def with_lance() -> None:
        lance.write_dataset(table, fresh(DATA / "peer-lance"))

    def writer(format: str):
        return lambda: bh.write(table, fresh(DATA / f"ours-{format}"), format=format)

    peers = {"deltalake": with_delta, "pyiceberg": with_iceberg, "pylance": with_lance}
    us = {f"boathouse {f}": writer(f) for f in ("delta", "iceberg", "lance")}
    case = alternate("append (create and write), each format", {**peers, **us}, "boathouse delta", rounds=3)
    slowest = max(peers, key=case.median)
    cases = []
    for name in us:
        runs = {slowest: case.seconds[slowest], name: case.seconds[name]}
        one = type(case)(f"append, {name.split()[1]}", name, runs, target="at most 1.0x of the slowest peer")
        cases.append(one)
    return [*cases, case]


def main() -> None:
    table = data()
    uris = {}
    for format in ("delta", "iceberg", "lance"):
        uris[format] = fresh(DATA / f"lineitem-{format}")
        bh.write(table, uris[format], format=format)
    uris["delta, snappy"] = fresh(DATA / "lineitem-delta-snappy")
    bh.write(table, uris["delta, snappy"], format="delta", properties={"delta.parquet.compression.codec": "snappy"})
    record("In process: TPC-H lineitem, scale 1 (6,001,215 rows, 16 columns)", reads(uris) + appends(table))


if __name__ == "__main__":
    main()

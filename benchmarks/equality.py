"""Scans of an Iceberg table whose rows are deleted by 60,000 keys, against the same files without deletes."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from harness import DATA, alternate, fresh, lineitem, peak_memory, record, timed
from iceberg_made import delete_by_keys

import boathouse as bh

KEYS = ["l_orderkey", "l_linenumber"]
COLUMNS = ["l_quantity", "l_extendedprice", "l_discount", "l_returnflag", "l_linestatus", "l_shipdate"]
PLAIN, DELETED = "the same files without deletes", "60,000 keys"


def keys(remainder: int = 7) -> pa.Table:
    """Of 1 % of the rows, in many places of every file."""
    table = pq.read_table(lineitem(), columns=KEYS)
    order = table.column("l_orderkey")
    hundredth = pc.subtract(order, pc.multiply(pc.divide(order, 100), 100))
    return table.filter(pc.equal(hundredth, remainder))


def table() -> str:
    """The table; its tag `plain` has no deletes. Made once."""
    root = DATA / "equality"
    if not (root / "done").exists():
        fresh(root)
        bh.write(pq.read_table(lineitem()), str(root), format="iceberg")
        delete_by_keys(str(root), keys(), "keys")
        (root / "done").write_text("")
    return str(root)


def whole(uri: str, ref: str) -> int:
    return bh.open(uri, ref=ref).to_arrow().num_rows


def six(uri: str, ref: str) -> int:
    return bh.open(uri, ref=ref).scan(COLUMNS, "l_shipdate <= date'1998-09-02'").to_arrow().num_rows


def main() -> None:
    """`python benchmarks/equality.py [ROUNDS]`: with a number of rounds nothing is recorded."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    uri = table()
    assert whole(uri, "main") - whole(uri, "keys") == keys().num_rows
    cases = []
    for title, call, target in (
        ("to_arrow", whole, "at most 1.5x"),
        ("six columns with a condition, none of them a key", six, "reported"),
    ):
        calls = {PLAIN: (call, (uri, "main")), DELETED: (call, (uri, "keys"))}
        case = alternate(title, timed(calls), DELETED, rounds=rounds, warm=1, target=target)
        cases.append(peak_memory(case, calls))
    if len(sys.argv) == 1:
        notes = f"TPC-H lineitem at scale 1, {bh.open(uri).files().num_rows} files; keys of two columns."
        record("Iceberg: scans of rows deleted by 60,000 keys of equality deletes", cases, notes)
    print(Path(DATA))


if __name__ == "__main__":
    main()

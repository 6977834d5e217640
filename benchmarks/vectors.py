"""Scans of Delta tables with 1 % and 20 % of their rows deleted by vectors, against the same files without vectors."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pyarrow.parquet as pq
from harness import DATA, Case, alternate, lineitem, peak_memory, record, timed
from spark import aggregate

import boathouse as bh

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
PLAIN = "the same files without vectors"
SHARES = {"1 %": "l_orderkey % 100 = 7", "20 %": "l_orderkey % 5 = 2"}
"""Rows of many places in every file; an order is 1 to 7 rows."""
COLUMNS = ["l_quantity", "l_extendedprice", "l_discount", "l_returnflag", "l_linestatus", "l_shipdate"]


def tables() -> dict[str, str]:
    """The tables by the share of deleted rows, with the same files; made once."""
    base = DATA / "vectors-none"
    if not (base / "done").exists():
        shutil.rmtree(base, ignore_errors=True)
        properties = {"delta.enableDeletionVectors": "true"}
        bh.write(pq.read_table(lineitem()), str(base), format="delta", properties=properties)
        (base / "done").write_text("")
    found = {PLAIN: str(base)}
    for share, where in SHARES.items():
        path = DATA / f"vectors-{share.split()[0]}"
        if not (path / "done").exists():
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(base, path, ignore=shutil.ignore_patterns("done"))
            bh.open(str(path)).delete(where)
            (path / "done").write_text("")
        files = bh.open(str(path)).files()
        deleted, rows = (files.column(c).to_pylist() for c in ("deleted", "rows"))
        assert all(deleted) and 0.8 < sum(deleted) / sum(rows) * 100 / int(share[:-2]) < 1.2
        found[share] = str(path)
    return found


def whole(uri: str) -> int:
    return bh.open(uri).to_arrow().num_rows


def few_columns(uri: str) -> int:
    return bh.open(uri).scan(COLUMNS, "l_shipdate <= date'1998-09-02'").to_arrow().num_rows


def cases_of(title: str, uris: dict[str, str], call, target: str, rounds: int, memory: bool) -> list[Case]:
    found = []
    for share in SHARES:
        calls = {PLAIN: (call, (uris[PLAIN],)), share: (call, (uris[share],))}
        case = alternate(f"{title}, {share} deleted", timed(calls), share, rounds=rounds, warm=2, target=target)
        found.append(peak_memory(case, calls) if memory else case)
    return found


def on_spark(uris: dict[str, str], rounds: int) -> list[Case]:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = session.config("spark.driver.memory", "4g").config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        return [
            *cases_of(
                "aggregate on Spark",
                uris,
                lambda u: aggregate(bh.open(u).to_spark(spark)),
                "at most 1.6x",
                rounds,
                False,
            ),
            *cases_of("count on Spark", uris, lambda u: bh.open(u).to_spark(spark).count(), "reported", rounds, False),
        ]
    finally:
        spark.stop()


def main() -> None:
    """`python benchmarks/vectors.py [ROUNDS]`: with a number of rounds nothing is recorded."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    uris = tables()
    cases = [
        *cases_of("to_arrow", uris, whole, "at most 1.1x", rounds, True),
        *cases_of("six columns with a condition", uris, few_columns, "at most 1.1x", rounds, True),
        *on_spark(uris, rounds),
    ]
    files = bh.open(uris[PLAIN]).files().num_rows
    if len(sys.argv) == 1:
        record("Delta: scans of rows deleted by vectors", cases, f"TPC-H lineitem at scale 1, {files} files.")
    print(Path(DATA))


if __name__ == "__main__":
    main()

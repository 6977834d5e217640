"""In process: Lance tables against pylance: rows taken, scans, conditions, writes, many columns.

./run bench lance_tables            all of it
./run bench lance_tables take       what has this word in its title
./run bench lance_tables spark      three columns on Spark, beside the same rows in Parquet
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from harness import DATA, Case, alternate, lineitem, record

import boathouse as bh
import lance

ROWS = 1_000
VECTORS = 500_000
NUMBERS = ["l_orderkey", "l_quantity", "l_extendedprice", "l_discount"]
TEXT = ["l_comment", "l_shipmode"]
ASKED = ["l_orderkey", "l_extendedprice", "l_comment"]
WHERE = "l_discount > 0.09 and l_quantity < 3"
# pylance compares no decimal with a number that is written like this.
LANCE_WHERE = "l_discount > cast('0.09' as decimal(15, 2)) and l_quantity < cast('3' as decimal(15, 2))"
Runners = dict[str, Callable[[], object]]


def table(name: str, make: Callable[[], pa.Table]) -> str:
    """The path of a dataset that pylance has written of these rows, once."""
    path = DATA / f"lance-{name}"
    if not (path / "done").exists():
        shutil.rmtree(path, ignore_errors=True)
        lance.write_dataset(make(), str(path))
        (path / "done").write_text("")
    return str(path)


def vectors() -> pa.Table:
    values = np.random.default_rng(7).random((VECTORS, 128), dtype=np.float32)
    return pa.table({"id": np.arange(VECTORS), "v": pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 128)})


def wide(columns: int) -> pa.Table:
    return pa.table({f"c{i}": np.arange(100) + i for i in range(columns)})


def pair(path: str, theirs: Callable[[lance.LanceDataset], object], ours: Callable[[bh.Table], object]) -> Runners:
    """Both open the table and do the same."""
    return {"pylance": lambda: theirs(lance.dataset(path)), "boathouse": lambda: ours(bh.open(path))}


def taken(items: str, vec: str) -> list[tuple[str, Runners, str]]:
    chance = np.random.default_rng(1)
    rows = lance.dataset(items).count_rows()
    at, of = (sorted(chance.choice(n, ROWS, replace=False).tolist()) for n in (rows, VECTORS))
    parquet = lineitem()
    return [
        ("take of 1,000 rows of 6,000,000: four numbers", pair(
            items, lambda d: d.take(at, columns=NUMBERS), lambda t: t.take(at, NUMBERS)), "at most 1.5x"),
        ("take of 1,000 rows of 500,000: vectors of 128 floats", pair(
            vec, lambda d: d.take(of, columns=["v"]), lambda t: t.take(of, ["v"])), "at most 1.5x"),
        ("take of 1,000 rows of 6,000,000: all columns", pair(
            items, lambda d: d.take(at), lambda t: t.take(at)), "at most 2.5x"),
        ("take of 1,000 rows of 6,000,000: four numbers, beside Parquet", {
            "pyarrow, the rows in Parquet": lambda: ds.dataset(parquet).take(pa.array(at), columns=NUMBERS),
            "boathouse": lambda: bh.open(items).take(at, NUMBERS)}, "at most 0.1x"),
        ("open and count", pair(items, lambda d: d.count_rows(), lambda t: t.count()), "at most 3 ms"),
    ]  # fmt: skip


def searched() -> list[tuple[str, Runners, str]]:
    """The 10 nearest of 500,000 vectors, by every vector and by an index of pylance, which is made once."""
    path = table("vectors-indexed", vectors)
    if not lance.dataset(path).list_indices():
        lance.dataset(path).create_index("v", "IVF_PQ", num_partitions=256, num_sub_vectors=16)
    query = np.random.default_rng(3).random(128, dtype=np.float32)
    asked = {"column": "v", "q": query, "k": 10}

    def theirs(d: lance.LanceDataset, **more: object) -> object:
        return d.to_table(columns=["id", "_distance"], nearest={**asked, **more})

    return [
        ("nearest 10 of 500,000 vectors, every vector", pair(
            path, lambda d: theirs(d, use_index=False),
            lambda t: t.nearest("v", query, 10, columns=["id"])), "reported"),
        ("nearest 10 of 500,000 vectors, IVF_PQ, 20 of 256 partitions", pair(
            path, lambda d: theirs(d, nprobes=20, refine_factor=10),
            lambda t: t.nearest("v", query, 10, columns=["id"], nprobes=20, refine_factor=10)), "reported"),
    ]  # fmt: skip


def scanned(items: str, vec: str) -> list[tuple[str, Runners, str]]:
    def scan(path: str, columns: list[str] | None, where: str | None = None, theirs: str | None = None) -> Runners:
        return pair(
            path,
            lambda d: d.to_table(columns=columns, filter=theirs).num_rows,
            lambda t: t.scan(columns, where).to_arrow().num_rows,
        )

    return [
        ("scan of four numbers", scan(items, NUMBERS), "at most 1.2x"),
        ("scan of vectors", scan(vec, ["v"]), "at most 1.2x"),
        ("scan of strings", scan(items, TEXT), "at most 2x"),
        ("scan of lineitem, all columns", scan(items, None), "at most 1.0x"),
        (
            "scan of three columns under a condition on two others",
            scan(items, ASKED, WHERE, LANCE_WHERE),
            "at most 1.5x",
        ),
    ]


def written() -> list[tuple[str, Runners, str]]:
    rows = pq.read_table(lineitem())
    out = DATA / "lance-written"

    def fresh() -> str:
        shutil.rmtree(out, ignore_errors=True)
        return str(out)

    found = [(
        "write of lineitem",
        {"pylance": lambda: lance.write_dataset(rows, fresh()), "boathouse": lambda: bh.write(rows, fresh(), "lance")},
        "at most 0.8x",
    )]  # fmt: skip
    for columns in (4_000, 10_000):
        many = wide(columns)
        path = table(f"wide-{columns}", lambda many=many: many)
        found += [
            (f"write of {columns:,} columns", {
                "pylance": lambda many=many: lance.write_dataset(many, fresh()),
                "boathouse": lambda many=many: bh.write(many, fresh(), "lance")}, "at most 2.5x"),
            (f"scan of {columns:,} columns", pair(
                path, lambda d: d.to_table().num_rows, lambda t: t.to_arrow().num_rows), "at most 2.5x"),
            (f"scan of one column of {columns:,} under a condition", pair(
                path, lambda d: d.to_table(columns=["c7"], filter="c9 > 50").num_rows,
                lambda t: t.scan(["c7"], "c9 > 50").to_arrow().num_rows), "at most 2.5x"),
        ]  # fmt: skip
    return found


def on_spark() -> Case:
    """Three columns of `lineitem`, summed: every row is read."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    items = table("lineitem", lambda: pq.read_table(lineitem()))
    total = [F.sum("l_orderkey"), F.sum("l_extendedprice"), F.max(F.length("l_comment"))]
    runners = {
        "spark.read.parquet": lambda: spark.read.parquet(str(lineitem())).agg(*total).collect(),
        "boathouse": lambda: bh.open(items, spark=spark).scan(ASKED).to_spark().agg(*total).collect(),
    }
    return alternate("scan of three columns on Spark", runners, "boathouse", rounds=5, warm=2, target="at most 2.5x")


def main() -> None:
    wanted = sys.argv[1:]
    if wanted == ["spark"]:
        record("Spark: three columns of a Lance table, TPC-H lineitem, scale 1", [on_spark()])
        return
    items, vec = table("lineitem", lambda: pq.read_table(lineitem())), table("vectors", vectors)
    cases: list[Case] = []
    for title, runners, target in (*taken(items, vec), *searched(), *scanned(items, vec), *written()):
        if all(word in title for word in wanted):
            cases.append(alternate(title, runners, "boathouse", rounds=5, warm=2, target=target))
    if not wanted:
        record(
            "In process: Lance tables against pylance", cases, "TPC-H lineitem at scale 1, 6,001,215 rows; two threads."
        )
    shutil.rmtree(Path(DATA) / "lance-written", ignore_errors=True)


if __name__ == "__main__":
    main()

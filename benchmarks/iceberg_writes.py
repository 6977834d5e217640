"""Writes of Iceberg tables in process, against pyiceberg with a SQLite catalog.

python benchmarks/iceberg_writes.py [SHARE [NAME ...]]: with a share (0.01) all is so much smaller, with names
(`append`, `upsert`, `delete`) only these are measured, and nothing is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from harness import DATA, Case, alternate, fresh, record
from iceberg_made import NAMES, SCHEMA, bounds, build
from kept import Kept
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.expressions import And, GreaterThanOrEqual, LessThanOrEqual
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

import boathouse as bh
from boathouse.api.engines import LOCAL
from boathouse.ops.outcomes import data_files
from boathouse.ops.run import run
from boathouse.ops.tasks.sink import sink_batches
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.edits import AddFiles

FILES, ROWS, MANIFESTS, A_MANIFEST = 50_000, 1_000_000, 1500, 400
FIRST, LAST = 10_001, 10_009
"""The bounds of n0 in one file of each manifest, which has no nulls: all its rows go, and it is not read."""
FOLDER = DATA / "iceberg-writes"


def catalogs(name: str) -> tuple[Catalog, Any]:
    """A new SQLite catalog, theirs and ours."""
    path = fresh(FOLDER / name)
    Path(path).mkdir()
    options = {"type": "sql", "uri": f"sqlite:///{path}/catalog.db", "warehouse": f"file://{path}"}
    theirs = load_catalog("bench", **options)
    theirs.create_namespace("b")
    return theirs, bh.catalog("bench", **options)


# --- an append of files that are described already, with metrics of 16 columns


def their_files(root: str, files: int) -> list[DataFile]:
    ids = range(1, len(NAMES) + 1)
    return [
        DataFile.from_args(
            content=DataFileContent.DATA, file_path=f"{root}/data/{i:05d}.parquet", file_format=FileFormat.PARQUET,
            partition=Record(), record_count=1, file_size_in_bytes=64_000_000,
            column_sizes=dict.fromkeys(ids, 1_000_000), value_counts=dict.fromkeys(ids, 1),
            null_value_counts=dict.fromkeys(ids, 0), nan_value_counts=dict.fromkeys(range(9, 13), 0),
            lower_bounds=bounds(i, 1), upper_bounds=bounds(i, 9), split_offsets=[4], spec_id=0,
        )
        for i in range(files)
    ]  # fmt: skip


def our_files(table: bh.Table, files: int) -> pa.Table:
    """OUTCOMES of such files, as the writer makes them: that of one file, again and again."""
    kinds = {"n": 1, "d": 1.0, "s": "value"}
    one = pa.table({name: [kinds[name[0]]] for name in NAMES}, SCHEMA)
    context = table._handle.snapshot.write_context("described")
    made = data_files(pa.Table.from_batches(list(sink_batches(one.to_batches(), context))))
    (row,) = made.to_pylist()

    def at(leaf: dict[str, Any], name: str, i: int) -> dict[str, Any]:
        number = 1000 * i
        values = {"n": (number, number + 9), "d": (number / 7, number / 7 + 1),
                  "s": (f"value-{i:09d}-1", f"value-{i:09d}-9")}  # fmt: skip
        lower, upper = values[name[0]]
        return {**leaf, "lower": lower, "upper": upper}

    rows = [
        {**row, "path": f"{table.uri}/data/{i:05d}.parquet",
         "stats": {str(k): at(row["stats"][str(k)], name, i) for k, name in enumerate(NAMES)}}
        for i in range(files)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, made.schema)


@dataclass
class Adds:
    """Commits files by their OUTCOMES."""

    outcomes: pa.Table
    operation: str = "append"

    def plan(self, start: Start) -> WritePlan:
        return WritePlan((), lambda _: Planned(start.change("append", [AddFiles(self.outcomes)])))


def append(share: float, rounds: int) -> Case:
    files, numbers = max(int(FILES * share), 10), count()
    theirs, ours = catalogs("append")
    for i in range(rounds + 1):
        for who in ("theirs", "ours"):
            theirs.create_table(f"b.{who}{i}", schema=SCHEMA)
    described = their_files("file:///elsewhere", files)
    outcomes = our_files(ours.open("b.ours0"), files)

    def their_append() -> int:
        table = theirs.load_table(f"b.theirs{next(numbers) // 2}")
        with table.transaction() as transaction, transaction.update_snapshot().fast_append() as added:
            for file in described:
                added.append_data_file(file)
        return _files(table.refresh().current_snapshot().summary)

    def our_append() -> int:
        table = ours.open(f"b.ours{next(numbers) // 2}")
        snapshot, _ = run(table._handle, LOCAL, Adds(outcomes))
        return _files(snapshot.snapshot["summary"])

    runners = {"pyiceberg": their_append, "boathouse": our_append}
    return alternate(f"append of {files:,} files with metrics of {len(NAMES)} columns", runners, "boathouse", rounds,
                     target="at most 0.2x", check=_is(files))  # fmt: skip


def _files(summary: Any) -> int:
    return int(summary["total-data-files"])


def _is(wanted: int) -> Callable[[str, object], None]:
    def check(name: str, found: object) -> None:
        assert found == wanted, (name, found, wanted)

    return check


# --- an upsert, half of whose rows the table has


def upsert(share: float, rounds: int) -> Case:
    rows, numbers = max(int(ROWS * share), 10), count()
    theirs, ours = catalogs("upsert")
    base, news = keyed(0, rows), keyed(rows // 2, rows)
    for i in range(rounds):
        for who in ("theirs", "ours"):
            theirs.create_table(f"b.{who}{i}", schema=base.schema).append(base)

    def their_upsert() -> int:
        table = theirs.load_table(f"b.theirs{next(numbers) // 2}")
        done = table.upsert(news, join_cols=["id"])
        return done.rows_updated + done.rows_inserted

    def our_upsert() -> int:
        done = ours.open(f"b.ours{next(numbers) // 2}").upsert(news, on="id")
        return done.rows_updated + done.rows_added

    runners = {"pyiceberg": their_upsert, "boathouse": our_upsert}
    found = alternate(f"upsert of {rows:,} rows into {rows:,}, half of them new", runners, "boathouse", rounds, 0,
                      "at most 0.05x", check=_is(rows))  # fmt: skip
    counts = {theirs.load_table(f"b.{who}0").scan().count() for who in ("theirs", "ours")}
    assert counts == {rows + rows - rows // 2}, counts
    return found


def keyed(start: int, rows: int) -> pa.Table:
    """In a random order; the values say where they are from."""
    ids = np.random.default_rng(start).permutation(np.arange(start, start + rows))
    text = pa.array(np.char.add("row ", ids.astype(str)))
    return pa.table({"id": pa.array(ids), "text": text, "value": pa.array(ids / 7 + start)})


# --- a delete of one file of each manifest


def delete(share: float, rounds: int) -> Case:
    manifests = max(int(MANIFESTS * share), 2)
    entries = manifests * A_MANIFEST
    theirs, _ = catalogs("delete")
    roots = {who: build(fresh(FOLDER / f"delete-{who}"), entries, A_MANIFEST) for who in ("theirs", "ours")}
    for root in roots.values():
        # pyiceberg merges no manifests unless it is asked to.
        bh.open(root).set_properties({"commit.manifest-merge.enabled": "false"})
    kept = {who: Kept.of(Path(root)) for who, root in roots.items()}
    head = f"file://{roots['theirs']}/metadata/v3.metadata.json"

    def again() -> None:
        if theirs.list_tables("b"):
            theirs.drop_table("b.t")
        for table in kept.values():
            table.undo()
        theirs.register_table("b.t", head)

    def their_delete() -> int:
        table = theirs.load_table("b.t")
        table.delete(And(GreaterThanOrEqual("n0", FIRST), LessThanOrEqual("n0", LAST)))
        return int(table.refresh().current_snapshot().summary["deleted-data-files"])

    def our_delete() -> int:
        return bh.open(roots["ours"]).delete(f"n0 BETWEEN {FIRST} AND {LAST}").files_removed

    title = f"delete of one file in each of {manifests:,} manifests of {A_MANIFEST}"
    found = alternate(title, {"pyiceberg": their_delete, "boathouse": our_delete}, "boathouse", rounds, 0,
                      "at most 0.1x", again, _is(manifests))  # fmt: skip
    speeds = {name: entries / found.median(name) for name in found.seconds}
    found.title += f" ({', '.join(f'{name} {speed:,.0f} entries a second' for name, speed in speeds.items())})"
    return found


MEASURED = {"append": (append, 5), "upsert": (upsert, 1), "delete": (delete, 2)}


def main() -> None:
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    cases = [run(share, rounds) for name, (run, rounds) in MEASURED.items() if name in (sys.argv[2:] or MEASURED)]
    fresh(FOLDER)
    for case in cases:
        print(case.row())
    if len(sys.argv) == 1:
        record("In process: writes of Iceberg tables against pyiceberg with a SQLite catalog", cases,
               "The files that are appended are described before: what counts is the commit. The upsert of pyiceberg "
               "was run once.")  # fmt: skip


if __name__ == "__main__":
    main()

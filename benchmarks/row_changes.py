"""Delete, merge, optimize and vacuum of Delta tables in process, against deltalake."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from pathlib import Path

import deltalake
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from harness import DATA, alternate, fresh, linked, peak_memory, record, timed
from local import data
from vectors import SHARES

import boathouse as bh

VECTORS = {"delta.enableDeletionVectors": "true"}
ON = "t.l_orderkey = s.l_orderkey AND t.l_linenumber = s.l_linenumber"
KEYS = ["l_orderkey", "l_linenumber"]
SMALL, LISTED = 1000, 100_000
DELETE = SHARES["1 %"]


def made(name: str, make) -> Path:
    path = DATA / name
    if not (path / "_delta_log").exists():
        make(fresh(path))
    return path


def in_small_files(path: str) -> None:
    table, each = data(), -(-data().num_rows // SMALL)
    for at in range(0, table.num_rows, each):
        bh.write(table.slice(at, each), path, mode="append", format="delta")


def in_a_folder_of_many(path: str) -> None:
    """Half of the files are in the table, half were removed two weeks ago."""
    bh.create(path, "x bigint", format="delta")
    past = int((dt.datetime.now(dt.UTC) - dt.timedelta(days=14)).timestamp() * 1000)
    lines = []
    for i in range(LISTED):
        name = f"part-{i:06}.parquet"
        (Path(path) / name).touch()
        os.utime(Path(path) / name, (past / 1000, past / 1000))
        lines.append({"add": {"path": name, "partitionValues": {}, "size": 1, "modificationTime": past,
                              "dataChange": True, "stats": '{"numRecords":1}'}})  # fmt: skip
    entry = Path(path) / "_delta_log" / f"{1:020}.json"
    entry.write_text("\n".join(map(json.dumps, lines)))
    gone = [{"remove": {"path": line["add"]["path"], "deletionTimestamp": past, "dataChange": True}} for line in lines]
    entry.with_name(f"{2:020}.json").write_text("\n".join(map(json.dumps, gone[::2])))


def news() -> pa.Table:
    """30,000 rows that the table has, with another quantity, and 30,000 that it has not."""
    table = data()
    chosen = np.random.default_rng(1).choice(table.num_rows, 30_000, replace=False)
    old = table.take(pa.array(np.sort(chosen)))
    i = old.schema.get_field_index("l_quantity")
    changed = old.set_column(i, old.schema.field(i), pc.add(old["l_quantity"], 1).cast(old.schema.field(i).type))
    shifted = pc.add(old["l_orderkey"], 100_000_000)
    new = old.set_column(0, old.schema.field(0), shifted)
    return pa.concat_tables([changed, new]).combine_chunks()


def their_delete(path: str) -> None:
    deltalake.DeltaTable(path).delete(DELETE)


def our_delete(path: str) -> None:
    bh.open(path).delete(DELETE)


def their_merge(path: str, rows: pa.Table) -> None:
    merge = deltalake.DeltaTable(path).merge(rows, ON, source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def our_merge(path: str, rows: pa.Table) -> None:
    bh.open(path).upsert(rows, on=KEYS)


def their_optimize(path: str) -> None:
    deltalake.DeltaTable(path).optimize.compact()


def our_optimize(path: str) -> None:
    bh.open(path).optimize()


def their_vacuum(path: str) -> None:
    found = deltalake.DeltaTable(path).vacuum(24, dry_run=True, enforce_retention_duration=False)
    assert len(found) == LISTED // 2


def our_vacuum(path: str) -> None:
    found = bh.open(path).vacuum(24, dry_run=True, enforce_retention_duration=False)
    assert len(found.paths) == LISTED // 2


def case(title: str, bases: dict[str, Path], calls: dict[str, object], target: str, rounds: int, *more, memory=False):
    """Each call changes a copy of its own, which is made before it and not timed."""

    def again() -> None:
        for name, base in bases.items():
            linked(base, name)

    again()
    paths = {name: str(DATA / "rows" / name) for name in bases}
    on_copies = {name: (call, (paths[name], *more)) for name, call in calls.items()}
    found = alternate(title, timed(on_copies), "boathouse", rounds=rounds, between=again, target=target)
    if memory:
        again()
        peak_memory(found, on_copies)
    return found


def main() -> None:
    """`python benchmarks/row_changes.py [ROUNDS]`: with a number of rounds nothing is recorded."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    plain = made("rows-plain", lambda path: bh.write(data(), path, format="delta"))
    marked = made("rows-marked", lambda path: bh.write(data(), path, format="delta", properties=VECTORS))
    small, many = made("rows-small", in_small_files), made("rows-listed", in_a_folder_of_many)
    both = {"deltalake": plain, "boathouse": marked}
    cases = [
        case("delete 1 % of the rows, scattered", both, {"deltalake": their_delete, "boathouse": our_delete},
             "at most 0.2x", rounds),
        case("delete 1 %, scattered, without vectors", {"deltalake": plain, "boathouse": plain},
             {"deltalake": their_delete, "boathouse": our_delete}, "reported", rounds),
        case("merge 60,000 rows, half of them new", both, {"deltalake": their_merge, "boathouse": our_merge},
             "at most 0.5x the time, 0.5x the peak memory", rounds, news(), memory=True),
        case(f"optimize {SMALL:,} files", {"deltalake": small, "boathouse": small},
             {"deltalake": their_optimize, "boathouse": our_optimize}, "at most 0.8x", rounds),
        case(f"vacuum, dry run, {LISTED:,} files", {"deltalake": many, "boathouse": many},
             {"deltalake": their_vacuum, "boathouse": our_vacuum}, "at most 0.5x", rounds),
    ]  # fmt: skip
    fresh(DATA / "rows")
    if len(sys.argv) == 1:
        record("In process: changes of a Delta table of TPC-H lineitem, scale 1", cases,
               "deltalake writes no deletion vectors: where nothing else is said, only we mark rows instead of copying "
               "the files they are in.")  # fmt: skip


if __name__ == "__main__":
    main()

"""Planning on a Delta table of a million files (benchmarks/delta_million.py) against deltalake: time, peak memory."""

from __future__ import annotations

import deltalake
import pyarrow as pa
from delta_million import build
from harness import DATA, alternate, peak_memory, record, timed

import boathouse as bh
from boathouse.api.engines import LOCAL

DAY = "2024-05-01"


def ours_one(uri: str) -> int:
    return bh.open(uri).scan(where=f"day = date'{DAY}'").plan(LOCAL).units.num_rows


def theirs_one(uri: str) -> int:
    return len(deltalake.DeltaTable(uri).file_uris([("day", "=", DAY)]))


def ours_all(uri: str) -> int:
    return sum(b.num_rows for b in bh.open(uri)._handle.snapshot.files())


def theirs_all(uri: str) -> int:
    return pa.table(deltalake.DeltaTable(uri).get_add_actions()).num_rows


def main() -> None:
    uri = str(build(DATA / "delta-million"))
    assert ours_one(uri) == theirs_one(uri) and ours_all(uri) == theirs_all(uri)
    cases = []
    for title, ours, theirs, target in (
        ("open and plan one partition", ours_one, theirs_one, "at most 0.3x the time, 0.4x the peak memory"),
        ("open and list all files", ours_all, theirs_all, "at most 0.6x the time"),
    ):
        calls = {"deltalake": (theirs, (uri,)), "boathouse": (ours, (uri,))}
        case = alternate(title, timed(calls), "boathouse", rounds=5, target=target)
        cases.append(peak_memory(case, calls))
    notes = "Peak memory: by how much a new process that does it once grows."
    record(
        "Delta: 1,000,000 files in a V1 checkpoint with JSON statistics, and 9 commits of 1,000 adds and removes",
        cases,
        notes,
    )


if __name__ == "__main__":
    main()

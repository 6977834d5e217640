"""Planning on Delta tables of a million files (benchmarks/delta_million.py) against deltalake: time, peak memory."""

from __future__ import annotations

import sys
from dataclasses import replace

import deltalake
import pyarrow as pa
from delta_million import Shape, build
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


TABLES = {
    "1,000,000 files in a V1 checkpoint with JSON statistics, and 9 commits of 1,000 adds and removes": (
        "delta-million", Shape(),
    ),
    "1,000,000 files in a V2 checkpoint with sidecars, and 9 commits of 1,000 adds and removes": (
        "delta-million-v2", Shape(sidecars=True),
    ),
    "1,000,000 files in a V2 checkpoint with sidecars, and 1,000 commits of 10 adds and removes": (
        "delta-million-tail", Shape(sidecars=True, commits=1000, changes=10),
    ),
}  # fmt: skip


def main() -> None:
    """`python benchmarks/delta_plan.py [FILES]`: with other numbers of files nothing is recorded."""
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for section, (name, shape) in TABLES.items():
        whole = files == shape.files
        folder = DATA / (name if whole else f"{name}-{files}")
        uri = str(build(folder, replace(shape, files=files)))
        assert ours_one(uri) == theirs_one(uri) and ours_all(uri) == theirs_all(uri)
        cases = []
        for title, ours, theirs, target in (
            ("open and plan one partition", ours_one, theirs_one, "at most 0.3x the time, 0.5x the peak memory"),
            ("open and list all files", ours_all, theirs_all, "at most 0.6x the time, 0.5x the peak memory"),
        ):
            calls = {"deltalake": (theirs, (uri,)), "boathouse": (ours, (uri,))}
            case = alternate(title, timed(calls), "boathouse", rounds=5 if whole else 2, target=target)
            cases.append(peak_memory(case, calls) if whole else case)
        if whole:
            record(f"Delta: {section}", cases, "Peak memory: by how much a new process that does it once grows.")


if __name__ == "__main__":
    main()

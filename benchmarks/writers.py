"""Writers that append to one table at the same time, each in its own process, as fast as they can."""

from __future__ import annotations

import multiprocessing as mp
import statistics
import sys
import time
from typing import Any

import deltalake
import pyarrow as pa
from harness import DATA, Case, fresh, record

import boathouse as bh
import lance

SECONDS, WRITERS = 10.0, 8
ROW = pa.table({"id": pa.array([1], pa.int64())})
PEERS = {"delta": "deltalake", "lance": "pylance"}


def append(kind: str, path: str) -> None:
    if kind == "deltalake":
        deltalake.write_deltalake(path, ROW, mode="append")
    elif kind == "pylance":
        lance.write_dataset(ROW, path, mode="append")
    else:
        bh.write(ROW, path, mode="append")


def rows(kind: str, path: str) -> int:
    if kind == "deltalake":
        return deltalake.DeltaTable(path).to_pyarrow_table().num_rows
    return lance.dataset(path).count_rows() if kind == "pylance" else bh.open(path).to_arrow().num_rows


def writer(kind: str, path: str, warm: str, seconds: float, start: Any, send: Any) -> None:
    """Sends the duration of each successful append, and the number of appends that were given up."""
    append(kind, warm)
    start.wait()
    taken, failed = [], 0
    end = time.perf_counter() + seconds
    while (before := time.perf_counter()) < end:
        try:
            append(kind, path)
        except Exception as error:
            failed += 1
            print(f"{kind}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        taken.append(time.perf_counter() - before)
    send.send((taken, failed))


def race(kinds: list[str], format: str, seconds: float) -> list[tuple[list[float], int]]:
    """The writers' appends to one table, checked: the table contains all acknowledged rows, and no others."""
    path = fresh(DATA / "writers")
    bh.write(ROW, path, format=format)
    context = mp.get_context("spawn")
    start = context.Barrier(len(kinds))
    pipes, processes = [], []
    for i, kind in enumerate(kinds):
        warm = fresh(DATA / f"writers-warm-{i}")
        bh.write(ROW, warm, format=format)
        receive, send = context.Pipe(duplex=False)
        processes.append(context.Process(target=writer, args=(kind, path, warm, seconds, start, send)))
        pipes.append(receive)
        processes[-1].start()
        send.close()
    found = [receive.recv() for receive in pipes]
    for process in processes:
        process.join()
    expected = 1 + sum(len(taken) for taken, _ in found)
    assert rows("boathouse", path) == expected
    if not any(failed for _, failed in found):
        assert format not in PEERS or rows(PEERS[format], path) == expected
    return found


def beside_deltalake() -> tuple[Case, str]:
    names = ["deltalake 1", "deltalake 2", "boathouse"]
    found = race([n.split()[0] for n in names], "delta", SECONDS)
    case = Case(
        f"one of ours beside two deltalake writers, {SECONDS:.0f} s: an append",
        "boathouse",
        {name: taken for name, (taken, _) in zip(names, found)},
        target="reported",
    )
    print(case.row(), flush=True)
    commits = ", ".join(f"{name} {len(taken)}" for name, (taken, _) in zip(names, found))
    return case, f"Commits beside two deltalake writers: {commits}."


def eight(format: str) -> tuple[list[Case], str]:
    kinds = [*([PEERS[format]] if format in PEERS else []), "boathouse"]
    found = {kind: race([kind] * WRITERS, format, SECONDS) for kind in kinds}
    appends = {kind: [s for taken, _ in runs for s in taken] for kind, runs in found.items()}
    worst = {kind: [max(taken) for taken, _ in runs if taken] for kind, runs in found.items()}
    title = f"{WRITERS} writers, {format}, {SECONDS:.0f} s"
    cases = [
        Case(f"{title}: an append", "boathouse", appends, target="reported"),
        Case(f"{title}: the worst append of each writer", "boathouse", worst, target="reported"),
    ]
    for case in cases:
        print(case.row(), flush=True)
    notes = []
    for kind, runs in found.items():
        counts = [len(taken) for taken, _ in runs]
        given_up = sum(failed for _, failed in runs)
        notes.append(
            f"{kind} {sum(counts)} commits ({min(counts)} to {max(counts)} a writer, {given_up} given up; the worst "
            f"append took {max(worst[kind]):.2f} s, the median {statistics.median(appends[kind]):.3f} s)"
        )
    return cases, f"{WRITERS} writers, {format}: {'; '.join(notes)}."


def main() -> None:
    case, note = beside_deltalake()
    cases, notes = [case], [note]
    for format in ("delta", "lance", "iceberg"):
        found, note = eight(format)
        cases += found
        notes.append(note)
    record("Writers at the same time: one-row appends", cases, " ".join(notes))


if __name__ == "__main__":
    main()

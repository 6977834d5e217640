"""Eight writers that append, update, delete, merge and compact at once: no row is lost, and none of them starves."""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import time
from pathlib import Path

import pyarrow as pa
import pytest
from peers import by_peer

import boathouse as bh

FORK = multiprocessing.get_context("fork")
WRITERS = 8
SECONDS = float(os.environ.get("BOATHOUSE_MIXED_SECONDS", "45"))
VECTORS = {"delta.enableDeletionVectors": "true"}
Rows = dict[int, str]


def rows(found: Rows) -> pa.Table:
    return pa.table({"id": pa.array(found, pa.int64()), "s": pa.array(found.values(), pa.string())})


class Writer:
    """Changes ids that are its own, in files that it shares with the others, and remembers what they should be."""

    def __init__(self, uri: str, number: int) -> None:
        self.uri, self.base = uri, number * 1_000_000
        self.rows: Rows = {self.base + i: "first" for i in range(4)}
        self.next = self.base + 4

    def append(self, n: int) -> None:
        new = {self.next: f"a{n}", self.next + 1: f"b{n}"}
        bh.open(self.uri).append(rows(new))
        self.rows |= new
        self.next += 2

    def update(self, n: int) -> None:
        chosen = min(self.rows)
        assert bh.open(self.uri).update({"s": f"'u{n}'"}, where=f"id = {chosen}").rows_updated == 1
        self.rows[chosen] = f"u{n}"

    def delete(self, n: int) -> None:
        chosen = max(self.rows)
        assert bh.open(self.uri).delete(f"id = {chosen}").rows_deleted == 1
        del self.rows[chosen]

    def merge(self, n: int) -> None:
        news = {min(self.rows): f"m{n}", self.next: f"n{n}"}
        done = bh.open(self.uri).upsert(rows(news), on="id")
        assert (done.rows_updated, done.rows_added) == (1, 1)
        self.rows |= news
        self.next += 1

    def optimize(self, n: int) -> None:
        bh.open(self.uri).optimize()


def work(uri: str, number: int, until: float, report: str) -> None:
    """Operations one after the other, each writer beginning with another one; one that is begun in time is ended."""
    writer = Writer(uri, number)
    acts = [writer.append, writer.update, writer.merge, writer.delete, writer.append, writer.merge, writer.optimize]
    done = 0
    while time.monotonic() < until:
        acts[(done + number) % len(acts)](done)
        done += 1
    Path(report).write_text(json.dumps({"done": done, "rows": writer.rows}))


def as_rows(table: pa.Table) -> Rows:
    ids, strings = table["id"].to_pylist(), table["s"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, strings, strict=True))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("format", "properties"), [("delta", {}), ("delta", VECTORS), ("iceberg", {}), ("lance", {})], ids=str
)
def test_nobody_starves(tmp_path, format, properties):
    uri = str(tmp_path / "t")
    bh.create(uri, "id bigint, s string", format=format, properties=properties)
    first = {w * 1_000_000 + i: "first" for w in range(WRITERS) for i in range(4)}
    bh.open(uri).append(rows(first))
    until = time.monotonic() + SECONDS
    reports = [str(tmp_path / f"{w}.json") for w in range(WRITERS)]
    writers = [FORK.Process(target=work, args=(uri, w, until, report)) for w, report in enumerate(reports)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    told = [json.loads(Path(report).read_text()) for report in reports]
    wanted = {int(id): text for r in told for id, text in r["rows"].items()}
    assert as_rows(bh.open(uri).to_arrow()) == wanted == as_rows(by_peer(uri, format))
    counts = sorted(r["done"] for r in told)
    assert counts[0] >= statistics.median(counts) / 3, counts

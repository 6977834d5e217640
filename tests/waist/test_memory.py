"""Data larger than memory passes through: a reader that is appended, a scan that is read batch by batch."""

from __future__ import annotations

import subprocess
import sys
import threading

import pyarrow as pa
import pytest

import boathouse as bh
from makers.traits import REAL

PROGRAM = """
import resource, sys
import numpy as np, pyarrow as pa
import boathouse as bh

uri, format, what, megabytes = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
schema = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("s", pa.string())])

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

def batches(rows=1 << 16):
    text = pa.array([f"text {i % 997} " * 4 for i in range(rows)])
    base = np.arange(rows)
    for n in range((megabytes << 20) // (rows * 16 + text.nbytes)):
        yield pa.record_batch([pa.array(base + n * rows), pa.array((base % 1000) / 7.0), text], schema=schema)

if what == "append":
    bh.create(uri, schema, format=format)
    bh.open(uri).append(pa.table({"id": [1], "x": [1.0], "s": ["a"]}))
    before = peak()
    done = bh.open(uri).append(pa.RecordBatchReader.from_batches(schema, batches()))
    print(peak() - before, done.rows_added)
else:
    t = bh.open(uri)
    next(iter(t.scan(where="id = 1").to_batches()), None)
    before = peak()
    print(0, sum(b.num_rows for b in t.scan().to_batches()), peak() - before)
"""


def run(*arguments: object) -> list[int]:
    text = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True
    ).stdout
    return [int(n) for n in text.split()]


@pytest.mark.slow
@pytest.mark.parametrize("format", REAL)
def test_two_gigabytes_pass_through(tmp_path, format):
    uri = str(tmp_path / "t")
    grown, rows = run(uri, format, "append", 2048)
    assert grown < 700, f"{grown} MiB to append 2048 MiB"
    _, read, grown = run(uri, format, "read", 0)
    assert read == rows + 1
    assert grown < 900, f"{grown} MiB to read 2048 MiB"


@pytest.mark.parametrize("format", REAL)
def test_a_scan_that_is_left_early_leaves_no_thread(tmp_path, format):
    uri = str(tmp_path / "t")
    bh.create(uri, "id bigint", format=format)
    table = bh.open(uri)
    for i in range(6):
        table.append(pa.table({"id": list(range(i * 100, i * 100 + 100))}))
    rows = table.scan().to_batches()
    next(rows)
    rows.close()
    reader = table.scan().to_reader()
    reader.read_next_batch()
    reader.close()
    del reader
    assert not [t for t in threading.enumerate() if t.name.startswith("boathouse")]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(600))

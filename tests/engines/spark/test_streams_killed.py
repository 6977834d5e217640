"""Streams whose drivers are killed at random moments, while their sources grow, are compacted, vacuumed and widened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.table.features import Retention
from makers.traits import TRAITS

ROOT = Path(__file__).parents[3]
LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None
KILLS = {"delta": 7, "iceberg": 7, "lance": 6}
"""Drivers that are killed, by the format of the source; each runs streams to all three formats, and a merge."""
KEYS = 5


class Source:
    """A table that changes at random; `ids` are all that it was ever given."""

    def __init__(self, folder: Path, format: str, random: random.Random) -> None:
        self.path, self.format, self.random = str(folder / "source"), format, random
        self.ids: list[int] = []
        self.columns: list[str] = []
        self.did: Counter[str] = Counter()
        bh.create(self.path, "id bigint, key bigint", format=format)

    def change(self) -> None:
        todo = self.random.choices(("append", "optimize", "vacuum", "add column"), (12, 2, 1, 1))[0]
        self.did[todo] += 1
        table = bh.open(self.path)
        if todo == "append":
            new = range(len(self.ids), len(self.ids) + self.random.randint(1, 40))
            self.ids += new
            rows = {"id": list(new), "key": [i % KEYS for i in new], **{c: list(new) for c in self.columns}}
            table.append(pa.table(rows))
        elif todo == "optimize":
            table.optimize()
        elif todo == "vacuum":
            if Retention in TRAITS[self.format].offers:
                table.vacuum()
        else:
            self.columns.append(f"c{len(self.columns)}")
            table.add_column(self.columns[-1], "bigint")


class Driver:
    """A running program of streams."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "driver.log"
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(ROOT / "makers" / "stream_driver.py"), str(folder)],
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"},
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def wait_for(self, word: str) -> None:
        for _ in range(3000):
            text = self.log.read_text()
            if f"{word}\n" in text:
                return
            assert self.process.poll() is None, text[-5000:]
            time.sleep(0.1)
        raise AssertionError(self.log.read_text()[-5000:])

    def kill(self) -> None:
        """Python, the JVM and its workers, at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def noted(folder: Path) -> int:
    """How often the queries have begun or ended a batch, by their checkpoints."""
    return sum(1 for kind in ("offsets", "commits") for _ in folder.glob(f"checkpoints/*/{kind}/[0-9]*"))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not LIMITS, reason="before PySpark 4.2 a batch has everything")
@pytest.mark.parametrize("format", KILLS)
def test_every_row_arrives_once_whenever_a_driver_dies(tmp_path, format):
    seed = random.Random(f"streams of {format}")
    source = Source(tmp_path, format, seed)
    bh.create(str(tmp_path / "merged"), "key bigint, rows bigint", format=format)
    batches = 0
    for _ in range(KILLS[format]):
        for _ in range(seed.randint(0, 3)):
            source.change()
        driver = Driver(tmp_path)
        try:
            driver.wait_for("started")
            steps, until = noted(tmp_path) + seed.randint(0, 4), time.monotonic() + 10
            while noted(tmp_path) < steps and time.monotonic() < until:
                source.change()
                time.sleep(seed.uniform(0.3, 1.5))
            time.sleep(seed.uniform(0, 1.5))
            assert driver.process.poll() is None, driver.log.read_text()[-5000:]
        finally:
            driver.kill()
    (tmp_path / "end").touch()
    driver = Driver(tmp_path)
    try:
        driver.wait_for("done")
    finally:
        driver.kill()
    for name in KILLS:
        found = bh.open(str(tmp_path / name)).to_arrow()
        assert sorted(found["id"].to_pylist()) == source.ids, name
        for column in set(source.columns) & set(found.column_names):
            given = [(i, v) for i, v in zip(found["id"].to_pylist(), found[column].to_pylist()) if v is not None]
            assert all(i == v for i, v in given), (name, column)
        batches += len(list((tmp_path / "checkpoints" / name / "commits").glob("[0-9]*")))
    merged = bh.open(str(tmp_path / "merged")).to_arrow().to_pylist()
    assert {row["key"]: row["rows"] for row in merged} == Counter(i % KEYS for i in source.ids)
    print(f"{format}: {KILLS[format]} drivers killed, {batches} batches of {len(source.ids)} rows; {dict(source.did)}")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not LIMITS, reason="before PySpark 4.2 a batch has everything")
@pytest.mark.parametrize(
    ("what", "error"),
    [("restored", "StreamError: version"), ("vacuumed", "MissingFileError: version")],
)
def test_a_stream_stops_with_its_error_where_rows_are_gone(tmp_path, what, error):
    source = Source(tmp_path, "delta", random.Random(what))
    bh.create(str(tmp_path / "merged"), "key bigint, rows bigint", format="delta")
    append(source, 3)
    first = bh.open(source.path).version
    append(source, 3)
    (tmp_path / "end").touch()
    driver = Driver(tmp_path)
    try:
        driver.wait_for("done")
    finally:
        driver.kill()
    if what == "restored":
        bh.open(source.path).restore(first)
    else:
        append(source, 3)
        bh.open(source.path).optimize()
        bh.open(source.path).vacuum(0, enforce_retention_duration=False)
    driver = Driver(tmp_path)
    try:
        assert driver.process.wait(200) != 0
    finally:
        driver.kill()
    assert error in driver.log.read_text()
    for name in KILLS:
        assert sorted(bh.open(str(tmp_path / name)).to_arrow()["id"].to_pylist()) == list(range(6)), name


def append(source: Source, rows: int) -> None:
    new = range(len(source.ids), len(source.ids) + rows)
    source.ids += new
    bh.open(source.path).append(pa.table({"id": list(new), "key": [i % KEYS for i in new]}))

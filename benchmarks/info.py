"""How long it takes to begin: `import boathouse`, `boathouse info`, and the first frame of a Spark session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from harness import DATA, Case, alternate, fresh, record

import boathouse as bh

ROUNDS = 5
SESSION = """
import sys, time
from pyspark.sql import SparkSession
import boathouse as bh
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.range(10).count()
path, how = sys.argv[1:]
begun = time.perf_counter()
frame = bh.open(path, spark=spark).to_spark() if how == "boathouse" else spark.read.parquet(*how.split(","))
made = time.perf_counter()
assert frame.count() == 5
print(made - begun, time.perf_counter() - begun)
"""


def small(format: str) -> str:
    uri = fresh(DATA / f"small-{format}")
    for i in range(5):
        bh.write(pa.table({"id": [i], "name": ["x"]}), uri, format=format, mode="append")
    return uri


def imports() -> Case:
    commands = {
        "python -c pass": "pass", "pyarrow": "import pyarrow", "deltalake": "import deltalake",
        "pyiceberg": "import pyiceberg.table", "pylance": "import lance", "boathouse": "import boathouse",
    }  # fmt: skip
    runners = {
        name: lambda text=text: subprocess.run([sys.executable, "-c", text], check=True)
        for name, text in commands.items()
    }
    return alternate("import", runners, "boathouse", rounds=9, target="at most 0.1 s")


def infos() -> Case:
    script = str(Path(sys.executable).parent / "boathouse")
    runners = {}
    for format in ("delta", "iceberg", "lance"):
        command = [script, "info", small(format)]
        runners[format] = lambda command=command: subprocess.run(command, check=True, capture_output=True)
    runners["python -c pass"] = lambda: subprocess.run([sys.executable, "-c", "pass"], check=True)
    return alternate("boathouse info", runners, "delta", rounds=9, target="at most 0.3 s")


def first_frames() -> list[Case]:
    """Of new sessions, in turn: the frame alone, and its rows counted."""
    path = small("delta")
    files = ",".join(bh.open(path).files().column("path").to_pylist())
    names = {"spark.read.parquet": files, "boathouse": "boathouse"}
    frame, counted = (
        Case(f"{what} of a new session", "boathouse", {name: [] for name in names}, target="reported")
        for what in ("first t.to_spark()", "first t.to_spark().count()")
    )
    for _ in range(ROUNDS):
        for name, how in names.items():
            done = subprocess.run(
                [sys.executable, "-c", SESSION, path, how], check=True, capture_output=True, text=True
            )
            made, all = map(float, done.stdout.split()[-2:])
            frame.seconds[name].append(made)
            counted.seconds[name].append(all)
    for case in (frame, counted):
        print(case.row(), flush=True)
    return [frame, counted]


def main() -> None:
    record("Beginning: imports, `boathouse info` on a small table, first frames", [imports(), infos(), *first_frames()])


if __name__ == "__main__":
    main()

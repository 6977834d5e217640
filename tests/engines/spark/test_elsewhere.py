"""The engine in other processes: Spark Connect, and workers that have only numpy, pandas and pyarrow."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from makers.traits import REAL, TRAITS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4")
builder = builder.config("spark.driver.memory", "1g").config("spark.sql.session.timeZone", "Asia/Kolkata")
target = sys.argv[1]
builder = builder.remote("local[2]") if target == "connect" else builder.master(target)
spark = builder.getOrCreate()
import boathouse as bh

folder = sys.argv[2]
query = "id", "CAST(id % 3 AS int) AS p", "timestamp_micros(id) AS ts", "CAST(id AS string) AS s"
for format, traits in json.loads(sys.argv[3]).items():
    path = f"{folder}/{format} [a]{{b}}%20 ü"
    made = bh.write(
        spark.range(0, 1000, 1, 3).selectExpr(*query), path, format=format, partition_by=traits["partition_by"]
    )
    assert made.rows_added == 1000, made
    table = bh.open(path, spark=spark)
    table.append(spark.range(1000, 1010).selectExpr(*query))
    frame = table.to_spark(spark)
    got = frame.selectExpr("sum(id)", "count(DISTINCT p)", "max(unix_micros(ts))").collect()[0]
    assert got == (1010 * 1009 // 2, 3, 1009), got
    assert table.scan(where="p = 1 AND id < 10").to_spark(spark).count() == 3
    table.delete("id < 10")
    assert table.to_spark(spark).count() == 1000
    explained = str(table.scan().explain())
    assert traits["read"] in explained, explained
    if target == "connect":  # the data source is planned in a worker's Python: that one needs boathouse
        assert spark.read.format("boathouse").load(path).where("id = 500").count() == 1
    print("done", format)
"""


OF_FORMATS = {
    format: {
        "partition_by": TRAITS[format].by("p"),
        "read": "native:" if TRAITS[format].native_on_spark else "tasks:",
    }
    for format in REAL
}
"""What the program is told of each."""


def run(tmp_path, target: str, python: str = sys.executable, **env: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), target, str(tmp_path), json.dumps(OF_FORMATS)],
        env={**os.environ, "PYSPARK_PYTHON": python, "PYTHONWARNINGS": "ignore", **env},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.splitlines()[: len(REAL)] == [f"done {format}" for format in REAL]


FAILURES = """
import os, sys
from pathlib import Path
from pyspark.sql import SparkSession
spark = SparkSession.builder.config("spark.driver.memory", "1g").remote("local[2]").getOrCreate()
import boathouse as bh
from boathouse.errors import BoathouseError
from makers.failing_rows import failing_rows

for format in ("delta", "iceberg", "lance"):
    folder = f"{sys.argv[1]}/{format}"
    bh.write(spark.range(3).selectExpr("id", "id AS v"), folder, format=format)
    before = sorted(Path(folder).rglob("*"))
    for how in ("kill", "raise", "cast")[: 3 if format == "delta" else 1]:
        try:
            bh.open(folder, spark=spark).append(failing_rows(spark, folder, how))
        except BoathouseError as error:
            clean = sorted(Path(folder).rglob("*")) == before
            print(format, type(error).__name__, str(error).splitlines()[0][:27], clean)
"""
TOLD = {
    "kill": "JobError A worker of Spark was lost:",
    "raise": "JobError KeyError: 'no such thing' (",
    "cast": "EvaluationError [CAST_INVALID_INPUT] The va",
}


@pytest.mark.smoke
def test_connect(tmp_path):
    run(tmp_path, "connect")


def test_failed_jobs_on_connect_leave_no_file_and_name_the_cause(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(FAILURES)
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    expected = [f"delta {told} True" for told in TOLD.values()]
    expected += [f"{format} {TOLD['kill']} True" for format in ("iceberg", "lance")]
    assert [line for line in done.stdout.split("\n") if line] == expected


@pytest.mark.parametrize("master", [pytest.param("local[2]", marks=pytest.mark.smoke), "local-cluster[2,1,1024]"])
def test_workers_without_boathouse(tmp_path, master):
    folder = os.environ.get("BOATHOUSE_WORKER_ENV", str(tmp_path / "worker"))
    made = subprocess.run(
        [str(ROOT / "tools" / "worker_env.sh"), folder],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=400,
    )
    if made.returncode:
        pytest.skip(f"no worker environment: {made.stderr[-300:]}")
    python = made.stdout.split()[-1]
    lacking = subprocess.run([python, "-c", "import boathouse"], capture_output=True)
    assert lacking.returncode != 0
    run(tmp_path, master, python)

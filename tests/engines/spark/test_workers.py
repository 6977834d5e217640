"""Workers whose Python cannot run the tasks: one typed error before anything is written."""

import os
import subprocess
import sys
import venv
from types import SimpleNamespace

import pytest

from boathouse.engines.spark.workers import _refusal

pytestmark = pytest.mark.spark

JOB = """
import sys
import boathouse as bh
from boathouse.errors import MissingRequirementError
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
for _ in range(2):
    try:
        bh.write(spark.range(3), sys.argv[1])
    except MissingRequirementError as error:
        print("RAISED", error)
"""


@pytest.mark.slow
@pytest.mark.smoke
def test_workers_without_pyarrow(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    folder = tmp_path / "bare" / "bin"
    (folder / "python3").exists() or (folder / "python3").symlink_to(folder / "python")
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK")}
    env["PATH"] = f"{folder}{os.pathsep}{env['PATH']}"
    ran = subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path / "t")], capture_output=True, text=True, env=env, timeout=300
    )
    raised = [line for line in ran.stdout.splitlines() if "RAISED" in line]
    assert len(raised) == 2, ran.stderr[-2000:]
    for part in (str(folder), "lacks numpy and pyarrow", f"PYSPARK_PYTHON={sys.executable}"):
        assert part in raised[0]
    assert not list((tmp_path / "t").glob("**/*.parquet"))


MISMATCH = (
    "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: "
    "3.11, PySpark cannot run with different minor versions.\nPlease check environment variables PYSPARK_PYTHON"
)
NOT_THERE = 'java.io.IOException: Cannot run program "/nope/python": error=2, No such file or directory'


@pytest.mark.parametrize(
    "text, told",
    [
        (MISMATCH, f"Python 3.12, but this is {sys.version_info[0]}.{sys.version_info[1]}"),
        (NOT_THERE, "cannot start /nope/python"),
    ],
)
def test_what_spark_says_of_another_python(text, told):
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: default))
    assert told in str(_refusal(session, text))
    assert _refusal(session, "out of memory") is None

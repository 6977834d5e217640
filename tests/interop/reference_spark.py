"""Spark of another release with the reference implementations of Delta and Iceberg, in a process of its own.

A virtual environment and the JARs of each release are fetched once below ~/.cache/boathouse; without a network the
tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MAVEN = "https://repo1.maven.org/maven2"
DRIVER = """
import json, sys
from pyspark.sql import SparkSession
jars, warehouse, extra = sys.argv[1:]
conf = {
    "spark.jars": jars, "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "1g",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop", "spark.sql.catalog.ice.warehouse": warehouse,
    "spark.sql.catalog.ice.cache-enabled": "false", "spark.sql.warehouse.dir": warehouse + "/spark",
    **json.loads(extra),
}
builder = SparkSession.builder.master("local[2]")
for key, value in conf.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
print("@ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    try:
        found = spark.sql(asked["sql"])
        if asked["out"]:
            found.coalesce(1).write.mode("overwrite").parquet(asked["out"])
        answer = {}
    except Exception as error:
        answer = {"error": str(error)[:2000]}
    print("@" + json.dumps(answer), flush=True)
"""


@dataclass(frozen=True)
class Release:
    """PySpark of a version, JARs by their place in Maven, and settings."""

    name: str
    pyspark: str
    jars: tuple[str, ...]
    conf: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return Path.home() / ".cache" / "boathouse" / self.name

    def build(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        if not (self.home / "venv/ready").exists():
            subprocess.run([sys.executable, "-m", "venv", str(self.home / "venv")], check=True)
            pip = [str(self.home / "venv/bin/pip"), "install", "-q", f"pyspark=={self.pyspark}"]
            subprocess.run(pip, check=True, timeout=550)
            (self.home / "venv/ready").write_text("")
        self.fetch()

    def fetch(self) -> str:
        """The JARs as `spark.jars` takes them."""
        (self.home / "jars").mkdir(parents=True, exist_ok=True)
        places = [self.home / "jars" / Path(jar).name for jar in self.jars]
        for jar, place in zip(self.jars, places, strict=True):
            if not place.exists():
                urllib.request.urlretrieve(f"{MAVEN}/{jar}", place.with_suffix(".part"))
                place.with_suffix(".part").rename(place)
        return ",".join(map(str, places))


def _delta_jars(spark: str) -> tuple[str, ...]:
    names = (
        f"delta-spark_{spark}_2.13", "delta-storage", "delta-kernel-api", "delta-kernel-defaults",
        "delta-kernel-unitycatalog",
    )  # fmt: skip
    jars = (f"io/delta/{name}/4.4.0/{name}-4.4.0.jar" for name in names)
    return (*jars, "org/antlr/antlr4-runtime/4.13.1/antlr4-runtime-4.13.1.jar")


DELTA = Release(
    "reference-spark",  # shares the environment with the other release of that name
    "4.0.1",
    _delta_jars("4.0"),
    {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    },
)
"""The newest delta-spark for this PySpark."""

DELTA_41 = Release("reference-spark-4.1", "4.1.1", _delta_jars("4.1"), DELTA.conf)
"""The same for the first PySpark that annotates variants in Parquet files."""


ICEBERG = Release(
    "reference-spark",
    "4.0.1",
    ("org/apache/iceberg/iceberg-spark-runtime-4.0_2.13/1.10.1/iceberg-spark-runtime-4.0_2.13-1.10.1.jar",),
)
"""The iceberg-spark that tables are compared with."""


def started(release: Release, root: Path) -> Reference:
    """The release in a process; skips where it cannot be fetched."""
    try:
        release.build()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"the reference implementations cannot be fetched: {error}")
    return Reference(root, release)


class Reference:
    """A process with the other Spark; one SQL statement at a time."""

    def __init__(self, root: Path, release: Release):
        self.root = root
        (root / "driver.py").write_text(DRIVER)
        jars = ",".join(str(release.home / "jars" / Path(j).name) for j in release.jars)
        python = str(release.home / "venv" / "bin" / "python")
        self.process = subprocess.Popen(
            [python, str(root / "driver.py"), jars, str(root), json.dumps(release.conf)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(root / "log").open("w"), text=True, cwd=root,
            env={**_plain_environment(), "PYSPARK_PYTHON": python},
        )  # fmt: skip
        self._answer()

    def _answer(self) -> str:
        for line in self.process.stdout:
            if line.startswith("@"):
                return line[1:]
        raise AssertionError((self.root / "log").read_text()[-3000:])

    def sql(self, *statements: str, out: Path | None = None) -> None:
        for statement in statements:
            error = self._ask(statement, out)
            assert error is None, (statement, error)

    def error(self, statement: str) -> str | None:
        """What the reference says to a statement that it refuses."""
        return self._ask(statement, None)

    def _ask(self, statement: str, out: Path | None) -> str | None:
        self.process.stdin.write(json.dumps({"sql": statement, "out": None if out is None else str(out)}) + "\n")
        self.process.stdin.flush()
        return json.loads(self._answer()).get("error")

    def rows(self, query: str) -> pa.Table:
        """What the reference reads, carried over in a Parquet file."""
        out = self.root / "out"
        self.sql(query, out=out)
        (file,) = out.glob("*.parquet")
        return pq.ParquetFile(file).read()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait(60)


def _plain_environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_", "PYTHON"))}

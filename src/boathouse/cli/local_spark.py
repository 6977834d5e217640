"""A small, quiet local Spark: finds Java first, and writes the JVM's output to a file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from boathouse.errors import MissingRequirementError

JAVA = 17
_CONF = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_QUIET = """\
status = error
rootLogger.level = error
rootLogger.appenderRef.file.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c: %m%n%ex
"""


def check() -> None:
    """Raises MissingRequirementError unless PySpark and a suitable Java are installed."""
    if find_spec("pyspark") is None:
        raise MissingRequirementError("PySpark is not installed", advice="run pip install 'boathouse[spark]'")
    java = _java()
    if java is None:
        raise MissingRequirementError(
            f"Spark needs Java {JAVA} or later, and none was found",
            advice="install one (openjdk-17-jre-headless on Debian and Ubuntu) or set JAVA_HOME",
        )
    major = _major(java)
    if major is not None and major < JAVA:
        raise MissingRequirementError(
            f"Spark needs Java {JAVA} or later; this one is {major}",
            where=java,
            advice="install a newer one and set JAVA_HOME to it",
        )


def _java() -> str | None:
    """The java executable that Spark's own scripts would start."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if java.is_file() else None
    return shutil.which("java")


def _major(java: str) -> int | None:
    done = subprocess.run([java, "-version"], capture_output=True, text=True)
    match = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if match is None:
        return None
    return int(match[2]) if match[1] == "1" and match[2] else int(match[1])


@contextmanager
def session(work: Path) -> Iterator[Any]:
    """A SparkSession on two cores, stopped at the end; its scratch files and its log are in `work`.

    Raises MissingRequirementError with the end of the log if Spark does not start.
    """
    check()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    quiet = work / "log4j2.properties"
    quiet.write_text(_QUIET)
    log = work / "spark.log"
    builder = import_module("pyspark.sql").SparkSession.builder.master("local[2]").appName("boathouse-demo")
    for name, value in (_CONF | {
        "spark.local.dir": str(work / "scratch"),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet.as_uri()}",
    }).items():  # fmt: skip
        builder = builder.config(name, value)
    try:
        with _output_to(log):
            spark = builder.getOrCreate()
    except Exception as error:
        said = "; ".join(log.read_text(errors="replace").split("\n")[-4:]).strip("; ")
        raise MissingRequirementError(
            f"Spark does not start: {said or error}", advice="check JAVA_HOME and that 1 GiB of memory is free"
        ) from error
    try:
        yield spark
    finally:
        with suppress(Exception):
            spark.stop()


@contextmanager
def _output_to(file: Path) -> Iterator[None]:
    """Redirects standard output and error of this process, which the JVM inherits, to a file inside the block."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        for saved, number in zip(kept, (1, 2), strict=True):
            os.dup2(saved, number)
            os.close(saved)
        os.close(target)

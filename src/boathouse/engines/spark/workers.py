"""Checks once per session, before anything is written, that Spark's Python workers have what tasks need."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from boathouse.errors import MissingRequirementError

NEEDED = ("numpy", "pyarrow")
_OTHER_VERSION = re.compile(r"[Pp]ython in worker has different version:? \(?(\d+[., ]+\d+)\)? than that in driver")
_NOT_STARTED = re.compile(r'Cannot run program "([^"]*)"')


def check_workers(spark: SparkSession) -> None:
    """Raises MissingRequirementError if the workers' Python lacks a package, is another version, or does not start.

    Other failures are left to the job that follows, which raises its own error.
    """
    # A plain function needs neither package; Arrow functions would fail without them.
    ask = F.udf(_question(NEEDED), "string", useArrow=False)
    try:
        answer = spark.range(0, 1, 1, 1).select(ask("id")).collect()[0][0]
    except Exception as error:  # py4j's own on classic, PySpark's on Connect
        refused = _refusal(spark, str(error))
        if refused is not None:
            raise refused from None
        return
    python, version, missing = json.loads(answer)
    if missing:
        lacks = f"Spark's workers run {python} (Python {version}), which lacks {' and '.join(missing)}"
        raise _missing(lacks, f"install {' and '.join(missing)} there, or ")


def _question(needed: tuple[str, ...]) -> Callable[[int], str]:
    """A function that is pickled by value because it is nested: workers may lack this library too."""
    load, search, dumps = import_module, find_spec, json.dumps

    def answer(_: int) -> str:
        system = load("sys")
        version = ".".join(map(str, system.version_info[:2]))
        return dumps([system.executable, version, [name for name in needed if search(name) is None]])

    return answer


def _refusal(spark: SparkSession, text: str) -> MissingRequirementError | None:
    other = _OTHER_VERSION.search(text)
    if other is not None:
        mine = ".".join(map(str, sys.version_info[:2]))
        theirs = ".".join(re.findall(r"\d+", other[1]))
        return _missing(f"Spark's workers run {_configured(spark)}, which is Python {theirs}, but this is {mine}")
    unknown = _NOT_STARTED.search(text)
    return None if unknown is None else _missing(f"Spark's workers cannot start {unknown[1]}")


def _configured(spark: SparkSession) -> str:
    """The Python with which the session starts its workers."""
    named = spark.conf.get("spark.pyspark.python", None) or os.environ.get("PYSPARK_PYTHON")
    return named or "the python3 of their PATH"


def _missing(found: str, instead: str = "") -> MissingRequirementError:
    return MissingRequirementError(
        found,
        advice=f"{instead}set PYSPARK_PYTHON={sys.executable} before the session starts "
        f"(in Python: os.environ['PYSPARK_PYTHON'] = sys.executable; on a cluster: --conf spark.pyspark.python=...)",
    )

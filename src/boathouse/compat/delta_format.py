"""`format("delta")` in sessions without delta-spark, as jobs written for it say."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_KNOWN: Final[WeakSet[Any]] = WeakSet()


def offer_format(spark: Any) -> None:
    """Registers `delta` as a source of the session, once, unless it has one of that name."""
    if spark in _KNOWN:
        return
    _KNOWN.add(spark)
    if _missing(spark):
        # Sources of PySpark are packages beside the library; it names this one as PySpark itself does, by its module.
        import_module("pyspark_boathouse.delta").register(spark)


def offer_to_active() -> None:
    """Does it for the session that there is, if there is one."""
    spark = SparkSession.getActiveSession()
    if spark is not None:
        offer_format(spark)


def _missing(spark: Any) -> bool:
    """Whether the session knows no source `delta`: asked for a table without a path, any other one says so."""
    try:
        return not spark.read.format("delta").load().schema.fields
    except PySparkException as error:
        found = getattr(error, "getCondition", None) or error.getErrorClass
        return found() == "DATA_SOURCE_NOT_FOUND"
    except Exception as error:
        return "DATA_SOURCE_NOT_FOUND" in str(error)

"""The engine's cache of a Spark session's properties: its version, its cores, its settings while a plan is made."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

_LOCK = threading.RLock()
"""Settings belong to the session: only one thread at a time may change them for a plan."""
_PROBE_ROWS = 4096


@dataclass(frozen=True)
class Reach:
    """How Spark reaches a store: with the URI scheme `scheme`, or not at all, because of `obstacle`."""

    scheme: str
    obstacle: str | None = None


@dataclass
class Facts:
    """The cached properties of a session."""

    version: tuple[int, int]
    cores: int | None = None
    shipped: bool = False
    stores: dict[tuple[str, str], Reach] = field(default_factory=dict)


_FACTS: WeakKeyDictionary[SparkSession, Facts] = WeakKeyDictionary()


def facts(spark: SparkSession) -> Facts:
    """The cache of this session, created on first use."""
    known = _FACTS.get(spark)
    if known is None:
        major, minor = str(spark.version).split(".")[:2]
        known = _FACTS[spark] = Facts((int(major), int(minor)))
    return known


def cores(spark: SparkSession) -> int:
    """How many tasks run in parallel, from the number of partitions of a range; one small job, once per session."""
    known = facts(spark)
    if known.cores is None:
        found = spark.range(_PROBE_ROWS).select(F.spark_partition_id().alias("p")).distinct().count()
        known.cores = max(1, min(found, _PROBE_ROWS))
    return known.cores


def flag(spark: SparkSession, name: str, default: bool) -> bool:
    """A boolean setting."""
    return str(spark.conf.get(name, str(default).lower())).lower() == "true"


@contextmanager
def settings(spark: SparkSession, wanted: Mapping[str, Any]) -> Iterator[None]:
    """Changes session settings inside the block, and restores them afterwards."""
    with _LOCK:
        before = {name: spark.conf.get(name, None) for name in wanted}
        try:
            for name, value in wanted.items():
                spark.conf.set(name, str(value))
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, value)

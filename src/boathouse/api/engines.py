"""The data determines the engine: a DataFrame runs on its Spark session, Arrow data in process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from boathouse.api.opening import active_session
from boathouse.bits import progress, zones
from boathouse.engines.local import LocalEngine
from boathouse.errors import InvalidArgumentError
from boathouse.table.engine import Engine

LOCAL = LocalEngine()


def is_dataframe(data: object) -> bool:
    """Whether `data` is a PySpark DataFrame, classic or Connect; never imports pyspark."""
    return any(k.__module__.startswith("pyspark.sql") and k.__name__ == "DataFrame" for k in type(data).__mro__)


def engine_for(data: object = None, spark: Any = None) -> Engine:
    """The engine of `data`; without data Spark if a session is given, else the local one."""
    if data is not None:
        return spark_engine(data.sparkSession) if is_dataframe(data) else LOCAL  # type: ignore[attr-defined]
    return LOCAL if spark is None else spark_engine(spark)


def spark_engine(spark: Any) -> Engine:
    """The Spark engine of a session, classic or Connect."""
    module = import_module("boathouse.engines.spark.engine")
    return module.SparkEngine(spark)


def described(engine: Engine, operation: str, where: str) -> AbstractContextManager[None]:
    """Within the block, Spark's jobs are called `boathouse append file:///lake/trips`; in process the operation shows
    its progress."""
    if engine.name != "spark":
        return progress.shown(f"{operation} {where}")
    jobs = import_module("boathouse.engines.spark.jobs")
    named: AbstractContextManager[None] = jobs.described(engine.spark, f"boathouse {operation} {where}")  # type: ignore[attr-defined]
    return named


def zone_of(engine: Engine, timezone: str | None, spark: Any) -> str | None:
    """The time zone of conditions on an engine, for a table opened with `timezone=` and `spark=`.

    On Spark the session's; in process `timezone`, else the session's if there is one, else UTC. Raises
    InvalidArgumentError if Spark's session has another zone than the requested one.
    """
    if engine.name != "spark":
        return timezone or (engine if spark is None else spark_engine(spark)).timezone
    zone = engine.timezone
    if timezone is not None and zone is not None and not zones.zone(timezone).same_as(zones.zone(zone)):
        raise InvalidArgumentError(
            f"timezone={timezone!r}, but the time zone of the Spark session is {zone!r}",
            advice=f"leave timezone= out, or set spark.sql.session.timeZone to {timezone}",
        )
    return zone


def session(spark: Any = None) -> Any:
    """The given session, else the active one. Raises InvalidArgumentError if there is none."""
    if spark is not None:
        if not any(k.__name__ == "SparkSession" for k in type(spark).__mro__):
            raise InvalidArgumentError(f"{spark!r} is not a Spark session", advice="pass spark=SparkSession")
        return spark
    if (active := active_session()) is not None:
        return active
    raise InvalidArgumentError("there is no active Spark session", advice="pass spark=, or create a session first")


def time_zone(name: str | None) -> str | None:
    """`timezone=` as given, or None. Raises InvalidArgumentError for an unknown time zone."""
    return None if name is None else zones.zone(name).name

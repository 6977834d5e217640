"""`format("delta")` for a session that has no delta-spark: the source `boathouse`, of Delta tables alone.

`boathouse.compat.delta_tables` registers it. PySpark does not find it by itself: in a session with the JAR the name
would then mean two sources, and none could be used.
"""

from __future__ import annotations

from typing import Any

from pyspark_boathouse import DefaultSource


class DeltaSource(DefaultSource):
    """Delta tables, by path."""

    def __init__(self, options: dict[str, str]) -> None:
        given = {str(k).lower(): str(v) for k, v in dict(options).items()}
        super().__init__({**given, "tableformat": "delta"})

    @classmethod
    def name(cls) -> str:
        return "delta"


def register(spark: Any) -> None:
    """Makes `delta` a source of this session."""
    spark.dataSource.register(DeltaSource)

"""Spark's Parquet reader on an explicit list of files, with everything switched off that skips or shifts rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from boathouse.engines.spark.session import cores, settings

_LISTED_IN_DRIVER = 32
"""Spark lists longer lists in a job, by default of up to 10,000 tasks."""
_PARALLELISM = "spark.sql.sources.parallelPartitionDiscovery.parallelism"

OPTIONS = {
    "__globPaths__": "false",  # `[ { * ?` in names are names
    # Otherwise the list is matched again as patterns: with such a name in it, other files are read twice.
    "recursiveFileLookup": "true",
    "ignoredPathSegmentRegex": "(?!)",  # 4.3: names that begin with `_` or `.` are data
    "ignoreMissingFiles": "false",  # options win over session settings that drop rows in silence
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


def read_parquet(spark: SparkSession, uris: Sequence[str], schema: S.StructType) -> DataFrame:
    """A frame over exactly these files (raw URIs); listed now, also on Connect."""
    reader = spark.read.schema(schema).options(**OPTIONS)
    if len(uris) <= _LISTED_IN_DRIVER:
        return reader.parquet(*uris)
    with settings(spark, {_PARALLELISM: max(2, 2 * cores(spark))}):
        frame = reader.parquet(*uris)
        _ = frame.schema  # Connect analyses, and so lists, when it is asked first
        return frame

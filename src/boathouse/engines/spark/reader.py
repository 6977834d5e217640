"""Spark's Parquet reader on an explicit list of files, with every option disabled that skips or shifts rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from boathouse.engines.spark.session import cores, settings

_LISTED_IN_DRIVER = 32
"""Spark lists longer lists in a job, by default of up to 10,000 tasks."""
_PARALLELISM = "spark.sql.sources.parallelPartitionDiscovery.parallelism"

OPTIONS = {
    "recursiveFileLookup": "true",  # no columns are inferred from names of folders
    "ignoredPathSegmentRegex": "(?!)",  # 4.3: names that begin with `_` or `.` are data
    "ignoreMissingFiles": "false",  # options override session settings that silently drop rows
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}

SKIPS_NOTHING = {
    f"parquet.filter.{by}.enabled": "false" for by in ("stats", "dictionary", "bloom", "columnindex")
}  # conditions are evaluated on every row
_GLOB = re.compile(r"([\\*?\[\]{}])")


def literal(uri: str) -> str:
    """The URI as a glob pattern that matches only itself.

    The internal option `__globPaths__` is not an alternative: Connect ignores it, and with it other files of a list are
    read twice if one name has such a character (seen on 4.0 to 4.3).
    """
    return _GLOB.sub(r"\\\1", uri)


def read_parquet(spark: SparkSession, uris: Sequence[str], schema: S.StructType, skips: bool = True) -> DataFrame:
    """A frame over exactly these files (raw URIs); they are listed now, also on Connect. Unless it `skips`, conditions
    on it are evaluated on every row."""
    reader = spark.read.schema(schema).options(**OPTIONS if skips else OPTIONS | SKIPS_NOTHING)
    paths = [literal(uri) for uri in uris]
    if len(uris) <= _LISTED_IN_DRIVER:
        return reader.parquet(*paths)
    with settings(spark, {_PARALLELISM: max(2, 2 * cores(spark))}):
        frame = reader.parquet(*paths)
        _ = frame.schema  # Connect analyses, and so lists, on first access
        return frame

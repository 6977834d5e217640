"""Settings of a Spark session that delta-spark obeys, and statements and jobs written for it rely on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

EVOLVES: Final = "spark.databricks.delta.schema.autoMerge.enabled"
DEFAULTS: Final = "spark.databricks.delta.properties.defaults."
USER_METADATA: Final = "spark.databricks.delta.commitInfo.userMetadata"


def evolves(spark: Any) -> bool:
    """Whether writes add the columns that a table lacks."""
    return str(spark.conf.get(EVOLVES, "false")).strip().lower() == "true"


def with_defaults(spark: Any, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties of a new Delta table, with those that the session gives to every new one."""
    said = {k: str(v) for k, v in spark.conf.getAll.items() if k.startswith(DEFAULTS)}
    return {**{f"delta.{k.removeprefix(DEFAULTS)}": v for k, v in said.items()}, **properties}


def user_metadata(spark: Any) -> str | None:
    """What the history says beside each commit."""
    found = spark.conf.get(USER_METADATA, None)
    return None if found is None or not str(found) else str(found)

"""Table names through Spark's metastore, without the JAR of the table's format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException

_PART = r"(?:`(?:[^`]|``)+`|\w+)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Named:
    """What the metastore says of a table: the provider as written there (None for a view), where its files lie."""

    provider: str | None
    location: str | None


def is_name(text: str) -> bool:
    """Whether the text can be the name of a table: one to three identifiers, quoted by backticks where needed."""
    return _NAME.fullmatch(text.strip()) is not None


def look_up(spark: Any, name: str) -> Named | None:
    """The table that the session knows by this name; None if there is none, or no database of that name."""
    *database, table = [_plain(p) for p in re.findall(_PART, name.strip())]
    scope = " in " + ".".join("`" + p.replace("`", "``") + "`" for p in database) if database else ""
    pattern = table.replace("\\", "\\\\").replace("'", "\\'")
    try:
        rows = spark.sql(f"show table extended{scope} like '{pattern}'").collect()
    except PySparkException:
        return None
    # LIKE takes `*` and `|` as patterns, so that rows for other names may be among them.
    found = next((r for r in rows if r["tableName"].lower() == table.lower()), None)
    return None if found is None else _described(found["information"])


def _plain(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def _described(information: str) -> Named:
    """Lines `Key: value`; the last of a key counts, since a comment before it may hold anything."""
    found = dict(re.findall(r"^(Provider|Location): (.*)$", information, re.MULTILINE))
    return Named(found.get("Provider"), found.get("Location"))

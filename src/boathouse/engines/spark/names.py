"""Resolves table names in Spark's metastore, without the JAR of the table's format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException

_PART = r"(?:`(?:[^`]|``)+`|\w+)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Named:
    """A table's entry in the metastore: the provider as written there (None for a view), and the location of its
    files."""

    provider: str | None
    location: str | None


def is_name(text: str) -> bool:
    """Whether the string can be the name of a table: one to three identifiers, quoted by backticks where needed."""
    return _NAME.fullmatch(text.strip()) is not None


def look_up(spark: Any, name: str) -> Named | None:
    """The session's table with this name; None if there is none, or no such database."""
    *database, table = [_plain(p) for p in re.findall(_PART, name.strip())]
    scope = " in " + ".".join("`" + p.replace("`", "``") + "`" for p in database) if database else ""
    pattern = table.replace("\\", "\\\\").replace("'", "\\'")
    try:
        rows = spark.sql(f"show table extended{scope} like '{pattern}'").collect()
    except PySparkException:
        return None
    # LIKE treats `*` and `|` as patterns, so rows for other names may be included. Spark sees temporary views first.
    named = [r for r in rows if r["tableName"].lower() == table.lower()]
    found = next((r for r in named if r["isTemporary"] and not database), None) or next(
        (r for r in named if not r["isTemporary"]), None
    )
    return None if found is None else _described(found["information"])


def _plain(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def _described(information: str) -> Named:
    """Lines `Key: value`; the last one of a key counts, since a comment before it may contain anything."""
    found = dict(re.findall(r"^(Provider|Location): (.*)$", information, re.MULTILINE))
    return Named(found.get("Provider"), found.get("Location"))

"""Table names in Spark's metastore, found and made without the JAR of the table's format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import types as S

from boathouse.engines.spark.schema import to_spark
from boathouse.errors import AlreadyExistsError, BoathouseError, TableNotFoundError
from boathouse.expr.identifiers import quote, text_literal
from boathouse.types import Field

PROVIDER: Final = "boathouse"
"""What entries of ours name as their source: it is `spark.read.format` of this library."""

_PART = r"(?:`(?:[^`]|``)+`|\w+)"
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Named:
    """A table's entry in the metastore: the provider as written there (None for a view), and the location of its
    files; `managed`: Spark moves and removes them with the name."""

    provider: str | None
    location: str | None
    managed: bool = False


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


def register(spark: Any, name: str, location: str | None, fields: Iterable[Field], comment: str | None) -> None:
    """Makes an entry of the metastore; without a location Spark chooses the folder, and removes it with the name.

    Raises TableNotFoundError for a database that is not there, AlreadyExistsError for a name that is taken and for a
    managed table whose folder is not empty, and Spark's other errors.
    """
    columns = ", ".join(f"{quote(f.name)} {_ddl(f.dataType)}" for f in to_spark(fields))
    said = "" if location is None else f" LOCATION {text_literal(location)}"
    said += "" if comment is None else f" COMMENT {text_literal(comment)}"
    try:
        # The catalog's own method reads the table at once, on Connect.
        spark.sql(f"CREATE TABLE {name} ({columns}) USING {PROVIDER}{said}").collect()
    except PySparkException as error:
        if (known := _known(error, name)) is None:
            raise
        raise known from None


def forget(spark: Any, name: str) -> None:
    """Drops the entry; of a managed table Spark removes the folder."""
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def _known(error: PySparkException, name: str) -> BoathouseError | None:
    condition = (getattr(error, "getCondition", None) or error.getErrorClass)() or ""
    if condition == "SCHEMA_NOT_FOUND":
        return TableNotFoundError(f"there is no database for {name}", advice="create it: CREATE DATABASE name")
    if condition in ("TABLE_OR_VIEW_ALREADY_EXISTS", "TABLE_ALREADY_EXISTS"):
        return AlreadyExistsError(f"the name {name} is taken", advice="choose another name, or drop the table")
    if condition == "LOCATION_ALREADY_EXISTS":
        return AlreadyExistsError(
            f"the folder of {name} in the warehouse is not empty: {str(error).split(chr(39))[1]}",
            advice="say LOCATION and this path: a table there gets the name again; or remove the folder",
        )
    return None


def _ddl(type: S.DataType) -> str:
    match type:
        case S.StructType():
            return f"struct<{', '.join(f'{quote(f.name)}: {_ddl(f.dataType)}' for f in type)}>"
        case S.ArrayType():
            return f"array<{_ddl(type.elementType)}>"
        case S.MapType():
            return f"map<{_ddl(type.keyType)}, {_ddl(type.valueType)}>"
    return type.simpleString()


def _plain(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def _described(information: str) -> Named:
    """Lines `Key: value`; the last one of a key counts, since a comment before it may contain anything."""
    found = dict(re.findall(r"^(Type|Provider|Location): (.*)$", information, re.MULTILINE))
    return Named(found.get("Provider"), found.get("Location"), found.get("Type") == "MANAGED")
